"""L3 in DALI's own decoders with device="mixed", and in nvImageCodec's Python module, on the GPU."""

import ctypes
import io
import re

import numpy as np
import pytest
from nvidia.dali import fn
from PIL import Image

import dali_l3  # noqa: F401  (adds L3 to nvImageCodec)
from devices import each_device, needs_gpu, needs_plugin
from pipelines import CONVERSIONS, DTYPES, OUTPUT_TYPES, as_l3, as_png, decode_batch, decode_files, sample_pixels
from versions import image_decoders

pytestmark = needs_plugin

nvimgcodec = pytest.importorskip("nvidia.nvimgcodec")


def noise(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def as_jpeg(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=95)
    return file.getvalue()


def assert_same(decoded, expected):
    assert len(decoded) == len(expected)
    for got, wanted in zip(decoded, expected, strict=True):
        np.testing.assert_array_equal(got, wanted, strict=True)


# ---- DALI's decoders ----


@each_device
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize(("channels", "output_type"), CONVERSIONS)
def test_conversions_equal_those_of_the_operator(bits, channels, output_type, device):
    files = [as_l3(sample_pixels(bits, channels), profile=profile) for profile in ("raw", "paper", "fast")]
    for dtype in DTYPES.values():
        arguments = {"output_type": OUTPUT_TYPES[output_type], "dtype": dtype}
        expected = decode_batch(fn.decoders.l3, files, **arguments)
        decoded = decode_batch(image_decoders.image, files, device=device, **arguments)
        if device == "cpu":
            assert_same(decoded, expected)
        else:  # DALI converts samples and colors on the GPU by its own arithmetic
            for got, wanted in zip(decoded, expected, strict=True):
                peak = 1 if wanted.dtype == np.float32 else np.iinfo(wanted.dtype).max
                np.testing.assert_allclose(got.astype(float) / peak, wanted.astype(float) / peak, atol=1.5 / 255)


@each_device
def test_one_batch_mixes_formats(device):
    images = [noise((90 + 10 * i, 200 - 7 * i, 3), i) for i in range(24)]
    files = [(as_l3, as_png, as_l3, as_jpeg)[i % 4](image) for i, image in enumerate(images)]
    for _ in range(3):
        decoded = decode_batch(image_decoders.image, files, threads=4, device=device)
        for i, (got, wanted) in enumerate(zip(decoded, images, strict=True)):
            if files[i][:2] == b"\xff\xd8":
                assert got.shape == wanted.shape
            else:
                np.testing.assert_array_equal(got, wanted, strict=True)


@each_device
@pytest.mark.parametrize("size", [1, 2, 33, 100])
def test_batches_of_any_size(size, device):
    images = [noise((30 + i, 70 + i, 3), i) for i in range(size)]
    assert_same(decode_batch(image_decoders.image, [as_l3(image) for image in images], device=device), images)


@each_device
@pytest.mark.parametrize(
    ("decoder", "arguments"),
    [
        ("image_crop", {"crop": (50, 60), "crop_pos_x": 0.3}),
        ("image_slice", {"rel_start": (0.1, 0.25), "rel_shape": (0.333, 0.5)}),
        ("image_random_crop", {"seed": 7, "random_area": (0.1, 0.5)}),
    ],
    ids=str,
)
def test_regions(decoder, arguments, device):
    files = [as_l3(noise((150, 200 + i, 3), i)) for i in range(8)]
    operator = getattr(image_decoders, decoder)
    assert_same(decode_batch(operator, files, device=device, **arguments), decode_batch(operator, files, **arguments))


@each_device
def test_a_broken_file_is_named(tmp_path, capfd, device):
    images = [noise((150, 200, 3), i) for i in range(4)]
    paths = [tmp_path / f"{i}.l3" for i in range(4)]
    for path, image in zip(paths, images, strict=True):
        path.write_bytes(as_l3(image))
    data = bytearray(paths[2].read_bytes())
    data[len(data) // 2] ^= 1
    paths[2].write_bytes(data)
    with pytest.raises(RuntimeError, match=re.escape(f"Failed to decode sample #2 : {paths[2]}")):
        decode_files(image_decoders.image, paths, device=device)
    assert "the checksum does not match" in capfd.readouterr().err
    assert_same(decode_files(image_decoders.image, paths[:2], device=device), images[:2])


# ---- nvImageCodec's own module ----

without_gpu = pytest.mark.skipif(
    not hasattr(nvimgcodec, "NVIMGCODEC_DEVICE_CPU_ONLY"),
    reason="nvImageCodec's own Python works without a GPU from 0.9 on",
)
each_backend = pytest.mark.parametrize(
    "backend", [pytest.param("CPU_ONLY", marks=without_gpu), pytest.param("GPU_ONLY", marks=needs_gpu)]
)


def decoder_for(backend):
    """A decoder that has no other way than this back end's."""
    device_id = 0 if backend == "GPU_ONLY" else nvimgcodec.NVIMGCODEC_DEVICE_CPU_ONLY
    return nvimgcodec.Decoder(
        device_id=device_id, backends=[nvimgcodec.Backend(getattr(nvimgcodec.BackendKind, backend))]
    )


def decode(decoder, files, **options):
    """Arrays, or None where a file could not be decoded."""
    images = decoder.decode([nvimgcodec.CodeStream(file) for file in files], **options)
    return [None if image is None else np.array(image.cpu()) for image in images]


@each_backend
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_pixels_come_back(backend, bits, channels):
    pixels = sample_pixels(bits, channels)
    files = [as_l3(pixels, profile=profile) for profile in ("raw", "paper", "fast")]
    params = nvimgcodec.DecodeParams(color_spec=nvimgcodec.ColorSpec.UNCHANGED, allow_any_depth=True)
    assert_same(decode(decoder_for(backend), files, params=params), [pixels] * 3)


@each_backend
def test_repeated_batches(backend):
    decoder = decoder_for(backend)
    images = [noise((60 + 5 * i, 300 - 9 * i, 3), i) for i in range(30)]
    files = [as_l3(image) for image in images]
    for size in (1, 2, 30, 7, 1, 30, 30):
        assert_same(decode(decoder, files[:size]), images[:size])


@each_backend
def test_the_others_of_a_batch_are_decoded_despite_broken_ones(backend):
    images = [noise((150, 200, 3), i) for i in range(12)]
    files = [as_l3(image) for image in images]
    broken = {3: slice(0, 1000), 8: slice(0, -1)}
    for i, part in broken.items():
        files[i] = files[i][part]
    damaged = bytearray(files[5])
    damaged[len(damaged) // 2] ^= 1
    files[5] = bytes(damaged)
    decoded = decode(decoder_for(backend), files)
    assert [i for i, image in enumerate(decoded) if image is None] == [3, 5, 8]
    good = [i for i, image in enumerate(decoded) if image is not None]
    assert_same([decoded[i] for i in good], [images[i] for i in good])


@each_backend
def test_regions_of_streams(backend):
    image = noise((150, 200, 3))
    stream = nvimgcodec.CodeStream(as_l3(image)).get_sub_code_stream(
        0, nvimgcodec.Region(start=(10, 20), end=(140, 150))
    )
    (decoded,) = decoder_for(backend).decode([stream])
    np.testing.assert_array_equal(np.array(decoded.cpu()), image[10:140, 20:150])


@pytest.fixture
def streams():
    """Two CUDA streams that do not wait for the default one."""
    driver = ctypes.CDLL("libcuda.so.1")
    context, handles = ctypes.c_void_p(), [ctypes.c_void_p(), ctypes.c_void_p()]
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    for handle in handles:
        assert driver.cuStreamCreate(ctypes.byref(handle), 1) == 0  # CU_STREAM_NON_BLOCKING
    yield [handle.value for handle in handles]
    for handle in handles:
        assert driver.cuStreamDestroy_v2(handle) == 0
    assert driver.cuDevicePrimaryCtxRelease_v2(0) == 0


@needs_gpu
def test_streams_in_turn(streams):
    decoder = decoder_for("GPU_ONLY")
    images = [noise((400, 500 + i, 3), i) for i in range(16)]
    files = [as_l3(image) for image in images]
    pending = []
    for turn in range(12):
        batch = [nvimgcodec.CodeStream(file) for file in files[turn % 4 :]]
        pending.append((turn % 4, decoder.decode(batch, cuda_stream=streams[turn % 2])))
    for start, decoded in pending:
        assert_same([np.array(image.cpu()) for image in decoded], images[start:])
