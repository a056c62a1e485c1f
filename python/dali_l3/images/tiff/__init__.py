"""TIFF files to arrays.

- `directories`: which images a file holds, and the values of their tags
- `layout`: where the strips or tiles of an image are
- `compression`, `ccitt`, `lzw`: what they hold, and the checks of it
- `samples`: all of them to the samples of an image
- `colours`: what the samples mean
- `metadata`: what else is kept
"""

from __future__ import annotations

import io
import math
import os
import re
from typing import BinaryIO, Literal

from ...files import open_regular
from ..stored import ImageError, ReadOptions, StoredImage, admit
from .colours import PALETTE, PHOTOMETRIC, bytes_per_pixel, read_colours, to_pixels
from .compression import read_compression
from .directories import Directories, Directory, read_directories, read_first_directory
from .layout import check_tiles, has_all_data, read_layout
from .metadata import DESCRIPTION, ICC, ORIENTATION, XMP, left_out, read_block, read_exif
from .samples import read_samples

_META_MORPH_PLANES = 33629


def read(data: bytes, options: ReadOptions) -> StoredImage:
    """Gray, palettes, RGB and JPEG-compressed YCbCr of up to 16 bits a sample, as TIFF 6.0 defines them.

    Raises ImageError for what is not supported, contradicts itself, or is damaged.
    """
    directories = read_directories(io.BytesIO(data))
    page = _choose_page(directories, options.page)
    layout = read_layout(page)
    colours = read_colours(page, layout)
    compression = read_compression(page, layout, colours.photometric)
    decoder = math.ceil(compression.bytes_per_sample * layout.segment_samples * layout.largest_part)
    admit(layout.width, layout.height, bytes_per_pixel(layout, colours, options) + decoder, options)
    check_tiles(layout, options.max_pixels)
    samples = read_samples(data, page, layout, compression)
    pixels = to_pixels(samples, layout.bits, colours, options)

    notes = [*_notes_about_pages(directories, options.page), *colours.notes, *dict.fromkeys(compression.notes)]
    icc = read_block(page, ICC, "ICC profile", notes)
    xmp = read_block(page, XMP, "XMP", notes)
    exif = read_exif(page, notes)
    notes += left_out(page, has_exif=bool(exif))
    orientation = page.integer(ORIENTATION, 1)
    orientation = orientation if 1 <= orientation <= 8 else 1
    return StoredImage(pixels, icc, exif, xmp, orientation, notes)


def page_count(source: str | os.PathLike[str] | bytes) -> int:
    """The number of images in a TIFF file, a path or its bytes, without reduced copies and masks.

    Raises ImageError where it cannot be told, OSError.
    """
    with io.BytesIO(source) if isinstance(source, bytes) else open_regular(source) as file:
        return len(_full_pages(read_directories(file)))


def has_palette(path: str, page: int = 0) -> bool:
    """Whether an image of the TIFF file at `path`, from 0, has a palette; no if it is damaged. Raises OSError."""
    with open_regular(path) as file:
        try:
            directories = read_directories(file)
            if page >= len(_full_pages(directories)):
                return False
            return directories.full_page(page).integer(PHOTOMETRIC) == PALETTE
        except ImageError:
            return False


def is_complete(file: BinaryIO) -> bool:
    """Whether the strips or tiles of its first page are there."""
    try:
        return has_all_data(read_first_directory(file))
    except ImageError:
        return False


def _full_pages(directories: Directories) -> list[int]:
    if not directories.starts_full:
        raise ImageError("TIFF whose first page is a reduced copy or a mask (a camera's raw file?)")
    return directories.full_pages


def _choose_page(directories: Directories, wanted: int | Literal["first"] | None) -> Directory:
    pages = _full_pages(directories)
    if wanted is None and len(pages) > 1:
        raise ImageError(f"has {len(pages)} pages: use --pages first or --pages split")
    number = wanted if isinstance(wanted, int) else 0
    if number >= len(pages):
        raise ImageError(f"there is no page {number + 1} in a TIFF file of {len(pages)}")
    page = directories.full_page(number)
    stack = _hidden_planes(page)
    if stack > len(pages):
        raise ImageError(f"stack of {stack} planes in one page: save each as a page, or a file, of its own")
    return page


def _hidden_planes(page: Directory) -> int:
    """Planes that ImageJ and MetaMorph store behind one page without telling other readers."""
    description = re.match(rb"ImageJ=[^\0]*?\nimages=(\d{1,9})\b", page.raw(DESCRIPTION, 1000))
    planes = page.entries[_META_MORPH_PLANES].count if _META_MORPH_PLANES in page else 1
    return max(planes, int(description[1]) if description else 1)


def _notes_about_pages(directories: Directories, wanted: int | Literal["first"] | None) -> list[str]:
    full = len(directories.full_pages)
    others = directories.others
    notes = []
    if wanted == "first" and full > 1:
        notes.append(f"the first of {full} pages was taken")
    if others:
        notes.append(f"{others} reduced {'copy or mask' if others == 1 else 'copies or masks'} left out")
    return notes
