"""BMP files made byte by byte."""

from __future__ import annotations

import struct

import numpy as np

PLAIN, RLE8, RLE4, MASKS, MASKS_WITH_ALPHA = 0, 1, 2, 3, 6


def bmp(
    rows: np.ndarray | bytes,
    bits: int,
    *,
    palette: np.ndarray | tuple = (),
    masks: tuple[int, ...] = (),
    size: int | None = None,
    shape: tuple[int, int] | None = None,
    top_down: bool = False,
    compression: int | None = None,
    colours: int | None = None,
    start: int | None = None,
    gap: bytes = b"",
    planes: int = 1,
    tail: bytes = b"",
    after: bytes = b"",
) -> bytes:
    """A BMP file.

    rows: (H, W) values of so many bits, or the bytes of the pixels
    palette: (N, 3) RGB
    size: of the header
    shape: height and width, if not those of the rows
    compression: a number; MASKS where there are masks, and otherwise PLAIN, if not given
    colours: the number of colours that the header announces
    start: where the header says that the pixels start, if not where they do
    gap: bytes between palette and pixels
    tail: the end of the header, after the masks
    after: bytes after the pixels
    """
    size = size or (56 if len(masks) == 4 and compression != MASKS_WITH_ALPHA else 40)
    height, width = shape or rows.shape
    if compression is None:
        compression = MASKS if masks else PLAIN
    if not isinstance(rows, bytes):
        order = rows if top_down else rows[::-1]
        rows = b"".join(pack_row(row.tolist(), bits) for row in order)
    if size == 12:
        header = struct.pack("<IHHHH", size, width, height, planes, bits)
    else:
        lines = -height if top_down else height
        announced = len(palette) if colours is None else colours
        header = struct.pack("<IiiHHI12xII", size, width, lines, planes, bits, compression, announced, 0)
        header += struct.pack(f"<{len(masks)}I", *masks) + tail
        header = header[:size] if size == 16 else header.ljust(size, b"\0")
    entries = b"".join(bytes((int(b), int(g), int(r))) + b"\0" * (size != 12) for r, g, b in palette)
    begin = 14 + len(header) + len(entries) + len(gap)
    file = struct.pack("<2sIHHI", b"BM", begin + len(rows), 0, 0, begin if start is None else start)
    return file + header + entries + gap + rows + after


def pack_row(values: list[int], bits: int) -> bytes:
    """One row: below 8 bits the first value is in the highest bits of a byte; wider ones are little-endian."""
    if bits < 8:
        text = "".join(f"{value:0{bits}b}" for value in values)
        text += "0" * (-len(text) % 8)
        line = bytes(int(text[at : at + 8], 2) for at in range(0, len(text), 8))
    else:
        line = b"".join(value.to_bytes(bits // 8, "little") for value in values)
    return line + b"\0" * (-len(line) % 4)
