"""Whether an image file is whole, told without decoding it."""

from __future__ import annotations

import os

from ..codec import peek
from ..errors import L3Error
from ..files import open_regular
from . import tiff

_PNG_START = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
_PNG_END = b"\x00\x00\x00\x00IEND\xaeB`\x82"
_JPEG_END = b"\xff\xd9"


def is_complete_l3(path: str, profile: str) -> bool:
    """Whether it is an L3 file of this profile, as long as its header says. Raises OSError, as all functions here."""
    start, _, size = _ends(path)
    try:
        info = peek(start)
    except L3Error:
        return False
    return info.profile == profile and not info.prototype and size == info.file_size


def is_complete_png(path: str) -> bool:
    """Whether its first and its last chunk are there."""
    start, end, _ = _ends(path)
    return start.startswith(_PNG_START) and end.endswith(_PNG_END)


def is_complete_jpeg(path: str) -> bool:
    """Whether the marker at its end is there."""
    return _ends(path)[1].endswith(_JPEG_END)


def is_complete_bmp(path: str) -> bool:
    """Whether it is as long as its header says."""
    start, _, size = _ends(path)
    return size == int.from_bytes(start[2:6], "little")


def is_complete_webp(path: str) -> bool:
    """Whether it is as long as its header says."""
    start, _, size = _ends(path)
    return size == 8 + int.from_bytes(start[4:8], "little")


def is_complete_tiff(path: str) -> bool:
    """Whether the strips or tiles of its first page are there."""
    with open_regular(path) as file:
        return tiff.is_complete(file)


def _ends(path: str) -> tuple[bytes, bytes, int]:
    """The file's first 64 bytes and its last 16, or fewer if it is shorter, and its size."""
    with open_regular(path) as file:
        start = file.read(64)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 16))
        return start, file.read(), size
