"""The options, the result and the errors that the readers of all formats share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from .. import _core
from ..errors import ConversionError
from . import DEFAULT_MAX_PIXELS

MAX_METADATA = _core.MAX_METADATA
"""Bytes: the limit of the L3 format for all metadata of a file."""


PALETTE_EXPANDED = "palette expanded to RGB; --palette index keeps the numbers"
PALETTE_DROPPED = "palette dropped, the numbers of its entries kept"
"""The notes of every format about palettes."""

Palette = Literal["rgb", "index"]

_STRIP = 1 << 18


class ImageError(ConversionError):
    """A file cannot be read exactly; the message says why."""


class DamagedImageError(ImageError):
    """A file does not follow its format: it is truncated, was changed, or was never valid."""


class ColourError(ImageError):
    """A JPEG file has colours that cannot be kept exactly, although decoders show them somehow."""


class OversizeError(ImageError):
    """An image has more pixels than the options allow."""


@dataclass(frozen=True)
class ReadOptions:
    """How to read an image.

    max_pixels: images with more pixels are refused before they are decoded
    palette: for images with a palette: "rgb" keeps the colours, "index" keeps the numbers of the palette entries as
        gray, uint8 or uint16 (for masks whose numbers are labels)
    page: for files with several pages: the page to read, from 0, or "first", with a note. None: such files are
        refused
    reserve: called once before pixels are decoded, with their size in bytes; may wait until there is memory
    """

    max_pixels: int = DEFAULT_MAX_PIXELS
    palette: Palette = "rgb"
    page: int | Literal["first"] | None = None
    reserve: Callable[[int], None] | None = None


DEFAULT_OPTIONS = ReadOptions()


@dataclass
class StoredImage:
    """An image as its file stores it.

    pixels: (H, W) or (H, W, C), C = 1 … 4, uint8 or uint16, native byte order; not turned upright
    icc, exif, xmp: metadata as stored, empty where there is none
    orientation: 1 … 8, of formats that keep it outside their EXIF data
    notes: sentences about what was changed or left out
    """

    pixels: np.ndarray
    icc: bytes = b""
    exif: bytes = b""
    xmp: bytes = b""
    orientation: int = 1
    notes: list[str] = field(default_factory=list)


def admit(width: int, height: int, bytes_per_pixel: int, options: ReadOptions) -> None:
    """To be called before pixels are decoded: checks their number, and reserves memory for them.

    Raises ImageError for an image without pixels, or with more than the options allow.
    """
    if width < 1 or height < 1:
        raise ImageError(f"an image of {width} x {height} pixels has nothing to convert")
    if width * height > options.max_pixels:
        raise OversizeError(f"{width} x {height} pixels exceed the limit of {options.max_pixels} pixels")
    if options.reserve:
        options.reserve(width * height * bytes_per_pixel)


def strips(height: int, row_size: int) -> Iterator[slice]:
    """Yields the rows of an image in strips of about 256 KiB, for what needs further copies of its pixels.

    row_size: bytes in a row
    """
    step = max(1, _STRIP // row_size)
    for top in range(0, height, step):
        yield slice(top, min(top + step, height))
