"""JPEG files: pixels as libjpeg-turbo has them; refusals, notes, and damage that it would only warn of."""

from __future__ import annotations

import io
import re
import struct

import imagecodecs
import numpy as np
import pytest
from PIL import Image

from dali_l3.images.reading import ImageError, read_image
from dali_l3.images.stored import ReadOptions
from image_files import exif, noise, saved
from jpeg_files import (
    APP0,
    APP1,
    APP2,
    APP13,
    APP14,
    COM,
    DNL,
    DRI,
    EOI,
    HUFFMAN,
    JFIF,
    QUANTISATION,
    SOF2,
    SOI,
    TABLES,
    adobe,
    colour_jpeg,
    flat_blocks,
    frame,
    gray_jpeg,
    pixels_of,
    scan,
    segment,
)
from mutations import mutations

GRAY = noise((5, 7))  # of blocks
COLOURS = [noise((5, 7), seed=seed) for seed in range(3)]
COLOUR_PIXELS = np.dstack([pixels_of(component) for component in COLOURS])
UNCHECKED = "unusual chroma subsampling: the pixel data could not be checked for damage"


def photograph(width=157, height=93):
    """Something smooth with some noise."""
    y, x = np.mgrid[:height, :width]
    waves = np.stack([np.sin(x / 9 + channel) * 60 + np.cos(y / 13) * 50 + 128 for channel in range(3)], axis=-1)
    return Image.fromarray((waves + np.random.default_rng(0).normal(0, 4, waves.shape)).clip(0, 255).astype(np.uint8))


def assert_reads_as(data, expected, *notes):
    image = read_image(data)
    np.testing.assert_array_equal(image.pixels, expected)
    assert image.pixels.dtype == np.uint8
    assert image.notes == notes


def pillow_pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)))


# ---- Pixels ----------------------------------------------------------------------------------------------------------


def test_gray():
    assert_reads_as(gray_jpeg(GRAY), pixels_of(GRAY))


def test_restart_markers():
    data = gray_jpeg(GRAY, before=segment(DRI, b"\0\3"), restart=3)
    assert b"\xff\xd1" in data
    assert_reads_as(data, pixels_of(GRAY))


@pytest.mark.parametrize("how", [{"before": adobe(0)}, {"ids": b"RGB"}])
def test_rgb_stays_rgb(how):
    assert_reads_as(colour_jpeg(COLOURS, **how), COLOUR_PIXELS)


@pytest.mark.parametrize(
    "how", [{}, {"before": segment(APP0, JFIF)}, {"before": adobe(1)}, {"before": segment(APP0, JFIF), "ids": b"RGB"}]
)
def test_luma_and_chroma_become_rgb(how):
    neutral = np.full_like(GRAY, 128)
    assert_reads_as(colour_jpeg([GRAY, neutral, neutral], **how), pixels_of(GRAY)[:, :, None].repeat(3, 2))


def test_components_of_a_size_of_their_own():
    luma = noise((6, 8))
    neutral = np.full((3, 4), 128, np.uint8)
    for v, h in ((1, 2), (2, 1), (2, 2)):
        chroma = neutral[: 6 // v, : 8 // h] if (v, h) == (2, 2) else np.full((6 // v, 8 // h), 128, np.uint8)
        data = colour_jpeg([luma, chroma, chroma], samplings=((h, v), (1, 1), (1, 1)))
        assert_reads_as(data, pixels_of(luma)[:, :, None].repeat(3, 2))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"subsampling": 0},
        {"subsampling": 1},
        {"progressive": True},
        {"optimize": True, "quality": 100},
        {"restart_marker_blocks": 5},
        {"keep_rgb": True},
    ],
)
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_pixels_are_those_of_libjpeg_turbo(mode, options):
    data = saved(photograph().convert(mode), format="JPEG", **options)
    assert_reads_as(data, pillow_pixels(data))
    assert_reads_as(data, imagecodecs.jpeg8_decode(data))


def test_scans_of_single_components():
    scans = b"".join(scan((number,), flat_blocks([values])) for number, values in zip(b"RGB", COLOURS, strict=True))
    assert_reads_as(SOI + TABLES + frame(56, 40, ((1, 1),) * 3, ids=b"RGB") + scans + EOI, COLOUR_PIXELS)


@pytest.mark.parametrize("samplings", [((4, 2), (1, 1), (1, 1)), ((2, 2), (2, 1), (1, 1)), ((1, 1), (1, 2), (1, 1))])
def test_unusual_subsampling_is_read_but_cannot_be_checked(samplings):
    across, down = (max(factors) for factors in zip(*samplings, strict=True))
    components = [np.full((2 * v, 2 * h), 128, np.uint8) for h, v in samplings]
    data = colour_jpeg(components, samplings=samplings, size=(16 * across, 16 * down))
    assert_reads_as(data, np.full((16 * down, 16 * across, 3), 128), UNCHECKED)


def test_motion_jpeg_without_huffman_tables():
    """Decoders know the tables of the standard, with which it is written then; Pillow writes them too."""
    data = saved(photograph(), format="JPEG")
    expected, first, end = pillow_pixels(data), data.index(b"\xff\xc4"), data.index(b"\xff\xda")
    assert_reads_as(data[:first] + data[end:], expected)


# ---- Other kinds -----------------------------------------------------------------------------------------------------

CMYK = "CMYK colours: convert to RGB first, with the right colour profile"
DNL_REFUSAL = r"JPEG whose height comes after its pixels \(DNL\) is not supported"


def with_frame(*arguments, **options):
    return SOI + TABLES + frame(*arguments, **options) + scan((1,), flat_blocks([GRAY])) + EOI


def with_marker(marker):
    return with_frame(56, 40, marker=marker)


def in_two_scans(first, second, ids=b"RGB"):
    """Progressive scans, each (component, parameters), that say nothing but that all stays as it is."""
    scans = b"".join(scan((ids[component],), b"\0" * 200, parameters) for component, parameters in (first, second))
    return SOI + TABLES + frame(56, 40, ((1, 1),) * len(ids), marker=SOF2, ids=ids) + scans + EOI


REFUSED = {
    **{f"lossless {kind:x}": (with_marker(kind), "lossless JPEG") for kind in (0xC3, 0xC7, 0xCB, 0xCF)},
    **{f"hierarchical {kind:x}": (with_marker(kind), "hierarchical JPEG") for kind in (0xC5, 0xC6, 0xCD, 0xCE)},
    **{f"arithmetic {kind:x}": (with_marker(kind), "arithmetic-coded JPEG") for kind in (0xC9, 0xCA)},
    "hierarchical dhp": (SOI + segment(0xDE, bytes(9)) + gray_jpeg(GRAY)[2:], "hierarchical JPEG"),
    "jpeg-ls": (with_marker(0xF7), "JPEG-LS is not supported: convert to PNG or TIFF first"),
    "12 bits": (with_frame(56, 40, precision=12), "12-bit JPEG is not supported: convert to PNG or TIFF first"),
    "12 bits progressive": (with_frame(56, 40, precision=12, marker=SOF2), "12-bit JPEG is not supported"),
    "cmyk": (colour_jpeg([GRAY] * 4, samplings=((1, 1),) * 4, ids=(1, 2, 3, 4)), CMYK),
    "cmyk of adobe": (saved(Image.new("CMYK", (8, 8)), format="JPEG"), CMYK),
    "two components": (colour_jpeg([GRAY] * 2, samplings=((1, 1),) * 2, ids=(1, 2)), "JPEG of 2 colour components"),
    "unknown transform": (colour_jpeg(COLOURS, before=adobe(2)), r"JPEG with an unknown colour transform \(2\)"),
    "no height": (with_frame(56, 0), DNL_REFUSAL),
    "height after pixels": (gray_jpeg(GRAY)[:-2] + segment(DNL, b"\0\x28") + EOI, DNL_REFUSAL),
    "no width": (with_frame(0, 40), "an image of 0 x 40 pixels has nothing to convert"),
    "too wide": (with_frame(65501, 8), "JPEG of 65501 x 8 pixels: sides over 65500 are not supported"),
    "two frames": (SOI + frame(56, 40) + gray_jpeg(GRAY)[2:], "damaged JPEG file: it has two frames"),
    "a short frame": (SOI + segment(0xC0, b"\x08\0\x08\0\x08\1") + EOI, "its frame header is invalid"),
    "sampling": (with_frame(56, 40, ((0, 1),)), "damaged JPEG file: its frame header is invalid"),
    "equal components": (colour_jpeg(COLOURS, ids=(1, 1, 1)), "damaged JPEG file: its frame header is invalid"),
    "other component": (SOI + TABLES + frame(56, 40) + scan((2,), b"") + EOI, "a scan header is invalid"),
    "short scan": (SOI + TABLES + frame(56, 40) + segment(0xDA, b"\1\1\0") + EOI, "a scan header is invalid"),
    "spectral selection": (in_two_scans((0, (5, 4, 0)), (0, (0, 0, 0))), "a scan header is invalid"),
    "no frame": (SOI + TABLES + scan((1,), b"") + EOI, "damaged JPEG file: a scan header is invalid"),
    "no scan": (SOI + TABLES + frame(56, 40) + EOI, "damaged JPEG file: it holds no image"),
    "nothing": (SOI + EOI + b"\xff" * 20, "damaged JPEG file: it holds no image"),
    "component missing": (
        SOI + TABLES + frame(56, 40, ((1, 1),) * 3) + scan((1, 3), flat_blocks(COLOURS[:2], ((1, 1),) * 2)) + EOI,
        "damaged JPEG file: a colour component is missing",
    ),
    "unknown marker": (SOI + b"\xff\x02\0\2" + gray_jpeg(GRAY)[2:], "damaged JPEG file: it has an unknown marker"),
    "segment without size": (SOI + b"\xff\xe1\0\1" + gray_jpeg(GRAY)[2:], "damaged JPEG file: a segment has no size"),
    "no table": (
        SOI + QUANTISATION + frame(56, 40) + HUFFMAN[:33] + scan((1,), flat_blocks([GRAY])) + EOI,
        "damaged JPEG file: a Huffman table is missing",
    ),
    "no quantisation": (gray_jpeg(GRAY).replace(QUANTISATION, b""), "damaged JPEG file: errors in its pixel data"),
    "two starts": (SOI + gray_jpeg(GRAY), "damaged JPEG file: "),
    "many segments": (SOI + segment(COM, b"") * 10_000 + EOI, "JPEG of more than 10000 segments is not supported"),
    "many scans": (
        SOI + TABLES + frame(56, 40) + scan((1,), flat_blocks([GRAY])) * 101 + EOI,
        "JPEG of more than 100 scans is not supported",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case):
    data, message = REFUSED[case]
    with pytest.raises(ImageError, match=message):
        read_image(data)


def test_pixels_are_limited_before_they_are_decoded():
    with pytest.raises(ImageError, match="56 x 40 pixels exceed the limit of 2239 pixels"):
        read_image(gray_jpeg(GRAY, data=b"nonsense"), ReadOptions(max_pixels=56 * 40 - 1))


@pytest.mark.parametrize(
    ("mode", "options", "bytes_per_pixel"),
    [
        ("L", {}, 1),
        ("RGB", {}, 3),
        ("L", {"progressive": True}, 3),  # decoders keep coefficients, of 2 bytes, until the last scan
        ("RGB", {"progressive": True}, 6),
        ("RGB", {"progressive": True, "subsampling": 0}, 9),
    ],
)
def test_memory_is_reserved_for_coefficients_too(mode, options, bytes_per_pixel):
    reserved = []
    data = saved(photograph().convert(mode), format="JPEG", **options)
    read_image(data, ReadOptions(reserve=reserved.append))
    assert reserved == [157 * 93 * bytes_per_pixel]


# ---- Damage ----------------------------------------------------------------------------------------------------------

DATA = flat_blocks([GRAY])
UNDEFINED_CODE = b"\xff\0\xff\0\xff\0"
DAMAGED = {
    "data ends": gray_jpeg(GRAY, data=DATA[:30]),
    "the last byte is missing": gray_jpeg(GRAY, data=DATA[:-1]),
    "bytes left over": gray_jpeg(GRAY, data=DATA + b"\x55"),
    "blocks left over": gray_jpeg(GRAY[:4], data=DATA),
    "zeros instead of data": gray_jpeg(GRAY, data=DATA[:30] + bytes(len(DATA) - 30)),
    "zeros after too little": gray_jpeg(GRAY, data=DATA[:-4] + bytes(4)),
    "undefined code": gray_jpeg(GRAY, data=DATA[:20] + UNDEFINED_CODE + DATA[26:]),
    "restart marker missing": gray_jpeg(GRAY, segment(DRI, b"\0\3"), restart=3).replace(b"\xff\xd1", b""),
    "restart marker changed": gray_jpeg(GRAY, segment(DRI, b"\0\3"), restart=3).replace(b"\xff\xd1", b"\xff\xd5"),
    "restart marker too much": gray_jpeg(GRAY, data=DATA[:20] + b"\xff\xd0" + DATA[20:]),
    "bytes left over before a restart": gray_jpeg(GRAY, segment(DRI, b"\0\3"), restart=3).replace(
        b"\xff\xd1", b"\x12\x34\xff\xd1"
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_what_decoders_only_warn_of_is_damage(case):
    """Pillow and imagecodecs deliver pixels of all of these, nearly all of them wrong."""
    assert imagecodecs.jpeg8_decode(DAMAGED[case]).ndim == 2
    assert pillow_pixels(DAMAGED[case]).ndim == 2
    with pytest.raises(ImageError, match="^damaged JPEG file: errors in its pixel data$"):
        read_image(DAMAGED[case])


@pytest.mark.parametrize(
    "options", [{}, {"progressive": True}, {"restart_marker_blocks": 5}, {"optimize": True, "quality": 95}]
)
def test_truncated_files_are_refused(options):
    data = saved(photograph(), format="JPEG", exif=b"Exif\0\0" + exif(1), **options)
    for size in (*range(3, 700, 9), *range(700, len(data), 97), len(data) - 1):
        with pytest.raises(ImageError, match="^damaged JPEG file: it ends too early$"):
            read_image(data[:size])


@pytest.mark.parametrize("options", [{}, {"restart_marker_blocks": 5}, {"optimize": True, "quality": 95}])
def test_an_end_marker_does_not_make_truncated_files_whole(options):
    data = saved(photograph(), format="JPEG", exif=b"Exif\0\0" + exif(1), **options)
    for size in (*range(3, 700, 9), *range(700, len(data), 97), *range(len(data) - 12, len(data) - 2)):
        with pytest.raises(ImageError, match="^damaged JPEG file: "):
            read_image(data[:size] + EOI)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_rows": 1}])
def test_most_zeroed_sectors_are_found(options):
    """Not all: JPEG has no checksums, and now and then as many blocks come out of other data."""
    data = saved(photograph(800, 600), format="JPEG", quality=90, **options)
    start, found, tried = data.index(b"\xff\xda") + 14, 0, 0
    for position in range(start, len(data) - 600, len(data) // 50):
        tried += 1
        try:
            read_image(data[:position] + bytes(512) + data[position + 512 :])
        except ImageError as error:
            found += str(error) == "damaged JPEG file: errors in its pixel data"
    assert found > 0.6 * tried > 20


def test_progressive_files_without_scans_in_between_are_refused():
    data = saved(photograph(), format="JPEG", progressive=True)
    scans = [at for at in range(len(data)) if data[at : at + 2] == b"\xff\xda"]
    for first, second in zip(scans, scans[1:], strict=False):
        damaged = data[:first] + b"\xff\xfe" + data[first + 2 : second] + data[second:]  # a comment, then stray bytes
        with pytest.raises(ImageError, match="^damaged JPEG file: "):
            read_image(damaged)


# ---- Irregularities that do no harm ----------------------------------------------------------------------------------

STRAY = "stray bytes between segments ignored"
MORE = "bytes after the end of the JPEG file left out"
UNFINISHED = "progressive JPEG without its last refinements, decoded without them"
HARMLESS = {
    "stray bytes": (gray_jpeg(GRAY, before=segment(APP0, JFIF) + b"\0\1\xff\0\2"), (STRAY,)),
    "stray bytes before the scan": (gray_jpeg(GRAY, between=b"abc"), (STRAY,)),
    "fill bytes": (gray_jpeg(GRAY, before=b"\xff\xff\xff", between=b"\xff"), ()),
    "fill bytes after the data": (gray_jpeg(GRAY, data=DATA + b"\xff\xff"), ()),
    "zeros after the data": (gray_jpeg(GRAY, data=DATA + bytes(7)), ()),
    "another version of jfif": (gray_jpeg(GRAY, before=segment(APP0, b"JFIF\0\0\0" + JFIF[7:])), ()),
    "zeros in the scan header": (gray_jpeg(GRAY).replace(b"\1\1\0\0\x3f\0", b"\1\1\0\0\0\0"), ()),
    "a restart marker between segments": (gray_jpeg(GRAY, between=b"\xff\xd3"), ()),
    "zeros after the end": (gray_jpeg(GRAY, after=bytes(100)), ()),
    "bytes after the end": (gray_jpeg(GRAY, after=bytes(100) + b"x"), (MORE,)),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_harmless_irregularities(case):
    data, notes = HARMLESS[case]
    assert_reads_as(data, pixels_of(GRAY), *notes)


def test_progressive_file_without_its_last_scan_is_read_with_a_note():
    data = saved(photograph(), format="JPEG", progressive=True)
    data = data[: data.rindex(b"\xff\xc4")] + EOI  # the tables of the last scan
    assert_reads_as(data, pillow_pixels(data), UNFINISHED)


@pytest.mark.parametrize("scans", [1, 2, 3, 4])
def test_progressive_file_without_whole_scans_is_damaged(scans):
    """The first scan has the average of each block alone; decoders show what there is."""
    data = saved(photograph(), format="JPEG", progressive=True)
    starts = [match.start() for match in re.finditer(b"\xff\xda", data)]
    with pytest.raises(ImageError, match="scans are missing, and with them a part of all pixels"):
        read_image(data[: data.rindex(b"\xff\xc4", 0, starts[scans])] + EOI)


# ---- Metadata --------------------------------------------------------------------------------------------------------

XMP = b"http://ns.adobe.com/xap/1.0/\0"
PROFILE = bytes(range(256)) * 3


def icc(*parts, count=None):
    """Segments of (number, part of the profile)."""
    count = len(parts) if count is None else count
    return b"".join(segment(APP2, b"ICC_PROFILE\0" + bytes((number, count)) + part) for number, part in parts)


def multi_picture(number, order="<"):
    index = struct.pack(f"{order}4sIHHHII", b"II*\0" if order == "<" else b"MM\0*", 8, 1, 0xB001, 4, 1, number)
    return segment(APP2, b"MPF\0" + index)


DAMAGED_ICC = "damaged ICC profile left out"
METADATA = {
    "jfif": (segment(APP0, JFIF), {}, ()),
    "exif": (segment(APP1, b"Exif\0\0" + exif(1)), {"exif": exif(1)}, ()),
    "xmp": (segment(APP1, XMP + b"<x/>"), {"xmp": b"<x/>"}, ()),
    "icc": (icc((1, PROFILE)), {"icc": PROFILE}, ()),
    "icc in parts": (icc((1, PROFILE), (2, b"abc"), (3, b"d")), {"icc": PROFILE + b"abcd"}, ()),
    "icc in another order": (icc((3, b"d"), (1, PROFILE), (2, b"abc")), {"icc": PROFILE + b"abcd"}, ()),
    "icc with a part missing": (icc((1, PROFILE), (3, b"d"), count=3), {}, (DAMAGED_ICC,)),
    "icc with a part twice": (icc((1, PROFILE), (1, b"d")), {}, (DAMAGED_ICC,)),
    "icc of an unknown number of parts": (icc((1, PROFILE), count=0), {}, (DAMAGED_ICC,)),
    "icc cut off": (segment(APP2, b"ICC_PROFILE\0\1"), {}, (DAMAGED_ICC,)),
    "exif twice": (segment(APP1, b"Exif\0\0" + exif(1)) * 2, {"exif": exif(1)}, ("second EXIF data left out",)),
    "xmp twice": (segment(APP1, XMP + b"<x/>") * 2, {"xmp": b"<x/>"}, ("second XMP data left out",)),
    "extended xmp": (
        segment(APP1, b"http://ns.adobe.com/xmp/extension/\0" + bytes(40)) * 2,
        {},
        ("extended XMP data left out",),
    ),
    "comments": (segment(COM, b"one") + segment(COM, b"two"), {}, ("comments left out",)),
    "photoshop": (segment(APP13, b"Photoshop 3.0\0"), {}, ("Photoshop resources left out",)),
    "others": (
        segment(APP0, b"JFXX\0") + segment(APP2, b"FPXR\0") + segment(0xEC, b"Ducky") + segment(APP14, b"x"),
        {},
        tuple(f"application data APP{number} left out" for number in (0, 2, 12, 14)),
    ),
    "pictures": (multi_picture(3), {}, ("the first of 3 pictures in the file was taken",)),
    "pictures, other order": (multi_picture(2, ">"), {}, ("the first of 2 pictures in the file was taken",)),
    "one picture": (multi_picture(1), {}, ()),
    "pictures without an index": (segment(APP2, b"MPF\0II*\0\xff\xff\xff\xff"), {}, ()),
    "pictures without anything": (segment(APP2, b"MPF\0"), {}, ()),
}


@pytest.mark.parametrize("case", METADATA)
def test_metadata(case):
    segments, metadata, notes = METADATA[case]
    image = read_image(gray_jpeg(GRAY, before=segments))
    np.testing.assert_array_equal(image.pixels, pixels_of(GRAY))
    assert image.metadata == metadata
    assert image.notes == notes


def test_first_picture_of_a_multi_picture_file():
    pictures = [photograph(), photograph().rotate(180)]
    image = read_image(saved(pictures[0], format="MPO", save_all=True, append_images=pictures[1:]))
    np.testing.assert_array_equal(image.pixels, pillow_pixels(saved(pictures[0], format="JPEG")))
    assert image.notes == ("the first of 2 pictures in the file was taken",)


# ---- Anything --------------------------------------------------------------------------------------------------------


OURS = re.compile(
    r"damaged JPEG file: |JPEG |CMYK colours: |\d+ x \d+ pixels exceed|an image of \d+ x \d+ pixels has nothing"
    r"|(lossless JPEG|hierarchical JPEG|arithmetic-coded JPEG|JPEG-LS|\d+-bit JPEG) is not supported"
    r"|not an image \(|empty file|\w+ files are not supported"
)


def test_mutations_end_in_an_error_of_ours_or_an_image():
    files = [
        gray_jpeg(GRAY, segment(DRI, b"\0\3") + icc((1, PROFILE[:40])) + multi_picture(2), restart=3),
        colour_jpeg(COLOURS, before=segment(APP0, JFIF)),
        saved(photograph(31, 23), format="JPEG", progressive=True),
    ]
    reasons = []
    for data in mutations(files, 1500):
        try:
            pixels = read_image(data, ReadOptions(max_pixels=1 << 18)).pixels
        except ImageError as error:
            reasons.append(str(error))
        else:
            assert pixels.dtype == np.uint8
            assert pixels.shape[2:] in ((), (3,))
    assert [reason for reason in reasons if not OURS.match(reason)] == []
    assert 500 < len(reasons) < 1400
