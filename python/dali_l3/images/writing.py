"""One image to the bytes of a file in any format, or to a file, which is proven before it gets its name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import ConversionError
from ..files import write_atomically
from .formats import Format


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


def encode_image(pixels: np.ndarray, metadata: Mapping[str, bytes], format: Format) -> bytes:
    """Encodes `pixels`, (H, W) or (H, W, C) with C = 1 … 4, uint8 or uint16, and the metadata that the format keeps.

    Raises ConversionError if the format cannot hold the pixels, L3Error if its encoder refuses them.
    """
    obstacle = format.obstacle(pixels)
    if obstacle:
        raise ConversionError(f"not representable in {format.name} ({obstacle})")
    return format.encode(_as_held(pixels, format), format.storable(metadata))


def write_image(
    path: str, pixels: np.ndarray, metadata: Mapping[str, bytes], format: Format, mtime_ns: int | None = None
) -> Written:
    """Writes what `encode_image` returns to `path`, replacing what is there.

    The file gets its name only after it decoded to the same pixels (of a lossy format: to the same shape and dtype)
    and to the metadata that the format keeps.

    mtime_ns: the time of modification that the file shall bear

    Raises ConversionError if it does not, or if the format cannot hold the pixels, L3Error if the encoder refuses them,
    OSError.
    """
    encoded = encode_image(pixels, metadata, format)
    pixels, kept = _as_held(pixels, format), format.storable(metadata)
    psnr = None

    def check(written: bytes) -> None:
        nonlocal psnr
        decoded, decoded_metadata = format.decode(written)
        same = (decoded.shape, decoded.dtype, decoded_metadata) == (pixels.shape, pixels.dtype, kept)
        if not same or not (format.lossy or np.array_equal(decoded, pixels)):
            raise ConversionError("the file that was written does not decode to the same image; please report this")
        psnr = peak_signal_to_noise(decoded, pixels) if format.lossy else None

    write_atomically(path, encoded, check, mtime_ns)
    notes = tuple(
        f"metadata {key!r} has no place in a {format.signature} file and was left out"
        for key in metadata
        if key not in kept
    )
    return Written(len(encoded), psnr, notes)


def peak_signal_to_noise(decoded: np.ndarray, pixels: np.ndarray) -> float | None:
    """The peak signal-to-noise ratio of uint8 pixels, all channels together, in dB; None if they are equal."""
    squares = (np.square(np.subtract(*rows, dtype=np.int32)).sum() for rows in zip(decoded, pixels, strict=True))
    error = sum(map(int, squares))
    return 10 * math.log10(255**2 * pixels.size / error) if error else None


def _as_held(pixels: np.ndarray, format: Format) -> np.ndarray:
    """The same pixels, (H, W) for (H, W, 1) in other formats than L3, which alone tells one from the other."""
    return pixels[:, :, 0] if pixels.shape[2:] == (1,) and format.signature != "L3" else pixels
