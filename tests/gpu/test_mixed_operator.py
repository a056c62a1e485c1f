"""fn.decoders.l3(device="mixed") gives what device="cpu" gives, whatever images, batches and pipelines."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from nvidia.dali import Pipeline, fn, pipeline_def, types

import dali_l3
from devices import each_device, needs_plugin
from pipelines import (
    CONVERSIONS,
    DTYPES,
    OUTPUT_TYPES,
    as_l3,
    decode_batch,
    decode_files,
    decode_one,
    device_id,
    run_batch,
    sample_pixels,
    to_arrays,
)
from versions import since

pytestmark = needs_plugin

DATA = Path(__file__).parents[1] / "data"
PROFILES = ("raw", "paper", "fast")
SIZES = [(1, 1), (1, 65), (64, 64), (63, 127), (65, 1), (130, 257)]


def l3(*inputs, **arguments):
    return fn.decoders.l3(*inputs, **arguments)


def textured_image(shape, dtype, seed):
    """A few flat areas, a gradient and noise: tiles of every kind and of every code length."""
    generator = np.random.default_rng(seed)
    height, width, channels = shape
    peak = np.iinfo(dtype).max
    image = np.add.outer(np.arange(height) * 3, np.arange(width) * 2)[..., None] + np.arange(channels) * 50
    image = image + generator.integers(0, 2 ** (1 + seed % 7), shape)
    image[height // 2 :, : width // 2] = seed * 1001
    image[: height // 3, width // 2 :] = generator.integers(0, peak + 1, image[: height // 3, width // 2 :].shape)
    return (image % (peak + 1)).astype(dtype)


def assert_same(decoded, expected):
    assert len(decoded) == len(expected)
    for got, wanted in zip(decoded, expected, strict=True):
        np.testing.assert_array_equal(got, wanted, strict=True)


def failure_of(function):
    """What is wrong with a sample, as the exception that `function` must raise says."""
    with pytest.raises(RuntimeError) as raised:
        function()
    return re.search(r"Failed to decode sample .*", str(raised.value))[0]


# ---- Pixels ----


@each_device
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("dtype", ["UINT8", "UINT16"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_pixels_come_back(profile, dtype, channels, device):
    images = [textured_image((*size, channels), dtype.lower(), seed) for seed, size in enumerate(SIZES)]
    files = [as_l3(image, profile=profile) for image in images]
    assert_same(decode_batch(l3, files, device=device, output_type=types.ANY_DATA, dtype=DTYPES[dtype]), images)


@each_device
@pytest.mark.parametrize("dtype", ["UINT8", "UINT16"])
def test_label_maps_come_back(dtype, device):
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 9, (20, 30)).repeat(10, axis=0).repeat(10, axis=1).astype(dtype.lower())
    files = [dali_l3.encode(labels), dali_l3.encode(labels[7:, 3:])]
    decoded = decode_batch(l3, files, device=device, output_type=types.ANY_DATA, dtype=DTYPES[dtype])
    assert_same(decoded, [labels[..., None], labels[7:, 3:, None]])


@each_device
@pytest.mark.parametrize("dtype", ["UINT8", "UINT16"])
def test_golden_files(dtype, device):
    golden = json.loads((DATA / "golden.json").read_text(encoding="utf-8"))
    names = [name for name, image in golden.items() if image["dtype"] == dtype.lower()]
    files = [(DATA / "golden" / name).read_bytes() for name in names]
    images = [np.atleast_3d(dali_l3.decode(file)) for file in files]
    assert_same(decode_batch(l3, files, device=device, output_type=types.ANY_DATA, dtype=DTYPES[dtype]), images)


@each_device
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize(("channels", "output_type"), CONVERSIONS)
def test_conversions(bits, channels, output_type, device):
    pixels = sample_pixels(bits, channels)
    files = [as_l3(pixels, profile=profile) for profile in PROFILES]
    for dtype in DTYPES.values():
        arguments = {"output_type": OUTPUT_TYPES[output_type], "dtype": dtype}
        expected = decode_one(l3, files[0], **arguments)
        assert_same(decode_batch(l3, files, device=device, **arguments), [expected] * len(files))


@each_device
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize(("channels", "output_type"), CONVERSIONS)
def test_half_precision_is_single_precision_rounded(bits, channels, output_type, device):
    files = [as_l3(sample_pixels(bits, channels), profile=profile) for profile in PROFILES]
    arguments = {"output_type": OUTPUT_TYPES[output_type], "device": device}
    single = decode_batch(l3, files, dtype=types.FLOAT, **arguments)
    half = decode_batch(l3, files, dtype=types.FLOAT16, **arguments)
    assert_same(half, [image.astype(np.float16) for image in single])


@each_device
def test_a_batch_mixes_profiles_depths_and_channels(device):
    files = [
        as_l3(textured_image((70 * channels, 50 + bits, channels), f"uint{bits}", channels), profile=profile)
        for profile in PROFILES
        for bits in (8, 16)
        for channels in (1, 2, 3, 4)
    ]
    assert_same(decode_batch(l3, files, device=device), decode_batch(l3, files))


@each_device
def test_large_images(device):
    images = [textured_image((1080, 1919, 3), np.uint8, seed) for seed in range(4)]
    assert_same(decode_batch(l3, [as_l3(image) for image in images], device=device), images)


# ---- Regions ----


@each_device
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("dtype", ["UINT8", "UINT16", "FLOAT16"])
@pytest.mark.parametrize("size", [(1, 1), (64, 64), (77, 101), (200, 261)])
def test_windows_are_slices(profile, dtype, size, device):
    """Of images with several windows, one and none."""
    image = textured_image((200, 261, 3), "uint16" if dtype == "UINT16" else "uint8", 3)
    generator = np.random.default_rng(4)
    starts = [generator.integers(0, np.subtract(image.shape[:2], size) + 1, (count, 2)) for count in (5, 0, 1, 9)]
    windows = [np.concatenate([start, np.full_like(start, size)], axis=1).astype(np.int32) for start in starts]
    arguments = {"dtype": getattr(types, dtype)}
    files = [as_l3(image, profile=profile)] * len(windows)
    (whole,) = decode_batch(l3, files[:1], **arguments)
    decoded = decode_batch(l3, files, windows=windows, device=device, **arguments)
    for got, rows in zip(decoded, windows, strict=True):
        assert got.shape[0] == len(rows)
        for window, (y, x, height, width) in zip(got, rows, strict=True):
            np.testing.assert_array_equal(window, whole[y : y + height, x : x + width], strict=True)


@each_device
def test_broken_windows_are_zeros(device):
    file = bytearray(as_l3(textured_image((128, 128, 3), "uint8", 3)))
    file[-40] ^= 255  # in the last tile
    windows = [np.int32([[0, 0, 64, 64], [1, 0, 64, 64]]), np.int32([[0, 0, 64, 64], [64, 64, 64, 64]])]
    arguments = {"device": device, "on_error": "zeros"}
    decoded, valid = run_batch(l3, [bytes(file)] * 2, windows=windows, **arguments)
    assert [bool(flag) for flag in valid] == [True, False]
    assert decoded[0].any()
    assert not decoded[1].any()


@each_device
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("dtype", ["UINT8", "UINT16"])
@pytest.mark.parametrize("size", [(1, 1), (64, 64), (77, 101), (200, 3)])
def test_crops_at_any_position(profile, dtype, size, device):
    image = textured_image((200, 261, 3), dtype.lower(), 3)
    height, width = size
    lefts = range(0, 261 - width + 1, max(1, (261 - width) // 16))
    tops = [(left * 7) % (200 - height + 1) for left in lefts]
    expected = [image[top : top + height, left : left + width] for top, left in zip(tops, lefts, strict=True)]
    starts = [np.int32([top, left]) for top, left in zip(tops, lefts, strict=True)]
    files = [as_l3(image, profile=profile)] * len(starts)
    arguments = {"start": starts, "shape": size, "axis_names": "HW", "dtype": DTYPES[dtype]}
    assert_same(decode_batch(l3, files, device=device, **arguments), expected)


@each_device
@pytest.mark.parametrize(
    "arguments",
    [
        {"crop": (50, 60), "crop_pos_x": 0.3, "crop_pos_y": 0.9},
        {"crop_h": 33, "crop_w": 77, "rounding": "truncate"},
        {"rel_start": (0.1, 0.25), "rel_end": (0.333, 0.777)},
        {"start": (64,), "end": (130,), "axes": (0,)},
    ],
    ids=str,
)
def test_crop_and_slice_arguments(arguments, device):
    images = [textured_image((150 + 10 * seed, 200, 3), np.uint8, seed) for seed in range(4)]
    files = [as_l3(image) for image in images]
    assert_same(decode_batch(l3, files, device=device, **arguments), decode_batch(l3, files, **arguments))


@each_device
def test_slices_by_inputs(device):
    image = textured_image((150, 200, 3), np.uint8, 5)
    anchor, shape = np.float32([0.1, 0.2]), np.float32([0.35, 0.45])
    expected = decode_one(l3, as_l3(image), anchor, shape)
    assert_same([decode_one(l3, as_l3(image), anchor, shape, device=device)], [expected])


@each_device
@pytest.mark.parametrize("output_type", OUTPUT_TYPES)
@pytest.mark.parametrize("bits", [8, 16])
def test_regions_are_converted(bits, output_type, device):
    files = [as_l3(sample_pixels(bits, 3), profile=profile) for profile in PROFILES]
    arguments = {"output_type": OUTPUT_TYPES[output_type], "crop": (101, 77), "crop_pos_x": 0.7, "dtype": types.FLOAT}
    assert_same(decode_batch(l3, files, device=device, **arguments), decode_batch(l3, files, **arguments))


# ---- Batches and pipelines ----

POOL = [textured_image((40 + 37 * i % 300, 50 + 61 * i % 400, 3), np.uint8, i) for i in range(40)]


def batches_of(sizes, seed):
    """For each batch its images' numbers in POOL."""
    generator = np.random.default_rng(seed)
    return [generator.integers(0, len(POOL), size) for size in sizes]


@pytest.fixture(scope="module")
def encoded_pool():
    return [np.frombuffer(as_l3(image), np.uint8) for image in POOL]


def batch_pipeline(encoded, batches, device, **options):
    """A pipeline that decodes the given batches, one a run."""

    @pipeline_def(batch_size=max(map(len, batches)), num_threads=3, device_id=device_id(device), **options)
    def pipeline():
        files = fn.external_source(source=([encoded[i] for i in batch] for batch in batches), batch=True)
        return fn.decoders.l3(files, device=device)

    return pipeline()


@each_device
@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("exec_dynamic", [False, True])
def test_batches_that_grow_and_shrink(encoded_pool, depth, exec_dynamic, device):
    batches = batches_of([1, 2, 4, 8, 16, 32, 64, 64, 5, 1, 48, 1, 1, 64, 3], seed=depth)
    pipe = batch_pipeline(encoded_pool, batches, device, prefetch_queue_depth=depth, exec_dynamic=exec_dynamic)
    for batch in batches:
        (output,) = pipe.run()
        assert_same(to_arrays(output), [POOL[i] for i in batch])


@each_device
def test_many_batches(encoded_pool, device):
    # Outputs are looked at late, so that batches follow one another without a pause.
    batches = batches_of([8] * 100, seed=9)
    pipe = batch_pipeline(encoded_pool, batches, device, prefetch_queue_depth=3)
    for batch in batches:
        (output,) = pipe.run()
        if batch[0] % 4 == 0:
            assert_same(to_arrays(output), [POOL[i] for i in batch])


@each_device
def test_several_pipelines_at_once(encoded_pool, device):
    def work(seed):
        batches = batches_of([seed + 1, 16, 3, 32] * 5, seed)
        pipe = batch_pipeline(encoded_pool, batches, device)
        return all(
            np.array_equal(array, POOL[i])
            for batch in batches
            for array, i in zip(to_arrays(pipe.run()[0]), batch, strict=True)
        )

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(4)))


@each_device
def test_two_decoders_in_a_pipeline(encoded_pool, device):
    @pipeline_def(batch_size=16, num_threads=2, device_id=device_id(device))
    def pipeline():
        files = fn.external_source(source=lambda: encoded_pool[:16], batch=True)
        first, second = (fn.decoders.l3(files, device=device, output_type=t) for t in (types.RGB, types.BGR))
        return first, second

    pipe = pipeline()
    for _ in range(5):
        first, second = map(to_arrays, pipe.run())
        assert_same(first, POOL[:16])
        assert_same(second, [image[..., ::-1] for image in POOL[:16]])


@each_device
def test_the_next_operator_finds_the_pixels(encoded_pool, device):
    @pipeline_def(batch_size=16, num_threads=2, device_id=device_id(device))
    def pipeline():
        images = fn.decoders.l3(fn.external_source(source=lambda: encoded_pool[:16], batch=True), device=device)
        return fn.flip(images, horizontal=1)

    pipe = pipeline()
    for _ in range(10):
        assert_same(to_arrays(pipe.run()[0]), [image[:, ::-1] for image in POOL[:16]])


# ---- Errors ----


def damaged(data, seed, changes=3):
    """The file with some bytes of its second half changed, where tiles are."""
    generator = np.random.default_rng(seed)
    data = bytearray(data)
    for position in generator.integers(len(data) // 2, len(data), changes):
        data[position] ^= int(generator.integers(1, 256))
    return bytes(data)


@pytest.fixture
def folder(tmp_path):
    """Four files, the third of which is broken."""
    paths = [tmp_path / f"{i}.l3" for i in range(4)]
    for i, path in enumerate(paths):
        path.write_bytes(as_l3(POOL[20 + i]))
    paths[2].write_bytes(damaged(paths[2].read_bytes(), seed=0))
    return paths


@each_device
def test_a_broken_file_is_named_with_the_reason(folder, device):
    failure = failure_of(lambda: decode_files(l3, folder, device=device))
    assert re.fullmatch(
        re.escape(f"Failed to decode sample #2 ({folder[2]}): tile ") + ".*the checksum does not match", failure
    )


@each_device
def test_truncated_files(folder, device):
    folder[1].write_bytes(folder[1].read_bytes()[:-30])
    failure = failure_of(lambda: decode_files(l3, folder, device=device))
    assert failure.startswith(f"Failed to decode sample #1 ({folder[1]}): ")
    assert "truncated" in failure


@each_device
def test_decoding_goes_on_elsewhere_after_an_error(folder, encoded_pool, device):
    batches = batches_of([8] * 6, seed=1)
    other = batch_pipeline(encoded_pool, batches, device)
    for batch in batches[:3]:
        assert_same(to_arrays(other.run()[0]), [POOL[i] for i in batch])
    failure_of(lambda: decode_files(l3, folder, device=device))
    for batch in batches[3:]:
        assert_same(to_arrays(other.run()[0]), [POOL[i] for i in batch])
    assert_same(decode_files(l3, folder[:2], device=device), POOL[20:22])


@each_device
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("dtype", ["UINT8", "UINT16"])
def test_damage_that_nobody_checks_for_has_the_same_outcome(profile, dtype, device):
    file = as_l3(textured_image((150, 140, 3), dtype.lower(), 4), profile=profile)
    for seed in range(40):
        outcomes = []
        for where in ("cpu", device):
            try:
                outcomes.append(decode_one(l3, damaged(file, seed), device=where, verify=False, dtype=DTYPES[dtype]))
            except RuntimeError as error:
                outcomes.append(np.array(re.search(r"Failed to decode sample .*", str(error))[0]))
        assert_same(outcomes[1:], outcomes[:1])


@each_device
@pytest.mark.parametrize("dtype", ["UINT8", "FLOAT"])
@pytest.mark.parametrize("profile", PROFILES)
def test_zeros_take_the_place_of_what_is_broken(profile, dtype, device):
    """Of all kinds of damage, in batches of which other images are good."""
    images = [textured_image((100 + 20 * seed, 150, 3), np.uint8, seed) for seed in range(6)]
    files = [as_l3(image, profile=profile) for image in images]
    arguments = {"device": device, "dtype": DTYPES[dtype], "on_error": "zeros"}
    files[1] = damaged(files[1], seed=3)
    files[3] = files[3][:20]
    files[4] = files[4][:-30]
    decoded, valid = run_batch(l3, files, **arguments)
    assert_same(valid, [np.array(i not in (1, 3, 4)) for i in range(6)])
    expected = decode_batch(l3, [files[i] for i in (0, 2, 5)], dtype=DTYPES[dtype])
    assert_same([decoded[i] for i in (0, 2, 5)], expected)
    shapes = [images[1].shape, images[0].shape, images[4].shape]
    assert_same([decoded[i] for i in (1, 3, 4)], [np.zeros(shape, expected[0].dtype) for shape in shapes])


@each_device
def test_zeros_of_a_batch_without_a_good_image(device):
    decoded, valid = run_batch(l3, [b"broken", b""], device=device, on_error="zeros", crop=(20, 30))
    assert not any(valid)
    assert_same(decoded, [np.zeros((20, 30, 3), np.uint8)] * 2)


@each_device
def test_zeros_in_many_batches(encoded_pool, device):
    """Which samples are valid is that of their own batch, however many are under way."""
    broken = [damaged(file.tobytes(), seed=i) for i, file in enumerate(encoded_pool)]
    generator = np.random.default_rng(7)
    # Of each sample its number in POOL, and whether it is good.
    batches = [[(int(i), bool(i % 3)) for i in generator.integers(0, len(POOL), 8)] for _ in range(40)]

    def source():
        for batch in batches:
            yield [encoded_pool[i] if good else np.frombuffer(broken[i], np.uint8) for i, good in batch]

    @pipeline_def(batch_size=8, num_threads=3, device_id=device_id(device), prefetch_queue_depth=3)
    def pipeline():
        return tuple(fn.decoders.l3(fn.external_source(source=source), device=device, on_error="zeros"))

    pipe = pipeline()
    for batch in batches:
        decoded, valid = map(to_arrays, pipe.run())
        assert_same(valid, [np.array(good) for _, good in batch])
        assert_same(decoded, [POOL[i] if good else np.zeros_like(POOL[i]) for i, good in batch])


# ---- Framework ----


@each_device
def test_source_and_layout_are_kept(folder, device):
    @pipeline_def(batch_size=2, num_threads=2, device_id=device_id(device))
    def pipeline():
        encoded, _ = fn.readers.file(files=[str(path) for path in folder[:2]])
        return fn.decoders.l3(encoded, device=device)

    (output,) = pipeline().run()
    assert [output[i].source_info() for i in range(2)] == [str(path) for path in folder[:2]]
    assert output.layout() == "HWC"


@each_device
def test_checkpoints_can_be_taken(folder, device):
    @pipeline_def(batch_size=1, num_threads=1, device_id=device_id(device), enable_checkpointing=True)
    def pipeline():
        encoded, label = fn.readers.file(files=[str(path) for path in folder[:2]], labels=[0, 1])
        return fn.decoders.l3(encoded, device=device), label

    pipe = pipeline()
    pipe.run()
    images, _ = pipeline(checkpoint=pipe.checkpoint()).run()
    assert_same(to_arrays(images), POOL[21:22])


@each_device
def test_a_pipeline_can_be_serialized(folder, device):
    @pipeline_def(batch_size=2, num_threads=2, device_id=device_id(device))
    def pipeline():
        encoded, _ = fn.readers.file(files=[str(path) for path in folder[:2]])
        return fn.decoders.l3(encoded, device=device, crop=(30, 40), dtype=types.FLOAT)

    (expected,) = pipeline().run()
    (output,) = Pipeline.deserialize(pipeline().serialize()).run()
    assert_same(to_arrays(output), to_arrays(expected))


@since(2, 2, "dynamic mode without a GPU")
@each_device
def test_dynamic_mode(device):
    import nvidia.dali.experimental.dynamic as ndd

    encoded = ndd.as_tensor(np.frombuffer(as_l3(POOL[5]), np.uint8), device="cpu")
    decoded = ndd.decoders.l3(encoded, device="cpu" if device == "cpu" else "gpu")
    np.testing.assert_array_equal(np.asarray(decoded.cpu()), POOL[5], strict=True)
