"""TIFF files made byte by byte, with everything that tells one from another, right or wrong.

A page is made of samples with `page`, changed as a test likes, and written with `tiff_file`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

BYTE, ASCII, SHORT, LONG, RATIONAL, UNDEFINED, SIGNED_SHORT, LONG8 = 1, 2, 3, 4, 5, 7, 8, 16
_CODES = {BYTE: "B", ASCII: "B", SHORT: "H", LONG: "I", RATIONAL: "I", UNDEFINED: "B", SIGNED_SHORT: "h", LONG8: "Q"}

SUBFILE, WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, FILL_ORDER = 254, 256, 257, 258, 259, 262, 266
DESCRIPTION, STRIP_OFFSETS, ORIENTATION, SAMPLES, ROWS_PER_STRIP, STRIP_SIZES = 270, 273, 274, 277, 278, 279
PLANAR, PREDICTOR, COLOUR_MAP, TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_SIZES = 284, 317, 320, 322, 323, 324, 325
SUB_DIRECTORIES, EXTRA_SAMPLES, SAMPLE_FORMAT, JPEG_TABLES, XMP, ICC, EXIF, GPS = (
    330,
    338,
    339,
    347,
    700,
    34675,
    34665,
    34853,
)


@dataclass
class Page:
    """A directory, and what belongs to it.

    tags: type and values of each, numbers or bytes, and perhaps a number of values that is not theirs
    segments: the data of its strips or tiles
    below: the directories to which its tag SubIFDs points
    groups: those to which other tags point
    """

    tags: dict[int, tuple]
    segments: list[bytes] = field(default_factory=list)
    below: list[Page] = field(default_factory=list)
    groups: dict[int, Page] = field(default_factory=dict)


def short(*values: int):
    return SHORT, values


def tiff(samples: np.ndarray, order: str = "<", big: bool = False, **options) -> bytes:
    """A file of one page. options: as `page` has them."""
    return tiff_file([page(samples, order=order, **options)], order, big)


def page(
    samples: np.ndarray,
    bits: int = 8,
    photometric: int | None = 1,
    *,
    order: str = "<",
    planar: bool = False,
    extra: Sequence[int] | None = None,
    rows_per_strip: int | None = None,
    tile: tuple[int, int] | None = None,
    fill_order: int = 1,
    predictor: int = 1,
    compression: int = 1,
    encode: Callable[[bytes], bytes] | None = None,
    palette: np.ndarray | None = None,
    tags: dict | None = None,
) -> Page:
    """A page of `samples`, (H, W, C), in the range of `bits`.

    extra: values of ExtraSamples. tile: (width, height). palette: (entries, 3), 16 bits. encode: for compressions that
    are not in ENCODERS. tags: further ones, or others than those written by default; None removes one.
    """
    height, width, channels = samples.shape
    encode = encode or ENCODERS[compression]
    segments = []
    tile_width, tile_height = tile or (width, rows_per_strip or height)
    for plane in np.split(samples, channels, axis=2) if planar else [samples]:
        for top in range(0, height, tile_height):
            for left in range(0, width, tile_width):
                part = plane[top : top + tile_height, left : left + tile_width]
                if tile:
                    margin = (tile_height - part.shape[0], tile_width - part.shape[1])
                    part = np.pad(part, ((0, margin[0]), (0, margin[1]), (0, 0)), mode="edge")
                data = encode(_rows(part, bits, order, predictor))
                segments.append(reverse_bits(data) if fill_order == 2 else data)
    written = {
        WIDTH: (LONG, (width,)),
        HEIGHT: (LONG, (height,)),
        BITS: short(*(bits,) * channels),
        COMPRESSION: short(compression),
        PHOTOMETRIC: None if photometric is None else short(photometric),
        FILL_ORDER: short(fill_order) if fill_order != 1 else None,
        SAMPLES: short(channels),
        PLANAR: short(2 if planar else 1),
        PREDICTOR: short(predictor) if predictor != 1 else None,
        COLOUR_MAP: None if palette is None else short(*palette.T.ravel().tolist()),
        EXTRA_SAMPLES: None if extra is None else short(*extra),
        ROWS_PER_STRIP: None if tile else (LONG, (tile_height,)),
        TILE_WIDTH: (LONG, (tile_width,)) if tile else None,
        TILE_HEIGHT: (LONG, (tile_height,)) if tile else None,
        **(tags or {}),
    }
    return Page({tag: value for tag, value in written.items() if value is not None}, segments)


def _rows(samples: np.ndarray, bits: int, order: str, predictor: int) -> bytes:
    """Rows, each padded to bytes; with predictor 2 every sample less its left neighbour."""
    if predictor == 2:
        samples = samples.astype(np.int64)
        samples = np.concatenate([samples[:, :1], np.diff(samples, axis=1)], axis=1) % (1 << bits)
    if bits == 16:
        return samples.astype(order + "u2").tobytes()
    return b"".join(pack(row.ravel().tolist(), bits) for row in samples)


def pack(values: Sequence[int], bits: int) -> bytes:
    """Numbers of so many bits, the first in the highest, padded with zeros to bytes."""
    return pack_codes([(value, bits) for value in values])


def reverse_bits(data: bytes) -> bytes:
    return bytes(int(f"{byte:08b}"[::-1], 2) for byte in data)


# ---- Compressions ----------------------------------------------------------------------------------------------------


def packbits(data: bytes) -> bytes:
    """Runs of equal bytes, and what is between them as it is."""
    encoded, i = b"", 0
    while i < len(data):
        run = 1
        while run < 128 and data[i : i + 1] * (run + 1) == data[i : i + run + 1]:
            run += 1
        if run > 1:
            encoded += bytes([257 - run, data[i]])
            i += run
        else:
            end = i + 1
            while end < len(data) and end - i < 128 and data[end : end + 1] != data[end - 1 : end]:
                end += 1
            encoded += bytes([end - i - 1]) + data[i:end]
            i = end
    return encoded


def lzw(data: bytes, end: bool = True, old: bool = False) -> bytes:
    """LZW as TIFF has it: codes of 9 to 12 bits, of which the width grows one code early.

    end: with the code for it. old: as writers before TIFF 6.0 had it: the width grows one code later, and the lowest
        bits come first
    """
    codes, width, prefix = [(256, 9)], 9, b""
    table, following = {bytes([i]): i for i in range(256)}, 258
    for byte in data:
        longer = prefix + bytes([byte])
        if longer in table:
            prefix = longer
            continue
        codes.append((table[prefix], width))
        table[longer] = following
        following += 1
        if following == 4095:
            codes.append((256, width))
            table, following, width = {bytes([i]): i for i in range(256)}, 258, 9
        elif following == (1 << width) + old:
            width += 1
        prefix = bytes([byte])
    if prefix:
        codes.append((table[prefix], width))
        following += 1
        width += following == (1 << width) + old
    return pack_codes([*codes, *[(257, width)] * end], old)


def pack_codes(codes: Sequence[tuple[int, int]], lowest_first: bool = False) -> bytes:
    """Codes, each with its number of bits, padded with zeros to bytes."""
    if not lowest_first:
        text = "".join(f"{code:0{width}b}" for code, width in codes)
        text += "0" * (-len(text) % 8)
        return int("1" + text, 2).to_bytes(len(text) // 8 + 1, "big")[1:]
    text = "".join(f"{code:0{width}b}" for code, width in reversed(codes))
    return int(text, 2).to_bytes(-(-len(text) // 8), "little")


NONE, CCITT_RLE, CCITT_3, CCITT_4, LZW, OLD_JPEG, JPEG, DEFLATE = range(1, 9)
PACKBITS, OLD_DEFLATE, JPEG_2000, PNG, LZMA, ZSTD, WEBP, JPEG_XL = (
    32773,
    32946,
    34712,
    34933,
    34925,
    50000,
    50001,
    50002,
)
ENCODERS = {NONE: bytes, PACKBITS: packbits, LZW: lzw, DEFLATE: zlib.compress, OLD_DEFLATE: zlib.compress}


# ---- Files -----------------------------------------------------------------------------------------------------------


def tiff_file(pages: list[Page], order: str = "<", big: bool = False, last_link: int = 0) -> bytes:
    """A file of pages. last_link: what the last directory gives as the place of the next one."""
    mark = b"II" if order == "<" else b"MM"
    start = 16 if big else 8
    body = _Body(order, big, start)
    first = body.chain(pages, last_link)
    head = struct.pack(order + "HHHQ", 43, 8, 0, first) if big else struct.pack(order + "HI", 42, first)
    return mark + head + bytes(body.data)


class _Body:
    def __init__(self, order: str, big: bool, start: int):
        self.order, self.big, self.start, self.data = order, big, start, bytearray()

    def add(self, data: bytes) -> int:
        """Appends, and returns the place in the file."""
        self.data += bytes(len(self.data) % 2)
        self.data += data
        return self.start + len(self.data) - len(data)

    def chain(self, pages: list[Page], last_link: int = 0) -> int:
        """Directories linked from the last to the first; the place of the first."""
        link = last_link
        for one in reversed(pages):
            link = self.directory(one, link)
        return link

    def directory(self, page: Page, link: int) -> int:
        tags = dict(page.tags)
        if page.segments:
            tiled = TILE_WIDTH in tags
            places = tuple(self.add(segment) for segment in page.segments)
            tags.setdefault(TILE_OFFSETS if tiled else STRIP_OFFSETS, (LONG8 if self.big else LONG, places))
            tags.setdefault(TILE_SIZES if tiled else STRIP_SIZES, (LONG, tuple(map(len, page.segments))))
        if page.below:
            tags[SUB_DIRECTORIES] = (LONG, tuple(self.directory(one, 0) for one in page.below))
        for tag, group in page.groups.items():
            tags[tag] = (LONG, (self.directory(group, 0),))
        entries = b"".join(self.entry(tag, *tags[tag]) for tag in sorted(tags))
        count, link_format = ("Q", "Q") if self.big else ("H", "I")
        table = struct.pack(self.order + count, len(tags)) + entries + struct.pack(self.order + link_format, link)
        return self.add(table)

    def entry(self, tag: int, kind: int, values: Sequence[int] | bytes, claimed: int | None = None) -> bytes:
        data = values if isinstance(values, bytes) else struct.pack(f"{self.order}{len(values)}{_CODES[kind]}", *values)
        if claimed is None:
            claimed = len(data) // (8 if kind == RATIONAL else struct.calcsize("=" + _CODES[kind]))
        inline, offset_format = (8, "Q") if self.big else (4, "I")
        place = data.ljust(inline, b"\0")
        if len(data) > inline:
            place = struct.pack(self.order + offset_format, self.add(data))
        return struct.pack(self.order + "HH" + offset_format, tag, kind, claimed) + place
