"""The pixels of PNG files: from the zlib stream in the IDAT chunks to arrays, a strip of rows at a time."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import imagecodecs
import numpy as np
from zlib_ng import zlib_ng

from .png_chunks import SIGNATURE, chunk
from .stored import DamagedImageError, ImageError, strips

GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6  # colour types
CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGBA: 4}

_DEPTHS = {GRAY: (1, 2, 4, 8, 16), RGB: (8, 16), PALETTE: (1, 2, 4, 8), GRAY_ALPHA: (8, 16), RGBA: (8, 16)}
_MAX_SIDE = (1 << 31) - 1
_MAX_WIDTH = 1_000_000  # of libpng

_WHOLE = ((0, 0, 1, 1),)  # left, top, step to the right, step down
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))

_PIECE = 1 << 16  # bytes that are inflated at once: what zlib leaves of a piece is copied
_LAST_FILTER = 4


@dataclass(frozen=True)
class Header:
    """The IHDR chunk."""

    width: int
    height: int
    depth: int
    colour: int
    interlaced: bool

    @classmethod
    def parse(cls, body: bytes) -> Header:
        """Raises ImageError for what the standard does not define."""
        if len(body) != 13:
            raise DamagedImageError(f"damaged PNG file: a header of {len(body)} bytes")
        width, height, depth, colour, compression, filtering, interlace = struct.unpack(">IIBBBBB", body)
        if max(width, height) > _MAX_SIDE:
            raise DamagedImageError(f"damaged PNG file: {width} x {height} pixels")
        if depth not in _DEPTHS.get(colour, ()):
            raise DamagedImageError(f"damaged PNG file: colour type {colour} of {depth} bits")
        if compression or filtering or interlace > 1:
            raise DamagedImageError("damaged PNG file: unknown method of compression, filtering or interlacing")
        return cls(width, height, depth, colour, bool(interlace))

    @property
    def channels(self) -> int:
        """Samples in a stored pixel."""
        return CHANNELS[self.colour]


def decode(
    header: Header, bodies: Iterable[memoryview], convert: Callable[[np.ndarray], np.ndarray], out: np.ndarray
) -> bool:
    """Decodes the pixels into `out`; returns whether there are bytes in the IDAT chunks beyond them.

    bodies: of the IDAT chunks
    convert: makes pixels of samples as they are stored, (N, W, C), uint8 or uint16 in any byte order
    out: (H, W, C') of what `convert` returns

    Raises ImageError for data that is damaged, or too little or too much for the header.
    """
    if header.width > _MAX_WIDTH:
        raise ImageError(f"PNG of more than {_MAX_WIDTH} pixels in a row: cut it first")
    stream = _PixelStream(bodies)
    for left, top, right, down in _ADAM7 if header.interlaced else _WHOLE:
        part = out[top::down, left::right]
        if part.size:
            for rows, samples in _read_image(stream, header, *part.shape[:2]):
                part[rows] = convert(samples)
    return stream.finish()


def _read_image(stream: _PixelStream, header: Header, height: int, width: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Yields the rows of strips, from the top, and their samples."""
    bits = header.channels * header.depth
    size = (width * bits + 7) // 8
    step = max(1, bits // 8)
    above = b""  # what the filters of a strip's first row refer to: the row before, as an unfiltered one
    for rows in strips(height, max(size, width * header.channels)):
        filtered = stream.read((rows.stop - rows.start) * (1 + size))
        if np.frombuffer(filtered, np.uint8)[:: 1 + size].max() > _LAST_FILTER:
            raise DamagedImageError("damaged PNG file: unknown filter of a row")
        packed = _unfilter(above + filtered, size, step)[1 if above else 0 :]
        above = b"\0" + packed[-1].tobytes()
        yield rows, _unpack(packed, header, width)


_TYPES_OF_STEPS = {1: (8, GRAY), 2: (8, GRAY_ALPHA), 3: (8, RGB), 4: (8, RGBA), 6: (16, RGB), 8: (16, RGBA)}


def _unfilter(filtered: bytes, size: int, step: int) -> np.ndarray:
    """Undoes the filters of rows of 1 + `size` bytes, through libpng; returns (rows, size), uint8.

    libpng gets a file of these rows that is always sound: filters work on bytes, so whole pixels of `step` bytes do.
    """
    depth, colour = _TYPES_OF_STEPS[step]
    header = struct.pack(">IIBBBBB", size // step, len(filtered) // (1 + size), depth, colour, 0, 0, 0)
    chunks = (chunk(b"IHDR", header), chunk(b"IDAT", zlib_ng.compress(filtered, 0)), chunk(b"IEND", b""))
    rows: np.ndarray = imagecodecs.png_decode(b"".join((SIGNATURE, *chunks)))
    if depth == 16:
        rows = rows.astype(">u2", copy=False)
    return rows.reshape(len(rows), -1).view(np.uint8)


def _unpack(rows: np.ndarray, header: Header, width: int) -> np.ndarray:
    """Samples, (N, W, C), of packed rows, (N, bytes)."""
    if header.depth < 8:
        shifts = np.arange(8 - header.depth, -1, -header.depth, dtype=np.uint8)
        samples = rows[:, :, None] >> shifts & np.uint8((1 << header.depth) - 1)
        return samples.reshape(len(rows), -1)[:, :width, None]
    return rows.view(">u2" if header.depth == 16 else np.uint8).reshape(len(rows), width, header.channels)


class _PixelStream:
    """The inflated bytes of the IDAT chunks. Methods raise ImageError.

    zlib's frame around the Deflate stream is taken off here: zlib itself would report a wrong checksum together with
    the last bytes, and withhold them.
    """

    def __init__(self, bodies: Iterable[memoryview]) -> None:
        self._pieces = (body[start : start + _PIECE] for body in bodies for start in range(0, len(body), _PIECE))
        self._inflater = zlib_ng.decompressobj(-zlib_ng.MAX_WBITS)
        self._checksum = zlib_ng.adler32(b"")
        self._rest = b""  # of a piece, not inflated yet
        start = self._take(b"", 2)
        if not start:
            raise DamagedImageError("damaged PNG file: no image data")
        if (
            len(start) < 2
            or start[0] & 0x8F != zlib_ng.DEFLATED
            or start[1] & 0x20
            or int.from_bytes(start[:2], "big") % 31
        ):
            raise DamagedImageError("damaged PNG file: its image data is not a zlib stream")
        self._rest = start[2:]

    def read(self, size: int) -> bytes:
        """The next `size` bytes."""
        parts = []
        while size:
            parts.append(self._inflate(size))
            size -= len(parts[-1])
        data = b"".join(parts)
        self._checksum = zlib_ng.adler32(data, self._checksum)
        return data

    def finish(self) -> bool:
        """Checks that the stream ends here, and its checksum; returns whether bytes follow."""
        if self._inflate(1, may_end=True):
            raise DamagedImageError("damaged PNG file: more image data than its size needs")
        end = self._take(self._inflater.unused_data, 5)
        if len(end) < 4:
            raise DamagedImageError("damaged PNG file: its image data ends early")
        if int.from_bytes(end[:4], "big") != self._checksum:
            raise DamagedImageError("damaged PNG file: the checksum of its image data is wrong")
        return len(end) > 4

    def _inflate(self, limit: int, may_end: bool = False) -> bytes:
        """1 … `limit` bytes, or none at the end of the stream."""
        while not self._inflater.eof:
            piece = self._rest or next(self._pieces, b"")
            try:
                data: bytes = self._inflater.decompress(piece, limit)
            except zlib_ng.error as error:
                raise DamagedImageError("damaged PNG file: its image data cannot be inflated") from error
            self._rest = self._inflater.unconsumed_tail
            if data:
                return data
            if not piece:
                break
        if may_end and self._inflater.eof:
            return b""
        raise DamagedImageError("damaged PNG file: its image data ends early")

    def _take(self, data: bytes, size: int) -> bytes:
        """`data` and what follows it, at least `size` bytes if there are so many."""
        while len(data) < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            data += piece
        return data
