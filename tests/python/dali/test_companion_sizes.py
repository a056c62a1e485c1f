"""The readers' argument `equal_sizes` against the sizes that Pillow, tifffile and numpy write."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
import tifffile
from PIL import Image

import dali_l3
from dali_l3.fn import readers
from reading import Reading

pytestmark = pytest.mark.usefixtures("plugin")

both_readers = pytest.mark.parametrize("reader", [readers.multi_format, readers.liquid])

SIZE = (40, 300)  # of more than a byte


def pixels(height, width, channels=3):
    return np.random.default_rng(0).integers(0, 256, (height, width, channels), np.uint8)


def pillow(name, mode="RGB", **options):
    def encode(height, width):
        file = io.BytesIO()
        Image.fromarray(pixels(height, width)).convert(mode).save(file, name, **options)
        return file.getvalue()

    return encode


def tiff(**options):
    def encode(height, width):
        file = io.BytesIO()
        tifffile.imwrite(file, pixels(height, width), **options)
        return file.getvalue()

    return encode


def npy(shape, version=(1, 0), **options):
    def encode(height, width):
        file = io.BytesIO()
        array = np.zeros(shape(height, width), np.uint16, **options)
        np.lib.format.write_array(file, array, version=version)
        return file.getvalue()

    return encode


def pnm(header):
    """A netpbm file whose header is `header` with height and width in it."""

    def encode(height, width):
        return header.format(height=height, width=width).encode() + bytes(height * width * 3)

    return encode


# Functions of height and width.
FORMATS = {
    "L3": lambda *size: dali_l3.encode(pixels(*size)),
    "L3, paper": lambda *size: dali_l3.encode(pixels(*size)[..., 0], profile="paper"),
    "PNG": pillow("PNG"),
    "PNG, palette": pillow("PNG", "P"),
    "JPEG": pillow("JPEG"),
    "JPEG, progressive": pillow("JPEG", "L", progressive=True, dpi=(72, 72), comment=b"\xff\xc0" * 99),
    "BMP": pillow("BMP"),
    "BMP, top first": lambda *size: top_first(pillow("BMP")(*size)),
    "TIFF": pillow("TIFF"),
    "TIFF, big-endian": tiff(byteorder=">"),
    "BigTIFF, tiled": tiff(bigtiff=True, tile=(16, 16)),
    "WebP": pillow("WEBP"),
    "WebP, lossless": pillow("WEBP", lossless=True),
    "WebP, extended": pillow("WEBP", "RGBA", exif=b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0"),
    "PPM": pillow("PPM"),
    "PGM with comments": pnm("P5 # width 7\n#9\n{width}#8\n {height} 255\n"),
    "PAM": pnm("P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH 3\nMAXVAL 255\nTUPLTYPE RGB\nENDHDR\n"),
    "NPY": npy(lambda *size: size),
    "NPY, version 3": npy(lambda *size: (*size, 2), version=(3, 0), order="F"),
}


def top_first(bmp):
    """A BMP file with the sign of its height changed."""
    height = int.from_bytes(bmp[22:26], "little")
    return bmp[:22] + (-height).to_bytes(4, "little", signed=True) + bmp[26:]


@pytest.fixture
def folder(tmp_path):
    """Three images, with a companion each of their size, which a test may replace."""
    for i in range(3):
        (tmp_path / f"{i}.png").write_bytes(FORMATS["PNG"](*SIZE))
        (tmp_path / f"{i}.mask").write_bytes(FORMATS["L3"](*SIZE))
    return tmp_path


def read(folder, reader=readers.multi_format, **arguments):
    files = [str(folder / f"{i}.png") for i in range(3)]
    arguments = {"files": files, "companions": ["{dir}/{stem}.mask"], "equal_sizes": True} | arguments
    return Reading(reader, batch_size=3, **arguments)


def problem_of(reading):
    """What a batch's reading ends with, or an empty text."""
    try:
        reading.pipeline.run()
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", FORMATS)
def test_sizes_of_formats(folder, name):
    height, width = SIZE
    encode = FORMATS[name]
    (folder / "1.mask").write_bytes(encode(height, width))
    read(folder).pipeline.run()
    for wrong in ((height + 1, width), (height, width - 1), (width, height)):
        (folder / "1.mask").write_bytes(encode(*wrong))
        message = (
            f"{folder}/1.png has height {height} and width {width}, "
            f"but its companion {folder}/1.mask has height {wrong[0]} and width {wrong[1]}"
        )
        with pytest.raises(RuntimeError, match=re.escape(message)):
            read(folder).pipeline.run()


@pytest.mark.parametrize("name", FORMATS)
def test_headers_that_are_cut_off_or_damaged_do_no_harm(folder, name):
    """Whatever they say, the readers deliver the files or name one of them."""
    encoded = FORMATS[name](*SIZE)
    for cut in (5, 12, 19, 23, 27, 29, 60):
        for companion in (encoded[:cut], encoded[: cut - 2] + b"\xff\xff" + encoded[cut:]):
            (folder / "1.mask").write_bytes(companion)
            problem = problem_of(read(folder))
            assert not problem or f"{folder}/1.mask" in problem


@pytest.mark.parametrize("companion", [b"any bytes", pillow("GIF")(7, 8), npy(lambda *size: (7,))(7, 8)])
def test_what_has_no_size_is_not_compared(folder, companion):
    (folder / "1.mask").write_bytes(companion)
    read(folder).pipeline.run()


ENDINGS = (
    "l3",
    "png",
    "JPG",
    "jpeg",
    "bmp",
    "tif",
    "tiff",
    "webp",
    "pnm",
    "ppm",
    "pgm",
    "pbm",
    "pam",
    "jp2",
    "gif",
    "npy",
)


@pytest.mark.parametrize("arguments", [{"equal_sizes": True}, {"check": "headers"}, {"check": "content"}])
def test_garbage_in_the_place_of_an_image_is_bad(folder, arguments):
    """If anything looks at companions at all, and their names are those of images."""
    (folder / "masks").mkdir()
    for ending in ENDINGS:
        for i in range(3):
            (folder / f"masks/{i}.{ending}").write_bytes(FORMATS["L3"](*SIZE))
        companions = {"companions": [f"{{dir}}/masks/{{stem}}.{ending}"], "equal_sizes": None}
        read(folder, **companions | arguments).pipeline.run()
        (folder / f"masks/1.{ending}").write_bytes(b"any bytes, as many as a signature has")
        with pytest.raises(RuntimeError, match=rf"1\.{ending}: of no known image format, in spite of its name"):
            read(folder, **companions | arguments).pipeline.run()
        read(folder, **companions).pipeline.run()


@both_readers
def test_sizes_are_compared_only_when_asked_for(folder, reader):
    (folder / "1.mask").write_bytes(FORMATS["PNG"](7, 8))
    read(folder, reader, equal_sizes=False).pipeline.run()
    read(folder, reader, equal_sizes=None).pipeline.run()


@both_readers
def test_samples_with_unequal_sizes_are_skipped(folder, reader, capfd):
    (folder / "1.mask").write_bytes(FORMATS["PNG"](7, 8))
    _, masks, _ = read(folder, reader, on_error="skip").pipeline.run()
    assert [masks[i].shape() for i in range(3)] == [[len(FORMATS["L3"](*SIZE))]] * 3
    assert "1.mask has height 7 and width 8" in capfd.readouterr().err


def test_missing_companions_are_not_compared(folder):
    (folder / "1.mask").unlink()
    read(folder, missing_companions="empty").pipeline.run()


def test_sizes_without_companions_are_a_contradiction(folder):
    with pytest.raises((ValueError, RuntimeError), match="equal_sizes compares images with their companions"):
        read(folder, companions=None).pipeline.build()
