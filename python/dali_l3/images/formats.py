"""The formats that images are converted to, by name: what they can hold, how they are written and read back."""

from __future__ import annotations

import dataclasses
import functools
import re
import sys
from collections.abc import Callable, Mapping

import numpy as np

from ..codec import Profile, decode, encode, peek, read_metadata
from ..errors import ConversionError
from .completeness import (
    is_complete_bmp,
    is_complete_jpeg,
    is_complete_l3,
    is_complete_png,
    is_complete_tiff,
    is_complete_webp,
)
from .encoders import encode_bmp, encode_jpeg, encode_png, encode_tiff, encode_webp
from .exif import PREFIX
from .reading import read_as_stored
from .stored import ReadOptions

L3_FAST = "l3-fast"
"""The default, also for images that another format cannot hold: L3 holds everything that can be read."""

SOURCE = "source"
"""In mixes: files that stay as they are. Not a format that pixels can be encoded to."""


def _holds_all(pixels: np.ndarray) -> str | None:
    return None


@dataclasses.dataclass(frozen=True)
class Format:
    """A format of image files.

    name: as `find_format` takes it
    suffix: of its files
    signature: what `signatures.sniff` calls it
    encode: pixels, (H, W) or (H, W, C) with C = 2 … 4 (L3: 1 … 4), and metadata to the bytes of a file
    decode: the bytes of a file to pixels and metadata
    is_finished: whether the file at a path, of this signature, is whole and holds what `encode` would write, as far as
        can be told without decoding it
    unsupported: returns what the format cannot hold about pixels; None if it can hold them
    metadata_limits: the metadata keys that it can hold, each with its largest size in bytes; None: all of any size
    lossy: whether pixels change
    memory: how many times the size of the pixels encoding takes at most, including the pixels
    matches: whether the bytes of a file decode to just these pixels and metadata, told without decoding all of it at
        once; None: only `decode` can tell
    """

    name: str
    suffix: str
    signature: str
    encode: Callable[[np.ndarray, Mapping[str, bytes]], bytes]
    decode: Callable[[bytes], tuple[np.ndarray, dict[str, bytes]]]
    is_finished: Callable[[str], bool]
    unsupported: Callable[[np.ndarray], str | None] = _holds_all
    metadata_limits: Mapping[str, int] | None = None
    lossy: bool = False
    memory: int = 2
    matches: Callable[[bytes, np.ndarray, Mapping[str, bytes]], bool] | None = None

    def storable(self, metadata: Mapping[str, bytes]) -> dict[str, bytes]:
        """The part of `metadata` that the format keeps, as it keeps it."""
        limits = self.metadata_limits
        if limits is None:
            return dict(metadata)
        plain = {key: value.removeprefix(PREFIX) for key, value in metadata.items()}
        return {key: value for key, value in plain.items() if 0 < len(value) <= limits.get(key, 0)}


def find_format(name: str, effort: int = 2) -> Format:
    """Returns a format by name: l3-fast, l3-raw, l3-paper, png, tiff, bmp, webp, or the lossy jpeg@Q and webp@Q.

    name: Q is a quality, 1 … 100
    effort: of the L3 encoder, 1 … 3

    Raises ConversionError for other names.
    """
    base, separator, quality = name.partition("@")
    if base in _LOSSY_FORMATS and separator:
        return _LOSSY_FORMATS[base](_parse_quality(name, quality))
    if name in _LOSSLESS_FORMATS:
        return _LOSSLESS_FORMATS[name]
    if name in _L3_PROFILES:
        return _l3(name, _L3_PROFILES[name], effort)
    if base in _LOSSY_FORMATS:
        raise ConversionError(f"{name} is lossy and needs a quality, such as {name}@95")
    if base in _LOSSLESS_FORMATS or base in _L3_PROFILES:
        raise ConversionError(f"{name}: {base} is lossless and takes no quality")
    if name == SOURCE:
        raise ConversionError(f"{SOURCE} stands for files as they are; only mixes and the profiler know it")
    known = [*_L3_PROFILES, *_LOSSLESS_FORMATS, *(f"{lossy}@QUALITY" for lossy in _LOSSY_FORMATS), SOURCE]
    raise ConversionError(f"unknown format {name!r} (known: {', '.join(known)})")


def check_format(name: str) -> None:
    """Raises ConversionError if `name` is neither a format of `find_format` nor `SOURCE`."""
    if name != SOURCE:
        find_format(name)


def is_lossy(name: str) -> bool:
    """Whether a format of `check_format` changes pixels; files that stay as they are do not."""
    return name != SOURCE and find_format(name).lossy


def _parse_quality(name: str, quality: str) -> int:
    if not re.fullmatch("[1-9][0-9]?|100", quality):
        raise ConversionError(f"{name}: the quality must be a number from 1 to 100")
    return int(quality)


# ---- L3 --------------------------------------------------------------------------------------------------------------

_TILE = 64  # rows
_BAND = 1 << 22  # bytes: so much is decoded at once for a comparison

_L3_PROFILES: dict[str, Profile] = {L3_FAST: "fast", "l3-raw": "raw", "l3-paper": "paper"}


def _l3(name: str, profile: Profile, effort: int) -> Format:
    def encode_l3(pixels: np.ndarray, metadata: Mapping[str, bytes]) -> bytes:
        return encode(pixels, profile=profile, effort=effort, metadata=metadata)

    is_finished = functools.partial(is_complete_l3, profile=profile)
    return Format(name, ".l3", "L3", encode_l3, _decode_l3, is_finished, matches=_l3_matches)


def _decode_l3(data: bytes) -> tuple[np.ndarray, dict[str, bytes]]:
    return decode(data, verify=True), read_metadata(data)


def _l3_matches(data: bytes, pixels: np.ndarray, metadata: Mapping[str, bytes]) -> bool:
    info = peek(data)
    if (info.shape, info.dtype, read_metadata(data)) != (pixels.shape, pixels.dtype, metadata):
        return False
    rows = max(_BAND * info.height // (pixels.nbytes * _TILE), 1) * _TILE
    memory = np.empty((min(rows, info.height), *pixels.shape[1:]), pixels.dtype)
    for top in range(0, info.height, rows):
        band = pixels[top : top + rows]
        decoded = decode(data, memory[: len(band)], (top, 0, len(band), info.width), verify=True)
        if not np.array_equal(decoded, band):
            return False
    return True


# ---- Others ----------------------------------------------------------------------------------------------------------

_ALL_METADATA = {"icc": sys.maxsize, "exif": sys.maxsize, "xmp": sys.maxsize}
_TIFF_METADATA = {"icc": sys.maxsize, "xmp": sys.maxsize}
_JPEG_METADATA = {"icc": 255 * 65519, "exif": 65527, "xmp": 65502}  # what its segments hold
_PIXELS_OF_CHANNELS = {1: "gray pixels", 2: "gray pixels with alpha", 3: "RGB pixels", 4: "RGBA pixels"}


def _decode_image(data: bytes) -> tuple[np.ndarray, dict[str, bytes]]:
    stored = read_as_stored(data, ReadOptions(max_pixels=sys.maxsize))
    metadata = {"icc": stored.icc, "exif": stored.exif.removeprefix(PREFIX), "xmp": stored.xmp}
    return stored.pixels, {key: value for key, value in metadata.items() if value}


def _unsupported(pixels: np.ndarray, channels: tuple[int, ...], max_side: int = sys.maxsize) -> str | None:
    """What a format of 8-bit pixels of so many channels cannot hold of an image."""
    if pixels.dtype != np.uint8:
        return "16-bit samples"
    count = pixels.shape[2] if pixels.ndim == 3 else 1
    if count not in channels:
        return _PIXELS_OF_CHANNELS[count]
    return _side_unsupported(pixels, max_side)


def _side_unsupported(pixels: np.ndarray, max_side: int) -> str | None:
    return f"a side of more than {max_side} pixels" if max(pixels.shape[:2]) > max_side else None


def _webp_unsupported(pixels: np.ndarray) -> str | None:
    unsupported = _unsupported(pixels, (3, 4), 16383)
    if not unsupported and pixels.shape[2] == 4 and pixels[:, :, 3].min() == 255:
        return "an alpha channel without transparency"  # which the encoder drops
    return unsupported


_png_unsupported = functools.partial(_side_unsupported, max_side=1_000_000)  # of libpng, unless programs raise it
_bmp_unsupported = functools.partial(_unsupported, channels=(1, 3))
_jpeg_unsupported = functools.partial(_unsupported, channels=(1, 3), max_side=65500)

_LOSSLESS_FORMATS = {
    "png": Format(
        "png", ".png", "PNG", encode_png, _decode_image, is_complete_png, _png_unsupported, _ALL_METADATA, memory=3
    ),
    "tiff": Format(
        "tiff", ".tiff", "TIFF", encode_tiff, _decode_image, is_complete_tiff, metadata_limits=_TIFF_METADATA
    ),
    "bmp": Format(
        "bmp", ".bmp", "BMP", encode_bmp, _decode_image, is_complete_bmp, _bmp_unsupported, metadata_limits={}
    ),
    "webp": Format(
        "webp",
        ".webp",
        "WebP",
        encode_webp,
        _decode_image,
        is_complete_webp,
        _webp_unsupported,
        _ALL_METADATA,
        memory=16,
    ),
}


def _lossy_webp(quality: int) -> Format:
    encode_lossy = functools.partial(encode_webp, quality=quality)
    return dataclasses.replace(_LOSSLESS_FORMATS["webp"], name=f"webp@{quality}", encode=encode_lossy, lossy=True)


def _lossy_jpeg(quality: int) -> Format:
    return Format(
        f"jpeg@{quality}",
        ".jpg",
        "JPEG",
        functools.partial(encode_jpeg, quality=quality),
        _decode_image,
        is_complete_jpeg,
        _jpeg_unsupported,
        _JPEG_METADATA,
        lossy=True,
        memory=3,
    )


_LOSSY_FORMATS = {"jpeg": _lossy_jpeg, "webp": _lossy_webp}
