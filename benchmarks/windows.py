"""What several windows of an image cost with fn.decoders.l3(windows=...), against a decoder for each and whole images.

    python benchmarks/windows.py [--rounds N]

decodes photographs of scikit-image at 1024x512 pixels, with windows at random places, and writes results/windows.json:
CPU seconds of this process, the ways in turns, medians of the rounds.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable

import datasets
import numpy as np
from common import OthersLoad, argument_parser, console, interleave, median_ratio, settings_of, write_results
from dali_decode import BATCH_SIZE, THREADS
from nvidia.dali import fn, pipeline_def
from rich.table import Table

import dali_l3

HEIGHT, WIDTH = 512, 1024
CASES = {"8 of 256x256, which overlap": (8, 256), "8 of 64x64": (8, 64), "1 of 256x256": (1, 256)}  # number, size


def constant(arrays: list[np.ndarray]):
    return fn.external_source(source=lambda: arrays, batch=True)


def as_windows(encoded, windows: np.ndarray):
    return fn.decoders.l3(encoded, windows=constant(list(windows)))


def as_decoders(encoded, windows: np.ndarray):
    """A decoder for each window, whose frames are put together: the same output."""
    regions = [
        fn.decoders.l3(encoded, start=constant(list(w[:, :2])), shape=constant(list(w[:, 2:])), axis_names="HW")
        for w in windows.transpose(1, 0, 2)
    ]
    return fn.stack(*regions)


def as_slices(encoded, windows: np.ndarray):
    """The whole image, of which windows are cut: the same output."""
    image = fn.decoders.l3(encoded)
    return fn.stack(
        *(
            fn.slice(image, start=constant(list(w[:, :2])), shape=constant(list(w[:, 2:])), axis_names="HW")
            for w in windows.transpose(1, 0, 2)
        )
    )


def whole(encoded, windows: np.ndarray):
    return fn.decoders.l3(encoded)


WAYS: dict[str, Callable] = {
    "windows": as_windows,
    "a decoder for each": as_decoders,
    "whole image, slices": as_slices,
    "whole image alone": whole,
}


@pipeline_def(batch_size=BATCH_SIZE, num_threads=THREADS, device_id=None, prefetch_queue_depth=1)
def pipeline(way: Callable, files: list[np.ndarray], windows: np.ndarray):
    return way(constant(files), windows)


def measure(files: list[np.ndarray], count: int, size: int, rounds: int) -> dict[str, dict[str, float]]:
    generator = np.random.default_rng(count)
    starts = generator.integers(0, [HEIGHT - size + 1, WIDTH - size + 1], (BATCH_SIZE, count, 2))
    windows = np.concatenate([starts, np.full_like(starts, size)], axis=2).astype(np.int32)
    pipes = {name: pipeline(way, files, windows) for name, way in WAYS.items()}
    outputs = {name: pipe.run()[0].as_array() for name, pipe in pipes.items() if name != "whole image alone"}
    for output in outputs.values():
        np.testing.assert_array_equal(output, outputs["windows"])

    def batches(pipe) -> None:
        for _ in range(4):
            pipe.run()

    runs = interleave({name: functools.partial(batches, pipe) for name, pipe in pipes.items()}, rounds, warm=True)
    return {
        name: {
            "cpu_ms_per_image": statistics.median(seconds) / (4 * BATCH_SIZE) * 1e3,
            "of_windows": median_ratio(seconds, runs["windows"]),
        }
        for name, seconds in runs.items()
    }


def main() -> None:
    parser = argument_parser(__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    photos = [datasets.enlarge(photo, HEIGHT, WIDTH) for photo in datasets.bundled_photos().values()]
    files = [np.frombuffer(dali_l3.encode(photos[i % len(photos)]), np.uint8) for i in range(BATCH_SIZE)]
    others = OthersLoad()
    results = {name: measure(files, count, size, arguments.rounds) for name, (count, size) in CASES.items()}
    for name, ways in results.items():
        table = Table("", "CPU ms an image", "times that of windows", title=name)
        for way, figures in ways.items():
            table.add_row(way, f"{figures['cpu_ms_per_image']:.2f}", f"{figures['of_windows']:.2f}")
        console.print(table)
    settings = {"batch_size": BATCH_SIZE, "threads": THREADS, **settings_of(arguments, "rounds")}
    document = {"settings": settings, "cpu_share_of_other_processes": others.share(), "cases": results}
    write_results("windows", document, [], arguments.out)


if __name__ == "__main__":
    main()
