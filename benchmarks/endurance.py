"""Reads many batches through DALI: does memory stay as it is, and do the statistics add up?

python benchmarks/endurance.py [--batches 50000]

Fails where they do not. The engine without DALI has the same check in tests/cpp/loader/endurance.cc.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from nvidia.dali import fn, pipeline_def

import dali_l3.fn

FILES, BATCH_SIZE = 8, 2
WARM_UP = 4100 * FILES // BATCH_SIZE  # batches; from then on, the statistics forget as much as they learn
MAY_GROW = 2 << 20  # bytes of resident memory from then on; page tables and the allocator's caches breathe

READERS = {
    "multi_format": (dali_l3.fn.readers.multi_format, {"random_shuffle": True}),
    "multi_format, mix": (dali_l3.fn.readers.multi_format, {"random_shuffle": True, "mix": "dataset"}),
    "liquid": (dali_l3.fn.readers.liquid, {"cache_size": FILES // 2 * 4096}),
    "liquid, minio": (dali_l3.fn.readers.liquid, {"cache_size": FILES // 2 * 4096, "policy": "minio"}),
}


@pipeline_def(batch_size=BATCH_SIZE, num_threads=1, device_id=None, seed=1)
def pipeline(folder: str, name: str):
    reader, arguments = READERS[name]
    encoded, labels = reader(file_root=folder, pad_last_batch=True, read_threads=2, name="reader", **arguments)
    return fn.decoders.l3(encoded), labels


def write_images(folder: Path) -> None:
    generator = np.random.default_rng(1)
    for i in range(FILES):
        path = folder / str(i % 2) / f"{i}.l3"
        path.parent.mkdir(exist_ok=True)
        dali_l3.imwrite(path, generator.integers(0, 256, (8, 8 + i, 3), np.uint8))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def check(stats: dict, files: list[int], batches: int) -> list[str]:
    """What does not add up of the epochs that are remembered, the last of which may be under way."""
    problems = []
    *epochs, last = stats["epochs"]
    if last["batch"] + 1 < batches:
        problems.append(f"{last['batch'] + 1} batches were counted, and {batches} delivered")
    for before, epoch in zip(epochs, epochs[1:], strict=False):
        hits, misses = (sum(counts[kind] for counts in epoch["formats"].values()) for kind in ("hits", "misses"))
        expected = {"samples": hits + misses, "files_read": misses, "bytes_read": sum(files) - before["next_bytes"]}
        found = {name: epoch[name] for name in expected}
        if found != expected or hits + misses != len(files) or epoch["epoch"] != before["epoch"] + 1:
            problems.append(f"epoch {epoch['epoch']}: {found}, but {expected} were expected")
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(description="Read many batches and watch memory and statistics.")
    parser.add_argument("--batches", type=int, default=50_000, help="for each reader")
    parser.add_argument("--readers", nargs="+", choices=READERS, default=[*READERS])
    arguments = parser.parse_args()
    warm_up = min(WARM_UP, arguments.batches // 2)
    marks = (warm_up, (warm_up + arguments.batches) // 2, arguments.batches)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        write_images(Path(folder))
        files = [path.stat().st_size for path in Path(folder).rglob("*.l3")]
        for name in arguments.readers:
            pipe = pipeline(folder, name)
            sizes = []
            for batch in range(1, arguments.batches + 1):
                pipe.run()
                if batch in marks:
                    sizes.append(resident_bytes())
            problems = check(dali_l3.reader_stats(pipe, "reader"), files, arguments.batches)
            if sizes[-1] - sizes[0] > MAY_GROW:
                problems.append("resident memory grew")
            start, middle, end = (f"{size / 2**20:.1f}" for size in sizes)
            print(f"{name}: {start}, {middle}, {end} MiB resident at the start, in the middle, at the end")
            print("\n".join(problems[:5]) or f"  {arguments.batches} batches, the statistics add up")
            failed |= bool(problems)
    sys.exit(failed)


if __name__ == "__main__":
    main()
