"""encode, decode, peek and read_metadata: what goes in comes out, and what cannot go in is refused by name."""

import array
import dataclasses
import mmap
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from conftest import smooth_image
from PIL import Image

import dali_l3
from dali_l3 import L3Error
from gil import check_gil_is_released

PROFILES = ["raw", "paper", "fast"]
DTYPES = [np.uint8, np.uint16]
SHAPES = [(1, 1), (1, 200), (200, 1), (64, 64), (65, 63), (130, 190)]


def assert_same(actual, expected):
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)


class TestRoundTrip:
    @pytest.mark.parametrize("profile", PROFILES)
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("channels", [None, 1, 2, 3, 4])
    @pytest.mark.parametrize("size", SHAPES)
    def test_shape_dtype_and_values(self, size, channels, dtype, profile):
        image = smooth_image(size if channels is None else (*size, channels), dtype)
        assert_same(dali_l3.decode(dali_l3.encode(image, profile=profile)), image)

    @pytest.mark.parametrize("effort", [1, 2, 3])
    @pytest.mark.parametrize("checksums", [True, False])
    def test_options(self, effort, checksums):
        image = smooth_image((100, 100, 3), np.uint8)
        data = dali_l3.encode(image, effort=effort, checksums=checksums)
        assert dali_l3.peek(data).has_checksums == checksums
        assert_same(dali_l3.decode(data, verify=True), image)

    def test_encoding_is_deterministic(self):
        image = smooth_image((100, 100, 3), np.uint8)
        assert dali_l3.encode(image) == dali_l3.encode(image.copy())

    def test_samples_of_fewer_bits_take_no_more_for_being_scaled(self):
        image = smooth_image((100, 130, 3), np.uint16) >> 4
        assert len(dali_l3.encode(image << 4)) == len(dali_l3.encode(image))
        image = smooth_image((100, 130, 3), np.uint8).astype(np.uint16)
        assert len(dali_l3.encode(image * 257)) == len(dali_l3.encode(image))

    def test_smooth_images_shrink(self):
        image = smooth_image((256, 256, 3), np.uint8)
        assert len(dali_l3.encode(image)) < image.nbytes


class TestInputArrays:
    @pytest.mark.parametrize(
        "view",
        [
            lambda a: a[::2],
            lambda a: a[:, ::3],
            lambda a: a[::-1],
            lambda a: a[:, ::-1],
            lambda a: a[..., ::-1],
            lambda a: a[5:70, 9:100],
            lambda a: a[..., 1],
            lambda a: a[..., :2],
            lambda a: a.transpose(1, 0, 2),
            lambda a: np.asfortranarray(a),
            lambda a: a[:1],
            lambda a: a[:, :1],
            lambda a: np.broadcast_to(a[:1], a.shape),
            lambda a: np.broadcast_to(a[:, :1], a.shape),
        ],
    )
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_any_strides(self, view, dtype):
        image = view(smooth_image((90, 120, 3), dtype))
        assert_same(dali_l3.decode(dali_l3.encode(image)), np.ascontiguousarray(image))

    def test_unaligned(self):
        image = smooth_image((20, 30), np.uint16)
        unaligned = np.frombuffer(b"x" + image.tobytes(), np.uint8)[1:].view(np.uint16).reshape(image.shape)
        assert not unaligned.flags.aligned
        assert_same(dali_l3.decode(dali_l3.encode(unaligned)), image)

    def test_read_only(self):
        image = smooth_image((20, 30), np.uint8)
        image.flags.writeable = False
        assert_same(dali_l3.decode(dali_l3.encode(image)), image)

    @pytest.mark.parametrize(
        ("dtype", "name"),
        [
            ("bool", "bool"),
            ("int8", "int8"),
            ("int16", "int16"),
            ("uint32", "uint32"),
            ("int64", "int64"),
            ("float16", "float16"),
            ("float32", "float32"),
            ("float64", "float64"),
            ("complex64", "complex64"),
            ("object", "object"),
            ("S1", "S1"),
            (">u2", "big-endian uint16"),
        ],
    )
    def test_other_dtypes_are_refused_by_name(self, dtype, name):
        with pytest.raises(TypeError, match=name):
            dali_l3.encode(np.zeros((4, 4), dtype))

    @pytest.mark.parametrize("image", ["photo.png", Path("photo.png"), b"\x89PNG", None, ["a", "b"]])
    def test_what_is_no_array(self, image):
        message = f"array must be an image as an array of uint8 or uint16, not {type(image).__name__}"
        with pytest.raises(TypeError, match=message):
            dali_l3.encode(image)

    @pytest.mark.parametrize(
        ("mode", "advice"),
        [
            ("P", "encode image.convert('RGB'), or np.asarray(image) for the numbers"),
            ("PA", "encode image.convert('RGB'), or np.asarray(image) for the numbers"),
            ("CMYK", "encode image.convert('RGB'), or np.asarray(image) for the numbers"),
            ("YCbCr", "encode image.convert('RGB'), or np.asarray(image) for the numbers"),
            ("HSV", "encode image.convert('RGB'), or np.asarray(image) for the numbers"),
            ("LAB", "encode image.convert('RGB'), or np.asarray(image) for the numbers"),
            ("RGBX", "encode image.convert('RGB'), or np.asarray(image) for the numbers"),
            ("RGBa", "encode image.convert('RGBA')"),
            ("La", "encode image.convert('LA')"),
            ("1", "encode image.convert('L')"),
            ("I", "scale np.asarray(image) to uint8 or uint16 first"),
            ("F", "scale np.asarray(image) to uint8 or uint16 first"),
        ],
    )
    def test_images_of_pillow_whose_numbers_are_no_colours_are_refused(self, mode, advice):
        image = Image.new(mode, (5, 4))
        with pytest.raises(TypeError) as caught:
            dali_l3.encode(image)
        assert str(caught.value) == f"images of Pillow's mode {mode!r} are not supported: {advice}"

    @pytest.mark.parametrize(("mode", "colour"), [("L", 7), ("RGB", (1, 2, 3))])
    def test_images_of_pillow_with_a_transparent_colour_are_refused(self, tmp_path, mode, colour):
        Image.new(mode, (5, 4)).save(tmp_path / "a.png", transparency=colour)
        image = Image.open(tmp_path / "a.png")
        with pytest.raises(TypeError, match="transparent colour are not supported: encode image.convert"):
            dali_l3.encode(image)
        assert dali_l3.peek(dali_l3.encode(image.convert("RGBA"))).channels == 4

    @pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "I;16"])
    def test_images_of_pillow(self, mode):
        samples = smooth_image((4, 5, len(mode)), np.uint8) if mode != "I;16" else smooth_image((4, 5), np.uint16)
        image = Image.fromarray(samples[:, :, 0] if mode == "L" else samples)
        assert image.mode == mode
        assert_same(dali_l3.decode(dali_l3.encode(image)), np.asarray(image))

    @pytest.mark.parametrize("shape", [(), (4,), (2, 2, 3, 1), (0, 4), (4, 0, 3), (4, 4, 0), (4, 4, 5)])
    def test_other_shapes_are_refused(self, shape):
        with pytest.raises(L3Error) as caught:
            dali_l3.encode(np.zeros(shape, np.uint8))
        assert caught.value.status in ("argument", "limit")

    @pytest.mark.parametrize("shape", [(3, 20, 30), (1, 5, 5), (4, 4, 5)])
    def test_channels_first_are_refused_with_advice(self, shape):
        with pytest.raises(L3Error, match="channels last\\? encode np.moveaxis\\(array, 0, -1\\)"):
            dali_l3.encode(np.zeros(shape, np.uint8))
        dali_l3.encode(np.moveaxis(np.zeros(shape, np.uint8), 0, -1))

    @pytest.mark.parametrize("mask", [False, True, np.eye(4, dtype=bool)])
    def test_masked_arrays_are_refused(self, mask):
        with pytest.raises(TypeError, match="masked arrays are not supported"):
            dali_l3.encode(np.ma.array(np.zeros((4, 4), np.uint8), mask=mask))

    @pytest.mark.parametrize(
        "shape",
        [(1, 2**20 + 1), (2**20 + 1, 1), (2**20, 2**20, 4), (2**32, 1), (1, 2**32 + 1), (1, 1, 2**32), (2**40, 2, 3)],
    )
    def test_sizes_beyond_the_limit_are_refused_and_named(self, shape):
        huge = np.broadcast_to(np.zeros((), np.uint8), shape)
        with pytest.raises(L3Error) as caught:
            dali_l3.encode(huge)
        assert caught.value.status == "limit"
        assert str(max(shape)) in str(caught.value)

    def test_unknown_profile_and_effort(self):
        image = np.zeros((4, 4), np.uint8)
        with pytest.raises(L3Error, match="'slow'"):
            dali_l3.encode(image, profile="slow")
        with pytest.raises(L3Error, match="'dense' is reserved for a later version: expected 'fast', 'raw' or 'paper'"):
            dali_l3.encode(image, profile="dense")
        for effort in (-(2**70), -1, 0, 4, 2**32 + 1):
            with pytest.raises(L3Error, match=f"effort must be 1, 2 or 3, not {effort}"):
                dali_l3.encode(image, effort=effort)


class TestMetadata:
    def test_round_trip_in_order(self):
        metadata = {"icc": b"\x00\x01\x02", "exif": b"", "schlüssel": bytes(range(256)) * 10}
        data = dali_l3.encode(np.zeros((4, 4), np.uint8), metadata=metadata)
        assert list(dali_l3.read_metadata(data).items()) == list(metadata.items())

    def test_none(self):
        data = dali_l3.encode(np.zeros((4, 4), np.uint8))
        assert dali_l3.read_metadata(data) == {}
        assert dali_l3.peek(data).metadata_size == 0

    def test_values_may_be_any_bytes_like(self):
        values = {"a": bytearray(b"abc"), "b": memoryview(b"defg")[::2], "c": np.arange(3, dtype=np.uint16)}
        data = dali_l3.encode(np.zeros((4, 4), np.uint8), metadata=values)
        assert dali_l3.read_metadata(data) == {"a": b"abc", "b": b"df", "c": b"\0\0\1\0\2\0"}

    @pytest.mark.parametrize("key", ["", "k" * 256, "\udcff"])
    def test_keys_that_the_format_cannot_hold_are_refused(self, key):
        with pytest.raises(L3Error, match="key") as caught:
            dali_l3.encode(np.zeros((4, 4), np.uint8), metadata={key: b""})
        assert caught.value.status == "argument"


class TestArgumentTypes:
    """An argument of a wrong type is named with its type and what is expected, and no data is printed."""

    image = smooth_image((70, 80, 3), np.uint8)
    data = dali_l3.encode(image)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"profile": None}, "profile must be a str, not NoneType"),
            ({"profile": 2}, "profile must be a str, not int"),
            ({"effort": None}, "effort must be an integer, not NoneType"),
            ({"effort": 2.0}, "effort must be an integer, not float"),
            ({"effort": "2"}, "effort must be an integer, not str"),
            ({"checksums": None}, "checksums must be True or False, not NoneType"),
            ({"checksums": "no"}, "checksums must be True or False, not str"),
            ({"metadata": []}, "metadata must be a mapping, not list"),
            ({"metadata": [("a", b"")]}, "metadata must be a mapping, not list"),
            ({"metadata": b"icc"}, "metadata must be a mapping, not bytes"),
            ({"metadata": {b"a": b""}}, "metadata's keys must be str, not bytes"),
            ({"metadata": {1: b""}}, "metadata's keys must be str, not int"),
            ({"metadata": {"a": "text"}}, "metadata['a'] must be bytes-like, not str"),
            ({"metadata": {"a": 5}}, "metadata['a'] must be bytes-like, not int"),
            ({"metadata": {"a": None}}, "metadata['a'] must be bytes-like, not NoneType"),
        ],
    )
    def test_encode(self, arguments, message):
        with pytest.raises(TypeError) as caught:
            dali_l3.encode(self.image, **arguments)
        assert str(caught.value) == message

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"verify": "x"}, "verify must be True or False, not str"),
            ({"verify": 1.0}, "verify must be True or False, not float"),
            ({"verify": data}, "verify must be True or False, not bytes"),
            ({"out": "text"}, "out must be an array, a DLPack tensor or a buffer, not str"),
            ({"out": [[0]]}, "out must be an array, a DLPack tensor or a buffer, not list"),
            ({"roi": 5}, "roi must be (top, left, height, width), not int"),
            ({"roi": (0, 0, 1.5, 1)}, "roi's height must be an integer, not float"),
            ({"roi": (None, 0, 1, 1)}, "roi's top must be an integer, not NoneType"),
            ({"roi": "0011"}, "roi's top must be an integer, not str"),
        ],
    )
    def test_decode(self, arguments, message):
        with pytest.raises(TypeError) as caught:
            dali_l3.decode(self.data, **arguments)
        assert str(caught.value) == message

    @pytest.mark.parametrize("function", [dali_l3.decode, dali_l3.peek, dali_l3.read_metadata])
    @pytest.mark.parametrize(("data", "name"), [("text", "str"), (None, "NoneType"), (5, "int"), ([1, 2], "list")])
    def test_data(self, function, data, name):
        with pytest.raises(TypeError) as caught:
            function(data)
        assert str(caught.value) == f"data must be bytes-like, not {name}"

    def test_numpys_scalars_will_do(self):
        data = dali_l3.encode(self.image, effort=np.uint8(3), checksums=np.bool_(True))
        assert_same(dali_l3.decode(data, verify=np.bool_(True)), self.image)


class TestBytesLike:
    image = smooth_image((70, 80, 3), np.uint8)
    data = dali_l3.encode(image)

    @pytest.mark.parametrize(
        "convert", [bytes, bytearray, memoryview, lambda d: np.frombuffer(d, np.uint8), lambda d: array.array("B", d)]
    )
    def test_decode_and_peek(self, convert):
        assert_same(dali_l3.decode(convert(self.data)), self.image)
        assert dali_l3.peek(convert(self.data)) == dali_l3.peek(self.data)

    def test_mapped_file(self, tmp_path):
        path = tmp_path / "image.l3"
        path.write_bytes(self.data)
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            assert_same(dali_l3.decode(mapped), self.image)

    def test_buffer_is_released(self):
        data = bytearray(self.data)
        dali_l3.decode(data)
        with pytest.raises(L3Error):
            dali_l3.decode(data[:-20])
        data.append(0)  # raises BufferError while anyone still holds the buffer

    def test_gaps_are_refused(self):
        with pytest.raises(BufferError):
            dali_l3.decode(memoryview(self.data)[::2])


class TestOut:
    image = smooth_image((70, 80, 3), np.uint8)
    data = dali_l3.encode(image)

    def test_is_filled_and_returned(self):
        out = np.empty_like(self.image)
        assert dali_l3.decode(self.data, out=out) is out
        assert_same(out, self.image)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_rows_may_be_apart(self, dtype):
        image = smooth_image((70, 80, 3), dtype)
        canvas = np.full((100, 120, 3), 7, dtype)
        expected = canvas.copy()
        expected[11:81, 13:93] = image
        dali_l3.decode(dali_l3.encode(image), out=canvas[11:81, 13:93])
        assert_same(canvas, expected)  # and nothing was written beside the view

    def test_with_roi(self):
        out = np.empty((10, 20, 3), np.uint8)
        assert dali_l3.decode(self.data, out=out, roi=(5, 6, 10, 20)) is out
        assert_same(out, self.image[5:15, 6:26])

    @pytest.mark.parametrize(
        ("out", "error", "match"),
        [
            (np.empty((70, 80, 3), np.uint16), TypeError, "uint16"),
            (np.empty((70, 80, 3), np.int8), TypeError, "int8"),
            (np.empty((70, 80), np.uint8), ValueError, r"\(70, 80\)"),
            (np.empty((70, 80, 4), np.uint8), ValueError, r"\(70, 80, 4\)"),
            (np.empty((71, 80, 3), np.uint8), ValueError, r"\(71, 80, 3\)"),
            (np.empty((1, 70, 80, 3), np.uint8), ValueError, r"\(1, 70, 80, 3\)"),
            (np.empty((70, 80, 4), np.uint8)[..., :3], ValueError, "contiguous"),
            (np.empty((70, 160, 3), np.uint8)[:, ::2], ValueError, "contiguous"),
            (np.empty((70, 80, 3), np.uint8)[::-1], ValueError, "contiguous"),
            (np.empty((80, 70, 3), np.uint8).transpose(1, 0, 2), ValueError, "contiguous"),
            (np.broadcast_to(np.empty((80, 3), np.uint8), (70, 80, 3)), ValueError, "read-only"),
            (bytearray(70 * 80 * 3 - 1), ValueError, r"\(16799,\)"),
            (bytes(70 * 80 * 3), ValueError, "read-only"),
            (memoryview(bytearray(70 * 80 * 6))[::2], ValueError, r"\(16800,\)"),
            (array.array("H", bytes(70 * 80 * 3)), TypeError, "uint16"),
            (Image.new("RGB", (80, 70)), ValueError, "read-only"),
        ],
    )
    def test_unsuitable_arrays_are_refused(self, out, error, match):
        with pytest.raises(error, match=match):
            dali_l3.decode(self.data, out=out)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_any_writable_buffer_of_the_size(self, dtype):
        image = smooth_image((70, 80, 3), dtype)
        data = dali_l3.encode(image)
        with mmap.mmap(-1, image.nbytes) as mapped:
            for out in (
                bytearray(image.nbytes),
                mapped,
                array.array("B" if dtype == np.uint8 else "H", image.tobytes()),
            ):
                memoryview(out).cast("B")[:] = bytes(image.nbytes)
                assert dali_l3.decode(data, out=out) is out
                assert bytes(out) == image.tobytes()

    def test_a_buffer_with_dimensions(self):
        out = memoryview(bytearray(10 * 20 * 3)).cast("B", (10, 20, 3))
        assert dali_l3.decode(self.data, out=out, roi=(5, 6, 10, 20)) is out
        assert_same(np.asarray(out), self.image[5:15, 6:26])

    def test_what_has_an_array_interface(self):
        class Lender:
            def __init__(self, array):
                self.__array_interface__ = array.__array_interface__

        memory = np.empty((90, 80, 3), np.uint8)
        out = Lender(memory[9:79])
        assert dali_l3.decode(self.data, out=out) is out
        assert_same(memory[9:79], self.image)

    def test_dlpack(self):
        class Tensor:
            def __init__(self, array, device):
                self.array, self.device = array, device

            def __dlpack__(self, **arguments):
                return self.array.__dlpack__(**arguments)

            def __dlpack_device__(self):
                return self.device, 0

        out = Tensor(np.empty_like(self.image), device=1)
        assert dali_l3.decode(self.data, out=out) is out
        assert_same(out.array, self.image)
        with pytest.raises(TypeError, match="out is not in the computer's main memory"):
            dali_l3.decode(self.data, out=Tensor(out.array, device=2))

    def test_overlapping_rows_are_refused(self):
        out = np.lib.stride_tricks.as_strided(np.empty(10_000, np.uint8), (70, 80, 3), (100, 3, 1), writeable=True)
        with pytest.raises(ValueError, match="contiguous"):
            dali_l3.decode(self.data, out=out)

    def test_unaligned_is_refused(self):
        data = dali_l3.encode(smooth_image((4, 4), np.uint16))
        out = np.empty(33, np.uint8)[1:].view(np.uint16).reshape(4, 4)
        with pytest.raises(ValueError, match="aligned"):
            dali_l3.decode(data, out=out)


class TestRoi:
    image = smooth_image((150, 200, 3), np.uint8)
    data = dali_l3.encode(image)

    @pytest.mark.parametrize(
        "roi",
        [
            (0, 0, 150, 200),
            (0, 0, 1, 1),
            (149, 199, 1, 1),
            (63, 63, 2, 2),
            (64, 128, 64, 64),
            (10, 0, 140, 7),
            (1, 1, 148, 198),
        ],
    )
    @pytest.mark.parametrize("profile", PROFILES)
    def test_equals_the_slice(self, roi, profile):
        top, left, height, width = roi
        data = dali_l3.encode(self.image, profile=profile)
        assert_same(dali_l3.decode(data, roi=roi), self.image[top : top + height, left : left + width])

    def test_of_a_two_dimensional_image(self):
        image = smooth_image((100, 100), np.uint16)
        assert_same(dali_l3.decode(dali_l3.encode(image), roi=(30, 40, 50, 60)), image[30:80, 40:100])

    def test_numpy_integers(self):
        assert_same(dali_l3.decode(self.data, roi=np.array([1, 2, 3, 4])), self.image[1:4, 2:6])

    @pytest.mark.parametrize(
        "roi",
        [
            (-1, 0, 5, 5),
            (0, -1, 5, 5),
            (0, 0, 0, 5),
            (0, 0, 5, 0),
            (0, 0, 151, 1),
            (0, 0, 1, 201),
            (150, 0, 1, 1),
            (1, 0, 150, 1),
            (0, 0, -5, 5),
            (0, 2**32, 1, 1),
            (2**63 - 1, 0, 1, 1),
            (0, 0, 2**63 - 1, 1),
            (2**80, 0, 1, 1),
            (0, 0, 1, -(2**80)),
        ],
    )
    def test_outside_the_image_is_refused(self, roi):
        with pytest.raises(L3Error, match="roi") as caught:
            dali_l3.decode(self.data, roi=roi)
        assert caught.value.status == "argument"

    @pytest.mark.parametrize("roi", [(), (0, 0, 1), (0, 0, 1, 1, 1), ""])
    def test_other_than_four_values_are_refused(self, roi):
        with pytest.raises(ValueError, match="roi must have four values"):
            dali_l3.decode(self.data, roi=roi)

    def test_touches_only_its_tiles(self):
        data = bytearray(dali_l3.encode(self.image, profile="fast"))
        data[-17] ^= 0xFF  # damages the last tile alone: 16 bytes of trailer follow it
        assert_same(dali_l3.decode(data, roi=(0, 0, 64, 128), verify=True), self.image[:64, :128])
        with pytest.raises(L3Error):
            dali_l3.decode(data, roi=(140, 195, 1, 1), verify=True)


class TestPeek:
    def test_fields(self):
        image = smooth_image((65, 130, 3), np.uint16)
        data = dali_l3.encode(image, profile="raw", metadata={"k": b"value"})
        info = dali_l3.peek(data)
        assert dataclasses.asdict(info) == {
            "width": 130,
            "height": 65,
            "channels": 3,
            "dtype": np.dtype(np.uint16),
            "shape": (65, 130, 3),
            "profile": "raw",
            "version": "1.0",
            "tiles": 6,
            "has_checksums": True,
            "prototype": False,
            "metadata_size": 16,
            "payload_size": info.payload_size,
            "file_size": len(data),
        }
        assert info.payload_size >= image.nbytes

    def test_shape_is_that_of_the_array(self):
        for shape in [(7, 9), (7, 9, 1), (7, 9, 4)]:
            assert dali_l3.peek(dali_l3.encode(np.zeros(shape, np.uint8))).shape == shape

    def test_needs_the_header_alone(self):
        data = dali_l3.encode(smooth_image((65, 130, 3), np.uint8))
        assert dali_l3.peek(data[:48]) == dali_l3.peek(data)

    def test_is_frozen(self):
        info = dali_l3.peek(dali_l3.encode(np.zeros((1, 1), np.uint8)))
        with pytest.raises(dataclasses.FrozenInstanceError):
            info.width = 5


class TestErrors:
    data = dali_l3.encode(smooth_image((70, 80, 3), np.uint8))

    @pytest.mark.parametrize(
        ("data", "status"),
        [
            (b"", "truncated"),
            (b"\x89PNG\r\n\x1a\n" + bytes(100), "signature"),
            (data[:47], "truncated"),
            (data[:-17], "truncated"),
        ],
    )
    def test_status(self, data, status):
        with pytest.raises(L3Error) as caught:
            dali_l3.decode(data)
        assert caught.value.status == status
        assert str(caught.value)

    def test_checksum(self):
        damaged = bytearray(dali_l3.encode(np.zeros((64, 64), np.uint8), profile="raw"))
        damaged[-17] ^= 1
        assert dali_l3.decode(damaged, verify=False)[-1, -1] == 1
        with pytest.raises(L3Error) as caught:
            dali_l3.decode(damaged, verify=True)
        assert caught.value.status == "checksum"

    @pytest.mark.parametrize("profile", PROFILES)
    def test_checksums_are_checked_by_default_unless_pixels_are_stored(self, profile):
        image = smooth_image((64, 64), np.uint8)
        damaged = bytearray(dali_l3.encode(image, profile=profile))
        damaged[-17] ^= 1
        if profile == "raw":
            assert dali_l3.decode(damaged)[-1, -1] == image[-1, -1] ^ 1
        else:
            with pytest.raises(L3Error) as caught:
                dali_l3.decode(damaged)
            assert caught.value.status == "checksum"

    def test_crosses_processes(self):
        error = pickle.loads(pickle.dumps(L3Error("what is wrong", "corrupt")))
        assert isinstance(error, ValueError)
        assert (str(error), error.status) == ("what is wrong", "corrupt")


class TestThreadsAndProcesses:
    def test_the_gil_is_released(self):
        image = smooth_image((1000, 1000, 3), np.uint8)
        data = dali_l3.encode(image)
        check_gil_is_released(lambda: dali_l3.encode(image))
        check_gil_is_released(lambda: dali_l3.decode(data))

    def test_many_threads(self):
        images = [smooth_image((100 + i, 150, 3), np.uint8, seed=i) for i in range(8)]
        with ThreadPoolExecutor(8) as pool:
            for _ in range(5):
                files = list(pool.map(dali_l3.encode, images))
                for decoded, image in zip(pool.map(dali_l3.decode, files), images, strict=True):
                    assert_same(decoded, image)

    def test_many_processes(self, run_python):
        """In a fresh interpreter, which is alone with its threads when it forks."""
        program = """if True:
            import multiprocessing, numpy as np, dali_l3
            images = [np.random.default_rng(i).integers(0, 256, (100 + i, 150, 3), np.uint8) for i in range(4)]
            for method in ("fork", "spawn"):
                with multiprocessing.get_context(method).Pool(2) as pool:
                    assert pool.map(dali_l3.encode, images) == list(map(dali_l3.encode, images)), method
                    try:
                        pool.map(dali_l3.decode, [b"not an L3 file" * 10])
                    except dali_l3.L3Error as error:
                        print(method, error.status, "L3" in str(error))
        """
        assert run_python(program) == "fork signature True\nspawn signature True"


class TestBackend:
    def test_is_one_of_them(self):
        assert dali_l3.backend() in ("avx512", "avx2", "portable")

    def test_is_forced_by_the_environment(self, run_python):
        program = "import dali_l3; print(dali_l3.backend())"
        assert run_python(program, env={**os.environ, "DALI_L3_BACKEND": "portable"}) == "portable"

    def test_an_unknown_one_is_an_error(self, run_python):
        program = """if True:
            import numpy as np, dali_l3
            print(dali_l3.backend())
            try:
                dali_l3.encode(np.zeros((4, 4), np.uint8))
            except dali_l3.L3Error as error:
                print(error)
        """
        name, error = run_python(program, env={**os.environ, "DALI_L3_BACKEND": "abacus"}).split("\n")
        assert name == "none"
        assert "abacus" in error
