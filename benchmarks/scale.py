"""Readers of many samples: when they are ready, and the memory that they take.

    python benchmarks/scale.py [--samples 10000000] [--files 1000000] [--folder FOLDER]

makes up a catalogue whose files do not exist, and has eight processes at once build a reader of a shard each; and it
writes a folder of tiny files, and has readers list that, fn.readers.file among them. Writes results/scale.json.

Ready is a reader whose pipeline is built and tells the size of its epoch. Memory is what the process has in addition to
that of one with a reader of a single file: its proportional set size (PSS), so that what processes share counts once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from common import OthersLoad, argument_parser, console, settings_of, write_results
from rich.table import Table
from targets import Target

PROCESSES = 8
FOLDERS = 1000
MEGABYTE = 1 << 20
SIGNATURE = b"\x89PNG\r\n\x1a\n"  # so that Liquid knows a format; nobody decodes these files

# Names of readers, and their arguments beside those that say where the samples are.
READERS: dict[str, dict[str, Any]] = {
    "file": {},
    "multi_format": {},
    "multi_format, shuffled": {"random_shuffle": True, "stick_to_shard": True},
    "multi_format, mix": {"mix": "dataset", "random_shuffle": True},
    "liquid, policy none": {"policy": "none"},
    "liquid": {"cache_size": 1 << 30},
}


# ---- Datasets --------------------------------------------------------------------------------------------------------


def write_catalogue(path: Path, samples: int) -> None:
    """A catalogue of samples in class folders whose files do not exist, after docs/catalogue.md."""
    generator = np.random.default_rng(1)
    per_folder = -(-samples // FOLDERS)
    names = "".join(f"image_{i:08d}.jpg" for i in range(samples)).encode()
    folders = [f"class_{i:04d}/".encode() for i in range(FOLDERS)]
    numbers = np.arange(samples, dtype=np.uint32)
    sections = [
        (1, b"data"),
        (3, np.cumsum([len(folder) for folder in folders]).astype("<u8").tobytes()),
        (4, b"".join(folders)),
        (8, (numbers // per_folder).astype("<i4").tobytes()),
        (10, np.full(samples, 3, np.uint8).tobytes()),  # JPEG
        (16, (np.arange(1, samples + 1, dtype="<u8") * len("image_00000000.jpg")).tobytes()),
        (17, names),
        (18, (numbers // per_folder).astype("<u4").tobytes()),
        (19, generator.integers(20_000, 200_000, samples).astype("<u8").tobytes()),
    ]
    end = 64 + 32 * len(sections)
    table, contents = b"", []
    for kind, content in sections:
        start = -(-end // 64) * 64
        table += struct.pack("<IIQQII", kind, 0, start, len(content), zlib.crc32(content), 0)
        contents += [bytes(start - end), content]
        end = start + len(content)
    header = struct.pack("<8sIIQQIII16x", b"\x89L3C\r\n\x1a\n", 1, len(sections), end, samples, 1, 0, 1)
    with path.open("wb") as file:
        file.write(header + struct.pack("<I", zlib.crc32(header + table)) + table)
        file.writelines(contents)


def write_folder(folder: Path, files: int) -> None:
    for number in range(FOLDERS):
        (folder / f"class_{number:04d}").mkdir(parents=True)
    for number in range(files):
        path = folder / f"class_{number * FOLDERS // files:04d}" / f"image_{number:08d}.png"
        path.write_bytes(SIGNATURE)


# ---- Processes -------------------------------------------------------------------------------------------------------


def build(name: str, arguments: dict[str, Any]):
    """A pipeline that consists of a reader, built; and the size of its epoch."""
    from nvidia.dali import Pipeline, fn

    import dali_l3.fn

    kind = name.partition(",")[0]
    reader = fn.readers.file if kind == "file" else getattr(dali_l3.fn.readers, kind)
    pipe = Pipeline(32, 1, None, seed=1)
    with pipe:
        pipe.set_outputs(*reader(name="reader", **arguments))
    pipe.build()
    return pipe, pipe.reader_meta("reader")["epoch_size"]


def memory() -> int:
    """Bytes of this process, with its part of what it shares."""
    text = Path("/proc/self/smaps_rollup").read_text()
    return 1024 * next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))


def work(job: dict[str, Any]) -> None:
    """Builds a reader when told to, tells what that took, and holds it until told to end."""

    def answer(values: dict[str, Any]) -> None:
        print(json.dumps(values), flush=True)
        sys.stdin.readline()

    small = build("file" if job["name"] == "file" else "multi_format", {"files": [job["single"]]})
    answer({})
    before = memory()
    start = time.perf_counter()
    made = build(job["name"], job["arguments"])
    seconds = time.perf_counter() - start
    answer({"seconds": seconds, "samples": made[1]})
    answer({"bytes": memory() - before, "all_bytes": memory()})
    del small


def run_together(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What processes that build their readers at the same time answer."""
    command = [sys.executable, str(Path(__file__)), "--work"]
    processes = [
        subprocess.Popen([*command, json.dumps(job)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for job in jobs
    ]
    results: list[dict[str, Any]] = [{} for _ in jobs]
    for step in range(3):
        for process, result in zip(processes, results, strict=True):
            line = process.stdout.readline()
            if not line:
                raise SystemExit(f"a process ended in step {step}: {process.wait()}")
            result |= json.loads(line)
        for process in processes:  # all of them, when all have come so far
            process.stdin.write("\n")
            process.stdin.flush()
    for process in processes:
        process.wait()
    return results


# ---- Measurements ----------------------------------------------------------------------------------------------------


def measure_catalogue(path: Path, single: Path, rounds: int) -> dict[str, Any]:
    """Eight processes with a shard each: the median of the rounds of the slowest one, and the memory of all."""
    measured = {}
    for name, arguments in READERS.items():
        if name == "file":
            continue
        shared = {"catalogue": str(path), "num_shards": PROCESSES, **arguments}
        if name == "liquid":
            shared["cache_size"] = 4 << 30
        jobs = [
            {"name": name, "single": str(single), "arguments": {**shared, "shard_id": shard}}
            for shard in range(PROCESSES)
        ]
        runs = [run_together(jobs) for _ in range(rounds)]
        measured[name] = {
            "seconds": statistics.median(max(one["seconds"] for one in run) for run in runs),
            "bytes_together": statistics.median(sum(one["bytes"] for one in run) for run in runs),
            "bytes_together_with_dali": statistics.median(sum(one["all_bytes"] for one in run) for run in runs),
            "samples": runs[0][0]["samples"],
        }
    return measured


def measure_folder(folder: Path, single: Path, rounds: int) -> dict[str, Any]:
    """Readers that list a folder, one after the other, each in a process of its own."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in READERS}
    for _ in range(rounds):
        for name, arguments in READERS.items():
            job = {"name": name, "single": str(single), "arguments": {"file_root": str(folder), **arguments}}
            runs[name] += run_together([job])
    return {
        name: {
            "seconds": statistics.median(run["seconds"] for run in of_one),
            "bytes_per_sample": statistics.median(run["bytes"] for run in of_one) / of_one[0]["samples"],
            "runs_seconds": [run["seconds"] for run in of_one],
        }
        for name, of_one in runs.items()
    }


def show(catalogue: dict[str, Any], folder: dict[str, Any]) -> None:
    table = Table("", "ready, s", "MiB of 8 processes", "with Python and DALI", title="Catalogue")
    for name, figures in catalogue.items():
        sizes = (figures["bytes_together"] / MEGABYTE, figures["bytes_together_with_dali"] / MEGABYTE)
        table.add_row(name, f"{figures['seconds']:.2f}", *(f"{size:.0f}" for size in sizes))
    console.print(table)
    table = Table("", "ready, s", "bytes a sample, with its name", title="Folder")
    for name, figures in folder.items():
        table.add_row(name, f"{figures['seconds']:.2f}", f"{figures['bytes_per_sample']:.0f}")
    console.print(table)


def main() -> None:
    parser = argument_parser("Measure readers of many samples.")
    parser.add_argument("--folder", help="where datasets are written (default: temporary)")
    parser.add_argument("--samples", type=int, default=10_000_000, help="of the catalogue")
    parser.add_argument("--files", type=int, default=1_000_000, help="in the folder")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each reader")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        return work(json.loads(arguments.work))

    others = OthersLoad()
    scratch = Path(tempfile.mkdtemp(dir=arguments.folder))
    try:
        single = scratch / "single.png"
        single.write_bytes(SIGNATURE)
        write_catalogue(scratch / "made-up.l3cat", arguments.samples)
        catalogue = measure_catalogue(scratch / "made-up.l3cat", single, arguments.rounds)
        write_folder(scratch / "folder", arguments.files)
        folder = measure_folder(scratch / "folder", single, arguments.rounds)
    finally:
        shutil.rmtree(scratch)
    show(catalogue, folder)
    targets = [
        target
        for name, figures in catalogue.items()
        for target in (
            Target(f"catalogue, {name}: ready, s", figures["seconds"], 2, at_most=True),
            Target(f"catalogue, {name}: MiB of 8 processes", figures["bytes_together"] / MEGABYTE, 1024, at_most=True),
        )
    ]
    by_dali = folder["file"]["seconds"]
    targets.append(
        Target("folder, multi_format beside file: time", folder["multi_format"]["seconds"] / by_dali, 1, at_most=True)
    )
    chosen = settings_of(arguments, "samples", "files", "rounds")
    document = {
        "settings": {**chosen, "processes": PROCESSES, "cpus": os.cpu_count()},
        "cpu_share_of_other_processes": others.share(),
        "catalogue": catalogue,
        "folder": folder,
    }
    write_results("scale", document, targets, arguments.out)


if __name__ == "__main__":
    main()
