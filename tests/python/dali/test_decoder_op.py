"""The operator decoders.l3 against numpy and against DALI's own decoders on the same pixels as PNG."""

import contextlib
import json
import os
import pathlib
import re

import numpy as np
import pytest
from nvidia.dali import Pipeline, fn, ops, pipeline_def, types
from PIL import Image

import dali_l3
from image_files import saved
from pipelines import (
    CONVERSIONS,
    DTYPES,
    OUTPUT_TYPES,
    as_l3,
    as_png,
    decode_batch,
    decode_files,
    decode_one,
    run_batch,
    sample_pixels,
)
from versions import IMAGE_DECODER, image_decoders, since
from waiting import wait_until

pytestmark = pytest.mark.usefixtures("plugin")

DATA = pathlib.Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def image():
    """A small colour image of several tiles, its PNG and its L3."""
    pixels = np.random.default_rng(1).integers(0, 256, (150, 200, 3), np.uint8)
    return pixels, as_png(pixels), as_l3(pixels)


def l3(*inputs, **arguments):
    return fn.decoders.l3(*inputs, **arguments)


# ---- Pixels ----


@pytest.mark.parametrize("profile", ["raw", "paper", "fast"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_any_data_gives_back_what_was_encoded(profile, dtype, channels):
    pixels = sample_pixels(8 * np.dtype(dtype).itemsize, channels)
    kept = DTYPES["UINT8" if dtype == np.uint8 else "UINT16"]
    decoded = decode_one(l3, as_l3(pixels, profile=profile), output_type=types.ANY_DATA, dtype=kept)
    np.testing.assert_array_equal(decoded, pixels, strict=True)


@pytest.mark.parametrize(
    ("bits", "arguments", "warnings"),
    [(16, {}, 1), (16, {"dtype": types.UINT8}, 0), (16, {"dtype": types.UINT16}, 0), (8, {}, 0)],
)
def test_narrowing_that_nobody_asked_for_is_said_once_a_pipeline(tmp_path, capfd, bits, arguments, warnings):
    for name in ("a.l3", "b.l3"):
        dali_l3.imwrite(tmp_path / name, sample_pixels(bits, 1))
    for _ in range(2):
        pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
        with pipe:
            encoded, _ = fn.readers.file(files=[str(tmp_path / name) for name in ("a.l3", "b.l3")])
            pipe.set_outputs(fn.decoders.l3(encoded, **arguments))
        for _ in range(4):
            pipe.run()
        said = capfd.readouterr().err
        named = re.findall("decoders.l3: (.*) has 16 bits, of which dtype=UINT8, the default, keeps 8", said)
        assert named == [str(tmp_path / "a.l3")] * warnings


def test_two_dimensional_images_become_one_channel():
    pixels = sample_pixels(8, 1)
    decoded = decode_one(l3, dali_l3.encode(pixels[..., 0]), output_type=types.ANY_DATA)
    np.testing.assert_array_equal(decoded, pixels, strict=True)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize(("channels", "output_type"), CONVERSIONS)
def test_conversions_equal_those_of_png(bits, channels, output_type):
    pixels = sample_pixels(bits, channels)
    png, encoded = as_png(pixels), as_l3(pixels, profile="raw")
    for name, dtype in DTYPES.items():
        arguments = {"output_type": OUTPUT_TYPES[output_type], "dtype": dtype}
        expected = decode_one(image_decoders.image, png, **arguments)
        np.testing.assert_array_equal(decode_one(l3, encoded, **arguments), expected, err_msg=name, strict=True)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize(("channels", "output_type"), CONVERSIONS)
def test_float16_is_float_rounded_once_more(bits, channels, output_type):
    # DALI's own decoders have no FLOAT16. The last step is numpy's here.
    encoded = as_l3(sample_pixels(bits, channels), profile="raw")
    exact, half = (
        decode_one(l3, encoded, output_type=OUTPUT_TYPES[output_type], dtype=dtype)
        for dtype in (types.FLOAT, types.FLOAT16)
    )
    np.testing.assert_array_equal(half, exact.astype(np.float16), strict=True)


def test_the_defaults_are_rgb_and_uint8():
    pixels = sample_pixels(16, 4)
    expected = decode_one(image_decoders.image, as_png(pixels))
    np.testing.assert_array_equal(decode_one(l3, as_l3(pixels)), expected, strict=True)


def test_a_batch_mixes_sizes_depths_and_channels():
    images = [
        sample_pixels(bits, channels)[: 70 * channels, : 30 * channels] for bits in (8, 16) for channels in (1, 2, 3, 4)
    ]
    decoded = decode_batch(l3, [as_l3(pixels) for pixels in images])
    expected = decode_batch(image_decoders.image, [as_png(pixels) for pixels in images])
    for got, wanted in zip(decoded, expected, strict=True):
        np.testing.assert_array_equal(got, wanted, strict=True)


@pytest.mark.parametrize("width", [3, 63, 64, 65, 1999])
def test_output_beyond_the_cache(width):
    # More than the 4 MiB from which on stores bypass the cache, with rows that are aligned and rows that are not.
    pixels = np.random.default_rng(width).integers(0, 256, (2_000_000 // width, width, 3), np.uint8)
    np.testing.assert_array_equal(decode_one(l3, as_l3(pixels, profile="raw")), pixels, strict=True)


# ---- Regions ----

CROPS = [
    {},
    {"crop": (50, 60)},
    {"crop": (50.9, 60.2)},
    {"crop": (0, 60)},
    {"crop": (50, 0)},
    {"crop": (1, 1), "crop_pos_x": 1.0, "crop_pos_y": 0.0},
    {"crop": (150, 200)},
    {"crop_h": 33, "crop_w": 77, "crop_pos_x": 0.31},
    {"crop_h": 33, "crop_w": 77, "crop_pos_x": 0.77, "crop_pos_y": 0.35, "rounding": "truncate"},
    {"crop_pos_x": 0.1},
]

SLICES = [
    {"start": (10, 20), "end": (64, 65)},
    {"start": (10, 20), "shape": (64, 65)},
    {"start": 10},
    {"end": (70, 80)},
    {"shape": (70, 80)},
    {"rel_start": (0.1, 0.25), "rel_end": (0.333, 0.777)},
    {"rel_start": (0.1, 0.25), "rel_shape": (0.333, 0.5)},
    {"rel_start": (0.1, 0.25), "shape": (33, 44)},
    {"start": (13, 14), "rel_shape": (0.333, 0.5)},
    {"rel_end": 0.75},
    {"start": (10, 20), "end": (64, 65), "axis_names": "HW"},
    {"start": (10, 20), "end": (64, 65), "axes": (0, 1)},
    {"start": (10,), "end": (64,), "axes": (-1,)},
    {"start": (10,), "end": (64,), "axis_names": "H"},
]

INPUT_SLICES = [
    (np.float32([0.1, 0.2]), np.float32([0.35, 0.45]), {}),
    (np.int32([10, 20]), np.int32([64, 65]), {}),
    (np.int64([10, 20]), np.int64([64, 65]), {"axes": (0, 1)}),
    (np.float32([10, 20]), np.float32([0.35, 0.45]), {"normalized_anchor": False}),
    (np.float32([0.1, 0.2]), np.float32([64, 65.6]), {"normalized_shape": False}),
    (np.float32([0.3]), np.float32([0.2]), {"axis_names": "W"}),
]


@pytest.mark.parametrize("arguments", CROPS, ids=str)
def test_crops_equal_image_crop(image, arguments):
    _, png, encoded = image
    expected = decode_one(image_decoders.image_crop, png, **arguments)
    np.testing.assert_array_equal(decode_one(l3, encoded, **arguments), expected, strict=True)


@pytest.mark.parametrize("arguments", SLICES, ids=str)
def test_slices_equal_image_slice(image, arguments):
    _, png, encoded = image
    expected = decode_one(image_decoders.image_slice, png, **arguments)
    np.testing.assert_array_equal(decode_one(l3, encoded, **arguments), expected, strict=True)


@pytest.mark.parametrize(("anchor", "shape", "arguments"), INPUT_SLICES, ids=str)
def test_slices_by_inputs_equal_image_slice(image, anchor, shape, arguments):
    _, png, encoded = image
    expected = decode_one(image_decoders.image_slice, png, anchor, shape, **arguments)
    np.testing.assert_array_equal(decode_one(l3, encoded, anchor, shape, **arguments), expected, strict=True)


@pytest.mark.parametrize(
    ("reference", "arguments"),
    [
        ("image_crop", {"crop_h": [40, 50], "crop_w": [60, 30], "crop_pos_x": [0.2, 0.9], "crop_pos_y": [0.5, 1]}),
        ("image_crop", {"crop": [[40, 60], [50, 30]]}),
        ("image_slice", {"rel_start": [[0.1, 0.2], [0.3, 0.4]], "shape": [[40, 60], [50, 30]]}),
        ("image_slice", {"start": [[1], [2]], "end": [[64], [65]], "axes": [[0], [1]]}),
    ],
    ids=str,
)
def test_regions_may_differ_from_sample_to_sample(image, reference, arguments):
    _, png, encoded = image
    integers = ("start", "end", "shape", "axes")
    tensors = {
        name: [np.array(value, np.int32 if name in integers else np.float32) for value in values]
        for name, values in arguments.items()
    }
    expected = decode_batch(getattr(image_decoders, reference), [png, png], **tensors)
    for got, wanted in zip(decode_batch(l3, [encoded, encoded], **tensors), expected, strict=True):
        np.testing.assert_array_equal(got, wanted, strict=True)


@pytest.mark.parametrize("output_type", OUTPUT_TYPES)
@pytest.mark.parametrize("bits", [8, 16])
def test_regions_are_converted(bits, output_type):
    pixels = sample_pixels(bits, 3)
    arguments = {"output_type": OUTPUT_TYPES[output_type], "crop": (101, 77), "crop_pos_x": 0.7}
    expected = decode_one(image_decoders.image_crop, as_png(pixels), **arguments)
    np.testing.assert_array_equal(decode_one(l3, as_l3(pixels), **arguments), expected, strict=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"crop": (151, 10)}, "rows -1..150 and columns 95..105 is .* not inside the image, whose height is 150"),
        ({"start": (190, 0), "shape": (11, 5)}, "columns 190..201 .* not inside"),
        ({"start": (-1, 0), "shape": (11, 5)}, "columns -1..10 .* not inside"),
        ({"start": (10, 0), "end": (10, 5)}, "columns 10..10 is empty"),
        ({"start": (10, 0), "end": (9, 5)}, "columns 10..9 is empty"),
        ({"rel_start": (float("nan"), 0)}, "coordinate nan is out of range"),
        ({"rel_start": (1e30, 0)}, "coordinate 2e\\+32 is out of range"),
        ({"crop": (1e30, 1)}, "crop of 1e\\+30 pixels is out of range"),
        ({"crop": (10, 10), "crop_pos_x": 1.5}, "`crop_pos_x` must be within 0 and 1, not 1.5"),
        ({"crop_h": 10}, "`crop_w` and `crop_h` must be given together"),
        ({"crop": (10, 10), "crop_h": 10, "crop_w": 10}, "`crop` cannot be combined with `crop_h` and `crop_w`"),
        ({"crop": (10, 10), "rounding": "up"}, '`rounding` must be "round" or "truncate", not "up"'),
        ({"start": (1, 1), "rel_start": (0.1, 0.1)}, "`start` and `rel_start` exclude each other"),
        ({"end": (9, 9), "shape": (5, 5)}, "`end`, `rel_end`, `shape` and `rel_shape` exclude each other"),
        ({"start": (1, 1), "axes": (0, 1), "axis_names": "HW"}, "`axes` and `axis_names` exclude each other"),
        ({"start": (1, 1), "axes": (1, -1)}, "`axes` must not name an axis twice"),
        ({"start": (1,), "axes": (2,)}, "axis 2 does not exist"),
        ({"start": (1,), "axis_names": "C"}, "`axis_names` may name H and W"),
        ({"output_type": types.RGB, "dtype": types.FLOAT64}, "`dtype` must be"),
    ],
    ids=str,
)
def test_wrong_arguments(image, arguments, message):
    with pytest.raises((ValueError, RuntimeError), match=message):
        decode_one(l3, image[2], **arguments)


CROP_ARGUMENTS = [
    {"crop": (10, 10)},
    {"crop_h": 10, "crop_w": 10},
    {"crop_pos_x": 0.1},
    {"crop_pos_y": 0.5},  # given, although it is the default
    {"rounding": "round"},
    {"crop": [np.float32([10, 10])]},  # a tensor
    {"crop_pos_x": [np.float32(0.1)]},
]

SLICE_ARGUMENTS = [
    {"start": (1, 1)},
    {"rel_start": (0.1, 0.1)},
    {"end": (9, 9)},
    {"rel_end": (0.9, 0.9)},
    {"shape": (9, 9)},
    {"rel_shape": (0.9, 0.9)},
    {"axes": (1, 0)},
    {"axis_names": "WH"},
    {"normalized_anchor": True},
    {"normalized_shape": True},
    {"start": [np.int32([1, 1])]},
]


@pytest.mark.parametrize("slice_argument", SLICE_ARGUMENTS, ids=str)
@pytest.mark.parametrize("crop_argument", CROP_ARGUMENTS, ids=str)
def test_crop_and_slice_arguments_exclude_each_other(image, crop_argument, slice_argument):
    names = f"`{next(iter(crop_argument))}` is one of the former, `{next(iter(slice_argument))}` of the latter"
    with pytest.raises(ValueError, match=f"either by crop arguments or by slice arguments, not by both: {names}"):
        decode_one(l3, image[2], **crop_argument, **slice_argument)


@pytest.mark.parametrize("crop_argument", CROP_ARGUMENTS, ids=str)
def test_crop_arguments_and_slices_by_inputs_exclude_each_other(image, crop_argument):
    names = f"`{next(iter(crop_argument))}` is one of the former, the input `anchor` of the latter"
    with pytest.raises(ValueError, match=names):
        decode_one(l3, image[2], np.int32([1, 2]), np.int32([3, 4]), **crop_argument)


def test_positional_and_named_slices_exclude_each_other(image):
    anchor, shape = np.int32([1, 2]), np.int32([3, 4])
    with pytest.raises(ValueError, match="cannot be combined with `start`"):
        decode_one(l3, image[2], anchor, shape, start=(1, 1))
    with pytest.raises(ValueError, match="takes both, anchor and shape"):
        decode_one(l3, image[2], anchor)
    with pytest.raises(ValueError, match="one value for each axis, 2 in all, not 3"):
        decode_one(l3, image[2], np.int32([1, 2, 3]), np.int32([3, 4, 5]))
    with pytest.raises(ValueError, match="same type"):
        decode_one(l3, image[2], anchor, np.float32([3, 4]))


# ---- Errors ----


@pytest.fixture
def folder(tmp_path, image):
    """Four good files, which a test may break."""
    paths = [tmp_path / f"{i}.l3" for i in range(4)]
    for path in paths:
        path.write_bytes(image[2])
    return paths


def patched(data, position, value):
    return data[:position] + bytes([value]) + data[position + 1 :]


@pytest.mark.parametrize(
    ("break_file", "reason"),
    [
        (lambda data: data[:-20], "truncated"),
        (lambda data: data[:10], "truncated"),
        (lambda data: b"\x89PNG" + data[4:], "not an L3 file"),
        (lambda data: patched(data, 8, 9), "version"),
        (lambda data: patched(data, 12, data[12] ^ 1), "checksum"),
        (lambda data: patched(data, len(data) // 2, data[len(data) // 2] ^ 1), "tile .* checksum"),
    ],
)
def test_a_broken_file_is_named_with_the_reason(folder, break_file, reason):
    folder[2].write_bytes(break_file(folder[2].read_bytes()))
    with pytest.raises(RuntimeError, match=re.escape(f"sample #2 ({folder[2]}): ") + ".*" + reason):
        decode_files(l3, folder, verify=True)


def test_the_first_broken_file_is_the_one_that_is_named(folder):
    for path in folder[1:]:
        data = path.read_bytes()
        path.write_bytes(patched(data, len(data) // 2, data[len(data) // 2] ^ 1))
    for _ in range(10):
        with pytest.raises(RuntimeError, match=re.escape(f"sample #1 ({folder[1]})")):
            decode_files(l3, folder, verify=True)


def test_verify_decides_whether_checksums_are_checked(image):
    pixels, _, _ = image
    data = as_l3(pixels, profile="raw")
    broken = patched(data, len(data) // 2, data[len(data) // 2] ^ 1)
    assert np.count_nonzero(decode_one(l3, broken, verify=False) != pixels) == 1
    with pytest.raises(RuntimeError, match="checksum does not match"):
        decode_one(l3, broken, verify=True)


@pytest.mark.parametrize("decoder", ["l3", "image"])
@pytest.mark.parametrize("profile", ["raw", "paper", "fast"])
def test_checksums_are_checked_by_default(image, profile, decoder, capfd):
    data = as_l3(image[0], profile=profile)
    broken = patched(data, -17, data[-17] ^ 1)  # in the last tile: 16 bytes of trailer follow it
    with pytest.raises(RuntimeError, match="Failed to decode") as caught:
        decode_one(l3 if decoder == "l3" else image_decoders.image, broken)
    assert "the checksum does not match" in str(caught.value) + capfd.readouterr().err


LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def test_a_pointer_of_git_lfs_is_named(folder):
    folder[1].write_bytes(LFS_POINTER)
    message = f"sample #1 ({folder[1]}): it is a Git LFS pointer, not an image: run 'git lfs pull'"
    with pytest.raises(RuntimeError, match=re.escape(message)):
        decode_files(l3, folder)


IMAGE_DECODER_HELPS = f"use {IMAGE_DECODER}, which decodes both"


def image_file(pillow_format="PNG"):
    return saved(Image.new("RGB", (70, 60)), format=pillow_format)


@pytest.mark.parametrize(
    ("format", "pillow_format"),
    [
        ("PNG", "PNG"),
        ("JPEG", "JPEG"),
        ("JPEG 2000", "JPEG2000"),
        ("TIFF", "TIFF"),
        ("WebP", "WEBP"),
        ("BMP", "BMP"),
        ("PNM", "PPM"),
    ],
)
def test_the_decoder_that_takes_other_images_is_named(folder, format, pillow_format):
    """And does take them: it decodes the same batch."""
    folder[1].write_bytes(image_file(pillow_format))
    message = f"sample #1 ({folder[1]}): not an L3 file but {format}: {IMAGE_DECODER_HELPS}"
    with pytest.raises(RuntimeError, match=re.escape(message)):
        decode_files(l3, folder)
    assert decode_files(image_decoders.image, folder)[1].shape == (60, 70, 3)


def test_the_decoder_that_takes_other_images_is_named_with_zeros(image, capfd):
    run_batch(l3, [image[2], image_file()], on_error="zeros")
    assert f"not an L3 file but PNG: {IMAGE_DECODER_HELPS}" in capfd.readouterr().err


@pytest.mark.parametrize("content", [b"GIF89a", b"P7\n", b"\x93NUMPY", b"\x89PNG", b"text"])
def test_no_decoder_is_named_for_what_none_takes(folder, content):
    folder[1].write_bytes(content + bytes(100))
    with pytest.raises(RuntimeError, match=re.escape(f"({folder[1]}): not an L3 file: the signature")) as caught:
        decode_files(l3, folder)
    assert "decoders.image" not in str(caught.value)


def test_the_input_must_be_bytes():
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline():
        return fn.decoders.l3(fn.external_source(source=lambda: [np.zeros(100, np.int32)], batch=True))

    with pytest.raises(ValueError, match="must hold the bytes of encoded files as uint8, not int32"):
        pipeline().run()


def test_an_empty_sample_is_an_error():
    with pytest.raises(RuntimeError, match="sample #0 .*: "):
        decode_one(l3, b"")


def test_cpu_and_mixed_are_offered():
    assert "decoders__L3" in ops.cpu_ops()
    assert "decoders__L3" in ops.mixed_ops()
    assert "decoders__L3" not in ops.gpu_ops()


@pytest.mark.parametrize("device_id", [None, 0])
def test_mixed_without_a_gpu_is_an_error_of_dali(device_id, run_python):
    # Without devices to see, a machine with a GPU is one without.
    printed = run_python(
        f"""
import numpy as np
import dali_l3
from nvidia.dali import fn, pipeline_def

@pipeline_def(batch_size=1, num_threads=1, device_id={device_id})
def pipeline():
    return fn.decoders.l3(fn.external_source(lambda: [np.zeros(100, np.uint8)]), device="mixed")

try:
    pipeline().run()
except RuntimeError as error:
    print(error)
""",
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    assert re.search("requires a CUDA-capable GPU|while CUDA is not available", printed)


# ---- Zeros in the place of what cannot be decoded ----


def flipped(position):
    """Flips a bit."""
    return lambda data: patched(data, position, data[position] ^ 1)


def with_damaged_tile(data):
    """Damages tile 5 of 4 x 3, which regions in the middle of the image touch."""
    payload = 48 + 4 * (12 + 1) + 4 * 12
    offset = int.from_bytes(data[48 + 4 * 5 : 48 + 4 * 6], "little")
    return flipped(payload + offset)(data)


# What breaks a file, and whether its header still tells the image's size.
BREAKS = {
    "tile": (with_damaged_tile, True),
    "offset table": (flipped(52), True),
    "cut in the last tile": (lambda data: data[:-20], True),
    "cut in the tables": (lambda data: data[:100], True),
    "header": (flipped(12), False),
    "cut in the header": (lambda data: data[:40], False),
    "version": (lambda data: patched(data, 8, 2), False),
    "another format": (lambda data: b"\x89PNG" + data[4:], False),
    "empty": (lambda data: b"", False),
    "pointer of Git LFS": (lambda data: LFS_POINTER, False),
}


def or_zeros(files, *inputs, **arguments):
    """The images and which of them are valid."""
    return run_batch(l3, files, *inputs, on_error="zeros", **arguments)


@pytest.mark.parametrize("fault", BREAKS)
class TestZeros:
    def test_take_the_place_of_a_broken_image(self, image, fault):
        pixels, _, encoded = image
        break_file, _ = BREAKS[fault]
        images, valid = or_zeros([encoded, break_file(encoded), encoded])
        np.testing.assert_array_equal(valid, np.array([True, False, True]), strict=True)
        np.testing.assert_array_equal(images[0], pixels, strict=True)
        np.testing.assert_array_equal(images[1], np.zeros_like(pixels), strict=True)
        np.testing.assert_array_equal(images[2], pixels, strict=True)

    @pytest.mark.parametrize(
        ("arguments", "shape"),
        [
            ({"output_type": types.GRAY, "dtype": types.FLOAT}, (150, 200, 1)),
            ({"output_type": types.ANY_DATA, "dtype": types.INT16}, (150, 200, 3)),
            ({"crop": (50, 60)}, (50, 60, 3)),
            ({"rel_start": (0.5, 0.5)}, (75, 100, 3)),
        ],
        ids=str,
    )
    def test_have_the_shape_that_the_image_would_have_had(self, image, fault, arguments, shape):
        """Where its own header does not tell that, another image of the batch does."""
        break_file, tells_size = BREAKS[fault]
        broken = break_file(image[2])
        images, valid = or_zeros([broken, image[2]], **arguments)
        assert list(valid) == [False, True]
        assert images[0].shape == images[1].shape == shape
        assert images[0].dtype == images[1].dtype
        assert not images[0].any()
        if tells_size:
            smaller = as_l3(image[0][:80, :90])
            (zeros, _), _ = or_zeros([broken, smaller], **arguments)
            assert zeros.shape == shape


@pytest.mark.parametrize("fault", [fault for fault in BREAKS if fault != "tile"])
def test_zeros_are_a_pixel_or_of_the_size_of_the_region_where_no_image_is_known(image, fault):
    break_file, tells_size = BREAKS[fault]

    def shapes(**arguments):
        images, valid = or_zeros([break_file(image[2])] * 2, **arguments)
        assert not any(valid)
        return {array.shape for array in images}

    assert shapes() == {(150, 200, 3) if tells_size else (1, 1, 3)}
    assert shapes(output_type=types.ANY_DATA) == {(150, 200, 3) if tells_size else (1, 1, 1)}
    assert shapes(crop=(50, 60)) == {(50, 60, 3)}
    assert shapes(start=(10, 20), end=(64, 65), axis_names="HW") == {(54, 45, 3)}
    assert shapes(start=(200, 150), shape=(7, 8)) == {(8, 7, 3)}  # outside of the image; axes are W and H by default
    assert shapes(start=(200, 150)) == {(1, 1, 3)}


def test_zeros_of_the_broken_files_of_the_catalogue(image):
    """Whatever a file claims, zeros do not take more memory than its neighbours and its own bytes explain."""
    verdicts = json.loads((DATA / "broken.json").read_text(encoding="utf-8"))
    refused = [name for name, verdict in verdicts.items() if verdict["verify"] != "ok"]
    files = [(DATA / "broken" / name).read_bytes() for name in refused]
    images, valid = or_zeros([*files, image[2]])
    assert list(valid) == [False] * len(files) + [True]
    for file, array in zip(files, images, strict=False):
        assert not array.any()
        assert array.nbytes <= max(image[0].nbytes, 64 * 64 * 3 * (len(file) // 4))
    np.testing.assert_array_equal(images[-1], image[0])


def test_zeros_of_an_image_of_many_damaged_tiles(capfd):
    """Pieces of it are decoded by several threads: the first damaged tile is named, and nothing of the others stays."""
    pixels = np.random.default_rng(4).integers(0, 256, (640, 1280, 3), np.uint8)
    damaged = bytearray(as_l3(pixels, profile="raw"))
    payload, tile_size = len(damaged) - 16 - pixels.nbytes, 64 * 64 * 3
    for tile in range(49, 200, 3):
        damaged[payload + tile * tile_size] ^= 1
    for _ in range(5):
        (zeros,), (valid,) = or_zeros([bytes(damaged)], threads=4)
        assert not valid
        np.testing.assert_array_equal(zeros, np.zeros_like(pixels), strict=True)
    reports = set(re.findall("gives zeros for .*", capfd.readouterr().err))
    assert reports == {"gives zeros for unnamed: tile 49 (row 2, column 9): the checksum does not match"}


def test_zeros_without_verification_are_for_what_does_not_decode(image):
    damaged = patched(as_l3(image[0], profile="raw"), -17, 0)
    (decoded, zeros), valid = or_zeros([damaged, image[2][:-40]], verify=False)
    assert list(valid) == [True, False]
    assert np.count_nonzero(decoded != image[0]) == 1
    assert not zeros.any()


def test_regions_outside_of_a_good_image_are_errors_all_the_same(image):
    for files in ([image[2]], [b"broken", image[2]]):
        with pytest.raises(RuntimeError, match="is empty or not inside the image"):
            or_zeros(files, crop=(151, 10))
    with pytest.raises(ValueError, match="a region of height 1048576 and width 1048576 is larger than any image"):
        or_zeros([b"broken"], crop=(1 << 20, 1 << 20))
    with pytest.raises(ValueError, match="out of range"):
        or_zeros([b"broken"], crop=(1e30, 1))


def test_what_is_no_files_fault_is_an_error_all_the_same(run_python):
    program = """
import numpy as np
import dali_l3
from nvidia.dali import fn, pipeline_def
encoded = np.frombuffer(dali_l3.encode(np.zeros((9, 9, 3), np.uint8)), np.uint8) if ENCODE else np.load("encoded.npy")

@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def pipeline():
    return tuple(fn.decoders.l3(fn.external_source(lambda: [encoded]), on_error="zeros"))

if ENCODE:
    np.save("encoded.npy", encoded)
else:
    try:
        pipeline().run()
    except RuntimeError as error:
        print(error)
"""
    run_python(program.replace("ENCODE", "True"))
    printed = run_python(program.replace("ENCODE", "False"), env={**os.environ, "DALI_L3_BACKEND": "abacus"})
    assert "Failed to decode sample #0" in printed
    assert "abacus" in printed


def test_on_error_is_raise_or_zeros(image):
    with pytest.raises((ValueError, RuntimeError), match='`on_error` must be "raise" or "zeros", not "skip"'):
        decode_one(l3, image[2], on_error="skip")
    np.testing.assert_array_equal(decode_one(l3, image[2], on_error="raise"), image[0], strict=True)


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def zeros_pipeline(paths):
    encoded, _ = fn.readers.file(files=[str(path) for path in paths])
    images, valid = fn.decoders.l3(encoded, on_error="zeros")
    return images, valid


@pytest.fixture
def half_broken(folder):
    """Four files: the second has a damaged tile, the third is cut off in its header."""
    folder[1].write_bytes(flipped(-17)(folder[1].read_bytes()))
    folder[2].write_bytes(folder[2].read_bytes()[:40])
    return folder


HALF_VALID = [True, False, False, True]


def test_each_file_that_becomes_zeros_is_reported_once(half_broken, capfd):
    pipe = zeros_pipeline(half_broken)
    for _ in range(5):
        pipe.run()
    reports = re.findall("decoders.l3 gives zeros for (.*)", capfd.readouterr().err)
    assert reports == [
        f"{half_broken[1]}: tile 11 (row 2, column 3): the checksum does not match",
        f"{half_broken[2]}: truncated: 40 of the header's 48 bytes",
    ]


def test_source_and_layout_are_kept_by_zeros(half_broken):
    images, valid = zeros_pipeline(half_broken).run()
    assert [images[i].source_info() for i in range(4)] == [str(path) for path in half_broken]
    assert [valid[i].source_info() for i in range(4)] == [str(path) for path in half_broken]
    assert images.layout() == "HWC"
    assert list(valid.as_array()) == HALF_VALID


def test_zeros_in_serialized_pipelines_and_with_checkpoints(half_broken):
    _, valid = Pipeline.deserialize(zeros_pipeline(half_broken).serialize()).run()
    assert list(valid.as_array()) == HALF_VALID
    pipe = zeros_pipeline(half_broken, batch_size=3, enable_checkpointing=True)
    pipe.run()
    _, valid = zeros_pipeline(half_broken, batch_size=3, enable_checkpointing=True, checkpoint=pipe.checkpoint()).run()
    assert list(valid.as_array()) == [True, True, False]  # the last file, and again from the first


@since(2, 2, "dynamic mode without a GPU")
def test_zeros_in_dynamic_mode(run_python):
    printed = run_python("""
import numpy as np
import dali_l3
import nvidia.dali.experimental.dynamic as ndd
pixels = np.arange(70 * 80 * 3, dtype=np.uint16).astype(np.uint8).reshape(70, 80, 3)
good = np.frombuffer(dali_l3.encode(pixels), np.uint8)
images, valid = ndd.decoders.l3(ndd.batch([good, good[:-40]]), device="cpu", on_error="zeros")
print(*((np.asarray(tensor) == pixels).all() for tensor in images.tensors))
print(*(bool(np.asarray(tensor)) for tensor in valid.tensors))
""")
    assert printed.split() == ["True", "False", "True", "False"]


@pytest.mark.parametrize(
    "operator",
    [
        lambda images: fn.resize(images, size=(64, 64)),
        lambda images: fn.random_resized_crop(images, size=(64, 64)),
        lambda images: fn.crop_mirror_normalize(images, crop=(64, 64), dtype=types.FLOAT),
        lambda images: fn.crop_mirror_normalize(fn.resize(images, resize_shorter=80), crop=(64, 64)),
        lambda images: fn.hsv(fn.flip(images), hue=30.0),
    ],
)
def test_the_operators_that_follow_take_zeros(half_broken, operator):
    @pipeline_def(batch_size=4, num_threads=2, device_id=None, enable_conditionals=True)
    def pipeline():
        encoded, _ = fn.readers.file(files=[str(path) for path in half_broken])
        images, valid = fn.decoders.l3(encoded, on_error="zeros")
        weight = types.Constant(0.5, device="cpu")
        if valid:
            weight = types.Constant(1.0, device="cpu")
        return operator(images), weight

    images, weight = pipeline().run()
    assert len({images[i].shape()[0] for i in range(4)}) == 1
    assert [float(np.array(weight[i])) for i in range(4)] == [1, 0.5, 0.5, 1]


# ---- Framework ----


def thread_times():
    """Nanoseconds that each of DALI's worker threads has run so far."""
    times = {}
    for task in pathlib.Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            if "[DALI][TP" in (task / "comm").read_text():
                times[task] = int((task / "schedstat").read_text().split()[0])
    return times


def test_one_large_image_occupies_all_threads():
    pixels = np.random.default_rng(3).integers(0, 256, (1080, 1920, 3), np.uint8)
    encoded = np.frombuffer(as_l3(pixels, effort=1), np.uint8)

    @pipeline_def(batch_size=1, num_threads=2, device_id=None, exec_async=False, exec_pipelined=False)
    def pipeline():
        return fn.decoders.l3(fn.external_source(source=lambda: [encoded], batch=True))

    pipe = pipeline()
    pipe.build()
    (output,) = pipe.run()
    np.testing.assert_array_equal(np.array(output[0]), pixels)

    def share_of_the_second():
        """The part of an image's work that the thread does which does less."""
        before = thread_times()
        pipe.run()
        less, more = sorted(time - before.get(task, 0) for task, time in thread_times().items())[-2:]
        return less / (less + more)

    wait_until(lambda: share_of_the_second() > 0.2)  # on a busy machine a thread may come late


def test_source_and_layout_are_kept(folder):
    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def pipeline():
        encoded, _ = fn.readers.file(files=[str(path) for path in folder])
        return fn.decoders.l3(encoded)

    (output,) = pipeline().run()
    assert [output[i].source_info() for i in range(4)] == [str(path) for path in folder]
    assert output.layout() == "HWC"


def test_checkpoints_can_be_taken(folder):
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, enable_checkpointing=True)
    def pipeline():
        encoded, label = fn.readers.file(files=[str(path) for path in folder], labels=[0, 1, 2, 3])
        return fn.decoders.l3(encoded), label

    pipe = pipeline()
    pipe.run()
    resumed = pipeline(checkpoint=pipe.checkpoint())
    _, label = resumed.run()
    assert np.array(label[0]).item() == 1


def test_a_pipeline_can_be_serialized(folder, image):
    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def pipeline():
        encoded, _ = fn.readers.file(files=[str(path) for path in folder])
        return fn.decoders.l3(encoded, crop=(50, 60), dtype=types.FLOAT)

    (expected,) = pipeline().run()
    (output,) = Pipeline.deserialize(pipeline().serialize()).run()
    np.testing.assert_array_equal(output.as_array(), expected.as_array())


@since(2, 2, "dynamic mode without a GPU")
def test_dynamic_mode(run_python):
    printed = run_python("""
import numpy as np
import dali_l3
import nvidia.dali.experimental.dynamic as ndd
pixels = np.arange(70 * 80 * 3, dtype=np.uint16).astype(np.uint8).reshape(70, 80, 3)
encoded = ndd.as_tensor(np.frombuffer(dali_l3.encode(pixels), np.uint8), device="cpu")
decoded = np.asarray(ndd.decoders.l3(encoded, device="cpu"))
print((decoded == pixels).all())
""")
    assert printed == "True"
