"""PNG files, made chunk by chunk: read exactly, or refused or noted in words of our own."""

from __future__ import annotations

import struct
import tracemalloc
import zlib

import numpy as np
import pytest

from dali_l3.images import stored
from dali_l3.images.reading import ImageError, read_image
from dali_l3.images.stored import ReadOptions
from image_files import PNG_CHANNELS, assert_reads_as, exif, png, png_chunk, png_file, png_header, samples_of

SIZES = ((1, 1), (5, 7), (9, 33))
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}  # by colour type
TYPES = [
    (color, depth, transparent)
    for color, depths in DEPTHS.items()
    for depth in depths
    for transparent in ((False,) if color in (4, 6) else (False, True))  # whether there is a tRNS chunk
]
EXPANDED = "palette expanded to RGB; --palette index keeps the numbers"

GRAY = np.arange(0, 240, 10, dtype=np.uint8).reshape(4, 6)
"""The pixels of the files that follow."""
HEADER = png_header(6, 4)
ROWS = b"".join(b"\0" + row.tobytes() for row in GRAY)


def image_data(data):
    return png_chunk(b"IDAT", data)


PIXELS = image_data(zlib.compress(ROWS))


def damaged(chunk):
    """The chunk with another checksum."""
    return chunk[:-1] + bytes([chunk[-1] ^ 1])


# ---- Pixels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(("color", "depth", "transparent"), TYPES)
def test_png_of_every_type(color, depth, transparent, interlaced, size):
    samples = samples_of((*size, PNG_CHANNELS[color]), depth)
    chunks = b""
    if color == 3:
        palette = samples_of((1 << depth, 3), 8, seed=1)
        alpha = samples_of(max(1, (1 << depth) - 1), 8, seed=2)  # shorter than the palette: the rest is opaque
        chunks = png_chunk(b"PLTE", palette.tobytes()) + (png_chunk(b"tRNS", alpha.tobytes()) if transparent else b"")
        expected = palette[samples[..., 0]]
        if transparent:
            opacity = np.full(1 << depth, 255, np.uint8)
            opacity[: len(alpha)] = alpha
            expected = np.dstack([expected, opacity[samples[..., 0]]])
    else:
        scaled = samples * (255 // ((1 << depth) - 1)) if depth < 8 else samples
        expected = scaled[..., 0] if color == 0 else scaled
        if transparent:
            key = samples[0, 0]
            chunks = png_chunk(b"tRNS", key.astype(">u2").tobytes())
            opaque = np.iinfo(expected.dtype).max
            alpha = np.where((samples == key).all(axis=2), 0, opaque).astype(expected.dtype)
            expected = np.dstack([expected, alpha])
    data = png(samples, depth, color, chunks, interlaced)
    assert_reads_as(data, expected)
    assert read_image(data).notes == ((EXPANDED,) if color == 3 else ())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("depth", DEPTHS[3])
def test_the_numbers_of_palette_entries(depth, interlaced, size):
    numbers = samples_of((*size, 1), depth)
    chunks = png_chunk(b"PLTE", bytes(3)) + png_chunk(b"tRNS", b"\x80")  # with too few entries
    image = read_image(png(numbers, depth, 3, chunks, interlaced), ReadOptions(palette="index"))
    assert image.pixels.dtype == np.uint8
    np.testing.assert_array_equal(image.pixels, numbers[..., 0])
    assert image.notes == ("palette dropped, the numbers of its entries kept",)


def test_the_choice_of_palette_numbers_leaves_other_images_alone():
    samples = samples_of((4, 6, 1), 2)
    image = read_image(png(samples, 2, 0), ReadOptions(palette="index"))
    np.testing.assert_array_equal(image.pixels, samples[..., 0] * 85)
    assert image.notes == ()


def filtered(raw, step):
    """Rows of bytes, (H, W), with the five filters in turn, as the standard defines them."""
    above = np.zeros_like(raw)
    above[1:] = raw[:-1]
    left, corner = np.zeros_like(raw), np.zeros_like(raw)
    left[:, step:], corner[:, step:] = raw[:, :-step], above[:, :-step]
    a, b, c = (part.astype(int) for part in (left, above, corner))
    distances = np.abs(np.stack([b - c, a - c, a + b - 2 * c]))  # of a + b - c from a, b and c
    paeth = np.choose(distances.argmin(axis=0), [a, b, c])
    predictions = np.stack([np.zeros_like(a), a, b, (a + b) // 2, paeth])
    kinds = np.arange(len(raw)) % 5
    rows = (raw - predictions[kinds, np.arange(len(raw))]).astype(np.uint8)
    return np.column_stack([kinds.astype(np.uint8), rows]).tobytes()


@pytest.mark.parametrize(("color", "depth"), [(color, depth) for color in (0, 2, 4, 6) for depth in (8, 16)])
def test_every_filter_at_every_place_of_strips(color, depth, monkeypatch):
    channels = PNG_CHANNELS[color]
    pixels = samples_of((200, 31, channels), depth)
    raw = pixels.astype(f">u{depth // 8}").reshape(200, -1).view(np.uint8)
    data = png_file(png_header(31, 200, depth, color), image_data(zlib.compress(filtered(raw, channels * depth // 8))))
    for rows in (1, 2, 7, 200):
        monkeypatch.setattr(stored, "_STRIP", rows * raw.shape[1])
        assert_reads_as(data, pixels[..., 0] if color == 0 else pixels)


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_image_data_in_pieces(size):
    stream = zlib.compress(ROWS)
    pieces = [image_data(stream[start : start + size]) for start in range(0, len(stream), size)]
    assert_reads_as(png_file(HEADER, image_data(b""), *pieces, image_data(b"")), GRAY)


def test_bits_of_a_transparent_colour_beyond_the_depth_do_not_count():
    samples = samples_of((4, 6, 1), 2)
    image = read_image(png(samples, 2, 0, png_chunk(b"tRNS", b"\xff\xfe")))
    np.testing.assert_array_equal(image.pixels[..., 1], np.where(samples[..., 0] == 2, 0, 255))


def test_a_suggested_palette_is_no_palette():
    samples = samples_of((4, 6, 3), 8)
    image = read_image(png(samples, 8, 2, png_chunk(b"PLTE", bytes(6))))
    np.testing.assert_array_equal(image.pixels, samples)
    assert image.notes == ()


def large_file(color, depth):
    width, height = 1200, 1000
    row = 1 + (width * PNG_CHANNELS[color] * depth + 7) // 8
    chunks = {0: png_chunk(b"tRNS", b"\0\1"), 3: png_chunk(b"PLTE", bytes(6)) + png_chunk(b"tRNS", b"\1\2")}
    data = image_data(zlib.compress(bytes(row * height), 1))
    return png_file(png_header(width, height, depth, color), chunks.get(color, b""), data)


@pytest.mark.parametrize(("color", "depth"), [(0, 1), (0, 16), (2, 8), (3, 1), (3, 8), (6, 16)])
def test_reading_takes_the_memory_of_the_pixels(color, depth):
    data = large_file(color, depth)
    reserved = []
    tracemalloc.start()
    try:
        pixels = read_image(data, ReadOptions(reserve=reserved.append)).pixels
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert reserved == [pixels.nbytes]
    assert peak < pixels.nbytes + 3_000_000


# ---- Refusals --------------------------------------------------------------------------------------------------------


def gray(*chunks):
    return png_file(HEADER, *chunks)


def indexed(*chunks, depth=8):
    return png_file(png_header(6, 4, depth, 3), *chunks)


def header_of(*values):
    return png_file(png_chunk(b"IHDR", struct.pack(">IIBBBBB", *values)), PIXELS)


def with_length(size):
    """The file whose IDAT chunk claims `size` bytes."""
    data = gray(PIXELS)
    at = data.index(b"IDAT") - 4
    return data[:at] + struct.pack(">I", size) + data[at + 4 :]


PALETTE = png_chunk(b"PLTE", bytes(range(12)))
WHOLE = zlib.compress(ROWS)
FRAMES = png_chunk(b"acTL", struct.pack(">II", 3, 0))

REFUSED = {
    "no header": (png_file(PIXELS), "no header"),
    "text first": (png_file(png_chunk(b"tEXt", b"a\0b"), HEADER, PIXELS), "no header"),
    "nothing": (png_file(), "no header"),
    "two headers": (gray(HEADER, PIXELS), "two IHDR chunks"),
    "long header": (png_file(png_chunk(b"IHDR", bytes(14)), PIXELS), "a header of 14 bytes"),
    "depth": (header_of(6, 4, 3, 0, 0, 0, 0), "colour type 0 of 3 bits"),
    "no depth": (header_of(6, 4, 0, 0, 0, 0, 0), "colour type 0 of 0 bits"),
    "palette of 16 bits": (header_of(6, 4, 16, 3, 0, 0, 0), "colour type 3 of 16 bits"),
    "colour type": (header_of(6, 4, 8, 5, 0, 0, 0), "colour type 5 of 8 bits"),
    "compression": (header_of(6, 4, 8, 0, 1, 0, 0), "unknown method of compression, filtering or interlacing"),
    "filtering": (header_of(6, 4, 8, 0, 0, 1, 0), "unknown method of compression, filtering or interlacing"),
    "interlacing": (header_of(6, 4, 8, 0, 0, 0, 2), "unknown method of compression, filtering or interlacing"),
    "width of 2^31": (header_of(1 << 31, 1, 8, 0, 0, 0, 0), "2147483648 x 1 pixels"),
    "height of 2^31": (header_of(1, 1 << 31, 8, 0, 0, 0, 0), "1 x 2147483648 pixels"),
    "no image data": (gray(), "no image data"),
    "empty image data": (gray(image_data(b"")), "no image data"),
    "no palette": (indexed(PIXELS), "no palette"),
    "empty palette": (indexed(png_chunk(b"PLTE", b""), PIXELS), "a palette of 0 bytes"),
    "odd palette": (indexed(png_chunk(b"PLTE", bytes(8)), PIXELS), "a palette of 8 bytes"),
    "long palette": (indexed(png_chunk(b"PLTE", bytes(771)), PIXELS), "a palette of 771 bytes"),
    "short palette": (
        indexed(PALETTE, PIXELS),
        "a palette of 4 entries where the pixels need at least 231: --palette index keeps the numbers",
    ),
    "late palette": (indexed(PIXELS, PALETTE), "wrong order of its chunks (IDAT, PLTE)"),
    "two palettes": (indexed(PALETTE, PALETTE, PIXELS), "two PLTE chunks"),
    "late transparency": (gray(PIXELS, png_chunk(b"tRNS", b"\0\1")), "wrong order of its chunks (IDAT, tRNS)"),
    "early transparency": (
        indexed(png_chunk(b"tRNS", b"\1"), PALETTE, PIXELS),
        "wrong order of its chunks (tRNS, PLTE, IDAT)",
    ),
    "two transparencies": (gray(2 * png_chunk(b"tRNS", b"\0\1"), PIXELS), "two tRNS chunks"),
    "too much alpha": (indexed(PALETTE, png_chunk(b"tRNS", bytes(5)), PIXELS), "5 alpha values for 4 palette entries"),
    "no alpha": (indexed(PALETTE, png_chunk(b"tRNS", b""), PIXELS), "0 alpha values for 4 palette entries"),
    "transparent colour": (gray(png_chunk(b"tRNS", bytes(6)), PIXELS), "a transparent colour of 6 bytes"),
    "separate image data": (
        gray(image_data(WHOLE[:9]), png_chunk(b"tEXt", b"a\0b"), image_data(WHOLE[9:])),
        "its IDAT chunks are not consecutive",
    ),
    "no zlib stream": (gray(image_data(b"\x79" + WHOLE[1:])), "its image data is not a zlib stream"),
    "zlib check": (gray(image_data(WHOLE[:1] + b"\x9d" + WHOLE[2:])), "its image data is not a zlib stream"),
    "zlib dictionary": (gray(image_data(b"\x78\x20" + WHOLE[2:])), "its image data is not a zlib stream"),
    "one byte": (gray(image_data(WHOLE[:1])), "its image data is not a zlib stream"),
    "not inflatable": (gray(image_data(WHOLE[:2] + b"\xff" + WHOLE[3:])), "its image data cannot be inflated"),
    "a row missing": (gray(image_data(zlib.compress(ROWS[:-7]))), "its image data ends early"),
    "a byte missing": (gray(image_data(zlib.compress(ROWS[:-1]))), "its image data ends early"),
    "cut stream": (gray(image_data(WHOLE[:-12])), "its image data ends early"),
    "no checksum": (gray(image_data(WHOLE[:-4])), "its image data ends early"),
    "half a checksum": (gray(image_data(WHOLE[:-2])), "its image data ends early"),
    "a byte more": (gray(image_data(zlib.compress(ROWS + b"\0"))), "more image data than its size needs"),
    "a row more": (gray(image_data(zlib.compress(ROWS + ROWS[:7]))), "more image data than its size needs"),
    "checksum": (gray(image_data(WHOLE[:-1] + b"\0")), "the checksum of its image data is wrong"),
    "filter": (gray(image_data(zlib.compress(ROWS[:7] + b"\5" + ROWS[8:]))), "unknown filter of a row"),
    "no chunk": (gray(b"\0\0\0\0a1bc", PIXELS), "data that is not a chunk"),
    "negative size": (with_length(1 << 31), "data that is not a chunk"),
    "header's checksum": (png_file(damaged(HEADER), PIXELS), "wrong checksum of a chunk (IHDR)"),
    "palette's checksum": (indexed(damaged(PALETTE), PIXELS), "wrong checksum of a chunk (PLTE)"),
    "image data's checksum": (gray(damaged(PIXELS)), "wrong checksum of a chunk (IDAT)"),
    "end's checksum": (damaged(gray(PIXELS)), "wrong checksum of a chunk (IEND)"),
    "unknown chunk's checksum": (gray(damaged(png_chunk(b"ABCD", b"")), PIXELS), "wrong checksum of a chunk (unknown)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_damage_is_refused_by_name(case):
    data, reason = REFUSED[case]
    with pytest.raises(ImageError) as error:
        read_image(data)
    assert str(error.value) == f"damaged PNG file: {reason}"


REFUSED_OTHERWISE = {
    "end missing": (gray(PIXELS)[:-12], "truncated PNG file"),
    "chunk beyond the end": (with_length(1000), "truncated PNG file"),
    "largest chunk": (with_length((1 << 31) - 1), "truncated PNG file"),
    "signature alone": (gray(PIXELS)[:8], "truncated PNG file"),
    "critical chunk": (gray(png_chunk(b"ABCD", b""), PIXELS), "PNG with an unknown critical chunk (ABCD)"),
    "Apple's": (
        png_file(png_chunk(b"CgBI", bytes(4)), HEADER, PIXELS),
        "Apple's own variant of PNG (CgBI): convert it to standard PNG first",
    ),
    "animation": (gray(FRAMES, PIXELS), "animated PNG (3 frames)"),
    "no width": (header_of(0, 4, 8, 0, 0, 0, 0), "an image of 0 x 4 pixels has nothing to convert"),
    "no height": (header_of(6, 0, 8, 0, 0, 0, 0), "an image of 6 x 0 pixels has nothing to convert"),
    "too many pixels": (
        header_of((1 << 31) - 1, (1 << 31) - 1, 8, 0, 0, 0, 0),
        "2147483647 x 2147483647 pixels exceed the limit of 200000000 pixels",
    ),
    "too wide": (header_of(1_000_001, 1, 8, 0, 0, 0, 0), "PNG of more than 1000000 pixels in a row: cut it first"),
    "text mode": (
        gray(PIXELS).replace(b"\r\n", b"\n"),
        "is a PNG file whose first bytes are damaged (by a transfer as text?)",
    ),
}


@pytest.mark.parametrize("case", REFUSED_OTHERWISE)
def test_refused_by_name(case):
    data, reason = REFUSED_OTHERWISE[case]
    with pytest.raises(ImageError) as error:
        read_image(data)
    assert str(error.value) == reason


def test_truncation_is_found_at_every_byte():
    data = gray(png_chunk(b"tEXt", b"a\0b"), PIXELS)
    assert_reads_as(data, GRAY)
    for size in range(len(data)):
        with pytest.raises(ImageError, match="truncated PNG file" if size >= 8 else "."):
            read_image(data[:size])


# ---- Notes -----------------------------------------------------------------------------------------------------------

TEXT = png_chunk(b"tEXt", b"Comment\0of the user")
PROFILE = bytes(range(256)) * 9
ICC = png_chunk(b"iCCP", b"a name\0\0" + zlib.compress(PROFILE))
XMP = b"<x:xmpmeta tiff:Orientation='%d'/>"
GAMMA = png_chunk(b"gAMA", struct.pack(">I", 100000))
WIDE_GAMUT = png_chunk(b"cHRM", struct.pack(">8I", 31270, 32900, 64000, 33000, 21000, 71000, 15000, 6000))
SRGB_GAMMA = png_chunk(b"gAMA", struct.pack(">I", 45455))
SRGB_COLOURS = png_chunk(b"cHRM", struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000))


def compressed_text(keyword, text, kind=b"zTXt"):
    return png_chunk(kind, keyword + (b"\0\1\0\0\0" if kind == b"iTXt" else b"\0\0") + zlib.compress(text))


def raw_profile(name, data, size=None):
    """As ImageMagick writes it: 36 bytes a line."""
    digits = data.hex().encode()
    lines = b"\n".join(digits[start : start + 72] for start in range(0, len(digits), 72))
    return b"\n%s\n%8d\n%s\n" % (name, len(data) if size is None else size, lines)


def raw_chunk(name, data):
    return compressed_text(b"Raw profile type " + name, raw_profile(name, data))


NOTED = {
    "nothing": ((), ()),
    "hints": (
        (
            png_chunk(b"pHYs", bytes(9)),
            png_chunk(b"tIME", bytes(7)),
            png_chunk(b"sBIT", b"\7"),
            png_chunk(b"bKGD", b"\0\1"),
            png_chunk(b"sRGB", b"\0"),
        ),
        (),
    ),
    "texts": (
        (TEXT, TEXT, compressed_text(b"Title", b"x"), compressed_text(b"Author", b"y", b"iTXt")),
        ("texts left out",),
    ),
    "text without keyword": ((png_chunk(b"tEXt", b"x" * 200),), ("texts left out",)),
    "gamma": ((GAMMA,), ("gamma (gAMA) left out",)),
    "chromaticities": ((WIDE_GAMUT,), ("chromaticities (cHRM) left out",)),
    "values of sRGB": ((SRGB_GAMMA, SRGB_COLOURS, png_chunk(b"cICP", b"\1\x0d\0\1")), ()),
    "superseded by sRGB": ((png_chunk(b"sRGB", b"\0"), GAMMA, WIDE_GAMUT), ()),
    "superseded by a profile": ((ICC, GAMMA, WIDE_GAMUT), ()),
    "colour space": ((png_chunk(b"cICP", b"\x09\x10\0\1"), ICC), ("colour space (cICP) left out",)),
    "display": (
        (png_chunk(b"mDCV", bytes(24)), png_chunk(b"cLLI", bytes(8))),
        ("mastering display (mDCV) left out", "light levels (cLLI) left out"),
    ),
    "scales": (
        (png_chunk(b"pCAL", bytes(20)), png_chunk(b"sCAL", b"\1" + b"1\0001"), png_chunk(b"sTER", b"\1")),
        ("calibration of samples (pCAL) left out", "physical scale (sCAL) left out", "stereo layout (sTER) left out"),
    ),
    "unknown": ((png_chunk(b"orNT", b"\1"), png_chunk(b"vpAg", bytes(9))), ("chunks of unknown kinds left out",)),
    "raw profiles": (
        (raw_chunk(b"iptc", b"x"), raw_chunk(b"8bim", b"x")),
        ("IPTC data left out", "Photoshop resources left out"),
    ),
    "one frame": ((png_chunk(b"acTL", struct.pack(">II", 1, 0)), png_chunk(b"fcTL", bytes(26))), ()),
    "damaged": (
        (damaged(TEXT), damaged(TEXT), damaged(GAMMA), damaged(ICC), damaged(png_chunk(b"eXIf", exif(6)))),
        tuple(f"damaged {kind} chunk ignored" for kind in ("tEXt", "gAMA", "iCCP", "eXIf")),
    ),
    "damaged transparency": ((damaged(png_chunk(b"tRNS", b"\0\x0a")),), ("damaged tRNS chunk ignored",)),
    "damaged animation": ((damaged(FRAMES),), ("damaged acTL chunk ignored",)),
    "damaged and unknown": (
        (damaged(png_chunk(b"abCD", b"x")), damaged(png_chunk(b"efGH", b"x"))),
        ("damaged unknown chunk ignored",),
    ),
    "profile": ((png_chunk(b"iCCP", b"a name\0\0junk"),), ("damaged ICC profile left out",)),
    "profile cut off": (
        (png_chunk(b"iCCP", b"a name\0\0" + zlib.compress(PROFILE)[:-9]),),
        ("damaged ICC profile left out",),
    ),
    "profile's compression": (
        (png_chunk(b"iCCP", b"a name\0\1" + zlib.compress(PROFILE)),),
        ("damaged ICC profile left out",),
    ),
    "profile's name": ((png_chunk(b"iCCP", b"a name"),), ("damaged ICC profile left out",)),
    "raw profile's digits": (
        (compressed_text(b"Raw profile type exif", b"\nexif\n 2\n12zz\n"),),
        ("damaged EXIF data left out",),
    ),
    "raw profile's size": (
        (compressed_text(b"Raw profile type exif", raw_profile(b"exif", exif(6), 999)),),
        ("damaged EXIF data left out",),
    ),
    "raw profile's header": (
        (compressed_text(b"Raw profile type xmp", b"no digits"),),
        ("damaged XMP data left out",),
    ),
    "XMP": ((png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0en"),), ("damaged XMP data left out",)),
}


@pytest.mark.parametrize("case", NOTED)
def test_what_is_left_out_is_noted_once(case):
    chunks, notes = NOTED[case]
    image = read_image(gray(*chunks, PIXELS))
    np.testing.assert_array_equal(image.pixels, GRAY)
    assert image.notes == notes


def test_bytes_behind_are_noted():
    assert read_image(gray(PIXELS) + b"x").notes == ("bytes after the end of the PNG file left out",)
    image = read_image(gray(image_data(WHOLE + b"x")))
    np.testing.assert_array_equal(image.pixels, GRAY)
    assert image.notes == ("bytes after the image data left out",)


def test_a_transparent_colour_beside_alpha_is_ignored():
    samples = samples_of((4, 6, 4), 8)
    image = read_image(png(samples, 8, 6, png_chunk(b"tRNS", bytes(6))))
    np.testing.assert_array_equal(image.pixels, samples)
    assert image.notes == ("tRNS chunk beside an alpha channel ignored",)


def test_no_flipped_bit_goes_unnoticed():
    data = gray(png_chunk(b"tRNS", b"\0\x0a"), ICC, TEXT, PIXELS, png_chunk(b"eXIf", exif(6)))
    sound = read_image(data)
    for position in range(len(data)):
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        try:
            image = read_image(bytes(flipped))
        except ImageError:
            continue
        assert any(note.startswith("damaged") for note in image.notes), position
        assert not set(image.metadata.items()) - set(sound.metadata.items())


# ---- Metadata --------------------------------------------------------------------------------------------------------

PACKET = XMP % 1

METADATA = {
    "profile": ((ICC,), {"icc": PROFILE}),
    "exif": ((png_chunk(b"eXIf", exif(1)),), {"exif": exif(1)}),
    "exif with a prefix": ((png_chunk(b"eXIf", b"Exif\0\0" + exif(1)),), {"exif": exif(1)}),
    "xmp": ((png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + PACKET),), {"xmp": PACKET}),
    "xmp of a language": ((png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0en\0title\0" + PACKET),), {"xmp": PACKET}),
    "xmp compressed": ((compressed_text(b"XML:com.adobe.xmp", PACKET, b"iTXt"),), {"xmp": PACKET}),
    "raw xmp": ((raw_chunk(b"xmp", PACKET),), {"xmp": PACKET}),
    "raw xmp as text": (
        (png_chunk(b"tEXt", b"Raw profile type xmp\0" + raw_profile(b"xmp", PACKET)),),
        {"xmp": PACKET},
    ),
    "raw xmp as iTXt": (
        (compressed_text(b"Raw profile type xmp", raw_profile(b"xmp", PACKET), b"iTXt"),),
        {"xmp": PACKET},
    ),
    "raw APP1 with xmp": ((raw_chunk(b"APP1", b"http://ns.adobe.com/xap/1.0/\0" + PACKET),), {"xmp": PACKET}),
    "raw APP1": ((raw_chunk(b"APP1", b"Exif\0\0" + exif(1)),), {"exif": exif(1)}),
    "raw exif": ((raw_chunk(b"exif", b"Exif\0\0" + exif(1)),), {"exif": exif(1)}),
    "raw icc": ((raw_chunk(b"icc", PROFILE),), {"icc": PROFILE}),
    "raw icm": ((raw_chunk(b"icm", PROFILE),), {"icc": PROFILE}),
    "the same twice": (
        (raw_chunk(b"exif", b"Exif\0\0" + exif(1)), png_chunk(b"eXIf", exif(1)), raw_chunk(b"icc", PROFILE), ICC),
        {"icc": PROFILE, "exif": exif(1)},
    ),
}


@pytest.mark.parametrize("case", METADATA)
def test_metadata(case):
    chunks, metadata = METADATA[case]
    for data in (gray(*chunks, PIXELS), gray(PIXELS, *chunks)):
        image = read_image(data)
        assert image.metadata == metadata
        assert image.notes == ()


@pytest.mark.parametrize(
    ("chunks", "metadata", "note"),
    [
        (
            (raw_chunk(b"exif", exif(1, ">")), png_chunk(b"eXIf", exif(1))),
            {"exif": exif(1)},
            "second EXIF data left out",
        ),
        ((raw_chunk(b"icc", b"x"), ICC), {"icc": PROFILE}, "second ICC profile left out"),
        ((ICC, png_chunk(b"iCCP", b"b\0\0" + zlib.compress(b"y"))), {"icc": PROFILE}, "second ICC profile left out"),
        (
            (raw_chunk(b"xmp", b"x"), png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + PACKET)),
            {"xmp": PACKET},
            "second XMP data left out",
        ),
    ],
)
def test_of_two_blocks_of_metadata_the_standards_counts(chunks, metadata, note):
    image = read_image(gray(*chunks, PIXELS))
    assert image.metadata == metadata
    assert image.notes == (note,)


@pytest.mark.parametrize("name", [b"exif", b"APP1"])
def test_orientation_in_a_raw_profile_is_applied(name):
    image = read_image(gray(raw_chunk(name, b"Exif\0\0" + exif(6)), PIXELS))
    np.testing.assert_array_equal(image.pixels, np.rot90(GRAY, -1))
    assert image.metadata == {"exif": exif(1)}
    assert image.notes == ("EXIF orientation 6 applied",)


def test_raw_profiles_of_space_alone_take_no_time():
    """What looks for their size must not try each space for the start: a megabyte of them would take hours."""
    for text in (b" " * (1 << 20), b"exif" + b"\n" * (1 << 20), b"x" * (1 << 20)):
        image = read_image(gray(png_chunk(b"tEXt", b"Raw profile type exif\0" + text), PIXELS))
        assert image.notes == ("damaged EXIF data left out",)


BOMB = zlib.compress(bytes(1 << 26), 9)
TOO_LARGE = {
    "ICC profile": png_chunk(b"iCCP", b"a name\0\0" + BOMB),
    "EXIF data": png_chunk(b"zTXt", b"Raw profile type exif\0\0" + BOMB),
    "XMP data": png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + BOMB),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_metadata_is_not_inflated_beyond_the_formats_limit(name):
    data = gray(TOO_LARGE[name], PIXELS)
    tracemalloc.start()
    try:
        image = read_image(data)
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()
    assert image.metadata == {}
    assert image.notes == (f"{name} left out: it exceeds the format's limit",)


def test_texts_that_are_left_out_are_not_inflated():
    data = gray(*[png_chunk(b"zTXt", b"Comment\0\0" + BOMB)] * 20, PIXELS)
    tracemalloc.start()
    try:
        assert read_image(data).notes == ("texts left out",)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


# ---- Anything --------------------------------------------------------------------------------------------------------


def with_right_checksums(data):
    """The file with the checksums that its chunks should have, as far as there are chunks."""
    parts, position = [data[:8]], 8
    while position + 12 <= len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        if position + 12 + size > len(data):
            break
        parts.append(png_chunk(data[position + 4 : position + 8], data[position + 8 : position + 8 + size]))
        position += 12 + size
    return b"".join(parts) + data[position:]


@pytest.mark.parametrize(("color", "depth"), [(0, 1), (2, 8), (3, 4), (6, 16)])
def test_mutations_give_an_error_of_ours_or_pixels(color, depth):
    random = np.random.default_rng(depth)
    chunks = {0: png_chunk(b"tRNS", b"\0\1"), 3: png_chunk(b"PLTE", bytes(48)) + png_chunk(b"tRNS", b"\1\2")}
    samples = samples_of((7, 9, PNG_CHANNELS[color]), depth)
    files = [
        png(samples, depth, color, chunks.get(color, b"") + ICC + raw_chunk(b"exif", exif(6)), interlaced)
        for interlaced in (False, True)
    ]
    reasons = set()
    for number in range(600):
        data = bytearray(files[number % 2])
        for _ in range(random.integers(1, 4)):
            start = int(random.integers(8, len(data)))
            end = start + int(random.integers(0, 9))
            data[start:end] = [random.bytes(end - start), b"", data[start:end] * 2, b"\xff"][random.integers(4)]
        data = bytes(data) if number % 3 else with_right_checksums(bytes(data))
        try:
            assert read_image(data, ReadOptions(max_pixels=100_000)).pixels.dtype in (np.uint8, np.uint16)
            reasons.add("")
        except ImageError as error:
            reasons.add(str(error))
    assert {"", "truncated PNG file"} < reasons
    assert "damaged or unusual PNG file" not in reasons, "something unforeseen"
