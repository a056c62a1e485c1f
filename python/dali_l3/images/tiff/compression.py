"""Decodes the strips and tiles of a TIFF file to samples; each compression has its own checks.

A compression that is not listed here is refused by its name. Of those that are, none gets more room than the pixels of
one strip or tile, and pictures inside (JPEG, PNG …) must have exactly their size, which is looked at before they are
decoded.
"""

from __future__ import annotations

import lzma
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

import imagecodecs
import numpy as np

from .. import png
from ..jpeg_stream import ADOBE, APP0, APP14, JFIF, JpegStream
from ..stored import DamagedImageError, ImageError
from . import ccitt, lzw
from .directories import Directory
from .layout import Layout

COMPRESSION, FILL_ORDER, PREDICTOR, T4_OPTIONS, T6_OPTIONS, JPEG_TABLES = 259, 266, 317, 292, 293, 347
_YCBCR = 6  # value of PhotometricInterpretation


class Damaged(Exception):
    """Data that is not exactly what a strip or tile needs."""


# ---- Streams of bytes ------------------------------------------------------------------------------------------------
# (data, out): fill `out`, uint8, one dimension, or raise an error of any kind. Nothing is written beyond it.


def _uncompressed(data: memoryview, out: np.ndarray) -> None:
    if len(data) < len(out):
        raise Damaged
    out[:] = np.frombuffer(data[: len(out)], np.uint8)


def _filled(decode: Callable[..., bytes]) -> Callable[[memoryview, np.ndarray], None]:
    """With decoders of imagecodecs that fail when the result does not fit, and check what there is to check."""

    def fill(data: memoryview, out: np.ndarray) -> None:
        if len(decode(data, out=out.data)) != len(out):
            raise Damaged

    return fill


def _lzma(data: memoryview, out: np.ndarray) -> None:
    """Through Python's own module, which unlike imagecodecs tells whether the stream is whole."""
    decompressor = lzma.LZMADecompressor(memlimit=_LZMA_MEMORY)
    position, piece = 0, decompressor.decompress(data, _PIECE)
    while piece:
        out[position : position + len(piece)] = np.frombuffer(piece, np.uint8)  # fails where there is no room
        position += len(piece)
        piece = b"" if decompressor.eof else decompressor.decompress(b"", _PIECE)
    if position != len(out) or not decompressor.eof:
        raise Damaged


_LZMA_MEMORY = 1 << 28  # bytes; the highest preset takes a quarter of it
_PIECE = 1 << 20


# ---- Pictures --------------------------------------------------------------------------------------------------------
# (data, out): fill `out`, (H, W) or (H, W, C), uint8 or uint16, or raise an error of any kind. The decoders of
# imagecodecs look at size and type before they decode.


def _png(data: memoryview, out: np.ndarray) -> None:
    """By the reader of PNG files, which is stricter than libpng."""
    try:
        png.decode_into(data, out)
    except ImageError as error:
        raise Damaged from error


def _webp(data: memoryview, out: np.ndarray) -> None:
    imagecodecs.webp_decode(data, out=out)


def _jpeg_2000(data: memoryview, out: np.ndarray) -> None:
    """A codestream alone, since files around one may change its colours."""
    marker, width, height, left, top, tile_width, tile_height, _, _, channels = struct.unpack_from(">I4x8IH", data)
    components = bytes(data[42 : 42 + 3 * channels])
    tiles = -(-width // max(1, tile_width)) * -(-height // max(1, tile_height))
    if not (
        marker == 0xFF4FFF51
        and (height, width, left, top, channels) == (*out.shape[:2], 0, 0, _channels(out))
        and components == bytes((8 * out.itemsize - 1, 1, 1)) * channels
        and tiles <= 1 + width * height // _SMALLEST_TILE  # each takes the decoder kilobytes
    ):
        raise Damaged
    imagecodecs.jpeg2k_decode(data, numthreads=1, out=out)


_SMALLEST_TILE = 1024  # pixels, on average


def _jpeg_xl(data: memoryview, out: np.ndarray) -> None:
    if _jpeg_xl_bits(_jpeg_xl_codestream(data)) != 8 * out.itemsize:
        raise Damaged
    imagecodecs.jpegxl_decode(data, numthreads=1, out=out)


def _jpeg_xl_codestream(data: memoryview) -> memoryview:
    """The start of the codestream, which may be in a box, whole or in pieces. ISO/IEC 18181-2."""
    position = 0
    while bytes(data[position : position + 2]) != b"\xff\x0a":
        size, kind = struct.unpack_from(">I4s", data, position)
        if size < 8:
            raise Damaged
        position += {b"jxlc": 8, b"jxlp": 12}.get(kind, size)
    return data[position:]


def _jpeg_xl_bits(codestream: memoryview) -> int:
    """Bits of a sample, of images that are neither turned nor animated; 0 for others. ISO/IEC 18181-1, annex D."""
    bits = int.from_bytes(codestream[2:34], "little")  # more than the header takes

    def take(count: int) -> int:
        nonlocal bits
        value = bits & ((1 << count) - 1)
        bits >>= count
        return value

    small = take(1)
    take(5 if small else (9, 13, 18, 30)[take(2)])  # height
    if not take(3):  # no ratio: width
        take(5 if small else (9, 13, 18, 30)[take(2)])
    if take(1):  # all default
        return 8
    if take(1) and take(3 + 1 + 1 + 1):  # orientation, intrinsic size, preview, animation
        return 0
    if take(1):  # floating-point
        return 0
    choice = take(2)
    return (8, 10, 12)[choice] if choice < 3 else 1 + take(6)


def _channels(out: np.ndarray) -> int:
    return out.shape[2] if out.ndim == 3 else 1


class _Jpeg:
    """JPEG data, with tables that strips and tiles share, and colours as PhotometricInterpretation says."""

    def __init__(self, directory: Directory, photometric: int, notes: list[str]):
        tables = directory.raw(JPEG_TABLES)
        if tables and not (tables[:2] == b"\xff\xd8" and tables[-2:] == b"\xff\xd9"):
            raise DamagedImageError("damaged TIFF file: its JPEG tables are invalid")
        self._tables = tables[2:-2]
        self._transform = 1 if photometric == _YCBCR else 0
        self._notes = notes

    def __call__(self, data: memoryview, out: np.ndarray) -> None:
        if bytes(data[:2]) != b"\xff\xd8":
            raise Damaged
        colours = b""
        if _channels(out) == 3:  # said in the way that the decoder knows
            colours = struct.pack(">HH5s6xB", 0xFF00 | APP14, 14, ADOBE, self._transform)
        stream = JpegStream(b"".join((data[:2], colours, self._tables, data[2:])))
        if (stream.height, stream.width, stream.channels) != (*out.shape[:2], _channels(out)):
            raise Damaged
        if colours:
            self._check_colours(stream)
        out[:] = stream.decode(self._notes)

    def _check_colours(self, stream: JpegStream) -> None:
        """Readers follow TIFF's tag or the JPEG data: both must say the same."""
        said = [
            1 if marker == APP0 else body[11]
            for marker, body in stream.segments
            if (marker == APP0 and body[:5] == JFIF) or (marker == APP14 and body[:5] == ADOBE and len(body) >= 12)
        ]
        if any(transform != self._transform for transform in said):
            raise ImageError("TIFF whose JPEG data has other colours than its PhotometricInterpretation says")


# ---- The list --------------------------------------------------------------------------------------------------------

_DEFLATE = ("Deflate", _filled(imagecodecs.deflate_decode))
_BYTE_STREAMS = {
    1: ("uncompressed", _uncompressed),
    5: ("LZW", lzw.decode),
    8: _DEFLATE,
    32773: ("PackBits", _filled(imagecodecs.packbits_decode)),
    32946: _DEFLATE,
    34925: ("LZMA", _lzma),
    50000: ("Zstandard", _filled(imagecodecs.zstd_decode)),
}
_WITH_PREDICTOR = (5, 8, 32946, 34925, 50000)
_CCITT = {ccitt.RLE: "CCITT RLE", ccitt.GROUP_3: "CCITT Group 3", ccitt.GROUP_4: "CCITT Group 4"}
_JPEG = 7
_PICTURES = {
    33005: ("JPEG 2000", _jpeg_2000),
    34712: ("JPEG 2000", _jpeg_2000),
    34933: ("PNG", _png),
    50001: ("WebP", _webp),
    50002: ("JPEG XL", _jpeg_xl),
    52546: ("JPEG XL", _jpeg_xl),
}
REFUSED = {
    6: "old-style JPEG",
    9: "JBIG",
    10: "JBIG",
    22610: "JPEG XR",
    32766: "NeXT",
    32771: "CCITT RLE in words",
    32809: "ThunderScan",
    32909: "PixarLog",
    33003: "JPEG 2000 of YCbCr colours",
    33004: "JPEG 2000 of Leadtools",
    33007: "JPEG of another kind",
    34661: "JBIG",
    34676: "SGI LogLuv",
    34677: "SGI LogLuv",
    34715: "JBIG2",
    34887: "LERC",
    34892: "lossy JPEG of raw files",
    34934: "JPEG XR",
}


@dataclass(frozen=True)
class Compression:
    """How the data of strips and tiles becomes samples.

    name: for messages
    predictor: whether samples are differences from their left neighbours
    fill: for streams of bytes: (data, out, rows), `out` in one dimension, uint8: rows of samples, each padded to bytes
    picture: for pictures: (data, out), `out` of shape (H, W) or (H, W, C), uint8 or uint16

    notes: what pictures found out while they were decoded
    bytes_per_sample: that the decoder takes for a strip or tile, where these are more than the samples have

    Either function raises errors of any kind where the data is not exactly what `out` needs.
    """

    name: str
    predictor: bool = False
    fill: Callable[[memoryview, np.ndarray, int], None] | None = None
    picture: Callable[[memoryview, np.ndarray], None] | None = None
    notes: list[str] = field(default_factory=list)
    bytes_per_sample: int = 0


def read_compression(directory: Directory, layout: Layout, photometric: int) -> Compression:
    """The compression of the strips or tiles of an image. Raises ImageError for those not supported."""
    samples, bits = layout.segment_samples, layout.bits
    code = directory.integer(COMPRESSION, 1)
    predictor = directory.integer(PREDICTOR, 1)
    if predictor not in (1, 2):
        raise ImageError(f"TIFF with predictor {predictor}; 1 (none) and 2 (differences) are supported")
    if predictor == 2 and code not in _WITH_PREDICTOR:
        raise ImageError("TIFF with a predictor, but without a compression that uses one")
    if predictor == 2 and bits < 8:
        raise ImageError(f"TIFF with a predictor of {bits}-bit samples is not supported")
    reverse = _reverse_bits if directory.integer(FILL_ORDER, 1) == 2 else memoryview

    if code in _BYTE_STREAMS:
        name, decode = _BYTE_STREAMS[code]
        return Compression(name, predictor == 2, fill=lambda data, out, rows: decode(reverse(data), out))
    if code in _CCITT:
        if (samples, bits) != (1, 1):
            raise DamagedImageError(f"damaged TIFF file: {_CCITT[code]} is only for bilevel images")
        options = directory.integer(T6_OPTIONS if code == ccitt.GROUP_4 else T4_OPTIONS)
        if options & ccitt.UNCOMPRESSED_MODE and code != ccitt.RLE:
            raise ImageError("TIFF with CCITT codes in uncompressed mode is not supported")

        def fill(data: memoryview, out: np.ndarray, rows: int) -> None:
            out[:] = np.frombuffer(ccitt.decode(reverse(data), layout.segment_width, rows, code, options), np.uint8)

        return Compression(_CCITT[code], fill=fill)
    if code == _JPEG or code in _PICTURES:
        notes: list[str] = []
        name, picture = _PICTURES[code] if code in _PICTURES else ("JPEG", _Jpeg(directory, photometric, notes))
        if bits not in ((8,) if name in ("JPEG", "WebP") else (8, 16)):
            raise ImageError(f"TIFF of {bits}-bit samples in {name} is not supported")
        if samples not in {"JPEG": (1, 3), "WebP": (3, 4)}.get(name, (1, 2, 3, 4)):
            raise ImageError(f"TIFF of {samples} samples a pixel in {name} is not supported")
        return Compression(name, picture=picture, notes=notes, bytes_per_sample=4 if name == "JPEG 2000" else 0)
    raise ImageError(f"TIFF with compression {REFUSED.get(code, code)} is not supported: save it with Deflate instead")


def _reverse_bits(data: memoryview) -> memoryview:
    """Each byte with its bits in the other order."""
    return memoryview(bytes(data).translate(_REVERSED))


_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
