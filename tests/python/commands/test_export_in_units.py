"""Export in units: from tar shards, to tar shards, in parts; all that is not L3 stays as it is."""

from __future__ import annotations

import io
import itertools
import json
import os
import shutil
import tarfile
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
import webdataset

import dali_l3
from dali_l3.conversion import exporting
from dali_l3.units import planning, sample_conversion
from image_files import noise
from processes import start
from waiting import wait_until

SMALL = ("--shards", "20KiB")


def write_archive(path, files):
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


@pytest.fixture
def images():
    """Pixels by the names of L3 files, of every kind that L3 holds."""
    shapes = [(20, 30, 3), (21, 30), (22, 30, 4), (23, 30, 2)]
    return {
        f"{('cats', 'a dog')[number % 2]}/{number:03d}.l3": noise(
            shapes[number % 4], (np.uint8, np.uint16)[number // 4 % 2], seed=number
        )
        for number in range(12)
    } | {"cats/000.seg.l3": noise((20, 30), seed=100), "cats/002.seg.L3": noise((22, 30), seed=101)}


@pytest.fixture
def others():
    """Files that are not L3: companions, labels, another image of a sample, a sample without L3 files."""
    files = {f"{('cats', 'a dog')[number % 2]}/{number:03d}.cls": b"%d" % (number % 2) for number in range(12)}
    files["cats/000.json"] = b'{"number": 0}'
    files["cats/000.depth.npy"] = os.urandom(50)
    files["cats/002.preview.jpg"] = os.urandom(60)
    files["cats/other.jpg"] = os.urandom(70)
    return files


@pytest.fixture
def shards(tmp_path, images, others):
    """Two archives with these, samples of which are not cut apart."""
    files = {name: dali_l3.encode(pixels) for name, pixels in images.items()} | others
    folder = tmp_path / "in"
    folder.mkdir()
    for number, class_name in enumerate(("cats", "a dog")):
        of_class = {name: data for name, data in sorted(files.items()) if name.startswith(class_name)}
        write_archive(folder / f"{number}.tar", of_class)
    return folder / "*.tar"


def assert_exported(files, images, others):
    """These are the images, as PNG, and the other files, byte for byte, under the same keys."""
    files = dict(files)
    for name, pixels in images.items():
        np.testing.assert_array_equal(imagecodecs.png_decode(files.pop(f"{name[:-3]}.png")), pixels, name)
    assert files == others


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def members(folder):
    found = {}
    for path in sorted(Path(folder).glob("*.tar")):
        with tarfile.open(path) as archive:
            files = {member.name: archive.extractfile(member).read() for member in archive}
        assert not files.keys() & found.keys(), "a file twice"
        found |= files
    return found


def export(run, *arguments, expect=0):
    code, out, err = run("export", *arguments)
    assert code == expect, err
    return out + err


@pytest.mark.usefixtures("one_process")
class TestInOneProcess:
    def test_shards_become_a_folder(self, run, shards, images, others, tmp_path):
        output = export(run, shards, tmp_path / "out", "--report", tmp_path / "report")
        assert "13 exported, 0 failed" in output
        assert_exported(contents(tmp_path / "out"), images, others)
        lines = [json.loads(line) for line in (tmp_path / "report").read_text().splitlines()]
        formats = {line["source"].partition("in/")[2]: (line["format"], line["notes"]) for line in lines}
        assert formats.pop("0.tar: cats/other.jpg") == ("", ["no L3 file, stays as it is"])
        assert set(map(str, formats.values())) == {"('png', [])"}
        first = next(line for line in lines if line["source"].endswith(": cats/000.l3"))
        assert first["raw_size"] == images["cats/000.l3"].nbytes + images["cats/000.seg.l3"].nbytes
        assert first["target"] == str(tmp_path / "out" / "cats" / "000.png")

    def test_shards_become_shards(self, run, shards, images, others, tmp_path):
        export(run, shards, tmp_path / "out", *SMALL)
        assert_exported(members(tmp_path / "out"), images, others)
        archives = sorted((tmp_path / "out").glob("*.tar"))
        assert len(archives) > 2
        for path in archives:
            assert path.stat().st_size <= 20 << 10
            written = path.with_suffix(".idx").read_bytes()
            assert run("index", "--overwrite", path)[0] == 0
            assert path.with_suffix(".idx").read_bytes() == written
        pipeline = webdataset.WebDataset(list(map(str, archives)), shardshuffle=False, empty_check=False)
        found = {sample["__key__"]: sample for sample in pipeline}
        assert len(found) == 13
        assert set(found["cats/000"]) >= {"png", "seg.png", "cls", "json", "depth.npy"}
        assert "png" not in found["cats/other"]

    def test_a_folder_becomes_labelled_shards(self, run, images, tmp_path):
        others = {"cats/000.json": b"{}", "cats/002.preview.jpg": b"any", "cats/other.jpg": b"bytes"}
        for name, data in {**{name: dali_l3.encode(pixels) for name, pixels in images.items()}, **others}.items():
            path = tmp_path / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        export(run, tmp_path / "in", tmp_path / "out", *SMALL, "--order", "source")
        keys = [name[:-3] for name in images if ".seg" not in name] + ["cats/other"]
        labels = {f"{key}.cls": b"1" if key.startswith("cats/") else b"0" for key in keys}  # after "a dog"
        assert_exported(members(tmp_path / "out"), images, others | labels)

    def test_the_same_bytes_in_parts(self, run, shards, tmp_path, monkeypatch):
        monkeypatch.setattr(planning, "_FILES", 3)
        for options, name in ((SMALL, "shards"), ((), "folder")):
            export(run, shards, tmp_path / name, *options)
            for index in (3, 1, 2):
                export(run, shards, tmp_path / f"{name}-parts", *options, "--part", f"{index}/3")
            assert contents(tmp_path / f"{name}-parts") == contents(tmp_path / name)

    def test_a_folder_in_parts_is_that_of_one_run(self, run, shards, tmp_path, monkeypatch):
        """With names, dates, folders and skipped files as they are without parts."""
        monkeypatch.setattr(planning, "_FILES", 3)
        (tmp_path / "folder" / "empty").mkdir(parents=True)
        for name, data in itertools.chain(members(shards.parent).items(), [("cats/000.png", b"x"), ("plain", b"x")]):
            path = tmp_path / "folder" / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        shutil.copy(tmp_path / "folder" / "cats" / "000.l3", tmp_path / "folder" / "cats" / "named.tif")
        for number, options in enumerate(((), ("--keep-suffix",))):
            whole, parts = tmp_path / f"whole{number}", tmp_path / f"parts{number}"
            assert "15 exported, 18 skipped, 0 failed" in export(run, tmp_path / "folder", whole, *options)
            for index in (1, 2):
                export(run, tmp_path / "folder", parts, *options, "--part", f"{index}/2")
            assert contents(parts) == contents(whole)
            assert (parts / "empty").is_dir()
            dates = [{path.name: path.stat().st_mtime_ns for path in out.rglob("*.png")} for out in (whole, parts)]
            assert dates[0] == dates[1]
            assert "samples: 15 exported, 18 skipped, 0 failed, 0 left\n" in export(run, "--status", parts)

    def test_what_is_done_is_kept_and_what_is_not_is_done(self, run, shards, tmp_path, monkeypatch):
        monkeypatch.setattr(planning, "_FILES", 3)
        target = tmp_path / "out"
        assert "13 samples in 5 units" in export(run, shards, target, "--plan")
        assert not target.exists()
        export(run, shards, target, "--part", "2/5")
        status = export(run, "--status", target, expect=1)
        assert "units: 1 of 5 done, 4 left\nsamples: 3 exported, 0 skipped, 0 failed, 10 left\n" in status
        assert "10 exported, 3 kept, 0 failed" in export(run, shards, target)
        whole = contents(target)
        (target / "cats" / "000.png").unlink()
        (target / "cats" / "000.json").write_bytes(b"")
        assert "3 exported, 10 kept, 0 failed" in export(run, shards, target)
        assert contents(target) == whole
        merged = export(run, "--merge-reports", target, "--report", tmp_path / "report")
        assert "13 files; 0 of 5 units left" in merged
        assert len((tmp_path / "report").read_text().splitlines()) == 13

    def test_bad_files_fail_with_their_samples_alone(self, run, shards, images, others, tmp_path):
        files = members(shards.parent)
        files["cats/000.seg.l3"] = files["cats/000.seg.l3"][:100]
        files["cats/004.l3"] = b"\x89PNG\r\n\x1a\n"
        files["cats/006.l3"] = b"<html>"
        write_archive(tmp_path / "bad.tar", files)
        for options, read in (((), contents), (SMALL, members)):
            target = tmp_path / f"out{len(options)}"
            output = export(run, tmp_path / "bad.tar", target, *options, expect=1)
            assert "10 exported, 3 failed" in output
            for message in (
                ": cats/000.l3: truncated",
                ": cats/004.l3: named like an L3 file, but the content is PNG",
                ": cats/006.l3: is an HTML page, not an image",
            ):
                assert message in output
            bad = ("cats/000.", "cats/004.", "cats/006.")
            good = [{name: part[name] for name in part if not name.startswith(bad)} for part in (images, others)]
            assert_exported(read(target), *good)

    def test_metadata_levels_and_other_options(self, run, tmp_path):
        metadata = {"exif": b"II*\0\x08\0\0\0\0\0", "icc": b"profile", "xmp": b"<x/>", "mine": b"1"}
        pixels = np.add.outer(np.arange(60), np.arange(200)).astype(np.uint8)
        write_archive(tmp_path / "in.tar", {"a.l3": dali_l3.encode(pixels, metadata=metadata)})
        for level in (0, 9):
            output = export(run, tmp_path / "in.tar", tmp_path / f"{level}", "--level", level)
            assert "metadata 'mine' has no place in a PNG file" in output
            png = (tmp_path / f"{level}" / "a.png").read_bytes()
            assert all(chunk in png for chunk in (b"iCCP", b"eXIf", b"iTXt"))
        assert (tmp_path / "0" / "a.png").stat().st_size > 3 * (tmp_path / "9" / "a.png").stat().st_size
        output = export(run, tmp_path / "in.tar", tmp_path / "9", expect=2)
        assert "begun with level 9, not 6" in output
        code, _, err = run("convert", tmp_path / "in.tar", tmp_path / "9")
        assert (code, "begun with format png, not l3" in err) == (2, True)

    def test_memory_is_reserved_for_pixels_and_what_becomes_of_them(self, run, shards, tmp_path, monkeypatch):
        """tests/python/commands/test_memory.py measures it."""
        pixels = noise((40, 50, 3), np.uint16)
        (tmp_path / "l3").mkdir()
        (tmp_path / "l3" / "a.l3").write_bytes(dali_l3.encode(pixels))
        reserved = []
        for module in (exporting, sample_conversion):
            monkeypatch.setattr(module, "reserve", lambda *arguments: reserved.append(arguments))
        export(run, tmp_path / "l3", tmp_path / "files")
        export(run, tmp_path / "l3", tmp_path / "parts", "--part", "1/1")
        assert reserved == [(pixels.nbytes, 3)] * 2

    def test_two_files_with_one_name_are_refused(self, run, tmp_path):
        image = dali_l3.encode(noise((5, 6)))
        write_archive(tmp_path / "in.tar", {"a.l3": image, "a.png": b"other"})
        assert "would become one file" in export(run, tmp_path / "in.tar", tmp_path / "out", expect=2)
        export(run, tmp_path / "in.tar", tmp_path / "out", "--keep-suffix")
        assert sorted(contents(tmp_path / "out")) == ["a.l3.png", "a.png"]
        assert (tmp_path / "out" / "a.png").read_bytes() == b"other"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (("in", "out", "--order", "source"), "--order needs --shards"),
            (("in", "out", "--seed", "1"), "--seed needs --shards"),
            (("in", "out", "--retry-failed"), "--retry-failed needs --shards, --part or --ray"),
            (("in", "out", "--part", "1/2", "--seed", "1"), "--order and --seed are for --shards"),
            (("in/*.tar", "out", "--overwrite"), "--overwrite cannot be combined"),
            (("in", "out", "--shards", "10"), "at least 10240 bytes"),
            (("in/*.tar", "out", "--plan", "--part", "1/2"), "--part does not go with --plan"),
            (("in/*.tar", "in", "--status"), "take the target folder alone"),
            (("--status", "in", "--level", "1"), "--level does not go with --status"),
            (("--status", "in"), "no conversion in units was begun"),
            (("in/none-*.tar", "out"), "none-*.tar"),
            (("in",), "name a target"),
            (("", "out"), "must not be empty"),
            (("x.l3cat", "out", "--part", "1/2"), "--part does not go with catalogues"),
        ],
    )
    def test_options_that_make_no_sense(self, run, shards, tmp_path, monkeypatch, options, message):
        monkeypatch.chdir(tmp_path)
        assert message in export(run, *options, expect=2)
        assert os.listdir(tmp_path) == ["in"]

    def test_a_dry_run_writes_nothing(self, run, shards, tmp_path):
        code, out, err = run("export", shards, tmp_path / "out", "--dry-run")
        assert (code, len(out.splitlines()), "13 planned" in err) == (0, 13, True)
        assert f"0.tar: cats/000.l3 -> {tmp_path}/out/cats/000.png\n" in out
        assert os.listdir(tmp_path) == ["in"]


def test_a_killed_run_goes_on(run, tmp_path):
    images = {f"{number:03d}.l3": noise((200, 200, 3), seed=number) for number in range(30)}
    write_archive(tmp_path / "in.tar", {name: dali_l3.encode(pixels) for name, pixels in images.items()})
    arguments = (tmp_path / "in.tar", tmp_path / "out", "--shards", "300KiB", "--workers", 1)
    process = start("export", *arguments)
    folder = tmp_path / "out.conversion" / "records"
    wait_until(lambda: [*folder.glob("*.jsonl")])
    process.kill()
    process.communicate()
    done = {path: path.stat().st_mtime_ns for path in folder.glob("*.jsonl")}
    assert len(done) < len(json.loads((tmp_path / "out.conversion" / "manifest.json").read_text())["units"])
    assert " kept, 0 failed" in export(run, *arguments)
    assert_exported(members(tmp_path / "out"), images, {})
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert not [*tmp_path.rglob("*.l3-partial")]
