"""What the readers' argument `check` finds in image files, and that training goes on without them."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
import tifffile
from nvidia.dali import fn, pipeline_def
from PIL import Image

import dali_l3
from dali_l3.fn import readers
from reading import Reading
from versions import image_decoders

pytestmark = pytest.mark.usefixtures("plugin")

both_readers = pytest.mark.parametrize("reader", [readers.multi_format, readers.liquid])

DATA = Path(__file__).parents[2] / "data"
PIXELS = np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8)
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def pillow(name: str, image: Image.Image | None = None, **options) -> bytes:
    file = io.BytesIO()
    (image or Image.fromarray(PIXELS)).save(file, name, **options)
    return file.getvalue()


def tiff(**options) -> bytes:
    file = io.BytesIO()
    tifffile.imwrite(file, PIXELS, **options)
    return file.getvalue()


def animation(name: str) -> bytes:
    frames = [Image.fromarray(PIXELS + shift) for shift in range(3)]
    return pillow(name, frames[0], save_all=True, append_images=frames[1:])


MODES = {mode: Image.fromarray(PIXELS).convert(mode) for mode in ("1", "L", "LA", "P", "RGBA")}

# Files as various programs write them.
GOOD = {
    "l3": {
        "fast": dali_l3.encode(PIXELS),
        "raw": dali_l3.encode(PIXELS.astype(np.uint16), profile="raw"),
        "paper": dali_l3.encode(PIXELS, profile="paper", metadata={"icc": b"profile"}),
        "without checksums": dali_l3.encode(PIXELS, checksums=False),
    },
    "png": {
        "RGB": pillow("PNG"),
        "16 bits": imagecodecs.png_encode(PIXELS.astype(np.uint16)),
        "animation": animation("PNG"),
        **{mode: pillow("PNG", image) for mode, image in MODES.items()},
        "chunks": pillow("PNG", dpi=(72, 72), icc_profile=b"a profile", exif=b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0"),
    },
    "jpg": {
        "baseline": pillow("JPEG"),
        "progressive": pillow("JPEG", progressive=True),
        "gray": pillow("JPEG", MODES["L"], quality=95),
        "restarts": pillow("JPEG", restart_marker_blocks=1),
        "bytes after the end": pillow("JPEG") + b"\0" * 100,
        "CMYK": pillow("JPEG", Image.fromarray(PIXELS).convert("CMYK")),
    },
    "bmp": {"RGB": pillow("BMP"), **{mode: pillow("BMP", MODES[mode]) for mode in ("1", "L", "P", "RGBA")}},
    "webp": {
        "lossy": pillow("WEBP"),
        "lossless": pillow("WEBP", lossless=True),
        "alpha": pillow("WEBP", MODES["RGBA"]),
        "animation": animation("WEBP"),
    },
    "tif": {
        "plain": pillow("TIFF"),
        "LZW": pillow("TIFF", compression="tiff_lzw"),
        "strips": tiff(rowsperstrip=3, byteorder=">"),
        "tiles": tiff(tile=(16, 16), compression="zlib"),
        "BigTIFF": tiff(bigtiff=True, tile=(32, 32)),
        "planes": tiff(photometric="minisblack"),
        "pages": animation("TIFF"),
    },
}


def write(root: Path, files: dict[str, bytes]) -> str:
    """Writes files to a class folder; returns the root."""
    (root / "a").mkdir()
    for name, data in files.items():
        (root / "a" / name).write_bytes(data)
    return str(root)


def files_of_all_formats() -> dict[str, bytes]:
    return {f"{name}.{suffix}": data for suffix, files in GOOD.items() for name, data in files.items()}


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 4]) + data[position + 1 :]


# How files are damaged, and what the check of the content says.
DAMAGE = {
    "tile.l3": (lambda: flipped(GOOD["l3"]["fast"], -20), r"tile 0 \(row 0, column 0\): the checksum does not match"),
    "table.l3": (lambda: flipped(GOOD["l3"]["fast"], 52), "the tables' checksum does not match"),
    "metadata.l3": (lambda: flipped(GOOD["l3"]["paper"], 70), "the metadata's checksum does not match"),
    "pixels.png": (
        lambda: flipped(GOOD["png"]["RGB"], 500),
        "the checksum of the PNG chunk IDAT at byte 33 does not match",
    ),
    "text.png": (
        lambda: flipped(GOOD["png"]["chunks"], GOOD["png"]["chunks"].index(b"iCCP") + 6),
        r"the checksum of the PNG chunk iCCP at byte \d+ does not match",
    ),
    "end.png": (lambda: GOOD["png"]["RGB"][:-12], "the PNG file ends without its last chunk, IEND"),
    "half.png": (lambda: GOOD["png"]["RGB"][:2000], r"the file ends within a PNG chunk IDAT of \d+ bytes"),
    "half.jpg": (lambda: GOOD["jpg"]["progressive"][:-50], "the JPEG file is cut off"),
    "half.tif": (lambda: GOOD["tif"]["strips"][:-50], "the file ends before the last of its TIFF strips or tiles"),
}

# The same for the check of headers.
DAMAGED_HEADERS = {
    "cut.l3": (lambda: GOOD["l3"]["fast"][:-1], r"the file ends after \d+ of \d+ bytes"),
    "header.l3": (lambda: flipped(GOOD["l3"]["fast"], 13), "the header's checksum does not match"),
    "header.png": (lambda: flipped(GOOD["png"]["RGB"], 20), "the PNG header's checksum does not match"),
    "cut.jpg": (lambda: GOOD["jpg"]["baseline"][:300], "the file ends within the JPEG header"),
    "cut.bmp": (lambda: GOOD["bmp"]["RGB"][:-1000], "the file ends before its last row of pixels"),
    "cut.webp": (lambda: GOOD["webp"]["lossy"][:-1], r"the file ends after \d+ of \d+ bytes"),
    "cut.tif": (lambda: GOOD["tif"]["tiles"][:200], "the file has no whole TIFF directory where its header says"),
}


@both_readers
@pytest.mark.parametrize("check", ["none", "headers", "content"])
def test_good_files_pass(tmp_path, reader, check):
    files = files_of_all_formats()
    root = write(tmp_path, files)
    reading = Reading(reader, batch_size=1, file_root=root, check=check)
    assert {sample.path: sample.files for (sample,) in reading.batches(len(files))} == {
        f"a/{name}": (data,) for name, data in files.items()
    }


@both_readers
@pytest.mark.parametrize("name", DAMAGE)
class TestDamageBehindTheHeader:
    def test_is_an_error_when_the_file_is_read(self, tmp_path, reader, name):
        damage, problem = DAMAGE[name]
        root = write(tmp_path, {name: damage()})
        reading = Reading(reader, batch_size=1, file_root=root, check="content")  # which reads nothing as a whole
        assert reading.pipeline.epoch_size("reader") == 1
        with pytest.raises(RuntimeError, match=f"{re.escape(root)}/a/{name}: {problem}"):
            reading.batch()

    @pytest.mark.parametrize("check", ["none", "headers"])
    def test_is_the_decoders_business_otherwise(self, tmp_path, reader, name, check):
        data = DAMAGE[name][0]()
        reading = Reading(reader, batch_size=1, file_root=write(tmp_path, {name: data}), check=check, on_error="skip")
        assert reading.batch()[0].files == (data,)


@both_readers
@pytest.mark.parametrize("check", ["headers", "content"])
def test_damaged_headers_are_named_when_the_pipeline_is_built(tmp_path, reader, check):
    files = {name: damage() for name, (damage, _) in DAMAGED_HEADERS.items()}
    root = write(tmp_path, files_of_all_formats() | files)
    with pytest.raises(RuntimeError) as error:
        Reading(reader, file_root=root, check=check)
    for name, (_, problem) in DAMAGED_HEADERS.items():
        assert re.search(f"\n  {re.escape(root)}/a/{name}: {problem}", str(error.value)), name
    assert f"{len(DAMAGED_HEADERS)} of " in str(error.value)
    reading = Reading(reader, batch_size=1, file_root=root, check=check, on_error="skip")
    assert reading.pipeline.epoch_size("reader") == len(files_of_all_formats())


@both_readers
def test_files_whose_headers_are_damaged_later_are_replaced(tmp_path, reader):
    root = write(tmp_path, {f"{i}.png": GOOD["png"]["RGB"] for i in range(4)})
    reading = Reading(reader, batch_size=4, file_root=root, check="headers", on_error="skip", prefetch_queue_depth=0)
    (tmp_path / "a" / "2.png").write_bytes(DAMAGED_HEADERS["header.png"][0]())
    samples = [sample for batch in reading.batches(4) for sample in batch]
    assert "a/2.png" not in {sample.path for sample in samples[4:]}


@both_readers
@pytest.mark.parametrize("on_error", ["skip", "substitute"])
def test_damaged_files_are_replaced(tmp_path, reader, on_error, capfd):
    """A good one of the same format, or the substitute, takes the place of each, in every epoch; each is reported."""
    good = {name: data for name, data in files_of_all_formats().items() if Path(name).suffix != ".bmp"}
    damaged = {name: damage() for name, (damage, _) in DAMAGE.items()}
    root = write(tmp_path, good | damaged)
    substitute = tmp_path / "substitute.png"
    substitute.write_bytes(GOOD["png"]["L"])
    arguments = {"on_error": on_error} | ({"substitute": str(substitute)} if on_error == "substitute" else {})
    reading = Reading(reader, batch_size=1, file_root=root, check="content", **arguments)
    for _ in range(2):
        samples = [sample for (sample,) in reading.batches(len(good) + len(damaged))]
        delivered = [sample.path for sample in samples]
        assert {f"a/{name}" for name in good} <= {*delivered}
        assert not {f"a/{name}" for name in damaged} & {*delivered}
        if on_error == "substitute":
            assert delivered.count(str(substitute)) == len(damaged)
        else:
            suffixes = sorted(Path(path).suffix for path in delivered)
            assert suffixes == sorted(Path(name).suffix for name in good | damaged)
    assert reading.statistics()["epochs"][0]["bad_samples"] == len(damaged)
    del reading
    reports = capfd.readouterr().err
    for name, (_, problem) in DAMAGE.items():
        assert re.search(f"{re.escape(root)}/a/{name}: {problem}.*takes its place", reports), name


@both_readers
def test_damaged_images_do_not_stop_training(tmp_path, reader):
    """Damage anywhere in L3 and PNG files: whatever a reader delivers, the decoders decode."""
    generator = np.random.default_rng(1)
    files = {}
    for i in range(60):
        suffix, data = ("l3", GOOD["l3"]["fast"]) if i % 2 else ("png", GOOD["png"]["RGB"])
        if i % 3 == 0:
            data = flipped(data, int(generator.integers(len(data) - 16)))
        files[f"{i}.{suffix}"] = data
    root = write(tmp_path, files)

    @pipeline_def(batch_size=7, num_threads=2, device_id=None, seed=3)
    def pipeline():
        encoded, _ = reader(file_root=root, random_shuffle=True, check="content", on_error="skip", name="reader")
        return image_decoders.image(encoded)

    pipe = pipeline()
    for _ in range(20):
        (images,) = pipe.run()
        for i in range(7):
            np.testing.assert_array_equal(np.array(images[i]), PIXELS)
    assert sum(epoch["bad_samples"] for epoch in dali_l3.reader_stats(pipe, "reader")["epochs"]) > 0


@both_readers
def test_broken_files_of_the_catalogue_do_not_stop_training(tmp_path, reader):
    """Those too whose checksums are right but whose structure is not."""
    verdicts = json.loads((DATA / "broken.json").read_text(encoding="utf-8"))
    files = {name: (DATA / "broken" / name).read_bytes() for name in verdicts}
    root = write(tmp_path, files | {f"good {i}.l3": data for i, data in enumerate(GOOD["l3"].values())})

    @pipeline_def(batch_size=16, num_threads=2, device_id=None)
    def pipeline():
        encoded, _ = reader(file_root=root, check="content", on_error="skip", name="reader")
        return encoded, fn.decoders.l3(encoded)

    pipe = pipeline()
    names = set()
    for _ in range(-(-pipe.epoch_size("reader") // 16)):
        encoded, _ = pipe.run()
        names |= {Path(encoded[i].source_info()).name for i in range(16)}
    assert {verdict for name in names & {*verdicts} for verdict in verdicts[name].values()} <= {"ok"}
    assert {f"good {i}.l3" for i in range(len(GOOD["l3"]))} <= names


@both_readers
def test_damaged_companions_make_a_sample_bad(tmp_path, reader):
    (tmp_path / "images").mkdir()
    root = write(tmp_path / "images", {f"{i}.jpg": GOOD["jpg"]["baseline"] for i in range(6)})
    for i in range(6):
        mask = GOOD["png"]["L"]
        (tmp_path / f"{i}.png").write_bytes(flipped(mask, 200) if i == 3 else mask)
        (tmp_path / f"{i}.txt").write_text("BMX bike")  # no BMP
    arguments = {"file_root": root, "companions": ["../{stem}.png", "../{stem}.txt"], "on_error": "skip"}
    reading = Reading(reader, batch_size=6, check="content", **arguments)
    samples = reading.batch()
    assert {sample.path for sample in samples} == {f"a/{i}.jpg" for i in range(6) if i != 3}
    assert {sample.files[1:] for sample in samples} == {(GOOD["png"]["L"], b"BMX bike")}
    samples = Reading(reader, batch_size=6, **arguments).batch()
    assert {sample.path for sample in samples} == {f"a/{i}.jpg" for i in range(6)}


@both_readers
def test_what_is_no_check(tmp_path, reader):
    with pytest.raises(ValueError, match='check is "all", but must be "none", "headers" or "content"'):
        Reading(reader, file_root=write(tmp_path, {"1.png": GOOD["png"]["RGB"]}), check="all")


class TestPointersOfGitLfs:
    MESSAGE = r"/a/2.png is a Git LFS pointer, not an image: run 'git lfs pull'"

    @pytest.fixture
    def root(self, tmp_path):
        return write(tmp_path, {"1.png": GOOD["png"]["RGB"], "2.png": LFS_POINTER})

    def test_are_named_where_files_are_looked_at(self, root):
        with pytest.raises(RuntimeError, match=f"1 of 2 samples has bad files:\n  {root}{self.MESSAGE}"):
            Reading(readers.liquid, file_root=root)

    def test_are_named_where_they_are_read(self, root):
        reading = Reading(readers.multi_format, batch_size=1, file_root=root)
        assert reading.batch()[0].path == "a/1.png"
        with pytest.raises(RuntimeError, match=root + self.MESSAGE):
            reading.batch()

    @both_readers
    def test_can_be_left_out(self, root, reader, capfd):
        assert Reading(reader, file_root=root, on_error="skip").pipeline.epoch_size("reader") == 1
        assert re.search(root + self.MESSAGE, capfd.readouterr().err)

    @both_readers
    def test_are_no_companions(self, root, reader):
        arguments = {"file_root": root, "files": ["a/1.png"], "companions": ["a/2.png"]}
        with pytest.raises(RuntimeError, match=root + self.MESSAGE):
            Reading(reader, batch_size=1, **arguments).batch()
