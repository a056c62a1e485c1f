"""Image files are read exactly, or refused by name."""

from __future__ import annotations

import contextlib
import io
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
import tifffile
from PIL import Image, ImageOps

from dali_l3.images.exif import neutralise_orientation
from dali_l3.images.reading import ImageError, read_image
from dali_l3.images.signatures import sniff
from dali_l3.images.stored import ReadOptions
from image_files import PNG_CHANNELS, exif, png, png_chunk, saved, tiff

SIZES = ((1, 1), (5, 7), (9, 33))
PNG_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}  # by colour type
PNG_TYPES = [
    (color, depth, transparent)
    for color, depths in PNG_DEPTHS.items()
    for depth in depths
    for transparent in ((False,) if color in (4, 6) else (False, True))  # whether there is a tRNS chunk
]


def noise(shape, bits=8, seed=0):
    values = np.random.default_rng(seed).integers(0, 1 << bits, shape)
    return values.astype(np.uint16 if bits > 8 else np.uint8)


def assert_reads_as(data, expected):
    pixels = read_image(data).pixels
    assert pixels.dtype == expected.dtype
    np.testing.assert_array_equal(pixels, expected)


# ---- PNG -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(("color", "depth", "transparent"), PNG_TYPES)
def test_png_of_every_type(color, depth, transparent, interlaced, size):
    samples = noise((*size, PNG_CHANNELS[color]), depth)
    chunks = b""
    if color == 3:
        palette = noise((1 << depth, 3), seed=1)
        alpha = noise(max(1, (1 << depth) - 1), seed=2)  # shorter than the palette: the rest is opaque
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
    assert_reads_as(png(samples, depth, color, chunks, interlaced), expected)


def test_png_keeps_colour_profile_and_exif_even_after_the_pixels():
    profile = bytes(range(256)) * 9
    icc = png_chunk(b"iCCP", b"a name\0\0" + zlib.compress(profile))
    image = read_image(png(noise((4, 6, 3)), 8, 2, icc, late=png_chunk(b"eXIf", exif(1))))
    assert image.metadata == {"icc": profile, "exif": exif(1)}
    assert image.notes == ()


def test_png_with_damaged_colour_profile_is_read_without_it():
    image = read_image(png(noise((4, 6, 3)), 8, 2, png_chunk(b"iCCP", b"a name\0\0junk")))
    assert image.metadata == {}
    assert image.notes == ("damaged ICC profile left out",)


def test_colour_profile_beyond_the_formats_limit_is_left_out():
    bomb = png_chunk(b"iCCP", b"a name\0\0" + zlib.compress(bytes(1 << 25)))
    assert read_image(png(noise((4, 6, 3)), 8, 2, bomb)).metadata == {}


# ---- TIFF ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_tiff(channels, bits, planar, order):
    samples = noise((6, 9, channels), bits)
    extra = {338: (2,)} if channels in (2, 4) else {}
    data = tiff(samples, bits, 2 if channels > 2 else 1, order, planar, extra)
    assert_reads_as(data, samples[..., 0] if channels == 1 else samples)


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16])
def test_tiff_gray_with_white_as_zero(bits):
    samples = noise((6, 9, 1), bits)
    top = (1 << bits) - 1
    expected = (top - samples[..., 0]) * (255 // top if bits < 8 else 1)
    assert_reads_as(tiff(samples, bits, photometric=0), expected.astype(samples.dtype))


@pytest.mark.parametrize("scale", [1, 257])
@pytest.mark.parametrize("bits", [4, 8])
def test_tiff_palette(bits, scale):
    palette = noise((1 << bits, 3), seed=1)
    samples = noise((6, 9, 1), bits)
    colours = tuple(int(value) * scale for value in palette.T.ravel())
    assert_reads_as(tiff(samples, bits, photometric=3, extra={320: colours}), palette[samples[..., 0]])


@pytest.mark.parametrize("compression", ["lzw", "deflate", "packbits", "zstd"])
@pytest.mark.parametrize("bits", [8, 16])
def test_tiff_compressed_in_tiles(bits, compression):
    pixels = noise((70, 90, 3), bits)
    file = io.BytesIO()
    tifffile.imwrite(
        file, pixels, photometric="rgb", compression=compression, tile=(32, 48), predictor=compression != "packbits"
    )
    assert_reads_as(file.getvalue(), pixels)


@pytest.mark.parametrize(
    ("mode", "compression"), [("L", "tiff_lzw"), ("RGBA", "tiff_adobe_deflate"), ("1", "group4"), ("RGB", "jpeg")]
)
def test_tiff_as_libtiff_decodes_it(mode, compression):
    image = Image.fromarray(noise((40, 50, 3))).convert(mode)
    data = saved(image, format="TIFF", compression=compression)
    decoded = Image.open(io.BytesIO(data))
    assert_reads_as(data, np.asarray(decoded.convert("L") if mode == "1" else decoded))


def test_tiff_orientation_and_premultiplied_alpha_are_reported():
    samples = noise((6, 9, 4))
    image = read_image(tiff(samples, photometric=2, extra={274: (6,), 338: (1,)}))
    np.testing.assert_array_equal(image.pixels, np.rot90(samples, -1))
    assert image.notes == ("premultiplied alpha kept as stored", "EXIF orientation 6 applied")


def test_tiff_colour_profile():
    file = io.BytesIO()
    tifffile.imwrite(file, noise((5, 6, 3)), photometric="rgb", iccprofile=b"profile" * 9)
    assert read_image(file.getvalue()).metadata == {"icc": b"profile" * 9}


def test_tiff_with_a_reduced_copy_is_one_image():
    pixels = noise((32, 32, 3))
    file = io.BytesIO()
    with tifffile.TiffWriter(file) as writer:
        writer.write(pixels, photometric="rgb")
        writer.write(pixels[::2, ::2], photometric="rgb", subfiletype=1)
    image = read_image(file.getvalue())
    np.testing.assert_array_equal(image.pixels, pixels)
    assert image.notes == ("1 reduced copies or masks left out",)


# ---- PNM and NPY -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"P1\n# a comment\n3 2\n1 0 1\n010", [[0, 255, 0], [255, 0, 255]]),
        (b"P4 3 2\n\xa0\x40", [[0, 255, 0], [255, 0, 255]]),
        (b"P2\n2 2 255\n0 1\n# a comment\n2 255\n", [[0, 1], [2, 255]]),
        (b"P2 2 1 65535 7 65535", np.array([[7, 65535]], np.uint16)),
        (b"P3 1 2 255 1 2 3 4 5 6", [[[1, 2, 3]], [[4, 5, 6]]]),
        (b"P5 2 1 255\n\x00\xff", [[0, 255]]),
        (b"P5 #c\n2 1 65535\n\x01\x02\x03\x04", np.array([[0x102, 0x304]], np.uint16)),
        (b"P6 1 1 255\n\n\x01\x02", [[[10, 1, 2]]]),
        (b"P6 1 1 65535\n\x01\x02\x03\x04\x05\x06", np.array([[[0x102, 0x304, 0x506]]], np.uint16)),
    ],
)
def test_pnm(data, expected):
    expected = expected if isinstance(expected, np.ndarray) else np.array(expected, np.uint8)
    assert_reads_as(data, expected)


@pytest.mark.parametrize(("maximum", "top"), [(1, 255), (100, 255), (1023, 65535), (65534, 65535)])
def test_pnm_with_an_odd_maximum_is_scaled_and_says_so(maximum, top):
    values = np.linspace(0, maximum, 5).astype(int)
    image = read_image(b"P2 5 1 %d " % maximum + b" ".join(b"%d" % value for value in values))
    assert image.pixels.tolist() == [[int(value * top / maximum + 0.5) for value in values.tolist()]]
    assert image.notes == (f"samples scaled from 0 … {maximum} to 0 … {top}",)


@pytest.mark.parametrize("shape", [(5, 6), (5, 6, 1), (5, 6, 2), (5, 6, 3), (5, 6, 4)])
@pytest.mark.parametrize("dtype", ["u1", "<u2", ">u2"])
def test_npy(shape, dtype):
    pixels = noise(shape, 16).astype(dtype)
    for order in "CF":
        file = io.BytesIO()
        np.save(file, np.asarray(pixels, order=order))
        assert_reads_as(file.getvalue(), pixels.astype(pixels.dtype.newbyteorder("=")))


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
    "gif": (lambda: frames("GIF"), "GIF files are not supported"),
    "animated png": (lambda: frames("PNG"), r"animated PNG \(3 frames\)"),
    "multi-page tiff": (lambda: tiff(noise((4, 5, 1)), pages=3), r"multi-page TIFF \(3 pages\)"),
    "thumbnail first": (lambda: tiff(noise((4, 5, 1)), extra={254: (1,)}), "camera's raw"),
    "volume": (lambda: tiff_of(noise((16, 16, 16)), volumetric=True, tile=(16, 16, 16)), "volumetric"),
    "float tiff": (lambda: tiff_of(np.zeros((4, 5), np.float32)), "float32"),
    "signed tiff": (lambda: tiff_of(np.zeros((4, 5), np.int16)), "int16"),
    "32-bit tiff": (lambda: tiff_of(np.zeros((4, 5), np.uint32)), "32 bits"),
    "5-channel tiff": (lambda: tiff(noise((4, 5, 5)), photometric=1, extra={338: (0,) * 4}), "5 channels"),
    "float npy": (lambda: npy(np.zeros((4, 5))), "float64"),
    "bool npy": (lambda: npy(np.zeros((4, 5), bool)), "bool"),
    "signed npy": (lambda: npy(np.zeros((4, 5), np.int16)), "int16"),
    "1-d npy": (lambda: npy(np.zeros(4, np.uint8)), "shape"),
    "5-channel npy": (lambda: npy(np.zeros((4, 5, 5), np.uint8)), "shape"),
    "empty npy": (lambda: npy(np.zeros((0, 5), np.uint8)), "nothing to convert"),
    "pickle": (lambda: npy(np.array([[{}]], object)), "object"),
    "two pnm images": (lambda: b"P5 1 1 255\n\x01P5 1 1 255\n\x02", "several images"),
    "pnm sample too large": (lambda: b"P2 1 1 100 101", "exceeds the maximum"),
    "pnm maximum too large": (lambda: b"P2 1 1 65536 1", "maximum value of 65536"),
    "pam": (lambda: b"P7\nWIDTH 1\n", "PAM files are not supported"),
    "nothing": (lambda: b"", "empty file"),
    "text": (lambda: b"no image at all", "unknown signature"),
}


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


@pytest.mark.parametrize("tiled", [False, True])
def test_jpeg_within_tiff_may_not_be_larger_than_its_part(tiled):
    file = io.BytesIO()
    tile = (16, 32) if tiled else None
    tifffile.imwrite(file, noise((40, 60, 3)), photometric="rgb", compression="jpeg", tile=tile, rowsperstrip=16)
    data = file.getvalue()
    assert read_image(data).pixels.shape == (40, 60, 3)
    height, width = struct.pack(">H", 16), struct.pack(">H", 32 if tiled else 60)
    frame = data.index(b"\xff\xc0")
    assert data[frame + 5 : frame + 9] == height + width
    bomb = data[: frame + 5] + struct.pack(">HH", 9000, 9001) + data[frame + 9 :]
    with pytest.raises(ImageError, match="JPEG data of 9001 x 9000 pixels in a smaller strip or tile"):
        read_image(bomb)


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


@pytest.mark.parametrize("name", _damageable())
def test_truncation_gives_an_error_or_the_same_pixels(name):
    data = _damageable()[name]
    pixels = read_image(data).pixels
    reasons = []
    for size in range(0, len(data), 7):
        try:
            np.testing.assert_array_equal(read_image(data[:size]).pixels, pixels)
        except ImageError as error:
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
        with contextlib.suppress(ImageError):
            assert read_image(bytes(damaged), ReadOptions(max_pixels=1_000_000)).pixels.dtype in (np.uint8, np.uint16)
