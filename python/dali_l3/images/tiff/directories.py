"""The directories of a TIFF file, and the values of their tags.

Offsets and counts are not trusted: each is checked against the file, no directory is visited twice, and nothing is
read that was not asked for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import numpy as np

from ..stored import DamagedImageError, ImageError

MAX_DIRECTORIES = 65536
"""Directories, of pages and of all below them, above which a file is refused."""

NEW_SUBFILE_TYPE, SUBFILE_TYPE, SUB_DIRECTORIES = 254, 255, 330
_REDUCED, _MASK = 1, 4  # bits of NewSubfileType
_OLD_REDUCED = 2  # value of SubfileType

TYPE_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
"""Bytes of one value of each type of tag."""

_UNSIGNED = {1: "u1", 3: "u2", 4: "u4", 13: "u4", 16: "u8", 18: "u8"}
_RATIONAL = 5


class Entry(NamedTuple):
    """A tag: the type of its values, their number, and where in the file they are."""

    type: int
    count: int  # type: ignore[assignment]  # hides a method of tuples that nobody needs
    offset: int


class Source:
    """A file with its byte order, its size, and whether it is a BigTIFF."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self.size = file.seek(0, 2)
        head = self.read(0, min(16, self.size))
        self.order = {b"II": "<", b"MM": ">"}.get(head[:2], "")
        version = struct.unpack_from(self.order + "H", head, 2)[0] if self.order and len(head) >= 8 else 0
        self.big = version == 43
        if not (version == 42 or (self.big and head[4:8] == struct.pack(self.order + "HH", 8, 0) and len(head) == 16)):
            raise DamagedImageError("damaged TIFF file: its header is invalid")
        (self.first,) = struct.unpack_from(self.order + ("Q" if self.big else "I"), head, 8 if self.big else 4)

    def read(self, offset: int, size: int) -> bytes:
        """Raises ImageError where the file ends before."""
        if offset + size > self.size:
            raise DamagedImageError("damaged TIFF file: it refers to data beyond its end")
        self._file.seek(offset)
        data = self._file.read(size)
        if len(data) < size:
            raise DamagedImageError("damaged TIFF file: it became shorter while it was read")
        return data


class Directory:
    """The tags of one image, or of a group of other values."""

    def __init__(self, source: Source, entries: dict[int, Entry]):
        self.source = source
        self.entries = entries

    def __contains__(self, tag: int) -> bool:
        return tag in self.entries

    @property
    def is_full(self) -> bool:
        """Whether it is an image by itself, neither a smaller copy of another one nor its mask."""
        if NEW_SUBFILE_TYPE in self:
            return not self.integer(NEW_SUBFILE_TYPE) & (_REDUCED | _MASK)
        return self.integer(SUBFILE_TYPE) != _OLD_REDUCED

    def raw(self, tag: int, count: int | None = None) -> bytes:
        """The bytes of a tag's values (of the first `count`); none where there is no such tag.

        Raises ImageError where they lie beyond the end of the file, or have an unknown type.
        """
        if tag not in self.entries:
            return b""
        kind, number, offset = self.entries[tag]
        if kind not in TYPE_SIZES:
            raise DamagedImageError(f"damaged TIFF file: tag {tag} has values of an unknown type")
        if offset + number * TYPE_SIZES[kind] > self.source.size:
            raise DamagedImageError(f"damaged TIFF file: the values of tag {tag} lie beyond its end")
        return self.source.read(offset, min(number, number if count is None else count) * TYPE_SIZES[kind])

    def integers(self, tag: int, count: int | None = None) -> np.ndarray:
        """The values of a tag (the first `count`), unsigned integers. Raises ImageError as `raw`, and for others."""
        data = self.raw(tag, count)
        if not data:
            return np.empty(0, np.uint64)
        kind = self.entries[tag].type
        if kind not in _UNSIGNED:
            raise DamagedImageError(f"damaged TIFF file: the values of tag {tag} are no unsigned integers")
        return np.frombuffer(data, self.source.order + _UNSIGNED[kind])

    def integer(self, tag: int, default: int = 0) -> int:
        """The first value of a tag, or the default where there is none."""
        values = self.integers(tag, 1)
        return int(values[0]) if values.size else default

    def rationals(self, tag: int, count: int) -> list[float]:
        """The first `count` values of a tag, fractions; none where they are no fractions."""
        if tag not in self or self.entries[tag].type != _RATIONAL:
            return []
        pairs = np.frombuffer(self.raw(tag, count), self.source.order + "u4").reshape(-1, 2).tolist()
        return [top / bottom if bottom else 0.0 for top, bottom in pairs]


@dataclass(frozen=True)
class Directories:
    """Where the directories of the pages are. Their tags are not kept, since there can be very many of them.

    full_pages: offsets of those that are images by themselves, in their order
    others: how many are copies or masks, among the pages and below them
    starts_full: whether the first page is an image by itself
    """

    source: Source
    full_pages: list[int]
    others: int
    starts_full: bool

    def full_page(self, number: int) -> Directory:
        """The directory of one of the full pages, from 0. Raises ImageError."""
        return read_directory(self.source, self.full_pages[number])


def read_directories(file: BinaryIO) -> Directories:
    """All directories of images, each offset visited once.

    Raises ImageError where they form a loop, overlap, lie beyond the end of the file, or are too many.
    """
    source = Source(file)
    walk = _Walk(source)
    pages = [(offset, directory.is_full) for offset, directory in walk.chain(source.first)]
    if not pages:
        raise ImageError("TIFF file without an image")
    below = sum(1 for _ in walk.below())
    full = [offset for offset, is_full in pages if is_full]
    return Directories(source, full, len(pages) - len(full) + below, pages[0][1])


def read_first_directory(file: BinaryIO) -> Directory:
    """That of the first page alone. Raises ImageError."""
    source = Source(file)
    return read_directory(source, source.first)


def read_directory(source: Source, offset: int) -> Directory:
    """The directory at `offset`, without those that follow it. Raises ImageError where it is not within the file."""
    return Directory(source, _parse(source, offset)[0])


def _parse(source: Source, offset: int) -> tuple[dict[int, Entry], int, int]:
    """Entries of a directory (of several for one tag the first), its size, and the offset of the one that follows."""
    count_format, entry_format, offset_format = ("Q", "HHQ8s", "Q") if source.big else ("H", "HHI4s", "I")
    count_size, entry_size = struct.calcsize("=" + count_format), struct.calcsize("=" + entry_format)
    inline = struct.calcsize("=" + offset_format)
    (count,) = struct.unpack(source.order + count_format, source.read(offset, count_size))
    size = count_size + count * entry_size + inline
    if count == 0 or offset + size > source.size:
        raise DamagedImageError("damaged TIFF file: one of its directories is empty, or lies beyond its end")
    table = source.read(offset + count_size, count * entry_size + inline)
    entries: dict[int, Entry] = {}
    place = offset + count_size + entry_size - inline
    for tag, kind, number, value in struct.iter_unpack(source.order + entry_format, table[:-inline]):
        within = number * TYPE_SIZES.get(kind, 0) <= inline
        start = place if within else struct.unpack(source.order + offset_format, value)[0]
        entries.setdefault(tag, Entry(kind, number, start))
        place += entry_size
    return entries, size, struct.unpack(source.order + offset_format, table[-inline:])[0]


def _too_many() -> ImageError:
    return ImageError(f"TIFF file with more than {MAX_DIRECTORIES} pages")


class _Walk:
    """Visits directories, none twice, and no more bytes of them than the file has."""

    def __init__(self, source: Source):
        self._source = source
        self._visited: set[int] = set()
        self._waiting: list[int] = []  # places of directories below those that were visited
        self._links = 0  # to such ones
        self._bytes = 0

    def chain(self, offset: int) -> Iterator[tuple[int, Directory]]:
        """The directory at `offset` and those that follow it, each with its place."""
        while offset:
            if offset in self._visited:
                raise DamagedImageError("damaged TIFF file: its pages form a loop")
            if len(self._visited) == MAX_DIRECTORIES:
                raise _too_many()
            self._visited.add(offset)
            entries, size, following = _parse(self._source, offset)
            self._bytes += size
            if self._bytes > self._source.size:
                raise DamagedImageError("damaged TIFF file: its pages overlap")
            directory = Directory(self._source, entries)
            links = directory.integers(SUB_DIRECTORIES, MAX_DIRECTORIES + 1)
            self._links += len(links)
            if self._links > MAX_DIRECTORIES:
                raise _too_many()
            self._waiting += links.tolist()
            yield offset, directory
            offset = following

    def below(self) -> Iterator[tuple[int, Directory]]:
        """The directories below all that were visited, and those below them."""
        while self._waiting:
            yield from self.chain(self._waiting.pop())
