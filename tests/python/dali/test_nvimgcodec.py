"""The nvImageCodec extension: L3 in DALI's own decoders and in nvImageCodec's Python module."""

import io
import re

import numpy as np
import pytest
from nvidia.dali import fn, types
from PIL import Image

import dali_l3
from pipelines import (
    CONVERSIONS,
    DTYPES,
    OUTPUT_TYPES,
    as_l3,
    as_png,
    decode_batch,
    decode_files,
    decode_one,
    sample_pixels,
)
from versions import image_decoders, since

pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture(scope="module")
def image():
    """A small colour image of several tiles, its PNG and its L3."""
    pixels = np.random.default_rng(1).integers(0, 256, (150, 200, 3), np.uint8)
    return pixels, as_png(pixels), as_l3(pixels)


# ---- DALI's decoders ----


@pytest.mark.parametrize("output_type", OUTPUT_TYPES)
def test_conversions_equal_those_of_png(output_type):
    """In one batch: PNG and L3 files of all depths and numbers of channels."""
    kinds = [
        (bits, channels) for bits in (8, 16) for channels in (1, 2, 3, 4) if (channels, output_type) in CONVERSIONS
    ]
    images = [sample_pixels(*kind) for kind in kinds]
    files = [*map(as_png, images), *(as_l3(pixels, profile="raw") for pixels in images)]
    for name, dtype in DTYPES.items():
        decoded = decode_batch(image_decoders.image, files, output_type=OUTPUT_TYPES[output_type], dtype=dtype)
        for kind, expected, found in zip(kinds, decoded[: len(kinds)], decoded[len(kinds) :], strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=f"bits, channels: {kind}, {name}", strict=True)


def test_two_channels_are_kept():
    pixels = sample_pixels(8, 2)
    decoded = decode_one(image_decoders.image, as_l3(pixels), output_type=types.ANY_DATA)
    np.testing.assert_array_equal(decoded, pixels, strict=True)


def test_one_batch_mixes_formats(image):
    pixels, png, encoded = image
    files = [png, encoded]
    for name, options in {"JPEG": {}, "BMP": {}, "TIFF": {}, "WEBP": {"lossless": True}, "PPM": {}}.items():
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, name, **options)
        files += [file.getvalue(), encoded]
    decoded = decode_batch(image_decoders.image, files)
    for i, file in enumerate(files):
        expected = pixels if file is encoded else decode_one(image_decoders.image, file)
        np.testing.assert_array_equal(decoded[i], expected, strict=True)


@pytest.mark.parametrize(
    ("decoder", "arguments"),
    [
        ("image_crop", {"crop": (50, 60), "crop_pos_x": 0.3}),
        ("image_crop", {"crop": (150, 200)}),
        ("image_slice", {"rel_start": (0.1, 0.25), "rel_shape": (0.333, 0.5)}),
        ("image_slice", {"start": (64, 64), "shape": (1, 1)}),
        ("image_random_crop", {"seed": 7, "random_area": (0.1, 0.5)}),
    ],
    ids=str,
)
@pytest.mark.parametrize("output_type", OUTPUT_TYPES)
def test_regions_equal_those_of_png(decoder, arguments, output_type):
    pixels = sample_pixels(16, 3)
    arguments = {"output_type": OUTPUT_TYPES[output_type], "dtype": types.UINT16, **arguments}
    # Separate pipelines, since random crops differ within a batch.
    expected = decode_one(getattr(image_decoders, decoder), as_png(pixels), **arguments)
    decoded = decode_one(getattr(image_decoders, decoder), as_l3(pixels), **arguments)
    np.testing.assert_array_equal(decoded, expected, strict=True)


@since(2, 2, "fn.peek_image_shape through nvImageCodec")
@pytest.mark.parametrize("image_type", ["RGB", "GRAY", "ANY_DATA"])
def test_peek_image_shape(image_type):
    for channels in (1, 2, 3, 4):
        pixels = sample_pixels(8, channels)
        files = [as_png(pixels), as_l3(pixels)]
        expected, shape = decode_batch(fn.peek_image_shape, files, image_type=OUTPUT_TYPES[image_type])
        np.testing.assert_array_equal(shape, expected)


@pytest.mark.parametrize(
    ("break_file", "reason"),
    [
        (lambda data: data[:-20], "truncated"),
        (lambda data: data[:10], "truncated"),
        (lambda data: data[:12] + b"\xff" + data[13:], "header's checksum"),
        (lambda data: data[: len(data) // 2] + b"\x01\x02\x03\x04" + data[len(data) // 2 + 4 :], "tile .* checksum"),
    ],
)
def test_a_broken_file_is_named_and_the_reason_logged(image, tmp_path, capfd, break_file, reason):
    paths = [tmp_path / "good.l3", tmp_path / "bad.l3"]
    paths[0].write_bytes(image[2])
    paths[1].write_bytes(break_file(image[2]))
    with pytest.raises(RuntimeError, match=re.escape(f"Failed to decode sample #1 : {paths[1]}")):
        decode_files(image_decoders.image, paths)
    assert re.search(reason, capfd.readouterr().err)


def test_truncation_at_every_length_is_an_error():
    data = as_l3(np.random.default_rng(0).integers(0, 256, (3, 2, 3), np.uint8))
    for size in range(1, len(data)):
        with pytest.raises(RuntimeError):
            decode_one(image_decoders.image, data[:size])


# ---- nvImageCodec's own module ----


@pytest.fixture(scope="module")
def nvimgcodec():
    return pytest.importorskip("nvidia.nvimgcodec")


@pytest.fixture(scope="module")
def on_cpu(nvimgcodec):
    """Arguments of decoders and encoders on machines with and without a GPU."""
    if not hasattr(nvimgcodec, "NVIMGCODEC_DEVICE_CPU_ONLY"):
        pytest.skip("nvImageCodec's own Python works without a GPU from 0.9 on")
    return {
        "device_id": nvimgcodec.NVIMGCODEC_DEVICE_CPU_ONLY,
        "backends": [nvimgcodec.Backend(nvimgcodec.BackendKind.CPU_ONLY)],
    }


@pytest.fixture(scope="module")
def decoder(nvimgcodec, on_cpu):
    return nvimgcodec.Decoder(**on_cpu)


@pytest.fixture(scope="module")
def encoder(nvimgcodec, on_cpu):
    return nvimgcodec.Encoder(**on_cpu)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_nvimgcodec_decodes_what_was_encoded(nvimgcodec, decoder, bits, channels):
    pixels = sample_pixels(bits, channels)
    params = nvimgcodec.DecodeParams(color_spec=nvimgcodec.ColorSpec.UNCHANGED, allow_any_depth=True)
    decoded = decoder.decode(nvimgcodec.CodeStream(as_l3(pixels)), params=params)
    np.testing.assert_array_equal(np.array(decoded.cpu()), pixels, strict=True)


@pytest.mark.parametrize("color_spec", ["SRGB", "GRAY"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_nvimgcodec_converts_as_for_png(nvimgcodec, decoder, channels, color_spec):
    pixels = sample_pixels(8, channels)
    params = nvimgcodec.DecodeParams(color_spec=getattr(nvimgcodec.ColorSpec, color_spec))
    expected = decoder.decode(nvimgcodec.CodeStream(as_png(pixels)), params=params)
    decoded = decoder.decode(nvimgcodec.CodeStream(as_l3(pixels)), params=params)
    np.testing.assert_array_equal(np.array(decoded.cpu()), np.array(expected.cpu()), strict=True)


def test_nvimgcodec_decodes_regions(nvimgcodec, decoder, image):
    stream = nvimgcodec.CodeStream(image[2]).get_sub_code_stream(0, nvimgcodec.Region(start=(10, 20), end=(140, 150)))
    np.testing.assert_array_equal(np.array(decoder.decode(stream).cpu()), image[0][10:140, 20:150], strict=True)


def test_nvimgcodec_describes_streams(nvimgcodec):
    stream = nvimgcodec.CodeStream(as_l3(sample_pixels(16, 4)))
    assert (stream.codec_name, stream.height, stream.width, stream.num_channels) == ("l3", 300, 257, 4)
    assert (stream.dtype, stream.precision) == (np.uint16, 16)


def test_nvimgcodec_refuses_regions_outside(nvimgcodec, decoder, image, capfd):
    stream = nvimgcodec.CodeStream(image[2]).get_sub_code_stream(0, nvimgcodec.Region(start=(100, 20), end=(151, 50)))
    assert decoder.decode(stream) is None
    assert "not inside the image" in capfd.readouterr().err


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_nvimgcodec_encodes(nvimgcodec, encoder, bits, channels):
    pixels = sample_pixels(bits, channels)
    encoded = bytes(encoder.encode(nvimgcodec.as_image(pixels), codec="l3"))
    assert dali_l3.peek(encoded).profile == "fast"
    np.testing.assert_array_equal(dali_l3.decode(encoded), pixels, strict=True)


def test_nvimgcodec_writes_and_reads_files(nvimgcodec, encoder, decoder, image, tmp_path):
    path = tmp_path / "image.l3"
    encoder.write(str(path), nvimgcodec.as_image(image[0]), codec="l3")
    np.testing.assert_array_equal(dali_l3.decode(path.read_bytes()), image[0], strict=True)
    np.testing.assert_array_equal(np.array(decoder.read(str(path)).cpu()), image[0], strict=True)


def test_nvimgcodec_refuses_to_encode_floats(nvimgcodec, encoder):
    assert encoder.encode(nvimgcodec.as_image(np.zeros((9, 7, 3), np.float32)), codec="l3") is None
