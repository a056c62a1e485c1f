"""The sweep of lossy formats: sizes, PSNR and SSIM against scikit-image, on files that DALI decodes."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import smooth_image
from PIL import Image
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from dali_l3.profiling import quality
from dali_l3.profiling.encoding import encode_sample
from dali_l3.profiling.measuring import Setting
from dali_l3.profiling.quality import ssim, sweep
from image_files import write_png

pytestmark = pytest.mark.usefixtures("plugin", "one_process")

SETTING = Setting(batch_size=2, threads=1, seconds=0.01)
SHAPES = [(40, 60, 3), (33, 47, 3), (50, 41)]


@pytest.fixture(autouse=True)
def measuring_here(monkeypatch):
    """Measures in this process. test_profile_measuring.py does so in processes of their own."""
    monkeypatch.setattr(quality, "call_isolated", lambda function, *rest, **keywords: function(*rest, **keywords))


def images(shapes, dtype=np.uint8):
    return [smooth_image(shape, dtype, seed) for seed, shape in enumerate(shapes)]


def encoded(folder, pixels, formats):
    """A sample of `pixels` in these formats."""
    paths = [str(write_png(folder / "source" / f"{number}.png", each)) for number, each in enumerate(pixels)]
    work = folder / "work"
    work.mkdir()
    return encode_sample(paths, formats, str(work), announced=10**8)


@pytest.mark.parametrize("lossless", ["png", "l3-fast", "bmp"])
def test_figures_are_those_of_scikit_image(tmp_path, lossless):
    originals = images(SHAPES)
    sample = encoded(tmp_path, originals, [lossless, "jpeg@60"])
    (found,) = sweep(["jpeg@60"], sample, SETTING)

    paths = sample.paths("jpeg@60")
    decoded = [np.asarray(Image.open(path)) for path in paths]
    assert all(path.endswith(".jpg") for path in paths)
    psnr = [peak_signal_noise_ratio(*pair) for pair in zip(originals, decoded, strict=True)]
    similarity = [
        structural_similarity(original, changed, channel_axis=2 if original.ndim == 3 else None)
        for original, changed in zip(originals, decoded, strict=True)
    ]
    assert found.psnr == pytest.approx(np.mean(psnr))
    assert found.least_psnr == pytest.approx(min(psnr))
    assert found.ssim == pytest.approx(np.mean(similarity))
    assert found.ssim < 0.99
    assert found.images == len(originals)
    assert found.image_bytes == pytest.approx(np.mean([file.size for file in sample.files["jpeg@60"]]))
    assert found.pixel_bytes == pytest.approx(np.mean([original.nbytes for original in originals]))
    assert found.lossless_bytes == pytest.approx(np.mean([file.size for file in sample.files[lossless]]))
    assert found.decode.mean > 0


def test_more_quality_is_larger_and_closer_to_the_original(tmp_path):
    names = ["jpeg@30", "jpeg@95", "webp@30", "webp@95"]
    sample = encoded(tmp_path, images(SHAPES[:2]), ["png", "bmp", *names])
    steps = []
    found = sweep(names, sample, SETTING, lambda *step: steps.append(step))
    assert [each.format for each in found] == names
    assert steps == [(f"measuring {name}", number, 4) for number, name in enumerate(names)]
    for low, high in (found[:2], found[2:]):
        assert low.image_bytes < high.image_bytes
        assert low.psnr < high.psnr
        assert low.ssim < high.ssim
    # The smallest of the lossless formats is what sizes are compared with.
    assert {each.lossless_bytes for each in found} == {np.mean([file.size for file in sample.files["png"]])}


def test_images_that_a_format_cannot_hold_are_counted_out(tmp_path):
    pixels = [*images([(40, 60, 3)], np.uint16), *images([(40, 60, 3), (41, 61)])]
    sample = encoded(tmp_path, pixels, ["l3-raw", "jpeg@80", "webp@80"])
    assert {name: sample.replaced(name) for name in sample.files} == {"l3-raw": 0, "jpeg@80": 1, "webp@80": 2}
    jpeg, webp = sweep(["jpeg@80", "webp@80"], sample, SETTING)
    assert (jpeg.images, webp.images) == (2, 1)
    assert jpeg.image_bytes == np.mean([file.size for file in sample.files["jpeg@80"][1:]])
    assert webp.image_bytes == sample.files["webp@80"][1].size
    assert webp.pixel_bytes == 40 * 60 * 3
    assert webp.lossless_bytes == sample.files["l3-raw"][1].size


def test_a_format_that_holds_no_image_is_left_out(tmp_path):
    sample = encoded(tmp_path, images([(40, 60)], np.uint16), ["png", "jpeg@80"])
    assert sweep(["jpeg@80"], sample, SETTING) == []


def test_originals_that_a_lossless_format_cannot_hold_are_l3(tmp_path):
    pixels = [np.dstack([images([(40, 60, 3)])[0], np.full((40, 60), 7, np.uint8)])]
    sample = encoded(tmp_path, pixels, ["bmp", "webp@50"])
    assert {name: sample.replaced(name) for name in sample.files} == {"bmp": 1, "webp@50": 0}
    assert 0 < sweep(["webp@50"], sample, SETTING)[0].ssim < 1


def test_without_a_lossless_format_there_is_nothing_to_compare_with(tmp_path):
    sample = encoded(tmp_path, images(SHAPES), ["jpeg@80", "webp@80"])
    (found,) = sweep(["jpeg@80"], sample, SETTING)
    assert (found.ssim, found.lossless_bytes) == (None, None)
    assert found.psnr > 20


def test_pixels_that_did_not_change_have_no_psnr(tmp_path):
    sample = encoded(tmp_path, [np.full((16, 16), 128, np.uint8)], ["png", "jpeg@80"])
    (found,) = sweep(["jpeg@80"], sample, SETTING)
    assert (found.psnr, found.least_psnr, found.ssim) == (None, None, 1.0)


def test_at_most_8_images_are_compared_evenly_spread(tmp_path, monkeypatch):
    compared = []
    monkeypatch.setattr("dali_l3.profiling.quality.ssim", lambda changed, _: compared.append(changed.shape[1]) or 0.5)
    sample = encoded(tmp_path, images([(8, 10 + number, 3) for number in range(35)]), ["png", "jpeg@80"])
    assert sweep(["jpeg@80"], sample, SETTING)[0].ssim == 0.5
    assert compared == [10 + number for number in range(0, 35, 5)]


@pytest.mark.parametrize("shape", [(7, 7), (7, 9, 3), (20, 30, 4)])
def test_ssim(shape):
    original = smooth_image(shape, np.uint8)
    assert ssim(original, original) == 1
    assert ssim(255 - original, original) < 1


@pytest.mark.parametrize("shape", [(6, 90), (90, 6, 3), (1, 1)])
def test_images_smaller_than_the_window_have_no_ssim(shape):
    pixels = np.zeros(shape, np.uint8)
    assert ssim(pixels, pixels) is None
