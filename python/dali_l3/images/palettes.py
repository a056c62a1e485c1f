"""Finds out which images have a palette, without decoding them. `stored.ReadOptions` chooses what to keep of it."""

from __future__ import annotations

from ..codec import peek
from ..files import open_regular
from .signatures import sniff
from .stored import Palette
from .tiff import has_palette as has_tiff_palette

_PNG_PALETTE = 3  # colour type
_LONGEST_START = 14 + 124 + 4 * 256  # bytes, of a BMP with its palette


def is_read_otherwise(source: str, page: int | None, target: str, palette: Palette) -> bool:
    """Whether the L3 file `target`, made from `source`, was made with the other choice for palettes.

    That is, whether it holds colours where `palette`, of `stored.ReadOptions`, asks for numbers, or the reverse.
    BMP files with a gray palette give gray pixels both ways, so for them this cannot be found out.

    Raises OSError, and L3Error for a damaged target.
    """
    with open_regular(target) as file:
        holds_colours = peek(file.read(64)).channels >= 3
    return holds_colours == (palette == "index") and has_coloured_palette(source, page or 0)


def has_coloured_palette(path: str, page: int = 0) -> bool:
    """Whether the image file at `path` has a palette; of BMP files, one that is not all gray. Raises OSError.

    page: of a TIFF, from 0
    """
    with open_regular(path) as file:
        start = file.read(_LONGEST_START)
    format = sniff(start)
    if format == "PNG":
        return start[25:26] == bytes([_PNG_PALETTE])
    if format == "BMP":
        return _has_coloured_bmp_palette(start)
    return format == "TIFF" and has_tiff_palette(path, page)


def _has_coloured_bmp_palette(start: bytes) -> bool:
    size = int.from_bytes(start[14:18], "little")
    place, entry = (24, 3) if size == 12 else (28, 4)
    bits = int.from_bytes(start[place : place + 2], "little")
    used = 0 if size == 12 else int.from_bytes(start[46:50], "little")
    if not 1 <= bits <= 8:
        return False
    first = 14 + size
    end = first + entry * min(used or 256, 2**bits)
    return any(len(set(start[at : at + 3])) > 1 for at in range(first, end, entry))
