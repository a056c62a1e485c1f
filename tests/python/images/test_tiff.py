"""TIFF files are read as TIFF 6.0 defines them, or refused with a reason; no file takes time or memory beyond its size.

Files are made byte by byte (`tiff_files`), and what they are to become is computed beside them.
"""

from __future__ import annotations

import contextlib
import io
import lzma
import struct
import subprocess
import sys
import tracemalloc
import zlib

import imagecodecs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import tiff_files
from dali_l3.images import tiff as reader
from dali_l3.images.completeness import is_complete_tiff
from dali_l3.images.reading import ImageError, ReadOptions, count_pages, read_image
from dali_l3.images.stored import PALETTE_DROPPED, PALETTE_EXPANDED
from dali_l3.images.tiff.compression import REFUSED as REFUSED_COMPRESSIONS
from image_files import png, png_chunk, png_file, png_header
from tiff_files import (
    ASCII,
    BYTE,
    DEFLATE,
    LONG,
    LZMA,
    LZW,
    NONE,
    OLD_DEFLATE,
    PACKBITS,
    RATIONAL,
    UNDEFINED,
    ZSTD,
    Page,
    lzw,
    page,
    short,
    tiff,
    tiff_file,
)

WHITE, BLACK, RGB, PALETTE, YCBCR = 0, 1, 2, 3, 6  # values of PhotometricInterpretation
EXTRA_UNKNOWN = "extra samples of unknown meaning kept as stored"


def noise(shape, bits=8, seed=0):
    values = np.random.default_rng(seed).integers(0, 1 << bits, shape)
    return values.astype(np.uint16 if bits > 8 else np.uint8)


def assert_reads_as(data, expected, notes=(), **options):
    image = read_image(data, ReadOptions(**options))
    assert image.pixels.dtype == expected.dtype
    np.testing.assert_array_equal(image.pixels, expected)
    assert image.notes == notes


def reason(data, **options):
    """Why a file is refused."""
    with pytest.raises(ImageError) as refusal:
        read_image(data, ReadOptions(**options))
    return str(refusal.value)


# ---- Every combination that is read ----------------------------------------------------------------------------------

FLIPS = {1: (0, 0), 2: (0, 1), 3: (1, 1), 4: (1, 0), 5: (0, 0), 6: (0, 1), 7: (1, 1), 8: (1, 0)}


def upright(pixels, orientation):
    """From the definition: for 5 … 8 rows are columns; the first of them is last where the table says so."""
    pixels = pixels.swapaxes(0, 1) if orientation > 4 else pixels
    down, across = FLIPS[orientation]
    return pixels[:: -1 if down else 1, :: -1 if across else 1]


@st.composite
def files(draw):
    """A file, the pixels that it stands for, and the notes."""
    order, big = draw(st.sampled_from("<>")), draw(st.booleans())
    photometric = draw(st.sampled_from([WHITE, BLACK, RGB, PALETTE]))
    bits = draw(st.sampled_from([1, 2, 4, 8] if photometric == PALETTE else [1, 2, 4, 8, 16]))
    extra = draw(st.sampled_from([None, (0,), (1,), (2,)])) if photometric != PALETTE else None
    channels = (3 if photometric == RGB else 1) + len(extra or ())
    height, width = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    samples = noise((height, width, channels), bits, seed=draw(st.integers(0, 9)))
    if draw(st.booleans()):
        samples[height // 3 :] = samples[0, 0]  # something to compress
    palette = noise((1 << bits, 3), seed=1).astype(int) * 257 if photometric == PALETTE else None
    compression = draw(st.sampled_from([NONE, PACKBITS, LZW, DEFLATE, OLD_DEFLATE]))
    tile = draw(st.sampled_from([None, (16, 16), (32, 16), (16, 48)]))
    orientation = draw(st.integers(1, 8))
    data = tiff(
        samples,
        order,
        big,
        bits=bits,
        photometric=photometric,
        planar=draw(st.booleans()),
        extra=extra,
        tile=tile,
        rows_per_strip=None if tile else draw(st.integers(1, height)),
        fill_order=draw(st.sampled_from([1, 2])),
        predictor=draw(st.sampled_from([1, 2])) if bits >= 8 and compression not in (NONE, PACKBITS) else 1,
        compression=compression,
        palette=palette,
        tags={tiff_files.ORIENTATION: short(orientation)},
    )
    top = (1 << bits) - 1
    expected = samples.copy()
    if photometric == WHITE:
        expected[..., 0] = top - expected[..., 0]
    if photometric == PALETTE:
        expected = (palette // 257).astype(np.uint8)[samples[..., 0]]
    elif bits < 8:
        expected = expected * np.uint8(255 // top)
    if expected.shape[2] == 1:
        expected = expected[..., 0]
    notes = (PALETTE_EXPANDED,) if photometric == PALETTE else ()
    notes += {None: (), (0,): (EXTRA_UNKNOWN,), (1,): ("premultiplied alpha kept as stored",), (2,): ()}[extra]
    notes += (f"EXIF orientation {orientation} applied",) if orientation > 1 else ()
    return data, upright(expected, orientation), notes


@settings(max_examples=200, deadline=None)
@given(files())
def test_every_combination_reads_as_the_standard_says(file):
    data, expected, notes = file
    assert_reads_as(data, expected, notes)


# ---- The meaning of samples ------------------------------------------------------------------------------------------

GRAY, TWO, THREE, FOUR = (noise((4, 6, channels)) for channels in (1, 2, 3, 4))
GRAY_16 = noise((4, 6, 1), 16)
COLOURS = noise((256, 3), seed=1).astype(int)
COLOURS_16 = noise((256, 3), 16, seed=2).astype(int)
LOOKED_UP = COLOURS.astype(np.uint8)[GRAY[..., 0]]
FROM_8_BITS = "palette values taken as 8-bit colours, since all are below 256"

# Where other readers do something else, as Pillow 13, tifffile 2026.3, OpenCV 5 and DALI 2.4 (nvImageCodec) showed:
# tifffile returns samples and leaves their meaning (WhiteIsZero, palettes, orientation) to its callers.
READ = {
    "white is zero": (GRAY, {"photometric": WHITE}, 255 - GRAY[..., 0], ()),
    # Pillow, OpenCV and DALI do not invert 16 bits.
    "white is zero, 16 bits": (GRAY_16, {"bits": 16, "photometric": WHITE}, 65535 - GRAY_16[..., 0], ()),
    # Pillow and DALI refuse it, OpenCV drops the alpha channel.
    "white is zero, alpha": (
        TWO,
        {"photometric": WHITE, "extra": (2,)},
        np.dstack([255 - TWO[..., 0], TWO[..., 1]]),
        (),
    ),
    # OpenCV drops all but the first sample of gray images, Pillow refuses extra samples that are no alpha.
    "gray, alpha": (TWO, {"extra": (2,)}, TWO, ()),
    "gray, unknown sample": (TWO, {}, TWO, (EXTRA_UNKNOWN,)),
    "gray, two unknown samples": (THREE, {"extra": (0, 0)}, THREE, (EXTRA_UNKNOWN,)),
    "gray, alpha, unknown sample": (THREE, {"extra": (2, 0)}, THREE, (EXTRA_UNKNOWN,)),
    "RGB": (THREE, {"photometric": RGB}, THREE, ()),
    # OpenCV premultiplies alpha, Pillow divides by premultiplied alpha; Pillow drops a fourth sample declared unknown.
    "RGB, alpha": (FOUR, {"photometric": RGB, "extra": (2,)}, FOUR, ()),
    "RGB, premultiplied": (
        FOUR,
        {"photometric": RGB, "extra": (1,)},
        FOUR,
        ("premultiplied alpha kept as stored",),
    ),
    "RGB, unknown sample": (FOUR, {"photometric": RGB, "extra": (0,)}, FOUR, (EXTRA_UNKNOWN,)),
    "RGB, undeclared sample": (FOUR, {"photometric": RGB}, FOUR, (EXTRA_UNKNOWN,)),
    # Pillow, OpenCV and DALI refuse RGB of 2 and 4 bits.
    "RGB, 4 bits": (THREE & 15, {"bits": 4, "photometric": RGB}, (THREE & 15) * np.uint8(17), ()),
    "one value of bits for all": (THREE, {"photometric": RGB, "tags": {tiff_files.BITS: short(8)}}, THREE, ()),
    "palette": (GRAY, {"photometric": PALETTE, "palette": COLOURS * 257}, LOOKED_UP, (PALETTE_EXPANDED,)),
    # DALI divides by 257 and rounds.
    "palette, 8 bits times 256": (
        GRAY,
        {"photometric": PALETTE, "palette": COLOURS * 256},
        LOOKED_UP,
        (PALETTE_EXPANDED,),
    ),
    # Pillow returns black; OpenCV does as is done here.
    "palette, 8 bits": (
        GRAY,
        {"photometric": PALETTE, "palette": COLOURS},
        LOOKED_UP,
        (FROM_8_BITS, PALETTE_EXPANDED),
    ),
    "palette, all black": (
        GRAY,
        {"photometric": PALETTE, "palette": COLOURS * 0},
        LOOKED_UP * 0,
        (PALETTE_EXPANDED,),
    ),
    # Pillow, OpenCV and DALI reduce the colours to 8 bits.
    "palette, 16 bits": (
        GRAY,
        {"photometric": PALETTE, "palette": COLOURS_16},
        COLOURS_16.astype(np.uint16)[GRAY[..., 0]],
        (PALETTE_EXPANDED,),
    ),
    # Pillow and OpenCV refuse it.
    "palette of 65536 colours": (
        GRAY_16,
        {"bits": 16, "photometric": PALETTE, "palette": np.arange(3 * 65536).reshape(-1, 3) % 65536},
        (np.arange(3 * 65536, dtype=np.uint32) % 65536).astype(np.uint16).reshape(-1, 3)[GRAY_16[..., 0]],
        (PALETTE_EXPANDED,),
    ),
}


@pytest.mark.parametrize("case", READ)
def test_meaning_of_samples(case):
    samples, options, expected, notes = READ[case]
    assert_reads_as(tiff(samples, **options), expected, notes)


@pytest.mark.parametrize("bits", [2, 8, 16])
def test_numbers_of_palette_entries_are_kept_when_asked_for(bits):
    indices = noise((4, 6, 1), bits)
    palette = noise((1 << bits, 3), 16).astype(int)
    data = tiff(indices, bits=bits, photometric=PALETTE, palette=palette)
    assert_reads_as(data, indices[..., 0], (PALETTE_DROPPED,), palette="index")


REFUSED_COLOURS = {
    # Pillow takes gray without the tag for WhiteIsZero, DALI for BlackIsZero; OpenCV refuses it.
    "no photometric, 1": (GRAY, {"photometric": None}, "without the required tag PhotometricInterpretation"),
    "no photometric, 3": (THREE, {"photometric": None}, "without the required tag PhotometricInterpretation"),
    "no photometric, 4": (FOUR, {"photometric": None}, "without the required tag PhotometricInterpretation"),
    # DALI reads three samples and inverts them, OpenCV the first.
    "white is zero, 3": (THREE, {"photometric": WHITE}, "3 samples a pixel with WhiteIsZero, which is only for gray"),
    "white is zero, extra": (THREE, {"photometric": WHITE, "extra": (0, 0)}, "which is only for gray"),
    # DALI reads one and two samples as gray.
    "RGB of 1": (GRAY, {"photometric": RGB}, "RGB colours do not go with 1 as SamplesPerPixel and 0 values"),
    "RGB of 2": (TWO, {"photometric": RGB}, "RGB colours do not go with 2 as SamplesPerPixel"),
    "RGB of 3 with alpha": (THREE, {"photometric": RGB, "extra": (2,)}, "do not go with 3 .* and 1 values of Extra"),
    "gray of 2, two extra": (TWO, {"extra": (2, 0)}, "gray colours do not go with 2 as SamplesPerPixel and 2 values"),
    "five samples": (noise((4, 6, 5)), {"extra": (0,) * 4}, "5 channels; at most 4"),
    # Pillow reads RGBA from it; OpenCV and DALI drop the alpha channel.
    "palette, alpha": (
        TWO,
        {"photometric": PALETTE, "extra": (2,), "palette": COLOURS * 257},
        "extra samples beside palette colours: convert to RGBA first",
    ),
    "palette missing": (GRAY, {"photometric": PALETTE}, "its palette does not hold 256 colours"),
    "palette short": (GRAY, {"photometric": PALETTE, "palette": COLOURS[:255]}, "does not hold 256 colours"),
    "palette long": (GRAY & 15, {"photometric": PALETTE, "bits": 4, "palette": COLOURS}, "does not hold 16 colours"),
    "indexed RGB": (THREE, {"photometric": RGB, "tags": {346: short(1)}}, "indexed colours without a palette"),
    "mask": (GRAY & 1, {"photometric": 4, "bits": 1}, "transparency mask: convert it to gray first"),
    "CMYK": (FOUR, {"photometric": 5}, "CMYK colours: convert to RGB first"),
    # DALI and OpenCV convert it; Pillow returns YCbCr.
    "YCbCr": (THREE, {"photometric": YCBCR}, "YCbCr colours without JPEG compression: convert to RGB first"),
    "YCbCr, extra": (FOUR, {"photometric": YCBCR, "extra": (2,)}, "extra samples beside YCbCr colours"),
    "CIELAB": (THREE, {"photometric": 8}, "CIELAB colours: convert to RGB first"),
    "ICCLAB": (THREE, {"photometric": 9}, "ICCLAB colours"),
    "ITULAB": (THREE, {"photometric": 10}, "ITULAB colours"),
    "CFA": (GRAY, {"photometric": 32803}, r"sensor \(CFA\): develop the image first"),
    "LogL": (GRAY_16, {"photometric": 32844, "bits": 16}, "LogL samples"),
    "LogLuv": (THREE, {"photometric": 32845}, "LogLuv colours"),
    "linear raw": (THREE, {"photometric": 34892}, "linear raw samples"),
    "unheard of": (GRAY, {"photometric": 77}, "photometric interpretation 77 is not supported"),
    # Pillow reads them as unsigned.
    "signed": (GRAY, {"tags": {339: short(2)}}, "signed samples: shift them into the range of uint8 or uint16 first"),
    "float": (GRAY, {"tags": {339: short(3)}}, "floating-point samples: scale them to uint16 first"),
    "undefined format": (GRAY, {"tags": {339: short(4)}}, "samples of undefined format: store them as unsigned"),
    "complex integers": (GRAY, {"tags": {339: short(5)}}, "complex samples"),
    "complex": (GRAY, {"tags": {339: short(6)}}, "complex samples"),
    "unknown format": (GRAY, {"tags": {339: short(9)}}, "samples of the unknown format 9"),
    "one signed sample of three": (THREE, {"photometric": RGB, "tags": {339: short(1, 2, 1)}}, "signed samples"),
    "12 bits": (GRAY, {"tags": {258: short(12)}}, "12 bits per sample; 1, 2, 4, 8 and 16 are supported"),
    "32 bits": (GRAY, {"tags": {258: short(32)}}, "32 bits per sample"),
    "different bits": (
        THREE,
        {"photometric": RGB, "tags": {258: short(5, 6, 5)}},
        r"samples of different bits \(5, 6, 5\)",
    ),
    "bits of two samples": (
        THREE,
        {"photometric": RGB, "tags": {258: short(8, 8)}},
        "3 samples a pixel, but bits of 2",
    ),
    "planar configuration": (GRAY, {"tags": {284: short(3)}}, "its planar configuration is 3"),
    "no width": (GRAY, {"tags": {256: None}}, "the size of the image, or of its strips or tiles, is missing"),
    "no tile height": (GRAY, {"tile": (16, 16), "tags": {323: None}}, "strips or tiles, is missing"),
    "volume": (GRAY, {"tags": {32997: (LONG, (7,))}}, "volume of 7 planes: save each as a page, or a file, of its own"),
    "volume in tiles": (GRAY, {"tile": (16, 16), "tags": {32998: (LONG, (16,))}}, "volume of 16 planes"),
    "ImageJ stack": (
        GRAY,
        {"tags": {270: (ASCII, b"ImageJ=1.53\nimages=12\nslices=12\n\0")}},
        "stack of 12 planes in one page",
    ),
    "MetaMorph stack": (GRAY, {"tags": {33629: (LONG, (0,) * 9)}}, "stack of 9 planes in one page"),
    # Readers disagree about a predictor without a compression that uses one.
    "predictor alone": (GRAY, {"predictor": 2}, "a predictor, but without a compression that uses one"),
    "predictor of PackBits": (GRAY, {"predictor": 2, "compression": PACKBITS}, "without a compression that uses one"),
    "predictor of 4 bits": (GRAY & 15, {"bits": 4, "predictor": 2, "compression": LZW}, "predictor of 4-bit samples"),
    "predictor 3": (
        GRAY,
        {"compression": DEFLATE, "tags": {317: short(3)}},
        "predictor 3; 1 .* and 2 .* are supported",
    ),
}


@pytest.mark.parametrize("case", REFUSED_COLOURS)
def test_contradictions_and_other_meanings_are_refused_by_name(case):
    samples, options, message = REFUSED_COLOURS[case]
    with pytest.raises(ImageError, match=message):
        read_image(tiff(samples, **options))


@pytest.mark.parametrize("code", [*REFUSED_COMPRESSIONS, 12345])
def test_compressions_without_a_check_are_refused_by_name(code):
    name = REFUSED_COMPRESSIONS.get(code, code)
    data = tiff(GRAY, tags={tiff_files.COMPRESSION: short(code)})
    assert reason(data) == f"TIFF with compression {name} is not supported: save it with Deflate instead"


# ---- Directories -----------------------------------------------------------------------------------------------------

LOOP = "damaged TIFF file: its pages form a loop"


def directory_end(data, start, order="<", big=False):
    """The place of a directory's link to the next one."""
    count_size, entry_size = (8, 20) if big else (2, 12)
    return start + count_size + entry_size * struct.unpack_from(order + ("Q" if big else "H"), data, start)[0]


def with_link(data, at, target, order="<", big=False):
    value = struct.pack(order + ("Q" if big else "I"), target)
    return bytes(data[:at] + value + data[at + len(value) :])


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("big", [False, True])
def test_pages_that_form_a_loop_are_refused(big, order):
    data = tiff_file([page(GRAY, order=order)] * 3, order, big)
    starts, at = [], 8 if big else 4
    while start := struct.unpack_from(order + ("Q" if big else "I"), data, at)[0]:
        starts.append(start)
        at = directory_end(data, start, order, big)
    assert len(starts) == reader.page_count(data) == 3
    for i, start in enumerate(starts):
        for target in starts[: i + 1]:
            looped = with_link(data, directory_end(data, start, order, big), target, order, big)
            assert reason(looped) == LOOP
            assert reason(looped, page=0) == LOOP
            with pytest.raises(ImageError, match=LOOP):
                reader.page_count(looped)


def test_loops_below_a_page_are_refused(tmp_path):
    reduced = page(GRAY, tags={tiff_files.SUBFILE: (LONG, (1,))})
    main = page(GRAY)
    main.below = [page(TWO, extra=(2,)), reduced]
    data = tiff_file([main, reduced])
    assert read_image(data).notes == ("3 reduced copies or masks left out",)
    first = struct.unpack_from("<I", data, 4)[0]
    second = struct.unpack_from("<I", data, directory_end(data, first))[0]
    entry = data.index(struct.pack("<HHI", tiff_files.SUB_DIRECTORIES, LONG, 2), first)
    links = struct.unpack_from("<I", data, entry + 8)[0]
    below = struct.unpack_from("<II", data, links)
    for at, target in (
        (links, first),  # to the page above
        (links, below[1]),  # twice to one
        (directory_end(data, below[0]), below[0]),  # a chain of their own
        (directory_end(data, below[0]), below[1]),  # a chain and a link
        (directory_end(data, below[1]), second),
        (directory_end(data, second), below[0]),  # from the pages down
    ):
        looped = with_link(data, at, target)
        assert reason(looped) == LOOP
        path = tmp_path / "looped.tif"
        path.write_bytes(looped)
        assert is_complete_tiff(str(path)), "which is about the first page alone"


@pytest.mark.parametrize("below", [False, True])
def test_absurdly_many_pages_are_refused(below):
    count = 65537
    if below:
        pages = struct.pack("<HHHIII", 1, tiff_files.SUB_DIRECTORIES, LONG, count, 26, 0) + bytes(4 * count)
    else:
        entry = struct.pack("<HHHII", 1, tiff_files.SUBFILE, LONG, 1, 0)
        pages = b"".join(entry + struct.pack("<I", 8 + 18 * (i + 1)) for i in range(count)) + bytes(18)
    assert reason(b"II*\0" + struct.pack("<I", 8) + pages) == "TIFF file with more than 65536 pages"


def test_pages_that_overlap_are_refused():
    """They would let a small file hold more entries than could be read in a day."""
    data = bytearray(struct.pack("<2sHI", b"II", 42, 8) + bytes(300))
    for start in range(8, 40, 4):
        struct.pack_into("<H", data, start, 16)
        struct.pack_into("<I", data, start + 2 + 12 * 16, start + 4)
    assert reason(bytes(data)) == "damaged TIFF file: its pages overlap"


BIG = tiff(GRAY, big=True)
NO_HEADER = "damaged TIFF file: its header is invalid"
BEYOND = "damaged TIFF file: it refers to data beyond its end"
NO_DIRECTORY = "damaged TIFF file: one of its directories is empty, or lies beyond its end"
OUTSIDE = {
    "header cut off": (b"II*\0", NO_HEADER),
    "BigTIFF header cut off": (BIG[:15], NO_HEADER),
    "offsets of other sizes": (BIG[:4] + b"\x04" + BIG[5:], NO_HEADER),
    "no page": (b"II*\0" + bytes(12), "TIFF file without an image"),
    "page at the end": (b"II*\0" + struct.pack("<I", 16) + bytes(8), BEYOND),
    "page far beyond": (BIG[:8] + b"\xff" * 8 + BIG[16:], BEYOND),
    "next page beyond": (tiff_file([page(GRAY)], last_link=1 << 31), BEYOND),
    "page below beyond": (tiff(GRAY, tags={tiff_files.SUB_DIRECTORIES: (LONG, (1 << 30,))}), BEYOND),
    "empty directory": (b"II*\0" + struct.pack("<IH", 8, 0) + bytes(20), NO_DIRECTORY),
    "too many entries": (b"II*\0" + struct.pack("<IH", 8, 65535) + bytes(99), NO_DIRECTORY),
    "2**60 entries": (BIG[:8] + struct.pack("<QQ", 16, 1 << 60) + bytes(99), NO_DIRECTORY),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_directories_outside_the_file_are_refused(case):
    data, message = OUTSIDE[case]
    assert reason(data) == message


def peak_of_reading(data, read=read_image):
    tracemalloc.start()
    try:
        with contextlib.suppress(ImageError):
            read(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_values_beyond_those_that_are_wanted_are_not_read():
    many = bytes(4 << 20)
    assert peak_of_reading(tiff(GRAY, tags={tiff_files.EXTRA_SAMPLES: (tiff_files.SHORT, many)})) < 1 << 20
    rationals = {532: (RATIONAL, many)}  # ReferenceBlackWhite
    data = tiff(noise((8, 8, 3)), photometric=YCBCR, compression=tiff_files.JPEG, encode=bytes, tags=rationals)
    assert peak_of_reading(data) < 1 << 20


def test_tags_of_pages_that_are_only_counted_are_not_kept():
    tags = {tag: (LONG, (tag,)) for tag in range(400, 4400)}
    few, many = (tiff_file([page(GRAY, tags=tags)] * pages) for pages in (2, 16))
    assert count_pages(many) == 16
    assert peak_of_reading(many, count_pages) < 1.5 * peak_of_reading(few, count_pages)


def test_ccitt_data_takes_no_memory_beyond_its_size():
    blank = b"\x80" + bytes(4 << 20)  # a row as the one before it, and padding
    data = tiff(np.zeros((1, 8, 1), np.uint8), photometric=WHITE, bits=1, compression=4, encode=lambda raw: blank)
    assert_reads_as(data, np.full((1, 8), 255, np.uint8))
    assert peak_of_reading(data) < 2 << 20


@pytest.mark.parametrize("tag", [254, 256, 258, 259, 262, 266, 273, 277, 278, 279, 284, 317, 320, 330, 338, 339, 347])
def test_tags_that_claim_gigabytes_take_no_memory(tag):
    photometric = PALETTE if tag == 320 else BLACK
    compression = {317: DEFLATE, 347: tiff_files.JPEG}.get(tag, NONE)
    tags = {262: short(photometric), 259: short(compression), tag: (LONG, (1,), 1 << 31)}
    data = tiff(GRAY, tags=tags)
    tracemalloc.start()
    try:
        assert reason(data).startswith("damaged TIFF file: ")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("kind", "message"), [(77, "values of an unknown type"), (5, "no unsigned integers")])
def test_tags_of_a_wrong_type_are_refused(kind, message):
    body = tiff_files.page(GRAY)
    body.tags[277] = (kind, b"\1\0\0\0\1\0\0\0", 1)
    assert message in reason(tiff_file([body]))


# ---- Strips and tiles ------------------------------------------------------------------------------------------------

PIXELS = noise((40, 48, 3))
MISSING = "damaged TIFF file: strips or tiles are missing, or lie beyond its end"
PLACES = {
    "no sizes": lambda offsets, sizes, end: (offsets, [0] * len(sizes)),
    "a size of 0": lambda offsets, sizes, end: (offsets, [*sizes[:-1], 0]),
    "too large a size": lambda offsets, sizes, end: (offsets, [*sizes[:-1], end]),
    "a huge size": lambda offsets, sizes, end: (offsets, [(1 << 64) - 1, *sizes[1:]]),
    "an offset of 0": lambda offsets, sizes, end: ([0, *offsets[1:]], sizes),
    "an offset at the end": lambda offsets, sizes, end: ([*offsets[:-1], end], sizes),
    "a huge offset": lambda offsets, sizes, end: ([*offsets[:-1], (1 << 64) - 1], sizes),
    "too few": lambda offsets, sizes, end: (offsets[:-1], sizes[:-1]),
    "too few sizes": lambda offsets, sizes, end: (offsets, sizes[:-1]),
}


@pytest.mark.parametrize("case", PLACES)
@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("tile", [None, (16, 16)])
def test_data_that_is_missing_or_beyond_the_end_is_refused(tile, planar, case, tmp_path):
    one = page(PIXELS, photometric=RGB, tile=tile, rows_per_strip=8, planar=planar, compression=DEFLATE)
    data = tiff_file([one], big=True)
    assert_reads_as(data, PIXELS)
    offsets, end = [], 16
    for segment in one.segments:
        offsets.append(data.index(segment, end))
        end = offsets[-1] + len(segment)
    offsets, sizes = PLACES[case](offsets, [len(segment) for segment in one.segments], len(data))
    one.tags[324 if tile else 273] = (tiff_files.LONG8, offsets)
    one.tags[325 if tile else 279] = (tiff_files.LONG8, sizes)
    broken = tiff_file([one], big=True)
    assert reason(broken) == MISSING
    path = tmp_path / "broken.tif"
    path.write_bytes(broken)
    assert not is_complete_tiff(str(path))
    path.write_bytes(data)
    assert is_complete_tiff(str(path))


def test_a_last_strip_may_have_as_many_rows_as_the_others():
    rows = noise((20, 30, 3))
    for compression in (NONE, LZW, DEFLATE, PACKBITS, LZMA, ZSTD):
        full = tiff(rows, photometric=RGB, rows_per_strip=10, compression=compression, encode=ENCODERS[compression])
        short_by = tiff(
            rows,
            photometric=RGB,
            rows_per_strip=10,
            compression=compression,
            encode=ENCODERS[compression],
            tags={257: (LONG, (13,))},
        )
        assert_reads_as(full, rows)
        assert_reads_as(short_by, rows[:13])


@pytest.mark.parametrize(("width", "height"), [(8192, 4096), (1 << 31, 1 << 31)])
def test_tiles_far_larger_than_their_image_are_refused(width, height):
    data = tiff(GRAY, tile=(16, 16), tags={322: (LONG, (width,)), 323: (LONG, (height,))})
    assert reason(data) == f"TIFF tiles of {width} x {height} pixels exceed the limit of {1 << 24} pixels"
    assert (
        reason(tiff(GRAY, tile=(16, 16)), max_pixels=255)
        == "TIFF tiles of 16 x 16 pixels exceed the limit of 255 pixels"
    )


ENCODERS = {
    **tiff_files.ENCODERS,
    LZMA: lzma.compress,
    ZSTD: imagecodecs.zstd_encode,
}
NAMES = {LZW: "LZW", DEFLATE: "Deflate", PACKBITS: "PackBits", LZMA: "LZMA", ZSTD: "Zstandard"}


@pytest.mark.parametrize("compression", NAMES)
@pytest.mark.parametrize("tile", [None, (32, 32)])
def test_streams_that_are_cut_off_or_too_long_are_refused(tile, compression):
    """Wherever they are cut, and if they have a byte more than there are pixels."""
    samples = noise((32, 32, 1), 3)
    options = {"tile": tile, "compression": compression}
    encode = ENCODERS[compression]
    assert_reads_as(tiff(samples, encode=encode, **options), samples[..., 0])
    problem = f"{'tile' if tile else 'strip'} 1 of 1 cannot be decompressed to its size ({NAMES[compression]})"
    whole = encode(samples.tobytes())
    for size in [
        *range(1, len(whole) - 3, 41),
        len(whole) - 3,
        *range(len(whole) - 2, len(whole) - harmless(compression)),
    ]:
        data = tiff(samples, encode=lambda raw, size=size: encode(raw)[:size], **options)
        assert reason(data) == f"damaged TIFF file: {problem}", size
    longer = tiff(samples, encode=lambda raw: encode(raw + b"\0"), **options)
    assert reason(longer) == f"damaged TIFF file: {problem}"


def harmless(compression):
    """Bytes at the end without which all pixels are there: the code for the end of LZW."""
    return 2 if compression == LZW else 0


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("end", [False, True])
def test_lzw_of_either_order_of_bits(old, end):
    samples = noise((60, 100, 1), bits=3)
    samples[20:30] = 7  # runs, whose codes name the entry that they complete
    data = tiff(samples, compression=LZW, encode=lambda raw: lzw(raw, end, old))
    assert_reads_as(data, samples[..., 0])


@pytest.mark.parametrize("lowest_first", [False, True])
@pytest.mark.parametrize(
    "codes",
    [[256, 65, 259, 66], [256, 258, 65, 66], [256, 65, 258, 256, 259, 66], [65, 66, 67, 68], [256, 65, 66, 257, 67]],
    ids=["beyond the table", "no entry yet", "an entry of before", "no clearing", "an early end"],
)
def test_lzw_codes_without_a_meaning_are_damage(codes, lowest_first):
    """The decoder of a library takes some of them for addresses."""
    data = tiff_files.pack_codes([(code, 9) for code in codes], lowest_first)
    assert "cannot be decompressed to its size (LZW)" in reason(
        tiff(np.zeros((1, 4, 1), np.uint8), compression=LZW, encode=lambda raw: data)
    )


def test_lzw_that_only_clears_its_table_is_refused_at_once():
    data = tiff_files.pack_codes([(256, 9)] * 100_000)
    assert "(LZW)" in reason(tiff(np.zeros((1, 4, 1), np.uint8), compression=LZW, encode=lambda raw: data))


def test_lzw_without_its_end_code_is_read_where_all_codes_are_whole():
    samples = noise((8, 64, 1), 2)
    assert_reads_as(tiff(samples, compression=LZW, encode=lambda raw: lzw(raw, end=False)), samples[..., 0])


@pytest.mark.parametrize("compression", [DEFLATE, LZMA])
def test_checksums_of_streams_are_checked(compression):
    encode = ENCODERS[compression]
    samples = noise((32, 32, 1), 3)
    size = len(encode(samples.tobytes()))
    for place in range(size // 5, size, size // 5):

        def damage(raw, place=place):
            data = bytearray(encode(raw))
            data[place] ^= 0x10
            return bytes(data)

        assert "cannot be decompressed" in reason(tiff(samples, compression=compression, encode=damage))


def test_uncompressed_strips_may_be_too_long_but_not_too_short():
    samples = noise((5, 7, 3))
    assert_reads_as(tiff(samples, photometric=RGB, encode=lambda raw: raw + b"more"), samples)
    data = tiff(samples, photometric=RGB, rows_per_strip=2, encode=lambda raw: raw[:-1])
    assert reason(data) == "damaged TIFF file: strip 1 of 3 is too short"


# ---- Pictures in strips and tiles ------------------------------------------------------------------------------------


def in_strip(
    picture, width, height, samples=3, bits=8, compression=tiff_files.JPEG, tile=False, photometric=None, **tags
):
    """A file whose one strip or tile holds a picture."""
    if photometric is None:
        photometric = YCBCR if compression == tiff_files.JPEG and samples == 3 else RGB if samples > 2 else BLACK
    empty = np.zeros((height, width, samples), np.uint16)
    extra = (2,) if samples in (2, 4) else None
    tags = {int(tag.removeprefix("tag_")): value for tag, value in tags.items()}
    return tiff(
        empty,
        bits=bits,
        photometric=photometric,
        extra=extra,
        compression=compression,
        tile=(width, height) if tile else None,
        encode=lambda _: picture,
        tags=tags,
    )


def jpeg(pixels, **options):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", **options)
    return file.getvalue()


PICTURES = {
    "PNG": (tiff_files.PNG, (1, 2, 3, 4), (8, 16), imagecodecs.png_encode),
    "WebP": (tiff_files.WEBP, (3, 4), (8,), lambda pixels: imagecodecs.webp_encode(pixels, lossless=True)),
    "JPEG 2000": (
        tiff_files.JPEG_2000,
        (1, 3),
        (8, 16),
        lambda pixels: imagecodecs.jpeg2k_encode(pixels, level=0, codecformat="J2K"),
    ),
    "JPEG XL": (
        tiff_files.JPEG_XL,
        (1, 2, 3, 4),
        (8, 16),
        lambda pixels: imagecodecs.jpegxl_encode(pixels, lossless=True, bitspersample=8 * pixels.itemsize),
    ),
}
KINDS = [
    (name, samples, bits)
    for name, (_, channels, depths, _) in PICTURES.items()
    for samples in channels
    for bits in depths
]


@pytest.mark.parametrize("tile", [False, True])
@pytest.mark.parametrize(("name", "samples", "bits"), KINDS)
def test_pictures_in_strips_and_tiles(name, samples, bits, tile):
    code, _, _, encode = PICTURES[name]
    pixels = noise((16, 32, samples), bits)
    stored = np.ascontiguousarray(pixels[..., 0] if samples == 1 else pixels)
    picture = encode(stored)
    data = in_strip(picture, 32, 16, samples, bits, code, tile)
    assert_reads_as(data, stored)
    problem = f"{'tile' if tile else 'strip'} 1 of 1 does not contain a complete {name} picture of "
    for width, height in ((16, 32), (32, 17), (33, 16), (8, 8), (64, 64)):
        size = f"{width} x {height} pixels of {samples} x {bits} bits"
        refused = in_strip(picture, width, height, samples, bits, code, tile)
        assert reason(refused) == f"damaged TIFF file: {problem}{size}"
    for cut in range(1, len(picture) - 16, len(picture) // 9):
        assert problem in reason(in_strip(picture[:cut], 32, 16, samples, bits, code, tile))


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_of_other_kinds_than_the_strip_are_refused(name):
    """Of another number of samples, or of other bits, which would be lost or in another range."""
    code, channels, depths, encode = PICTURES[name]
    for samples in channels:
        for bits in depths:
            pixels = noise((16, 16, samples), bits)
            picture = encode(np.ascontiguousarray(pixels[..., 0] if samples == 1 else pixels))
            for other in {*channels} - {samples}:
                assert f"does not contain a complete {name} picture" in reason(
                    in_strip(picture, 16, 16, other, bits, code)
                )
            for other in {*depths} - {bits}:
                assert f"does not contain a complete {name} picture" in reason(
                    in_strip(picture, 16, 16, samples, other, code)
                )


def small_png(*chunks, rows=b"\0\1\2\3" * 2):
    """A picture of 3 x 2 gray pixels."""
    return png_file(png_header(3, 2), *chunks, png_chunk(b"IDAT", zlib.compress(rows)))


def test_png_in_strips_is_held_to_what_png_files_are(capfd):
    def strip(picture):
        return in_strip(picture, 3, 2, 1, compression=tiff_files.PNG)

    assert_reads_as(strip(small_png(png_chunk(b"gAMA", bytes(4)))), np.array([[1, 2, 3]] * 2, np.uint8))
    refused = {
        "more data": small_png(rows=b"\0\1\2\3" * 3),
        "a transparent colour": small_png(png_chunk(b"tRNS", bytes(2))),
        "an animation": small_png(png_chunk(b"acTL", struct.pack(">II", 2, 0))),
        "no end": small_png()[:-12],
        "another start": small_png().replace(b"\x89PNG", b"\x89GNP"),
        "an unknown filter": small_png(rows=b"\5\1\2\3" * 2),
    }
    for picture in refused.values():
        assert "strip 1 of 1 does not contain a complete PNG picture of 3 x 2 pixels of 1 x 8 bits" in reason(
            strip(picture)
        )
    assert capfd.readouterr().err == "", "libpng complains to standard error"


def test_memory_of_the_decoder_of_jpeg_2000_is_reserved():
    """It keeps 32 bits for each sample of a strip or tile, beside the pixels."""
    pixels = noise((32, 64, 3))
    picture = PICTURES["JPEG 2000"][3](pixels)
    reserved = []
    read_image(in_strip(picture, 64, 32, compression=tiff_files.JPEG_2000), ReadOptions(reserve=reserved.append))
    half = PICTURES["JPEG 2000"][3](np.ascontiguousarray(pixels[:16]))
    data = tiff(pixels, photometric=RGB, rows_per_strip=16, compression=tiff_files.JPEG_2000, encode=lambda raw: half)
    read_image(data, ReadOptions(reserve=reserved.append))
    assert reserved == [pixels.nbytes * 5, pixels.nbytes * 3]


def test_jpeg_xl_of_ten_bits_is_refused_in_a_strip_of_sixteen():
    picture = imagecodecs.jpegxl_encode(noise((16, 16), 10), lossless=True, bitspersample=10)
    assert "does not contain a complete JPEG XL picture of 16 x 16 pixels of 1 x 16 bits" in reason(
        in_strip(picture, 16, 16, 1, 16, tiff_files.JPEG_XL)
    )


@pytest.mark.parametrize("size", [(1, 1), (7, 300), (300, 7), (64, 64), (96, 128), (40, 513), (256, 256)])
@pytest.mark.parametrize("bits", [8, 16])
def test_jpeg_xl_headers_of_all_forms(bits, size):
    """Sizes have short and long forms, and forms as a ratio; bits have one for 8 and others."""
    pixels = noise(size, bits)
    picture = imagecodecs.jpegxl_encode(pixels, lossless=True, bitspersample=bits)
    assert_reads_as(in_strip(picture, size[1], size[0], 1, bits, tiff_files.JPEG_XL), pixels)


@pytest.mark.parametrize(
    ("compression", "name", "samples", "bits", "message"),
    [
        (tiff_files.JPEG, "JPEG", 1, 16, "16-bit samples in JPEG"),
        (tiff_files.JPEG, "JPEG", 4, 8, "4 samples a pixel in JPEG"),
        (tiff_files.WEBP, "WebP", 3, 16, "16-bit samples in WebP"),
        (tiff_files.WEBP, "WebP", 1, 8, "1 samples a pixel in WebP"),
        (tiff_files.PNG, "PNG", 1, 4, "4-bit samples in PNG"),
    ],
)
def test_pictures_for_which_no_strip_is_made_are_refused(compression, name, samples, bits, message):
    data = in_strip(b"", 16, 16, samples, bits, compression, photometric=RGB if samples > 2 else BLACK)
    assert reason(data) == f"TIFF of {message} is not supported"


def bombs():
    """Data of a few bytes or kilobytes that decodes to 64 megapixels, for strips of 16 x 16 pixels."""
    side = 8192
    row = bytes(side)
    deflate, xz = zlib.compressobj(), lzma.LZMACompressor()
    deflated = b"".join(deflate.compress(row) for _ in range(side)) + deflate.flush()
    yield "Deflate", tiff_files.DEFLATE, deflated
    yield "LZMA", LZMA, b"".join(xz.compress(row) for _ in range(side // 8)) + xz.flush()
    yield "Zstandard", ZSTD, imagecodecs.zstd_encode(bytes(side * side))
    yield "LZW", LZW, imagecodecs.lzw_encode(bytes(side * side // 16))
    yield "PackBits", PACKBITS, b"\x81\0" * (side * side // 128)
    yield "PNG", tiff_files.PNG, png_with_size(side)
    yield "WebP", tiff_files.WEBP, webp_with_size(side)
    yield "JPEG", tiff_files.JPEG, jpeg_with_size(side)
    yield "JPEG 2000", tiff_files.JPEG_2000, jpeg_2000_with_size(side)
    yield "JPEG XL", tiff_files.JPEG_XL, imagecodecs.jpegxl_encode(np.zeros((side // 2, side), np.uint8), effort=1)
    for code, name in ((2, "RLE"), (3, "Group 3"), (4, "Group 4")):
        yield f"CCITT {name}", code, b"\xff" * 1000


def png_with_size(side):
    data = png(noise((1, 1, 1)), 8, 0)
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return data[:16] + header + struct.pack(">I", zlib.crc32(b"IHDR" + header)) + data[33:]


def webp_with_size(side):
    body = b"\x2f" + struct.pack("<I", (side - 1) | (side - 1) << 14) + bytes(25)
    return b"RIFF" + struct.pack("<I", 12 + len(body)) + b"WEBPVP8L" + struct.pack("<I", len(body)) + body


def jpeg_with_size(side):
    data = jpeg(noise((8, 8, 3)), progressive=True)
    at = data.index(b"\xff\xc2") + 5
    return data[:at] + struct.pack(">HH", side, side) + data[at + 4 :]


def jpeg_2000_with_size(side):
    data = imagecodecs.jpeg2k_encode(noise((16, 16)), codecformat="J2K")
    return data[:8] + struct.pack(">II", side, side) + data[16:24] + struct.pack(">II", side, side) + data[32:]


MEASURE = """
import resource, sys
from pathlib import Path
from dali_l3.images.reading import ImageError, read_image
for path in sorted(Path(sys.argv[1]).iterdir()):
    data = path.read_bytes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        read_image(data)
    except ImageError as error:
        print(path.stem, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error, sep="|")
"""


def test_bombs_in_strips_take_no_memory(tmp_path):
    small = tmp_path / "bombs"
    small.mkdir()
    names = []
    for name, code, data in bombs():
        samples = 3 if name in ("WebP", "JPEG") else 1
        ccitt = name.startswith("CCITT")
        (small / f"{name}.tif").write_bytes(in_strip(data, 16, 16, samples, 1 if ccitt else 8, code))
        names.append(name)
    run = subprocess.run([sys.executable, "-c", MEASURE, small], capture_output=True, text=True, check=True)
    grown = {
        name: (int(kilobytes), why) for name, kilobytes, why in (line.split("|") for line in run.stdout.splitlines())
    }
    assert sorted(grown) == sorted(names)
    for name, (kilobytes, why) in grown.items():
        assert kilobytes < 40_000, name  # libraries that are loaded at first use
        assert why.startswith("damaged TIFF file: strip 1 of 1 "), name


def test_jpeg_2000_of_very_many_tiles_is_refused():
    """For each of which the decoder takes kilobytes."""
    data = imagecodecs.jpeg2k_encode(noise((64, 64)), codecformat="J2K")
    tiny = data[:24] + struct.pack(">II", 1, 1) + data[32:]
    assert "does not contain a complete JPEG 2000 picture" in reason(in_strip(tiny, 64, 64, 1, 8, tiff_files.JPEG_2000))


# ---- JPEG ------------------------------------------------------------------------------------------------------------

PHOTO = np.add.outer(np.arange(40), np.arange(56))[..., None] * np.array([1, 2, 3]) // 2 % 256
PHOTO = PHOTO.astype(np.uint8)


@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("tile", [False, True])
def test_jpeg_of_ycbcr_colours(tile, subsampling):
    data = jpeg(PHOTO, subsampling=subsampling)
    assert_reads_as(in_strip(data, 56, 40, tile=tile), np.asarray(Image.open(io.BytesIO(data))))


def test_jpeg_of_gray_and_of_white_is_zero():
    data = jpeg(PHOTO[..., 0])
    decoded = np.asarray(Image.open(io.BytesIO(data)))
    assert_reads_as(in_strip(data, 56, 40, 1), decoded)
    assert_reads_as(in_strip(data, 56, 40, 1, photometric=WHITE), 255 - decoded)


def without_segments(data, *markers):
    for marker in markers:
        at = data.index(b"\xff" + bytes([marker]))
        data = data[:at] + data[at + 2 + int.from_bytes(data[at + 2 : at + 4], "big") :]
    return data


def test_jpeg_tables_shared_by_strips():
    data = without_segments(jpeg(PHOTO), 0xE0)
    at, tables = 2, b""
    while data[at + 1] != 0xDA:
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if data[at + 1] in (0xDB, 0xC4):
            tables += data[at:end]
            data = data[:at] + data[end:]
        else:
            at = end
    shared = (UNDEFINED, b"\xff\xd8" + tables + b"\xff\xd9")
    assert_reads_as(in_strip(data, 56, 40, tag_347=shared), np.asarray(Image.open(io.BytesIO(jpeg(PHOTO)))))
    assert "a Huffman table is missing" in reason(in_strip(data, 56, 40)) or "pixel data" in reason(
        in_strip(data, 56, 40)
    )
    nonsense = (UNDEFINED, tables)
    assert reason(in_strip(data, 56, 40, tag_347=nonsense)) == "damaged TIFF file: its JPEG tables are invalid"


def test_jpeg_of_rgb_colours_is_not_converted():
    """libjpeg would take it for YCbCr where nothing in the data says so."""
    red, green, blue = (PHOTO[..., i] for i in range(3))
    stored = Image.merge("YCbCr", [Image.fromarray(np.ascontiguousarray(plane)) for plane in (red, green, blue)])
    file = io.BytesIO()
    stored.save(file, "JPEG", quality=100, subsampling="4:4:4")  # its components are what was red, green and blue
    data = without_segments(file.getvalue(), 0xE0)
    image = read_image(in_strip(data, 56, 40, photometric=RGB))
    assert np.abs(image.pixels.astype(int) - PHOTO).max() <= 4


def test_colours_that_tiff_and_jpeg_data_contradict_are_refused():
    """Pillow and OpenCV follow the one, tifffile and DALI the other."""
    jfif = jpeg(PHOTO)
    adobe = jfif[:2] + b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0" + without_segments(jfif, 0xE0)[2:]
    message = (
        "TIFF whose JPEG data has other colours than its PhotometricInterpretation says (strip 1 of 1 of a TIFF file)"
    )
    assert reason(in_strip(jfif, 56, 40, photometric=RGB)) == message
    assert reason(in_strip(adobe, 56, 40)) == message
    assert read_image(in_strip(adobe, 56, 40, photometric=RGB)).pixels.shape == (40, 56, 3)


COEFFICIENTS, BLACK_AND_WHITE = "tag_529", "tag_532"


def test_other_definitions_of_ycbcr_are_refused_or_noted():
    data = jpeg(PHOTO)
    usual = (RATIONAL, (299, 1000, 587, 1000, 114, 1000))
    assert read_image(in_strip(data, 56, 40, **{COEFFICIENTS: usual})).notes == ()
    other = (RATIONAL, (2126, 10000, 7152, 10000, 722, 10000))
    assert "other coefficients than those of JPEG" in reason(in_strip(data, 56, 40, **{COEFFICIENTS: other}))
    levels = (RATIONAL, (0, 1, 255, 1, 128, 1, 255, 1, 128, 1, 255, 1))
    assert read_image(in_strip(data, 56, 40, **{BLACK_AND_WHITE: levels})).notes == ()
    levels = (RATIONAL, (16, 1, 235, 1, 128, 1, 240, 1, 128, 1, 240, 1))
    noted = read_image(in_strip(data, 56, 40, **{BLACK_AND_WHITE: levels}))
    assert noted.notes == ("ReferenceBlackWhite ignored, as JPEG decoders do",)
    separate = tiff(
        PHOTO, photometric=YCBCR, compression=tiff_files.JPEG, planar=True, encode=lambda _: jpeg(PHOTO[..., 0])
    )
    assert reason(separate) == "YCbCr colours in separate planes: convert to RGB first"


@pytest.mark.parametrize("tile", [False, True])
def test_damaged_jpeg_data_is_refused(tile):
    data = jpeg(PHOTO, quality=95)
    start = data.index(b"\xff\xda") + 20
    place = f"({'tile' if tile else 'strip'} 1 of 1 of a TIFF file)"
    for cut in range(start, len(data) - 2, 97):
        for end in (b"", b"\xff\xd9"):
            assert reason(in_strip(data[:cut] + end, 56, 40, tile=tile)).endswith(place)
    for other in (b"", b"\xff\xd8", b"\xff\xd8\xff\xd9", b"no JPEG"):
        assert "1 of 1" in reason(in_strip(other or b"\0", 56, 40, tile=tile))


@pytest.mark.parametrize(("marker", "kind"), [(0xC3, "lossless JPEG"), (0xC9, "arithmetic-coded JPEG")])
def test_other_kinds_of_jpeg_are_refused_by_name(marker, kind):
    data = jpeg(PHOTO).replace(b"\xff\xc0", b"\xff" + bytes([marker]), 1)
    assert (
        reason(in_strip(data, 56, 40))
        == f"{kind} is not supported: convert to PNG or TIFF first (strip 1 of 1 of a TIFF file)"
    )


def test_the_size_of_jpeg_data_is_that_of_its_strip():
    """A last strip may be padded to the height of the others, as libtiff allows."""
    data = jpeg(PHOTO[:16, :48])
    for width, height, fits in ((48, 16, True), (48, 8, False), (48, 24, False), (40, 16, False), (56, 16, False)):
        file = in_strip(data, width, height)
        if fits:
            assert read_image(file).pixels.shape == (height, width, 3)
        else:
            assert f"does not contain a complete JPEG picture of {width} x {height} pixels" in reason(file)
    padded = in_strip(data, 48, 12, tag_278=(LONG, (16,)))
    assert "complete JPEG picture of 48 x 12 pixels" in reason(padded), "a strip is not taller than its image"
    two = tiff(
        PHOTO[:24, :48], photometric=YCBCR, rows_per_strip=16, compression=tiff_files.JPEG, encode=lambda _: data
    )
    decoded = np.asarray(Image.open(io.BytesIO(data)))
    assert_reads_as(two, np.concatenate([decoded, decoded[:8]]))


# ---- CCITT -----------------------------------------------------------------------------------------------------------


def bits(text):
    """Codes in the notation of T.4, with spaces between them, as bytes."""
    text = text.replace(" ", "")
    return bytes(int(text[i : i + 8].ljust(8, "0"), 2) for i in range(0, len(text), 8))


def bilevel(data, compression, rows, options=None):
    """A file of 16 x `rows` pixels; 1 is black."""
    tags = {293 if compression == 4 else 292: (LONG, (options,))} if options is not None else {}
    blank = np.zeros((rows, 16, 1), np.uint8)
    return tiff(blank, bits=1, photometric=WHITE, compression=compression, encode=lambda _: data, tags=tags)


EOL = "000000000001"
W16, W4_B4_W8, B16 = "101010", "1011 011 10011", "00110101 0000010111"
ROWS = np.zeros((3, 16), np.uint8)
ROWS[1, 4:8] = ROWS[2] = 1
T6 = "1 001 1011 011 1"  # a row as white as the one above it; 4 white and 4 black pixels, and white to the end
CODES = {
    # rows start at bytes
    "RLE": (2, None, bits(W16) + bits(W4_B4_W8) + bits(B16)),
    "Group 3": (3, 0, bits(EOL + W16 + EOL + W4_B4_W8 + EOL + B16)),
    "Group 3, fill bits": (
        3,
        4,
        bits("0000" + EOL + W16 + "0" * 30 + EOL + W4_B4_W8 + "0" + EOL + B16 + "0" + EOL * 6),
    ),
    "Group 3, no end of line": (3, 0, bits(W16 + W4_B4_W8 + B16)),
    "Group 3, two dimensions": (
        3,
        1,
        bits(EOL + "1" + W16 + EOL + "0" + "001 1011 011 1" + EOL + "1" + B16 + (EOL + "1") * 6),
    ),
    # black from the first pixel (V0 cannot reach it: two runs), pass modes are in the next test
    "Group 4": (4, 0, bits(T6 + "001" + B16 + EOL * 2)),
    "Group 4, no end": (4, None, bits(T6 + "001" + B16)),
}


@pytest.mark.parametrize("case", CODES)
def test_ccitt_codes_by_hand(case):
    compression, options, data = CODES[case]
    assert_reads_as(bilevel(data, compression, 3, options), 255 - 255 * ROWS)


NO_CODES = {
    "a row too few": (4, bits("1 1"), 3),
    "a row too many": (4, bits("1 1 1 1"), 3),
    "no code": (4, bits("1 1 0000000001"), 3),
    "the end in the middle": (4, bits("1" + EOL * 2), 3),
    "a run beyond the row": (4, bits("001 101010 010"), 1),
    "a change before the last": (4, bits("001 1011 011 000010"), 1),
    "a change beyond the row": (4, bits("011"), 1),
    "a pass to the end": (4, bits("0001"), 1),
    "RLE beyond the row": (2, bits("11011 00110101"), 1),
    "RLE, end of a row missing": (2, bits("1011"), 1),
    "RLE, a row too many": (2, bits(W16) + bits(W16), 1),
    "Group 3, a row cut short by an end of line": (3, bits(EOL + "1011 011" + EOL + W16), 2),
    "Group 3, a row missing": (3, bits(EOL + W16 + EOL * 6), 2),
    "Group 3, nothing": (3, bytes(40), 1),
}


@pytest.mark.parametrize("case", NO_CODES)
def test_ccitt_codes_that_do_not_fill_their_rows_are_refused(case):
    compression, data, rows = NO_CODES[case]
    name = {2: "RLE", 3: "Group 3", 4: "Group 4"}[compression]
    expected = f"damaged TIFF file: strip 1 of 1 cannot be decompressed to its size (CCITT {name})"
    assert reason(bilevel(data, compression, rows)) == expected


def test_ccitt_for_other_images_and_in_uncompressed_mode_is_refused():
    assert reason(tiff(GRAY, tags={259: short(4)})) == "damaged TIFF file: CCITT Group 4 is only for bilevel images"
    for compression in (3, 4):
        data = bilevel(bits("1"), compression, 1, options=2)
        assert reason(data) == "TIFF with CCITT codes in uncompressed mode is not supported"


def drawing(kind, height, width, seed):
    random = np.random.default_rng(seed)
    if kind == "lines":  # runs of all lengths, rows like those above them
        image = np.logical_xor.accumulate(random.random((height, width)) < 0.01, axis=1)
        image[1::2] = image[:-1:2] if height % 2 == 0 else image[: height - 1 : 2]
        return image
    return random.random((height, width)) < {"dots": 0.05, "noise": 0.5, "white": 0, "black": 1}[kind]


@pytest.mark.parametrize(
    ("name", "options"), [("tiff_ccitt", 0), ("group3", 0), ("group3", 1), ("group3", 4), ("group3", 5), ("group4", 0)]
)
@pytest.mark.parametrize("kind", ["lines", "dots", "noise", "white", "black"])
def test_ccitt_as_libtiff_encodes_it(kind, name, options):
    """Codes of all runs and modes; and wherever a strip is cut, it is refused."""
    for width, height, seed in ((2600, 30, 1), (1, 7, 2), (31, 64, 3)):
        image = drawing(kind, height, width, seed)
        file = io.BytesIO()
        Image.fromarray(image).save(file, "TIFF", compression=name, tiffinfo={292: options} if name == "group3" else {})
        data = file.getvalue()
        pixels = np.where(image, np.uint8(255), np.uint8(0))
        assert_reads_as(data, pixels)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("compression", [2, 3, 4])
def test_ccitt_cut_off_anywhere_is_refused(compression, order):
    image = drawing("dots", 40, 61, 1)
    names = {2: "tiff_ccitt", 3: "group3", 4: "group4"}
    file = io.BytesIO()
    Image.fromarray(image).save(file, "TIFF", compression=names[compression])
    stored = Image.open(file)
    start, size = stored.tag_v2[273][0], stored.tag_v2[279][0]
    strip = file.getvalue()[start : start + size]
    if order == 2:
        strip = tiff_files.reverse_bits(strip)
    tags = {266: short(order)}

    def file_of(strip):
        return tiff(image[..., None], bits=1, compression=compression, encode=lambda _: strip, tags=tags)

    assert_reads_as(file_of(strip), np.where(image, np.uint8(255), np.uint8(0)))
    for cut in range(1, size - 5):  # behind which there are but the codes for the end
        assert "cannot be decompressed" in reason(file_of(strip[:cut]))


# ---- Pages -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("big", [False, True])
def test_pages_are_read_one_by_one(big, tmp_path):
    images = [noise((4 + i, 6, 1), seed=i) for i in range(3)]
    reduced = page(GRAY, tags={tiff_files.SUBFILE: (LONG, (1,))})
    mask = page(GRAY & 1, bits=1, photometric=4, tags={tiff_files.SUBFILE: (LONG, (4,))})
    old_reduced = page(GRAY, tags={255: short(2)})
    of_several = [page(image, tags={tiff_files.SUBFILE: (LONG, (2,))}) for image in images]
    data = tiff_file([of_several[0], reduced, of_several[1], mask, old_reduced, of_several[2]], big=big)
    left_out = "3 reduced copies or masks left out"
    assert reason(data) == "has 3 pages: use --pages first or --pages split"
    assert reason(data, page=3) == "there is no page 4 in a TIFF file of 3"
    assert_reads_as(data, images[0][..., 0], ("the first of 3 pages was taken", left_out), page="first")
    assert_reads_as(data, images[0][..., 0], (left_out,), page=0)
    assert_reads_as(data, images[1][..., 0], (left_out,), page=1)
    assert_reads_as(data, images[2][..., 0], (left_out,), page=2)
    path = tmp_path / "pages.tif"
    path.write_bytes(data)
    assert reader.page_count(data) == reader.page_count(path) == 3
    with pytest.raises(ImageError, match="header"):
        reader.page_count(b"no TIFF file, though")
    with pytest.raises(FileNotFoundError):
        reader.page_count(tmp_path / "missing.tif")


def test_a_single_page_is_the_first():
    assert_reads_as(tiff(GRAY), GRAY[..., 0], page="first")
    assert_reads_as(
        tiff_file([page(GRAY), page(GRAY, tags={254: (LONG, (1,))})]),
        GRAY[..., 0],
        ("1 reduced copy or mask left out",),
    )


def test_files_that_start_with_a_reduced_copy_are_refused():
    data = tiff_file([page(GRAY, tags={254: (LONG, (1,))}), page(GRAY)])
    message = "TIFF whose first page is a reduced copy or a mask (a camera's raw file?)"
    assert reason(data) == message
    with pytest.raises(ImageError, match="reduced copy"):
        reader.page_count(data)


# ---- Metadata --------------------------------------------------------------------------------------------------------


def test_colour_profile_and_xmp_are_kept():
    data = tiff(GRAY, tags={tiff_files.ICC: (UNDEFINED, b"profile" * 9), tiff_files.XMP: (BYTE, b"<x:xmpmeta/>")})
    image = read_image(data)
    assert image.metadata == {"icc": b"profile" * 9, "xmp": b"<x:xmpmeta/>"}
    assert image.notes == ()


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("big", [False, True])
def test_exif_becomes_a_block_of_its_own(big, order):
    one = page(GRAY, order=order, tags={tiff_files.ORIENTATION: short(6)})
    one.tags |= {
        270: (ASCII, b"A hut\0"),
        271: (ASCII, b"Maker & Sons\0"),
        306: (ASCII, b"2024:01:02 03:04:05\0"),
        33432: (ASCII, b"me\0"),
    }
    settings = Page(
        {
            33434: (RATIONAL, (1, 250)),
            34855: short(800),
            36864: (UNDEFINED, b"0232"),
            37500: (UNDEFINED, bytes(range(9))),
        }
    )
    settings.groups[40965] = Page({1: (ASCII, b"R98\0")})
    one.groups = {
        tiff_files.EXIF: settings,
        tiff_files.GPS: Page({1: (ASCII, b"N\0"), 2: (RATIONAL, (46, 1, 30, 1, 0, 1))}),
    }
    image = read_image(tiff_file([one], order, big))
    assert image.notes == ("EXIF orientation 6 applied",)
    exif = Image.Exif()
    exif.load(b"Exif\0\0" + image.metadata["exif"])
    assert dict(exif) == {
        270: "A hut",
        271: "Maker & Sons",
        274: 1,
        306: "2024:01:02 03:04:05",
        33432: "me",
        34665: exif[34665],
        34853: exif[34853],
    }
    details = exif.get_ifd(34665)
    assert (details[33434], details[34855], details[36864], details[37500]) == (1 / 250, 800, b"0232", bytes(range(9)))
    assert exif.get_ifd(40965) == {1: "R98"}
    assert exif.get_ifd(34853) == {1: "N", 2: (46, 30, 0)}


def test_makers_and_rights_are_kept_where_there_is_no_exif_directory():
    image = read_image(tiff(GRAY, tags={315: (ASCII, b"An artist\0"), 270: (ASCII, b"words\0")}))
    exif = Image.Exif()
    exif.load(image.metadata["exif"])
    assert dict(exif) == {270: "words", 274: 1, 315: "An artist"}
    assert read_image(tiff(GRAY, tags={305: (ASCII, b"software\0")})).metadata == {}


NOTED = {
    "IPTC data left out": {33723: (UNDEFINED, b"iptc")},
    "Photoshop data left out": {34377: (BYTE, b"8BIM"), 37724: (BYTE, b"layers")},
    "GeoTIFF data left out": {33550: (UNDEFINED, bytes(24)), 34735: short(1, 1, 0, 0), 42113: (ASCII, b"0\0")},
    "transfer functions, white point or primaries left out": {318: (RATIONAL, (1, 3, 1, 3)), 301: short(*range(256))},
    "image description left out": {270: (ASCII, b"words\0")},
    "private tags left out": {65000: short(1), 65001: short(2)},
    "ICC profile of 1073741824 bytes left out: it exceeds the format's limit": {34675: (UNDEFINED, b"icc", 1 << 30)},
    "damaged XMP left out": {700: (77, b"xmp", 3)},
    "damaged EXIF data left out": {34665: (LONG, (1 << 30,))},
}


@pytest.mark.parametrize("note", NOTED)
def test_metadata_that_is_left_out_is_noted_once_for_each_kind(note):
    image = read_image(tiff(GRAY, tags=NOTED[note]))
    assert image.notes == (note,)
    assert image.metadata == {}


def test_metadata_beyond_the_limit_is_left_out(monkeypatch):
    monkeypatch.setattr(reader.metadata, "MAX_METADATA", 100)
    one = page(GRAY, tags={34675: (UNDEFINED, bytes(101)), 700: (BYTE, b"xmp")})
    one.groups[34665] = Page({37500: (UNDEFINED, bytes(99))})
    image = read_image(tiff_file([one]))
    assert image.metadata == {"xmp": b"xmp"}
    assert image.notes == (
        "ICC profile of 101 bytes left out: it exceeds the format's limit",
        "damaged EXIF data left out",
    )


@pytest.mark.parametrize("value", [0, 9, 65535])
def test_impossible_orientations_count_as_upright(value):
    assert_reads_as(tiff(GRAY, tags={274: short(value)}), GRAY[..., 0])
