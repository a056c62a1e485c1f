"""Image files to arrays: exact pixels, upright, or an error that says what the file holds."""

from __future__ import annotations

import io
import logging
import math
import re
import struct
import threading
import warnings
import zlib
from dataclasses import dataclass, field

import imagecodecs
import numpy as np
import tifffile
from PIL import Image, UnidentifiedImageError

from . import DEFAULT_MAX_PIXELS
from .exif import apply_orientation, neutralise_orientation
from .outcomes import ConversionError
from .signatures import READABLE_FORMATS, sniff

_MAX_METADATA = 1 << 24  # the format's limit for the whole area
_METADATA_OVERHEAD = 64  # more than the keys and padding of two entries take


class ImageError(ConversionError):
    """A file that cannot be read exactly; the message says why."""


@dataclass(frozen=True)
class ReadImage:
    """What `read_image` found.

    pixels: (H, W) or (H, W, C), C = 1 … 4, uint8 or uint16, native byte order; upright
    metadata: entries for the L3 file: `icc` (ICC profile) and `exif` (TIFF structure, orientation set to upright)
    notes: sentences about what was changed or left out
    """

    pixels: np.ndarray
    metadata: dict[str, bytes]
    notes: tuple[str, ...]


@dataclass
class StoredImage:
    """What `read_as_stored` found.

    pixels: as in ReadImage, but not turned upright
    icc, exif: metadata as stored, empty where there is none
    orientation: 1 … 8, of formats that keep it outside their EXIF data
    notes: as in ReadImage
    """

    pixels: np.ndarray
    icc: bytes = b""
    exif: bytes = b""
    orientation: int = 1
    notes: list[str] = field(default_factory=list)


def read_image(data: bytes, max_pixels: int = DEFAULT_MAX_PIXELS) -> ReadImage:
    """Decodes an image file: PNG, JPEG, WebP, BMP, TIFF, PNM or NPY, recognised by its signature.

    Palettes are expanded, gray below 8 bits is scaled to 8, 16 bits and alpha are kept, EXIF orientation is applied.

    Raises ImageError for unknown signatures, for what cannot be kept exactly (CMYK, animation, several pages, float …),
    for more than `max_pixels` pixels (before decoding them; the image libraries' own limits do not count), and for
    damaged files.
    """
    return _finish(read_as_stored(data, max_pixels))


def read_as_stored(data: bytes, max_pixels: int = DEFAULT_MAX_PIXELS) -> StoredImage:
    """`read_image`, but neither is the orientation applied nor metadata changed."""
    name = sniff(data)
    if name is None:
        raise ImageError("not an image (unknown signature)" if data else "empty file")
    if name not in READABLE_FORMATS:
        raise ImageError(f"{name} files are not supported (supported: {', '.join(READABLE_FORMATS)})")
    try:
        return _READERS[name](data, max_pixels)
    except (ImageError, MemoryError):
        raise
    except Exception as error:  # damaged files make the image libraries raise errors of every type
        raise ImageError(f"damaged or unusual {name} file: {error or type(error).__name__}") from error


def _finish(decoded: StoredImage) -> ReadImage:
    """Applies the orientation and chooses the metadata."""
    notes = decoded.notes
    orientation, exif = neutralise_orientation(decoded.exif)
    if orientation == 1:
        orientation = decoded.orientation
    if orientation != 1:
        notes.append(f"EXIF orientation {orientation} applied")
    metadata: dict[str, bytes] = {}
    room = _MAX_METADATA - _METADATA_OVERHEAD
    for key, value in (("icc", decoded.icc), ("exif", exif)):
        if len(value) > room:
            notes.append(f"{key} metadata of {len(value)} bytes left out: it exceeds the format's limit")
        elif value:
            metadata[key] = bytes(value)
            room -= len(value)
    pixels = np.ascontiguousarray(apply_orientation(decoded.pixels, orientation))
    return ReadImage(pixels, metadata, tuple(notes))


def _check_size(width: int, height: int, max_pixels: int) -> None:
    if width < 1 or height < 1:
        raise ImageError(f"an image of {width} x {height} pixels has nothing to convert")
    if width * height > max_pixels:
        raise ImageError(f"{width} x {height} pixels exceed the limit of {max_pixels} pixels")


# ---- PNG -------------------------------------------------------------------------------------------------------------


def _read_png(data: bytes, max_pixels: int) -> StoredImage:
    """Through libpng, which keeps 16 bits; palettes and transparent colours become RGB, RGBA or gray and alpha."""
    icc, exif, notes = b"", b"", []
    for kind, body in _png_chunks(data):
        if kind == b"IHDR":
            _check_size(*struct.unpack_from(">II", body), max_pixels)
        elif kind == b"acTL" and struct.unpack_from(">I", body)[0] > 1:
            raise ImageError(f"animated PNG ({struct.unpack_from('>I', body)[0]} frames)")
        elif kind == b"iCCP":
            icc = _inflate_icc(bytes(body))
            if not icc:
                notes.append("damaged ICC profile left out")
        elif kind == b"eXIf":
            exif = bytes(body)
    return StoredImage(imagecodecs.png_decode(data), icc, exif, notes=notes)


def _png_chunks(data: bytes):
    """Yields (type, body) of each chunk. Checksums and order are left to libpng."""
    view = memoryview(data)
    position = 8
    while position + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, position)
        yield kind, view[position + 8 : position + 8 + size]
        position += size + 12


def _inflate_icc(body: bytes) -> bytes:
    """The profile in an iCCP chunk (name, 0, method 0, zlib stream); nothing if it is damaged or beyond the limit."""
    _, _, compressed = body.partition(b"\x00")
    inflater = zlib.decompressobj()
    try:
        profile = inflater.decompress(compressed[1:], _MAX_METADATA)
    except zlib.error:
        return b""
    return profile if inflater.eof else b""


# ---- JPEG, WebP, BMP -------------------------------------------------------------------------------------------------


def _read_with_pillow(data: bytes, max_pixels: int) -> StoredImage:
    """Formats of 8 bits per sample, which Pillow reads as they are."""
    notes = []
    with _open_with_pillow(data) as image:
        _check_size(*image.size, max_pixels)
        frames = getattr(image, "n_frames", 1)
        if image.format == "MPO":
            # Phones append previews and gain maps to ordinary photographs; every viewer shows the first picture.
            notes.append(f"the first of {frames} pictures in the file was taken")
        elif frames > 1:
            raise ImageError(f"animated {image.format} ({frames} frames)")
        if image.mode == "CMYK":
            raise ImageError("CMYK colours: convert to RGB first, with the right colour profile")
        target_mode = {"1": "L", "P": "RGB"}.get(image.mode, image.mode)
        if target_mode not in ("L", "RGB", "RGBA"):
            raise ImageError(f"pixels of Pillow's mode {image.mode} are not supported")
        pixels = np.asarray(image.convert(target_mode))
        return StoredImage(pixels, image.info.get("icc_profile") or b"", image.info.get("exif") or b"", notes=notes)


_pillow_limit = threading.Lock()


def _open_with_pillow(data: bytes) -> Image.Image:
    """Reads the header. Pillow's own limit, a global that it looks at here, gives way to `max_pixels`."""
    with _pillow_limit:
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            return Image.open(io.BytesIO(data), formats=("JPEG", "WEBP", "BMP"))
        except UnidentifiedImageError:  # which names the object in memory
            raise ValueError("its header cannot be read") from None
        finally:
            Image.MAX_IMAGE_PIXELS = limit


# ---- TIFF ------------------------------------------------------------------------------------------------------------

_TIFF_REDUCED, _TIFF_MASK = 1, 4  # bits of NewSubfileType
_TIFF_ORIENTATION, _TIFF_ICC = 274, 34675


def _read_tiff(data: bytes, max_pixels: int) -> StoredImage:
    """Through tifffile, which keeps 16 bits."""
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        pages = [page for page in file.pages if not page.subfiletype & (_TIFF_REDUCED | _TIFF_MASK)]
        if len(pages) > 1:
            raise ImageError(f"multi-page TIFF ({len(pages)} pages)")
        if not pages or pages[0] is not file.pages[0]:
            raise ImageError("TIFF whose first page is a reduced copy or a mask (a camera's raw file?)")
        page = pages[0]
        notes = [f"{len(file.pages) - 1} reduced copies or masks left out"] if len(file.pages) > 1 else []
        pixels = _tiff_pixels(page, max_pixels)
        if tifffile.EXTRASAMPLE.ASSOCALPHA in page.extrasamples:
            notes.append("premultiplied alpha kept as stored")
        orientation = page.tags.valueof(_TIFF_ORIENTATION, 1)
        orientation = orientation if orientation in range(1, 9) else 1
        return StoredImage(pixels, page.tags.valueof(_TIFF_ICC, b""), orientation=orientation, notes=notes)


def lacks_data(page: tifffile.TiffPage) -> bool:
    """Whether strips or tiles are missing, which tifffile would make black, or lie beyond the end of the file."""
    count = math.prod(page.chunked)
    segments = list(zip(page.dataoffsets, page.databytecounts, strict=False))[:count]
    end = page.parent.filehandle.size
    return len(segments) < count or any(not (offset and size) or offset + size > end for offset, size in segments)


def _tiff_pixels(page: tifffile.TiffPage, max_pixels: int) -> np.ndarray:
    _check_size(page.imagewidth, page.imagelength, max_pixels)
    if math.prod(page.chunks) > max_pixels * page.samplesperpixel:
        raise ImageError(
            f"TIFF tiles of {page.tilewidth} x {page.tilelength} pixels exceed the limit of {max_pixels} pixels"
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


# ---- PNM -------------------------------------------------------------------------------------------------------------

_PNM_GAP = rb"(?:\s|#[^\r\n]*[\r\n])+"
_PNM_NUMBER = _PNM_GAP + rb"(\d{1,9})"
_PNM_HEADER = re.compile(rb"P(?:([14])" + 2 * _PNM_NUMBER + rb"|([2356])" + 3 * _PNM_NUMBER + rb")\s")
_PNM_COMMENT = re.compile(rb"#[^\r\n]*")


def _read_pnm(data: bytes, max_pixels: int) -> StoredImage:
    """PBM, PGM and PPM, as text or binary. Pillow narrows their 16-bit colours, so it is not used."""
    header = _PNM_HEADER.match(data)
    if header is None:
        raise ImageError("damaged PNM file: no valid header")
    kind, width, height, *rest = (int(value) for value in header.groups() if value is not None)
    maximum = rest[0] if rest else 1
    _check_size(width, height, max_pixels)
    if not 1 <= maximum <= 65535:
        raise ImageError(f"PNM with a maximum value of {maximum}")
    channels = 3 if kind in (3, 6) else 1
    samples, end = _pnm_samples(kind, data[header.end() :], width, height, channels, maximum)
    if end.strip():
        raise ImageError("PNM file with several images, or with data after its image")
    if samples.size and samples.max() > maximum:
        raise ImageError(f"damaged PNM file: a sample exceeds the maximum value of {maximum}")

    notes = []
    full = 255 if maximum <= 255 else 65535
    if maximum != full:
        samples = (samples.astype(np.uint32) * full + maximum // 2) // maximum
        if kind not in (1, 4):
            notes.append(f"samples scaled from 0 … {maximum} to 0 … {full}")
    pixels = samples.astype(np.uint8 if full == 255 else np.uint16)
    return StoredImage(pixels.reshape((height, width, 3) if channels == 3 else (height, width)), notes=notes)


def _pnm_samples(
    kind: int, body: bytes, width: int, height: int, channels: int, maximum: int
) -> tuple[np.ndarray, bytes]:
    """The samples of a PNM body, in order, 0 for black, and the bytes that follow them."""
    count = width * height * channels
    if kind == 4:
        row_size = (width + 7) // 8
        rows = np.frombuffer(body, np.uint8, row_size * height).reshape(height, row_size)
        return 1 - np.unpackbits(rows, axis=1, count=width), body[row_size * height :]
    if kind in (5, 6):
        dtype = np.dtype(">u2" if maximum > 255 else "u1")
        return np.frombuffer(body, dtype, count), body[count * dtype.itemsize :]
    tokens = _PNM_COMMENT.sub(b"", body).split()
    if kind == 1:  # digits need no gaps
        digits = b"".join(tokens)
        return 1 - (np.frombuffer(digits, np.uint8, count) - ord("0")), digits[count:]
    if len(tokens) < count:
        raise ImageError(f"damaged PNM file: {len(tokens)} of {count} samples")
    return np.array([int(token) for token in tokens[:count]], np.uint32), b"".join(tokens[count:])


# ---- NPY -------------------------------------------------------------------------------------------------------------


def _read_npy(data: bytes, max_pixels: int) -> StoredImage:
    """Arrays of shape (H, W) or (H, W, C), C = 1 … 4, of uint8 or uint16 in either byte order."""
    file = io.BytesIO(data)
    major, _ = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if dtype.newbyteorder("=") not in (np.dtype(np.uint8), np.dtype(np.uint16)):
        raise ImageError(f"NPY of dtype {dtype}; uint8 and uint16 are supported")
    if len(shape) not in (2, 3) or (len(shape) == 3 and not 1 <= shape[2] <= 4):
        raise ImageError(f"NPY of shape {shape}; (H, W) and (H, W, C) with C = 1 … 4 are supported")
    _check_size(shape[1], shape[0], max_pixels)
    if len(data) - file.tell() < math.prod(shape) * dtype.itemsize:
        raise ImageError("truncated NPY file")
    pixels = np.load(io.BytesIO(data), allow_pickle=False)
    return StoredImage(pixels.astype(dtype.newbyteorder("="), copy=False))


_READERS = {
    "PNG": _read_png,
    "JPEG": _read_with_pillow,
    "WebP": _read_with_pillow,
    "BMP": _read_with_pillow,
    "TIFF": _read_tiff,
    "PNM": _read_pnm,
    "NPY": _read_npy,
}


def prepare_process() -> None:
    """Makes the image libraries leave warnings to `read_image`. For processes that do nothing else."""
    warnings.simplefilter("ignore")
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)
