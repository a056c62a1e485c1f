"""The samples of a TIFF image, from all of its strips or tiles."""

from __future__ import annotations

import sys

import imagecodecs
import numpy as np

from ..stored import DamagedImageError, ImageError, strips
from .compression import Compression
from .directories import Directory
from .layout import Layout, Segment

_NATIVE_ORDER = "<" if sys.byteorder == "little" else ">"


def read_samples(data: bytes, directory: Directory, layout: Layout, compression: Compression) -> np.ndarray:
    """Decodes all strips or tiles of an image to (H, W, samples), uint8, or uint16 where they have 16 bits.

    Beside the result it takes memory for one strip or tile, and none for a strip that needs no conversion.

    Raises ImageError for a strip or tile that does not hold exactly its pixels.
    """
    file = memoryview(data)
    dtype = np.uint16 if layout.bits == 16 else np.uint8
    pixels = np.empty((layout.height, layout.width, layout.samples), dtype)
    swap = layout.bits == 16 and directory.source.order != _NATIVE_ORDER
    for segment in layout.segments(directory):
        rows, columns = slice(segment.top, segment.top + layout.segment_height), slice(segment.left, None)
        region = pixels[rows, columns] if segment.sample is None else pixels[rows, columns, segment.sample, None]
        region = region[:, : layout.segment_width]
        stored = file[segment.offset : segment.offset + segment.size]
        _read_segment(stored, region, layout, compression, swap, segment)
    return pixels


def _read_segment(
    stored: memoryview, region: np.ndarray, layout: Layout, compression: Compression, swap: bool, segment: Segment
) -> None:
    """Decodes a strip or tile, and puts into `region` what of it belongs to the image."""
    whole = (layout.segment_height, layout.segment_width, layout.segment_samples)
    shapes = [whole]
    if not layout.tiled and region.shape != whole:
        shapes.insert(0, region.shape)  # some writers store the last strip with as many rows as the others
    for shape in shapes:
        direct = region.shape == shape and region.flags.c_contiguous
        block = region if direct else np.empty(shape, region.dtype)
        try:
            _decode(stored, block, layout.bits, compression, swap)
        except MemoryError:
            raise
        except ImageError as error:
            kind = DamagedImageError if isinstance(error, DamagedImageError) else ImageError
            raise kind(f"{error} ({layout.name(segment)} of a TIFF file)") from None
        except Exception:  # the decoders raise errors of every type
            continue
        if not direct:
            region[:] = block[: region.shape[0], : region.shape[1]]
        return
    if compression.picture:
        height, width, channels = shapes[0]
        size = f"{width} x {height} pixels of {channels} x {layout.bits} bits"
        problem = f"does not contain a complete {compression.name} picture of {size}"
    elif compression.name == "uncompressed":
        problem = "is too short"
    else:
        problem = f"cannot be decompressed to its size ({compression.name})"
    raise DamagedImageError(f"damaged TIFF file: {layout.name(segment)} {problem}")


def _decode(stored: memoryview, block: np.ndarray, bits: int, compression: Compression, swap: bool) -> None:
    """Fills `block`, (H, W, C), contiguous, with the samples of a strip or tile."""
    height, width, channels = block.shape
    if compression.picture:
        compression.picture(stored, block if channels > 1 else block[:, :, 0])
        return
    assert compression.fill
    if bits < 8:
        packed = np.empty((height, -(-width * channels * bits // 8)), np.uint8)
        compression.fill(stored, packed.reshape(-1), height)
        _unpack(packed, block.reshape(height, -1), bits)
        return
    compression.fill(stored, block.reshape(-1).view(np.uint8), height)
    if swap:
        block.byteswap(inplace=True)
    if compression.predictor:
        for rows in strips(height, block[0].nbytes):
            imagecodecs.delta_decode(block[rows], axis=1, out=block[rows])


def _unpack(packed: np.ndarray, samples: np.ndarray, bits: int) -> None:
    """Rows of samples of 1, 2 or 4 bits, the first in the highest, to one sample a byte."""
    shifts = np.arange(8 - bits, -1, -bits, dtype=np.uint8)
    for rows in strips(len(samples), samples[0].nbytes):
        spread = packed[rows, :, None] >> shifts & np.uint8((1 << bits) - 1)
        samples[rows] = spread.reshape(len(spread), -1)[:, : samples.shape[1]]
