"""Makes the files that benchmarks/liquid.py reads: distinct images cut from photographs, in several formats."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import console, pillow, png
from datasets import SEED, Images, view

import dali_l3

FHD = (1080, 1920)
SMALL = (270, 320)  # an L3 file of about 100 KB
SMALL_FILES = 1600
FHD_FILES = 400  # of a dataset, for results that count

Encode = Callable[[np.ndarray], bytes]


def l3_raw(image: np.ndarray) -> bytes:
    return dali_l3.encode(image, profile="raw")


@dataclass(frozen=True)
class Set:
    """A folder of files of one format."""

    encode: Encode
    suffix: str
    size: tuple[int, int] = FHD  # height, width in pixels


SETS = {
    "PNG": Set(png, "png"),
    "BMP": Set(pillow("BMP"), "bmp"),
    "L3 fast": Set(dali_l3.encode, "l3"),
    "L3 raw": Set(l3_raw, "l3"),
    "small": Set(dali_l3.encode, "l3", SMALL),
}
"""By name. All sets of FHD images hold the same images, in the same order."""


def make(work: Path, photos: Images, count: int) -> dict[str, list[Path]]:
    """The files of every set, by its name; `count` of each FHD set. Files of an earlier run are used again, if enough.

    Raises:
        SystemExit: The disk is too full.
    """
    counts = {name: count if kind.size == FHD else SMALL_FILES for name, kind in SETS.items()}
    paths = {
        name: [work / name.replace(" ", "-") / f"{number:04}.{kind.suffix}" for number in range(counts[name])]
        for name, kind in SETS.items()
    }
    recipe = _recipe(photos, counts)
    record = work / "recipe.json"
    if record.is_file() and _includes(json.loads(record.read_text(encoding="utf-8")), recipe):
        return paths

    record.unlink(missing_ok=True)
    needed = sum(counts[name] * kind.size[0] * kind.size[1] * 3 for name, kind in SETS.items())  # as if all were raw
    work.mkdir(parents=True, exist_ok=True)
    console.print(f"Makes {sum(counts.values())} files in {work}, up to {needed / 1e9:.1f} GB, a few minutes")
    if shutil.disk_usage(work).free < needed:
        raise SystemExit(f"{work}: less than {needed / 1e9:.1f} GB free")
    for files in paths.values():
        shutil.rmtree(files[0].parent, ignore_errors=True)
        files[0].parent.mkdir()
    with ProcessPoolExecutor() as pool:
        processes = os.cpu_count() or 1
        jobs = [pool.submit(_write, paths, photos, first, processes) for first in range(processes)]
        for job in jobs:
            job.result()
    os.sync()  # the page cache drops only what is on the disk
    record.write_text(json.dumps(recipe), encoding="utf-8")
    return paths


def _recipe(photos: Images, counts: dict[str, int]) -> dict[str, Any]:
    """What decides the files' content, but for the code of this module and the encoders."""
    return {
        "seed": SEED,
        "photos": {name: zlib.crc32(photo) for name, photo in photos.items()},
        "sets": {name: [count, *SETS[name].size] for name, count in counts.items()},
    }


def _includes(made: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether the files of a recipe begin with those of another."""
    counts = {name: kind[0] for name, kind in made["sets"].items()}
    alike = {name: [counts.get(name), *kind[1:]] for name, kind in wanted["sets"].items()}
    return made == wanted | {"sets": alike} and all(counts[name] >= kind[0] for name, kind in wanted["sets"].items())


def _write(paths: dict[str, list[Path]], photos: Images, first: int, step: int) -> None:
    """Writes every `step`th image of every set."""
    for size in {kind.size for kind in SETS.values()}:
        files = {name: paths[name] for name, kind in SETS.items() if kind.size == size}
        for number in range(first, len(next(iter(files.values()))), step):
            image = view(list(photos.values())[number % len(photos)], size, number)
            for name in files:
                files[name][number].write_bytes(SETS[name].encode(image))


def mixed(paths: dict[str, list[Path]], shares: dict[str, int]) -> list[Path]:
    """The files of a dataset that holds every image once, in formats dealt out at random within each ten files.

    Args:
        paths: As `make` returns them.
        shares: How many of ten files there are of each set. They add up to ten.
    """
    names = np.repeat(list(shares), list(shares.values()))
    rng = np.random.default_rng(SEED)
    tens = [rng.permutation(names) for _ in range(0, len(paths[names[0]]), len(names))]  # a part has these shares, too
    return [
        paths[name][number] for number, name in zip(range(len(paths[names[0]])), np.concatenate(tens), strict=False)
    ]
