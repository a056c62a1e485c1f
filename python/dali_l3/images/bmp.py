"""BMP files to arrays, unpacked here: no library takes all layouts of bit masks for what they are."""

from __future__ import annotations

import functools
import operator
import struct
from collections.abc import Iterator

import numpy as np

from .bmp_header import PLAIN, RLE4, USUAL_MASKS, BmpHeader, damaged, parse
from .stored import PALETTE_DROPPED, PALETTE_EXPANDED, ImageError, ReadOptions, StoredImage, admit

_GRAY_PALETTE_EXPANDED = "palette expanded to gray; --palette index keeps the numbers"
_BLOCK = 1 << 17  # pixels that are unpacked at a time; a multiple of 8

_END_OF_ROW, _END, _MOVE = 0, 1, 2  # what a run of no pixels means; more: so many pixels follow

_V4, _V5 = 108, 124  # bytes of the headers that know of colour spaces
_COLOUR_SPACE, _PRIMARIES_AND_GAMMA, _PROFILE = slice(56, 60), slice(60, 108), slice(112, 120)
_CALIBRATED, _EMBEDDED_PROFILE, _LINKED_PROFILE = bytes(4), b"DEBM", b"KNIL"


def read(data: bytes, options: ReadOptions) -> StoredImage:
    """Gray, RGB or RGBA: uint8, or uint16 where a bit mask has more than 8 bits."""
    header = parse(data)
    image = _read_palette_image(data, header, options) if header.bits <= 8 else _read_true_colour(data, header, options)
    _read_colour_space(data, header, image)
    image.notes += header.notes
    return image


def _rows(data: bytes, header: BmpHeader, item: str, count: int) -> np.ndarray:
    """A view on the stored rows, the top one first, (H, count) items. Raises ImageError if they are not all there."""
    size = np.dtype(item).itemsize
    stride = (header.width * header.bits + 31) // 32 * 4
    if header.pixels_at + stride * (header.height - 1) + size * count > len(data):
        raise damaged("it ends before its last row")
    rows = np.ndarray((header.height, count), item, data, header.pixels_at, (stride, size))
    return rows if header.is_top_down else rows[::-1]


def _blocks(height: int, width: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of parts of the image, small enough for what is computed on the way to its pixels."""
    rows = max(1, _BLOCK // width)
    for top in range(0, height, rows):
        for left in range(0, width, _BLOCK):
            yield slice(top, min(top + rows, height)), slice(left, min(left + _BLOCK, width))


# ---- Palettes and run lengths ----------------------------------------------------------------------------------------


def _read_palette_image(data: bytes, header: BmpHeader, options: ReadOptions) -> StoredImage:
    table, notes = _lookup_table(data, header, options)
    channels = 1 if table is None or table.ndim == 1 else 3
    if header.compression == PLAIN:
        admit(header.width, header.height, channels, options)
        bits, rows = header.bits, _rows(data, header, "u1", -(-header.width * header.bits // 8))
    else:
        admit(header.width, header.height, 1 + channels, options)
        bits, (rows, is_complete) = 8, _decode_runs(data, header)
        if not is_complete:
            notes.append("pixels that the run lengths skip set to entry 0 of the palette")
    pixels = np.empty((header.height, header.width) if channels == 1 else (header.height, header.width, 3), np.uint8)
    for block_rows, columns in _blocks(header.height, header.width):
        packed = rows[block_rows, columns.start * bits // 8 : -(-columns.stop * bits // 8)]
        numbers = _unpack(packed, bits)[:, : columns.stop - columns.start]
        pixels[block_rows, columns] = numbers if table is None else _look_up(table, numbers)
    return StoredImage(pixels, notes=notes)


def _lookup_table(data: bytes, header: BmpHeader, options: ReadOptions) -> tuple[np.ndarray | None, list[str]]:
    """What is looked up for the numbers of palette entries, uint8, (N,) or (N, 3), or None: nothing; and notes."""
    palette = np.frombuffer(data, np.uint8, header.palette_size * header.entry_size, header.palette_at)
    palette = palette.reshape(-1, header.entry_size)[:, 2::-1]
    is_gray = (palette == palette[:, :1]).all()
    grays, numbers = palette[:, 0], np.arange(len(palette))
    if options.palette == "index":
        return None, [] if is_gray and (grays == numbers).all() else [PALETTE_DROPPED]
    if not len(palette):
        raise damaged("no palette")
    if not is_gray:
        return palette, [PALETTE_EXPANDED]
    is_ramp = (grays == numbers).all() or (grays == numbers * 255 // ((1 << header.bits) - 1)).all()
    return grays, [] if is_ramp else [_GRAY_PALETTE_EXPANDED]


def _look_up(table: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    needed = int(numbers.max()) + 1
    if needed > len(table):
        raise damaged(
            f"a palette of {len(table)} entries where the pixels need at least {needed}: "
            "--palette index keeps the numbers"
        )
    pixels: np.ndarray = table[numbers]
    return pixels


def _unpack(packed: np.ndarray, bits: int) -> np.ndarray:
    """The numbers in bytes, (H, N), the first in the highest bits."""
    if bits == 8:
        return packed
    shifts = np.arange(8 - bits, -1, -bits, dtype=np.uint8)
    return ((packed[:, :, None] >> shifts) & ((1 << bits) - 1)).reshape(len(packed), -1)


def _decode_runs(data: bytes, header: BmpHeader) -> tuple[np.ndarray, bool]:
    """RLE4 and RLE8 to the numbers of palette entries, (H, W), uint8, 0 where there is none; and whether there are all.

    Raises ImageError for runs that leave their row, which readers treat differently, and for data that ends too early.
    """
    width, height = header.width, header.height
    if header.compression == RLE4:
        pairs = [bytes((value >> 4, value & 15)) for value in range(256)]
        runs = [pair * 128 for pair in pairs]
    else:
        pairs, runs = [], [bytes((value,)) * 255 for value in range(256)]
    numbers = bytearray(width * height)
    position, x, y, written = header.pixels_at, 0, 0, 0
    while position + 2 <= len(data):
        count, value = data[position], data[position + 1]
        position += 2
        if count:
            run = runs[value][:count]
        elif value == _END_OF_ROW:
            x, y = 0, y + 1
            if y > height:
                raise damaged("a run leaves its row")
            continue
        elif value == _END:
            break
        elif value == _MOVE:
            if position + 2 > len(data):
                raise damaged("it ends before its last row")
            x, y = x + data[position], y + data[position + 1]
            position += 2
            continue
        else:
            size = -(-value // 2) if pairs else value
            run = data[position : position + size]
            if pairs:
                run = b"".join([pairs[byte] for byte in run])[:value]
            position += size + size % 2
            if len(run) < value:
                raise damaged("it ends before its last row")
        end = x + len(run)
        if end > width or y >= height:
            raise damaged("a run leaves its row")
        numbers[y * width + x : y * width + end] = run
        x, written = end, written + len(run)
    else:
        if written < width * height:
            raise damaged("it ends before its last row")
    rows = np.frombuffer(numbers, np.uint8).reshape(height, width)
    return rows[::-1], written == width * height


# ---- Bit masks -------------------------------------------------------------------------------------------------------


def _read_true_colour(data: bytes, header: BmpHeader, options: ReadOptions) -> StoredImage:
    samples = _samples(header)
    dtype = np.dtype(np.uint8 if all(bits <= 8 for _, bits in samples) else np.uint16)
    admit(header.width, header.height, len(samples) * dtype.itemsize, options)
    if header.bits == 24:
        rows = _rows(data, header, "u1", 3 * header.width).reshape(header.height, header.width, 3)
        return StoredImage(np.ascontiguousarray(rows[:, :, ::-1]))
    rows = _rows(data, header, f"<u{header.bits // 8}", header.width)
    pixels = np.empty((header.height, header.width, len(samples)), dtype)
    unused = ~sum(header.masks) & ((1 << header.bits) - 1)
    always, ever = unused, 0  # those of the unused bits that are 1 in all pixels, and in any
    scales = [_scale(bits, dtype) for _, bits in samples]
    for block in _blocks(header.height, header.width):
        words = rows[block]
        for channel, (shift, bits) in enumerate(samples):
            values = (words >> shift) & ((1 << bits) - 1)
            scale = scales[channel]
            pixels[(*block, channel)] = values if scale is None else scale[values]
        if unused:
            always &= int(np.bitwise_and.reduce(words, axis=None))
            ever |= int(np.bitwise_or.reduce(words, axis=None))
    notes = []
    if any(scale is not None for scale in scales):
        *others, last = (str(bits) for _, bits in samples)
        notes.append(f"samples of {', '.join(others)} and {last} bits scaled to {8 * dtype.itemsize}")
    if always != ever & unused:
        notes.append("unused bits of the pixels differ and were left out")
    return StoredImage(pixels, notes=notes)


def _samples(header: BmpHeader) -> list[tuple[int, int]]:
    """Of red, green, blue, and alpha if there is any: the lowest bit in a pixel and the number of bits."""
    masks = [mask for mask in header.masks if mask]
    if not all(header.masks[:3]):
        raise ImageError("BMP without a bit mask for red, green or blue is not supported")
    if sum(masks) != functools.reduce(operator.or_, masks):
        raise ImageError("BMP with bit masks that overlap is not supported")
    if max(masks) >> header.bits:
        raise ImageError(f"BMP with bit masks beyond the {header.bits} bits of its pixels is not supported")
    if header.bits == 24 and header.masks != USUAL_MASKS[24]:
        raise ImageError("BMP with unusual bit masks at 24 bits a pixel is not supported")
    samples = [((mask & -mask).bit_length() - 1, mask.bit_count()) for mask in masks]
    for mask, (shift, bits) in zip(masks, samples, strict=True):
        if mask >> shift != (1 << bits) - 1:
            raise ImageError("BMP with a bit mask that has gaps is not supported")
        if bits > 16:
            raise ImageError(f"BMP with samples of {bits} bits; at most 16 are supported")
    return samples


def _scale(bits: int, dtype: np.dtype) -> np.ndarray | None:
    """What becomes of each value of so many bits: a table that spreads them over all of `dtype`. None: they stay.

    No two values become one. Other readers differ by one here and there: they cut (Pillow) or repeat the highest bits.
    """
    largest, top = (1 << bits) - 1, int(np.iinfo(dtype).max)
    return None if largest == top else ((2 * top * np.arange(largest + 1) + largest) // (2 * largest)).astype(dtype)


# ---- Colour spaces ---------------------------------------------------------------------------------------------------


def _read_colour_space(data: bytes, header: BmpHeader, image: StoredImage) -> None:
    """Sets the ICC profile, and notes what else there is."""
    size = int.from_bytes(header.fields[:4], "little")
    if size not in (_V4, _V5):
        return
    space = header.fields[_COLOUR_SPACE]
    if space == _CALIBRATED and any(header.fields[_PRIMARIES_AND_GAMMA]):
        image.notes.append("gamma and chromaticities left out")
    if size == _V5 and space == _LINKED_PROFILE:
        image.notes.append("linked ICC profile left out")
    if size == _V5 and space == _EMBEDDED_PROFILE:
        offset, length = struct.unpack("<II", header.fields[_PROFILE])
        profile = data[14 + offset : 14 + offset + length]
        if profile and len(profile) == length and offset >= size:
            image.icc = profile
        else:
            image.notes.append("damaged ICC profile left out")
