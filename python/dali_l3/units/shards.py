"""Writes samples to tar shards of a limited size, with their indices."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from ..files import target_errors
from .storage import Storage, find_storage

_BLOCK = 512  # bytes; members are padded to these
_END = 2 * _BLOCK  # of zeros
_CHUNK = 1 << 20  # bytes that are read at once
_ENCODING, _ERRORS = "utf-8", "surrogateescape"  # as Python has names of files


@contextlib.contextmanager
def writing_shards(storage: Storage, folder: str, unit: int, limit: int) -> Iterator[ShardWriter]:
    """The writer of the shards of one unit: shard-000012.tar and, if that gets full, shard-000012_01.tar, ….

    The bytes depend on the samples alone. Each shard appears whole, after it was read back, and then its index. What is
    not whole when anything is raised does not appear.

    limit: bytes of a shard, which one that holds a single sample may exceed
    """
    with contextlib.ExitStack() as stack:
        writer = ShardWriter(storage, folder, unit, limit, stack)
        yield writer
        writer.finish()


class ShardWriter:
    """Takes the samples of a unit one after the other. To be had from `writing_shards`.

    sizes: of the shards that are whole: their names and their bytes
    """

    def __init__(self, storage: Storage, folder: str, unit: int, limit: int, stack: contextlib.ExitStack) -> None:
        """stack: has the shard that is being written, and puts it to its place when it is closed"""
        self._storage, self._folder, self._unit, self._limit, self._stack = storage, folder, unit, limit, stack
        self._file: BinaryIO | None = None
        self._checksum = 0
        self.sizes: dict[str, int] = {}

    def add(self, files: Sequence[tuple[str, bytes]]) -> str:
        """Adds a sample, given as names and bytes, and returns the name of its shard."""
        members = [(_header(name, len(data)), data) for name, data in files]
        size = sum(len(header) + _padded(len(data)) for header, data in members)
        if self._file and self._file.tell() + size + _END > self._limit:
            self._finish_shard()
        name = _shard_name(self._unit, len(self.sizes))
        with target_errors(f"{self._folder}/{name}"):
            if not self._file:
                self._file = self._stack.enter_context(self._storage.writing(f"{self._folder}/{name}"))
                self._checksum = 0
            for header, data in members:
                self._write(header)
                self._write(data)
                self._write(bytes(_padded(len(data)) - len(data)))
        return name

    def _write(self, data: bytes) -> None:
        assert self._file
        self._file.write(data)
        self._checksum = zlib.crc32(data, self._checksum)

    def finish(self) -> None:
        """Finishes the last shard, and removes further ones, which a version that makes larger files may have left."""
        self._finish_shard()
        names = self._storage.sizes(self._folder)
        for number in itertools.count(len(self.sizes)):
            name = _shard_name(self._unit, number)
            if name not in names:
                return
            self._storage.remove(f"{self._folder}/{name}")
            self._storage.remove(f"{self._folder}/{index_name(name)}")

    def _finish_shard(self) -> None:
        if not self._file:
            return
        name = _shard_name(self._unit, len(self.sizes))
        with target_errors(f"{self._folder}/{name}"):
            self._write(bytes(_END))
            self._file.flush()
            size = self._file.tell()
            os.fsync(self._file.fileno())
            self._file.seek(0)
            if _checksum_of(self._file) != self._checksum:
                raise OSError(errno.EIO, "the shard reads back differently from what was written")
        index = find_storage(self._file.name).index_of(self._file.name)  # of this machine, wherever the shard goes
        self._stack.close()
        self._storage.write(f"{self._folder}/{index_name(name)}", index)
        self._file = None
        self.sizes[name] = size


def _checksum_of(file: BinaryIO) -> int:
    checksum = 0
    while data := file.read(_CHUNK):
        checksum = zlib.crc32(data, checksum)
    return checksum


def index_name(shard: str) -> str:
    """The name of a shard's index."""
    return shard.removesuffix(".tar") + ".idx"


def member_size(size: float) -> float:
    """Bytes that a file of `size` bytes takes in a shard, if its name is not a long one."""
    return size + 1.5 * _BLOCK


def _shard_name(unit: int, number: int) -> str:
    return f"shard-{unit:06d}" + (f"_{number:02d}" if number else "") + ".tar"


def _padded(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _header(name: str, size: int) -> bytes:
    """The header of a file of nobody's, without a date: as ustar or, where a name or size is too long, PAX."""
    member = tarfile.TarInfo(name)
    member.size = size
    return member.tobuf(tarfile.PAX_FORMAT, _ENCODING, _ERRORS)
