"""Conversions that are killed at random moments, again and again, until they are through.

python tests/python/support/killing.py --kills 200
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

import numpy as np

import dali_l3
from image_files import noise, write_png
from processes import start
from waiting import HANGS

IMAGES = 40
SHARDS = "40KiB"


def write_source(folder: Path) -> dict[str, np.ndarray]:
    """Writes images in two classes, one of which is damaged; returns the pixels of the others by their keys."""
    pixels = {}
    for number in range(IMAGES):
        key = f"class{number % 2}/{number:03d}"
        pixels[key] = noise((64, 50, 3), seed=number)
        write_png(folder / f"{key}.png", pixels[key])
    damaged = folder / "class0" / "000.png"
    damaged.write_bytes(damaged.read_bytes()[:500])
    del pixels["class0/000"]
    return pixels


def run(source: Path, target: Path, *options: object, after: float | None = None) -> tuple[bool, float]:
    """Converts, and kills that after some seconds; returns whether it was killed, and how long it took."""
    begin = time.monotonic()
    process = start("convert", source, target, *options, "--workers", 1)
    try:
        process.communicate(timeout=HANGS if after is None else after)
    except subprocess.TimeoutExpired:
        assert after is not None, "the conversion hangs"
        process.kill()
        process.communicate()
        return True, time.monotonic() - begin
    assert process.returncode == 1, "one image is damaged"
    return False, time.monotonic() - begin


def assert_visible_is_whole(target: Path) -> None:
    """Whatever has its name, while nothing runs, is whole."""
    for path in target.glob("*.tar"):
        with tarfile.open(path) as archive:
            for member in archive:
                data = archive.extractfile(member).read()
                if member.name.endswith(".l3"):
                    dali_l3.decode(data, verify=True)
        assert path.read_bytes().endswith(bytes(1024))
    for path in target.rglob("*.l3"):
        dali_l3.decode(path.read_bytes(), verify=True)


def assert_holds(target: Path, pixels: dict[str, np.ndarray]) -> None:
    """The output, shards or a folder, holds these images, once each, and no others."""
    found = {str(path.relative_to(target))[:-3]: path.read_bytes() for path in target.rglob("*.l3")}
    for path in target.glob("*.tar"):
        with tarfile.open(path) as archive:
            for name in archive.getnames():
                if name.endswith(".l3"):
                    assert name[:-3] not in found, f"{name} twice"
                    found[name[:-3]] = archive.extractfile(name).read()
    assert found.keys() == pixels.keys()
    for key, data in found.items():
        np.testing.assert_array_equal(dali_l3.decode(data, verify=True), pixels[key])


def contents(target: Path) -> dict[str, bytes]:
    return {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*") if path.is_file()}


def kill_conversions(folder: Path, kills: int, seed: int, options: tuple[object, ...]) -> int:
    """Kills conversions so many times, at moments all over their time; returns how many got through in the end.

    Each has the output of an undisturbed one, byte for byte.
    """
    generator = random.Random(seed)
    pixels = write_source(folder / "in")
    _, whole_time = run(folder / "in", folder / "whole", *options)
    assert_holds(folder / "whole", pixels)
    whole = contents(folder / "whole")
    finished = killed = 0
    span = whole_time
    target, is_under_way = folder / "out", True
    while killed < kills or is_under_way:
        after = generator.uniform(0, span) if killed < kills else None
        is_under_way = run(folder / "in", target, *options, after=after)[0]
        killed += is_under_way
        span = 1.1 * span if is_under_way else whole_time  # a machine that got slower lets some through, too
        assert_visible_is_whole(target)
        if not is_under_way:
            assert contents(target) == whole
            assert not [*folder.rglob("*.l3-partial")], "what killed runs left is removed"
            finished += 1
            shutil.rmtree(target)
            shutil.rmtree(f"{target}.conversion")
    return finished


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill conversions at random moments and go on with them.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for options, kills in ((("--shards", SHARDS), arguments.kills), (("--part", "1/1"), arguments.kills // 4)):
        with tempfile.TemporaryDirectory() as folder:
            finished = kill_conversions(Path(folder), kills, arguments.seed, options)
        print(f"{' '.join(options)}: {kills} kills, {finished} conversions went through, all with the same output")


if __name__ == "__main__":
    os.nice(10)
    main()
