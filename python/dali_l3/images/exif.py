"""The orientation in EXIF and XMP data, and how to apply it to pixels."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

import numpy as np

PREFIX = b"Exif\x00\x00"
"""What some formats put before the block; it carries no information."""

XMP_PREFIX = b"http://ns.adobe.com/xap/1.0/\x00"
"""What JPEG segments, and what copies them, put before XMP data."""

_ORIENTATION_TAG = 0x0112

_XMP_ORIENTATION = re.compile(rb"""(tiff:Orientation(?:\s*=\s*["']|>)\s*)([1-8])\b""")

_TRANSFORMS: dict[int, Callable[[np.ndarray], np.ndarray]] = {
    2: np.fliplr,
    3: lambda pixels: np.rot90(pixels, 2),
    4: np.flipud,
    5: lambda pixels: pixels.swapaxes(0, 1),
    6: lambda pixels: np.rot90(pixels, -1),
    7: lambda pixels: np.rot90(pixels, 2).swapaxes(0, 1),
    8: np.rot90,
}


def neutralise_orientation(exif: bytes) -> tuple[int, bytes]:
    """Reads the orientation and returns it with the same block in which it is 1 (upright).

    exif: a TIFF structure, with or without the prefix `Exif\\0\\0` (which is taken off).
    A missing, invalid or unreadable orientation counts as 1 and stays. Nothing else in the block changes. The first two
    bytes of the value count, whatever its type, as in DALI.
    """
    block = exif.removeprefix(PREFIX)
    order = {b"II*\x00": "<", b"MM\x00*": ">"}.get(block[:4])
    if order is None:
        return 1, block
    try:
        (directory,) = struct.unpack_from(order + "I", block, 4)
        (entries,) = struct.unpack_from(order + "H", block, directory)
        for position in range(directory + 2, directory + 2 + 12 * entries, 12):
            tag, value = struct.unpack_from(order + "H6xH", block, position)
            if tag == _ORIENTATION_TAG:
                upright = block[: position + 8] + struct.pack(order + "H", 1) + block[position + 10 :]
                return (value, upright) if value in _TRANSFORMS else (1, block)
    except struct.error:  # an offset points outside the block
        pass
    return 1, block


def neutralise_xmp_orientation(xmp: bytes) -> tuple[int, bytes]:
    """Reads the orientation in XMP data and returns it with the same data in which it is 1 (upright).

    A missing, invalid or unreadable orientation counts as 1. Nothing else changes.
    """
    match = _XMP_ORIENTATION.search(xmp)
    return (int(match[2]), _XMP_ORIENTATION.sub(rb"\g<1>1", xmp)) if match else (1, xmp)


def apply_orientation(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """Turns stored `pixels`, (H, W) or (H, W, C), upright; the result may be a view.

    orientation: 1 … 8 as EXIF defines it.
    """
    return _TRANSFORMS[orientation](pixels) if orientation != 1 else pixels
