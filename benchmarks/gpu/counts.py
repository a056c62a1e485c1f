"""Counts what the GPU decoder's kernels execute, for many kinds of images, without a GPU.

    python benchmarks/gpu/counts.py [--photographs FOLDER] [--graphics FOLDER] [WORD ...]

runs the compiled kernels on the CPU (tests/ptx), each set of images in one batch, and prints for each set and kernel
the instructions of a lane for a sample, by unit, and what memory does. With words only sets whose names have one.
Needs nvcc, nvdisasm (the PyPI package nvidia-cuda-nvdisasm has it), CMake, and what benchmarks/datasets.py needs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "csrc/l3/cuda")]
import datasets  # noqa: E402
import make_images  # noqa: E402
import resources  # noqa: E402
from machine_code import UNITS, compile_ptx, executed  # noqa: E402

import dali_l3  # noqa: E402

PHOTOGRAPHS = 2
FHD = 1080, 1920
SMALL = 224, 224
SMALL_IMAGES = 32
Images = list[np.ndarray]

# ---- Sets of images --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Set:
    """Images of one batch, and what is asked of them. color and sample: values of l3_color and l3_sample."""

    name: str
    make: Callable[[Images, Images], Images]  # of photographs and graphics
    profile: str = "fast"
    color: int = 0
    sample: int = 0


def photographs(photos: Images, graphics: Images) -> Images:
    return photos


def gray(photos: Images, graphics: Images) -> Images:
    return [np.ascontiguousarray(photo[..., 1]) for photo in photos]


def small(photos: Images, graphics: Images) -> Images:
    """Different parts of photographs that were scaled down to twice the size."""
    height, width = SMALL
    halves = [datasets.shrink(photo, 2 * height, 4 * width) for photo in photos]
    parts = [
        half[y : y + height, x : x + width] for half in halves for y in (0, height) for x in range(0, 4 * width, width)
    ]
    return [np.ascontiguousarray(parts[i % len(parts)]) for i in range(SMALL_IMAGES)]


def derived(name: str) -> Callable[[Images, Images], Images]:
    return lambda photos, graphics: list(
        datasets.make_set(name, {str(number): photo for number, photo in enumerate(photos)}).values()
    )


def only(name: str, function: str) -> Callable[[Images, Images], Images]:
    return lambda photos, graphics: [getattr(datasets, function)(photo) for photo in photos]


SETS = (
    Set("photographs", photographs),
    Set("photographs, gray", gray),
    Set("graphics", lambda photos, graphics: graphics),
    Set("224x224", small),
    Set("16-bit gray", derived("16-bit gray")),
    Set("16-bit gray of fewer bits", derived("16-bit gray of fewer bits")),
    Set("16-bit RGB", derived("16-bit RGB")),
    Set("labels of pixels", only("labels", "labels_of_pixels")),
    Set("labels of superpixels", only("labels", "labels_of_superpixels")),
    Set("binary masks", derived("binary masks")),
    Set("photographs to gray", photographs, color=3),
    Set("photographs to float32", photographs, sample=7),
    Set("photographs to BGR", photographs, color=2),
    Set("photographs, raw", photographs, "raw"),
    Set("photographs, paper", photographs, "paper"),
)
SAMPLE_BYTES = {0: None, 1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4}  # of l3_sample; None: as in the file

# ---- Counting --------------------------------------------------------------------------------------------------------


def build(folder: Path, jobs: int) -> None:
    configure = ["cmake", "-S", ROOT / "tests/ptx", "-B", folder, "-DL3_PTX_TARGETS=90"]
    make = ["cmake", "--build", folder, "--target", "decode_counts", "--parallel", str(jobs)]
    for command in (configure, make):
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            raise SystemExit(f"{' '.join(map(str, command))} failed:\n{result.stdout}{result.stderr}")


def decode(folder: Path, images: Images, one: Set) -> list[dict]:
    """What each launch executed."""
    with tempfile.TemporaryDirectory() as files:
        paths = [Path(files) / f"{number}.l3" for number in range(len(images))]
        for path, image in zip(paths, images, strict=True):
            path.write_bytes(dali_l3.encode(image, profile=one.profile))
        command = [folder / "decode_counts", str(one.color), str(one.sample), *paths]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def figures(launch: dict, tiles: int, sample_bytes: int, blocks: list) -> dict:
    """A kernel's counts as the table has them."""
    ptx = launch["instructions"].values()
    lines = {int(line): tuple(times) for line, times in launch["lines"].items()}
    machine = executed(blocks, lines)
    samples = launch["written"]["bytes"] / sample_bytes
    units = dict.fromkeys(UNITS, 0.0)
    for one in machine:
        units[one.instruction.unit] += one.lanes / samples
    warps, lanes = sum(one.warps for one in machine), sum(one.lanes for one in machine)
    return {
        "tiles": launch["tiles"] / tiles,
        "ptx": sum(kind["lanes"] for kind in ptx) / samples,
        "machine": lanes / samples,
        "slots_a_byte": 32 * warps / launch["written"]["bytes"],
        "occupancy": lanes / warps / 32,
        "divergent": launch["branches"]["divergent"] / launch["branches"]["executed"],
        "units": units,
        "read": launch["read"]["bytes"] / launch["written"]["bytes"],
        "read_sectors": 32 * launch["read"]["sectors"] / launch["read"]["bytes"],
        "written_sectors": 32 * launch["written"]["sectors"] / launch["written"]["bytes"],
        "conflicts": launch["shared"]["conflicts"] / max(1, launch["shared"]["wavefronts"]),
    }


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


HEADER = (
    "set", "kernel", "tiles", "PTX", "machine", *UNITS, "slots/byte", "lanes", "divergent", "read", "sectors in",
    "sectors out", "conflicts",
)  # fmt: skip


def table_row(name: str, kernel: str, one: dict) -> str:
    numbers = [one["ptx"], one["machine"], *one["units"].values(), one["slots_a_byte"]]
    percent = [one["occupancy"], one["divergent"]]
    memory = [one["read"], one["read_sectors"], one["written_sectors"]]
    cells = [f"{one['tiles']:.0%}", *(f"{n:.2f}" for n in numbers), *(f"{n:.1%}" for n in percent)]
    return row(name, kernel, *cells, *(f"{n:.2f}" for n in memory), f"{one['conflicts']:.0%}")


def read_folder(folder: Path) -> Images:
    return list(datasets.read_photos(folder).values())


def main() -> None:
    parser = argparse.ArgumentParser(description="Count what the GPU decoder's kernels execute.")
    parser.add_argument("words", nargs="*", help="of sets' names")
    parser.add_argument("--photographs", type=Path, help="folder of PNG files (default: synthetic ones)")
    parser.add_argument("--graphics", type=Path, help="folder of PNG files")
    parser.add_argument("--build", type=Path, default=ROOT / "build/counts", help="folder (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the build")
    parser.add_argument("--nvcc", default=resources.find_nvcc())
    parser.add_argument("--nvdisasm", default=shutil.which("nvdisasm"))
    arguments = parser.parse_args()
    if arguments.nvcc is None or arguments.nvdisasm is None:
        parser.error("needs nvcc and nvdisasm; name them with --nvcc and --nvdisasm")

    build(arguments.build, arguments.jobs)
    code = {}
    for source in resources.kernel_sources():
        code |= compile_ptx(arguments.nvcc, arguments.nvdisasm, arguments.build / f"kept/{source.stem}.ptx", "90")
    photos = (
        read_folder(arguments.photographs)
        if arguments.photographs
        else [make_images.photograph(*FHD, seed) for seed in range(PHOTOGRAPHS)]
    )
    photos = [datasets.enlarge(photo, *FHD) for photo in photos[:PHOTOGRAPHS]]
    graphics = read_folder(arguments.graphics)[:PHOTOGRAPHS] if arguments.graphics else []
    print(row(*HEADER))
    print(row("---", "---", *["--:"] * (len(HEADER) - 2)))
    for one in SETS:
        if arguments.words and not any(word in one.name for word in arguments.words):
            continue
        images = one.make(photos, graphics)
        if not images:
            continue
        launches = decode(arguments.build, images, one)
        tiles = sum(launch["tiles"] for launch in launches)
        for launch in launches:
            (kernel,) = resources.demangle([launch["kernel"]])
            sample_bytes = SAMPLE_BYTES[one.sample] or images[0].itemsize
            print(table_row(one.name, kernel, figures(launch, tiles, sample_bytes, code[launch["kernel"]])), flush=True)


if __name__ == "__main__":
    main()
