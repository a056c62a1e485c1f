"""What each argument of the readers costs when it is used, as a share of reading and decoding.

    python benchmarks/reader_arguments.py [FOLDER] [--cases TEXT]

takes a folder of PNG photographs, or those of scikit-image, makes L3 files of 500x375 pixels, and writes
results/reader_arguments.json. Two readers, with the argument and without, take turns, with files from the page cache
and nothing behind them: what they differ by in CPU time would be lost in the noise of a decoder. It is divided by the
CPU time of the reader without the argument and fn.decoders.image together. Readers are made anew several times, since
where memory comes to lie shows. The case "nothing" compares two equal readers: what it shows is noise.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from common import OthersLoad, argument_parser, console, settings_of, write_results
from dali_decode import BATCH_SIZE, PREFETCHED, THREADS, run, start
from nvidia.dali import Pipeline, fn, pipeline_def
from reader_check import settle
from rich.table import Table
from targets import Target

import dali_l3
from dali_l3.fn import readers

SHAPE, COMPANION_SHAPE = (375, 500), (48, 64)
CLASSES = 4
WARMING = 64  # batches
LIMIT = 0.02  # of the CPU time of reading and decoding


def nothing(encoded: Any) -> tuple[Any, ...]:
    return ()


@dataclass(frozen=True)
class Case:
    """Arguments of a reader before and after, and outputs that are added."""

    arguments: dict[str, Any] = field(default_factory=dict)
    beside: dict[str, Any] = field(default_factory=dict)  # before too
    outputs: Callable[[Any], tuple[Any, ...]] = nothing


def cases(files: list[str]) -> dict[str, Case]:
    count = len(files)
    shuffled = {"random_shuffle": True, "mix": "dataset"}
    listed = {"files": files}
    small, same = {"companions": ["../small/{relpath}"]}, {"companions": ["{relpath}"]}
    return {
        "nothing": Case(),
        "weights": Case({"weights": [1, 2, 3, 4] * (count // 4)}, shuffled),
        "class_proportions": Case({"class_proportions": "balanced"}, shuffled),
        "epoch_size": Case({"epoch_size": count // 2}, shuffled),
        "subset": Case({"subset": (0.0, 1.0)}),
        "label_columns": Case({"label_columns": 4, "label_values": np.zeros((count, 4))}, listed),
        "companion_files": Case({"companion_files": files, "companions": None}, listed | same),
        "missing_companions": Case({"missing_companions": "empty"}, small),
        "equal_sizes": Case({"equal_sizes": True}, same),
        "an output of paths": Case(outputs=lambda encoded: (fn.get_property(encoded, key="source_info"),)),
        "an output of sizes": Case(outputs=lambda encoded: (fn.peek_image_shape(encoded),)),
    }


@pipeline_def(batch_size=BATCH_SIZE, num_threads=THREADS, device_id=None, prefetch_queue_depth=PREFETCHED, seed=1)
def pipeline(arguments: dict[str, Any], outputs: Callable[[Any], tuple[Any, ...]], decode: bool = False):
    encoded, *companions, labels = readers.multi_format(name="reader", **arguments)
    return fn.decoders.image(encoded) if decode else encoded, labels, *companions, *outputs(encoded)


def write_files(folder: Path, photos: datasets.Images, count: int) -> list[str]:
    """Images in classes, and their companions; paths relative to the images."""
    pixels = list(photos.values())
    names = [f"{number % CLASSES}/{number:04}.l3" for number in range(count)]
    for number, name in enumerate(names):
        for kind, shape in (("images", SHAPE), ("small", COMPANION_SHAPE)):
            path = folder / kind / name
            path.parent.mkdir(parents=True, exist_ok=True)
            dali_l3.imwrite(path, np.ascontiguousarray(pixels[number % len(pixels)][: shape[0], : shape[1]]))
    return sorted(names)


def microseconds(pipe: Pipeline, batches: int) -> float:
    """CPU time of an image, from standstill to standstill."""
    before = settle()
    run(pipe, batches)
    return (settle() - before) / (batches * BATCH_SIZE) * 1e6


def started(*arguments: Any) -> Pipeline:
    pipe = pipeline(*arguments)
    start(pipe)
    run(pipe, WARMING)
    return pipe


def interval(values: list[float]) -> list[float]:
    """Of the median, at 95%: by how many of the values lie below it."""
    ordered = sorted(values)
    rank = max(0, int((len(ordered) - 1.96 * len(ordered) ** 0.5) / 2))
    return [ordered[rank], ordered[-1 - rank]]


def measure(root: Path, case: Case, starts: int, rounds: int, batches: int) -> dict[str, Any]:
    base = {"file_root": str(root / "images")} | case.beside
    whole = started(base, nothing, True)
    of_whole = statistics.median(microseconds(whole, WARMING) for _ in range(5))
    del whole
    differences, without = [], []
    for number in range(starts):
        used = started(base | case.arguments, case.outputs) if number % 2 else None
        unused = started(base, nothing)
        used = used or started(base | case.arguments, case.outputs)
        for turn in range(rounds):
            pipes = (used, unused) if turn % 2 else (unused, used)
            times = {pipe: microseconds(pipe, batches) for pipe in pipes}
            without.append(times[unused])
            differences.append(times[used] - times[unused])
    low, high = interval(differences)
    return {
        "reader_and_decoder_us": of_whole,
        "reader_us": statistics.median(without),
        "argument_us": statistics.median(differences),
        "argument_us_interval": [low, high],
        "share": statistics.median(differences) / of_whole,
        "share_interval": [low / of_whole, high / of_whole],
        "differences_us": differences,
    }


def main() -> None:
    parser = argument_parser("Measure what the readers' arguments cost.")
    parser.add_argument("folder", type=Path, nargs="?", help="folder of PNG photographs (default: scikit-image's)")
    parser.add_argument("--cases", default="", help="only cases whose name contains this text")
    parser.add_argument("--files", type=int, default=128, help="images, copies included; a multiple of 4")
    parser.add_argument("--starts", type=int, default=3, help="how often the readers are made anew")
    parser.add_argument("--rounds", type=int, default=5, help="timed runs of each reader after each start")
    parser.add_argument("--batches", type=int, default=192, help="batches of a timed run")
    arguments = parser.parse_args()

    found = datasets.read_photos(arguments.folder) if arguments.folder else datasets.bundled_photos()
    photos = {name: datasets.enlarge(photo, *SHAPE) for name, photo in found.items()}
    others, results = OthersLoad(), {}
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder), photos, arguments.files)
        for name, case in cases(files).items():
            if arguments.cases in name:
                results[name] = measure(Path(folder), case, arguments.starts, arguments.rounds, arguments.batches)
    table = Table("argument", "CPU us an image", "of reading and decoding", "95%")
    for name, result in results.items():
        low, high = result["share_interval"]
        table.add_row(name, f"{result['argument_us']:.2f}", f"{result['share']:.1%}", f"{low:.1%} to {high:.1%}")
    console.print(table)
    targets = [
        Target(f"reader with {name}: added CPU time / reading and decoding", result["share"], LIMIT, at_most=True)
        for name, result in results.items()
        if name != "nothing"
    ]
    chosen = settings_of(arguments, "files", "starts", "rounds", "batches")
    settings = {"batch_size": BATCH_SIZE, "threads": THREADS, "size": list(SHAPE), **chosen}
    document = {"settings": settings, "cpu_share_of_other_processes": others.share(), "cases": results}
    write_results("reader_arguments", document, targets, arguments.out)


if __name__ == "__main__":
    main()
