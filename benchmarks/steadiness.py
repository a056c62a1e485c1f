"""How even the times of batches are: Liquid, MinIO and DALI's reader on a disk that is slow and even.

    python benchmarks/steadiness.py WORK [FOLDER ...]

writes results/steadiness.json. Files come from reading/files.py, as for liquid.py. The disk is paced within the process
(reading/pacer.c), which takes a C compiler but no rights. The protocol is described in docs/benchmarks.md.
"""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import datasets
import numpy as np
from common import OthersLoad, argument_parser, console, write_results
from reading.pacing import paced
from reading.runs import BATCH_SIZE, DALI_COPYING, LIQUID, MINIO, THREADS, Figures, run, variation
from rich.progress import track
from rich.table import Table
from targets import Target

from dali_l3.profiling.measuring import KEEPING_MEMORY
from reading import files as dataset_files

BYTES_PER_S = 300_000_000
FILES = 160
SHARE_IN_MEMORY = 0.3  # of the bytes of the PNG files
DATASETS = {
    "PNG:BMP 5:5": {"PNG": 5, "BMP": 5},
    "PNG:BMP 3:7": {"PNG": 3, "BMP": 7},
    "L3 fast:raw 7:3": {"L3 fast": 7, "L3 raw": 3},
    "L3 fast": {"L3 fast": 10},
}
READERS = (DALI_COPYING, MINIO, LIQUID)  # DALI maps files by default, which is not paced
VARIATION_TARGET = 0.5  # of MinIO's variation of batch times, at most


def summary(runs: list[Figures]) -> Figures:
    """Medians over the runs of a reader on a dataset."""
    return {
        "images_per_s": statistics.median(statistics.median(each["images_per_s"]) for each in runs),
        "batch_variation": statistics.median(variation(each["batch_seconds"]) for each in runs),
        "runs_batch_variation": [variation(each["batch_seconds"]) for each in runs],
        "batch_ms_p50": statistics.median(np.percentile(each["batch_seconds"], 50) * 1e3 for each in runs),
        "batch_ms_p95": statistics.median(np.percentile(each["batch_seconds"], 95) * 1e3 for each in runs),
        "bytes_variation": bytes_variation(runs),
        "hit_ratio": runs[0]["hit_ratio"],
        "batches_ms": [seconds * 1e3 for seconds in runs[0]["batch_seconds"]],
    }


def bytes_variation(runs: list[Figures]) -> float | None:
    """Of the bytes that a batch takes from the disk; None for DALI's reader, which does not count them."""
    counted = [each["batch_planned_bytes"] for each in runs]
    return statistics.median(map(variation, counted)) if all(counted) else None


def targets(results: Mapping[str, Mapping[str, Figures]]) -> Iterator[Target]:
    """results: by dataset, by reader"""
    for dataset, readers in results.items():
        ratio = readers[LIQUID]["batch_variation"] / readers[MINIO]["batch_variation"]
        name = f"even disk, {dataset}: variation of batch times, Liquid / MinIO"
        yield Target(name, ratio, VARIATION_TARGET, at_most=True)
        ratio = readers[LIQUID]["bytes_variation"] / readers[MINIO]["bytes_variation"]
        name = f"even disk, {dataset}: variation of bytes from disk, Liquid / MinIO"
        yield Target(name, ratio, VARIATION_TARGET, at_most=True)


def show(results: Mapping[str, Mapping[str, Figures]]) -> None:
    table = Table("", "images/s", "batch ms", "p95", "variation", "of bytes")
    for dataset, readers in results.items():
        for reader, figures in readers.items():
            times = (f"{figures[key]:.0f}" for key in ("images_per_s", "batch_ms_p50", "batch_ms_p95"))
            table.add_row(
                f"{reader}: {dataset}",
                *times,
                f"{figures['batch_variation']:.3f}",
                f"{figures['bytes_variation'] or math.nan:.3f}",
            )
    console.print(table)


def main() -> None:
    parser = argument_parser("Compare how even the times of batches are.")
    parser.add_argument("work", type=Path, help="folder for the files, which are kept")
    parser.add_argument("folders", type=Path, nargs="*", help="folders of PNG photographs (default: scikit-image's)")
    parser.add_argument("--files", type=int, default=FILES, help="images of a dataset")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS))
    parser.add_argument("--rounds", type=int, default=3, help="runs of each reader on each dataset")
    parser.add_argument("--seconds", type=float, default=8.0, help="of a run after warming up, at least")
    arguments = parser.parse_args()
    photos = datasets.load_together(arguments.folders)
    paths = dataset_files.make(arguments.work.resolve(), photos, arguments.files)
    cache_size = int(SHARE_IN_MEMORY * sum(path.stat().st_size for path in paths["PNG"]))
    files = {name: dataset_files.mixed(paths, DATASETS[name]) for name in arguments.datasets}
    runs: dict[tuple[str, str], list[Figures]] = {(name, reader): [] for name in files for reader in READERS}
    others = OthersLoad()
    with tempfile.TemporaryDirectory() as folder:
        environment = KEEPING_MEMORY | paced(BYTES_PER_S, Path(folder))
        settings = {"cache_size": cache_size, "seconds": arguments.seconds, "environment": environment}
        for number, name, reader in track(
            [(number, *each) for number in range(arguments.rounds) for each in runs], "Measures", console=console
        ):
            runs[name, reader].append(run(files[name], reader, seed=number, **settings))
    results = {name: {reader: summary(runs[name, reader]) for reader in READERS} for name in files}
    show(results)
    reached = list(targets(results))
    document = {
        "settings": {
            "batch_size": BATCH_SIZE,
            "threads": THREADS,
            "files": arguments.files,
            "share_in_memory": SHARE_IN_MEMORY,
            "bytes_per_s": BYTES_PER_S,
            "rounds": arguments.rounds,
            "seconds": arguments.seconds,
            "environment": KEEPING_MEMORY,
        },
        "cpu_share_of_other_processes": others.share(),
        "datasets": results,
    }
    write_results("steadiness", document, reached, arguments.out)


if __name__ == "__main__":
    main()
