"""Metadata of a TIFF image: its colour profile, its XMP, and its EXIF data as a block of its own."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from ..stored import MAX_METADATA, ImageError
from .directories import TYPE_SIZES, Directory, read_directory

ICC, XMP, ORIENTATION = 34675, 700, 274
DESCRIPTION = 270
_EXIF, _GPS, _INTEROPERABILITY = 34665, 34853, 40965
_PROVENANCE = (271, 272, 315, 33432)  # make, model, artist, copyright
_BESIDE_EXIF = (DESCRIPTION, *_PROVENANCE, 282, 283, 296, 305, 306)  # and resolution, software, date and time
_SHORT, _LONG = 3, 4
_CLASSIC_TYPES = range(1, 13)

_LEFT_OUT = {
    "IPTC data": (33723,),
    "Photoshop data": (34377, 37724),
    "GeoTIFF data": (33550, 33922, 34264, 34735, 34736, 34737, 42112, 42113),
    "transfer functions, white point or primaries": (291, 301, 318, 319, 342),
}
_FIRST_PRIVATE = 32768
_UNDERSTOOD = {32997, 32998, 33432, ICC, _EXIF, _GPS}


def read_block(directory: Directory, tag: int, name: str, notes: list[str]) -> bytes:
    """The bytes of a tag; none, and a note, where they are damaged or beyond the limit of all metadata."""
    try:
        size = _size(directory, tag)
        if size > MAX_METADATA:
            notes.append(f"{name} of {size} bytes left out: it exceeds the format's limit")
            return b""
        return directory.raw(tag)
    except ImageError:
        notes.append(f"damaged {name} left out")
        return b""


def read_exif(directory: Directory, notes: list[str]) -> bytes:
    """A block of EXIF data as other formats hold it, in the byte order of the file; none where there is no such data.

    It has the directories of EXIF, GPS and interoperability, and what belongs beside them: description, make, model,
    resolution, software, date and time, artist, copyright. Values are copied as they are, so that offsets inside a
    maker's note, which no standard explains, may be wrong. The orientation is 1.
    """
    if not any(tag in directory for tag in (_EXIF, _GPS, *_PROVENANCE)):
        return b""
    try:
        values = _Collector(directory)
        main = values.take(directory, _BESIDE_EXIF)
        for tag in (_EXIF, _GPS):
            if tag in directory:
                main[tag] = values.below(directory, tag)
    except ImageError:
        notes.append("damaged EXIF data left out")
        return b""
    order = directory.source.order
    main[ORIENTATION] = (_SHORT, 1, struct.pack(order + "H", 1))
    head = struct.pack(order + "2sHI", b"II" if order == "<" else b"MM", 42, 8)
    return head + _serialise(main, order, len(head))


def left_out(directory: Directory, has_exif: bool) -> list[str]:
    """Notes about metadata that has no place, one for each kind.

    has_exif: whether there is a block of EXIF data, which also has the description
    """
    kinds = [kind for kind, tags in _LEFT_OUT.items() if any(tag in directory for tag in tags)]
    if DESCRIPTION in directory and not has_exif:
        kinds.append("image description")
    named = {tag for tags in _LEFT_OUT.values() for tag in tags}
    if any(tag >= _FIRST_PRIVATE and tag not in named | _UNDERSTOOD for tag in directory.entries):
        kinds.append("private tags")
    return [f"{kind} left out" for kind in kinds]


def _size(directory: Directory, tag: int) -> int:
    entry = directory.entries.get(tag)
    return entry.count * TYPE_SIZES.get(entry.type, 0) if entry else 0


_Values = dict[int, Any]  # of tags: (type, count, bytes), or another one for a directory


class _Collector:
    """Takes values from directories, no more bytes in all than metadata may have."""

    def __init__(self, page: Directory):
        self._source = page.source
        self._room = MAX_METADATA

    def take(self, directory: Directory, tags: Iterable[int]) -> _Values:
        """The values of those of the tags that are there."""
        values: _Values = {}
        for tag in tags:
            if tag in directory and directory.entries[tag].type in _CLASSIC_TYPES:
                self._room -= 12 + _size(directory, tag)
                if self._room < 0:
                    raise ImageError("too much metadata")
                kind, count, _ = directory.entries[tag]
                values[tag] = (kind, count, directory.raw(tag))
        return values

    def below(self, parent: Directory, tag: int) -> _Values:
        """The values of the directory to which a tag points, and of that below it."""
        directory = read_directory(self._source, parent.integer(tag))
        values = self.take(directory, [tag for tag in directory.entries if tag != _INTEROPERABILITY])
        if tag == _EXIF and _INTEROPERABILITY in directory:
            values[_INTEROPERABILITY] = self.below(directory, _INTEROPERABILITY)
        return values


def _serialise(values: _Values, order: str, start: int) -> bytes:
    """A directory that lies at `start` of its block, and behind it what does not fit into its entries."""
    table = struct.pack(order + "H", len(values))
    body = b""
    body_start = start + 2 + 12 * len(values) + 4
    for tag, value in sorted(values.items()):
        if isinstance(value, dict):
            kind, count, data = _LONG, 1, _serialise(value, order, body_start + len(body))
        else:
            kind, count, data = value
        if isinstance(value, dict) or len(data) > 4:
            place = struct.pack(order + "I", body_start + len(body))
            body += data + bytes(len(data) % 2)
        else:
            place = data.ljust(4, b"\0")
        table += struct.pack(order + "HHI", tag, kind, count) + place
    return table + bytes(4) + body
