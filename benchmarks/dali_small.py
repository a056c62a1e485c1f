"""Small images, and images with a mask, in a DALI pipeline on the CPU.

    python benchmarks/dali_small.py [--fhd FOLDER]

takes PNG photographs of 1920x1080 pixels, by default those of scikit-image enlarged by reflection, and writes
results/dali_small.json. The protocol is described in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Read when DALI first allocates memory. Without it the C library may return a batch's memory to the system after each
# batch of less than 32 MB, which can cost as much as decoding (docs/dali.md, "Memory for small batches").
os.environ.setdefault("DALI_MALLOC_POOL_THRESHOLD", "1M")

import datasets
import numpy as np
from common import OthersLoad, argument_parser, console, median_ratio, pillow, png, settings_of, write_results
from dali_decode import THREADS, Runs, check, mean_size, pipeline, take_turns, write_files
from nvidia.dali import fn, pipeline_def, types
from PIL import Image
from rich.table import Table
from targets import Target

import dali_l3.fn

PARTS = ("sizes", "pieces", "masks")
FHD = (1080, 1920)
SIZES = {  # height, width, batch size
    "500x375": (375, 500, 64),
    "224x224": (224, 224, 128),
    "1280x720": (720, 1280, 16),
}
ENCODERS = {"png": png, "jpg": pillow("JPEG", quality=90), "l3": dali_l3.encode}
PNG, JPEG = "PNG", "JPEG q90"
DECODERS = {"decoders.l3": fn.decoders.l3, "decoders.image": fn.decoders.image}


def read_only(encoded):
    return encoded


SYSTEMS = {  # name: file type, decoder
    PNG: ("png", fn.decoders.image),
    JPEG: ("jpg", fn.decoders.image),
    **{f"L3, {name}": ("l3", decode) for name, decode in DECODERS.items()},
    "L3 files, read only": ("l3", read_only),
}
TARGETS = {  # at 500x375: times the images/s of JPEG and of PNG, at least
    "L3, decoders.l3": {JPEG: 4, PNG: 20},
    "L3, decoders.image": {JPEG: 2.5, PNG: 12},
}
PIECE = (360, 480)  # height and width of the pieces that divide a photograph
WHOLES = 4  # photographs in a batch, or as many pieces as they have
MASKED_BATCH_SIZE = 16
MASK_TARGET = 1.25  # times the time of the image alone, at most
MASKS = {  # kind: how it is made of a photograph
    "label mask": datasets.labels_of_superpixels,
    "binary mask": datasets.mask_by_threshold,
}


# ---- small images against JPEG and PNG -------------------------------------------------------------------------------


def measure_size(photos: datasets.Images, size: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The systems on photographs of one size."""
    height, width, batch_size = SIZES[size]
    files = arguments.batches * batch_size

    def pipes() -> dict[str, Any]:
        return {name: pipeline(paths[kind], decode, batch_size=batch_size) for name, (kind, decode) in SYSTEMS.items()}

    with tempfile.TemporaryDirectory() as folder:
        shrunk = {name: datasets.shrink(photo, height, width) for name, photo in photos.items()}
        paths = write_files(Path(folder), shrunk, files, ENCODERS)
        check(pipes())  # pipelines of their own, which go on prefetching for as long as they live
        measured = take_turns(pipes(), files, arguments.rounds, arguments.seconds)
        results = {name: figures(runs) for name, runs in measured.items()}
        for name, (kind, _) in SYSTEMS.items():
            results[name]["bytes_per_image"] = mean_size(paths[kind])
            results[name]["times_jpeg"] = times(measured[name], measured[JPEG])
            results[name]["times_png"] = times(measured[name], measured[PNG])
    return results


# ---- one large image against many small ones -------------------------------------------------------------------------


def divide(photos: datasets.Images) -> datasets.Images:
    height, width = PIECE
    return {
        f"{name}-{y}-{x}": np.ascontiguousarray(photo[y : y + height, x : x + width])
        for name, photo in photos.items()
        for y in range(0, FHD[0], height)
        for x in range(0, FHD[1], width)
    }


def measure_pieces(photos: datasets.Images, arguments: argparse.Namespace) -> dict[str, Any]:
    """The same pixels as whole photographs and in pieces, in batches of the same number of pixels."""
    pieces = divide(photos)
    count = len(pieces) // len(photos)
    wholes = arguments.batches * WHOLES
    with tempfile.TemporaryDirectory() as folder:
        write = {"l3": dali_l3.encode}
        paths = write_files(Path(folder), photos, wholes, write)["l3"]
        piece_paths = write_files(Path(folder), pieces, wholes * count, write)["l3"]
        results = {}
        for name, decode in {**DECODERS, "read only": read_only}.items():
            pipes = {
                "whole": pipeline(paths, decode, batch_size=WHOLES),
                "pieces": pipeline(piece_paths, decode, batch_size=WHOLES * count),
            }
            measured = take_turns(pipes, wholes * count, arguments.rounds, arguments.seconds)
            measured["pieces"].images //= count  # figures are for a photograph
            measured["pieces"].images_per_s = [speed / count for speed in measured["pieces"].images_per_s]
            measured["pieces"].cpu_seconds = [seconds * count for seconds in measured["pieces"].cpu_seconds]
            results[name] = {kind: figures(runs) for kind, runs in measured.items()}
            results[name]["pieces"]["time_of_whole"] = times(measured["whole"], measured["pieces"])
    return results


# ---- images with a mask ----------------------------------------------------------------------------------------------


def by_file_readers(images: list[str], masks: list[str] | None = None):
    return [fn.readers.file(files=files)[0] for files in (images, masks) if files]


def as_companions(images: list[str], masks: list[str] | None = None):
    return dali_l3.fn.readers.multi_format(files=images, companion_files=masks)[:-1]


MASKED_SYSTEMS = {  # name: how images and masks are read, decoder
    "decoders.l3": (by_file_readers, fn.decoders.l3),
    "decoders.image": (by_file_readers, fn.decoders.image),
    "multi_format, decoders.l3": (as_companions, fn.decoders.l3),
}


@pipeline_def(batch_size=MASKED_BATCH_SIZE, num_threads=THREADS, device_id=None)
def pipeline_of_masked(read: Callable, files: list[list[str]], decode: Callable):
    image, *masks = read(*files)
    return decode(image), *(decode(mask, output_type=types.ANY_DATA) for mask in masks)


def check_masked(images: list[str], masks: list[str]) -> None:
    """Makes sure that all systems give the same pixels of images and masks."""
    pipes = [pipeline_of_masked(read, [images, masks], decode) for read, decode in MASKED_SYSTEMS.values()]
    first, *others = (pipe.run() for pipe in pipes)
    for outputs in others:
        for output, expected in zip(outputs, first, strict=True):
            for index in range(MASKED_BATCH_SIZE):
                if not np.array_equal(output.at(index), expected.at(index)):
                    raise SystemExit(f"the systems differ about sample {index}")


def make_mask(photo: np.ndarray, make: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A mask of the photograph's size. Labels are made at the usual size of annotations and repeated."""
    height, width = photo.shape[:2]
    return np.asarray(Image.fromarray(make(photo)).resize((width, height), Image.Resampling.NEAREST))


def measure_masks(photos: datasets.Images, arguments: argparse.Namespace) -> dict[str, Any]:
    """Photographs alone and together with their masks."""
    files = arguments.batches * MASKED_BATCH_SIZE
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        write = {"l3": dali_l3.encode}
        images = write_files(Path(folder), photos, files, write)["l3"]
        masks = {}
        for kind, make in MASKS.items():
            made = {f"{kind}-{name}": make_mask(photo, make) for name, photo in photos.items()}
            masks[kind] = write_files(Path(folder), made, files, write)["l3"]
            check_masked(images, masks[kind])
        for name, (read, decode) in MASKED_SYSTEMS.items():
            pipes = {"image alone": pipeline_of_masked(read, [images], decode)}
            pipes |= {f"with {kind}": pipeline_of_masked(read, [images, masks[kind]], decode) for kind in MASKS}
            measured = take_turns(pipes, files, arguments.rounds, arguments.seconds)
            results[name] = {kind: figures(runs) for kind, runs in measured.items()}
            for kind in MASKS:
                of_alone = times(measured["image alone"], measured[f"with {kind}"])
                results[name][f"with {kind}"] |= {"time_of_alone": of_alone, "bytes_per_mask": mean_size(masks[kind])}
    return results


# ---- reporting -------------------------------------------------------------------------------------------------------


def figures(runs: Runs) -> dict[str, Any]:
    return {
        "images_per_s": statistics.median(runs.images_per_s),
        "cpu_ms_per_image": statistics.median(runs.cpu_seconds) * 1e3,
        "images_per_run": runs.images,
        "runs_images_per_s": runs.images_per_s,
    }


def times(runs: Runs, others: Runs) -> dict[str, float]:
    """How many times as fast as others: images/s, and by CPU time, which the load of a machine disturbs less."""
    return {
        "images_per_s": median_ratio(runs.images_per_s, others.images_per_s),
        "cpu": median_ratio(others.cpu_seconds, runs.cpu_seconds),
    }


def show(title: str, systems: dict[str, Any], ratios: tuple[str, ...]) -> None:
    table = Table("", "images/s", "CPU ms/image", *(f"{name}, by CPU time" for name in ratios), title=title)
    for name, system in systems.items():
        cells = (f"{system[r]['images_per_s']:.2f}, {system[r]['cpu']:.2f}" if r in system else "" for r in ratios)
        table.add_row(name, f"{system['images_per_s']:.0f}", f"{system['cpu_ms_per_image']:.3f}", *cells)
    console.print(table)


def targets(sizes: dict[str, Any], masks: dict[str, Any]) -> list[Target]:
    measured = sizes.get("500x375", {})
    found = [
        Target(f"500x375: {label}, {name} / {other}", measured[name][key][kind], limits[other])
        for name, limits in (TARGETS if measured else {}).items()
        for other, key in ((JPEG, "times_jpeg"), (PNG, "times_png"))
        for kind, label in (("images_per_s", "images/s"), ("cpu", "images per s of CPU time"))
    ]
    return found + [
        Target(
            f"FHD: {label}, image and label mask / image, {name}",
            systems["with label mask"]["time_of_alone"][kind],
            MASK_TARGET,
            at_most=True,
        )
        for name, systems in masks.items()
        for kind, label in (("images_per_s", "time"), ("cpu", "CPU time"))
    ]


def main() -> None:
    parser = argument_parser(__doc__.splitlines()[0])
    parser.add_argument("--fhd", type=Path, help="folder of PNG photographs of 1920x1080 pixels")
    parser.add_argument("--batches", type=int, default=4, help="batches of files of each kind, copies included")
    parser.add_argument("--rounds", type=int, default=9, help="timed runs of each system")
    parser.add_argument("--seconds", type=float, default=0.5, help="rough length of a timed run")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES), help="of small images")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure")
    arguments = parser.parse_args()

    photos = datasets.load_sized(arguments.fhd, *FHD)
    others = OthersLoad()
    sizes, pieces, masks = {}, {}, {}
    for size in arguments.sizes if "sizes" in arguments.parts else ():
        sizes[size] = measure_size(photos, size, arguments)
        show(size, sizes[size], ("times_jpeg", "times_png"))
    if "pieces" in arguments.parts:
        pieces = measure_pieces(photos, arguments)
        for name, systems in pieces.items():
            show(f"FHD, whole and in pieces of {PIECE[1]}x{PIECE[0]}, {name}", systems, ("time_of_whole",))
    if "masks" in arguments.parts:
        masks = measure_masks(photos, arguments)
        for name, systems in masks.items():
            show(f"FHD with a mask, {name}", systems, ("time_of_alone",))
    found = targets(sizes, masks)
    results = {
        "settings": {
            "threads": THREADS,
            **settings_of(arguments, "batches", "rounds", "seconds"),
            "batch_sizes": {size: SIZES[size][-1] for size in sizes},
            "DALI_MALLOC_POOL_THRESHOLD": os.environ["DALI_MALLOC_POOL_THRESHOLD"],
        },
        "cpu_share_of_other_processes": others.share(),
        "sizes": sizes,
        "pieces": pieces,
        "masks": masks,
    }
    write_results("dali_small", results, found, arguments.out)


if __name__ == "__main__":
    main()
