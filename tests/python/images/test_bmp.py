"""BMP files of all versions: pixels against values computed beside them; refusals and notes.

What others read differently (Pillow 13, imagecodecs 2026.3): Pillow drops the alpha of 1555, and refuses most masks.
imagecodecs neither scales alpha of fewer than 8 bits nor reads samples of more, and adds alpha where there is none.
Both refuse ALPHABITFIELDS, and take masks that are all 0 for the usual ones. Scaling to 8 bits, both cut and do not
round.
"""

from __future__ import annotations

import io
import re
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from bmp_files import MASKS, MASKS_WITH_ALPHA, PLAIN, RLE4, RLE8, bmp
from dali_l3.images.reading import ImageError, read_image
from dali_l3.images.stored import PALETTE_DROPPED, PALETTE_EXPANDED, ReadOptions
from image_files import noise
from mutations import mutations

GRAY_EXPANDED = "palette expanded to gray; --palette index keeps the numbers"
UNUSED_BITS = "unused bits of the pixels differ and were left out"
SKIPPED = "pixels that the run lengths skip set to entry 0 of the palette"
INDEX = ReadOptions(palette="index")


def values(shape, bits, seed=0):
    return np.random.default_rng(seed).integers(0, 1 << bits, shape, np.uint32)


def assert_reads_as(data, expected, *notes, options=None):
    image = read_image(data, options or ReadOptions())
    assert image.pixels.dtype == expected.dtype
    np.testing.assert_array_equal(image.pixels, expected)
    assert image.notes == notes


# ---- Palettes --------------------------------------------------------------------------------------------------------

COLOURS = noise((256, 3), seed=1)


@pytest.mark.parametrize("top_down", [False, True])
@pytest.mark.parametrize("width", [1, 7, 8, 33])
@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_palette(bits, width, top_down):
    palette, numbers = COLOURS[: 1 << bits], values((5, width), bits)
    data = bmp(numbers, bits, palette=palette, top_down=top_down)
    assert_reads_as(data, palette[numbers], PALETTE_EXPANDED)
    assert_reads_as(data, numbers.astype(np.uint8), PALETTE_DROPPED, options=INDEX)


@pytest.mark.parametrize("size", [12, 16, 40, 52, 56, 64, 108, 124])
def test_palette_after_every_header(size):
    numbers = values((5, 7), 4)
    assert_reads_as(bmp(numbers, 4, palette=COLOURS[:16], size=size), COLOURS[numbers], PALETTE_EXPANDED)


def test_palette_shorter_or_longer_than_its_bits_allow():
    numbers = values((5, 7), 3)
    for entries in (8, 100, 256):
        assert_reads_as(bmp(numbers, 8, palette=COLOURS[:entries]), COLOURS[numbers], PALETTE_EXPANDED)
        assert_reads_as(bmp(numbers, 4, palette=COLOURS[:entries]), COLOURS[numbers], PALETTE_EXPANDED)


@pytest.mark.parametrize("colours", [0, 200, 0xFFFFFFFF])
def test_palette_shorter_than_the_header_announces(colours):
    numbers = values((5, 7), 3)
    data = bmp(numbers, 8, palette=COLOURS[:8], colours=colours)
    assert_reads_as(data, COLOURS[numbers], PALETTE_EXPANDED)
    with pytest.raises(ImageError, match="damaged BMP file: a palette of 8 entries where the pixels need at least 9"):
        read_image(bmp(np.full((5, 7), 8), 8, palette=COLOURS[:8], colours=colours))


def test_numbers_beyond_the_palette():
    numbers = values((5, 7), 8)
    numbers[2, 3] = 255
    data = bmp(numbers, 8, palette=COLOURS[:100])
    message = "damaged BMP file: a palette of 100 entries where the pixels need at least 256: --palette index keeps"
    with pytest.raises(ImageError, match=message):
        read_image(data)
    assert_reads_as(data, numbers.astype(np.uint8), PALETTE_DROPPED, options=INDEX)


def test_pixels_where_the_palette_is():
    """As some writers have it in the header, though they write a palette."""
    numbers = values((5, 7), 2)
    note = "pixels read from behind the palette, though the header places them inside it"
    for count in (200, 256):
        data = bmp(numbers, 8, palette=COLOURS[:count], start=54)
        assert_reads_as(data, COLOURS[numbers], PALETTE_EXPANDED, note)
    with pytest.raises(ImageError, match="damaged BMP file: it ends before its last row"):
        read_image(bmp(noise((50, 52)), 8, start=54))  # really without a palette


def test_palette_without_entries():
    data = bmp(values((5, 7), 1), 1, start=55, gap=b"\0")
    with pytest.raises(ImageError, match="damaged BMP file: no palette"):
        read_image(data)


RAMP = np.arange(256)
GRAY_PALETTES = {
    "identity": (8, RAMP, (), ()),
    "identity of few": (8, RAMP[:4], (), ()),
    "ramp of 1 bit": (1, [0, 255], (), (PALETTE_DROPPED,)),
    "ramp of 2 bits": (2, [0, 85, 170, 255], (), (PALETTE_DROPPED,)),
    "ramp of 4 bits": (4, RAMP[:16] * 17, (), (PALETTE_DROPPED,)),
    "identity of 4 bits": (4, RAMP[:16], (), ()),
    "negative": (1, [255, 0], (GRAY_EXPANDED,), (PALETTE_DROPPED,)),
    "negative of 8 bits": (8, RAMP[::-1], (GRAY_EXPANDED,), (PALETTE_DROPPED,)),
    "any": (2, [7, 7, 200, 1], (GRAY_EXPANDED,), (PALETTE_DROPPED,)),
}


@pytest.mark.parametrize("case", GRAY_PALETTES)
def test_gray_palettes_become_gray(case):
    bits, grays, notes, notes_of_index = GRAY_PALETTES[case]
    grays = np.asarray(grays, np.uint8)
    numbers = values((5, 7), len(grays).bit_length() - 1)
    data = bmp(numbers, bits, palette=np.stack([grays] * 3, axis=1))
    assert_reads_as(data, grays[numbers], *notes)
    assert_reads_as(data, numbers.astype(np.uint8), *notes_of_index, options=INDEX)


# ---- Run lengths -----------------------------------------------------------------------------------------------------


class Runs:
    """Writes run lengths at random, and what they mean, (H, W), from the top."""

    def __init__(self, bits, shape, seed, skips):
        self.bits, self.random = bits, np.random.default_rng(seed)
        self.numbers, self.data, self.skipped = np.zeros(shape, np.uint8), b"", False
        height, width = shape
        y = 0
        while y < height:
            x = 0
            while x < width:
                if skips and self.random.random() < 0.2:
                    right, up = self._below(min(width - x, 99)), self._below(min(height - y, 3))
                    self.data += bytes((0, 2, right, up))
                    x, y, self.skipped = x + right, y + up, self.skipped or right + up > 0
                x += self._run(x, y, min(width - x, 255))
            y += 1
            self.data += b"\0\0"
        self.data += b"\0\1"
        self.numbers = self.numbers[::-1]

    def _below(self, limit):
        return int(self.random.integers(limit))

    def _run(self, x, y, room):
        length, top = int(self.random.integers(1, room + 1)), (1 << self.bits) - 1
        if length >= 3 and self.random.random() < 0.5:  # pixels as they are
            run = self.random.integers(0, top + 1, length)
            packed = _packed(run.tolist(), self.bits)
            self.data += bytes((0, length)) + packed + b"\0" * (len(packed) % 2)
        else:
            pair = self.random.integers(0, top + 1, 2) if self.bits == 4 else self.random.integers(0, top + 1, 1)
            run = np.resize(pair, length)
            self.data += bytes((length,)) + _packed(pair.tolist(), self.bits)
        self.numbers[y, x : x + length] = run
        return length


def _packed(numbers, bits):
    if bits == 8:
        return bytes(numbers)
    numbers = numbers + [0] * (len(numbers) % 2)
    return bytes(high << 4 | low for high, low in zip(numbers[::2], numbers[1::2], strict=True))


@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_run_lengths(bits, skips):
    palette = COLOURS[: 1 << bits]
    for seed in range(20):
        runs = Runs(bits, (9, 300) if seed % 2 else (40, 7), seed, skips)
        size = (40, 64, 108)[seed % 3]
        data = bmp(
            runs.data, bits, palette=palette, shape=runs.numbers.shape, size=size, compression={8: 1, 4: 2}[bits]
        )
        notes = (SKIPPED,) if runs.skipped else ()
        assert_reads_as(data, palette[runs.numbers], PALETTE_EXPANDED, *notes)
        assert_reads_as(data, runs.numbers, PALETTE_DROPPED, *notes, options=INDEX)


def run_lengths(data, bits=8, shape=(2, 4)):
    return bmp(data, bits, palette=COLOURS[: 1 << bits], shape=shape, compression=RLE8 if bits == 8 else RLE4)


def test_run_lengths_that_end_early_leave_entry_0():
    data = run_lengths(b"\3\7\0\1")
    assert_reads_as(data, COLOURS[np.array([[0, 0, 0, 0], [7, 7, 7, 0]])], PALETTE_EXPANDED, SKIPPED)


def test_run_lengths_without_an_end():
    assert_reads_as(run_lengths(b"\4\7\0\0\4\1"), COLOURS[np.array([[1] * 4, [7] * 4])], PALETTE_EXPANDED)


EARLY = "damaged BMP file: it ends before its last row"
LEAVES = "damaged BMP file: a run leaves its row"
BAD_RUNS = {
    "nothing": (b"", 8, "damaged BMP file: its pixels start beyond its end"),
    "half of a run": (b"\4", 8, EARLY),
    "one row": (b"\4\7\0\0", 8, EARLY),
    "half of a move": (b"\4\7\0\2\0", 8, EARLY),
    "pixels missing": (b"\4\7\0\0\0\4ab", 8, EARLY),
    "pixels missing of 4 bits": (b"\4\7\0\0\0\4a", 4, EARLY),
    "a run too long": (b"\5\7\0\0\4\1\0\1", 8, LEAVES),
    "a second run too long": (b"\4\7\1\7\0\0\4\1\0\1", 8, LEAVES),
    "pixels too many": (b"\0\5abcde\0\0\0\4\1\0\1", 8, LEAVES),
    "moved out of the row": (b"\0\2\4\0\1\7", 8, LEAVES),
    "moved above the image": (b"\0\2\0\2\1\7", 8, LEAVES),
    "a row too many": (b"\4\7\0\0\4\7\0\0\4\7\0\0\0\1", 8, LEAVES),
    "ends of rows too many": (b"\4\7\0\0\4\7" + b"\0\0" * 2, 8, LEAVES),
}


@pytest.mark.parametrize("case", BAD_RUNS)
def test_run_lengths_that_make_no_sense(case):
    data, bits, message = BAD_RUNS[case]
    with pytest.raises(ImageError, match=message):
        read_image(run_lengths(data, bits))


# ---- Bit masks -------------------------------------------------------------------------------------------------------


def scaled(samples, bits, top):
    """Rounded, half up, in Python's integers."""
    largest = (1 << bits) - 1
    return [[(2 * sample * top + largest) // (2 * largest) for sample in row] for row in samples.tolist()]


def expected_of_masks(words, masks):
    widths = [bin(mask).count("1") for mask in masks if mask]
    dtype, top = (np.uint8, 255) if max(widths) <= 8 else (np.uint16, 65535)
    channels = [scaled((words & mask) // (mask & -mask), bin(mask).count("1"), top) for mask in masks if mask]
    notes = ()
    if any(width != top.bit_length() for width in widths):
        named = ", ".join(map(str, widths[:-1])) + f" and {widths[-1]}"
        notes = (f"samples of {named} bits scaled to {top.bit_length()}",)
    return np.stack(channels, axis=-1).astype(dtype), notes


@pytest.mark.parametrize("size", [12, 16, 40, 64, 108, 124])
@pytest.mark.parametrize("top_down", [False, True])
def test_24_bits(size, top_down):
    rgb = noise((5, 7, 3))
    words = rgb[:, :, 0] * np.uint32(65536) + rgb[:, :, 1] * np.uint32(256) + rgb[:, :, 2]
    assert_reads_as(bmp(words, 24, size=size, top_down=top_down and size != 12), rgb)


@pytest.mark.parametrize("size", [40, 108, 124])
def test_16_and_32_bits_without_masks(size):
    """Of 32 bits the highest 8 mean nothing, in whatever header (Chromium differs for 108 and 124)."""
    words = values((5, 7), 32)
    expected, _ = expected_of_masks(words, (0xFF0000, 0xFF00, 0xFF))
    for constant in (0, 0xFF000000, 0x12000000):
        assert_reads_as(bmp(words & 0xFFFFFF | constant, 32, size=size), expected)
    masks = (0, 0, 0, 0xFF000000) if size > 40 else ()
    assert_reads_as(bmp(words, 32, size=size, masks=masks, compression=PLAIN), expected, UNUSED_BITS)
    words = values((5, 7), 15)
    expected, notes = expected_of_masks(words, (0x7C00, 0x3E0, 0x1F))
    assert notes == ("samples of 5, 5 and 5 bits scaled to 8",)
    assert_reads_as(bmp(words, 16, size=size), expected, *notes)
    assert_reads_as(bmp(words | values((5, 7), 1, seed=3) << 15, 16, size=size), expected, *notes, UNUSED_BITS)


@st.composite
def layouts(draw):
    """Bits of a pixel, and masks of red, green, blue and perhaps alpha in any order, with or without unused bits."""
    bits = draw(st.sampled_from([16, 32]))
    number = draw(st.sampled_from([3, 4]))
    cuts = sorted(draw(st.sets(st.integers(0, bits), min_size=number + 1, max_size=number + 1)))
    parts = [((1 << high) - 1) ^ ((1 << low) - 1) for low, high in zip(cuts, cuts[1:], strict=False)]
    masks = draw(st.permutations(parts))
    return bits, tuple(masks)


@given(layouts(), st.sampled_from([40, 52, 56, 108, 124]), st.booleans(), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_all_bit_masks(layout, size, top_down, width, seed):
    bits, masks = layout
    words = values((3, width), bits, seed)
    widths = [bin(mask).count("1") for mask in masks]
    compression = MASKS_WITH_ALPHA if len(masks) == 4 and size < 56 else MASKS
    data = bmp(words, bits, masks=masks, size=size, top_down=top_down, compression=compression)
    if max(widths) > 16:
        with pytest.raises(ImageError, match=f"BMP with samples of {max(widths)} bits; at most 16 are supported"):
            read_image(data)
        return
    expected, notes = expected_of_masks(words, masks)
    unused = words & ~np.uint32(sum(masks))
    if (unused != unused[0, 0]).any():
        notes += (UNUSED_BITS,)
    assert_reads_as(data, expected, *notes)


USUAL = [
    (16, (0xF800, 0x7E0, 0x1F)),
    (16, (0x7C00, 0x3E0, 0x1F)),
    (24, (0xFF0000, 0xFF00, 0xFF)),
    (32, (0xFF0000, 0xFF00, 0xFF)),
    (32, (0xFF000000, 0xFF0000, 0xFF00)),
    (32, (0xFF0000, 0xFF00, 0xFF, 0xFF000000)),
    (32, (0xFF, 0xFF00, 0xFF0000, 0xFF000000)),
    (32, (0xFF000000, 0xFF0000, 0xFF00, 0xFF)),
]


@pytest.mark.parametrize(("bits", "masks"), USUAL)
def test_usual_masks_as_pillow_reads_them(bits, masks):
    words = values((5, 7), bits)
    data = bmp(words, bits, masks=masks, size=40 if len(masks) == 3 else 124)
    pixels, theirs = read_image(data).pixels, np.asarray(Image.open(io.BytesIO(data)))
    assert pixels.shape == theirs.shape
    difference = np.abs(pixels.astype(int) - theirs).max()
    assert difference <= (1 if bits == 16 else 0)  # Pillow cuts off where the value is between two


MASK_ERRORS = {
    "overlap": (32, (0xFF0000, 0xFFF00, 0xFF), "BMP with bit masks that overlap is not supported"),
    "equal": (16, (0x1F, 0x1F, 0x1F), "BMP with bit masks that overlap is not supported"),
    "overlap of alpha": (32, (0xFF0000, 0xFF00, 0xFF, 0x1FF0000), "BMP with bit masks that overlap"),
    "gap": (32, (0xFD0000, 0xFF00, 0xFF), "BMP with a bit mask that has gaps is not supported"),
    "no green": (32, (0xFF0000, 0, 0xFF), "BMP without a bit mask for red, green or blue is not supported"),
    "none": (32, (0, 0, 0, 0), "BMP without a bit mask for red, green or blue is not supported"),
    "beyond": (16, (0x1F0000, 0x7E0, 0x1F), "BMP with bit masks beyond the 16 bits of its pixels is not supported"),
    "24 bits": (24, (0xFF, 0xFF00, 0xFF0000), "BMP with unusual bit masks at 24 bits a pixel is not supported"),
    "17 bits": (32, (0x1FFFF, 0xE0000, 0x100000), "BMP with samples of 17 bits; at most 16 are supported"),
}


@pytest.mark.parametrize("case", MASK_ERRORS)
def test_bit_masks_that_are_refused(case):
    bits, masks, message = MASK_ERRORS[case]
    with pytest.raises(ImageError, match=message):
        read_image(bmp(values((5, 7), bits), bits, masks=masks))


# ---- Headers ---------------------------------------------------------------------------------------------------------

WORDS = values((5, 7), 24)
CMYK = "CMYK colours: convert to RGB first, with the right colour profile"


def plain(**options):
    return bmp(WORDS, 24, **options)


def with_compression(number, bits=24, **options):
    return bmp(values((5, 7), min(bits, 8)), bits, compression=number, palette=COLOURS, **options)


REFUSED = {
    "jpeg inside": (with_compression(4), "BMP with a JPEG file inside is not supported: extract it first"),
    "png inside": (with_compression(5, size=124), "BMP with a PNG file inside is not supported: extract it first"),
    **{f"cmyk {number}": (with_compression(number), CMYK) for number in (11, 12, 13)},
    "huffman": (with_compression(3, size=64), "BMP with Huffman 1D compression is not supported"),
    "rle24": (with_compression(4, size=64), "BMP with RLE24 compression is not supported"),
    "unknown": (with_compression(7), r"BMP with unknown \(7\) compression is not supported"),
    "unknown of os/2": (with_compression(6, size=64), r"BMP with unknown \(6\) compression is not supported"),
    "rle8 of 4 bits": (with_compression(RLE8, 4), "BMP with 4 bits a pixel and RLE8 compression is not supported"),
    "rle4 of 8 bits": (with_compression(RLE4, 8), "BMP with 8 bits a pixel and RLE4 compression is not supported"),
    "masks of 8 bits": (with_compression(MASKS, 8), "BMP with 8 bits a pixel and bit masks is not supported"),
    "rle from the top down": (
        with_compression(RLE8, 8, top_down=True),
        "BMP with RLE8 compression from the top down is not supported",
    ),
    "3 bits": (bmp(b"\0" * 99, 3, shape=(5, 7)), "BMP with 3 bits a pixel is not supported"),
    "planes": (plain(planes=4), "BMP of 4 planes is not supported"),
    "no rows": (plain(shape=(0, 7)), "an image of 7 x 0 pixels has nothing to convert"),
    "no columns": (plain(shape=(5, 0)), "an image of 0 x 5 pixels has nothing to convert"),
    "negative width": (plain(shape=(5, -7)), "an image of -7 x 5 pixels has nothing to convert"),
    "pixels in the first header": (plain(start=10), "damaged BMP file: its pixels start within its header"),
    "pixels in the second header": (plain(start=53), "damaged BMP file: its pixels start within its header"),
    "pixels in the masks": (
        bmp(values((5, 7), 16), 16, masks=(0xF800, 0x7E0, 0x1F), start=54),
        "damaged BMP file: its pixels start within its header",
    ),
    "pixels nowhere": (plain(start=0), "damaged BMP file: its pixels start within its header"),
    "pixels beyond": (plain(start=1 << 20), "damaged BMP file: its pixels start beyond its end"),
    "pixels late": (plain(start=60), EARLY),
    "pixels missing": (plain()[:-6], EARLY),
    "header only": (plain()[:54], "damaged BMP file: its pixels start beyond its end"),
    "half a header": (plain()[:40], "damaged BMP file: it ends within its header"),
    "beginning": (plain()[:18], "damaged BMP file: it ends within its header"),
    "much too large": (plain(shape=(1 << 30, 1 << 30)), "pixels exceed the limit of 200000000 pixels"),
    "lowest height": (
        plain()[:22] + struct.pack("<i", -(1 << 31)) + plain()[26:],
        "7 x 2147483648 pixels exceed the limit of 200000000 pixels",
    ),
    "bitmap array": (b"BA" + bytes(12) + plain(), "OS/2 bitmap array files are not supported"),
    "icon": (b"IC" + plain()[2:], "OS/2 icon files are not supported"),
    "pointer": (b"CP" + plain()[2:], "OS/2 pointer files are not supported"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case):
    data, message = REFUSED[case]
    with pytest.raises(ImageError, match=message):
        read_image(data)


RGB = np.stack([WORDS >> 16, WORDS >> 8 & 255, WORDS & 255], axis=-1).astype(np.uint8)


def test_what_does_not_matter():
    for data in (
        plain(gap=b"gap"),
        plain(palette=COLOURS[:9]),
        plain(after=b"more"),
        plain(planes=0),
        plain()[:2] + b"\x77\0\0\0" + plain()[6:],  # the size of the file
        plain()[:-3],  # the last row's padding
    ):
        assert_reads_as(data, RGB)


def colour_space(kind, offset=0, length=0, primaries=b""):
    """The end of a header of 124 bytes, after the masks."""
    return kind + primaries.ljust(48, b"\0") + struct.pack("<III", 4, offset, length)


MASKED = {"masks": (0xFF0000, 0xFF00, 0xFF, 0), "compression": PLAIN}
GAMMA, DAMAGED_ICC = ("gamma and chromaticities left out",), ("damaged ICC profile left out",)


@pytest.mark.parametrize(
    ("options", "icc", "notes"),
    [
        ({"size": 124, "tail": colour_space(b"BGRs"), **MASKED}, None, ()),
        ({"size": 124, "tail": colour_space(b" niW", 0, 0), **MASKED}, None, ()),
        ({"size": 124, "tail": colour_space(bytes(4)), **MASKED}, None, ()),
        ({"size": 124, "tail": colour_space(bytes(4), primaries=b"x"), **MASKED}, None, GAMMA),
        ({"size": 108, "tail": bytes(51) + b"x", **MASKED}, None, GAMMA),
        ({"size": 124, "tail": colour_space(b"DEBM", 124 + 120, 7), "after": b"profile", **MASKED}, b"profile", ()),
        ({"size": 124, "tail": colour_space(b"DEBM", 124, 7), "gap": b"profile", **MASKED}, b"profile", ()),
        ({"size": 124, "tail": colour_space(b"DEBM", 124 + 120, 8), "after": b"profile", **MASKED}, None, DAMAGED_ICC),
        ({"size": 124, "tail": colour_space(b"DEBM", 100, 7), **MASKED}, None, DAMAGED_ICC),
        ({"size": 124, "tail": colour_space(b"DEBM", 124, 0), **MASKED}, None, DAMAGED_ICC),
        ({"size": 124, "tail": colour_space(b"KNIL", 124, 7), **MASKED}, None, ("linked ICC profile left out",)),
    ],
)
def test_colour_spaces(options, icc, notes):
    image = read_image(plain(**options))
    np.testing.assert_array_equal(image.pixels, RGB)
    assert image.metadata == ({"icc": icc} if icc else {})
    assert image.notes == notes


@pytest.mark.parametrize(
    ("data", "options", "bytes_per_pixel"),
    [
        (plain(), ReadOptions(), 3),
        (bmp(WORDS, 32, masks=(0x3FF, 0xFFC00, 0x3FF00000, 0xC0000000)), ReadOptions(), 8),
        (bmp(values((5, 7), 4), 4, palette=COLOURS[:16]), ReadOptions(), 3),
        (bmp(values((5, 7), 4), 4, palette=COLOURS[:16]), INDEX, 1),
        (run_lengths(b"\7\1\0\0" * 5, shape=(5, 7)), ReadOptions(), 4),
    ],
)
def test_memory_is_reserved(data, options, bytes_per_pixel):
    reserved = []
    read_image(data, ReadOptions(palette=options.palette, reserve=reserved.append))
    assert reserved == [35 * bytes_per_pixel]


@pytest.mark.parametrize("shape", [(1, 300_001), (300_001, 1), (700, 600)])
def test_images_that_are_unpacked_in_several_parts(shape):
    numbers = values(shape, 4)
    assert_reads_as(
        bmp(_as_bytes(numbers, 4), 4, palette=COLOURS[:16], shape=shape), COLOURS[numbers], PALETTE_EXPANDED
    )
    words = values(shape, 32)
    expected = np.stack([words >> shift & 255 for shift in (8, 16, 24, 0)], axis=-1).astype(np.uint8)
    data = bmp(words[::-1].astype("<u4").tobytes(), 32, masks=(0xFF00, 0xFF0000, 0xFF000000, 0xFF), shape=shape)
    assert_reads_as(data, expected)


def _as_bytes(numbers, bits):
    """The rows of a large image, of 4 bits a pixel, from the bottom."""
    padded = np.zeros((numbers.shape[0], -(-numbers.shape[1] // 8) * 8), np.uint8)
    padded[:, : numbers.shape[1]] = numbers[::-1]
    return (padded[:, ::2] << bits | padded[:, 1::2]).tobytes()


OURS = re.compile(
    r"damaged BMP file: |BMP |CMYK colours: |\d+ x \d+ pixels exceed|an image of -?\d+ x \d+ pixels has nothing"
    r"|not an image \(|empty file|\w+ files are not supported"
)


def test_mutations_end_in_an_error_of_ours_or_an_image():
    files = [
        bmp(values((9, 7), 4), 4, palette=COLOURS[:16]),
        run_lengths(Runs(8, (9, 7), 0, True).data, 8, (9, 7)),
        run_lengths(Runs(4, (9, 7), 0, False).data, 4, (9, 7)),
        bmp(values((9, 7), 16), 16, masks=(0xF800, 0x7E0, 0x1F)),
        bmp(
            WORDS,
            32,
            size=124,
            masks=(0xFF, 0xFF00, 0xFF0000, 0xFF000000),
            tail=colour_space(b"DEBM", 264, 7),
            after=b"profile",
        ),
        plain(size=12),
    ]
    reasons = []
    for data in mutations(files, 2000):
        try:
            pixels = read_image(data, ReadOptions(max_pixels=1 << 18)).pixels
        except ImageError as error:
            reasons.append(str(error))
        else:
            assert pixels.dtype in (np.uint8, np.uint16)
            assert pixels.shape[2:] in ((), (3,), (4,))
    assert [reason for reason in reasons if not OURS.match(reason)] == []
    assert 500 < len(reasons) < 1900


@pytest.mark.parametrize("bits", [1, 8, 24, 32])
def test_pixels_are_kept_in_memory_but_once(bits):
    """Beside the file and the pixels there are parts of 2**17 pixels, of up to a few times 8 bytes each."""
    shape = (1500, 2048)
    data = bmp(bytes(bits * 1500 * 256), bits, shape=shape, palette=COLOURS[: 1 << bits] if bits <= 8 else ())
    tracemalloc.start()
    try:
        pixels = read_image(data).pixels
        assert tracemalloc.get_traced_memory()[1] < pixels.nbytes + (5 << 20)
    finally:
        tracemalloc.stop()
