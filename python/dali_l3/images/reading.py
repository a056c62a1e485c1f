"""Image files to arrays: exact pixels, upright, or an error that says why not."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass

import numpy as np

from . import bmp, jpeg, npy, png, pnm, tiff, webp
from .exif import apply_orientation, neutralise_orientation, neutralise_xmp_orientation
from .signatures import READABLE_FORMATS, not_an_image, sniff, sniff_file, unsupported
from .stored import DEFAULT_OPTIONS, MAX_METADATA, DamagedImageError, ImageError, ReadOptions, StoredImage

_METADATA_OVERHEAD = 128  # more than the keys and padding of three entries take, and what says that it was resized

_READERS = {
    "PNG": png.read,
    "JPEG": jpeg.read,
    "WebP": webp.read,
    "BMP": bmp.read,
    "TIFF": tiff.read,
    "PNM": pnm.read,
    "NPY": npy.read,
}


@dataclass(frozen=True)
class ReadImage:
    """The result of `read_image`.

    pixels: (H, W) or (H, W, C), C = 1 … 4, uint8 or uint16, native byte order; upright
    metadata: for the L3 file: `icc` (ICC profile), `exif` (TIFF structure, with the orientation set to upright) and
        `xmp` (XMP packet; if the image was turned, with the orientation set to upright)
    notes: what was changed or left out, a sentence each
    """

    pixels: np.ndarray
    metadata: dict[str, bytes]
    notes: tuple[str, ...]


def read_image(data: bytes, options: ReadOptions = DEFAULT_OPTIONS) -> ReadImage:
    """Decodes an image file: PNG, JPEG, WebP, BMP, TIFF, PNM or NPY, recognised by its signature.

    Palettes are expanded, gray below 8 bits is scaled to 8, 16 bits and alpha are kept, EXIF orientation is applied.

    Raises ImageError for unknown signatures, for images that cannot be kept exactly (CMYK, animation, several pages,
    float …), for more pixels than the options allow (before decoding them; the limits of the image libraries do not
    apply), and for damaged files.
    """
    stored = read_as_stored(data, options)
    del data  # if the caller has let go of it: its memory may be needed to turn the pixels
    return turn_upright(stored)


def read_as_stored(data: bytes, options: ReadOptions = DEFAULT_OPTIONS) -> StoredImage:
    """`read_image`, but neither is the orientation applied nor metadata changed."""
    name = sniff(data)
    if name is None:
        raise ImageError(not_an_image(data) or "not an image (unknown signature)")
    if name not in READABLE_FORMATS:
        raise ImageError(unsupported(name))
    try:
        return _READERS[name](data, options)
    except (ImageError, MemoryError):
        raise
    except Exception as error:  # damaged files make the image libraries raise errors of every type
        raise DamagedImageError(f"damaged or unusual {name} file") from error


def turn_upright(decoded: StoredImage) -> ReadImage:
    """The other half of `read_image`: applies the orientation and chooses the metadata."""
    notes = decoded.notes
    orientation, exif = neutralise_orientation(decoded.exif)
    if orientation == 1:
        orientation = decoded.orientation
    if orientation != 1:
        notes.append(f"EXIF orientation {orientation} applied")
    # What XMP alone says does not count, as in OpenCV and DALI; Pillow's exif_transpose differs.
    xmp_orientation, upright_xmp = neutralise_xmp_orientation(decoded.xmp)
    if xmp_orientation not in (1, orientation):
        notes.append(f"orientation {xmp_orientation} in XMP data ignored")
    xmp = upright_xmp if orientation != 1 else decoded.xmp
    metadata: dict[str, bytes] = {}
    room = MAX_METADATA - _METADATA_OVERHEAD
    for key, value in (("icc", decoded.icc), ("exif", exif), ("xmp", xmp)):
        if len(value) > room:
            notes.append(f"{key} metadata of {len(value)} bytes left out: it exceeds the format's limit")
        elif value:
            metadata[key] = bytes(value)
            room -= len(value)
    pixels = np.ascontiguousarray(apply_orientation(decoded.pixels, orientation))
    return ReadImage(pixels, metadata, tuple(notes))


def count_pages(file: bytes | str) -> int:
    """The number of pages of an image file; `ReadOptions.page` chooses one. Only TIFF files can have several.

    file: its bytes, or its path

    Raises ImageError if the file is damaged, and OSError.
    """
    name = sniff(file) if isinstance(file, bytes) else sniff_file(file)
    return tiff.page_count(file) if name == "TIFF" else 1


def prepare_process() -> None:
    """Silences the warnings of the image libraries, because `read_image` reports them. For worker processes."""
    warnings.simplefilter("ignore")
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)
