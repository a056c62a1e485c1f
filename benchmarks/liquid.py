"""Images per second where the dataset outgrows the memory: Liquid and MinIO, on several formats, against DALI's reader.

    python benchmarks/liquid.py WORK [FOLDER ...]

makes FHD images from the PNG photographs in the folders (those of scikit-image by default), writes their files to WORK,
which is to be on a disk, and the figures to results/liquid.json, with plots beside it. Limiting memory and disk takes
root. The protocol is described in docs/benchmarks.md.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path

import datasets
import numpy as np
from common import OthersLoad, argument_parser, console, write_results
from reading.groups import Unavailable, disk_of
from reading.runs import (
    BATCH_SIZE,
    DALI,
    DALI_COPYING,
    LIQUID,
    MINIO,
    THREADS,
    Figures,
    Protocol,
    everything,
    run,
    variation,
)
from rich.table import Table
from targets import Target

from dali_l3.profiling.measuring import KEEPING_MEMORY
from reading import files as dataset_files
from reading import plots

System = tuple[str, str]  # a reader and a dataset

SHARE_IN_MEMORY = 0.3  # of the bytes of the PNG files: the budget for what is kept of a dataset, whatever its format
DEFAULT_ALLOCATOR = "300 MB/s, default allocator"  # of the C library; in all other runs it keeps memory for images
RATES = {"300 MB/s": 300_000_000, DEFAULT_ALLOCATOR: 300_000_000, "800 MB/s": 800_000_000, "unthrottled": None}
OTHERS_LIMIT = 0.05  # CPU share of other processes up to which a run counts as undisturbed

PNG, BMP, L3, L3_MIX = "PNG", "BMP", "L3 fast", "L3 fast:raw 7:3"
PNG_BMP, BALANCED, MORE_PNG = "PNG:BMP 3:7", "PNG:BMP 5:5", "PNG:BMP 6:4"
DATASETS = {  # how many of ten files come from each set of dataset_files.SETS
    PNG: {"PNG": 10},
    MORE_PNG: {"PNG": 6, "BMP": 4},
    BALANCED: {"PNG": 5, "BMP": 5},
    PNG_BMP: {"PNG": 3, "BMP": 7},
    BMP: {"BMP": 10},
    L3: {"L3 fast": 10},
    L3_MIX: {"L3 fast": 7, "L3 raw": 3},
}
FAST = [(LIQUID, BMP), (LIQUID, L3), (LIQUID, L3_MIX)]
SYSTEMS: dict[str, list[System]] = {  # by speed of the disk
    "300 MB/s": [
        (DALI, PNG),
        (DALI_COPYING, PNG),
        (DALI, PNG_BMP),
        (DALI_COPYING, PNG_BMP),
        (MINIO, BALANCED),
        (MINIO, PNG_BMP),
        (MINIO, L3_MIX),
        (LIQUID, PNG),
        (LIQUID, MORE_PNG),
        (LIQUID, BALANCED),
        (LIQUID, PNG_BMP),
        *FAST,
    ],
    DEFAULT_ALLOCATOR: [(DALI, PNG), (DALI_COPYING, PNG), (LIQUID, BALANCED), (LIQUID, PNG_BMP), (LIQUID, L3)],
    "800 MB/s": [(DALI, PNG), (DALI_COPYING, PNG), (MINIO, PNG_BMP), (LIQUID, PNG_BMP), *FAST],
    "unthrottled": [(DALI, PNG), (DALI_COPYING, PNG), (MINIO, L3_MIX), *FAST],
}
COMPARED = (BALANCED, PNG_BMP, L3_MIX)  # datasets on which Liquid's and MinIO's batch times are compared
QUICK_FILES = 240
FILES_IN_MEMORY = 128  # of a dataset, to measure decoding
SECONDS = 4  # of a run after warming up, at least
QUICK_SYSTEMS = {"300 MB/s": [(DALI, PNG), (MINIO, PNG_BMP), (LIQUID, PNG_BMP), (LIQUID, L3)]}

SPEED_TARGETS = {  # times DALI on PNG that the best of the datasets reaches, at least
    ("300 MB/s", "PNG:BMP", (MORE_PNG, BALANCED, PNG_BMP)): 1.7,
    ("300 MB/s", "L3 fast", (L3,)): 3.5,
    (DEFAULT_ALLOCATOR, "PNG:BMP", (BALANCED, PNG_BMP)): 1.7,
    (DEFAULT_ALLOCATOR, "L3 fast", (L3,)): 3.5,
    ("800 MB/s", "L3 fast", (L3,)): 8,
}
POSSIBLE_TARGET = 0.9  # of what loading and decoding allow, at least
DISK_TARGET = 0.02  # relative deviation of the bytes from disk, at most
VARIATION_TARGET = 1  # of MinIO's variation of batch times, at most
READER_TARGET = 1  # of the speed of DALI's reader, at least


# ---- measuring -------------------------------------------------------------------------------------------------------


def measure_rates(
    files: dict[str, list[Path]], work: Path, systems: dict[str, list[System]], epochs: int, rounds: int
) -> dict[str, dict[str, Figures]]:
    """The figures of the systems by the speed of the disk; none where memory and disk cannot be limited."""
    rates = {}
    try:
        disk, budget = disk_of(work), int(SHARE_IN_MEMORY * total_bytes(files[PNG]))
        keeping, default = Protocol(files, disk, budget, KEEPING_MEMORY), Protocol(files, disk, budget, {})
        for rate, chosen in systems.items():
            protocol = default if rate == DEFAULT_ALLOCATOR else keeping
            rates[rate] = measure_rate(protocol, rate, chosen, epochs, rounds)
            show(rate, rates[rate])
    except Unavailable as error:
        console.print(f"Memory and disk cannot be limited, which takes root: {error}. Only readers alone are measured.")
    return rates


def measure_rate(protocol: Protocol, rate: str, systems: list[System], epochs: int, rounds: int) -> dict[str, Figures]:
    """The figures of the systems, by name.

    The systems take turns. ``load_images_per_s`` and ``decode_images_per_s`` are the medians of what `measure_system`
    finds for Liquid and MinIO, ``of_possible`` is that of the speed relative to the lower of these two in the same
    round. ``times_dali`` is the speed relative to DALI's faster way to read PNG.
    """
    runs: dict[System, list[Figures]] = {system: [] for system in systems}
    for number in range(rounds):
        for system in systems:
            console.print(f"{rate}, round {number + 1} of {rounds}: {': '.join(system)}")
            settings = {"disk_bytes_per_s": RATES[rate], "seed": number}
            count_bytes = number == 0  # once is enough: speed does not matter
            runs[system].append(measure_system(protocol, *system, settings, epochs, count_bytes))
    results = {}
    for (reader, dataset), measured in runs.items():
        figures = {"reader": reader, "dataset": dataset} | summary(measured, total_bytes(protocol.datasets[dataset]))
        results[f"{reader}: {dataset}"] = figures
    baseline = max(
        figures["images_per_s"]
        for figures in results.values()
        if figures["reader"] in (DALI, DALI_COPYING) and figures["dataset"] == PNG
    )
    for figures in results.values():
        figures["times_dali"] = figures["images_per_s"] / baseline
    return results


def measure_system(
    protocol: Protocol, reader: str, dataset: str, settings: Figures, epochs: int, count_bytes: bool
) -> Figures:
    """A run; for Liquid and MinIO with images/s of what they consist of: ``load`` and ``decode``.

    These are the reader alone, with the same limits, which follows, and the decoder alone, with the files in memory,
    the mean of once before and once after: the machine's speed may change meanwhile.
    """
    parts = reader in (MINIO, LIQUID)
    before = decoding_alone(protocol, reader, dataset) if parts else 0
    figures = protocol.run(reader, dataset, **settings, epochs=epochs, seconds=SECONDS, count_bytes=count_bytes)
    if parts:
        alone = protocol.run(reader, dataset, **settings, decode=False, seconds=2)
        figures["load"] = statistics.median(alone["images_per_s"])
        figures["decode"] = (before + decoding_alone(protocol, reader, dataset)) / 2
    return figures


def decoding_alone(protocol: Protocol, reader: str, dataset: str) -> float:
    """Images/s of decoding, with files that the reader holds in memory."""
    files = protocol.datasets[dataset][:FILES_IN_MEMORY]
    in_memory = run(files, reader, cache_size=everything(files), seconds=2, environment=protocol.environment)
    return statistics.median(in_memory["images_per_s"])


def summary(runs: list[Figures], dataset_bytes: int) -> Figures:
    """The figures of a system from its runs."""
    batch_ms = np.concatenate([each["batch_seconds"] for each in runs]) * 1e3
    speeds = [statistics.median(each["images_per_s"]) for each in runs]
    parts = {}
    if "load" in runs[0]:
        possible = [speed / min(each["load"], each["decode"]) for speed, each in zip(speeds, runs, strict=True)]
        parts = {
            "load_images_per_s": statistics.median(each["load"] for each in runs),
            "decode_images_per_s": statistics.median(each["decode"] for each in runs),
            "runs_decode_images_per_s": [each["decode"] for each in runs],
            "of_possible": statistics.median(possible),
            "runs_of_possible": possible,
        }
    disk_bytes = runs[0]["disk_bytes_per_epoch"]
    return parts | {
        "images_per_s": statistics.median(speeds),
        "cpu_ms_per_image": statistics.median(each["cpu_ms_per_image"] for each in runs),
        "hit_ratio": runs[0]["hit_ratio"],
        "disk_bytes_per_epoch": disk_bytes,
        "disk_share": disk_bytes / dataset_bytes,
        "batch_ms_p50": float(np.percentile(batch_ms, 50)),
        "batch_ms_p95": float(np.percentile(batch_ms, 95)),
        "batch_variation": statistics.median(map(variation, (each["batch_seconds"] for each in runs))),
        "runs": len(runs),
        "memory_peak_bytes": max(each["memory_peak_bytes"] for each in runs),
        "memory_limit_bytes": runs[0]["memory_limit_bytes"],
        "cpu_share_of_other_processes": max(each["cpu_share_of_other_processes"] for each in runs),
        "runs_images_per_s": speeds,
        "batches_ms": batch_ms.tolist(),
        "batches_disk_bytes": [size for each in runs for size in each["batch_disk_bytes"]],
    }


def measure_reader(files: list[Path], rounds: int) -> dict[str, Figures]:
    """Readers without a decoder, DALI's with the files in the page cache, Liquid with the files in its own memory."""
    runs: dict[str, list[Figures]] = {reader: [] for reader in (DALI, DALI_COPYING, LIQUID)}
    for _ in range(rounds):
        for reader in runs:
            runs[reader].append(run(files, reader, cache_size=everything(files), decode=False, seconds=1))
    return {
        reader: {
            "images_per_s": statistics.median(speed for each in measured for speed in each["images_per_s"]),
            "cpu_ms_per_image": statistics.median(each["cpu_ms_per_image"] for each in measured),
        }
        for reader, measured in runs.items()
    }


def decoded_images_per_s(rates: dict[str, dict[str, Figures]], dataset: str) -> float | None:
    """The median of what decoding alone reaches in all runs that keep memory for images; None if there are none."""
    keeping = (systems for rate, systems in rates.items() if rate != DEFAULT_ALLOCATOR)
    of_dataset = (figures for systems in keeping for figures in systems.values() if figures["dataset"] == dataset)
    speeds = [speed for figures in of_dataset for speed in figures.get("runs_decode_images_per_s", ())]
    return statistics.median(speeds) if speeds else None


def total_bytes(files: list[Path]) -> int:
    return sum(path.stat().st_size for path in files)


# ---- reporting -------------------------------------------------------------------------------------------------------


def targets(rates: dict[str, dict[str, Figures]], readers: dict[str, dict[str, Figures]]) -> Iterator[Target]:
    for rate, systems in rates.items():
        liquid = {figures["dataset"]: figures for figures in systems.values() if figures["reader"] == LIQUID}
        minio = {figures["dataset"]: figures for figures in systems.values() if figures["reader"] == MINIO}
        for (at, label, chosen), factor in SPEED_TARGETS.items():
            if at == rate:
                fastest = max(liquid[dataset]["times_dali"] for dataset in chosen if dataset in liquid)
                yield Target(f"{rate}: images/s, {label} / DALI: PNG", fastest, factor)
        if rate != DEFAULT_ALLOCATOR:  # where it is chance whether the run and decoding alone have the same memory
            possible = min(figures["of_possible"] for figures in (*liquid.values(), *minio.values()))
            yield Target(f"{rate}: images/s / min(load, decode), lowest", possible, POSSIBLE_TARGET)
        off = max(abs(figures["disk_share"] / (1 - figures["hit_ratio"]) - 1) for figures in liquid.values())
        yield Target(f"{rate}: bytes from disk / (1 - hit ratio), off 1 by", off, DISK_TARGET, at_most=True)
        for dataset in COMPARED:
            if dataset in minio:
                ratio = liquid[dataset]["batch_variation"] / minio[dataset]["batch_variation"]
                name = f"{rate}, {dataset}: variation of batch times, Liquid / MinIO"
                yield Target(name, ratio, VARIATION_TARGET, at_most=True)
    for size, speeds in readers.items():
        fastest = max(speeds[reader]["images_per_s"] for reader in (DALI, DALI_COPYING))
        ratio = speeds[LIQUID]["images_per_s"] / fastest
        yield Target(f"reader alone, files of {size}: images/s, Liquid / DALI", ratio, READER_TARGET)


def show(rate: str, systems: dict[str, Figures]) -> None:
    columns = ("images/s", "x DALI", "possible", "CPU ms/image", "from disk", "batch ms", "p95", "variation", "others")
    table = Table("", *columns, title=rate)
    for name, figures in systems.items():
        table.add_row(
            name,
            f"{figures['images_per_s']:.1f}",
            f"{figures['times_dali']:.2f}",
            f"{figures['of_possible']:.0%}" if "of_possible" in figures else "",
            f"{figures['cpu_ms_per_image']:.1f}",
            f"{figures['disk_share']:.3f}",
            f"{figures['batch_ms_p50']:.0f}",
            f"{figures['batch_ms_p95']:.0f}",
            f"{figures['batch_variation']:.2f}",
            f"{figures['cpu_share_of_other_processes']:.0%}",
        )
    console.print(table)
    disturbed = sum(figures["cpu_share_of_other_processes"] > OTHERS_LIMIT for figures in systems.values())
    if disturbed:
        console.print(f"Other processes disturbed {disturbed} of {len(systems)} systems: not to be relied upon.")


def plot(rates: dict[str, dict[str, Figures]], results: Path) -> None:
    """Draws beside the file of results."""
    if rates:
        plots.throughput(rates, results.with_suffix(".svg"))
    if "300 MB/s" in rates:
        plots.batches(
            {figures["reader"]: figures for figures in rates["300 MB/s"].values() if figures["dataset"] == PNG_BMP},
            results.with_name("liquid_batches.svg"),
        )


def main() -> None:
    parser = argument_parser("Compare readers where the dataset outgrows the memory.")
    parser.add_argument("work", type=Path, help="folder for the files, which are kept, on the disk to measure")
    parser.add_argument("folders", type=Path, nargs="*", help="folders of PNG photographs (default: scikit-image's)")
    parser.add_argument("--files", type=int, default=dataset_files.FHD_FILES, help="images of a dataset")
    parser.add_argument("--epochs", type=int, default=1, help="measured epochs of a run, at least")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each system")
    parser.add_argument("--rates", nargs="+", choices=RATES, default=list(RATES), help="speed limits of the disk")
    parser.add_argument("--keep", type=Path, help="results of an earlier run, whose figures of other speeds are kept")
    parser.add_argument("--quick", action="store_true", help="few files, one epoch, four systems: to try it out")
    arguments = parser.parse_args()
    systems = {rate: SYSTEMS[rate] for rate in arguments.rates}
    if arguments.quick:
        arguments.epochs, arguments.rounds, systems = 1, 1, QUICK_SYSTEMS
    settings = {
        "batch_size": BATCH_SIZE,
        "threads": THREADS,
        "files": QUICK_FILES if arguments.quick else arguments.files,
        "share_in_memory": SHARE_IN_MEMORY,
        "epochs": arguments.epochs,
        "rounds": arguments.rounds,
        "environment": KEEPING_MEMORY,
    }
    earlier = json.loads(arguments.keep.read_text()) if arguments.keep else None
    if earlier and earlier["settings"] != settings:
        parser.error(f"{arguments.keep}: made with other settings: {earlier['settings']}")

    photos = datasets.load_together(arguments.folders)
    paths = dataset_files.make(arguments.work.resolve(), photos, arguments.files)
    if arguments.quick:
        paths = {name: chosen[:QUICK_FILES] for name, chosen in paths.items()}
    files = {name: dataset_files.mixed(paths, shares) for name, shares in DATASETS.items()}
    others = OthersLoad()
    rates = measure_rates(files, arguments.work, systems, arguments.epochs, arguments.rounds)
    readers = {}
    for chosen in (paths["small"], paths["L3 fast"]):
        readers[f"{total_bytes(chosen) / len(chosen) / 1e6:.1f} MB"] = measure_reader(
            chosen, 1 if arguments.quick else 3
        )

    kept = {}
    if earlier:
        kept = {rate: figures for rate, figures in earlier["rates"].items() if rate not in rates}
        rates = {rate: (kept | rates)[rate] for rate in RATES if rate in kept | rates}
    reached = list(targets(rates, readers))
    results = {
        "settings": settings,
        "kept": {rate: earlier.get("kept", {}).get(rate, earlier["date"]) for rate in kept},  # from before
        "cpu_share_of_other_processes": others.share(),
        "datasets": {
            name: {
                "bytes_per_image": total_bytes(chosen) / len(chosen),
                "decode_images_per_s": decoded_images_per_s(rates, name),
            }
            for name, chosen in files.items()
        },
        "rates": rates,
        "reader_alone": readers,
    }
    plot(rates, write_results("liquid", results, reached, arguments.out))


if __name__ == "__main__":
    main()
