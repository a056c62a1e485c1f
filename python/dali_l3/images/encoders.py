"""Pixels and metadata to image files other than L3.

Everywhere here pixels are (H, W) or (H, W, C), C = 2 … 4, and metadata is `icc`, an ICC profile, `exif`, a TIFF
structure without prefix, and `xmp`, an XMP packet; other keys, and those that a format has no place for, are left out.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import imagecodecs
import numpy as np
import tifffile
from PIL import Image

from .exif import PREFIX, XMP_PREFIX
from .png_chunks import chunk

_TIFF_XMP, _TIFF_BYTE = 700, 1
_IHDR_END = 8 + 12 + 13  # the signature, the frame of the header chunk, its body


def encode_png(pixels: np.ndarray, metadata: Mapping[str, bytes], level: int = 6) -> bytes:
    """Encodes uint8 or uint16 as gray, gray and alpha, RGB or RGBA; keeps `icc`, `exif` and `xmp`.

    level: zlib's compression level, 0 … 9.
    """
    png: bytes = imagecodecs.png_encode(np.ascontiguousarray(pixels), level=level)
    chunks = [_PNG_CHUNKS[key](value) for key, value in metadata.items() if key in _PNG_CHUNKS]
    view = memoryview(png)
    return b"".join([view[:_IHDR_END], *chunks, view[_IHDR_END:]]) if chunks else png


_PNG_CHUNKS: dict[str, Callable[[bytes], bytes]] = {
    "icc": lambda profile: chunk(b"iCCP", b"ICC profile\x00\x00" + zlib.compress(profile)),
    "exif": lambda exif: chunk(b"eXIf", exif),
    "xmp": lambda xmp: chunk(b"iTXt", b"XML:com.adobe.xmp\x00\x00\x00\x00\x00" + xmp),  # not compressed, no language
}


def encode_tiff(pixels: np.ndarray, metadata: Mapping[str, bytes]) -> bytes:
    """Encodes uint8 or uint16 as gray, gray and alpha, RGB or RGBA, compressed with Deflate; keeps `icc` and `xmp`."""
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    xmp = metadata.get("xmp")
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
        extratags=[(_TIFF_XMP, _TIFF_BYTE, len(xmp), xmp, True)] if xmp else None,
    )
    return file.getvalue()


def encode_bmp(pixels: np.ndarray, metadata: Mapping[str, bytes]) -> bytes:
    """Encodes gray (with a palette of 256 grays) or RGB, uint8; keeps no metadata."""
    bmp: bytes = imagecodecs.bmp_encode(pixels)
    return bmp


def encode_webp(pixels: np.ndarray, metadata: Mapping[str, bytes], quality: int | None = None) -> bytes:
    """Encodes RGB or RGBA, uint8; keeps `icc`, `exif` and `xmp`.

    quality: 1 … 100, lossy; None: lossless.
    """
    options: dict[str, Any] = {"lossless": True} if quality is None else {"quality": quality}
    options["exact"] = True  # keeps the colours under transparent pixels
    if "xmp" in metadata:
        options["xmp"] = metadata["xmp"]
    return _encode_with_pillow("WEBP", pixels, **options, **_pillow_metadata(metadata))


def encode_jpeg(pixels: np.ndarray, metadata: Mapping[str, bytes], quality: int) -> bytes:
    """Encodes gray or RGB, uint8, with colours at half the resolution (4:2:0), as is usual; keeps `icc`, `exif`, `xmp`.

    quality: 1 … 100.
    """
    extra = b""
    if "xmp" in metadata:  # by hand: Pillow writes it since 11.0
        body = XMP_PREFIX + metadata["xmp"]
        extra = b"\xff\xe1" + struct.pack(">H", 2 + len(body)) + body
    return _encode_with_pillow("JPEG", pixels, quality=quality, extra=extra, **_pillow_metadata(metadata))


def _encode_with_pillow(format: str, pixels: np.ndarray, **options: Any) -> bytes:
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
