"""WebP files: pixels as libwebp has them; refusals, notes and damage."""

from __future__ import annotations

import io
import re
import struct

import numpy as np
import pytest
from PIL import Image

from dali_l3.images.reading import ImageError, read_image
from dali_l3.images.stored import ReadOptions
from image_files import exif, noise, saved
from mutations import mutations

WIDTH, HEIGHT = 30, 21
RGB = noise((HEIGHT, WIDTH, 3))
RGBA = noise((HEIGHT, WIDTH, 4))
RGBA[:, :10, 3] = 0
ANIMATION, XMP, EXIF, ALPHA, ICC = 0x02, 0x04, 0x08, 0x10, 0x20  # flags


def chunk(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def riff(*chunks: bytes) -> bytes:
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def extended(flags: int, width: int = WIDTH, height: int = HEIGHT) -> bytes:
    size = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    return chunk(b"VP8X", bytes((flags, 0, 0, 0)) + size)


def encoded(pixels, **options) -> dict[bytes, bytes]:
    """The chunks of a file that Pillow writes: name and body."""
    data, position, chunks = saved(Image.fromarray(pixels), format="WEBP", exact=True, **options), 12, {}
    while position < len(data):
        size = int.from_bytes(data[position + 4 : position + 8], "little")
        chunks[data[position : position + 4]] = data[position + 8 : position + 8 + size]
        position += 8 + size + size % 2
    return chunks


LOSSLESS = chunk(b"VP8L", encoded(RGB, lossless=True)[b"VP8L"])
LOSSLESS_ALPHA = chunk(b"VP8L", encoded(RGBA, lossless=True)[b"VP8L"])
LOSSY = chunk(b"VP8 ", encoded(RGB)[b"VP8 "])
LOSSY_ALPHA = encoded(RGBA)
COLOURS, OPACITY = chunk(b"VP8 ", LOSSY_ALPHA[b"VP8 "]), chunk(b"ALPH", LOSSY_ALPHA[b"ALPH"])


def frame(content: bytes, left=0, top=0, width=WIDTH, height=HEIGHT) -> bytes:
    place = (left // 2, top // 2, width - 1, height - 1, 100)
    return chunk(b"ANMF", b"".join(struct.pack("<I", value)[:3] for value in place) + b"\0" + content)


def pillow_pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)))


# ---- Pixels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", [riff(LOSSLESS), riff(extended(0), LOSSLESS), riff(extended(ALPHA), LOSSLESS)])
def test_lossless(file):
    image = read_image(file)
    np.testing.assert_array_equal(image.pixels, RGB)
    assert image.notes == ()


@pytest.mark.parametrize("file", [riff(LOSSLESS_ALPHA), riff(extended(ALPHA), LOSSLESS_ALPHA)])
def test_lossless_keeps_colours_under_transparent_pixels(file):
    image = read_image(file)
    np.testing.assert_array_equal(image.pixels, RGBA)
    assert image.notes == ()


@pytest.mark.parametrize(
    "file",
    [riff(LOSSY), riff(extended(0), LOSSY), riff(extended(ALPHA), OPACITY, COLOURS)],
    ids=["", "extended", "alpha"],
)
def test_lossy_as_libwebp_decodes_it(file):
    image = read_image(file)
    np.testing.assert_array_equal(image.pixels, pillow_pixels(file))
    assert image.notes == ()


def test_alpha_without_compression():
    opacity = noise((HEIGHT, WIDTH))
    pixels = read_image(riff(extended(ALPHA), chunk(b"ALPH", b"\0" + opacity.tobytes()), LOSSY)).pixels
    np.testing.assert_array_equal(pixels[:, :, 3], opacity)
    np.testing.assert_array_equal(pixels[:, :, :3], pillow_pixels(riff(LOSSY)))


def test_an_animation_of_one_frame_is_an_image():
    image = read_image(riff(extended(ANIMATION), chunk(b"ANIM", bytes(6)), frame(LOSSLESS)))
    np.testing.assert_array_equal(image.pixels, RGB)
    assert image.notes == ()


# ---- Metadata and notes ----------------------------------------------------------------------------------------------

BLOCKS = {"icc": chunk(b"ICCP", b"profile"), "exif": chunk(b"EXIF", exif(1)), "xmp": chunk(b"XMP ", b"<x/>")}
UNANNOUNCED = " left out, which the header does not announce"
MORE = "bytes after the end of the WebP file left out"
METADATA = {
    "all": (
        riff(extended(ICC | EXIF | XMP), BLOCKS["icc"], LOSSLESS, BLOCKS["exif"], BLOCKS["xmp"]),
        {"icc": b"profile", "exif": exif(1), "xmp": b"<x/>"},
        (),
    ),
    "exif with a prefix": (
        riff(extended(EXIF), LOSSLESS, chunk(b"EXIF", b"Exif\0\0" + exif(1))),
        {"exif": exif(1)},
        (),
    ),
    "not announced": (
        riff(extended(0), BLOCKS["icc"], LOSSLESS, BLOCKS["exif"], BLOCKS["xmp"]),
        {},
        tuple(f"{what}{UNANNOUNCED}" for what in ("ICC profile", "EXIF data", "XMP data")),
    ),
    "not extended": (riff(LOSSLESS, BLOCKS["exif"]), {}, (f"EXIF data{UNANNOUNCED}",)),
    "twice": (
        riff(extended(EXIF), LOSSLESS, BLOCKS["exif"], chunk(b"EXIF", exif(6))),
        {"exif": exif(1)},
        ("second EXIF data left out",),
    ),
    "unknown": (
        riff(extended(0), chunk(b"ABCD", b"x"), LOSSLESS, chunk(b"EFGH", b"")),
        {},
        ("chunks of unknown kinds left out",),
    ),
    "alpha not announced": (
        riff(extended(0), chunk(b"ALPH", b"\0" + RGB[:, :, 0].tobytes()), LOSSY),
        {},
        (f"alpha channel{UNANNOUNCED}",),
    ),
    "more": (riff(LOSSLESS) + b"more", {}, (MORE,)),
    "zeros": (riff(LOSSLESS) + bytes(9), {}, ()),
}


@pytest.mark.parametrize("case", METADATA)
def test_metadata(case):
    file, metadata, notes = METADATA[case]
    image = read_image(file)
    assert image.metadata == metadata
    assert image.notes == notes
    np.testing.assert_array_equal(image.pixels, pillow_pixels(file)[:, :, :3])


# ---- Refusals --------------------------------------------------------------------------------------------------------


def with_size(width, height):
    bits = (width - 1) | (height - 1) << 14
    return chunk(b"VP8L", b"\x2f" + struct.pack("<I", bits) + LOSSLESS[13:])


def with_riff_size(file, change):
    return file[:4] + struct.pack("<I", len(file) - 8 + change) + file[8:]


EARLY = "damaged WebP file: it ends too early"
PIXELS = "damaged WebP file: errors in its pixel data"
HEADER = "damaged WebP file: the header of its picture is invalid"
REFUSED = {
    "animated": (
        riff(extended(ANIMATION), chunk(b"ANIM", bytes(6)), frame(LOSSLESS), frame(LOSSY)),
        r"animated WebP \(2 frames\)",
    ),
    "a small frame": (
        riff(extended(ANIMATION, WIDTH + 4, HEIGHT), chunk(b"ANIM", bytes(6)), frame(LOSSLESS, left=4)),
        r"animated WebP \(1 frame, which does not fill its canvas\)",
    ),
    "no frame": (riff(extended(ANIMATION), chunk(b"ANIM", bytes(6))), "damaged WebP file: it holds no image"),
    "no picture": (riff(extended(0)), "damaged WebP file: it holds no image"),
    "nothing": (riff(), "damaged WebP file: it holds no image"),
    "short header": (riff(chunk(b"VP8X", bytes(9)), LOSSLESS), "damaged WebP file: its header is too short"),
    "riff too long": (with_riff_size(riff(LOSSLESS), 2), EARLY),
    "riff too short": (with_riff_size(riff(LOSSLESS), -2), "damaged WebP file: a chunk goes beyond its end"),
    "chunk too long": (riff(LOSSY[:4] + struct.pack("<I", len(LOSSY)) + LOSSY[8:]), "a chunk goes beyond its end"),
    "larger canvas": (
        riff(extended(0, 31, 40), LOSSY),
        "damaged WebP file: a picture of 30 x 21 pixels on a canvas of 31 x 40",
    ),
    "larger picture": (
        riff(extended(0), with_size(9000, 8000)),
        "damaged WebP file: a picture of 9000 x 8000 pixels on a canvas of 30 x 21",
    ),
    "lossless cut": (riff(chunk(b"VP8L", LOSSLESS[8:-40])), PIXELS),
    "lossy cut": (riff(chunk(b"VP8 ", LOSSY[8:-40])), PIXELS),
    "alpha cut": (riff(extended(ALPHA), chunk(b"ALPH", LOSSY_ALPHA[b"ALPH"][:9]), COLOURS), PIXELS),
    "alpha empty": (riff(extended(ALPHA), chunk(b"ALPH", b""), COLOURS), PIXELS),
    "lossless signature": (riff(chunk(b"VP8L", b"\0" + LOSSLESS[9:])), HEADER),
    "lossless header": (riff(chunk(b"VP8L", LOSSLESS[8:12])), HEADER),
    "lossy signature": (riff(chunk(b"VP8 ", LOSSY[8:11] + b"abc" + LOSSY[14:])), HEADER),
    "lossy header": (riff(chunk(b"VP8 ", LOSSY[8:16])), HEADER),
    "a lossy picture that needs another": (riff(chunk(b"VP8 ", bytes((LOSSY[8] | 1,)) + LOSSY[9:])), PIXELS),
    "no width": (riff(chunk(b"VP8 ", LOSSY[8:14] + b"\0\0" + LOSSY[16:])), "an image of 0 x 21 pixels has nothing"),
    "many chunks": (riff(extended(0), chunk(b"ABCD", b"") * 10_000), "WebP of more than 10000 chunks is not supported"),
    "pictures of both kinds": (riff(extended(0), LOSSY, LOSSLESS), PIXELS),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case):
    data, message = REFUSED[case]
    with pytest.raises(ImageError, match=message):
        read_image(data)


@pytest.mark.parametrize("file", [riff(LOSSY), riff(LOSSLESS), riff(extended(ALPHA), OPACITY, COLOURS)])
def test_truncated_files_are_refused(file):
    for size in range(12, len(file)):
        with pytest.raises(ImageError, match=f"^{EARLY}$"):
            read_image(file[:size])


def test_pixels_are_limited_before_they_are_decoded():
    for file in (riff(with_size(9000, 8000)), riff(extended(0, 9000, 8000), with_size(9000, 8000))):
        with pytest.raises(ImageError, match="9000 x 8000 pixels exceed the limit of 71999999 pixels"):
            read_image(file, ReadOptions(max_pixels=71_999_999))


@pytest.mark.parametrize(
    ("file", "bytes_per_pixel"), [(riff(LOSSY), 3), (riff(extended(ALPHA), OPACITY, COLOURS), 5), (riff(LOSSLESS), 8)]
)
def test_memory_is_reserved_for_what_the_decoder_keeps_too(file, bytes_per_pixel):
    reserved = []
    read_image(file, ReadOptions(reserve=reserved.append))
    assert reserved == [WIDTH * HEIGHT * bytes_per_pixel]


OURS = re.compile(
    r"damaged WebP file: |animated WebP \(|\d+ x \d+ pixels exceed|an image of \d+ x \d+ pixels has nothing"
    r"|not an image \(|empty file|\w+ files are not supported"
)


def test_mutations_end_in_an_error_of_ours_or_an_image():
    files = [
        riff(LOSSY),
        riff(extended(ALPHA | ICC | EXIF), BLOCKS["icc"], OPACITY, COLOURS, BLOCKS["exif"]),
        riff(LOSSLESS_ALPHA),
        riff(extended(ANIMATION), chunk(b"ANIM", bytes(6)), frame(LOSSLESS)),
    ]
    reasons = []
    for data in mutations(files, 1500):
        try:
            pixels = read_image(data, ReadOptions(max_pixels=1 << 18)).pixels
        except ImageError as error:
            reasons.append(str(error))
        else:
            assert pixels.dtype == np.uint8
            assert pixels.shape[2:] in ((3,), (4,))
    assert [reason for reason in reasons if not OURS.match(reason)] == []
    assert 500 < len(reasons) < 1400
