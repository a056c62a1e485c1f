"""imread, imwrite and imshape: files by path, and what is wrong with which."""

import errno
import io
import os
from pathlib import Path

import numpy as np
import pytest
from conftest import smooth_image
from hypothesis import given
from hypothesis import strategies as st

import dali_l3
from dali_l3 import L3Error

IMAGE = smooth_image((150, 300, 3), np.uint8)
GOLDEN = Path(__file__).parents[2] / "data" / "golden"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("images")


@pytest.fixture(scope="module")
def path(folder):
    path = folder / "image.l3"
    path.write_bytes(dali_l3.encode(IMAGE))
    return path


class OtherPath:
    """A PathLike that is no pathlib.Path, and may be of bytes."""

    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return self.path


class TestRoundTrip:
    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
    @pytest.mark.parametrize("shape", [(1, 1), (70, 90), (65, 130, 1), (65, 130, 4)])
    @pytest.mark.parametrize("profile", ["fast", "raw", "paper"])
    def test_any_image(self, tmp_path, shape, dtype, profile):
        image = smooth_image(shape, dtype)
        assert dali_l3.imwrite(tmp_path / "a.l3", image, profile, metadata={"icc": b"colours"}) is None
        assert dali_l3.imshape(tmp_path / "a.l3") == shape
        read = dali_l3.imread(tmp_path / "a.l3")
        assert read.dtype == dtype
        np.testing.assert_array_equal(read, image)
        data = (tmp_path / "a.l3").read_bytes()
        assert (dali_l3.peek(data).profile, dali_l3.read_metadata(data)) == (profile, {"icc": b"colours"})

    @pytest.mark.parametrize("kind", [str, Path, OtherPath, lambda path: OtherPath(os.fsencode(path))])
    @pytest.mark.parametrize("name", ["plain.l3", "schräg und weit.l3", b"no utf-8 \xff.l3"])
    def test_any_path(self, tmp_path, kind, name):
        path = kind(os.path.join(tmp_path, os.fsdecode(name)))
        dali_l3.imwrite(path, IMAGE)
        assert dali_l3.imshape(path) == IMAGE.shape
        np.testing.assert_array_equal(dali_l3.imread(path), IMAGE)

    def test_a_file_is_replaced_and_nothing_is_left_beside_it(self, tmp_path):
        path = tmp_path / "a.l3"
        path.write_bytes(b"old")
        dali_l3.imwrite(path, IMAGE)
        np.testing.assert_array_equal(dali_l3.imread(path), IMAGE)
        assert os.listdir(tmp_path) == ["a.l3"]

    def test_into_memory(self, path):
        out = np.empty_like(IMAGE)
        assert dali_l3.imread(path, out=out) is out
        np.testing.assert_array_equal(out, IMAGE)

    def test_every_golden_file_reads_as_its_bytes_do(self):
        files = sorted(GOLDEN.rglob("*.l3"))
        assert len(files) > 10
        for file in files:
            decoded = dali_l3.decode(file.read_bytes())
            np.testing.assert_array_equal(dali_l3.imread(file), decoded, err_msg=file.name)
            assert dali_l3.imshape(file) == decoded.shape


class TestRegions:
    @given(st.data())
    def test_equals_the_slice(self, folder, data):
        height, width = data.draw(st.tuples(st.integers(1, 200), st.integers(1, 200)))
        top, left = data.draw(st.tuples(st.integers(0, height - 1), st.integers(0, width - 1)))
        rows, columns = data.draw(st.tuples(st.integers(1, height - top), st.integers(1, width - left)))
        image = smooth_image((height, width, data.draw(st.integers(1, 4))), data.draw(st.sampled_from(["u1", "u2"])))
        profile = data.draw(st.sampled_from(["fast", "raw", "paper"]))
        dali_l3.imwrite(folder / "drawn.l3", image, profile, checksums=data.draw(st.booleans()), metadata={"k": b"v"})
        read = dali_l3.imread(folder / "drawn.l3", roi=(top, left, rows, columns))
        np.testing.assert_array_equal(read, image[top : top + rows, left : left + columns])

    def test_bytes_after_the_image_do_not_matter(self, tmp_path):
        path = tmp_path / "a.l3"
        path.write_bytes(dali_l3.encode(IMAGE) + b"more")
        np.testing.assert_array_equal(dali_l3.imread(path, roi=(10, 20, 30, 40)), IMAGE[10:40, 20:60])
        np.testing.assert_array_equal(dali_l3.imread(path), IMAGE)

    def test_only_its_tiles_are_read(self, tmp_path):
        """What is wrong with the others goes unnoticed; what is wrong with one of these does not."""
        data = bytearray(dali_l3.encode(IMAGE))
        data[-17] ^= 0xFF  # the last tile
        (tmp_path / "a.l3").write_bytes(data)
        np.testing.assert_array_equal(dali_l3.imread(tmp_path / "a.l3", roi=(0, 0, 128, 300)), IMAGE[:128])
        with pytest.raises(L3Error, match=r"a\.l3: tile 14 "):
            dali_l3.imread(tmp_path / "a.l3", roi=(140, 290, 1, 1))

    def test_of_a_prototype_file(self):
        prototypes = [file for file in sorted(GOLDEN.rglob("*.l3")) if file.read_bytes().startswith(b"LLL.")]
        assert prototypes
        for file in prototypes:
            decoded = dali_l3.decode(file.read_bytes())
            np.testing.assert_array_equal(dali_l3.imread(file, roi=(0, 0, 1, 1)), decoded[:1, :1])

    def test_outside_the_image(self, path):
        with pytest.raises(L3Error, match=r"image\.l3: roi .*\(0, 0, 151, 1\) is not inside the image") as caught:
            dali_l3.imread(path, roi=(0, 0, 151, 1))
        assert caught.value.status == "argument"


@pytest.mark.parametrize("read", [dali_l3.imread, dali_l3.imshape, lambda path: dali_l3.imread(path, roi=(0, 0, 1, 1))])
class TestUnreadable:
    def test_missing(self, tmp_path, read):
        with pytest.raises(FileNotFoundError) as caught:
            read(tmp_path / "missing.l3")
        assert caught.value.filename == str(tmp_path / "missing.l3")

    def test_no_utf_8(self, tmp_path, read):
        path = os.path.join(os.fsencode(tmp_path), b"\xff.l3")
        with pytest.raises(FileNotFoundError) as caught:
            read(OtherPath(path))
        assert os.fsencode(caught.value.filename) == path

    def test_a_folder(self, tmp_path, read):
        with pytest.raises(IsADirectoryError, match="is a directory"):
            read(tmp_path)

    def test_a_fifo(self, tmp_path, read):
        os.mkfifo(tmp_path / "fifo.l3")
        with pytest.raises(OSError, match="is not a regular file") as caught:
            read(tmp_path / "fifo.l3")
        assert caught.value.errno == errno.EINVAL

    @pytest.mark.parametrize(
        ("content", "status", "problem"),
        [
            (b"", "truncated", "is empty"),
            (b"\x89PNG\r\n\x1a\n" + bytes(100), "signature", "not an L3 file"),
            (dali_l3.encode(IMAGE)[:40], "truncated", "truncated: 40 of"),
        ],
    )
    def test_no_l3_file(self, tmp_path, read, content, status, problem):
        path = tmp_path / "no utf-8 \udcff.l3"
        path.write_bytes(content)
        with pytest.raises(L3Error) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert problem in str(caught.value)
        assert caught.value.status == status

    @pytest.mark.parametrize("path", [b"image.l3", 3, None, ["image.l3"]])
    def test_no_path(self, read, path):
        with pytest.raises(TypeError, match=f"path must be a str or PathLike, not {type(path).__name__}"):
            read(path)

    def test_null_characters(self, read):
        with pytest.raises(ValueError, match="null character"):
            read("a\0b")


class TestDamaged:
    @pytest.mark.parametrize("roi", [None, (0, 0, 1, 1)])
    def test_cut_off(self, tmp_path, roi):
        data = dali_l3.encode(IMAGE)
        for size in range(48, len(data), len(data) // 20):
            (tmp_path / "a.l3").write_bytes(data[:size])
            with pytest.raises(L3Error, match=rf"a\.l3: truncated: {size} of {len(data)} bytes"):
                dali_l3.imread(tmp_path / "a.l3", roi=roi)

    @given(st.integers(0, 2000), st.integers(1, 255))
    def test_a_byte_flipped_gives_what_decode_gives(self, folder, position, flip):
        data = bytearray(dali_l3.encode(IMAGE))
        data[position] ^= flip
        (folder / "flipped.l3").write_bytes(data)

        def outcome(function, *arguments):
            try:
                return function(*arguments, roi=(64, 64, 10, 10)).tobytes()
            except L3Error as error:
                return error.status

        assert outcome(dali_l3.imread, folder / "flipped.l3") == outcome(dali_l3.decode, data)


class TestUnwritable:
    def test_no_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="there is no folder") as caught:
            dali_l3.imwrite(tmp_path / "missing" / "a.l3", IMAGE)
        assert caught.value.filename == str(tmp_path / "missing" / "a.l3")

    def test_no_image(self, tmp_path):
        (tmp_path / "a.l3").write_bytes(b"old")
        with pytest.raises(TypeError, match=r"a\.l3: float64 images are not supported"):
            dali_l3.imwrite(tmp_path / "a.l3", np.zeros((4, 4)))
        with pytest.raises(L3Error, match=r"a\.l3: .*channels last\?"):
            dali_l3.imwrite(tmp_path / "a.l3", np.zeros((3, 40, 40), np.uint8))
        assert (tmp_path / "a.l3").read_bytes() == b"old"

    def test_no_path(self):
        with pytest.raises(TypeError, match="path must be a str or PathLike, not BytesIO"):
            dali_l3.imwrite(io.BytesIO(), IMAGE)
