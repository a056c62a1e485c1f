"""Images that are made smaller on purpose: sizes, pixels, and what says so."""

from __future__ import annotations

import json
import os

import imagecodecs
import numpy as np
import pytest
from conftest import smooth_image
from hypothesis import given
from hypothesis import strategies as st

import dali_l3
from dali_l3.images.resizing import Resize, resample
from image_files import exif, noise, png, png_chunk, write_png

pytestmark = pytest.mark.usefixtures("one_process")

# ---- Sizes -----------------------------------------------------------------------------------------------------------

SIDES = st.integers(1, 70_000)
BOUNDS = st.none() | st.integers(1, 5000)


@given(SIDES, SIDES, BOUNDS, BOUNDS, st.none() | st.integers(1, 10**7))
def test_sizes_keep_all_bounds_and_are_as_large_as_these_allow(width, height, shorter, longer, pixels):
    new_width, new_height = Resize(shorter, longer, pixels).size(width, height)
    assert 1 <= new_width <= width
    assert 1 <= new_height <= height
    assert longer is None or max(new_width, new_height) <= longer
    assert pixels is None or new_width * new_height <= pixels
    assert shorter is None or min(new_width, new_height) <= shorter
    scales = [1.0]
    if shorter is not None:
        scales.append(shorter / min(width, height))
    if longer is not None:
        scales.append(longer / max(width, height))
    if pixels is not None:
        scales.append((pixels / width / height) ** 0.5)
    for old, new in ((width, new_width), (height, new_height)):
        assert abs(new - old * min(scales)) <= 1 or min(new_width, new_height) == 1


@pytest.mark.parametrize(
    ("resize", "size", "expected"),
    [
        (Resize(shorter=256), (500, 375), (341, 256)),
        (Resize(shorter=256), (375, 500), (256, 341)),
        (Resize(shorter=256), (200, 9000), (200, 9000)),
        (Resize(longer=256), (500, 375), (256, 192)),
        (Resize(pixels=480_000), (1920, 1080), (923, 519)),
        (Resize(256, 300), (500, 375), (300, 225)),
        (Resize(pixels=10), (1, 1_000_000), (1, 10)),
    ],
)
def test_sizes_of_some_images(resize, size, expected):
    assert resize.size(*size) == expected


# ---- Pixels ----------------------------------------------------------------------------------------------------------


def lanczos_matrix(old, new):
    """Weights of old samples for new ones: Lanczos of three lobes, as wide as the scale, cut at the edges."""
    scale = old / new
    centres = (np.arange(new) + 0.5) * scale - 0.5
    distance = (np.arange(old) - centres[:, None]) / scale
    weights = np.where(abs(distance) < 3, np.sinc(distance) * np.sinc(distance / 3), 0)
    return weights / weights.sum(axis=1, keepdims=True)


def by_hand(pixels, width, height):
    """The same in double precision, colours weighted by alpha."""
    samples = pixels.reshape(*pixels.shape[:2], -1).astype(float)
    across, down = lanczos_matrix(pixels.shape[1], width), lanczos_matrix(pixels.shape[0], height)

    def shrink(plane):
        return down @ plane @ across.T

    planes = [samples[:, :, channel] for channel in range(samples.shape[2])]
    if len(planes) in (2, 4):
        alpha = shrink(planes[-1])
        planes = [shrink(plane * planes[-1]) / alpha for plane in planes[:-1]] + [alpha]
    else:
        planes = [shrink(plane) for plane in planes]
    return np.clip(np.stack(planes, 2), 0, np.iinfo(pixels.dtype).max).reshape(height, width, *pixels.shape[2:])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [(), (1,), (2,), (3,), (4,)])
def test_lanczos_is_antialiased_and_weights_colours_by_alpha(dtype, channels):
    pixels = smooth_image((61, 83, *channels), dtype)
    if channels in ((2,), (4,)):
        pixels[:, :, 0] = noise((61, 83), dtype)
    resized = resample(pixels, 20, 17, "lanczos")
    assert (resized.shape, resized.dtype) == ((17, 20, *channels), dtype)
    assert abs(resized - by_hand(pixels, 20, 17)).max() <= 1


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_what_is_transparent_has_no_colour_that_could_leak(dtype):
    """A red image, transparent where it is green: no green is left."""
    peak = np.iinfo(dtype).max
    pixels = np.zeros((40, 40, 4), dtype)
    pixels[:, :20] = (peak, 0, 0, peak)
    pixels[:, 20:] = (0, peak, 0, 0)
    resized = resample(pixels, 7, 7, "lanczos")
    red, green, blue, alpha = np.moveaxis(resized, 2, 0)
    assert not green.any()
    assert not blue.any()
    np.testing.assert_array_equal(red, np.where(alpha > 0, peak, 0))
    assert {alpha[0, 0], alpha[0, -1]} == {peak, 0}


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_nearest_takes_the_values_in_the_middle(old_width, old_height, data):
    width, height = data.draw(st.integers(1, old_width)), data.draw(st.integers(1, old_height))
    labels = noise((old_height, old_width), np.uint16)
    resized = resample(labels, width, height, "nearest")
    for y in range(height):
        for x in range(width):
            assert resized[y, x] == labels[int((y + 0.5) * old_height / height), int((x + 0.5) * old_width / width)]


# ---- The command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path):
    write_png(tmp_path / "src" / "large.png", smooth_image((120, 160, 3), np.uint8))
    write_png(tmp_path / "src" / "small.png", noise((40, 30, 3)))
    return tmp_path / "src"


def read(path):
    data = path.read_bytes()
    return dali_l3.decode(data), dali_l3.read_metadata(data)


def test_report_and_metadata_say_so(run, tree, tmp_path):
    command = ("convert", tree, tmp_path / "dst", "--resize-shorter", 48, "--report", tmp_path / "report")
    code, _, err = run(*command)
    assert code == 0
    assert f"note: made smaller (--resize-shorter 48): 1 file\n  {tree}/large.png" in err
    pixels, metadata = read(tmp_path / "dst" / "large.l3")
    np.testing.assert_array_equal(pixels, resample(smooth_image((120, 160, 3), np.uint8), 64, 48, "lanczos"))
    assert metadata == {"resized": b"160x120 lanczos"}
    pixels, metadata = read(tmp_path / "dst" / "small.l3")
    np.testing.assert_array_equal(pixels, noise((40, 30, 3)))
    assert metadata == {}
    report = {os.path.basename(line["source"]): line for line in map(json.loads, (tmp_path / "report").open())}
    assert report["large.png"]["notes"] == ["made smaller (--resize-shorter 48)"]
    assert report["large.png"]["raw_size"] == 64 * 48 * 3
    assert report["small.png"]["notes"] == []


def test_there_is_room_to_say_so_beside_all_metadata(run, tmp_path):
    packet = bytes((1 << 24) - 129)
    chunk = png_chunk(b"iTXt", b"XML:com.adobe.xmp" + bytes(5) + packet)
    (tmp_path / "a.png").write_bytes(png(noise((1, 60_000, 1)), 8, 0, chunk))
    assert run("convert", tmp_path / "a.png", tmp_path / "a.l3", "--resize-longer", 59_999)[0] == 0
    assert read(tmp_path / "a.l3")[1] == {"xmp": packet, "resized": b"60000x1 lanczos"}


def test_the_upright_image_is_measured(run, tmp_path):
    (tmp_path / "a.png").write_bytes(png(noise((10, 40, 3)), 8, 2, png_chunk(b"eXIf", exif(6))))
    assert run("convert", tmp_path / "a.png", tmp_path / "a.l3", "--resize-longer", 20)[0] == 0
    assert dali_l3.peek((tmp_path / "a.l3").read_bytes()).shape == (20, 5, 3)


def test_later_runs_keep_what_has_the_size_that_is_asked_for(run, tree, tmp_path):
    def convert(*options):
        return run("convert", tree, tmp_path / "dst", *options)[2]

    convert("--resize-shorter", 48)
    assert "2 kept" in convert("--resize-shorter", 48)
    assert "2 kept" in convert("--resize-longer", 64)
    assert "1 converted, 1 kept" in convert("--resize-shorter", 48, "--resize-filter", "nearest")
    assert "2 converted" in convert("--resize-shorter", 20)
    assert "2 converted" in convert()
    assert read(tmp_path / "dst" / "large.l3")[0].shape == (120, 160, 3)
    assert "1 converted, 1 kept" in convert("--resize-pixels", 5000)
    assert read(tmp_path / "dst" / "large.l3")[0].shape == (61, 81, 3)


def test_a_mix_records_the_size_and_refuses_others(run, tree, tmp_path):
    command = ("convert", tree, tmp_path / "dst", "--mix", "l3-fast:1,bmp:1", "--resize-shorter")
    assert run(*command, 36)[0] == 0
    assert json.loads((tmp_path / "dst" / "dali_l3_mix.json").read_text())["resize"] == "--resize-shorter 36"
    assert "2 kept" in run(*command, 36)[2]
    code, _, err = run(*command, 35)
    assert code == 2
    assert "was made with --mix l3-fast:1,bmp:1 --seed 0 --resize-shorter 36; continue with these settings" in err


def test_labels_keep_their_numbers_and_fit_their_images(run, tmp_path):
    labels = noise((120, 160)) % 5
    write_png(tmp_path / "masks" / "a.png", labels)
    options = ("--resize-shorter", 48, "--resize-filter", "nearest", "--palette", "index")
    assert run("convert", tmp_path / "masks", tmp_path / "dst", *options)[0] == 0
    pixels, metadata = read(tmp_path / "dst" / "a.l3")
    assert pixels.shape == (48, 64)
    assert set(np.unique(pixels)) <= set(range(5))
    assert metadata == {"resized": b"160x120 nearest"}


def test_deep_images_with_alpha_stay_so(run, tmp_path):
    write_png(tmp_path / "src" / "a.png", smooth_image((60, 80, 4), np.uint16))
    assert run("convert", tmp_path / "src", tmp_path / "dst", "--resize-pixels", 1200)[0] == 0
    assert run("export", tmp_path / "dst", tmp_path / "back")[0] == 0
    pixels = imagecodecs.png_decode((tmp_path / "back" / "a.png").read_bytes())
    assert (pixels.shape, pixels.dtype) == ((30, 40, 4), np.uint16)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--resize-shorter", 9, "--palette", "index"), "add --resize-filter nearest"),
        (("--resize-filter", "nearest"), "--resize-filter needs --resize-shorter"),
        (("--resize-shorter", 0), "--resize-shorter"),
        (("--resize-shorter", 9, "--mix", "source:1,bmp:1"), "--resize-shorter 9: files that stay as they are"),
    ],
)
def test_requests_that_make_no_sense(run, tree, tmp_path, options, message):
    code, _, err = run("convert", tree, tmp_path / "dst", *options)
    assert code == 2
    assert message in err
    assert not (tmp_path / "dst").exists()
