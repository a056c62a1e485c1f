"""Images per second that a DALI pipeline on the CPU reads and decodes: L3 against PNG, BMP and JPEG.

    python benchmarks/dali_decode.py [--fhd FOLDER] [--uhd FOLDER]

takes PNG photographs of 1920x1080 and 3840x2160 pixels and writes results/dali_decode.json and a plot beside it. By
default, it enlarges those of scikit-image by reflection, which favours PNG: what repeats is quick to decompress. The
protocol is described in docs/benchmarks.md.
"""

from __future__ import annotations

import itertools
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import datasets
import matplotlib.pyplot as plt
import numpy as np
from common import OthersLoad, argument_parser, console, pillow, png, settings_of, write_results
from nvidia.dali import Pipeline, fn, pipeline_def
from rich.table import Table
from targets import Target

import dali_l3

BATCH_SIZE = 16
THREADS = 2
PREFETCHED = 2  # batches, DALI's default
SIZES = {"FHD": (1080, 1920), "HD": (720, 1280), "UHD": (2160, 3840)}
TARGETS = {"FHD": 20, "HD": 12, "UHD": 20}  # times PNG's images/s, at least


ENCODERS = {"png": png, "l3": dali_l3.encode, "bmp": pillow("BMP"), "jpg": pillow("JPEG", quality=95)}
PNG = "PNG"
SYSTEMS = {  # name: file type, decoder
    PNG: ("png", fn.decoders.image),
    "L3, decoders.l3": ("l3", fn.decoders.l3),
    "L3, decoders.image": ("l3", fn.decoders.image),
    "BMP": ("bmp", fn.decoders.image),
    "JPEG q95": ("jpg", fn.decoders.image),
    "L3 files, read only": ("l3", lambda encoded: encoded),
}


@pipeline_def(batch_size=BATCH_SIZE, num_threads=THREADS, device_id=None, prefetch_queue_depth=PREFETCHED)
def pipeline(files: list[str], decode: Callable):
    encoded, _ = fn.readers.file(files=files)
    return decode(encoded)


def start(pipe: Pipeline) -> None:
    """Runs the first batches: the first `schedule_run` schedules all that DALI prefetches, later ones one each."""
    pipe.build()
    pipe.schedule_run()
    for _ in range(PREFETCHED):
        take(pipe)


def take(pipe: Pipeline) -> None:
    """Waits for a batch that was scheduled, and drops it."""
    pipe.share_outputs()
    pipe.release_outputs()


def run(pipe: Pipeline, batches: int) -> None:
    """Runs a number of batches, keeping as many under way as DALI prefetches; nothing is under way before or after."""
    for scheduled in range(batches + PREFETCHED):
        if scheduled >= PREFETCHED:
            take(pipe)
        if scheduled < batches:
            pipe.schedule_run()


def write_files(
    folder: Path, photos: datasets.Images, count: int, encoders: dict[str, Callable]
) -> dict[str, list[str]]:
    """Writes `count` files of each type, copies included; returns their paths by type."""
    paths: dict[str, list[str]] = {suffix: [] for suffix in encoders}
    for number, (name, photo) in zip(range(count), itertools.cycle(photos.items())):
        for suffix, encode in encoders.items():
            path = folder / f"{number:03}-{name}.{suffix}"
            if number < len(photos):
                path.write_bytes(encode(photo))
            else:
                shutil.copyfile(paths[suffix][number % len(photos)], path)
            paths[suffix].append(str(path))
    return paths


def mean_size(paths: list[str]) -> float:
    """Bytes of a file, the mean."""
    return statistics.mean(Path(path).stat().st_size for path in paths)


def check(pipes: dict[str, Pipeline]) -> None:
    """Makes sure that the L3 pipelines give the pixels that the PNG pipeline gives."""
    wanted, *others = (pipes[name].run()[0] for name in (PNG, "L3, decoders.l3", "L3, decoders.image"))
    for batch in others:
        for index in range(BATCH_SIZE):
            if not np.array_equal(wanted.at(index), batch.at(index)):
                raise SystemExit(f"sample {index} differs from its PNG")


@dataclass
class Runs:
    """The timed runs of a pipeline, each of so many images: images/s, and CPU seconds per image of all threads."""

    images: int
    images_per_s: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)


def take_turns(pipes: dict[str, Pipeline], files: int, rounds: int, seconds: float) -> dict[str, Runs]:
    """Times pipelines, which take turns, on datasets of so many files each; a run takes about so many seconds."""
    batches, measured = {}, {}
    for name, pipe in pipes.items():
        epoch = -(-files // pipe.max_batch_size)
        start(pipe)
        run(pipe, epoch)  # brings the files into the page cache, and the buffers to their size
        images_per_s, _ = time_run(pipe, epoch)
        batches[name] = max(epoch, round(seconds * images_per_s / pipe.max_batch_size))
        measured[name] = Runs(batches[name] * pipe.max_batch_size)
    for _ in range(rounds):
        for name, pipe in pipes.items():
            images_per_s, cpu_seconds = time_run(pipe, batches[name])
            measured[name].images_per_s.append(images_per_s)
            measured[name].cpu_seconds.append(cpu_seconds)
    return measured


def measure(photos: datasets.Images, files: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Images/s, CPU seconds per image and bytes per file of each system, which take turns; medians over the rounds."""
    with tempfile.TemporaryDirectory() as folder:
        paths = write_files(Path(folder), photos, files, ENCODERS)
        pipes = {name: pipeline(paths[suffix], decode) for name, (suffix, decode) in SYSTEMS.items()}
        # Checked on pipelines of their own, which go on prefetching for as long as they live.
        check({name: pipeline(paths[suffix], decode) for name, (suffix, decode) in SYSTEMS.items()})
        measured = take_turns(pipes, files, rounds, seconds)
        sizes = {suffix: mean_size(paths[suffix]) for suffix in paths}

    def figures(name: str) -> dict[str, Any]:
        runs = measured[name]
        return {
            "images_per_s": statistics.median(runs.images_per_s),
            "cpu_ms_per_image": statistics.median(runs.cpu_seconds) * 1e3,
            "bytes_per_image": sizes[SYSTEMS[name][0]],
            "images_per_run": runs.images,
            "runs_images_per_s": runs.images_per_s,
        }

    result = {name: figures(name) for name in SYSTEMS}
    for system in result.values():
        system["times_png"] = system["images_per_s"] / result[PNG]["images_per_s"]
    return result


def time_run(pipe: Pipeline, batches: int) -> tuple[float, float]:
    """Images per second and seconds of CPU time, of all threads, per image."""

    def now() -> tuple[float, float]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return time.perf_counter(), usage.ru_utime + usage.ru_stime

    before, cpu_before = now()
    run(pipe, batches)
    after, cpu_after = now()
    images = batches * pipe.max_batch_size
    return images / (after - before), (cpu_after - cpu_before) / images


def show(size: str, systems: dict[str, Any]) -> None:
    table = Table("", "images/s", "x PNG", "CPU ms/image", "MB/file", title=size)
    for name, figures in systems.items():
        table.add_row(
            name,
            f"{figures['images_per_s']:.0f}",
            f"{figures['times_png']:.1f}",
            f"{figures['cpu_ms_per_image']:.2f}",
            f"{figures['bytes_per_image'] / 1e6:.2f}",
        )
    console.print(table)


def plot(sizes: dict[str, Any], path: Path) -> None:
    """Bars of images per second: a panel for each image size."""
    plt.rcParams["svg.hashsalt"] = path.name  # the same figures make the same file
    figure, panels = plt.subplots(1, len(sizes), figsize=(4.2 * len(sizes), 3.2), layout="constrained", squeeze=False)
    for axes, (size, systems) in zip(panels[0], sizes.items(), strict=True):
        shown = [name for name in SYSTEMS if "read only" not in name]
        colours = ["tab:red" if name.startswith("L3") else "tab:gray" for name in shown]
        bars = axes.barh(shown, [systems[name]["images_per_s"] for name in shown], color=colours)
        axes.bar_label(bars, fmt="%.0f", padding=3)
        axes.invert_yaxis()
        axes.margins(x=0.2)
        height, width = SIZES[size]
        axes.set(title=f"{size}, {width}x{height}", xlabel=f"images/s, {THREADS} threads")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argument_parser("Compare formats in a DALI pipeline on the CPU.")
    parser.add_argument("--fhd", type=Path, help="folder of PNG photographs of 1920x1080 pixels")
    parser.add_argument("--uhd", type=Path, help="folder of PNG photographs of 3840x2160 pixels")
    parser.add_argument("--files", type=int, default=48, help="files of each format, copies included")
    parser.add_argument("--rounds", type=int, default=7, help="timed runs of each system")
    parser.add_argument("--seconds", type=float, default=1, help="rough length of a timed run")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES), help="image sizes to measure")
    arguments = parser.parse_args()

    others = OthersLoad()
    sizes = {}
    for size in arguments.sizes:
        photos = datasets.load_sized(arguments.uhd if size == "UHD" else arguments.fhd, *SIZES[size])
        sizes[size] = measure(photos, arguments.files, arguments.rounds, arguments.seconds)
        show(size, sizes[size])
    targets = [
        Target(f"{size}: images/s, {name} / PNG", sizes[size][name]["times_png"], TARGETS[size])
        for size in sizes
        for name in ("L3, decoders.l3", "L3, decoders.image")
    ]
    results = {
        "settings": {
            "batch_size": BATCH_SIZE,
            "threads": THREADS,
            **settings_of(arguments, "files", "rounds", "seconds"),
        },
        "cpu_share_of_other_processes": others.share(),
        "sizes": sizes,
    }
    path = write_results("dali_decode", results, targets, arguments.out)
    plot(sizes, path.with_suffix(".svg"))


if __name__ == "__main__":
    main()
