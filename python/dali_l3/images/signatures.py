"""Recognises the format of a file by its first bytes, not by its name."""

from __future__ import annotations

import os

from .. import _core
from ..files import open_regular

HEAD_SIZE = _core.SNIFFED_BYTES
"""Bytes from the start of a file that `sniff` wants to see."""

READABLE_FORMATS = ("PNG", "JPEG", "WebP", "BMP", "TIFF", "PNM", "NPY")
"""Formats that `reading.read_image` reads. `sniff` names others too, so that a message can."""

_READABLE = {".png", ".apng", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".bmp", ".dib", ".tif", ".tiff", ".npy"}
_PORTABLE_ANYMAPS = {".pnm", ".pbm", ".pgm", ".ppm"}
_OTHERS = {".gif", ".avif", ".heic", ".heif", ".jxl", ".jp2", ".j2k", ".psd", ".exr"}
IMAGE_SUFFIXES = frozenset(_READABLE | _PORTABLE_ANYMAPS | _OTHERS)
"""Suffixes by which a file claims to be an image; they give way to the new suffix when a file is converted."""


def sniff(head: bytes) -> str | None:
    """Names the format of a file that starts with `head` (HEAD_SIZE bytes, or the whole file), or returns None.

    The table is the readers': csrc/loader/dataset/file_format.cc.
    """
    return _core.sniff(bytes(head[:HEAD_SIZE]))


_OTHERS_THAN_IMAGES = (
    (b"version https://git-lfs.github.com/spec/", "a Git LFS pointer, not an image: run 'git lfs pull'"),
    (b"version https://hawser.github.com/spec/", "a Git LFS pointer, not an image: run 'git lfs pull'"),
    (b"/annex/objects/", "a git-annex pointer, not an image: run 'git annex get'"),
    (b"<!doctype html", "an HTML page, not an image"),
    (b"<html", "an HTML page, not an image"),
    (b"<svg", "an SVG drawing: render it to PNG first"),
    (b"%pdf-", "a PDF document: extract its images first"),
    (b"\x1f\x8b", "a gzip archive: unpack it first"),
    (b"pk\x03\x04", "a ZIP archive: unpack it first"),
    (b"\x89png", "a PNG file whose first bytes are damaged (by a transfer as text?)"),
)
"""First bytes, in lower case, of what is often found under the names of images."""


def unsupported(name: str) -> str:
    """Why a file is refused whose format `sniff` knows, but which is not read."""
    return f"{name} files are not supported: convert to PNG or TIFF first"


def not_an_image(head: bytes) -> str | None:
    """Says what a file is that `sniff` does not know, from its first KiB, `head`; None if that is not known either."""
    if not head:
        return "empty file"
    if not any(head[:1024]):
        return "starts with zeros only: was it copied or downloaded completely?"
    start = head[:1024].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if start.startswith(b"<?xml") and b"<svg" not in start:
        return "is an XML document, not an image"
    start = start[start.find(b"<svg") :] if start.startswith(b"<?xml") else start
    return next((f"is {what}" for prefix, what in _OTHERS_THAN_IMAGES if start.startswith(prefix)), None)


def sniff_file(path: str | os.PathLike[str]) -> str | None:
    """`sniff` for the file at `path`. Raises OSError."""
    with open_regular(path) as file:
        return sniff(file.read(HEAD_SIZE))
