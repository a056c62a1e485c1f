"""Shows what L3 is for: photographs become L3 files, which an ordinary DALI pipeline reads, bit for bit and fast.

    python examples/demo.py [--out FOLDER]

Takes scikit-image's photographs, which need no network. Their L3 files are compared with PNG, and the images/s of both,
of BMP and of JPEG are measured on mosaics of them. Works without a GPU, in about a minute.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from nvidia.dali import Pipeline, fn, pipeline_def
from PIL import Image
from rich.console import Console
from rich.table import Table
from skimage import data

import dali_l3
from dali_l3.conversion.converting import convert_file
from dali_l3.jobs.outcomes import Task

SUFFIXES = {"PNG": ".png", "L3": ".l3", "BMP": ".bmp", "JPEG q95": ".jpg"}
SYSTEMS = {  # name: format, reader
    "PNG": ("PNG", fn.readers.file),
    "L3": ("L3", fn.readers.file),
    "L3, own reader": ("L3", fn.readers.multi_format),
    "BMP": ("BMP", fn.readers.file),
    "JPEG q95": ("JPEG q95", fn.readers.file),
}
BAND_HEIGHT = 270  # of a mosaic, pixels; at most the height of the lowest photograph
MOSAICS = 16
BATCH_SIZE = 16
THREADS = 2
console = Console()


def photographs() -> dict[str, np.ndarray]:
    """Photographs that are part of scikit-image, uint8 (H, W, 3)."""
    names = ("astronaut", "chelsea", "coffee", "hubble_deep_field", "immunohistochemistry", "retina", "rocket")
    return {name: getattr(data, name)() for name in names} | {"motorcycle": data.stereo_motorcycle()[0]}


def mosaic(photos: list[np.ndarray], height: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """A large image of photographs: in bands, side by side, in random order, each cut to the band at a random place.

    No photograph stands beside itself before all have had a turn: PNG finds what recurs within a few rows, and would
    compress repetitions as it does no photograph.
    """
    bands = []
    for top in range(0, height, BAND_HEIGHT):
        rows = min(BAND_HEIGHT, height - top)
        parts: list[np.ndarray] = []
        while sum(part.shape[1] for part in parts) < width:
            for index in rng.permutation(len(photos)):
                start = rng.integers(len(photos[index]) - rows + 1)
                parts.append(photos[index][start : start + rows])
        bands.append(np.concatenate(parts, axis=1)[:, :width])
    return np.concatenate(bands)


def write_photos(folder: Path, photos: dict[str, np.ndarray]) -> None:
    """Writes every photograph in every format: PNG, BMP and JPEG by Pillow, L3 from the PNG by dali_l3's converter."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, photo in photos.items():
        image = Image.fromarray(photo)
        image.save(folder / f"{name}.png", compress_level=6)
        image.save(folder / f"{name}.bmp")
        image.save(folder / f"{name}.jpg", quality=95)
        outcome = convert_file(Task(str(folder / f"{name}.png"), str(folder / f"{name}.l3")))
        if outcome.status != "done":
            raise SystemExit(f"{outcome.source}: {outcome.reason}")


@pipeline_def(batch_size=BATCH_SIZE, num_threads=THREADS, device_id=None)
def pipeline(files: list[str], reader: Callable = fn.readers.file):
    """What any DALI program does; importing dali_l3 is all that L3 needs."""
    encoded, labels = reader(files=files)
    return fn.decoders.image(encoded)


def files_of(folder: Path, format_name: str) -> list[str]:
    return sorted(str(path) for path in folder.glob(f"*{SUFFIXES[format_name]}"))


def check(folder: Path) -> int:
    """Compares the pixels that the pipeline makes of L3 files and of PNG files; returns the number of images."""
    images = {}
    for format_name in ("PNG", "L3"):
        files = files_of(folder, format_name)
        pipe = pipeline(files, batch_size=len(files))
        (batch,) = pipe.run()
        images[format_name] = [batch.at(index) for index in range(len(files))]
    for png, l3 in zip(images["PNG"], images["L3"], strict=True):
        if not np.array_equal(png, l3):
            raise SystemExit("an L3 file does not decode to the pixels of its PNG")
    return len(images["L3"])


def run(pipe: Pipeline, seconds: float) -> float:
    """Runs the pipeline for this long, and to the end of a batch; returns images/s."""
    batches, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds:
        pipe.run()
        batches += 1
    return batches * BATCH_SIZE / (time.perf_counter() - start)


def images_per_second(folder: Path, seconds: float, rounds: int = 3) -> dict[str, float]:
    """The pipeline's speed with each system: they take turns, each warmed up every time; medians."""
    speeds: dict[str, list[float]] = {name: [] for name in SYSTEMS}
    for _ in range(rounds):
        for name, (format_name, reader) in SYSTEMS.items():
            pipe = pipeline(files_of(folder, format_name), reader)  # one at a time, since pipelines work ahead
            run(pipe, seconds / 2)
            speeds[name].append(run(pipe, seconds))
            del pipe
    return {name: statistics.median(values) for name, values in speeds.items()}


def plot(sizes: dict[str, int], speeds: dict[str, float], path: Path) -> None:
    figure, panels = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
    relative = {name: size / sizes["PNG"] for name, size in sizes.items()}
    for axes, values, title, label in (
        (panels[0], relative, "Size, relative to PNG", "%.2f"),
        (panels[1], speeds, "DALI on the CPU, images/s", "%.0f"),
    ):
        colours = ["tab:red" if name.startswith("L3") else "tab:gray" for name in values]
        axes.bar_label(axes.barh(list(values), list(values.values()), color=colours), fmt=label, padding=3)
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.set_title(title)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description="Convert photographs to L3 and decode them with DALI.")
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder for the images and the chart")
    parser.add_argument("--height", type=int, default=1080, help="of the mosaics, pixels")
    parser.add_argument("--width", type=int, default=1920, help="of the mosaics, pixels")
    parser.add_argument("--seconds", type=float, default=1, help="length of each of a format's three timed runs")
    arguments = parser.parse_args()
    originals, mosaics = arguments.out / "photographs", arguments.out / "mosaics"

    photos = photographs()
    console.print(
        f"Writing {len(photos)} photographs, and {MOSAICS} mosaics of them of {arguments.width}x{arguments.height} …"
    )
    write_photos(originals, photos)
    rng = np.random.default_rng(1)
    size = arguments.height, arguments.width
    write_photos(mosaics, {f"mosaic{number}": mosaic(list(photos.values()), *size, rng) for number in range(MOSAICS)})
    console.print("Decoding them with DALI …")
    count = check(originals) + check(mosaics)
    console.print(f"[green]All {count} L3 files decode to exactly the pixels of their PNG files.[/]")
    speeds = images_per_second(mosaics, arguments.seconds)

    sizes = {name: sum(os.path.getsize(path) for path in files_of(originals, name)) for name in SUFFIXES}
    table = Table("", "size, kB", "of PNG", f"images/s at {arguments.width}x{arguments.height}", "x PNG", "lossless")
    for name, (format_name, _) in SYSTEMS.items():
        table.add_row(
            name,
            f"{sizes[format_name] / 1e3:.0f}",
            f"{sizes[format_name] / sizes['PNG']:.2f}",
            f"{speeds[name]:.0f}",
            f"{speeds[name] / speeds['PNG']:.1f}",
            "no" if name.startswith("JPEG") else "yes",
            style="bold" if format_name == "L3" else None,
        )
    console.print(table)
    console.print(
        f"Size: the {len(photos)} photographs. Speed: the mosaics; fn.readers.file (own reader: "
        f"fn.readers.multi_format) and fn.decoders.image on {THREADS} CPU threads, L3 back end {dali_l3.backend()}."
    )
    chart = arguments.out / "chart.png"
    plot(sizes, speeds, chart)
    console.print(f"Chart: {chart}")


if __name__ == "__main__":
    main()
