"""PNG files to arrays."""

from __future__ import annotations

import struct
import zlib

import imagecodecs

from .stored import MAX_METADATA, ImageError, ReadOptions, StoredImage, admit


def read(data: bytes, options: ReadOptions) -> StoredImage:
    """Through libpng, which keeps 16 bits; palettes and transparent colours become RGB, RGBA or gray and alpha."""
    icc, exif, notes = b"", b"", []
    for kind, body in _png_chunks(data):
        if kind == b"IHDR":
            admit(*struct.unpack_from(">II", body), _bytes_per_pixel(*body[8:10]), options)
        elif kind == b"acTL" and struct.unpack_from(">I", body)[0] > 1:
            raise ImageError(f"animated PNG ({struct.unpack_from('>I', body)[0]} frames)")
        elif kind == b"iCCP":
            icc = _inflate_icc(bytes(body))
            if not icc:
                notes.append("damaged ICC profile left out")
        elif kind == b"eXIf":
            exif = bytes(body)
    return StoredImage(imagecodecs.png_decode(data), icc, exif, notes=notes)


def _bytes_per_pixel(depth: int, colour_type: int) -> int:
    """Of the decoded image, at most: transparency may add a channel."""
    channels = {0: 2, 2: 4, 3: 4, 4: 2, 6: 4}.get(colour_type, 4)
    return channels * (2 if depth == 16 else 1)


def _png_chunks(data: bytes):
    """Yields (type, body) of each chunk. Checksums and order are left to libpng."""
    view = memoryview(data)
    position = 8
    while position + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, position)
        yield kind, view[position + 8 : position + 8 + size]
        position += size + 12


def _inflate_icc(body: bytes) -> bytes:
    """The profile in an iCCP chunk (name, 0, method 0, zlib stream); nothing if it is damaged or beyond the limit."""
    _, _, compressed = body.partition(b"\x00")
    inflater = zlib.decompressobj()
    try:
        profile = inflater.decompress(compressed[1:], MAX_METADATA)
    except zlib.error:
        return b""
    return profile if inflater.eof else b""
