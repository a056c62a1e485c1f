"""Converts one L3 file back to PNG."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Mapping

import imagecodecs
import numpy as np

from ..codec import decode, read_metadata
from .files import write_atomically
from .outcomes import ConversionError, Outcome, Status, Task, reporting
from .planning import Direction
from .signatures import HEAD_SIZE, sniff

_IHDR_END = 8 + 12 + 13  # the signature, the frame of the header chunk, its body


def _refusal(path: str, name: str | None) -> tuple[Status, str] | None:
    if name == "L3":
        return None
    if os.path.splitext(path)[1].lower() in TO_PNG.source_suffixes:
        return "failed", "named like an L3 file, but the content is not one"
    return "skipped", "not an L3 file"


TO_PNG = Direction(suffix=".png", format="PNG", source_suffixes=frozenset({".l3"}), refusal=_refusal)


@reporting
def export_file(task: Task, level: int = 6) -> Outcome:
    """Converts `task.source`. The target gets its name only after it decoded to the same pixels.

    level: zlib's compression level, 0 … 9.
    """
    with open(task.source, "rb") as file:
        head = file.read(HEAD_SIZE)
        refusal = _refusal(task.source, sniff(head))
        if refusal:
            return Outcome(task.source, task.target, *refusal)
        data = head + file.read()
    pixels = decode(data, verify=True)
    metadata = read_metadata(data)
    png = encode_png(pixels, metadata, level)

    def check(written: bytes) -> None:
        decoded = imagecodecs.png_decode(written)
        if decoded.dtype != pixels.dtype or not np.array_equal(decoded, _without_single_channel(pixels)):
            raise ConversionError("the PNG that was written does not decode to the same image; please report this")

    write_atomically(task.target, png, check)
    notes = tuple(
        f"metadata {key!r} has no place in a PNG and was left out" for key in metadata if key not in _PNG_CHUNKS
    )
    return Outcome(
        task.source, task.target, "done", "", notes, source_size=len(data), target_size=len(png), raw_size=pixels.nbytes
    )


def encode_png(pixels: np.ndarray, metadata: Mapping[str, bytes], level: int = 6) -> bytes:
    """Encodes `pixels`, (H, W) or (H, W, C) with C = 1 … 4, uint8 or uint16, as gray, gray and alpha, RGB or RGBA.

    metadata: `icc` becomes the PNG's iCCP chunk and `exif` its eXIf chunk; other keys have no place in a PNG.
    """
    png = imagecodecs.png_encode(np.ascontiguousarray(_without_single_channel(pixels)), level=level)
    chunks = b"".join(_PNG_CHUNKS[key](value) for key, value in metadata.items() if key in _PNG_CHUNKS)
    return png[:_IHDR_END] + chunks + png[_IHDR_END:]


def _without_single_channel(pixels: np.ndarray) -> np.ndarray:
    """PNG does not tell (H, W, 1) from (H, W)."""
    return pixels[:, :, 0] if pixels.shape[2:] == (1,) else pixels


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


_PNG_CHUNKS = {
    "icc": lambda profile: _chunk(b"iCCP", b"ICC profile\x00\x00" + zlib.compress(profile)),
    "exif": lambda exif: _chunk(b"eXIf", exif),
}
