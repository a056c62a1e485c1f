"""L3 in Pillow: opening, saving, metadata, and what is refused."""

import io

import numpy as np
import pytest
from conftest import smooth_image
from PIL import Image, UnidentifiedImageError

import dali_l3

MODES = {
    "L": ((65, 130), np.uint8),
    "LA": ((65, 130, 2), np.uint8),
    "RGB": ((65, 130, 3), np.uint8),
    "RGBA": ((65, 130, 4), np.uint8),
    "I;16": ((65, 130), np.uint16),
}


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture
def array(mode):
    return smooth_image(*MODES[mode])


class TestOpening:
    def test_every_mode(self, tmp_path, mode, array):
        (tmp_path / "a.l3").write_bytes(dali_l3.encode(array))
        with Image.open(tmp_path / "a.l3") as image:
            assert (image.mode, image.size, image.format) == (mode, (130, 65), "L3")
            assert image.get_format_mimetype() == "image/x-l3"
            np.testing.assert_array_equal(np.asarray(image), array)

    def test_one_channel_is_gray(self, tmp_path):
        array = smooth_image((20, 30, 1), np.uint8)
        assert Image.open(io.BytesIO(dali_l3.encode(array))).mode == "L"

    def test_by_content(self, tmp_path, array):
        (tmp_path / "a.dat").write_bytes(dali_l3.encode(array))
        np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "a.dat")), array)
        np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(dali_l3.encode(array)), formats=["L3"])), array)

    def test_pixels_are_read_when_needed(self, tmp_path):
        data = dali_l3.encode(smooth_image((64, 64), np.uint8))
        (tmp_path / "a.l3").write_bytes(data[:-20])
        image = Image.open(tmp_path / "a.l3")
        assert image.size == (64, 64)
        with pytest.raises(OSError, match=r"a\.l3: truncated"):
            image.load()

    def test_metadata(self, tmp_path):
        exif = Image.Exif()
        exif[0x0112] = 6
        tiff = exif.tobytes().removeprefix(b"Exif\0\0")
        metadata = {"icc": b"colours", "exif": tiff, "xmp": b"<x/>", "other": b"more"}
        (tmp_path / "a.l3").write_bytes(dali_l3.encode(np.zeros((4, 4), np.uint8), metadata=metadata))
        image = Image.open(tmp_path / "a.l3")
        assert (image.info["icc_profile"], image.info["xmp"]) == (b"colours", b"<x/>")
        assert image.getexif()[0x0112] == 6

    @pytest.mark.parametrize("channels", [2, 3, 4])
    def test_deep_colours_are_refused_with_advice(self, tmp_path, channels):
        dali_l3.imwrite(tmp_path / "a.l3", np.zeros((4, 4, channels), np.uint16))
        with pytest.raises(
            OSError, match=rf"a\.l3: Pillow has no mode for {channels} channels of 16 bits: use dali_l3"
        ):
            Image.open(tmp_path / "a.l3")

    def test_a_broken_header_is_named(self, tmp_path):
        (tmp_path / "a.l3").write_bytes(dali_l3.encode(np.zeros((4, 4), np.uint8))[:20])
        with pytest.raises(UnidentifiedImageError, match=r"a\.l3: truncated: 20 of the header's 48 bytes"):
            Image.open(tmp_path / "a.l3")

    def test_other_files_stay_unidentified(self, tmp_path):
        (tmp_path / "a.l3").write_bytes(b"no image at all")
        with pytest.raises(UnidentifiedImageError, match="cannot identify"):
            Image.open(tmp_path / "a.l3")

    def test_verify(self, tmp_path):
        data = bytearray(dali_l3.encode(np.zeros((64, 64), np.uint8), profile="raw"))
        (tmp_path / "good.l3").write_bytes(data)
        Image.open(tmp_path / "good.l3").verify()
        data[-17] ^= 1
        (tmp_path / "bad.l3").write_bytes(data)
        with pytest.raises(OSError, match=r"bad\.l3: tile 0 .* checksum"):
            Image.open(tmp_path / "bad.l3").verify()

    def test_large_images_are_taken_for_bombs_as_in_other_formats(self, tmp_path, monkeypatch):
        dali_l3.imwrite(tmp_path / "a.l3", np.zeros((40, 40), np.uint8))
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
        with pytest.raises(Image.DecompressionBombError):
            Image.open(tmp_path / "a.l3")


class TestSaving:
    def test_every_mode(self, tmp_path, mode, array):
        image = Image.fromarray(array)
        assert image.mode == mode
        image.save(tmp_path / "a.l3")
        decoded = dali_l3.imread(tmp_path / "a.l3")
        assert decoded.dtype == array.dtype
        np.testing.assert_array_equal(decoded, array)

    def test_options(self, array):
        file = io.BytesIO()
        Image.fromarray(array).save(file, "L3", profile="raw", checksums=False, metadata={"k": b"v"})
        info = dali_l3.peek(file.getvalue())
        assert (info.profile, info.has_checksums) == ("raw", False)
        assert dali_l3.read_metadata(file.getvalue()) == {"k": b"v"}

    def test_metadata(self, tmp_path):
        exif = Image.Exif()
        exif[0x0112] = 6
        image = Image.new("L", (4, 4))
        image.info["icc_profile"] = b"its own"
        image.save(tmp_path / "a.l3", exif=exif, xmp=b"<x/>")
        stored = dali_l3.read_metadata((tmp_path / "a.l3").read_bytes())
        assert stored == {"icc": b"its own", "exif": exif.tobytes().removeprefix(b"Exif\0\0"), "xmp": b"<x/>"}
        image.save(tmp_path / "a.l3", icc_profile=b"another", exif=exif.tobytes())
        stored = dali_l3.read_metadata((tmp_path / "a.l3").read_bytes())
        assert stored == {"icc": b"another", "exif": exif.tobytes().removeprefix(b"Exif\0\0")}

    @pytest.mark.parametrize("mode", ["P", "CMYK", "1", "F"])
    def test_other_modes_are_refused_and_leave_no_file(self, tmp_path, mode):
        with pytest.raises(OSError, match=f"cannot write this image as L3: .*{mode!r}"):
            Image.new(mode, (4, 4)).save(tmp_path / "a.l3")
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("imports", ["import dali_l3; from PIL import Image", "from PIL import Image; import dali_l3"])
def test_the_order_of_imports_does_not_matter(run_python, imports):
    program = f"{imports}; Image.new('L', (3, 2)).save('a.l3'); print(Image.open('a.l3').size)"
    assert run_python(program) == "(3, 2)"


def test_importing_dali_l3_does_not_import_pillow(run_python):
    assert (
        run_python("import dali_l3, sys; print('PIL' in sys.modules, 'dali_l3.pillow' in sys.modules)") == "False False"
    )
