"""Pixels and metadata to image files other than L3.

Everywhere here pixels are (H, W) or (H, W, C), C = 2 … 4, and metadata is `icc`, an ICC profile, and `exif`, a TIFF
structure without prefix; other keys, and those that a format has no place for, are left out.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping

import imagecodecs
import numpy as np
import tifffile
from PIL import Image

from .exif import PREFIX

_IHDR_END = 8 + 12 + 13  # the signature, the frame of the header chunk, its body


def encode_png(pixels: np.ndarray, metadata: Mapping[str, bytes], level: int = 6) -> bytes:
    """Encodes uint8 or uint16 as gray, gray and alpha, RGB or RGBA; keeps `icc` and `exif`.

    level: zlib's compression level, 0 … 9.
    """
    png = imagecodecs.png_encode(np.ascontiguousarray(pixels), level=level)
    chunks = [_PNG_CHUNKS[key](value) for key, value in metadata.items() if key in _PNG_CHUNKS]
    view = memoryview(png)
    return b"".join([view[:_IHDR_END], *chunks, view[_IHDR_END:]]) if chunks else png


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


_PNG_CHUNKS = {
    "icc": lambda profile: _chunk(b"iCCP", b"ICC profile\x00\x00" + zlib.compress(profile)),
    "exif": lambda exif: _chunk(b"eXIf", exif),
}


def encode_tiff(pixels: np.ndarray, metadata: Mapping[str, bytes]) -> bytes:
    """Encodes uint8 or uint16 as gray, gray and alpha, RGB or RGBA, compressed with Deflate; keeps `icc`."""
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    file = io.BytesIO()
    tifffile.imwrite(
        file,
        pixels,
        photometric="rgb" if channels >= 3 else "minisblack",
        planarconfig="contig" if channels > 1 else None,
        extrasamples=["unassalpha"] if channels in (2, 4) else None,
        compression="adobe_deflate",
        metadata=None,
        iccprofile=metadata.get("icc"),
    )
    return file.getvalue()


def encode_bmp(pixels: np.ndarray, metadata: Mapping[str, bytes]) -> bytes:
    """Encodes gray (with a palette of 256 grays) or RGB, uint8; keeps no metadata."""
    return imagecodecs.bmp_encode(pixels)


def encode_webp(pixels: np.ndarray, metadata: Mapping[str, bytes], quality: int | None = None) -> bytes:
    """Encodes RGB or RGBA, uint8; keeps `icc` and `exif`.

    quality: 1 … 100, lossy; None: lossless.
    """
    options = {"lossless": True} if quality is None else {"quality": quality}
    options["exact"] = True  # keeps the colours under transparent pixels
    return _encode_with_pillow("WEBP", pixels, **options, **_pillow_metadata(metadata))


def encode_jpeg(pixels: np.ndarray, metadata: Mapping[str, bytes], quality: int) -> bytes:
    """Encodes gray or RGB, uint8, with colours at half the resolution (4:2:0), as is usual; keeps `icc` and `exif`.

    quality: 1 … 100.
    """
    return _encode_with_pillow("JPEG", pixels, quality=quality, **_pillow_metadata(metadata))


def _encode_with_pillow(format: str, pixels: np.ndarray, **options) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format, **options)
    return file.getvalue()


def _pillow_metadata(metadata: Mapping[str, bytes]) -> dict[str, bytes]:
    arguments = {}
    if "icc" in metadata:
        arguments["icc_profile"] = metadata["icc"]
    if "exif" in metadata:
        arguments["exif"] = PREFIX + metadata["exif"]
    return arguments
