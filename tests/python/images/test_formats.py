"""The formats that images are converted to: what each holds, what it hands over to L3, and what is lost."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import zlib

import imagecodecs
import numpy as np
import pytest
from PIL import Image

import dali_l3
from dali_l3.conversion.converting import convert_file
from dali_l3.errors import ConversionError
from dali_l3.images.formats import find_format
from dali_l3.images.reading import read_image
from dali_l3.images.writing import write_image
from dali_l3.jobs.outcomes import Task
from image_files import exif, noise, png, png_chunk, write_png

SHAPES = {1: (9, 7), 2: (9, 7, 2), 3: (9, 7, 3), 4: (9, 7, 4)}
EIGHT_BIT_CHANNELS = {"png": (1, 2, 3, 4), "tiff": (1, 2, 3, 4), "bmp": (1, 3), "webp": (3, 4)}
SIXTEEN_BIT_CHANNELS = {"png": (1, 2, 3, 4), "tiff": (1, 2, 3, 4), "bmp": (), "webp": ()}
UNSUPPORTED = {1: "gray pixels", 2: "gray pixels with alpha", 3: "RGB pixels", 4: "RGBA pixels"}


def stored_pixels(data, name):
    """Pixels of an image file, by other libraries than those that wrote it (but for BMP, which DALI reads below)."""
    if name == "png":
        return np.asarray(Image.open(io.BytesIO(data))) if data[24] == 8 else imagecodecs.png_decode(data)
    if name == "bmp":
        return np.asarray(Image.open(io.BytesIO(data)))
    return {"tiff": imagecodecs.tiff_decode, "webp": imagecodecs.webp_decode}[name](data)


@pytest.mark.parametrize("channels", SHAPES)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("name", ["png", "tiff", "bmp", "webp"])
def test_lossless_formats_keep_every_pixel_or_hand_over_to_l3(tmp_path, name, dtype, channels):
    pixels = noise(SHAPES[channels], dtype)
    if channels in (2, 4):
        pixels[:5, :, -1] = 0  # invisible colours count too
    source = write_png(tmp_path / "a.png", pixels)
    (tmp_path / "out").mkdir()
    outcome = convert_file(Task(str(source), str(tmp_path / "out" / f"a.{name}"), name))
    (written,) = (tmp_path / "out").iterdir()
    assert (outcome.status, outcome.target, outcome.psnr) == ("done", str(written), None)
    assert (outcome.target_size, outcome.raw_size) == (written.stat().st_size, pixels.nbytes)
    if channels in (EIGHT_BIT_CHANNELS if dtype == np.uint8 else SIXTEEN_BIT_CHANNELS)[name]:
        assert (written.name, outcome.format, outcome.notes) == (f"a.{name}", name, ())
        decoded = stored_pixels(written.read_bytes(), name)
    else:
        unsupported = "16-bit samples" if dtype == np.uint16 else UNSUPPORTED[channels]
        assert (written.name, outcome.format) == ("a.l3", "l3-fast")
        assert outcome.notes == (f"not representable in {name} ({unsupported}): kept as l3-fast",)
        decoded = dali_l3.decode(written.read_bytes())
    assert decoded.dtype == dtype
    np.testing.assert_array_equal(decoded, pixels)


@pytest.mark.parametrize("name", ["jpeg@95", "webp@95"])
@pytest.mark.parametrize(
    ("pixels", "unsupported"),
    [
        (noise((9, 7, 3), np.uint16), "16-bit samples"),
        (noise((9, 7, 2)), "gray pixels with alpha"),
        (np.zeros((1, 65501, 3), np.uint8), "a side of more than"),
        (np.full((9, 7, 4), 255, np.uint8), "an alpha channel without transparency|RGBA pixels"),
    ],
)
def test_lossy_formats_hand_over_what_they_cannot_hold(tmp_path, name, pixels, unsupported):
    source = write_png(tmp_path / "a.png", pixels)
    target = str(tmp_path / "a") + find_format(name).suffix
    outcome = convert_file(Task(str(source), target, name))
    assert (outcome.status, outcome.target) == ("done", str(tmp_path / "a.l3"))
    (note,) = outcome.notes
    assert note.startswith(f"not representable in {name} (")
    assert any(part in note for part in unsupported.split("|"))
    np.testing.assert_array_equal(dali_l3.decode((tmp_path / "a.l3").read_bytes()), pixels)


@pytest.mark.parametrize("shape", [(1, 1_000_001), (1_000_001, 1, 3)])
def test_png_hands_over_what_libpng_would_refuse(tmp_path, shape):
    for most, expected in ((1_000_000, "png"), (1_000_001, "l3-fast")):
        np.save(tmp_path / "a.npy", np.zeros([min(side, most) for side in shape], np.uint8))
        outcome = convert_file(Task(str(tmp_path / "a.npy"), str(tmp_path / "a.png"), "png"))
        assert (outcome.status, outcome.format) == ("done", expected)


def test_single_channel_arrays_become_gray_images(tmp_path):
    pixels = noise((9, 7, 1))
    np.save(tmp_path / "a.npy", pixels)
    for name in ("png", "tiff", "bmp", "jpeg@100"):
        suffix = find_format(name).suffix
        outcome = convert_file(Task(str(tmp_path / "a.npy"), str(tmp_path / f"a{suffix}"), name))
        assert (outcome.status, outcome.format) == ("done", name)
        assert read_image((tmp_path / f"a{suffix}").read_bytes()).pixels.shape == (9, 7)


def test_another_file_where_the_substitute_must_go_is_left_alone(tmp_path):
    source = write_png(tmp_path / "a.png", noise((9, 7), np.uint16))
    (tmp_path / "a.l3").write_text("something of the user's")
    outcome = convert_file(Task(str(source), str(tmp_path / "a.bmp"), "bmp"))
    assert outcome.status == "failed"
    assert f"{tmp_path / 'a.l3'} exists and is not a file of format L3" in outcome.reason
    assert (tmp_path / "a.l3").read_text() == "something of the user's"


@pytest.mark.parametrize("shape", [(64, 51), (64, 51, 3)])
@pytest.mark.parametrize(("name", "worst"), [("jpeg@50", 25), ("jpeg@95", 35), ("webp@50", 25), ("webp@95", 35)])
def test_lossy_formats_report_what_they_lost(tmp_path, shape, name, worst):
    if name.startswith("webp") and len(shape) == 2:
        pytest.skip("WebP has no gray pixels")
    ramp = np.add.outer(np.arange(64.0), np.arange(51.0)).reshape((64, 51) + (1,) * (len(shape) - 2))
    pixels = (np.sin(ramp / 9) * 90 + 128 + noise(shape) / 32).astype(np.uint8)
    source = write_png(tmp_path / "a.png", pixels)
    target = tmp_path / f"a{find_format(name).suffix}"
    outcome = convert_file(Task(str(source), str(target), name))
    assert (outcome.status, outcome.format, outcome.notes) == ("done", name, ())
    decoded = np.asarray(Image.open(target))
    expected = 10 * math.log10(255**2 / np.mean((decoded.astype(float) - pixels) ** 2))
    assert outcome.psnr == pytest.approx(expected)
    assert worst < outcome.psnr < 60


def test_a_lossy_format_that_lost_nothing_has_no_psnr(tmp_path):
    source = write_png(tmp_path / "a.png", np.full((16, 16), 128, np.uint8))
    outcome = convert_file(Task(str(source), str(tmp_path / "a.jpg"), "jpeg@95"))
    assert (outcome.status, outcome.psnr) == ("done", None)
    assert json.loads(outcome.to_json())["psnr"] is None


XMP = b"<?xpacket begin='' id='W5M0MpCehiHzreSzNTczkc9d'?><x:xmpmeta xmlns:x='adobe:ns:meta/'/><?xpacket end='w'?>"
ICC = b"".join(bytes([value]) * 3 for value in range(256))


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("l3-fast", {"icc", "exif", "xmp"}),
        ("png", {"icc", "exif", "xmp"}),
        ("webp", {"icc", "exif", "xmp"}),
        ("webp@90", {"icc", "exif", "xmp"}),
        ("jpeg@90", {"icc", "exif", "xmp"}),
        ("tiff", {"icc", "xmp"}),
        ("bmp", set()),
    ],
)
def test_metadata_is_kept_where_the_format_has_a_place_for_it(tmp_path, name, kept):
    chunks = png_chunk(b"iCCP", b"x\0\0" + zlib.compress(ICC)) + png_chunk(b"eXIf", exif(6))
    chunks += png_chunk(b"iTXt", b"XML:com.adobe.xmp" + bytes(5) + XMP)
    pixels = noise((9, 7, 3))
    (tmp_path / "a.png").write_bytes(png(pixels, 8, 2, chunks))
    format = find_format(name)
    target = tmp_path / f"b{format.suffix}"
    outcome = convert_file(Task(str(tmp_path / "a.png"), str(target), name))
    left_out = [
        f"metadata {key!r} has no place in a {format.signature} file and was left out"
        for key in ("icc", "exif", "xmp")
        if key not in kept
    ]
    assert outcome.notes == ("EXIF orientation 6 applied", *left_out)
    decoded, metadata = format.decode(target.read_bytes())
    assert metadata == {key: value for key, value in (("icc", ICC), ("exif", exif(1)), ("xmp", XMP)) if key in kept}
    assert decoded.shape == (7, 9, 3), "upright"
    if name != "l3-fast":
        again = read_image(target.read_bytes())
        assert (again.pixels.shape, again.metadata) == ((7, 9, 3), metadata)


@pytest.mark.parametrize(("key", "most"), [("exif", 65527), ("xmp", 65502)])
def test_metadata_that_does_not_fit_into_a_jpeg_file_is_left_out(tmp_path, key, most):
    long = {"exif": exif(1), "xmp": XMP}[key].ljust(most + 1)
    for size, kept in ((most, True), (most + 1, False)):
        written = write_image(str(tmp_path / "a.jpg"), noise((9, 7, 3)), {key: long[:size]}, find_format("jpeg@90"))
        assert (written.notes == ()) == kept
        assert (long[:size] in (tmp_path / "a.jpg").read_bytes()) == kept


def test_xmp_data_is_where_other_libraries_look_for_it(tmp_path):
    for name in ("png", "tiff", "webp", "jpeg@90"):
        path = tmp_path / f"a{find_format(name).suffix}"
        write_image(str(path), noise((9, 7, 3)), {"xmp": XMP}, find_format(name))
        with Image.open(path) as image:
            found = image.tag_v2[700] if name == "tiff" else image.info.get("XML:com.adobe.xmp") or image.info["xmp"]
        assert (found.encode() if isinstance(found, str) else found) == XMP, name


@pytest.mark.parametrize("name", ["l3-fast", "l3-raw", "png", "tiff", "bmp", "webp", "webp@50", "jpeg@95"])
def test_only_whole_files_are_finished(tmp_path, name):
    format, path = find_format(name), tmp_path / "a"
    write_image(str(path), noise((50, 30, 3)), {"icc": ICC}, format)
    data = path.read_bytes()
    assert format.is_finished(str(path))
    for size in (33, 64, 100, len(data) // 2, len(data) - 100, len(data) - 1):
        path.write_bytes(data[:size])
        assert not format.is_finished(str(path)), size


def test_only_the_right_profile_is_finished(tmp_path):
    write_image(str(tmp_path / "a.l3"), noise((50, 30, 3)), {}, find_format("l3-raw"))
    for name in ("l3-fast", "l3-raw", "l3-paper"):
        assert find_format(name).is_finished(str(tmp_path / "a.l3")) == (name == "l3-raw")


@pytest.mark.parametrize("name", ["png", "tiff", "bmp", "webp", "jpeg@95"])
@pytest.mark.parametrize("wrong", ["pixels", "shape", "metadata", "everything"])
def test_an_encoder_that_errs_never_gets_its_file_named(tmp_path, name, wrong):
    format = find_format(name)
    pixels = noise((9, 7, 3))
    if (wrong == "pixels" and format.lossy) or (wrong == "metadata" and name == "bmp"):
        pytest.skip("no error in this format")

    def encode(pixels, metadata):
        if wrong == "pixels":
            pixels = pixels ^ 1
        elif wrong == "shape":
            pixels = pixels.swapaxes(0, 1)
        return b"" if wrong == "everything" else format.encode(np.ascontiguousarray(pixels), metadata | extra)

    extra = {"icc": ICC} if wrong == "metadata" else {}
    with pytest.raises(ConversionError):
        write_image(str(tmp_path / "a"), pixels, {}, dataclasses.replace(format, encode=encode))
    assert list(tmp_path.iterdir()) == []
