"""Image files made byte by byte, so that the tests of the readers do not rest on the libraries that the readers use.

And random pixels, in PNG files written by a library, for tests to which files are all the same.
"""

from __future__ import annotations

import io
import struct
import zlib

import imagecodecs
import numpy as np

from dali_l3.images.reading import read_image

ADAM7 = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)  # x, y, step x, step y
PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def noise(shape, dtype=np.uint8, seed=0):
    return np.random.default_rng(seed).integers(0, np.iinfo(dtype).max + 1, shape, dtype)


def samples_of(shape, bits=8, seed=0):
    """Random samples of so many bits, as uint8 or uint16."""
    values = np.random.default_rng(seed).integers(0, 1 << bits, shape)
    return values.astype(np.uint16 if bits > 8 else np.uint8)


def assert_reads_as(data, expected):
    pixels = read_image(data).pixels
    assert pixels.dtype == expected.dtype
    np.testing.assert_array_equal(pixels, expected)


def saved(image, **options) -> bytes:
    """The file that Pillow makes of its image."""
    file = io.BytesIO()
    image.save(file, **options)
    return file.getvalue()


def write_png(path, pixels=None):
    """Writes `pixels`, or some of its own, and returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(imagecodecs.png_encode(noise((20, 30, 3)) if pixels is None else pixels))
    return path


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def pack_bits(samples: np.ndarray, depth: int) -> bytes:
    """One row of samples, the first in the highest bits, padded to bytes."""
    if depth == 16:
        return samples.astype(">u2").tobytes()
    bits = (samples.astype(np.uint8)[:, None] >> np.arange(depth - 1, -1, -1)) & 1
    return np.packbits(bits.ravel()).tobytes()


def _png_rows(samples: np.ndarray, depth: int) -> bytes:
    """Rows with the filters None and Sub in turn."""
    rows = []
    step = max(1, samples.shape[2] * depth // 8)
    for y, row in enumerate(samples):
        data = np.frombuffer(pack_bits(row.ravel(), depth), np.uint8)
        if y % 2:
            data = data - np.concatenate([np.zeros(step, np.uint8), data])[: len(data)]
        rows.append(bytes([y % 2]) + data.tobytes())
    return b"".join(rows)


def png(
    samples: np.ndarray, depth: int, color: int, chunks: bytes = b"", interlaced: bool = False, late: bytes = b""
) -> bytes:
    """A PNG of `samples`, (H, W, C) in the range of `depth`. chunks: before the pixels; late: after them."""
    height, width, _ = samples.shape
    if interlaced:
        passes = [samples[y::dy, x::dx] for x, y, dx, dy in ADAM7]
        rows = b"".join(_png_rows(part, depth) for part in passes if part.size)
    else:
        rows = _png_rows(samples, depth)
    header = png_header(width, height, depth, color, interlaced)
    return png_file(header, chunks, png_chunk(b"IDAT", zlib.compress(rows)), late)


def png_header(width: int, height: int, depth: int = 8, color: int = 0, interlaced: int = 0) -> bytes:
    return png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced))


def png_file(*chunks: bytes) -> bytes:
    """The signature, `chunks` and the end of a PNG."""
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks) + png_chunk(b"IEND", b"")


def tiff(
    samples: np.ndarray,
    bits: int = 8,
    photometric: int = 1,
    order: str = "<",
    planar: bool = False,
    extra: dict[int, tuple[int, ...]] | None = None,
    pages: int = 1,
) -> bytes:
    """An uncompressed TIFF of `samples`, (H, W, C). extra: further tags, as SHORTs. pages: copies of the image."""
    height, width, channels = samples.shape
    planes = [samples[:, :, c : c + 1] for c in range(channels)] if planar else [samples]
    strips = []
    for plane in planes:
        if bits == 16:
            strips.append(plane.astype(order + "u2").tobytes())
        else:
            strips.append(b"".join(pack_bits(row.ravel(), bits) for row in plane))
    data = (b"II*\0" if order == "<" else b"MM\0*") + b"\0\0\0\0"
    offsets = []
    for strip in strips:
        offsets.append(len(data))
        data += strip + b"\0" * (len(strip) % 2)
    tags = {
        256: ("I", (width,)),
        257: ("I", (height,)),
        258: ("H", (bits,) * channels),
        259: ("H", (1,)),
        262: ("H", (photometric,)),
        273: ("I", tuple(offsets)),
        277: ("H", (channels,)),
        278: ("I", (height,)),
        279: ("I", tuple(map(len, strips))),
        284: ("H", (2 if planar else 1,)),
        **{tag: ("H", values) for tag, values in (extra or {}).items()},
    }
    link = 4
    for _ in range(pages):
        entries = b""
        for tag, (kind, values) in sorted(tags.items()):
            body = struct.pack(order + kind * len(values), *values)
            if len(body) > 4:
                data += b"\0" * (len(data) % 2)
                body, data = struct.pack(order + "I", len(data)), data + body
            entries += struct.pack(order + "HHI", tag, {"H": 3, "I": 4}[kind], len(values)) + body.ljust(4, b"\0")
        data += b"\0" * (len(data) % 2)
        data = data[:link] + struct.pack(order + "I", len(data)) + data[link + 4 :]
        link = len(data) + 2 + len(entries)
        data += struct.pack(order + "H", len(tags)) + entries + b"\0\0\0\0"
    return data


def tiff_stack(pages, lost=()):
    """A TIFF of so many pages of 6 x 5 gray pixels, which hold 0, 1, 2, …; of `lost` ones the pixels are not there."""
    data = b"II*\0"
    for page in range(pages):
        strip = len(data) + 4
        data += struct.pack("<I", strip + 30) + bytes([page]) * 30  # where the directory is
        offset = 10**6 if page in lost else strip
        tags = {256: 6, 257: 5, 258: 8, 259: 1, 262: 1, 273: offset, 277: 1, 278: 5, 279: 30}
        entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
        data += struct.pack("<H", len(tags)) + entries  # the link to the next follows
    return data + bytes(4)


def exif(orientation: int, order: str = "<") -> bytes:
    """A block of EXIF data: a make, the orientation, a resolution unit."""
    entries = struct.pack(order + "HHI4s", 0x010F, 2, 4, b"abc\0")
    entries += struct.pack(order + "HHIHH", 0x0112, 3, 1, orientation, 0)
    entries += struct.pack(order + "HHIHH", 0x0128, 3, 1, 2, 0)
    return (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, 3) + entries + b"\0\0\0\0"
