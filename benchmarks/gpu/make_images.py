"""Makes the images that benchmarks/gpu_decode.py decodes: synthetic photographs, the same on every machine.

    python benchmarks/gpu/make_images.py FOLDER

writes FOLDER/SIZE/N.ppm. A photograph here is a sum of light that varies on all scales, objects with sharp edges,
texture, and a sensor's noise, which for the most part decides how far an image can be compressed. What decides a
decoder's speed is as in the real photographs of 1920x1080 pixels in docs/benchmarks.md: the profile `fast` takes about
9.3 of 24 bits a pixel, and about nine tiles in ten have a channel that is coded by running sums. Needs numpy.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

SIZES = {"HD": (720, 1280), "FHD": (1080, 1920), "UHD": (2160, 3840)}  # (height, width)
IMAGES = 4  # of each size
NOISE = 3.0  # standard deviation at full light, in steps of the 8-bit samples


def resized(grid: np.ndarray, height: int, width: int) -> np.ndarray:
    """A 2-D array at another size, by linear interpolation."""

    def weights(count: int, nodes: int) -> np.ndarray:
        distance = np.abs(np.linspace(0, nodes - 1, count)[:, None] - np.arange(nodes))
        return np.maximum(1 - distance, 0).astype(np.float32)

    return weights(height, grid.shape[0]) @ grid.astype(np.float32) @ weights(width, grid.shape[1]).T


def clouds(generator: np.random.Generator, height: int, width: int, finest: int) -> np.ndarray:
    """A field of variance about 1 whose details, down to `finest` pixels, fade with their size."""
    field = np.zeros((height, width), np.float32)
    scale, amplitude = height // 2, 0.7
    while scale >= finest:
        grid = generator.normal(0, amplitude, (height // scale + 2, width // scale + 2))
        field += resized(grid, height, width)
        scale, amplitude = scale // 2, amplitude * 0.6
    return field


def sensor_noise(generator: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Noise of variance 1, shape (height, width, 3). Neighbours share some, as a camera interpolates its sensor."""
    noise = generator.standard_normal((height + 2, width + 2, 3), dtype=np.float32)
    noise = noise[:-2] + 2 * noise[1:-1] + noise[2:]
    noise = noise[:, :-2] + 2 * noise[:, 1:-1] + noise[:, 2:]
    return noise / 6  # the root of (1 + 4 + 1)^2, the sum of the squared weights


def photograph(height: int, width: int, seed: int) -> np.ndarray:
    """A synthetic photograph: uint8 array of shape (height, width, 3)."""
    generator = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32) / height
    light = 110 + 45 * clouds(generator, height, width, 8)
    colour = 20 * np.stack([clouds(generator, height, width, 32) for _ in range(2)])
    for _ in range(40):  # objects: ellipses of another brightness and colour, some of them with a texture
        centre_y, centre_x = generator.uniform(0, [1, width / height])
        radius_y, radius_x = generator.uniform(0.02, 0.25, 2)
        inside = ((y - centre_y) / radius_y) ** 2 + ((x - centre_x) / radius_x) ** 2 < 1
        light[inside] += generator.normal(0, 35)
        colour[:, inside] += generator.normal(0, 12, (2, 1))
        if generator.random() < 0.4:
            along_y, along_x = generator.uniform(100, 900, 2)
            light[inside] += 6 * np.sin(along_y * y[inside] + along_x * x[inside])
    linear = np.stack([light + colour[0], light, light + colour[1]], axis=-1)
    linear = 128 + 120 * np.tanh((linear - 128) / 120)  # shadows and highlights are compressed, not cut off
    linear += NOISE * np.sqrt(linear / 255) * sensor_noise(generator, height, width)  # photons: the root of the light
    return np.clip(np.rint(linear), 0, 255).astype(np.uint8)


def write_photograph(path: Path, height: int, width: int, seed: int) -> None:
    """Writes a PPM file, unless it is there."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_bytes(b"P6\n%d %d\n255\n" % (width, height) + photograph(height, width, seed).tobytes())
    partial.replace(path)


def write(folder: Path, sizes: Iterable[str] = SIZES) -> None:
    """Writes the images that are not there yet, on all CPUs."""
    with ProcessPoolExecutor() as pool:
        jobs = [
            pool.submit(write_photograph, folder / size / f"{number}.ppm", *SIZES[size], seed=number)
            for size in sizes
            for number in range(IMAGES)
        ]
        for job in jobs:
            job.result()


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the images of the GPU benchmark.")
    parser.add_argument("folder", type=Path)
    write(parser.parse_args().folder)


if __name__ == "__main__":
    main()
