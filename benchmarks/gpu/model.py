"""A model of the GPU decoder: what its kernels should reach on cards that nobody has tried yet.

    python benchmarks/gpu/model.py

prints the model's tables of docs/gpu.md, which explains them, and its targets. What the kernels execute is known:
benchmarks/gpu/counts.py wrote it to results/gpu_counts.json. Needs the standard library alone.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).parents[1]
sys.path.append(str(BENCHMARKS))
from gpu.machine_code import UNITS  # noqa: E402
from targets import Target  # noqa: E402

RESULTS = "gpu_counts"
BATCHES = (1, 8, 32, 128)
BATCH = 32  # where no other is named
ARCHITECTURE = "90"  # where no card is named
PHOTOGRAPHS = "photographs"

COPY_EFFICIENCY = 0.9  # of the data sheet's bandwidth that a copy reaches
ISSUE_EFFICIENCY = 0.75  # of the busiest unit's rate that a kernel of many warps reaches
ALONE_PER_INSTRUCTION = 2.5  # cycles from an instruction of a warp that runs alone to its next
ALONE_WAITS = 32 * 600  # cycles that such a warp waits for memory: twice for each four rows of a tile

Counted = dict[str, Any]  # a set of images, or a kernel on one
Row = list[str]


@dataclass(frozen=True)
class Card:
    """Data sheet figures. clock: GHz under load; bandwidth: GB/s of memory; shared: bytes a multiprocessor."""

    name: str
    architecture: str
    multiprocessors: int
    clock: float
    bandwidth: float
    shared: int
    share_wanted: float  # of a copy's bandwidth, in plus out, for photographs


CARDS = (
    Card("A100 80GB", "80", 108, 1.41, 2039, 164 << 10, 0.45),
    Card("H100 SXM", "90", 132, 1.75, 3350, 228 << 10, 0.60),
    Card("H200", "90", 132, 1.75, 4800, 228 << 10, 0.42),
)

SOURCES_CARD = CARDS[1]
SOURCES = {"PCIe 4 x16, pinned memory": 25, "PCIe 5 x16, pinned memory": 53, "an NVMe disk": 7}  # GB/s

# ---- What was counted ------------------------------------------------------------------------------------------------


def pixel_bytes(counted: Counted) -> int:
    """Kernels write nothing but pixels, and each once."""
    return sum(kernel["written"]["bytes"] for kernel in counted["kernels"])


def executed(kernel: Counted, what: str, architecture: str = ARCHITECTURE) -> int:
    """Machine instructions. what: "warps" or "lanes" that execute them."""
    return sum(unit[what] for unit in kernel["machine"][architecture].values())


def slots_a_byte(counted: Counted) -> float:
    """Instructions of lanes, idle ones included, for a byte of pixels."""
    return 32 * sum(executed(kernel, "warps") for kernel in counted["kernels"]) / pixel_bytes(counted)


def general_share(sets: Iterable[Counted]) -> float:
    """The share of tiles that the general kernel decodes."""
    tiles = [(k["kernel"].startswith("decode_general"), k["launched"]["tiles"]) for one in sets for k in one["kernels"]]
    return sum(count for general, count in tiles if general) / sum(count for _, count in tiles)


def cycles(kernel: Counted, architecture: str) -> dict[str, float]:
    """Cycles for which a kernel keeps each unit of a multiprocessor's quarter busy, were there but one quarter."""
    warps = {unit: executed["warps"] for unit, executed in kernel["machine"][architecture].items()}
    wavefronts = kernel["shared"]["wavefronts"] + kernel["read"]["lines"] + kernel["written"]["lines"]
    return {
        "issue": sum(warps.values()),
        "ALU": 2 * warps["ALU"],  # 16 lanes wide
        "FMA": 2 * warps["FMA"],
        "memory": 4 * (warps["shuffle"] + wavefronts),  # one unit for all four quarters
    }


# ---- What follows ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prediction:
    """GB/s of pixels: three limits, and what they leave."""

    memory: float
    arithmetic: float
    unit: str  # the busiest
    at_rest: float

    @property
    def expected(self) -> float:
        return min(self.memory, ISSUE_EFFICIENCY * self.arithmetic, self.at_rest)

    @property
    def share(self) -> float:
        """Of the bandwidth of a copy on the device, in plus out."""
        return self.expected / self.memory


def predict(card: Card, counted: Counted, batch: int) -> Prediction:
    size = pixel_bytes(counted)
    busy: dict[str, float] = {}  # cycles by the unit that binds: kernels run one after the other
    at_rest = 0.0  # cycles
    for kernel in counted["kernels"]:
        by_unit = cycles(kernel, card.architecture)
        unit = max(by_unit, key=by_unit.__getitem__)
        busy[unit] = busy.get(unit, 0) + by_unit[unit]
        at_rest += cycles_at_rest(card, kernel, batch / counted["images"])
    return Prediction(
        memory=card.bandwidth * COPY_EFFICIENCY / (1 + counted["file_bytes"] / size),
        arithmetic=size / sum(busy.values()) * card.multiprocessors * 4 * card.clock,
        unit=max(busy, key=busy.__getitem__),
        at_rest=size * batch / counted["images"] / at_rest * card.clock,
    )


def cycles_at_rest(card: Card, kernel: Counted, times: float) -> float:
    """Cycles that a kernel takes, for `times` the tiles, if no warp disturbs another: as many blocks as fit at once."""
    blocks, threads = kernel["launched"]["blocks"], kernel["launched"]["threads"]
    warps = blocks * threads / 32
    alone = executed(kernel, "warps", card.architecture) / warps * ALONE_PER_INSTRUCTION + ALONE_WAITS
    under_way = min(math.ceil(blocks * times), card.multiprocessors * blocks_that_fit(card, kernel))
    return math.ceil(blocks * times) / under_way * alone


def blocks_that_fit(card: Card, kernel: Counted) -> int:
    """Blocks that a multiprocessor holds at once."""
    threads, used = kernel["launched"]["threads"], kernel["resources"][card.architecture]
    registers = math.ceil(used["registers"] / 8) * 8 * threads
    return min(65536 // registers, card.shared // (used["shared"] + 1024), 2048 // threads, 32)


def targets(sets: dict[str, Counted]) -> list[Target]:
    photographs, batch = sets[PHOTOGRAPHS], f"photographs, batch {BATCH}"
    result = [
        Target(f"{card.name}: share of a copy, {batch}", predict(card, photographs, BATCH).share, card.share_wanted)
        for card in CARDS
    ]
    against_photographs = {name: slots_a_byte(counted) / slots_a_byte(photographs) for name, counted in sets.items()}

    def at_most(what: str, words: tuple[str, ...], limit: float) -> Target:
        times = max(times for name, times in against_photographs.items() if name.startswith(words))
        return Target(f"{what}: instructions a byte, times photographs", times, limit, at_most=True)

    result.append(at_most("16 bits", ("16-bit",), 1.3))
    result.append(at_most("label maps", ("labels", "binary masks"), 1.0))
    result.append(at_most("224x224", ("224x224",), 1.3))
    native = [one for one in sets.values() if not one["converts"] and one["profile"] != "paper"]
    name = "tiles in the general kernel, without conversions and paper"
    return [*result, Target(name, general_share(native), 0, at_most=True)]


# ---- Tables ----------------------------------------------------------------------------------------------------------


def counts_rows(sets: dict[str, Counted]) -> tuple[Row, Iterator[Row]]:
    """A row for each kernel of each set."""
    header = ["", "kernel", "tiles", *("all", *UNITS), "PTX", "lanes", "a byte", "branches", "parted"]
    header += ["read", "sectors in", "sectors out", "wavefronts", "conflicts"]

    def rows() -> Iterator[Row]:
        for name, counted in sets.items():
            tiles = sum(kernel["launched"]["tiles"] for kernel in counted["kernels"])
            for kernel in counted["kernels"]:
                yield [
                    name,
                    f"`{kernel['kernel']}`",
                    f"{kernel['launched']['tiles'] / tiles:.0%}",
                    *cells(counted, kernel),
                ]

    def cells(counted: Counted, kernel: Counted) -> Row:
        written, read, shared, branches = (kernel[key] for key in ("written", "read", "shared", "branches"))
        samples = written["bytes"] / counted["sample_bytes"]
        lanes, warps = executed(kernel, "lanes"), executed(kernel, "warps")
        units = [unit["lanes"] for unit in kernel["machine"][ARCHITECTURE].values()]
        instructions = [lanes, *units, sum(kind["lanes"] for kind in kernel["ptx"].values())]
        return [
            *(f"{number / samples:.2f}" for number in instructions),
            f"{lanes / warps / 32:.0%}",
            f"{32 * warps / written['bytes']:.1f}",
            f"{32 * branches['executed'] / samples:.2f}",
            f"{branches['divergent'] / max(1, branches['executed']):.0%}",
            f"{read['bytes'] / written['bytes']:.2f}",
            *(f"{32 * memory['sectors'] / memory['bytes']:.2f}" for memory in (read, written)),
            f"{32 * shared['wavefronts'] / samples:.2f}",
            f"{shared['conflicts'] / max(1, shared['wavefronts']):.0%}",
        ]

    return header, rows()


def photographs_rows(sets: dict[str, Counted]) -> tuple[Row, Iterator[Row]]:
    """The limits for photographs on each card, and what they leave batches of several sizes."""
    header = [
        "GB/s of pixels",
        "memory",
        "busiest unit",
        "at rest",
        *(f"batch {batch}" for batch in BATCHES),
        "of a copy",
    ]

    def rows() -> Iterator[Row]:
        for card in CARDS:
            by_batch = {batch: predict(card, sets[PHOTOGRAPHS], batch) for batch in BATCHES}
            most = by_batch[max(BATCHES)]
            limits = [f"{most.memory:.0f}", f"{most.arithmetic:.0f} ({most.unit})", f"{most.at_rest:.0f}"]
            expected = [f"{prediction.expected:.0f}" for prediction in by_batch.values()]
            yield [card.name, *limits, *expected, f"{by_batch[BATCH].share:.0%}"]

    return header, rows()


def sets_rows(sets: dict[str, Counted]) -> tuple[Row, Iterator[Row]]:
    """What is expected for every set."""
    rows = (
        [name, f"{slots_a_byte(counted):.1f}", f"{slots_a_byte(counted) / slots_a_byte(sets[PHOTOGRAPHS]):.2f}"]
        + [f"{p.expected:.0f} ({p.share:.0%})" for p in (predict(card, counted, BATCH) for card in CARDS)]
        for name, counted in sets.items()
    )
    return ["", "instructions a byte", "times photographs", *(card.name for card in CARDS)], rows


def sources_rows(sets: dict[str, Counted]) -> tuple[Row, Iterator[Row]]:
    """What feeds the kernel photographs, beside the kernel itself."""
    photographs = sets[PHOTOGRAPHS]
    image, file = (size / photographs["images"] for size in (pixel_bytes(photographs), photographs["file_bytes"]))
    kernel = predict(SOURCES_CARD, photographs, BATCH).expected

    def rows() -> Iterator[Row]:
        for name, rate in SOURCES.items():
            pixels = rate * image / file
            yield [name, f"{rate}", f"{rate * 1e9 / file:.0f}", f"{pixels:.0f}", f"{pixels / kernel:.0%}"]
        for batch in (1, BATCH):
            pixels = predict(SOURCES_CARD, photographs, batch).expected
            yield [f"the kernel, batches of {batch}", "", f"{pixels * 1e9 / image:.0f}", f"{pixels:.0f}", ""]

    return ["", "GB/s", "FHD images/s", "GB/s of pixels", f"of the GPU's time ({SOURCES_CARD.name})"], rows()


def targets_rows(sets: dict[str, Counted]) -> tuple[Row, Iterator[Row]]:
    rows = ([one.name, f"{one.measured:.3g}", one.wanted, "met" if one.met else "**missed**"] for one in targets(sets))
    return ["", "by the model", "wanted", ""], rows


def main() -> None:
    sets = json.loads((BENCHMARKS / f"results/{RESULTS}.json").read_text(encoding="utf-8"))["sets"]
    for make in (photographs_rows, sets_rows, sources_rows, targets_rows):
        header, rows = make(sets)
        for cells in (header, ["---"] * len(header), *rows):
            print(f"| {' | '.join(cells)} |")
        print()


if __name__ == "__main__":
    main()
