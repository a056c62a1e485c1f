"""Image files are read exactly, or refused by name."""

from __future__ import annotations

import io
import struct
import sys
import tracemalloc
import zlib

import numpy as np
import pytest
import tifffile
from PIL import Image, ImageOps

import dali_l3
from dali_l3.images import reading
from dali_l3.images.exif import neutralise_orientation
from dali_l3.images.reading import ImageError, read_image
from dali_l3.images.signatures import sniff
from dali_l3.images.stored import DamagedImageError, ReadOptions
from image_files import assert_reads_as, exif, png, png_chunk, saved, tiff
from image_files import samples_of as noise

# ---- Orientation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_applied_and_reported(orientation, order):
    pixels = noise((6, 9, 3))
    block = exif(orientation, order)
    files = {
        "JPEG": saved(Image.fromarray(pixels), format="JPEG", exif=b"Exif\0\0" + block),
        "PNG": png(pixels, 8, 2, png_chunk(b"eXIf", block)),
        "WebP": saved(Image.fromarray(pixels), format="WEBP", lossless=True, exif=block),
    }
    for name, data in files.items():
        image = read_image(data)
        upright = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        np.testing.assert_array_equal(image.pixels, np.asarray(upright), err_msg=name)
        assert image.notes == ((f"EXIF orientation {orientation} applied",) if orientation > 1 else ()), name
        assert image.metadata == {"exif": exif(1, order)}, name


@pytest.mark.parametrize(
    "block", [b"", b"junk", exif(9), exif(0), exif(6)[:20], b"II*\0\xff\xff\xff\xff", exif(6)[:8] + b"\xff\xff"]
)
def test_unusable_orientation_counts_as_upright(block):
    assert neutralise_orientation(block)[0] == 1


@pytest.mark.parametrize(
    "packet", ["<x tiff:Orientation='%d'/>", '<x tiff:Orientation = "%d"/>', "<tiff:Orientation>%d</>"]
)
def test_orientation_in_xmp_data_follows_exif(packet):
    """If the pixels are turned, it becomes upright; by itself it turns nothing."""
    pixels = noise((6, 9, 3))
    for by_exif, by_xmp, notes in (
        (6, 6, ("EXIF orientation 6 applied",)),
        (6, 3, ("EXIF orientation 6 applied", "orientation 3 in XMP data ignored")),
        (6, 1, ("EXIF orientation 6 applied",)),
        (1, 6, ("orientation 6 in XMP data ignored",)),
        (1, 1, ()),
        (1, 9, ()),
    ):
        xmp = (packet % by_xmp).encode()
        chunks = png_chunk(b"eXIf", exif(by_exif)) + png_chunk(b"iTXt", b"XML:com.adobe.xmp" + bytes(5) + xmp)
        image = read_image(png(pixels, 8, 2, chunks))
        np.testing.assert_array_equal(image.pixels, np.rot90(pixels, -1) if by_exif == 6 else pixels)
        assert image.notes == notes
        assert image.metadata["xmp"] == ((packet % 1).encode() if by_exif == 6 else xmp)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the caller's stack holds the arguments of its calls")
@pytest.mark.parametrize("name", ["PNG", "JPEG", "WebP", "BMP", "TIFF", "PNM", "NPY"])
def test_the_files_bytes_are_gone_before_the_pixels_are_turned(name, monkeypatch):
    events = []

    class Bytes(bytes):
        def __del__(self):
            events.append("freed")

    monkeypatch.setattr(reading, "apply_orientation", lambda pixels, _: events.append("turned") or pixels)
    read_image(Bytes(_damageable()[name]))
    assert events == ["freed", "turned"]


def test_metadata_beyond_the_formats_limit_is_left_out():
    text = bytes((1 << 24) - 129)
    chunk = png_chunk(b"iTXt", b"XML:com.adobe.xmp" + bytes(5) + text)
    image = read_image(png(noise((4, 6, 3)), 8, 2, chunk))
    assert image.metadata == {"xmp": text}
    assert dali_l3.read_metadata(dali_l3.encode(image.pixels, metadata=image.metadata)) == image.metadata
    image = read_image(png(noise((4, 6, 3)), 8, 2, chunk + png_chunk(b"iCCP", b"a\0\0" + zlib.compress(b"profile"))))
    assert image.metadata == {"icc": b"profile"}
    assert image.notes == ("xmp metadata of 16777087 bytes left out: it exceeds the format's limit",)


# ---- Refusals --------------------------------------------------------------------------------------------------------


def frames(name):
    images = [Image.fromarray(np.full((8, 9, 3), 90 * i, np.uint8)) for i in range(3)]
    return saved(images[0], format=name, save_all=True, append_images=images[1:])


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def tiff_of(array, **options):
    file = io.BytesIO()
    tifffile.imwrite(file, array, **options)
    return file.getvalue()


REFUSED = {
    "cmyk tiff": (lambda: tiff(noise((4, 5, 4)), photometric=5), "CMYK"),
    "lab tiff": (lambda: tiff(noise((4, 5, 3)), photometric=8), "CIELAB"),
    "gif": (lambda: frames("GIF"), "GIF files are not supported: convert to PNG or TIFF first"),
    "thumbnail first": (lambda: tiff(noise((4, 5, 1)), extra={254: (1,)}), "camera's raw"),
    "signed tiff": (lambda: tiff_of(np.zeros((4, 5), np.int16)), "int16"),
    "32-bit tiff": (lambda: tiff_of(np.zeros((4, 5), np.uint32)), "32 bits"),
    "5-channel tiff": (lambda: tiff(noise((4, 5, 5)), photometric=1, extra={338: (0,) * 4}), "5 channels"),
}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty file"),
        (bytes(5), "starts with zeros only: was it copied or downloaded completely?"),
        (bytes(5000), "starts with zeros only: was it copied or downloaded completely?"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
            "is a Git LFS pointer, not an image: run 'git lfs pull'",
        ),
        (b"/annex/objects/SHA256E-s12--ab.png\n", "is a git-annex pointer, not an image: run 'git annex get'"),
        (b"<!DOCTYPE html>\n<html>", "is an HTML page, not an image"),
        (b"\xef\xbb\xbf\r\n<HTML lang='en'>", "is an HTML page, not an image"),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "is an XML document, not an image"),
        (b"<?xml version='1.0'?>\n<!-- x -->\n<svg>", "is an SVG drawing: render it to PNG first"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "is an SVG drawing: render it to PNG first"),
        (b"%PDF-1.7\n", "is a PDF document: extract its images first"),
        (b"\x1f\x8b\x08\0", "is a gzip archive: unpack it first"),
        (b"PK\3\4\x14\0", "is a ZIP archive: unpack it first"),
        (b"no image at all", "not an image (unknown signature)"),
        (bytes(2000) + b"x", "starts with zeros only: was it copied or downloaded completely?"),
        (bytes(500) + b"x", "not an image (unknown signature)"),
    ],
)
def test_what_is_found_under_the_names_of_images(data, reason):
    with pytest.raises(ImageError) as error:
        read_image(data)
    assert str(error.value) == reason


def test_what_libraries_say_is_not_shown_but_kept(monkeypatch):
    def read(data, options):
        raise IndexError("string index out of range")

    monkeypatch.setitem(reading._READERS, "NPY", read)
    with pytest.raises(ImageError) as error:
        read_image(npy(np.zeros((2, 3), np.uint8)))
    assert str(error.value) == "damaged or unusual NPY file"
    assert isinstance(error.value.__cause__, IndexError)


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case):
    make, message = REFUSED[case]
    with pytest.raises(ImageError, match=message):
        read_image(make())


def _strips(pixels, **options):
    return tiff_of(pixels, photometric="rgb", rowsperstrip=8, **options)


def _tiles(pixels, **options):
    return tiff_of(pixels, photometric="rgb", tile=(16, 16), **options)


def _edit_tag(data, codes, edit):
    """The file with the values of a tag changed in place."""
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        tag = next(file.pages[0].tags[code] for code in codes if code in file.pages[0].tags)
        values = edit([*tag.value] if isinstance(tag.value, tuple) else [tag.value], len(data))
        kind = {3: "H", 4: "I", 16: "Q"}[tag.dtype]
        body = struct.pack("<" + kind * len(values), *values)
        return data[: tag.valueoffset] + body + data[tag.valueoffset + len(body) :]


OFFSETS, BYTE_COUNTS = (273, 324), (279, 325)
WITHOUT_DATA = {
    "no sizes": (BYTE_COUNTS, lambda values, end: [0] * len(values)),
    "the first size": (BYTE_COUNTS, lambda values, end: [0, *values[1:]]),
    "the last size": (BYTE_COUNTS, lambda values, end: [*values[:-1], 0]),
    "too large a size": (BYTE_COUNTS, lambda values, end: [*values[:-1], end & 0xFFFF]),
    "no offsets": (OFFSETS, lambda values, end: [0] * len(values)),
    "the last offset": (OFFSETS, lambda values, end: [*values[:-1], 0]),
    "an offset at the end": (OFFSETS, lambda values, end: [*values[:-1], end]),
}


@pytest.mark.parametrize("case", WITHOUT_DATA)
@pytest.mark.parametrize("compression", [None, "adobe_deflate", "lzw"])
@pytest.mark.parametrize("planar", ["contig", "separate"])
@pytest.mark.parametrize("make", [_strips, _tiles])
def test_tiff_without_all_its_strips_or_tiles_is_refused(make, planar, compression, case):
    pixels = noise((40, 48, 3))
    stored = pixels if planar == "contig" else pixels.transpose(2, 0, 1)
    data = make(stored, planarconfig=planar, compression=compression)
    assert_reads_as(data, pixels)
    with pytest.raises(ImageError, match="damaged TIFF file: strips or tiles are missing, or lie beyond its end"):
        read_image(_edit_tag(data, *WITHOUT_DATA[case]))


def test_tiff_with_too_few_strips_is_refused():
    data = bytearray(_strips(noise((40, 48, 3)), compression="adobe_deflate"))
    for code in (273, 279):
        at = _count_position(bytes(data), code)
        data[at : at + 4] = struct.pack("<I", 4)
    with pytest.raises(ImageError, match="strips or tiles are missing"):
        read_image(bytes(data))


def _count_position(data, code):
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        return file.pages[0].tags[code].offset + 4


def _with_png_size(width, height):
    data = bytearray(png(noise((1, 1, 1)), 8, 0))
    data[8:33] = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return bytes(data)


def _with_tiff_size(width, height):
    data = tiff(noise((1, 1, 1)))
    return data.replace(struct.pack("<HHII", 256, 4, 1, 1), struct.pack("<HHII", 256, 4, 1, width)).replace(
        struct.pack("<HHII", 257, 4, 1, 1), struct.pack("<HHII", 257, 4, 1, height)
    )


def _with_bmp_size(width, height):
    data = bytearray(saved(Image.new("RGB", (1, 1)), format="BMP"))
    data[18:26] = struct.pack("<ii", width, height)
    return bytes(data)


def _with_jpeg_size(width, height):
    data = saved(Image.new("L", (1, 1)), format="JPEG")
    at = data.index(b"\xff\xc0") + 5
    return data[:at] + struct.pack(">HH", height, width) + data[at + 4 :]


def _with_webp_size(width, height):
    body = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + bytes(25)
    return b"RIFF" + struct.pack("<I", 12 + len(body)) + b"WEBPVP8L" + struct.pack("<I", len(body)) + body


def _with_npy_size(width, height):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (height, width)})
    return file.getvalue() + b"\0"


BOMBS = {
    "PNG": _with_png_size,
    "TIFF": _with_tiff_size,
    "BMP": _with_bmp_size,
    "JPEG": _with_jpeg_size,
    "WebP": _with_webp_size,
    "NPY": _with_npy_size,
    "PNM": lambda width, height: b"P5 %d %d 255\n\0" % (width, height),
}


@pytest.mark.parametrize("name", BOMBS)
def test_pixel_limit_holds_before_anything_is_allocated(name):
    data = BOMBS[name](9000, 9000)
    assert sniff(data) == name
    tracemalloc.start()
    try:
        with pytest.raises(ImageError, match="9000 x 9000 pixels exceed the limit of 80000000 pixels"):
            read_image(data, ReadOptions(max_pixels=80_000_000))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_pixel_limit_is_inclusive():
    data = npy(np.zeros((10, 10), np.uint8))
    assert read_image(data, ReadOptions(max_pixels=100)).pixels.shape == (10, 10)
    with pytest.raises(ImageError, match="exceed the limit of 99"):
        read_image(data, ReadOptions(max_pixels=99))


def _damageable():
    pixels = noise((20, 30, 3))
    return {
        "PNG": png(pixels, 8, 2, png_chunk(b"eXIf", exif(1))),
        "JPEG": saved(Image.fromarray(pixels), format="JPEG"),
        "WebP": saved(Image.fromarray(pixels), format="WEBP", lossless=True),
        "BMP": saved(Image.fromarray(pixels), format="BMP"),
        "TIFF": tiff(pixels, photometric=2, extra={338: ()}),
        "PNM": b"P6 30 20 255\n" + pixels.tobytes(),
        "NPY": npy(pixels),
    }


def assert_told_apart(error):
    """What is said to be damaged is of the class by which `verify` knows it, and nothing else is."""
    says_so = str(error).startswith(("damaged", "truncated"))
    assert isinstance(error, DamagedImageError) == says_so, str(error)


@pytest.mark.parametrize("name", _damageable())
def test_truncation_gives_an_error_or_the_same_pixels(name):
    data = _damageable()[name]
    pixels = read_image(data).pixels
    reasons = []
    for size in range(0, len(data), 7):
        try:
            np.testing.assert_array_equal(read_image(data[:size]).pixels, pixels)
        except ImageError as error:
            assert_told_apart(error)
            reasons.append(str(error))
    assert len(reasons) > len(data) / 7 * 0.9
    assert not any("object at" in reason for reason in reasons), "objects in memory mean nothing to users"


@pytest.mark.parametrize("name", _damageable())
def test_damaged_bytes_give_an_error_or_pixels(name):
    data = _damageable()[name]
    random = np.random.default_rng(5)
    for _ in range(200):
        damaged = bytearray(data)
        for position in random.integers(0, min(len(data), 300), 3):
            damaged[position] = random.integers(256)
        try:
            assert read_image(bytes(damaged), ReadOptions(max_pixels=1_000_000)).pixels.dtype in (np.uint8, np.uint16)
        except ImageError as error:
            assert_told_apart(error)
