"""Several windows of one image by decoders.l3 against slices of the pixels."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nvidia.dali import Pipeline, fn, pipeline_def, types

import dali_l3.fn
from pipelines import CONVERSIONS, OUTPUT_TYPES, as_l3, decode_batch, decode_files, decode_one, run_batch, sample_pixels
from versions import since

pytestmark = pytest.mark.usefixtures("plugin")

HEIGHT, WIDTH = 150, 200  # 3 x 4 tiles


@pytest.fixture(scope="module")
def image():
    pixels = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    return pixels, as_l3(pixels)


def l3(*inputs, **arguments):
    return fn.decoders.l3(*inputs, **arguments)


def slices(pixels, windows, shape=None):
    """The windows of an image by numpy; `shape`: height and width where there are none."""
    if len(windows) == 0:
        return np.empty((0, *shape, pixels.shape[2]), pixels.dtype)
    return np.stack([pixels[y : y + height, x : x + width] for y, x, height, width in windows])


def random_windows(generator, count, shape, image=(HEIGHT, WIDTH)):
    """Windows of one height and width at random places, (count, 4) of int32."""
    starts = [generator.integers(0, whole - size + 1, count) for whole, size in zip(image, shape, strict=True)]
    sizes = [np.full(count, size) for size in shape]
    return np.stack([*starts, *sizes], axis=1).astype(np.int32)


@st.composite
def batches(draw):
    """Images' numbers of channels, with the size of the windows of each and how many there are."""
    size = st.tuples(st.integers(1, HEIGHT), st.integers(1, WIDTH))
    sample = st.tuples(st.integers(1, 4), size, st.integers(0, 6))
    return draw(st.lists(sample, min_size=1, max_size=4)), draw(st.integers(0, 2**32 - 1))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=batches(), bits=st.sampled_from([8, 16]), profile=st.sampled_from(["raw", "paper", "fast"]))
def test_windows_are_slices(batch, bits, profile):
    samples, seed = batch
    generator = np.random.default_rng(seed)
    images = [sample_pixels(bits, channels)[:HEIGHT, :WIDTH] for channels, _, _ in samples]
    windows = [random_windows(generator, count, size) for _, size, count in samples]
    empty = next((size for _, size, count in samples if count), (0, 0))
    decoded = decode_batch(
        l3,
        [as_l3(pixels, profile=profile) for pixels in images],
        windows=windows,
        output_type=types.ANY_DATA,
        dtype=types.UINT8 if bits == 8 else types.UINT16,
    )
    for got, pixels, rows in zip(decoded, images, windows, strict=True):
        np.testing.assert_array_equal(got, slices(pixels, rows, empty), strict=True)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize(("channels", "output_type"), CONVERSIONS)
def test_windows_are_converted_as_whole_images_are(bits, channels, output_type):
    pixels = sample_pixels(bits, channels)
    windows = random_windows(np.random.default_rng(2), 4, (70, 81), pixels.shape[:2])
    for dtype in (types.UINT8, types.FLOAT):
        arguments = {"output_type": OUTPUT_TYPES[output_type], "dtype": dtype}
        whole = decode_one(l3, as_l3(pixels), **arguments)
        decoded = decode_one(l3, as_l3(pixels), windows=windows, **arguments)
        np.testing.assert_array_equal(decoded, slices(whole, windows), strict=True)


def test_more_windows_than_the_cache_holds(image):
    pixels, encoded = image
    windows = random_windows(np.random.default_rng(3), 90, (130, 127))
    assert slices(pixels, windows).nbytes > 4 << 20  # from which on stores bypass the cache
    for threads in (1, 4):
        decoded = decode_one(l3, encoded, windows=windows, threads=threads)
        np.testing.assert_array_equal(decoded, slices(pixels, windows), strict=True)


@pytest.mark.parametrize(
    "windows",
    [
        np.int32([[3, 4, 70, 80], [50, 60, 70, 80]]),
        np.int64([[3, 4, 70, 80], [50, 60, 70, 80]]),
        [[3, 4, 70, 80], [50, 60, 70, 80]],
        ((3, 4, 70, 80),),
    ],
)
def test_windows_that_all_samples_share(image, windows):
    pixels, encoded = image
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        files = fn.external_source(source=lambda: [np.frombuffer(encoded, np.uint8)] * 2, batch=True)
        pipe.set_outputs(dali_l3.fn.decoders.l3(files, windows=windows))
    (decoded,) = pipe.run()
    assert decoded.layout() == "FHWC"
    for i in range(2):
        np.testing.assert_array_equal(np.array(decoded[i]), slices(pixels, windows), strict=True)


def test_a_flat_list_as_dali_takes_it(image):
    pixels, encoded = image
    decoded = decode_one(lambda *inputs, **_: fn.decoders.l3(*inputs, windows=[3, 4, 70, 80, 50, 60, 70, 80]), encoded)
    np.testing.assert_array_equal(decoded, slices(pixels, [(3, 4, 70, 80), (50, 60, 70, 80)]), strict=True)


def test_the_operators_that_follow_take_windows_as_frames(image):
    pixels, encoded = image
    windows = random_windows(np.random.default_rng(4), 3, (64, 48))

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline():
        files = fn.external_source(source=lambda: [np.frombuffer(encoded, np.uint8)], batch=True)
        images = fn.decoders.l3(files, windows=windows)
        return fn.crop_mirror_normalize(images, mirror=1, dtype=types.FLOAT, output_layout="FCHW"), fn.resize(
            images, size=(32, 32)
        )

    mirrored, resized = pipeline().run()
    assert mirrored.layout() == "FCHW"
    expected = slices(pixels, windows)[:, :, ::-1].transpose(0, 3, 1, 2).astype(np.float32)
    np.testing.assert_array_equal(np.array(mirrored[0]), expected, strict=True)
    assert resized[0].shape() == [3, 32, 32, 3]


def test_only_the_tiles_that_windows_touch_are_read(image):
    pixels, encoded = image
    damaged = bytearray(encoded)
    payload = 48 + 4 * (12 + 1) + 4 * 12
    for tile in (0, 1, 2, 3, 4, 7, 8, 9, 10, 11):  # all but 5 and 6
        offset = int.from_bytes(encoded[48 + 4 * tile : 48 + 4 * tile + 4], "little")
        damaged[payload + offset] ^= 1
    windows = [(64, 64, 64, 60), (64, 70, 64, 60)]
    decoded = decode_one(l3, bytes(damaged), windows=np.int32(windows))
    np.testing.assert_array_equal(decoded, slices(pixels, windows), strict=True)
    with pytest.raises(RuntimeError, match="tile 1 .row 0, column 1.: the checksum does not match"):
        decode_one(l3, bytes(damaged), windows=np.int32([(64, 64, 64, 60), (63, 64, 64, 60)]))


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        ([[0, 0, 151, 10]], "the region of rows 0..151 and columns 0..10 is empty or not inside the image, whose"),
        ([[0, 0, 5, 5], [0, 196, 5, 5]], "columns 196..201 is empty or not inside"),
        ([[-1, 0, 5, 5]], "rows -1..4 .* not inside"),
        ([[0, 0, 0, 5]], "rows 0..0 .* is empty"),
        ([[0, 0, -5, 5]], "rows 0..-5 .* is empty"),
        ([[0, 0, 5, 5], [0, 0, 5, 6]], "must be of one size: one has height 5 and width 5, another has height 5 and w"),
        ([[2**62, 0, 2**62, 5]], "the number 4611686018427387904 in a window is out of range"),
        ([[-(2**63), 0, 5, 5]], "out of range"),
    ],
)
def test_wrong_windows_are_errors_that_name_the_file(image, tmp_path, windows, message):
    paths = [tmp_path / "a.l3", tmp_path / "b.l3"]
    for path in paths:
        path.write_bytes(image[1])
    values = [np.int64([[0, 0, 9, 9]]), np.int64(windows)]

    def decode(encoded, **arguments):
        return l3(encoded, windows=fn.external_source(source=lambda: values, batch=True), **arguments)

    with pytest.raises(RuntimeError, match=re.escape(f"sample #1 ({paths[1]}): ") + ".*" + message):
        decode_files(decode, paths)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"windows": [np.int32([0, 0, 5, 5])]}, r"must have the shape \(N, 4\), .* that of sample #0 is 4"),
        ({"windows": [np.int32([[0, 0, 5]])]}, r"that of sample #0 is 1 x 3"),
        ({"windows": [np.float32([[0, 0, 5, 5]])]}, "`windows` must be int32 or int64, not float"),
        ({"windows": (0, 0, 5)}, "`windows` must have four numbers for each"),
        ({"windows": (0, 0, 5, 5), "crop": (5, 5)}, "`windows` cannot be combined with `crop`"),
        ({"windows": [np.int32([[0, 0, 5, 5]])], "start": (5, 5)}, "`windows` cannot be combined with `start`"),
    ],
    ids=str,
)
def test_wrong_arguments(image, arguments, message):
    with pytest.raises((ValueError, RuntimeError), match=message):
        decode_one(l3, image[1], **arguments)


@pytest.mark.parametrize("windows", [[[0, 0, 5.5, 5]], [[0, 0, 2**40, 5]]])
def test_windows_must_be_whole_numbers(windows):
    with Pipeline(batch_size=1, num_threads=1, device_id=None):
        files = fn.external_source(source=lambda: [np.zeros(1, np.uint8)], batch=True)
        with pytest.raises(ValueError, match="`windows` must be whole numbers of pixels"):
            dali_l3.fn.decoders.l3(files, windows=windows)


@pytest.mark.parametrize("windows", ["abc", [[0, 0, 5, 5], [0, 0]], {}, [[1j, 0, 5, 5]], [[None, 0, 5, 5]]], ids=str)
def test_windows_must_be_rows_of_integers(windows):
    with Pipeline(batch_size=1, num_threads=1, device_id=None):
        files = fn.external_source(source=lambda: [np.zeros(1, np.uint8)], batch=True)
        with pytest.raises(TypeError, match="`windows` must be rows of four integers"):
            dali_l3.fn.decoders.l3(files, windows=windows)


def test_windows_are_not_cut_off_by_dalis_own_functions(image):
    with pytest.raises(RuntimeError, match="the number 4294967296 in a window is out of range"):
        decode_one(lambda *inputs, **_: fn.decoders.l3(*inputs, windows=[2**32, 0, 5, 5]), image[1])


def test_zeros_take_the_place_of_all_windows_of_a_broken_image(image):
    pixels, encoded = image
    damaged = encoded[:-17] + bytes([encoded[-17] ^ 1]) + encoded[-16:]  # in the last tile
    windows = np.int32([[0, 0, 20, 30], [130, 170, 20, 30]])
    files = [encoded, damaged, damaged, encoded[:20]]
    rows = [windows, windows, windows[:1], windows]
    images, valid = run_batch(l3, files, windows=rows, on_error="zeros")
    assert list(valid) == [True, False, True, False]
    for decoded, sample, is_valid in zip(images, rows, valid, strict=True):
        np.testing.assert_array_equal(decoded, slices(pixels, sample) * is_valid, strict=True)


@since(2, 2, "dynamic mode without a GPU")
def test_windows_in_dynamic_mode(run_python):
    printed = run_python("""
import numpy as np
import dali_l3
import nvidia.dali.experimental.dynamic as ndd
pixels = np.arange(70 * 80 * 3, dtype=np.uint16).astype(np.uint8).reshape(70, 80, 3)
encoded = ndd.as_tensor(np.frombuffer(dali_l3.encode(pixels), np.uint8), device="cpu")
windows = ndd.as_tensor(np.int32([[0, 1, 9, 9], [60, 70, 9, 9]]), device="cpu")
decoded = np.asarray(ndd.decoders.l3(encoded, device="cpu", windows=windows))
print((decoded == np.stack([pixels[:9, 1:10], pixels[60:69, 70:79]])).all())
""")
    assert printed == "True"
