"""TIFF files to arrays."""

from __future__ import annotations

import io
import math
import struct

import numpy as np
import tifffile

from .stored import ImageError, ReadOptions, StoredImage, admit

_TIFF_REDUCED, _TIFF_MASK = 1, 4  # bits of NewSubfileType
_TIFF_ORIENTATION, _TIFF_XMP, _TIFF_ICC = 274, 700, 34675


def read(data: bytes, options: ReadOptions) -> StoredImage:
    """Through tifffile, which keeps 16 bits."""
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        pages = [page for page in file.pages if not page.subfiletype & (_TIFF_REDUCED | _TIFF_MASK)]
        if len(pages) > 1 and options.page is None:
            raise ImageError(f"holds {len(pages)} pages: --pages first or split")
        if not pages or pages[0] is not file.pages[0]:
            raise ImageError("TIFF whose first page is a reduced copy or a mask (a camera's raw file?)")
        page = pages[options.page or 0]
        notes = [f"{len(file.pages) - 1} reduced copies or masks left out"] if len(file.pages) > 1 else []
        pixels = _tiff_pixels(page, options)
        if tifffile.EXTRASAMPLE.ASSOCALPHA in page.extrasamples:
            notes.append("premultiplied alpha kept as stored")
        orientation = page.tags.valueof(_TIFF_ORIENTATION, 1)
        orientation = orientation if orientation in range(1, 9) else 1
        icc, xmp = page.tags.valueof(_TIFF_ICC, b""), page.tags.valueof(_TIFF_XMP, b"")
        return StoredImage(pixels, icc, xmp=xmp, orientation=orientation, notes=notes)


def page_count(file):
    with tifffile.TiffFile(io.BytesIO(file) if isinstance(file, bytes) else file) as tiff:
        try:
            return len([page for page in tiff.pages if not page.subfiletype & (_TIFF_REDUCED | _TIFF_MASK)])
        except Exception as error:
            raise ImageError("damaged TIFF file") from error


def lacks_data(page: tifffile.TiffPage) -> bool:
    """Whether strips or tiles are missing, which tifffile would make black, or lie beyond the end of the file."""
    count = math.prod(page.chunked)
    segments = list(zip(page.dataoffsets, page.databytecounts, strict=False))[:count]
    end = page.parent.filehandle.size
    return len(segments) < count or any(not (offset and size) or offset + size > end for offset, size in segments)


def _tiff_pixels(page: tifffile.TiffPage, options: ReadOptions) -> np.ndarray:
    admit(page.imagewidth, page.imagelength, page.samplesperpixel * (2 if page.bitspersample > 8 else 1), options)
    if math.prod(page.chunks) > options.max_pixels * page.samplesperpixel:
        raise ImageError(
            f"TIFF tiles of {page.tilewidth} x {page.tilelength} pixels exceed the limit of {options.max_pixels} pixels"
        )
    if page.imagedepth != 1:
        raise ImageError(f"volumetric TIFF ({page.imagedepth} planes)")
    photometric, bits = page.photometric, page.bitspersample
    if page.sampleformat != tifffile.SAMPLEFORMAT.UINT:
        raise ImageError(f"TIFF of {page.dtype or 'unknown'} samples; uint8 and uint16 are supported")
    if photometric == tifffile.PHOTOMETRIC.SEPARATED:
        raise ImageError("CMYK colours: convert to RGB first, with the right colour profile")
    gray = photometric in (tifffile.PHOTOMETRIC.MINISBLACK, tifffile.PHOTOMETRIC.MINISWHITE)
    palette = photometric == tifffile.PHOTOMETRIC.PALETTE
    jpeg = photometric == tifffile.PHOTOMETRIC.YCBCR and page.compression == tifffile.COMPRESSION.JPEG
    if not (gray or palette or jpeg or photometric == tifffile.PHOTOMETRIC.RGB):
        raise ImageError(f"TIFF with photometric interpretation {getattr(photometric, 'name', photometric)}")
    if bits not in ((1, 2, 4, 8, 16) if gray else (1, 2, 4, 8) if palette else (8, 16)):
        raise ImageError(f"TIFF with {bits} bits per sample")
    if page.samplesperpixel > 4:
        raise ImageError(f"TIFF with {page.samplesperpixel} channels; at most 4 are supported")

    if lacks_data(page):
        raise ImageError("damaged TIFF file: strips or tiles are missing, or lie beyond its end")
    if page.compression == tifffile.COMPRESSION.JPEG:
        _check_jpeg_sizes(page)

    pixels = page.asarray(maxworkers=1)  # files are spread over processes already
    if page.axes == "SYX":  # channels stored as planes
        pixels = np.moveaxis(pixels, 0, -1)
    elif page.axes not in ("YX", "YXS"):
        raise ImageError(f"TIFF with axes {page.axes}")
    if palette:
        colours = page.colormap.T
        if colours.max() > 255:  # 16 bits as the standard wants them; some writers store 8
            colours = colours >> 8
        return colours.astype(np.uint8)[pixels.astype(np.intp)]
    if bits < 8:
        pixels = pixels.astype(np.uint8) * np.uint8(255 // (2**bits - 1))
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)
    return ~pixels if photometric == tifffile.PHOTOMETRIC.MINISWHITE else pixels


def _check_jpeg_sizes(page: tifffile.TiffPage) -> None:
    """Refuses strips and tiles whose JPEG data claims more pixels than they have: the decoder would believe it."""
    for segment, _ in page.parent.filehandle.read_segments(page.dataoffsets, page.databytecounts):
        width, height = _jpeg_size(segment)
        if width * height > math.prod(page.chunks):
            raise ImageError(f"damaged TIFF file: JPEG data of {width} x {height} pixels in a smaller strip or tile")


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Width and height in the frame header of JPEG data; 0 if there is none, on which its decoder will act."""
    position = 2
    while data[position : position + 1] == b"\xff" and position + 9 <= len(data):
        marker, size = data[position + 1], int.from_bytes(data[position + 2 : position + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, position + 5)
            return width, height
        position += 2 + size
    return 0, 0
