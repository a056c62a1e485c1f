"""PBM, PGM, PPM and NPY files, made byte by byte: read exactly, or refused or noted in words of our own."""

from __future__ import annotations

import io
import struct
import tracemalloc

import numpy as np
import pytest

from dali_l3.images import pnm
from dali_l3.images.reading import ImageError, read_image
from dali_l3.images.stored import ReadOptions
from image_files import assert_reads_as, samples_of


def assert_refused(data, reason):
    with pytest.raises(ImageError) as error:
        read_image(data)
    assert str(error.value) == reason


def peak_beyond_pixels(data):
    """Bytes that reading `data` takes at most, beyond those of the pixels."""
    tracemalloc.start()
    try:
        pixels = read_image(data).pixels
        return tracemalloc.get_traced_memory()[1] - pixels.nbytes
    finally:
        tracemalloc.stop()


# ---- PNM -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"P1\n# a comment\n3 2\n1 0 1\n010", [[0, 255, 0], [255, 0, 255]]),
        (b"P1 9 1 1#0\n0 1\t0\r1 0\v1 0\f1", [[0, 255] * 4 + [0]]),
        (b"P4 3 2\n\xa0\x40", [[0, 255, 0], [255, 0, 255]]),
        (b"P4 9 1\n\xaa\xff \n", [[0, 255] * 4 + [0]]),
        (b"P2\n2 2 255\n0 1\n# a comment\n2 255\n", [[0, 1], [2, 255]]),
        (b"P2 2 1 65535 7 65535", np.array([[7, 65535]], np.uint16)),
        (b"P2 3 1 255 007 12#3\r4", [[7, 12, 4]]),
        (b"P3 1 2 255 1 2 3 4 5 6", [[[1, 2, 3]], [[4, 5, 6]]]),
        (b"P5 2 1 255\n\x00\xff", [[0, 255]]),
        (b"P5 #c\n2 1 65535\n\x01\x02\x03\x04", np.array([[0x102, 0x304]], np.uint16)),
        (b"P6 1 1 255\n\n\x01\x02", [[[10, 1, 2]]]),
        (b"P6 1 1 65535\n\x01\x02\x03\x04\x05\x06", np.array([[[0x102, 0x304, 0x506]]], np.uint16)),
    ],
)
def test_pnm(data, expected):
    assert_reads_as(data, expected if isinstance(expected, np.ndarray) else np.array(expected, np.uint8))


@pytest.mark.parametrize(("maximum", "top"), [(1, 255), (100, 255), (1023, 65535), (65534, 65535)])
def test_pnm_with_an_odd_maximum_is_scaled_and_says_so(maximum, top):
    values = np.linspace(0, maximum, 5).astype(int)
    expected = [int(value * top / maximum + 0.5) for value in values.tolist()]
    binary = values.astype(">u2" if maximum > 255 else "u1").tobytes()
    for data in (
        b"P2 5 1 %d " % maximum + b" ".join(b"%d" % value for value in values),
        b"P5 5 1 %d " % maximum + binary,
    ):
        image = read_image(data)
        assert image.pixels.tolist() == [expected]
        assert image.notes == (f"samples scaled from 0 … {maximum} to 0 … {top}",)


@pytest.mark.parametrize("block", [1, 2, 3, 7, 10, 1000])
def test_pnm_text_is_cut_in_the_right_places(monkeypatch, block):
    monkeypatch.setattr(pnm, "_BLOCK", block)
    numbers = [1, 22, 255, 0, 7, 64]
    text = b"# 9 9\n 1  22 # 8#8\r255\n\n#\n#7\n0 7#\n\t 64 # the end"
    assert_reads_as(b"P2 3 2 255\n" + text, np.array(numbers, np.uint8).reshape(2, 3))
    assert_reads_as(b"P1 3 2\n# 11\n10 1#0\n0\n\n#\n1 0", np.array([[0, 255, 0], [255, 0, 255]], np.uint8))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"P2 ", "damaged PNM file: no valid header"),
        (b"P2 1 x 255 1", "damaged PNM file: no valid header"),
        (b"P2 1 -1 255 1", "damaged PNM file: no valid header"),
        (b"P5 1 1 255", "damaged PNM file: no valid header"),
        (b"P5 1 1111111111 255 ", "damaged PNM file: no valid header"),
        (b"P5#" + b"x" * 100_000 + b"\n1 1 255\n\1", "damaged PNM file: no valid header"),
        (b"P2 1 1 0 0", "PNM with a maximum value of 0; 1 … 65535 are possible"),
        (b"P2 1 1 65536 1", "PNM with a maximum value of 65536; 1 … 65535 are possible"),
        (b"P5 0 7 255\n", "an image of 0 x 7 pixels has nothing to convert"),
        (b"P1 3 2\n1 0 1 0 1", "truncated PNM file: 5 of 6 samples"),
        (b"P2 2 2 255\n1 2 3\n", "truncated PNM file: 3 of 4 samples"),
        (b"P3 1 1 255\n", "truncated PNM file: 0 of 3 samples"),
        (b"P4 9 2\n\0\0\0", "truncated PNM file"),
        (b"P5 2 2 255\n\1\2\3", "truncated PNM file"),
        (b"P5 1 2 256\n\0\2\0", "truncated PNM file"),
        (b"P6 1 1 255\n\1\2", "truncated PNM file"),
        (b"P6 99999 1999 255\n", "truncated PNM file"),
        (b"P1 3 1\n1 2 1", "damaged PNM file: one of its samples is neither 0 nor 1"),
        (b"P2 3 1 255\n1 -2 1", "damaged PNM file: one of its samples is not a number"),
        (b"P2 3 1 255\n1 2.5 1", "damaged PNM file: one of its samples is not a number"),
        (b"P3 1 1 255\n1 0x10 1", "damaged PNM file: one of its samples is not a number"),
        (b"P2 1 1 100 101", "damaged PNM file: a sample exceeds the maximum value of 100"),
        (b"P2 1 1 255 256", "damaged PNM file: a sample exceeds the maximum value of 255"),
        (b"P2 1 1 255 99999999999999999999999", "damaged PNM file: a sample exceeds the maximum value of 255"),
        (b"P5 1 1 100\n\x65", "damaged PNM file: a sample exceeds the maximum value of 100"),
        (b"P6 1 1 300\n\0\1\1\x2d\0\1", "damaged PNM file: a sample exceeds the maximum value of 300"),
        (b"P1 1 1\n10", "PNM file with several images, or with data after its image"),
        (b"P2 1 1 255 1 1", "PNM file with several images, or with data after its image"),
        (b"P3 1 1 255 1 2 3 4", "PNM file with several images, or with data after its image"),
        (b"P4 1 1\n\x80\x80", "PNM file with several images, or with data after its image"),
        (b"P5 1 1 255\n\x01P5 1 1 255\n\x02", "PNM file with several images, or with data after its image"),
        (b"P5 2 1 255\r\n\1 ", "damaged PNM file: its header ends in two bytes (CR LF), where one must be"),
        (b"P4 9 1\r\n\x80\x0a", "damaged PNM file: its header ends in two bytes (CR LF), where one must be"),
        (b"P6 1 1 255\n\1\2\3\4", "PNM file with several images, or with data after its image"),
        (b"P7\nWIDTH 1\nHEIGHT 1\n", "PAM files are not supported: convert to PNG or TIFF first"),
    ],
)
def test_pnm_is_refused_by_name(data, reason):
    assert_refused(data, reason)


WIDTH, HEIGHT = 1000, 1200
LARGE_PNM = {
    "P1": b"P1 %d %d\n" % (WIDTH, HEIGHT) + b"01" * (WIDTH * HEIGHT // 2),
    "P2": b"P2 %d %d 65535\n" % (WIDTH, HEIGHT) + b"1234 56789\n" * (WIDTH * HEIGHT // 2),
    "P3": b"P3 %d %d 255\n" % (WIDTH, HEIGHT // 3) + b"12 3 " * (WIDTH * HEIGHT // 2),
    "P4": b"P4 %d %d\n" % (WIDTH, HEIGHT) + bytes(WIDTH * HEIGHT // 8),
    "P5": b"P5 %d %d 65535\n" % (WIDTH, HEIGHT) + bytes(WIDTH * HEIGHT * 2),
    "P5 scaled": b"P5 %d %d 1000\n" % (WIDTH, HEIGHT) + bytes(WIDTH * HEIGHT * 2),
    "P6": b"P6 %d %d 255\n" % (WIDTH, HEIGHT) + bytes(WIDTH * HEIGHT * 3),
    "comments": b"P2 1 1 255\n" + b"#\n" * 300_000 + b"7",
}


@pytest.mark.parametrize("kind", LARGE_PNM)
def test_reading_pnm_takes_the_memory_of_the_pixels(kind):
    assert peak_beyond_pixels(LARGE_PNM[kind]) < (24_000_000 if kind == "comments" else 3_000_000)


# ---- NPY -------------------------------------------------------------------------------------------------------------


def npy(header, body=b"", version=(1, 0)):
    """An NPY file: a signature, a version, the size of the header, the header, the array."""
    size = struct.pack("<H" if version == (1, 0) else "<I", len(header))
    return b"\x93NUMPY" + bytes(version) + size + header.encode("latin1") + body


def header(dtype="|u1", shape="(2, 3)", fortran=False):
    return f"{{'descr': '{dtype}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n"


def test_npy_whose_shape_has_other_integers():
    assert_reads_as(npy(header(shape="(True, 3)"), b"\1\2\3"), np.array([[1, 2, 3]], np.uint8))


@pytest.mark.parametrize("shape", [(5, 6), (5, 6, 1), (5, 6, 2), (5, 6, 3), (5, 6, 4)])
@pytest.mark.parametrize("dtype", ["u1", "<u2", ">u2"])
def test_npy(shape, dtype):
    pixels = samples_of(shape, 16).astype(dtype)
    expected = pixels.astype(pixels.dtype.newbyteorder("="))
    for version in ((1, 0), (2, 0), (3, 0)):
        for order in "CF":
            head = header(dtype, shape, order == "F")
            assert_reads_as(npy(head, pixels.tobytes(order), version), expected)
            file = io.BytesIO()
            np.lib.format.write_array(file, np.asarray(pixels, order=order), version)
            assert_reads_as(file.getvalue(), expected)


def object_array():
    file = io.BytesIO()
    np.save(file, np.array([[{}]], object))
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x93NUMPY", "damaged NPY file: no valid header"),
        (npy("")[:9], "damaged NPY file: no valid header"),
        (npy("", bytes(6)), "damaged NPY file: no valid header"),
        (npy("nonsense", bytes(6)), "damaged NPY file: no valid header"),
        (npy(header()[:-9], bytes(6)), "damaged NPY file: no valid header"),
        (npy(header("|u7"), bytes(6)), "damaged NPY file: no valid header"),
        (npy(header(shape="(2.5, 3)"), bytes(6)), "damaged NPY file: no valid header"),
        (npy(header(shape="'x'"), bytes(6)), "damaged NPY file: no valid header"),
        (npy("(" * 5000, bytes(6)), "damaged NPY file: no valid header"),
        (npy("-" * 9000 + "1", bytes(6)), "damaged NPY file: no valid header"),
        (b"\x93NUMPY\2\0\xff\xff\xff\xff" + b" " * 100_000, "damaged NPY file: no valid header"),
        (npy(header() + " " * 60_000, bytes(6)), "damaged NPY file: no valid header"),
        (npy(header(), bytes(6), (4, 0)), "NPY of version 4.0, which is not supported"),
        (npy(header(), bytes(5)), "truncated NPY file"),
        (npy(header(shape=f"({10**6}, 100)"), bytes(6)), "truncated NPY file"),
        (npy(header(), bytes(7)), "NPY file with several arrays, or with data after its array"),
        (npy(header("<f4"), bytes(24)), "NPY of float32 samples: scale to uint8 or uint16 first"),
        (npy(header("<f8"), bytes(48)), "NPY of float64 samples: scale to uint8 or uint16 first"),
        (npy(header("|b1"), bytes(6)), "NPY of bool samples: scale to uint8 or uint16 first"),
        (npy(header("|i1"), bytes(6)), "NPY of int8 samples: scale to uint8 or uint16 first"),
        (npy(header(">i2"), bytes(12)), "NPY of int16 samples: scale to uint8 or uint16 first"),
        (npy(header("<u4"), bytes(24)), "NPY of uint32 samples: scale to uint8 or uint16 first"),
        (npy(header("<c8"), bytes(48)), "NPY of complex64: not the samples of an image"),
        (npy(header("|S5"), bytes(30)), "NPY of bytes40: not the samples of an image"),
        (object_array(), "NPY of object: not the samples of an image"),
        (npy(header(shape="(6,)"), bytes(6)), "NPY of shape (6,); (H, W) and (H, W, C) with C = 1 … 4 are supported"),
        (npy(header(shape="()"), bytes(1)), "NPY of shape (); (H, W) and (H, W, C) with C = 1 … 4 are supported"),
        (
            npy(header(shape="(1, 1, 5)"), bytes(5)),
            "NPY of shape (1, 1, 5); (H, W) and (H, W, C) with C = 1 … 4 are supported",
        ),
        (npy(header(shape="(0, 3)")), "an image of 3 x 0 pixels has nothing to convert"),
        (npy(header(shape="(-2, -3)"), bytes(6)), "an image of -3 x -2 pixels has nothing to convert"),
        (
            npy(header(shape=f"({2**40}, {2**40})"), bytes(6)),
            f"{2**40} x {2**40} pixels exceed the limit of 200000000 pixels",
        ),
    ],
)
def test_npy_is_refused_by_name(data, reason):
    assert_refused(data, reason)


@pytest.mark.parametrize("fortran", [False, True])
@pytest.mark.parametrize("dtype", ["|u1", ">u2"])
def test_reading_npy_takes_the_memory_of_the_pixels(dtype, fortran):
    body = bytes(1000 * 1000 * 3 * np.dtype(dtype).itemsize)
    assert peak_beyond_pixels(npy(header(dtype, (1000, 1000, 3), fortran), body)) < 100_000


# ---- Both ------------------------------------------------------------------------------------------------------------

SOUND = {
    "P1": b"P1\n3 2\n1 0 1\n010",
    "P2": b"P2\n2 2 255\n0 1\n# c\n2 255\n",
    "P3": b"P3 1 2 1000 1 2 3 4 5 6",
    "P4": b"P4 3 2\n\xa0\x40",
    "P5": b"P5 2 1 255\n\x00\xff",
    "P6": b"P6 1 1 65535\n\1\2\3\4\5\6",
    "NPY": npy(header(), bytes(6)),
    "NPY 3": npy(header(">u2", fortran=True), bytes(12), (3, 0)),
}


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.filterwarnings("ignore:Reading .*Python 2")
def test_mutations_give_an_error_of_ours_or_pixels(name):
    random = np.random.default_rng(3)
    reasons = set()
    for _ in range(500):
        data = bytearray(SOUND[name])
        for _ in range(random.integers(1, 4)):
            start = int(random.integers(2, len(data)))
            end = start + int(random.integers(0, 5))
            digits = b"%d" % random.integers(1000)
            data[start:end] = [random.bytes(end - start), b"", data[start:end] * 2, digits][random.integers(4)]
        try:
            pixels = read_image(bytes(data), ReadOptions(max_pixels=100_000)).pixels
            assert pixels.dtype in (np.uint8, np.uint16)
            assert pixels.flags.writeable
            reasons.add("")
        except ImageError as error:
            reasons.add(str(error))
    assert "" in reasons
    assert len(reasons) > 3
    assert not any("unusual" in reason for reason in reasons), "something unforeseen"
