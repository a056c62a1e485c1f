"""Writes one image in any format, and proves what was written before the file gets its name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .files import write_atomically
from .formats import Format
from .outcomes import ConversionError


@dataclass(frozen=True)
class Written:
    """What `write_image` wrote.

    size: bytes of the file
    psnr: of a lossy format, the peak signal-to-noise ratio in dB; None where the pixels are exact
    notes: what was left out, a sentence each
    """

    size: int
    psnr: float | None
    notes: tuple[str, ...]


def write_image(path: str, pixels: np.ndarray, metadata: Mapping[str, bytes], format: Format) -> Written:
    """Writes `pixels`, (H, W) or (H, W, C) with C = 1 … 4, uint8 or uint16, to `path`, replacing what is there.

    The file gets its name only after it decoded to the same pixels (of a lossy format: to the same shape and dtype)
    and to the metadata that the format keeps.

    Raises ConversionError if it does not, L3Error if the encoder refuses, OSError.
    """
    if format.signature != "L3":
        pixels = _without_single_channel(pixels)
    kept = format.storable(metadata)
    encoded = format.encode(pixels, kept)
    psnr = None

    def check(written: bytes) -> None:
        nonlocal psnr
        decoded, decoded_metadata = format.decode(written)
        same = (decoded.shape, decoded.dtype, decoded_metadata) == (pixels.shape, pixels.dtype, kept)
        if not same or not (format.lossy or np.array_equal(decoded, pixels)):
            raise ConversionError("the file that was written does not decode to the same image; please report this")
        psnr = _psnr(decoded, pixels) if format.lossy else None

    write_atomically(path, encoded, check)
    notes = tuple(
        f"metadata {key!r} has no place in a {format.signature} file and was left out"
        for key in metadata
        if key not in kept
    )
    return Written(len(encoded), psnr, notes)


def _without_single_channel(pixels: np.ndarray) -> np.ndarray:
    """The same pixels, (H, W) for (H, W, 1): only L3 tells one from the other."""
    return pixels[:, :, 0] if pixels.shape[2:] == (1,) else pixels


def _psnr(decoded: np.ndarray, pixels: np.ndarray) -> float | None:
    """Of 8-bit pixels, in dB; None if they are equal."""
    squares = (np.square(np.subtract(*rows, dtype=np.int32)).sum() for rows in zip(decoded, pixels, strict=True))
    error = sum(map(int, squares))
    return 10 * math.log10(255**2 * pixels.size / error) if error else None
