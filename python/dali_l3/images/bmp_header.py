"""The headers of BMP files, in all versions: of Windows (12, 40, 52, 56, 108, 124 bytes) and OS/2 (12, 16, 64)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from .stored import DamagedImageError, ImageError

PLAIN, RLE8, RLE4 = "plain", "RLE8 compression", "RLE4 compression"
_MASKS, _MASKS_WITH_ALPHA = "bit masks", "bit masks with alpha"
_COMPRESSIONS = {0: PLAIN, 1: RLE8, 2: RLE4, 3: _MASKS, 4: "JPEG", 5: "PNG", 6: _MASKS_WITH_ALPHA}
_COMPRESSIONS_OF_OS2 = {0: PLAIN, 1: RLE8, 2: RLE4, 3: "Huffman 1D", 4: "RLE24"}
_CMYK = (11, 12, 13)
_BITS = {
    PLAIN: (1, 2, 4, 8, 16, 24, 32),
    RLE8: (8,),
    RLE4: (4,),
    _MASKS: (16, 24, 32),
    _MASKS_WITH_ALPHA: (16, 24, 32),
}
_OS2_SIZES = (16, 64)
_MASKS_AT = 54  # whether they are part of the header or follow it
USUAL_MASKS = {16: (0x7C00, 0x3E0, 0x1F, 0), 24: (0xFF0000, 0xFF00, 0xFF, 0), 32: (0xFF0000, 0xFF00, 0xFF, 0)}


def damaged(what: str) -> ImageError:
    return DamagedImageError(f"damaged BMP file: {what}")


@dataclass(frozen=True)
class BmpHeader:
    """The contents of the headers of a BMP file that can be read.

    compression: PLAIN, RLE8 or RLE4
    bits: of a pixel: 1, 2, 4 or 8, the number of an entry in the palette; or 16, 24 or 32
    masks: of 16 bits and more: which bits are red, green, blue and alpha; 0 where there is no alpha
    pixels_at, palette_at: offsets in the file
    palette_size, entry_size: how many entries, and how many bytes in each: blue, green, red, perhaps one to be ignored
    notes: what is odd
    fields: the second header (the one of the image), filled up to 124 bytes with zeros
    """

    width: int
    height: int
    is_top_down: bool
    compression: str
    bits: int
    masks: tuple[int, ...]
    pixels_at: int
    palette_at: int
    palette_size: int
    entry_size: int
    fields: bytes
    notes: list[str]


def parse(data: bytes) -> BmpHeader:
    """Raises ImageError for damage, and for kinds of BMP that are not read."""
    pixels_at, size = struct.unpack_from("<II", data[:18].ljust(18, b"\0"), 10)
    if len(data) < max(18, 14 + size):
        raise damaged("it ends within its header")
    fields = data[14 : 14 + size].ljust(124, b"\0")
    if size == 12:
        width, height, planes, bits = struct.unpack_from("<HHHH", fields, 4)
        code = colours = 0
    else:
        width, height, planes, bits, code, colours = struct.unpack_from("<iiHHI12xI", fields, 4)
    compression = _compression(size, code)
    if planes > 1:
        raise ImageError(f"BMP of {planes} planes is not supported")
    if bits not in _BITS[compression]:
        kind = "" if compression == PLAIN else f" and {compression}"
        raise ImageError(f"BMP with {bits} bits a pixel{kind} is not supported")
    if height < 0 and compression in (RLE8, RLE4):
        raise ImageError(f"BMP with {compression} from the top down is not supported")

    masks, palette_at = USUAL_MASKS.get(bits, ()), 14 + size
    if compression in (_MASKS, _MASKS_WITH_ALPHA):
        number = 4 if size >= 56 or compression == _MASKS_WITH_ALPHA else 3
        palette_at = max(palette_at, _MASKS_AT + 4 * number)
        masks = struct.unpack("<4I", data[_MASKS_AT : _MASKS_AT + 4 * number].ljust(16, b"\0"))
        compression = PLAIN
    entry_size = 3 if size == 12 else 4
    ignores_palette = bits <= 8 and pixels_at == palette_at
    if ignores_palette:  # as some writers do; without a palette the pixels would mean nothing
        pixels_at += entry_size * (colours or 1 << bits)
    if pixels_at < palette_at:
        raise damaged("its pixels start within its header")
    if pixels_at >= len(data):
        raise damaged("its pixels start beyond its end")
    # Some writers leave the number out, or announce more entries than they write.
    palette_size = min(colours or 256, 1 << min(bits, 8), (pixels_at - palette_at) // entry_size)
    rows = abs(height), height < 0
    places = pixels_at, palette_at, palette_size, entry_size
    notes = ["pixels read from behind the palette, though the header places them inside it"] if ignores_palette else []
    return BmpHeader(width, *rows, compression, bits, masks, *places, fields, notes)


def _compression(size: int, code: int) -> str:
    if code in _CMYK:
        raise ImageError("CMYK colours: convert to RGB first, with the right colour profile")
    name = (_COMPRESSIONS_OF_OS2 if size in _OS2_SIZES else _COMPRESSIONS).get(code, f"unknown ({code})")
    if name in ("JPEG", "PNG"):
        raise ImageError(f"BMP with a {name} file inside is not supported: extract it first")
    if name not in _BITS:
        raise ImageError(f"BMP with {name} compression is not supported")
    return name
