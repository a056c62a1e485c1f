"""Where in a TIFF file the pixels of an image are: in strips or tiles, of all samples or of one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..stored import DamagedImageError, ImageError
from .directories import Directory

WIDTH, HEIGHT, BITS, SAMPLES, PLANAR = 256, 257, 258, 277, 284
STRIP_OFFSETS, ROWS_PER_STRIP, STRIP_SIZES = 273, 278, 279
TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_SIZES = 322, 323, 324, 325
_DEPTH, _TILE_DEPTH = 32997, 32998

_SEPARATE_PLANES = 2
_USUAL_TILE = 1 << 24  # pixels; up to it a tile may be larger than the image


@dataclass(frozen=True)
class Segment:
    """A strip or a tile.

    number: from 1, among all of the image
    offset, size: of its data in the file, in bytes
    top, left: of its pixels in the image
    sample: the only one that it holds, or None: it holds all
    """

    number: int
    offset: int
    size: int
    top: int
    left: int
    sample: int | None


@dataclass(frozen=True)
class Layout:
    """How an image is divided.

    width, height: of the image in pixels
    samples, bits: of a pixel, and of each of its samples
    separate: whether every sample has strips or tiles of its own
    tiled: tiles, not strips
    segment_width, segment_height: of a tile, or of a strip other than the last
    """

    width: int
    height: int
    samples: int
    bits: int
    separate: bool
    tiled: bool
    segment_width: int
    segment_height: int

    @property
    def count(self) -> int:
        """Strips or tiles in all."""
        across, down = -(-self.width // self.segment_width), -(-self.height // self.segment_height)
        return across * down * (self.samples if self.separate else 1)

    @property
    def largest_part(self) -> float:
        """The part of the image's pixels that one strip or tile has at most."""
        return min(1.0, self.segment_width * self.segment_height / (self.width * self.height))

    @property
    def segment_samples(self) -> int:
        """Samples of a pixel in one strip or tile."""
        return 1 if self.separate else self.samples

    def name(self, segment: Segment) -> str:
        return f"{'tile' if self.tiled else 'strip'} {segment.number} of {self.count}"

    def segments(self, directory: Directory) -> Iterator[Segment]:
        """All strips or tiles, in the order of their numbers. Raises ImageError where the data of some is missing."""
        offsets, sizes = _places(directory, self)
        tops = range(0, self.height, self.segment_height)
        lefts = range(0, self.width, self.segment_width)
        places = itertools.product(range(self.samples) if self.separate else (None,), tops, lefts)
        for i, (sample, top, left) in enumerate(places):
            yield Segment(i + 1, int(offsets[i]), int(sizes[i]), top, left, sample)


def read_layout(directory: Directory) -> Layout:
    """The layout of an image. Raises ImageError for invalid tags and for volumes."""
    width, height = directory.integer(WIDTH), directory.integer(HEIGHT)
    samples = directory.integer(SAMPLES, 1)
    tiled = TILE_WIDTH in directory
    if tiled:
        segment_width, segment_height = directory.integer(TILE_WIDTH), directory.integer(TILE_HEIGHT)
    else:
        segment_width, segment_height = width, min(directory.integer(ROWS_PER_STRIP, height), height)
    if min(width, height, samples, segment_width, segment_height) < 1:
        raise DamagedImageError("damaged TIFF file: the size of the image, or of its strips or tiles, is missing")
    depth = max(directory.integer(_DEPTH, 1), directory.integer(_TILE_DEPTH, 1) if tiled else 1)
    if depth > 1:
        raise ImageError(f"volume of {depth} planes: save each as a page, or a file, of its own")
    planar = directory.integer(PLANAR, 1)
    if planar not in (1, _SEPARATE_PLANES):
        raise DamagedImageError(f"damaged TIFF file: its planar configuration is {planar}")
    separate = planar == _SEPARATE_PLANES and samples > 1
    bits = _bits(directory, samples)
    return Layout(width, height, samples, bits, separate, tiled, segment_width, segment_height)


def check_tiles(layout: Layout, max_pixels: int) -> None:
    """Raises ImageError for tiles that take memory out of proportion to the image."""
    limit = min(max_pixels, max(layout.width * layout.height, _USUAL_TILE))
    if layout.segment_width * layout.segment_height > limit:
        raise ImageError(
            f"TIFF tiles of {layout.segment_width} x {layout.segment_height} pixels exceed the limit of {limit} pixels"
        )


def has_all_data(directory: Directory) -> bool:
    """Whether the data of all strips or tiles is within the file. Raises ImageError for damage of other kinds."""
    try:
        _places(directory, read_layout(directory))
    except _DataMissing:
        return False
    return True


class _DataMissing(DamagedImageError):
    def __init__(self) -> None:
        super().__init__("damaged TIFF file: strips or tiles are missing, or lie beyond its end")


def _places(directory: Directory, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Offset and size of the data of each strip or tile."""
    tiled = layout.tiled
    offset_tag = TILE_OFFSETS if tiled and TILE_OFFSETS in directory else STRIP_OFFSETS
    size_tag = TILE_SIZES if tiled and TILE_SIZES in directory else STRIP_SIZES
    counts = [directory.entries[tag].count if tag in directory else 0 for tag in (offset_tag, size_tag)]
    if min(counts) < layout.count:
        raise _DataMissing
    offsets, sizes = directory.integers(offset_tag, layout.count), directory.integers(size_tag, layout.count)
    end = directory.source.size
    # Each by itself first, so that sums of 64 bits cannot overflow.
    if not (offsets.all() and sizes.all() and offsets.max() <= end and sizes.max() <= end):
        raise _DataMissing
    if (offsets.astype(np.int64) + sizes.astype(np.int64)).max() > end:
        raise _DataMissing
    return offsets, sizes


def _bits(directory: Directory, samples: int) -> int:
    """Bits of each sample; a single value stands for all."""
    values = directory.integers(BITS, samples)
    if values.size not in (0, 1, samples):
        raise DamagedImageError(f"damaged TIFF file: it has {samples} samples a pixel, but bits of {values.size}")
    if values.size and (values != values[0]).any():
        listed = ", ".join(map(str, values[:8].tolist()))
        raise ImageError(f"TIFF with samples of different bits ({listed}) is not supported")
    return int(values[0]) if values.size else 1
