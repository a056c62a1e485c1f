"""What the readers' argument `check` costs: images per second and CPU time per image, for L3 and for PNG.

    python benchmarks/reader_check.py [FOLDER]

takes a folder of PNG photographs of 1920x1080 pixels, or those of scikit-image, measures readers.multi_format alone and
before a decoder, with files in the page cache, and writes results/reader_check.json.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import datasets
from common import OthersLoad, argument_parser, console, png, settings_of, write_results
from dali_decode import BATCH_SIZE, PREFETCHED, THREADS, run, start
from nvidia.dali import fn, pipeline_def
from rich.table import Table

import dali_l3

SIZES = {"500x375": (375, 500), "1920x1080": (1080, 1920)}
ENCODERS = {"L3": dali_l3.encode, "PNG": png}
DECODERS = {"reader alone": lambda encoded: encoded, "reader and decoder": fn.decoders.image}
CHECKS = ("none", "headers", "content")


@pipeline_def(batch_size=BATCH_SIZE, num_threads=THREADS, device_id=None, prefetch_queue_depth=PREFETCHED)
def pipeline(files: list[str], decode, check: str):
    encoded, _ = fn.readers.multi_format(files=files, check=check)
    return decode(encoded)


def write_files(folder: Path, photos: datasets.Images, encode, count: int) -> list[str]:
    """Writes `count` files, copies included."""
    files = [encode(photo) for photo in photos.values()]
    paths = [folder / f"{number:03}" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_bytes(files[number % len(files)])
    return [str(path) for path in paths]


def settle() -> float:
    """Waits until nothing is read ahead any more; the CPU seconds used so far."""
    before = -1.0
    while time.process_time() - before > 0.001:
        before = time.process_time()
        time.sleep(0.05)
    return time.process_time()


def time_run(pipe, batches: int) -> tuple[float, float]:
    """Images per second, and CPU seconds per image, from standstill to standstill."""
    cpu_before, before = settle(), time.perf_counter()
    run(pipe, batches)
    wall = time.perf_counter() - before
    return batches * BATCH_SIZE / wall, (settle() - cpu_before) / (batches * BATCH_SIZE)


def measure(files: list[str], decode, rounds: int, seconds: float) -> dict[str, Any]:
    """The figures of each check. They take turns; medians over the rounds."""
    pipes = {check: pipeline(files, decode, check) for check in CHECKS}
    batches, measured = {}, {check: [] for check in CHECKS}
    for check, pipe in pipes.items():
        start(pipe)
        epoch = len(files) // BATCH_SIZE
        run(pipe, epoch)  # brings the files into the page cache, and the buffers to their size
        batches[check] = max(epoch, round(seconds * time_run(pipe, epoch)[0] / BATCH_SIZE))
    for _ in range(rounds):
        for check, pipe in pipes.items():
            measured[check].append(time_run(pipe, batches[check]))
    return {
        check: {
            "images_per_s": statistics.median(speed for speed, _ in runs),
            "cpu_ms_per_image": statistics.median(cpu for _, cpu in runs) * 1e3,
            "images_per_run": batches[check] * BATCH_SIZE,
            "runs_cpu_ms_per_image": [cpu * 1e3 for _, cpu in runs],
            "runs_images_per_s": [speed for speed, _ in runs],
        }
        for check, runs in measured.items()
    }


def show(title: str, systems: dict[str, Any]) -> None:
    table = Table(
        "", *(f"{check}: images/s" for check in CHECKS), *(f"{check}: CPU ms" for check in CHECKS), title=title
    )
    for name, checks in systems.items():
        speeds = [f"{checks[check]['images_per_s']:.0f}" for check in CHECKS]
        table.add_row(name, *speeds, *(f"{checks[check]['cpu_ms_per_image']:.3f}" for check in CHECKS))
    console.print(table)


def main() -> None:
    parser = argument_parser("Measure what checking files costs a reader.")
    parser.add_argument("folder", type=Path, nargs="?", help="folder of PNG photographs (default: scikit-image's)")
    parser.add_argument("--files", type=int, default=64, help="files of each format, copies included")
    parser.add_argument("--rounds", type=int, default=9, help="timed runs of each pipeline")
    parser.add_argument("--seconds", type=float, default=0.7, help="rough length of a timed run")
    arguments = parser.parse_args()

    others, results = OthersLoad(), {}
    for size, shape in SIZES.items():
        images = datasets.load_sized(arguments.folder, *shape)
        results[size] = {}
        for suffix, encode in ENCODERS.items():
            with tempfile.TemporaryDirectory() as folder:
                files = write_files(Path(folder), images, encode, arguments.files)
                results[size][suffix] = {
                    "bytes_per_image": statistics.mean(Path(path).stat().st_size for path in files),
                    **{
                        name: measure(files, decode, arguments.rounds, arguments.seconds)
                        for name, decode in DECODERS.items()
                    },
                }
            show(f"{suffix}, {size}", {name: results[size][suffix][name] for name in DECODERS})
    chosen = settings_of(arguments, "files", "rounds", "seconds")
    settings = {"batch_size": BATCH_SIZE, "threads": THREADS, **chosen}
    document = {"settings": settings, "cpu_share_of_other_processes": others.share(), "sizes": results}
    write_results("reader_check", document, [], arguments.out)


if __name__ == "__main__":
    main()
