"""JPEG files made byte by byte, whose pixels are known without a decoder."""

from __future__ import annotations

import struct

import numpy as np

SOI, EOI = b"\xff\xd8", b"\xff\xd9"
SOF0, SOF2, DHT, SOS, DQT, DNL, DRI, COM = 0xC0, 0xC2, 0xC4, 0xDA, 0xDB, 0xDC, 0xDD, 0xFE
APP0, APP1, APP2, APP13, APP14 = 0xE0, 0xE1, 0xE2, 0xED, 0xEE
JFIF = b"JFIF\0\1\1\0\0\1\0\1\0\0"

_DC_TABLE = bytes((0, 0, 0, 0, 12, *bytes(12), *range(12)))  # 12 sizes of differences, each with a code of 4 bits
_AC_TABLE = bytes((0x10, 1, *bytes(15), 0))  # nothing but the end of a block, which is the bit 0


def segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, 2 + len(body)) + body


def adobe(transform: int) -> bytes:
    return segment(APP14, b"Adobe\0\x64\0\0\0\0" + bytes((transform,)))


def frame(width, height, samplings=((1, 1),), precision=8, ids=(1, 2, 3, 4), marker=SOF0) -> bytes:
    parts = b"".join(bytes((number, h << 4 | v, 0)) for number, (h, v) in zip(ids, samplings, strict=False))
    return segment(marker, struct.pack(">BHHB", precision, height, width, len(samplings)) + parts)


def scan(ids, data: bytes, parameters=(0, 63, 0)) -> bytes:
    header = bytes((len(ids), *(byte for number in ids for byte in (number, 0)), *parameters))
    return segment(SOS, header) + data


QUANTISATION = segment(DQT, b"\0" + b"\x08" * 64)  # so that a block's first coefficient is its gray minus 128
HUFFMAN = segment(DHT, _DC_TABLE) + segment(DHT, _AC_TABLE)
TABLES = QUANTISATION + HUFFMAN


def flat_blocks(components, samplings=((1, 1),), restart: int = 0, bits: str = "") -> bytes:
    """Compressed data of blocks that are each of one value.

    components: for each, uint8, (rows of blocks, columns of blocks)
    restart: after how many MCUs a restart marker comes; 0: never
    bits: to be added at the end
    """
    last, parts = [128] * len(components), []
    rows, columns = components[0].shape[0] // samplings[0][1], components[0].shape[1] // samplings[0][0]
    text = ""
    for number in range(rows * columns):
        if restart and number and number % restart == 0:
            parts.append(_padded(text) + bytes((0xFF, 0xD0 + (number // restart - 1) % 8)))
            last, text = [128] * len(components), ""
        y, x = divmod(number, columns)
        for index, (values, (h, v)) in enumerate(zip(components, samplings, strict=True)):
            for value in values[y * v : (y + 1) * v, x * h : (x + 1) * h].ravel().tolist():
                text += _block(value - last[index])
                last[index] = value
    return b"".join(parts) + _padded(text + bits)


def _block(difference: int) -> str:
    size = abs(difference).bit_length()
    low = difference if difference >= 0 else difference + (1 << size) - 1
    return f"{size:04b}" + (f"{low:0{size}b}" if size else "") + "0"


def _padded(text: str) -> bytes:
    text += "1" * (-len(text) % 8)
    return b"".join(bytes((int(text[i : i + 8], 2),)) for i in range(0, len(text), 8)).replace(b"\xff", b"\xff\0")


def gray_jpeg(values, before=b"", between=b"", data=None, after=b"", **options) -> bytes:
    """A JPEG of gray blocks of 8 x 8 pixels, `values`, (rows, columns) of blocks.

    before: segments after the start; between: what stands before the scan; data: the compressed data instead of that of
    the values; after: what follows the end
    """
    rows, columns = values.shape
    data = flat_blocks([values], **options) if data is None else data
    head = SOI + before + TABLES + frame(8 * columns, 8 * rows) + between
    return head + scan((1,), data) + EOI + after


def colour_jpeg(components, before=b"", samplings=((1, 1),) * 3, ids=(1, 2, 3), size=None) -> bytes:
    """A JPEG of blocks of 8 x 8 pixels of three components, or another number.

    size: width and height, if not those of the blocks of the first component
    """
    rows, columns = components[0].shape
    width, height = size or (8 * columns, 8 * rows)
    head = SOI + before + TABLES + frame(width, height, samplings, ids=ids)
    return head + scan(ids, flat_blocks(components, samplings)) + EOI


def pixels_of(values: np.ndarray, size: int = 8) -> np.ndarray:
    """The pixels of blocks that are each of one value."""
    return values.repeat(size, 0).repeat(size, 1)
