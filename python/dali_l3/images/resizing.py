"""Makes images smaller, on purpose: a training at 224 pixels needs no more of photographs of 4000."""

from __future__ import annotations

import dataclasses
import mmap
import re
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Literal

import numpy as np
from PIL import Image

from ..codec import peek, read_metadata
from ..errors import L3Error
from ..files import open_regular
from .reading import ReadImage

Filter = Literal["lanczos", "nearest"]

METADATA_KEY = "resized"
"""Of what the file says about it: the size of the original and the filter, such as `4000x3000 lanczos`."""

RESIZING_MEMORY = 4
"""How many times the size of the pixels `resize_image` takes, at most: with gray and alpha, a float for each stage."""

_STATEMENT = re.compile(rb"([1-9][0-9]*)x([1-9][0-9]*) (\w+)")


@dataclass(frozen=True)
class Resize:
    """The bounds of an image, all of which it is to keep. Smaller images stay as they are.

    shorter, longer: most pixels of a side
    pixels: most pixels in all
    filter: "lanczos" is antialiased; "nearest" makes no new values, for masks whose numbers are labels
    """

    shorter: int | None = None
    longer: int | None = None
    pixels: int | None = None
    filter: Filter = "lanczos"

    def __str__(self) -> str:
        """As options of the command line."""
        bounds = {"shorter": self.shorter, "longer": self.longer, "pixels": self.pixels}
        options = [f"--resize-{name} {bound}" for name, bound in bounds.items() if bound is not None]
        return " ".join(options + ["--resize-filter nearest"] * (self.filter == "nearest"))

    def size(self, width: int, height: int) -> tuple[int, int]:
        """The width and the height of what an image of such a size becomes."""
        shorter, longer = sorted((width, height))
        scale = min(Fraction(self.shorter or shorter, shorter), Fraction(self.longer or longer, longer), Fraction(1))
        new_shorter, new_longer = (max(round(side * scale), 1) for side in (shorter, longer))
        if self.pixels is not None and new_shorter * new_longer > self.pixels:
            scale = Fraction(isqrt(self.pixels * width * height), width * height)
            new_shorter = max(int(shorter * scale), 1)
            new_longer = min(int(longer * scale), self.pixels // new_shorter)
        return (new_shorter, new_longer) if width <= height else (new_longer, new_shorter)


def resize_image(image: ReadImage, resize: Resize) -> ReadImage:
    """Makes an image smaller, if it is too large; then its metadata and its notes say so."""
    height, width = image.pixels.shape[:2]
    size = resize.size(width, height)
    if size == (width, height):
        return image
    statement = f"{width}x{height} {resize.filter}".encode()
    return dataclasses.replace(
        image,
        pixels=resample(image.pixels, *size, resize.filter),
        metadata={**image.metadata, METADATA_KEY: statement},
        notes=(*image.notes, f"made smaller ({resize})"),
    )


def is_resized_otherwise(target: str, resize: Resize | None) -> bool:
    """Whether the L3 file `target` has not the size that `resize` gives its original, or is damaged. Raises OSError."""
    try:
        with open_regular(target) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            info = peek(data)
            statement = _STATEMENT.fullmatch(read_metadata(data).get(METADATA_KEY, b""))
    except L3Error:
        return True
    if not statement:
        return resize is not None and resize.size(info.width, info.height) != (info.width, info.height)
    width, height, filter = int(statement[1]), int(statement[2]), statement[3].decode()
    return resize is None or (*resize.size(width, height), resize.filter) != (info.width, info.height, filter)


def resample(pixels: np.ndarray, width: int, height: int, filter: Filter) -> np.ndarray:
    """Resamples pixels, (H, W) or (H, W, C), C = 1 … 4, uint8 or uint16, to (height, width) or (height, width, C).

    With two or four channels the last is alpha, by which colours are weighted.
    """
    if filter == "nearest":
        rows, columns = (_nearest(old, new) for old, new in zip(pixels.shape, (height, width), strict=False))
        return np.ascontiguousarray(pixels[rows[:, None], columns])
    shape = (height, width, *pixels.shape[2:])
    if pixels.dtype == np.uint8 and shape[2:] in ((), (3,)):
        return np.array(Image.fromarray(pixels).resize((width, height), Image.Resampling.LANCZOS))
    return _resample_in_floats(pixels.reshape(*pixels.shape[:2], -1), width, height).reshape(shape)


def _resample_in_floats(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    """For 16 bits, of which Pillow takes no colours, and alpha, where it loses a bit or two. pixels: (H, W, C)"""
    weights = pixels[:, :, -1].astype(np.float32) if pixels.shape[2] in (2, 4) else np.float32(1)
    total = _resample_plane(np.broadcast_to(weights, pixels.shape[:2]), width, height)
    resized = np.empty((height, width, pixels.shape[2]), pixels.dtype)
    for channel in range(pixels.shape[2]):
        if weights.ndim and channel == pixels.shape[2] - 1:
            samples = total
        else:
            samples = _resample_plane(pixels[:, :, channel] * weights, width, height)
            samples = np.divide(samples, total, out=np.zeros_like(samples), where=total > 0)
        resized[:, :, channel] = np.clip(np.rint(samples), 0, np.iinfo(pixels.dtype).max)
    return resized


def _resample_plane(plane: np.ndarray, width: int, height: int) -> np.ndarray:
    image = Image.fromarray(np.ascontiguousarray(plane, np.float32))
    return np.array(image.resize((width, height), Image.Resampling.LANCZOS))


def _nearest(old: int, new: int) -> np.ndarray:
    """For each new place the old one that is in its middle."""
    middles: np.ndarray = (2 * np.arange(new) + 1) * old // (2 * new)
    return middles
