"""Tar shards beside fn.readers.webdataset, beside plain reads of the disk, and Liquid on shards beside Liquid on files.

    python benchmarks/tar_shards.py [--folder FOLDER]

writes shards of random bytes to a folder, measures readers alone, and writes results/tar_shards.json. Systems take
turns, and ratios are medians over the rounds. What reads past the page cache measures the disk that the folder is on,
which is limited to 300 MB/s for Liquid; that takes root.
"""

from __future__ import annotations

import argparse
import io
import mmap
import os
import statistics
import tarfile
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from common import OthersLoad, argument_parser, console, median_ratio, settings_of, write_results
from nvidia.dali import Pipeline, fn
from reading.groups import disk_of
from reading.limited import run_limited
from rich.table import Table
from targets import Target

import dali_l3.fn
from dali_l3 import _core

SMALL, LARGE = 10_000, 2_000_000  # bytes of a file
THREADS, READ_THREADS = 2, 8
BYTES_PER_S = 300_000_000  # of the disk, for Liquid
LIQUID_SMALL, LIQUID_LARGE = "Liquid, 10 KB files, 300 MB/s", "Liquid, 2 MB files, 300 MB/s"
SIGNATURE = b"\x89PNG\r\n\x1a\n"  # so that Liquid knows a format; nobody decodes them

Systems = dict[str, Callable[[int], float]]  # name -> function that reads so many samples; returns the wall time


def write_shards(folder: Path, shards: int, files: int, size: int) -> list[str]:
    """Writes shards with their indices, and the same files loose, of random bytes; returns the shards' paths."""
    generator = np.random.default_rng(size)
    paths = []
    for number in range(shards):
        loose = folder / "files" / f"{number:03d}"
        loose.mkdir(parents=True)
        path = folder / f"{number:03d}.tar"
        with tarfile.open(path, "w") as shard:
            for i in range(files):
                content = SIGNATURE + generator.bytes(size - len(SIGNATURE))
                member = tarfile.TarInfo(f"{i:05d}.png")
                member.size = len(content)
                shard.addfile(member, io.BytesIO(content))
                (loose / member.name).write_bytes(content)
        _core.update_index(str(path), _core.default_index_path(str(path)), True)
        paths.append(str(path))
    os.sync()
    return paths


def pipeline(reader, batch_size: int, **arguments: Any) -> Callable[[int], float]:
    """A system that consists of a reader."""
    pipe = Pipeline(batch_size, THREADS, None, seed=1)
    with pipe:
        made = reader(**arguments)
        pipe.set_outputs(made[0] if isinstance(made, list) else made)
    pipe.build()

    def run(samples: int) -> float:
        start = time.perf_counter()
        for _ in range(samples // batch_size):
            pipe.run()
        return time.perf_counter() - start

    return run


def plain_reads(paths: list[str], size: int) -> Callable[[int], float]:
    """A system that reads the archives past the page cache, in pieces of whole pages as large as a file."""
    piece = size // mmap.PAGESIZE * mmap.PAGESIZE
    places = [(path, at) for path in paths for at in range(0, os.path.getsize(path) - piece, piece)]
    descriptors = {path: os.open(path, os.O_RDONLY | os.O_DIRECT) for path in paths}
    buffers = [mmap.mmap(-1, piece) for _ in range(READ_THREADS)]

    def run(samples: int) -> float:
        def read(thread: int) -> None:
            for number in range(thread, samples, READ_THREADS):
                path, at = places[number % len(places)]
                if os.preadv(descriptors[path], [buffers[thread]], at) != piece:
                    raise SystemExit(f"{path}: a short read")

        start = time.perf_counter()
        with ThreadPoolExecutor(READ_THREADS) as pool:
            list(pool.map(read, range(READ_THREADS)))
        return (time.perf_counter() - start) * size / piece  # of as many bytes

    return run


def measure(systems: Systems, samples: int, lead: int, rounds: int, warm_up: int) -> dict[str, Any]:
    """Samples per second and CPU time of each. They take turns.

    lead: samples that are read before each timed run, more than are ever read ahead: what has been read while others
        had their turn would be for free
    """
    for run in systems.values():
        run(warm_up)
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name, run in systems.items():
            run(lead)
            before = time.process_time()
            wall = run(samples)
            runs[name].append((samples / wall, (time.process_time() - before) / samples))
    return {
        name: {
            "samples_per_s": statistics.median(speed for speed, _ in of_one),
            "cpu_us_per_sample": statistics.median(cpu for _, cpu in of_one) * 1e6,
            "runs_samples_per_s": [speed for speed, _ in of_one],
        }
        for name, of_one in runs.items()
    }


def ratio(measured: dict[str, Any], name: str, baseline: str) -> float:
    return median_ratio(measured[name]["runs_samples_per_s"], measured[baseline]["runs_samples_per_s"])


def show(title: str, measured: dict[str, Any]) -> None:
    table = Table("", "samples/s", "CPU us a sample", title=title)
    for name, figures in measured.items():
        table.add_row(name, f"{figures['samples_per_s']:.0f}", f"{figures['cpu_us_per_sample']:.2f}")
    console.print(table)


def beside_webdataset(paths: list[str], arguments: argparse.Namespace) -> dict[str, Any]:
    indices = [path.replace(".tar", ".idx") for path in paths]
    ours = {"paths": paths, "ext": "png"}
    theirs = ours | {"index_paths": indices}
    shuffled = {"random_shuffle": True}
    readers = dali_l3.fn.readers
    systems = {
        "multi_format": pipeline(readers.multi_format, 256, **ours),
        "multi_format, shuffled": pipeline(readers.multi_format, 256, mix="dataset", **shuffled, **ours),
        "webdataset, copying": pipeline(fn.readers.webdataset, 256, dont_use_mmap=True, **theirs),
        "webdataset, copying, shuffled": pipeline(fn.readers.webdataset, 256, dont_use_mmap=True, **shuffled, **theirs),
        "webdataset": pipeline(fn.readers.webdataset, 256, **theirs),
        "webdataset, shuffled": pipeline(fn.readers.webdataset, 256, **shuffled, **theirs),
    }
    samples = arguments.shards * arguments.files // 256 * 256
    return measure(systems, min(samples, 20_480), 2048, arguments.rounds, samples)


def beside_the_disk(paths: list[str], arguments: argparse.Namespace) -> dict[str, Any]:
    direct = {"use_o_direct": True, "read_threads": READ_THREADS}
    systems = {
        "plain reads": plain_reads(paths, LARGE),
        "multi_format": pipeline(dali_l3.fn.readers.multi_format, 10, paths=paths, ext="png", **direct),
    }
    return measure(systems, 500, 200, arguments.rounds, 50)


def liquid_beside_files(paths: list[str], size: int, batch_size: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs with a limited disk."""
    loose = Path(paths[0]).parent / "files"
    count = sum(1 for _ in loose.rglob("*.png"))
    held = {"cache_size": count * size // 4, "read_threads": READ_THREADS}
    systems = {
        "files": pipeline(dali_l3.fn.readers.liquid, batch_size, file_root=str(loose), **held),
        "shards": pipeline(dali_l3.fn.readers.liquid, batch_size, paths=paths, ext="png", **held),
    }
    epoch = count // batch_size * batch_size
    return measure(systems, min(max(epoch, 500), 20_000), 200 if size == LARGE else 1000, arguments.rounds, 2 * epoch)


def main() -> None:
    parser = argument_parser("Measure readers of tar shards.")
    parser.add_argument("--folder", help="where shards are written, on the disk to be measured (default: temporary)")
    parser.add_argument("--shards", type=int, default=20, help="shards of small files")
    parser.add_argument("--files", type=int, default=2000, help="files in each of them")
    parser.add_argument("--rounds", type=int, default=15, help="timed runs of each system")
    arguments = parser.parse_args()

    others = OthersLoad()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        disk = disk_of(Path(folder))
        small = write_shards(Path(folder) / "small", arguments.shards, arguments.files, SMALL)
        large = write_shards(Path(folder) / "large", 2, 25, LARGE)
        results = {
            "10 KB files, page cache": beside_webdataset(small, arguments),
            "2 MB files, direct": beside_the_disk(large, arguments),
            LIQUID_SMALL: run_limited(disk, BYTES_PER_S, liquid_beside_files, small, SMALL, 100, arguments),
            LIQUID_LARGE: run_limited(disk, BYTES_PER_S, liquid_beside_files, large, LARGE, 10, arguments),
        }
    for title, measured in results.items():
        show(title, measured)
    warm, direct = results["10 KB files, page cache"], results["2 MB files, direct"]
    targets = [
        Target(
            "10 KB files beside fn.readers.webdataset, copying", ratio(warm, "multi_format", "webdataset, copying"), 3
        ),
        Target("10 KB files beside fn.readers.webdataset", ratio(warm, "multi_format", "webdataset"), 3),
        Target("2 MB files, direct, beside plain reads", ratio(direct, "multi_format", "plain reads"), 0.95),
        Target(f"{LIQUID_SMALL}, shards beside files", ratio(results[LIQUID_SMALL], "shards", "files"), 2),
        Target(f"{LIQUID_LARGE}, shards beside files", ratio(results[LIQUID_LARGE], "shards", "files"), 1),
    ]
    chosen = settings_of(arguments, "shards", "files", "rounds")
    document = {"settings": chosen, "cpu_share_of_other_processes": others.share(), "systems": results}
    write_results("tar_shards", document, targets, arguments.out)


if __name__ == "__main__":
    main()
