"""Files that stay as they are in a mix: which of them can, and how they get to their place."""

from __future__ import annotations

import functools
import os
from typing import Literal

from ..errors import TargetError
from ..files import clone_atomically, link, write_atomically
from ..images.exif import neutralise_orientation
from ..images.formats import SOURCE
from ..images.jpeg import SECOND_EXIF
from ..images.signatures import IMAGE_SUFFIXES
from ..images.stored import PALETTE_DROPPED, StoredImage
from ..jobs.outcomes import Task
from ..jobs.planning import Conversion
from .sources import refuse_to_convert

Way = Literal["auto", "copy", "reflink", "hardlink"]
"""How a file gets to its place. "auto": a reflink where the file system has them, else a copy."""

_SUFFIXES = {
    "PNG": (".png",),
    "JPEG": (".jpg", ".jpeg"),
    "WebP": (".webp",),
    "BMP": (".bmp",),
    "TIFF": (".tiff", ".tif"),
    "PNM": (".pnm", ".ppm", ".pgm", ".pbm"),
}
"""Of each format: what the readers find by default; the first is for files without such a suffix."""
_FOUND = frozenset(suffix for suffixes in _SUFFIXES.values() for suffix in suffixes)


@functools.cache
def keeping(suffix: str, signature: str, otherwise: Conversion) -> Conversion:
    """The way of files that stay as they are.

    suffix: theirs; if the readers do not look for it, they get the usual one of their format
    signature: their format, as `signatures.sniff` names it
    otherwise: the way of those that cannot stay
    """
    if suffix.lower() not in _FOUND and signature in _SUFFIXES:
        suffix = _SUFFIXES[signature][0]
    return Conversion(
        SOURCE,
        suffix,
        signature,
        IMAGE_SUFFIXES,
        refuse_to_convert,
        _is_finished,
        keeps_files=True,
        otherwise=otherwise,
    )


def _is_finished(task: Task) -> bool:
    return os.path.getsize(task.target) == os.path.getsize(task.source)


def unkeepable(signature: str, data: bytes, stored: StoredImage) -> str | None:
    """Why `fn.decoders.image` would not show a file as it shows its conversion; None: it does (DALI 2.4.0).

    signature: the file's format, as `signatures.sniff` names it
    data: the file
    stored: what was read of it
    """
    if PALETTE_DROPPED in stored.notes:
        return "the decoder takes the colours of its palette, not the numbers"
    if signature == "JPEG" and f"{SECOND_EXIF} left out" in stored.notes:
        return f"{SECOND_EXIF}, which may crash the decoder"
    if signature == "PNG" and b"eXIf" not in data and neutralise_orientation(stored.exif)[0] != 1:
        return "the decoder does not see its orientation, which is in a text"
    if signature == "WebP" and stored.exif:
        return "the decoder may fail on WebP with EXIF data"
    if signature == "PNM" and (data[:2] not in (b"P4", b"P5", b"P6") or stored.notes):
        return "the decoder takes binary PNM with samples up to 255 or 65535 only"
    if signature in ("TIFF", "NPY"):
        return f"the decoder takes {'only some kinds of TIFF' if signature == 'TIFF' else 'no NPY'}"
    return None


def keep(source: str, target: str, data: bytes, mtime_ns: int, way: Way) -> str:
    """Puts the file `source` to the place `target`, byte for byte, and says how: "copy", "reflink" or "hard link".

    data, mtime_ns: its bytes and its modification time

    Raises TargetError if that cannot be done in this way.
    """
    if way == "hardlink":
        link(source, target)
        return "hard link"
    if way in ("auto", "reflink"):
        try:
            clone_atomically(source, target, data, mtime_ns)
            return "reflink"
        except TargetError:
            if way == "reflink":
                raise
    write_atomically(target, data, mtime_ns)
    return "copy"
