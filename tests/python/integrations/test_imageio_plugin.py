"""L3 in imageio: reading, writing, properties, and what is refused."""

import io

import numpy as np
import pytest
from conftest import smooth_image

import dali_l3

iio = pytest.importorskip("imageio.v3")

SHAPES = [(65, 130), (65, 130, 1), (65, 130, 2), (65, 130, 3), (65, 130, 4)]


@pytest.fixture(params=[np.uint8, np.uint16])
def dtype(request):
    return request.param


class TestReading:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_every_image(self, tmp_path, shape, dtype):
        array = smooth_image(shape, dtype)
        dali_l3.imwrite(tmp_path / "a.l3", array)
        for index, wanted in ((0, array), (None, array), (..., array[None])):
            read = iio.imread(tmp_path / "a.l3", index=index)
            assert read.dtype == dtype
            np.testing.assert_array_equal(read, wanted)
        np.testing.assert_array_equal(next(iter(iio.imiter(tmp_path / "a.l3"))), array)

    def test_without_its_name(self, tmp_path):
        array = smooth_image((20, 30, 3), np.uint16)
        (tmp_path / "a.dat").write_bytes(dali_l3.encode(array))
        np.testing.assert_array_equal(iio.imread(tmp_path / "a.dat", plugin="dali_l3"), array)
        np.testing.assert_array_equal(iio.imread(dali_l3.encode(array), extension=".l3"), array)
        np.testing.assert_array_equal(iio.imread(io.BytesIO(dali_l3.encode(array)), plugin="dali_l3"), array)

    def test_a_region(self, tmp_path):
        array = smooth_image((200, 300, 3), np.uint8)
        dali_l3.imwrite(tmp_path / "a.l3", array)
        np.testing.assert_array_equal(iio.imread(tmp_path / "a.l3", roi=(10, 20, 30, 40)), array[10:40, 20:60])

    def test_properties_and_metadata(self, tmp_path):
        dali_l3.imwrite(tmp_path / "a.l3", np.zeros((4, 5, 3), np.uint16), metadata={"icc": b"colours"})
        facts = iio.improps(tmp_path / "a.l3")
        assert (facts.shape, facts.dtype, facts.is_batch) == ((4, 5, 3), np.uint16, False)
        facts = iio.improps(tmp_path / "a.l3", index=...)
        assert (facts.shape, facts.n_images, facts.is_batch) == ((1, 4, 5, 3), 1, True)
        assert iio.immeta(tmp_path / "a.l3") == {"icc": b"colours"}

    def test_another_index(self, tmp_path):
        dali_l3.imwrite(tmp_path / "a.l3", np.zeros((4, 5), np.uint8))
        with pytest.raises(ValueError, match="an L3 file holds one image, which has index 0, not 1"):
            iio.imread(tmp_path / "a.l3", index=1)

    def test_damage_is_named(self, tmp_path):
        data = dali_l3.encode(smooth_image((64, 64), np.uint8))
        (tmp_path / "a.l3").write_bytes(data[:-20])
        with pytest.raises(OSError, match=r"a\.l3: truncated"):
            iio.imread(tmp_path / "a.l3")

    def test_other_files_are_left_to_others(self, tmp_path):
        array = smooth_image((20, 30, 3), np.uint8)
        iio.imwrite(tmp_path / "a.png", array)
        (tmp_path / "a.png").rename(tmp_path / "a.l3")
        np.testing.assert_array_equal(iio.imread(tmp_path / "a.l3"), array)


class TestWriting:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_every_image(self, tmp_path, shape, dtype):
        array = smooth_image(shape, dtype)
        assert iio.imwrite(tmp_path / "a.l3", array) is None
        read = dali_l3.imread(tmp_path / "a.l3")
        assert read.dtype == dtype
        np.testing.assert_array_equal(read, array)

    def test_to_bytes_with_options(self):
        array = smooth_image((20, 30, 3), np.uint8)
        data = iio.imwrite("<bytes>", array, extension=".l3", profile="raw", metadata={"k": b"v"}, checksums=False)
        info = dali_l3.peek(data)
        assert (info.profile, info.has_checksums, dali_l3.read_metadata(data)) == ("raw", False, {"k": b"v"})
        np.testing.assert_array_equal(dali_l3.decode(data), array)

    def test_several_images(self, tmp_path):
        with pytest.raises(ValueError, match="an L3 file holds one image, as an array; this is a list"):
            iio.imwrite(tmp_path / "a.l3", [np.zeros((4, 4), np.uint8)] * 2)

    def test_no_image(self, tmp_path):
        with pytest.raises(TypeError, match="float64 images are not supported"):
            iio.imwrite(tmp_path / "a.l3", np.zeros((4, 4)))

    def test_another_extension(self, tmp_path):
        with pytest.raises(OSError, match="can not handle"):
            iio.imwrite(tmp_path / "a.png", np.zeros((4, 4), np.uint8), plugin="dali_l3")


@pytest.mark.parametrize(
    "imports", ["import dali_l3; import imageio.v3 as iio", "import imageio.v3 as iio; import dali_l3"]
)
def test_the_order_of_imports_does_not_matter(run_python, imports):
    program = f"""if True:
        {imports}
        import numpy as np
        iio.imwrite("a.l3", np.zeros((3, 2), np.uint8))
        print(iio.imread("a.l3").shape, dali_l3.peek(open("a.l3", "rb").read()).profile)
    """
    assert run_python(program) == "(3, 2) fast"


def test_importing_dali_l3_does_not_import_imageio(run_python):
    assert run_python("import dali_l3, sys; print('imageio' in sys.modules)") == "False"
