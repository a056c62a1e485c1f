"""What files are called by their first bytes. The readers' engine has the table; its own tests hold it too."""

from __future__ import annotations

import struct

import pytest

from dali_l3.images.signatures import HEAD_SIZE, IMAGE_SUFFIXES, READABLE_FORMATS, sniff


def bitmap(letters: bytes, header_size: int) -> bytes:
    return letters + bytes(12) + struct.pack("<I", header_size)


HEADS = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"\x93NUMPY": "NPY",
    b"\x89L3I\r\n\x1a\n": "L3",
    b"LLL.": "L3",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"II+\0": "TIFF",
    b"MM\0+": "TIFF",
    b"II*\0\x10\0\0\0CR": "Canon raw",
    b"RIFF1234WEBP": "WebP",
    b"\0\0\0\x0cJXL \r\n\x87\n": "JPEG XL",
    b"\xff\x0a": "JPEG XL",
    b"\0\0\0\x0cjP  \r\n\x87\n": "JPEG 2000",
    b"\xff\x4f\xff\x51": "JPEG 2000",
    b"8BPS": "Photoshop",
    b"v/1\x01": "OpenEXR",
    b"P7\n": "PAM",
    bitmap(b"BA", 0)[:14] + b"BM": "OS/2 bitmap array",
    **{b"P%d%b" % (kind, gap): "PNM" for kind in range(1, 7) for gap in (b" ", b"\t", b"\r", b"\n", b"#")},
    **{bitmap(b"BM", size): "BMP" for size in (12, 16, 40, 52, 56, 64, 108, 124)},
    **{bitmap(letters, 12): "OS/2 icon" for letters in (b"IC", b"CI")},
    **{bitmap(letters, 40): "OS/2 pointer" for letters in (b"PT", b"CP")},
    **{b"\0\0\0\x1cftyp" + brand: "AVIF" for brand in (b"avif", b"avis")},
    **{b"\0\0\0\x1cftyp" + brand: "HEIC" for brand in (b"heic", b"heix")},
    **{b"\0\0\0\x1cftyp" + brand: "HEIF" for brand in (b"mif1", b"msf1")},
}


@pytest.mark.parametrize("head", HEADS)
def test_names(head):
    assert sniff(head) == HEADS[head]
    assert sniff(head + bytes(2000)) == HEADS[head], "what follows does not matter"
    assert sniff(head[:-1]) != HEADS[head] or HEADS[head] == "TIFF", "every byte does"
    assert len(head) <= HEAD_SIZE


@pytest.mark.parametrize(
    "head",
    [
        *(b"", b"P5", b"P8\n", b"P7 ", b"P0\n", b"RIFF", b"RIFF1234WAVE", b"BM1234567890123456", b"BMX bikes and more"),
        *(bitmap(b"BM", 41), bitmap(b"BM", 12 + (1 << 8)), bitmap(b"XX", 40), b"\0\0\0\x1cftypmp42", b"plain text"),
        *(b"\x89PNG\r\n\x1a\r", b"\x89PNG\n\x1a\n"),
    ],
)
def test_what_is_no_image(head):
    assert sniff(head) is None


def test_every_format_that_is_read_has_a_name():
    assert set(READABLE_FORMATS) < set(HEADS.values())
    assert ".png" in IMAGE_SUFFIXES
