"""One image to the bytes of a file in any format, or to a file, which is verified before it gets its name."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import ConversionError
from ..files import write_atomically
from .formats import Format

_BLOCK = 1 << 20  # bytes


@dataclass(frozen=True)
class Written:
    """The result of `write_image`.

    size: bytes of the file
    psnr: for a lossy format, the peak signal-to-noise ratio in dB; None if the pixels are exact
    notes: what was left out, a sentence each
    """

    size: int
    psnr: float | None
    notes: tuple[str, ...]


def encode_image(pixels: np.ndarray, metadata: Mapping[str, bytes], format: Format) -> bytes:
    """Encodes `pixels`, (H, W) or (H, W, C) with C = 1 … 4, uint8 or uint16, and the metadata that `format` can hold.

    Raises ConversionError if the format cannot hold the pixels, L3Error if its encoder refuses them.
    """
    unsupported = format.unsupported(pixels)
    if unsupported:
        raise ConversionError(f"not representable in {format.name} ({unsupported})")
    return format.encode(_as_held(pixels, format), format.storable(metadata))


@dataclass(frozen=True)
class Prepared:
    """An image as the bytes of a file that is yet to be written, and what proves them right.

    data: the bytes
    format: theirs
    metadata: the part of it that they hold
    notes: what was left out, a sentence each
    shape, dtype: of the pixels
    original: the pixels, or, where comparing them would take a third room of their size, their digest
    """

    data: bytes
    format: Format
    metadata: Mapping[str, bytes]
    notes: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    original: np.ndarray | bytes

    def write(self, path: str, mtime_ns: int | None = None) -> Written:
        """Writes the file, with the promises and errors of `write_image`."""
        psnr = self.prove()
        write_atomically(path, self.data, mtime_ns)
        return Written(len(self.data), psnr, self.notes)

    def prove(self) -> float | None:
        """Raises ConversionError if the bytes do not decode to the image; of a lossy format, returns the PSNR in dB."""
        if self.format.matches and isinstance(self.original, np.ndarray):
            same, psnr = self.format.matches(self.data, self.original, self.metadata), None
        else:
            decoded, metadata = self.format.decode(self.data)
            same, psnr = (decoded.shape, decoded.dtype, metadata) == (self.shape, self.dtype, self.metadata), None
            if same and isinstance(self.original, np.ndarray):
                psnr = peak_signal_to_noise(decoded, self.original)
            elif same:
                same = _digest(decoded) == self.original
        if not same:
            raise ConversionError("the encoded file does not decode to the same image; please report this")
        return psnr


def prepare_image(pixels: np.ndarray, metadata: Mapping[str, bytes], format: Format) -> Prepared:
    """Encodes as `encode_image` does, and keeps what proves the result; of most formats without the pixels.

    Whoever lets go of the pixels before writing needs room for them twice, not three times.
    """
    encoded = encode_image(pixels, metadata, format)
    pixels, kept = _as_held(pixels, format), format.storable(metadata)
    notes = tuple(
        f"metadata {key!r} has no place in a {format.signature} file and was left out"
        for key in metadata
        if key not in kept
    )
    original = pixels if format.matches or format.lossy else _digest(pixels)
    return Prepared(encoded, format, kept, notes, pixels.shape, pixels.dtype, original)


def write_image(
    path: str, pixels: np.ndarray, metadata: Mapping[str, bytes], format: Format, mtime_ns: int | None = None
) -> Written:
    """Writes what `encode_image` returns to `path`, replacing what is there.

    The file gets its name only after its bytes were read back and proven to decode to the same pixels (for a lossy
    format: to the same shape and dtype) and to the metadata that the format can hold.

    mtime_ns: the modification time of the file

    Raises ConversionError if they do not, or if the format cannot hold the pixels, L3Error if the encoder refuses them,
    TargetError if the file cannot be written.
    """
    return prepare_image(pixels, metadata, format).write(path, mtime_ns)


def _digest(pixels: np.ndarray) -> bytes:
    """So long that no two images that anybody meets share it."""
    digest = hashlib.blake2b()
    rows = max(_BLOCK * len(pixels) // pixels.nbytes, 1)
    for top in range(0, len(pixels), rows):
        digest.update(np.ascontiguousarray(pixels[top : top + rows]).data)
    return digest.digest()


def peak_signal_to_noise(decoded: np.ndarray, pixels: np.ndarray) -> float | None:
    """The peak signal-to-noise ratio of uint8 pixels, all channels together, in dB; None if they are equal."""
    squares = (np.square(np.subtract(*rows, dtype=np.int32)).sum() for rows in zip(decoded, pixels, strict=True))
    error = sum(map(int, squares))
    return 10 * math.log10(255**2 * pixels.size / error) if error else None


def _as_held(pixels: np.ndarray, format: Format) -> np.ndarray:
    """The same pixels, (H, W) for (H, W, 1) in other formats than L3, which alone tells one from the other."""
    return pixels[:, :, 0] if pixels.shape[2:] == (1,) and format.signature != "L3" else pixels
