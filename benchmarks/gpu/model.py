"""A model of the kernel for 8-bit RGB `fast` tiles: what it should reach on cards that nobody has tried yet.

    python benchmarks/gpu/model.py

compiles the kernel, counts the instructions of its main loop in the disassembly and prints the tables of docs/gpu.md,
which explains them. Needs nvcc and nvdisasm (the PyPI package nvidia-cuda-nvdisasm has it); no GPU.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import math
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CUDA = Path(__file__).parents[2] / "csrc/l3/cuda"
sys.path.insert(0, str(CUDA))
import resources  # noqa: E402

CHANNELS = 3
KERNEL = f"decode_fast8<{CHANNELS}>"
TILE_BYTES = 64 * 64 * CHANNELS
BITS_PER_PIXEL = 9.3  # of photographs of 1920x1080, profile `fast`
FHD_TILES = 30 * 17
FHD_FILL = 1920 * 1080 / (FHD_TILES * 64 * 64)  # tiles at the bottom are cut off
ROWS, TILES, TILES_A_BLOCK = 4, 2, 8  # of an iteration of a warp; TILES of a warp
BATCHES = (1, 8, 32, 128)

COPY_EFFICIENCY = 0.9  # of the data sheet's bandwidth that a copy reaches
ISSUE_EFFICIENCY = 0.75  # of the busiest unit's rate that a kernel of many warps reaches
ALONE_PER_INSTRUCTION = 2.5  # cycles from an instruction of a warp that runs alone to its next
ALONE_WAITS = 600  # cycles that such a warp waits for memory, twice an iteration


@dataclass(frozen=True)
class Card:
    """Data sheet figures. clock: GHz under load; bandwidth: GB/s of memory; shared: bytes a multiprocessor."""

    name: str
    architecture: str
    multiprocessors: int
    clock: float
    bandwidth: float
    shared: int


CARDS = (
    Card("A100 80GB", "80", 108, 1.41, 2039, 164 << 10),
    Card("H100 SXM", "90", 132, 1.75, 3350, 228 << 10),
    Card("H200", "90", 132, 1.75, 4800, 228 << 10),
)

# ---- counting --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Instruction:
    predicate: str  # such as "@!P0", or nothing
    operation: str  # such as "SHFL.UP"
    operands: str

    @property
    def name(self) -> str:
        return self.operation.partition(".")[0]

    @property
    def target(self) -> str | None:
        """Where a branch goes."""
        label = re.search(r"`\((\S+)\)", self.operands)
        return label[1] if label and self.name == "BRA" else None

    @property
    def conditional(self) -> bool:
        return bool(self.predicate) or bool(re.match(r"!?U?P\d", self.operands))


def disassemble(nvcc: str, nvdisasm: str, architecture: str) -> list[str]:
    """The lines of the kernel's code."""
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        resources.compile_kernels(nvcc, CUDA / "fast8_kernel.cu", architecture, cubin)
        code = subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True, text=True).stdout
    for section in re.split(r"(?m)^\.text\.", code)[1:]:
        symbol = section[: section.index(":")]
        if resources.demangle([symbol]) == [KERNEL]:
            return section.splitlines()
    raise SystemExit(f"no kernel {KERNEL} in the disassembly")


class Blocks:
    """The kernel as a graph: blocks of instructions, in order, each with the blocks that may follow it."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.code: list[list[Instruction]] = [[]]
        labels: dict[str, int] = {}
        for line in lines:
            if label := re.match(r"(\.L\w+):", line):
                if self.code[-1]:
                    self.code.append([])
                labels[label[1]] = len(self.code) - 1
            if parts := re.search(r"\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*);", line):
                self.code[-1].append(Instruction(parts[1] or "", parts[2], parts[3]))
                if self.code[-1][-1].name in ("BRA", "EXIT"):
                    self.code.append([])
        self.successors = [self._following(number, labels) for number in range(len(self.code))]

    def _following(self, number: int, labels: dict[str, int]) -> list[int]:
        following = [number + 1] if number + 1 < len(self.code) else []
        last = self.code[number][-1] if self.code[number] else None
        if last is None or last.name not in ("BRA", "EXIT"):
            return following
        targets = [labels[last.target]] if last.target else []
        return targets + following if last.conditional else targets

    def main_loop(self) -> tuple[int, int]:
        """First and last block of the longest loop."""
        loops = [(b - a, a, b) for b, after in enumerate(self.successors) for a in after if a < b]
        _, first, last = max(loops)
        return first, last

    def path(self, first: int, last: int, through: Iterable[int]) -> list[Instruction]:
        """The instructions of the shortest way from block `first` to `last` that passes the given blocks, in order."""
        stops = sorted({first, last, *through})
        numbers = [first]
        for start, end in itertools.pairwise(stops):
            numbers += self._shortest(start, end)[1:]
        return [instruction for number in numbers for instruction in self.code[number]]

    def _shortest(self, start: int, end: int) -> list[int]:
        queue: list[tuple[int, int, list[int]]] = [(0, start, [start])]
        seen = set()
        while queue:
            length, number, way = heapq.heappop(queue)
            if number == end:
                return way
            if number in seen:
                continue
            seen.add(number)
            for following in self.successors[number]:
                if number < following <= end:  # forwards: inner loops are passed once
                    heapq.heappush(queue, (length + len(self.code[following]), following, [*way, following]))
        raise SystemExit(f"no way from block {start} to block {end}: the code has another shape than expected")


def storing_pixels(instruction: Instruction) -> bool:
    return re.match(r"STG?\.E.*\.128", instruction.operation) is not None


def summing(instruction: Instruction) -> bool:
    """A step of a running sum: a shuffle that says whether there was a lane to take from."""
    return instruction.operation == "SHFL.UP" and not instruction.operands.startswith("PT")


PIPES = {
    "FMA": {"IMAD", "IDP", "FFMA", "FADD", "FMUL", "HFMA2", "HADD2", "HMUL2"},
    "shuffles": {"SHFL"},
    "memory": {"LDG", "LD", "STG", "ST", "LDS", "STS", "LDC", "LDL", "STL"},
    "control": {"BRA", "BSSY", "BSYNC", "EXIT", "NOP", "WARPSYNC", "CALL", "RET", "BAR", "VOTE", "S2R", "S2UR", "CS2R"},
    "uniform": {"ULEA", "ULDC", "R2UR", "REDUX"},
}


def pipe(instruction: Instruction) -> str:
    """The unit that executes an instruction, by name; what is not listed is integer arithmetic or logic."""
    if instruction.name.startswith("U"):
        return "uniform"
    return next((pipe for pipe, names in PIPES.items() if instruction.name in names), "ALU")


def wavefronts(instruction: Instruction) -> int:
    """Cycles that a shuffle or an access without conflicts keeps the multiprocessor's memory unit busy."""
    if pipe(instruction) not in ("shuffles", "memory"):
        return 0
    return 4 if ".128" in instruction.operation else 2 if ".64" in instruction.operation else 1


@dataclass(frozen=True)
class Counts:
    """The instructions of a warp: of an iteration of the main loop, and before it."""

    iteration: list[Instruction]
    prologue: list[Instruction]

    def pipes(self) -> Counter[str]:
        return Counter(map(pipe, self.iteration))

    def cycles(self) -> dict[str, float]:
        """Cycles for which a pair of tiles keeps each unit of a multiprocessor's quarter busy."""
        cycles: Counter[str] = Counter()
        for instructions, times in ((self.iteration, 64 // ROWS), (self.prologue, 1)):
            pipes = Counter(map(pipe, instructions))
            cycles["issue"] += len(instructions) * times
            cycles["ALU"] += 2 * pipes["ALU"] * times  # 16 lanes wide
            cycles["FMA"] += 2 * pipes["FMA"] * times
            cycles["memory"] += 4 * sum(map(wavefronts, instructions)) * times  # one unit for all four quarters
        return dict(cycles)


def count(nvcc: str, nvdisasm: str, architecture: str) -> dict[str, Counts]:
    blocks = Blocks(disassemble(nvcc, nvdisasm, architecture))
    first, last = blocks.main_loop()

    def holding(test) -> list[int]:
        return [n for n in range(first, last + 1) if any(map(test, blocks.code[n]))]

    records = [n for n in range(first) if any(i.operation == "STS.128" for i in blocks.code[n])]
    prologue = blocks.path(0, first, records)[: -len(blocks.code[first])]
    # Rows of whole tiles leave by the first block of stores in the loop; those behind are for the others.
    stores, sums = holding(storing_pixels)[:1], holding(summing)
    return {
        "without sums": Counts(blocks.path(first, last, stores), prologue),
        "with sums": Counts(blocks.path(first, last, [*stores, *sums]), prologue),
    }


# ---- predicting ------------------------------------------------------------------------------------------------------


def predict(card: Card, counts: Counts, kernel: dict[str, int], batch: int) -> dict[str, float]:
    """GB/s of pixels of FHD images: the limits, and what they leave."""
    pair_bytes = TILES * TILE_BYTES * FHD_FILL
    busy = counts.cycles()
    unit = max(busy, key=busy.get)
    memory = card.bandwidth * COPY_EFFICIENCY / (1 + BITS_PER_PIXEL / 24)
    arithmetic = card.multiprocessors * 4 * card.clock / busy[unit] * pair_bytes
    blocks = math.ceil(batch * FHD_TILES / TILES_A_BLOCK)
    under_way = min(blocks, card.multiprocessors * blocks_that_fit(card, kernel))
    iterations = 64 / ROWS
    alone = len(counts.iteration) * iterations + len(counts.prologue)
    alone = alone * ALONE_PER_INSTRUCTION + 2 * ALONE_WAITS * iterations
    latency = under_way * 4 * card.clock / alone * pair_bytes
    expected = min(memory, ISSUE_EFFICIENCY * arithmetic, latency)
    return {"memory": memory, "arithmetic": arithmetic, "latency": latency, "expected": expected}


def blocks_that_fit(card: Card, kernel: dict[str, int]) -> int:
    """Blocks of 128 threads that a multiprocessor holds at once."""
    registers = math.ceil(kernel["registers"] / 8) * 8 * 128
    return min(65536 // registers, card.shared // (kernel["shared"] + 1024))


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the model of the GPU decoder.")
    parser.add_argument("--nvcc", default=resources.find_nvcc())
    parser.add_argument("--nvdisasm", default=shutil.which("nvdisasm"))
    arguments = parser.parse_args()
    if arguments.nvcc is None or arguments.nvdisasm is None:
        parser.error("needs nvcc and nvdisasm; name them with --nvcc and --nvdisasm")

    tools = arguments.nvcc, arguments.nvdisasm
    architectures = dict.fromkeys(("75", *(card.architecture for card in CARDS), "120"))
    counts = {name: count(*tools, name) for name in architectures}
    kinds = ("ALU", "FMA", "memory", "shuffles", "uniform", "control")
    print(row("", "in all", *kinds, "before the loop"))
    print(row("---", *["--:"] * (len(kinds) + 2)))
    for architecture, both in counts.items():
        for name, counted in both.items():
            pipes = counted.pipes()
            cells = [pipes[kind] for kind in kinds]
            print(row(f"sm_{architecture}, {name}", len(counted.iteration), *cells, len(counted.prologue)))
    print()
    print(row("GB/s of pixels", "memory", "busiest unit", "at rest", *(f"batch {batch}" for batch in BATCHES)))
    print(row("---", *["--:"] * (len(BATCHES) + 3)))
    for card in CARDS:
        kernel = resources.measure(arguments.nvcc, card.architecture)[KERNEL]
        for name, counted in counts[card.architecture].items():
            busy = counted.cycles()
            unit = max(busy, key=busy.get)
            figures = [predict(card, counted, kernel, batch) for batch in BATCHES]
            last = figures[-1]
            print(
                row(
                    f"{card.name}, {name}",
                    f"{last['memory']:.0f}",
                    f"{last['arithmetic']:.0f} ({unit})",
                    f"{last['latency']:.0f}",
                    *(f"{figure['expected']:.0f}" for figure in figures),
                )
            )


if __name__ == "__main__":
    main()
