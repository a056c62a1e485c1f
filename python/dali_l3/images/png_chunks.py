"""The chunks that PNG files consist of."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from zlib_ng import zlib_ng

from .stored import DamagedImageError

SIGNATURE = b"\x89PNG\r\n\x1a\n"

_MAX_SIZE = (1 << 31) - 1


def chunk(kind: bytes, body: bytes) -> bytes:
    """A whole chunk."""
    checksum = zlib_ng.crc32(body, zlib_ng.crc32(kind))
    return b"".join((struct.pack(">I", len(body)), kind, body, struct.pack(">I", checksum)))


def walk(data: memoryview, position: int = len(SIGNATURE)) -> Iterator[tuple[int, bytes, memoryview]]:
    """Yields the position, kind and body of each chunk of a PNG file, from the one at `position` to IEND.

    Raises ImageError where no chunk can be. Checksums are left to `is_sound`.
    """
    kind = b""
    while kind != b"IEND":
        if position + 12 > len(data):
            raise DamagedImageError("truncated PNG file")
        size, kind = struct.unpack_from(">I4s", data, position)
        if size > _MAX_SIZE or not kind.isalpha():
            raise DamagedImageError("damaged PNG file: data that is not a chunk")
        if position + 12 + size > len(data):
            raise DamagedImageError("truncated PNG file")
        yield position, kind, data[position + 8 : position + 8 + size]
        position += 12 + size


def is_sound(data: memoryview, position: int, size: int) -> bool:
    """Whether the checksum of the chunk at `position`, whose body has `size` bytes, is right."""
    end = position + 8 + size
    return int(zlib_ng.crc32(data[position + 4 : end])) == int.from_bytes(data[end : end + 4], "big")


def is_critical(kind: bytes) -> bool:
    """Whether an image cannot be shown without chunks of this kind."""
    return kind[:1].isupper()
