"""PBM, PGM and PPM files to arrays. Pillow narrows their 16-bit colours, so it is not used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .stored import DamagedImageError, ImageError, ReadOptions, StoredImage, admit, strips

_GAP = rb"(?:\s|#[^\r\n]*[\r\n])+"
_NUMBER = _GAP + rb"(\d{1,9})"
_HEADER = re.compile(rb"P(?:([14])" + 2 * _NUMBER + rb"|([2356])" + 3 * _NUMBER + rb")\s")
_MAX_HEADER = 1 << 16
_REST = re.compile(rb"\s*\Z")

_BLOCK = 1 << 18  # bytes of text that are parsed at once
_SPACE = re.compile(rb"\s")
_ANYTHING = re.compile(rb"(?s:.)")
_LINE_END = re.compile(rb"[\r\n]")
_COMMENT = re.compile(rb"#[^\r\n]*")
_WHITESPACE, _DIGITS = b" \t\n\r\f\v", b"0123456789"


@dataclass(frozen=True)
class _Header:
    """kind: 1 … 6, the digit of the signature; maximum: of the samples; end: where the samples begin"""

    kind: int
    width: int
    height: int
    maximum: int
    end: int

    @property
    def channels(self) -> int:
        return 3 if self.kind in (3, 6) else 1

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.uint16 if self.maximum > 255 else np.uint8)


def read(data: bytes, options: ReadOptions) -> StoredImage:
    """Text or binary. Samples are scaled to all that 8 or 16 bits hold."""
    header = _parse_header(data)
    admit(header.width, header.height, header.channels * header.dtype.itemsize, options)
    if header.kind == 1:
        samples = _bits_as_text(data, header)
    elif header.kind in (2, 3):
        samples = _numbers_as_text(data, header)
    else:
        samples = _binary(data, header)
    shape = (header.height, header.width, 3)[: 2 if header.channels == 1 else 3]
    pixels = samples.reshape(shape)
    full = np.iinfo(header.dtype).max
    if header.kind in (1, 4) or header.maximum == full:
        return StoredImage(pixels)
    _scale(pixels, header.maximum)
    return StoredImage(pixels, notes=[f"samples scaled from 0 … {header.maximum} to 0 … {full}"])


def _parse_header(data: bytes) -> _Header:
    match = _HEADER.match(data, 0, _MAX_HEADER)
    if match is None:
        raise DamagedImageError("damaged PNM file: no valid header")
    kind, width, height, *maximum = (int(value) for value in match.groups() if value is not None)
    header = _Header(kind, width, height, maximum[0] if maximum else 1, match.end())
    if not 1 <= header.maximum <= 65535:
        raise ImageError(f"PNM with a maximum value of {header.maximum}; 1 … 65535 are possible")
    return header


def _binary(data: bytes, header: _Header) -> np.ndarray:
    row_size = header.width * header.channels * header.dtype.itemsize if header.kind > 4 else (header.width + 7) // 8
    end = header.end + row_size * header.height
    if end > len(data):
        raise DamagedImageError("truncated PNM file")
    if data[header.end - 1 : header.end + 1] == b"\r\n" and len(data) == end + 1:
        raise DamagedImageError("damaged PNM file: its header ends in two bytes (CR LF), where one must be")
    if not _REST.match(data, end):
        raise _surplus()
    stored = np.frombuffer(data, np.uint8, row_size * header.height, header.end)
    if header.kind == 4:
        bits = np.unpackbits(stored.reshape(header.height, row_size), axis=1, count=header.width)
        bits -= 1  # 0 is white: 255
        return bits
    samples = stored.view(header.dtype.newbyteorder(">")).astype(header.dtype)
    _check_maximum(samples, header)
    return samples


def _bits_as_text(data: bytes, header: _Header) -> np.ndarray:
    samples = np.empty(header.width * header.height, np.uint8)
    count = 0
    for text in _blocks(data, header.end, _ANYTHING):
        digits = text.translate(None, _WHITESPACE)  # they need no gaps
        if digits.translate(None, b"01"):
            raise DamagedImageError("damaged PNM file: one of its samples is neither 0 nor 1")
        count = _append(samples, count, np.frombuffer(digits, np.uint8) - np.uint8(ord("1")))  # 0 is white: 255
    return _whole(samples, count)


def _numbers_as_text(data: bytes, header: _Header) -> np.ndarray:
    samples = np.empty(header.width * header.height * header.channels, header.dtype)
    count = 0
    for text in _blocks(data, header.end, _SPACE):
        if text.translate(None, _DIGITS + _WHITESPACE):
            raise DamagedImageError("damaged PNM file: one of its samples is not a number")
        numbers = np.fromstring(text.strip(), np.int64, sep=" ")  # larger ones become the largest
        _check_maximum(numbers, header)
        count = _append(samples, count, numbers)
    return _whole(samples, count)


def _blocks(data: bytes, position: int, gap: re.Pattern[bytes]) -> Iterator[bytes]:
    """The text from `position` on, without its comments, in blocks that end in a gap."""
    while position < len(data):
        end = _end_of(gap, data, position + _BLOCK)
        if data.rfind(b"#", position, end) > max(data.rfind(b"\n", position, end), data.rfind(b"\r", position, end)):
            end = _end_of(_LINE_END, data, end)
        yield _COMMENT.sub(b"", data[position:end])
        position = end


def _end_of(pattern: re.Pattern[bytes], data: bytes, position: int) -> int:
    match = pattern.search(data, position)
    return match.end() if match else len(data)


def _append(samples: np.ndarray, count: int, more: np.ndarray) -> int:
    if count + len(more) > len(samples):
        raise _surplus()
    samples[count : count + len(more)] = more
    return count + len(more)


def _whole(samples: np.ndarray, count: int) -> np.ndarray:
    if count < len(samples):
        raise DamagedImageError(f"truncated PNM file: {count} of {len(samples)} samples")
    return samples


def _check_maximum(samples: np.ndarray, header: _Header) -> None:
    if samples.size and samples.max() > header.maximum:
        raise DamagedImageError(f"damaged PNM file: a sample exceeds the maximum value of {header.maximum}")


def _surplus() -> ImageError:
    return ImageError("PNM file with several images, or with data after its image")


def _scale(pixels: np.ndarray, maximum: int) -> None:
    """Spreads samples of 0 … `maximum` over all that their type holds."""
    values = np.arange(maximum + 1, dtype=np.uint32)
    table = ((values * np.iinfo(pixels.dtype).max + maximum // 2) // maximum).astype(pixels.dtype)
    for rows in strips(len(pixels), pixels[0].nbytes):
        pixels[rows] = table[pixels[rows]]
