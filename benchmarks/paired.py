"""Compares two builds of the package in one run: codec, DALI pipeline and readers, case by case, in turns.

    python benchmarks/paired.py OLD NEW [--starts N] [--rounds N] [--cases TEXT] [--json FILE]

OLD and NEW are Python interpreters, each of an environment with one build of the package. Both work on the same files.
A case is timed in the one, then in the other, then the other way round, and so on; a disturbance so hits both alike.
Both are started anew several times, since where memory comes to lie is decided once a process, and shows.
Prints the median of the ratios of neighbours: above 1, the new build is faster.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

SECONDS = 0.25  # that a timing takes at least
THREADS, BATCH_SIZE = 2, 16
COUNT = 64  # files of each kind in the folders that readers read


# ---- in the environment that is measured -----------------------------------------------------------------------------


def cases(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is measured, by name: a function that does one unit of it."""
    import dali_l3

    for path in sorted((folder / "images").glob("*.npy")):
        image = np.load(path)
        data = dali_l3.encode(image)
        out = np.empty_like(image)
        yield f"decode {path.stem}", lambda data=data, out=out: dali_l3.decode(data, out=out)
        yield f"encode {path.stem}", lambda image=image: dali_l3.encode(image)
    raw = dali_l3.encode(np.load(folder / "images" / "photo.npy"), profile="raw")
    paper = dali_l3.encode(np.load(folder / "images" / "photo.npy"), profile="paper")
    yield "decode photo, raw", lambda: dali_l3.decode(raw)
    yield "decode photo, paper", lambda: dali_l3.decode(paper)
    yield from pipelines(folder)


def pipelines(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    from nvidia.dali import fn, pipeline_def

    from dali_l3.fn import readers

    def nothing(encoded):
        return encoded

    @pipeline_def(batch_size=BATCH_SIZE, num_threads=THREADS, device_id=None, seed=1)
    def pipeline(reader, decode, arguments):
        encoded, _ = reader(name="reader", **arguments)
        return decode(encoded)

    files, small = {"file_root": str(folder / "files")}, {"file_root": str(folder / "small")}
    l3 = {"file_filters": ["*.l3"]}
    cache = {"cache_size": 1 << 30}
    for name, reader, decode, arguments in (
        ("readers.file, decoders.l3", fn.readers.file, fn.decoders.l3, files | l3),
        ("readers.file, decoders.image", fn.readers.file, fn.decoders.image, files | l3),
        ("multi_format", readers.multi_format, nothing, files),
        ("multi_format, shuffled", readers.multi_format, nothing, files | {"random_shuffle": True, "mix": "dataset"}),
        ("multi_format, small files", readers.multi_format, nothing, small),
        ("liquid, half in memory", readers.liquid, nothing, files | {"cache_size": 60 << 20}),
        ("liquid, all in memory", readers.liquid, nothing, files | cache),
        ("liquid, small files", readers.liquid, nothing, small | cache),
        ("liquid, decoders.l3", readers.liquid, fn.decoders.l3, files | l3 | cache),
    ):
        pipe = pipeline(reader, decode, arguments)
        pipe.build()
        batches = pipe.epoch_size("reader") // BATCH_SIZE
        yield name, lambda pipe=pipe, batches=batches: [pipe.run() for _ in range(batches)]


def serve(folder: Path) -> None:
    """Times the cases that are asked for by number, line by line, and answers with seconds for a unit."""
    names, functions = zip(*cases(folder), strict=True)
    times: dict[str, int] = {}
    print(json.dumps(names), flush=True)
    for line in sys.stdin:
        function = functions[int(line)]
        if line not in times:  # warms up, and counts how many units fill the time
            function()
            begin = time.perf_counter()
            function()
            times[line] = max(1, round(SECONDS / (time.perf_counter() - begin)))
        begin = time.perf_counter()
        for _ in range(times[line]):
            function()
        print((time.perf_counter() - begin) / times[line], flush=True)


# ---- the other side --------------------------------------------------------------------------------------------------


def write_files(folder: Path) -> None:
    """The same images and files for both, made with the package of this environment."""
    import datasets
    from common import png

    import dali_l3

    photos = [datasets.enlarge(photo, 1080, 1920) for photo in datasets.bundled_photos().values()]
    images = {
        "photo": photos[0],
        "gray": np.ascontiguousarray(photos[1][..., 0]),
        "16 bits": datasets.gray16(photos[2]),
        "labels": datasets.labels_of_regions(photos[3]),
    }
    (folder / "images").mkdir()
    for name, image in images.items():
        np.save(folder / "images" / f"{name}.npy", image)
    for kind, crop in (("files", (1080, 1920)), ("small", (64, 64))):
        (folder / kind / "class").mkdir(parents=True)
        for number in range(COUNT if kind == "files" else 32 * COUNT):
            photo = np.ascontiguousarray(photos[number % len(photos)][: crop[0], : crop[1]])
            encode, suffix = (dali_l3.encode, "l3") if number % 4 else (png, "png")
            path = folder / kind / "class" / f"{number:05}.{suffix}"
            same = path.with_name(f"{number % 8:05}.{suffix}")
            path.write_bytes(same.read_bytes() if same.exists() else encode(photo))


@contextlib.contextmanager
def server(python: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [python, __file__, "--serve", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(process: subprocess.Popen[str], number: int) -> float:
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{number}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def timed_pairs(
    folder: Path, old_python: str, new_python: str, wanted: str, rounds: int
) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """Starts both environments; for each case, the seconds that a unit took in the old and in the new one."""
    with server(old_python, folder) as old, server(new_python, folder) as new:
        assert old.stdout
        assert new.stdout
        names = json.loads(new.stdout.readline())
        assert json.loads(old.stdout.readline()) == names
        for number, case in enumerate(names):
            if wanted not in case:
                continue
            ask(old, number), ask(new, number)
            pairs = []
            for turn in range(rounds):
                first, second = (old, new) if turn % 2 else (new, old)
                seconds = {first: ask(first, number), second: ask(second, number)}
                pairs.append((seconds[old], seconds[new]))
            yield case, pairs


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare two builds of the package.")
    parser.add_argument("old", help="Python interpreter of the environment with the old build")
    parser.add_argument("new", help="the same, with the new build")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of timings of a case and a start")
    parser.add_argument("--starts", type=int, default=3, help="how often both environments are started anew")
    parser.add_argument("--cases", default="", help="only cases whose name contains this text")
    parser.add_argument("--json", type=Path, help="write the ratios to this file")
    arguments = parser.parse_args()

    from common import OthersLoad, console, machine
    from rich.table import Table

    pairs: dict[str, list[tuple[float, float]]] = {}
    load = OthersLoad()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        for _ in range(arguments.starts):
            for case, times in timed_pairs(folder, arguments.old, arguments.new, arguments.cases, arguments.rounds):
                pairs.setdefault(case, []).extend(times)
    table = Table("case", "old, ms", "new, ms", "old / new", title="Times of a unit, and the median of ratios")
    ratios = {case: statistics.median(old / new for old, new in times) for case, times in pairs.items()}
    for case, times in pairs.items():
        medians = [statistics.median(side) * 1e3 for side in zip(*times, strict=True)]
        table.add_row(case, *(f"{ms:.3f}" for ms in medians), f"{ratios[case]:.3f}")
    console.print(table)
    console.print(f"{machine()['cpu']}; other processes used {load.share():.0%} of the CPUs")
    if arguments.json:
        arguments.json.write_text(json.dumps(ratios, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]))
    else:
        main()
