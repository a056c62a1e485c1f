"""Conversion in units: to shards, from shards, in parts; what is done again and what is not."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import stat
import tarfile
from pathlib import Path

import imagecodecs
import numpy as np
import pytest

import dali_l3
from dali_l3.units import planning, storage
from dali_l3.units.manifest import Manifest, Settings
from dali_l3.units.records import Record
from dali_l3.units.storage import LocalStorage
from image_files import noise, write_png

pytestmark = pytest.mark.usefixtures("one_process")

CLASSES = ("cats", "dogs", "empty")


@pytest.fixture
def source(tmp_path):
    """Twelve images in two of three classes, some with companions."""
    folder = tmp_path / "train"
    for name in CLASSES:
        (folder / name).mkdir(parents=True)
    for number in range(12):
        stem = folder / CLASSES[number % 2] / f"{number:03d}"
        write_png(stem.with_suffix(".png"), noise((20 + number, 30, 3), seed=number))
        if number % 3 == 0:
            write_png(stem.with_suffix(".seg.png"), noise((20 + number, 30), seed=100 + number))
            stem.with_suffix(".json").write_text(f'{{"number": {number}}}')
    return folder


def members(folder):
    """What the shards of a folder hold: the bytes of files by their names, and the names by shard."""
    files, shards = {}, {}
    for path in sorted(Path(folder).glob("*.tar")):
        with tarfile.open(path) as archive:
            names = archive.getnames()
            assert not set(names) & set(files), "a sample twice"
            files |= {name: archive.extractfile(name).read() for name in names}
        shards[path.name] = names
    return files, shards


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def assert_holds(folder, source):
    """The shards hold the samples of `source` once each: pixels, companions and labels."""
    files, _ = members(folder)
    expected = set()
    for path in source.rglob("*.*"):
        name = str(path.relative_to(source))
        if path.suffix == ".png":
            name = name.removesuffix(".png") + ".l3"
            np.testing.assert_array_equal(dali_l3.decode(files[name]), imagecodecs.png_decode(path.read_bytes()))
            if ".seg" not in name:
                label = name.removesuffix("l3") + "cls"
                assert files[label] == str(CLASSES.index(path.parent.name)).encode()
                expected.add(label)
        else:
            assert files[name] == path.read_bytes()
        expected.add(name)
    assert set(files) == expected


def convert(run, *arguments, expect=0):
    code, out, err = run("convert", *arguments)
    assert code == expect, err
    return out + err


def test_a_folder_becomes_shards(run, source, tmp_path):
    output = convert(run, source, tmp_path / "out", "--shards", "20KiB")
    assert "12 converted, 0 failed" in output
    assert_holds(tmp_path / "out", source)
    _, shards = members(tmp_path / "out")
    assert len(shards) > 3
    for name in shards:
        assert (tmp_path / "out" / name).stat().st_size <= 20 << 10
        index = (tmp_path / "out" / name).with_suffix(".idx")
        written = index.read_bytes()
        assert run("index", "--overwrite", tmp_path / "out" / name)[0] == 0
        assert index.read_bytes() == written


def test_the_same_bytes_every_time(run, source, tmp_path):
    for name in ("one", "two"):
        convert(run, source, tmp_path / name, "--shards", "20KiB")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    convert(run, source, tmp_path / "three", "--shards", "20KiB", "--seed", 1)
    assert contents(tmp_path / "one") != contents(tmp_path / "three")
    assert_holds(tmp_path / "three", source)


def test_what_is_done_is_kept_and_what_is_not_is_done(run, source, tmp_path):
    target, folder = tmp_path / "out", tmp_path / "out.conversion"
    convert(run, source, target, "--shards", "20KiB")
    whole = contents(target)
    (folder / "records" / "000001.jsonl").unlink()
    (target / "shard-000002.tar").unlink()
    counts = [len(path.read_text().splitlines()) - 1 for path in sorted((folder / "records").iterdir())]
    report = tmp_path / "report"
    output = convert(run, source, target, "--shards", "20KiB", "--report", report)
    assert contents(target) == whole
    outcomes = [json.loads(line) for line in report.read_text().splitlines()]
    assert sorted(Path(outcome["source"]).stem for outcome in outcomes) == [f"{number:03d}" for number in range(12)]
    converted = [outcome for outcome in outcomes if outcome["status"] == "done"]
    assert 0 < len(converted) < 12
    total = sum(outcome["source_size"] for outcome in converted) / 1e6
    assert f"{len(converted)} converted, {12 - len(converted)} kept, 0 failed" in output
    assert f"; {total:.2f} MB became" in output
    assert "12 kept, 0 failed" in convert(run, source, target, "--shards", "20KiB")
    assert sum(counts) < 12


def test_other_options_and_another_source_are_refused(run, source, tmp_path):
    convert(run, source, tmp_path / "out", "--shards", "20KiB")
    whole = contents(tmp_path / "out")
    assert "begun with effort 2, not 3" in convert(
        run, source, tmp_path / "out", "--shards", "20KiB", "--effort", 3, expect=2
    )
    write_png(source / "cats" / "new.png")
    os.utime(source / "cats" / "002.png")
    (source / "dogs" / "001.png").unlink()
    output = convert(run, source, tmp_path / "out", "--shards", "20KiB", expect=2)
    assert "has changed" in output
    assert "1 changed, 1 new, 1 gone" in output
    assert contents(tmp_path / "out") == whole


def test_files_that_are_no_samples_may_come_and_go(run, source, tmp_path):
    convert(run, source, tmp_path / "out", "--shards", "20KiB")
    (source / "cats" / "notes.txt").write_text("x")
    assert "12 kept, 0 failed" in convert(run, source, tmp_path / "out", "--shards", "20KiB")


def test_shards_are_about_full_however_much_the_images_grow(run, tmp_path):
    for number in range(80):
        image = tmp_path / "in" / f"{number:02d}.png"
        write_png(image, np.full((100, 100 + number % 5), number, np.uint8))  # which grows a lot when stored raw
        image.with_suffix(".json").write_text(" " * 5000)
    for profile in ("raw", "fast"):
        convert(run, tmp_path / "in", tmp_path / profile, "--shards", "200KiB", "--profile", profile)
        sizes = [path.stat().st_size for path in sorted((tmp_path / profile).glob("*.tar"))]
        assert all(0.85 * (200 << 10) < size <= 200 << 10 for size in sizes[:-1]), sizes


def test_a_folder_that_holds_files_is_refused(run, source, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    assert "holds files" in convert(run, source, tmp_path / "out", "--shards", "20KiB", expect=2)
    assert not (tmp_path / "out.conversion" / "manifest.json").exists()


def test_parts_status_and_the_merged_report(run, source, tmp_path):
    (source / "cats" / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n damaged")
    (source / "notes.txt").write_text("hello")
    target, options = tmp_path / "out", ("--shards", "20KiB")
    assert "no conversion in units was begun" in convert(run, "--status", target, expect=2)
    assert "13 samples in" in convert(run, source, target, *options, "--plan")
    assert not target.exists()
    units = len(json.loads((tmp_path / "out.conversion" / "manifest.json").read_text())["units"])
    assert units > 3
    status = convert(run, "--status", target, expect=1)
    assert f"units: 0 of {units} done, {units} left\n" in status
    assert "samples: 0 converted, 1 skipped, 0 failed, 13 left\n" in status

    reports = []
    for index in (3, 1, 2):  # in any order
        reports.append(tmp_path / f"{index}.jsonl")
        code, _, err = run("convert", source, target, *options, "--part", f"{index}/3", "--report", reports[-1])
        assert code == ("1 failed" in err)
        if index != 2:
            convert(run, "--merge-reports", target, expect=1)
    status = convert(run, "--status", target, expect=1)
    assert f"units: {units} of {units} done, 0 left\n" in status
    assert "samples: 12 converted, 1 skipped, 1 failed, 0 left\n" in status
    assert "bad.png: " in status
    (source / "cats" / "bad.png").unlink()
    (source / "notes.txt").unlink()
    assert_holds(target, source)

    merged = tmp_path / "all.jsonl"
    convert(run, "--merge-reports", target, "--report", merged, expect=1)
    lines = merged.read_text().splitlines()
    assert sorted(lines) == sorted(line for report in reports for line in report.read_text().splitlines())
    assert "14 files; 0 of" in convert(run, "--merge-reports", target, "--report", "-", expect=1)
    done = [line for line in map(json.loads, lines) if line["status"] == "done"]
    _, shards = members(target)
    assert {line["target"] for line in done} == {str(target / name) for name in shards}
    assert sum(line["source_size"] for line in done) == sum(
        path.stat().st_size for path in source.rglob("*") if path.is_file()
    )


def test_parts_do_the_same_as_one_run(run, source, tmp_path):
    convert(run, source, tmp_path / "whole", "--shards", "20KiB")
    for index in range(1, 5):
        convert(run, source, tmp_path / "parts", "--shards", "20KiB", "--part", f"{index}/4")
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_a_folder_in_parts_is_that_of_one_run(run, source, tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "_FILES", 5)
    convert(run, source, tmp_path / "whole")
    for index in range(1, 4):
        convert(run, source, tmp_path / "parts", "--part", f"{index}/3")
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    assert (tmp_path / "parts" / "empty").is_dir()
    dates = [
        {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*.l3")}
        for folder in (tmp_path / "parts", tmp_path / "whole")
    ]
    assert dates[0] == dates[1]
    (tmp_path / "parts" / "cats" / "004.l3").unlink()
    (tmp_path / "parts" / "dogs" / "001.l3").write_bytes(b"LLL.")
    assert " converted" in convert(run, source, tmp_path / "parts", "--part", "1/1")
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    shutil.rmtree(tmp_path / "parts")
    assert "16 converted, 4 skipped" in convert(run, source, tmp_path / "parts", "--part", "1/1")
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    assert "16 kept" in convert(run, source, tmp_path / "whole")


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/0", "-1/3", "1/3/5"])
def test_parts_that_make_no_sense(run, source, tmp_path, text):
    for command in (("convert", source, tmp_path / "out"), ("export", source, tmp_path / "out"), ("verify", source)):
        code, _, err = run(*command, "--part", text)
        assert (code, "such as 1/16 … 16/16" in err) == (2, True)


def test_verify_export_and_index_in_parts(run, source, tmp_path):
    def reported(*arguments):
        found = []
        for index in range(1, 4):
            assert run(*arguments, "--part", f"{index}/3", "--report", tmp_path / "report")[0] == 0
            found += [json.loads(line)["source"] for line in (tmp_path / "report").read_text().splitlines()]
        return sorted(found)

    convert(run, source, tmp_path / "l3")
    convert(run, source, tmp_path / "shards", "--shards", "20KiB")
    files = sorted(str(path) for path in (tmp_path / "l3").rglob("*.l3"))
    assert reported("verify", tmp_path / "l3") == files
    assert reported("export", tmp_path / "l3", tmp_path / "png") == files
    assert sorted(path.stem for path in (tmp_path / "png").rglob("*.png")) == sorted(Path(path).stem for path in files)
    shards = sorted(str(path) for path in (tmp_path / "shards").glob("*.tar"))
    assert reported("index", *shards, "--overwrite") == shards


def test_bad_samples_fail_whole_and_alone(run, source, tmp_path):
    (source / "cats" / "000.seg.png").write_bytes((source / "cats" / "000.seg.png").read_bytes()[:100])
    output = convert(run, source, tmp_path / "out", "--shards", "20KiB", expect=1)
    assert "11 converted, 1 failed" in output
    assert "cats/000.png: " in output
    for path in source.glob("cats/000.*"):
        path.unlink()
    assert_holds(tmp_path / "out", source)


def test_a_source_that_changes_on_the_way(run, source, tmp_path):
    convert(run, source, tmp_path / "out", "--shards", "20KiB", "--plan")
    os.utime(source / "dogs" / "001.png")
    (source / "dogs" / "005.png").unlink()
    output = convert(run, source, tmp_path / "out", "--shards", "20KiB", "--part", "1/1", expect=1)
    assert "10 converted, 2 failed" in output
    assert "dogs/001.png: has changed since the conversion was begun" in output
    assert "dogs/005.png: No such file or directory" in output


def test_names_of_files(run, tmp_path):
    source = tmp_path / "in"
    images = {}
    names = ["a b/ü.png", "v1.0/x.png", "x.y.z.png", "50%.png", os.fsdecode(b"\xff\xfe.png"), "n" * 150 + ".png"]
    for number, name in enumerate(names):
        write_png(source / name, noise((5, 6), seed=number))
        images[name.replace(".y.z", "_y_z").removesuffix(".png") + ".l3"] = noise((5, 6), seed=number)
    write_png(source / "__own__" / "x.png")
    (source / "x.y.json").write_text("{}")
    (source / "plain").write_text("{}")
    output = convert(run, source, tmp_path / "out", "--shards", "1MiB")
    assert "belongs to no image" in output
    assert "no suffix of an image" in output
    assert "webdataset keeps for itself" in output
    with tarfile.open(tmp_path / "out" / "shard-000000.tar", errors="surrogateescape") as archive:
        found = {name: dali_l3.decode(archive.extractfile(name).read()) for name in archive.getnames()}
    assert found.keys() == images.keys()
    for name, pixels in images.items():
        np.testing.assert_array_equal(found[name], pixels)


def test_two_files_with_one_name_are_refused(run, source, tmp_path):
    write_png(source / "cats" / "000.bmp")
    output = convert(run, source, tmp_path / "out", "--shards", "20KiB", expect=2)
    assert "would become one file" in output
    assert not (tmp_path / "out").exists()
    convert(run, source, tmp_path / "out", "--shards", "20KiB", "--keep-suffix")
    files, _ = members(tmp_path / "out")
    assert {"cats/000.png.l3", "cats/000.bmp.l3", "cats/000.seg.png.l3"} <= files.keys()


def test_the_order_of_the_source(run, source, tmp_path):
    convert(run, source, tmp_path / "out", "--shards", "20KiB", "--order", "source")
    files, _ = members(tmp_path / "out")
    keys = [name.removesuffix(".l3") for name in files if name.endswith(".l3") and ".seg" not in name]
    assert keys == sorted(keys)
    convert(run, source, tmp_path / "drawn", "--shards", "20KiB")
    drawn, _ = members(tmp_path / "drawn")
    assert [*drawn] != [*files]
    assert drawn == files


def test_a_sample_that_is_larger_than_a_shard(run, source, tmp_path):
    write_png(source / "cats" / "big.png", noise((200, 200, 3)))
    convert(run, source, tmp_path / "out", "--shards", "20KiB")
    _, shards = members(tmp_path / "out")
    sizes = {name: (tmp_path / "out" / name).stat().st_size for name in shards}
    assert [shards[name] for name, size in sizes.items() if size > 20 << 10] == [["cats/big.l3", "cats/big.cls"]]


def test_a_dry_run_writes_nothing(run, source, tmp_path):
    code, out, err = run("convert", source, tmp_path / "out", "--shards", "20KiB", "--dry-run")
    assert (code, len(out.splitlines()), "12 planned" in err) == (0, 12, True)
    assert sorted(os.listdir(tmp_path)) == ["train"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--shards", "10"), "at least 10240 bytes"),
        (("--shards", "many"), "is not a size"),
        (("--shards", "1MiB", "--order", "source", "--seed", "1"), "--seed does not go with --order source"),
        (("--shards", "1MiB", "--mix", "bmp:1"), "--mix cannot be combined"),
        (("--shards", "1MiB", "--overwrite"), "--overwrite cannot be combined"),
        (("--shards", "1MiB", "--pages", "split"), "--pages split cannot be combined"),
        (("--order", "source"), "--order needs --shards"),
        (("--part", "1/2", "--order", "source"), "--order and --seed are for --shards"),
    ],
)
def test_options_that_make_no_sense(run, source, tmp_path, options, message):
    assert message in convert(run, source, tmp_path / "out", *options, expect=2)
    assert sorted(os.listdir(tmp_path)) == ["train"]


@pytest.mark.parametrize("report", ["out/report", "out.conversion/manifest.json", "train/cats/000.json", "a.tar"])
def test_a_report_replaces_nothing(run, source, tmp_path, report):
    (tmp_path / "out").mkdir()
    options = ("--shards", "20KiB", "--report", tmp_path / report)
    assert "the report must not be named" in convert(run, source, tmp_path / "out", *options, expect=2)


@pytest.mark.parametrize("report", ["out/shard-000000.idx", "out.conversion/manifest.json", "train/cats/000.json"])
def test_a_merged_report_replaces_nothing(run, source, tmp_path, report):
    convert(run, source, tmp_path / "out", "--shards", "20KiB")
    before = contents(tmp_path)
    options = ("--merge-reports", tmp_path / "out", "--report", tmp_path / report)
    assert "the report must not be named" in convert(run, *options, expect=2)
    assert contents(tmp_path) == before


def test_a_merged_report_takes_the_place_of_a_file_alone(run, source, tmp_path):
    convert(run, source, tmp_path / "out", "--shards", "20KiB")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "pipe").symlink_to("fifo")
    (tmp_path / "link").symlink_to("report")
    (tmp_path / "report").write_text("before")
    for name in ("fifo", "pipe"):
        output = convert(run, "--merge-reports", tmp_path / "out", "--report", tmp_path / name, expect=2)
        assert f"{name}: not a regular file" in output
        assert stat.S_ISFIFO(os.stat(tmp_path / name).st_mode)
    convert(run, "--merge-reports", tmp_path / "out", "--report", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert len((tmp_path / "report").read_text().splitlines()) == 12


def test_the_merged_report_of_nothing_has_no_lines(run, tmp_path):
    (tmp_path / "empty").mkdir()
    convert(run, tmp_path / "empty", tmp_path / "out", "--part", "1/1")
    code, out, _ = run("convert", "--merge-reports", tmp_path / "out")
    assert (code, out) == (0, "")


def test_empty_names_are_not_the_folder_of_the_moment(run, source, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for options in ((), ("--shards", "1MiB")):
        for names in ((source, ""), ("", tmp_path / "out")):
            assert "must not be empty" in convert(run, *names, *options, expect=2)
    assert sorted(os.listdir(tmp_path)) == ["here", "train"]
    assert os.listdir(tmp_path / "here") == []


def archive_of(path, names):
    """A tar archive of images, and of empty files."""
    with tarfile.open(path, "w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            data = write_png(path.with_suffix(".png"), noise((5, 6))).read_bytes() if name.endswith(".png") else b""
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def test_a_sample_of_which_a_file_cannot_be_written_leaves_nothing(run, tmp_path):
    archive_of(tmp_path / "in.tar", ["a.png", f"a.{'x' * 254}", "b.png", "b.json"])
    output = convert(run, tmp_path / "in.tar", tmp_path / "out", expect=1)
    assert "File name too long" in output
    assert "1 converted, 1 failed" in output
    assert sorted(contents(tmp_path / "out")) == ["b.json", "b.l3"]


def test_a_file_with_the_name_of_a_folder_fails_alone(run, tmp_path):
    archive_of(tmp_path / "in.tar", ["a.png", "a.l3/b/c.png", "d.png"])
    assert "2 converted, 1 failed" in convert(run, tmp_path / "in.tar", tmp_path / "out", expect=1)
    assert "d.l3" in contents(tmp_path / "out")


def test_the_report_has_the_profile_of_l3_files_that_stay(run, source, tmp_path):
    convert(run, source, tmp_path / "raw", "--shards", "20KiB", "--profile", "raw")
    for folder, options in (("raw/*.tar", ()), ("train", ("--part", "1/1"))):
        report = tmp_path / "report"
        convert(run, tmp_path / folder, tmp_path / f"out-{folder[:3]}", *options, "--report", report)
        formats = {json.loads(line)["format"] for line in report.read_text().splitlines() if '"done"' in line}
        assert formats == ({"l3-raw"} if folder != "train" else {"l3-fast"})


def test_l3_files_that_are_too_large_are_not_passed_off_as_smaller(run, source, tmp_path):
    convert(run, source, tmp_path / "whole", "--shards", "20KiB")
    output = convert(run, tmp_path / "whole" / "*.tar", tmp_path / "out", "--resize-shorter", "25", expect=1)
    assert "6 converted, 6 failed" in output  # 20 to 31 rows of 30
    assert "L3 files are not made smaller" in output


def test_a_target_in_the_source_is_refused(run, source):
    for target in (source, source / "out", source.parent):
        assert "inside one another" in convert(run, source, target, "--shards", "1MiB", expect=2)


def test_failed_samples_are_tried_again_when_asked_for(run, source, tmp_path):
    convert(run, source, tmp_path / "whole", "--shards", "20KiB")
    image = source / "cats" / "002.png"
    moved = image.rename(tmp_path / "elsewhere.png")
    image.symlink_to(moved)  # of the same size and date
    options = (source, tmp_path / "out", "--shards", "20KiB")
    convert(run, *options, "--plan")
    hidden = moved.rename(tmp_path / "hidden.png")
    convert(run, *options, "--part", "1/1", expect=1)
    hidden.rename(moved)
    assert "11 kept, 1 failed" in convert(run, *options, expect=1)
    assert " converted" in convert(run, *options, "--retry-failed")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.mark.parametrize("options", [("--shards", "20KiB"), ("--part", "1/1")], ids=["shards", "files"])
def test_a_failed_image_may_be_replaced(run, source, tmp_path, options):
    target, bad = tmp_path / "out", source / "cats" / "bad.png"
    bad.write_bytes(b"\x89PNG\r\n\x1a\n damaged")
    (source / "cats" / "bad.json").write_text("{}")
    convert(run, source, target, *options, expect=1)
    write_png(bad, noise((40, 30, 3), seed=77))
    assert "1 failed" in convert(run, source, target, *options, expect=1), "as it was"
    if options[0] == "--shards":
        assert "1 failed" in convert(run, source, target, *options, expect=1)
    convert(run, source, target, *options, "--retry-failed")
    convert(run, source, target, *options)
    if options[0] == "--shards":
        assert_holds(target, source)
    image = target / "cats" / "bad.l3" if options[0] == "--part" else None
    assert image is None or dali_l3.decode(image.read_bytes()).shape == (40, 30, 3)
    write_png(bad, noise((41, 30, 3), seed=78))  # it is like any other now
    if options[0] == "--shards":
        assert "1 changed, 0 new, 0 gone" in convert(run, source, target, *options, expect=2)


def test_a_run_that_tries_replaced_images_again_may_be_killed(run, source, tmp_path, monkeypatch):
    target, bad = tmp_path / "out", source / "cats" / "bad.png"
    bad.write_bytes(b"\x89PNG\r\n\x1a\n damaged")
    options = (source, target, "--shards", "20KiB")
    convert(run, *options, expect=1)
    write_png(bad, noise((40, 30, 3), seed=77))

    class Killed(BaseException):
        pass

    for name, place in (("remove", "records/"), ("read", ".png")):
        method = getattr(LocalStorage, name)

        def kill(self, path, *arguments, method=method, place=place):
            if place in path:
                raise Killed
            return method(self, path, *arguments)

        with monkeypatch.context() as context:
            context.setattr(LocalStorage, name, kill)
            with pytest.raises(Killed):
                convert(run, *options, "--retry-failed")
    convert(run, *options, "--retry-failed")
    assert_holds(target, source)


def test_a_failed_image_that_may_not_be_looked_at_keeps_no_other_from_its_turn(run, source, tmp_path, monkeypatch):
    bad, worse = source / "cats" / "bad.png", source / "dogs" / "worse.png"
    for path in (bad, worse):
        path.write_bytes(b"\x89PNG\r\n\x1a\n damaged")
    options = (source, tmp_path / "out", "--part", "1/1")
    convert(run, *options, expect=1)
    write_png(worse, noise((40, 30, 3), seed=77))
    entry = LocalStorage.entry

    def refuse(self, path):
        if path == str(bad):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return entry(self, path)

    monkeypatch.setattr(LocalStorage, "entry", refuse)
    output = convert(run, *options, "--retry-failed", expect=1)
    assert "bad.png: Permission denied" in output
    assert (tmp_path / "out" / "dogs" / "worse.l3").exists()


def test_a_failed_image_may_be_removed(run, source, tmp_path):
    bad = source / "cats" / "bad.png"
    bad.write_bytes(b"\x89PNG\r\n\x1a\n damaged")
    options = (source, tmp_path / "out", "--shards", "20KiB")
    convert(run, *options, expect=1)
    bad.unlink()
    assert "12 kept, 1 failed" in convert(run, *options, expect=1)
    assert "No such file or directory" in convert(run, *options, "--retry-failed", expect=1)
    (source / "cats" / "002.png").unlink()
    assert "0 changed, 0 new, 1 gone" in convert(run, *options, expect=2)


@pytest.mark.parametrize("error", [errno.ESTALE, errno.ETIMEDOUT, errno.EMFILE, errno.EIO])
def test_a_file_system_that_is_away_is_no_fault_of_a_file(run, source, tmp_path, monkeypatch, error):
    convert(run, source, tmp_path / "whole", "--shards", "20KiB")
    options = (source, tmp_path / "out", "--shards", "20KiB", "--part", "1/1")
    convert(run, *options[:4], "--plan")

    def fail(path):
        if str(path).endswith("/007.png"):
            raise OSError(error, os.strerror(error), path)
        return open(path, "rb")

    with monkeypatch.context() as context:
        context.setattr(storage, "open_regular", fail)
        output = convert(run, *options, expect=1)
    if error == errno.EIO:  # of a disk: a bad file
        assert "11 converted, 1 failed" in output
        return
    assert "no file is to blame, so the run was stopped" in output
    assert "failed: " not in output
    assert " converted" in convert(run, *options)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_source_that_is_not_mounted_is_no_fault_of_its_files(run, source, tmp_path):
    convert(run, source, tmp_path / "whole", "--shards", "20KiB")
    for where, options in ((source, ("--shards", "20KiB")), (tmp_path / "whole" / "*.tar", ())):
        target = tmp_path / f"out-{len(options)}"
        convert(run, where, target, *options, "--plan")
        folder = where if options else where.parent
        folder.rename(tmp_path / "elsewhere")
        output = convert(run, where, target, *options, "--part", "1/1", expect=1)
        assert f"{folder}: the folder of the source is not there: no file is to blame" in output
        (tmp_path / "elsewhere").rename(folder)
        assert " converted" in convert(run, where, target, *options)


def test_status_and_reports_read_each_record_once_and_take_no_other_options(run, source, tmp_path, monkeypatch):
    convert(run, source, tmp_path / "out", "--shards", "20KiB")
    units = len(list((tmp_path / "out.conversion" / "records").iterdir()))
    loaded, load = [], Record.load
    monkeypatch.setattr(Record, "load", lambda manifest, unit: loaded.append(unit) or load(manifest, unit))
    for option in ("--status", "--merge-reports"):
        convert(run, option, tmp_path / "out")
        assert sorted(loaded) == list(range(units))
        loaded.clear()
        for other in (["--shards", "20KiB"], ["--part", "1/2"], ["--dry-run"], ["--workers", "2"], ["--retry-failed"]):
            assert f"{other[0]} does not go with {option}" in convert(run, option, tmp_path / "out", *other, expect=2)
    assert "--report does not go with" in convert(run, "--status", tmp_path / "out", "--report", "r", expect=2)
    for other in (["--report", "r"], ["--part", "1/2"], ["--dry-run"], ["--retry-failed"], ["--strict"], ["--ray"]):
        output = convert(run, source, tmp_path / "new", "--shards", "20KiB", "--plan", *other, expect=2)
        assert f"{other[0]} does not go with --plan" in output
    for other in (["--part", "1/2"], ["--retry-failed"], ["--ray"]):
        output = convert(run, source, tmp_path / "new", "--shards", "20KiB", "--dry-run", *other, expect=2)
        assert f"{other[0]} does not go with --dry-run" in output
    assert not (tmp_path / "new.conversion").exists()


def test_two_that_plan_at_once_go_by_one_manifest(run, source, tmp_path, monkeypatch):
    target = str(tmp_path / "out")
    settings = Settings(str(source), shards=20 << 10)
    first = planning.open_manifest(target, settings)
    load = Manifest.load
    answers = [None, first]  # at first, it is not there yet
    monkeypatch.setattr(Manifest, "load", lambda target: answers.pop(0))
    monkeypatch.setattr(planning, "_FILL", 0.3)
    assert planning.open_manifest(target, settings) == first == load(target)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "shard-000000.tar").write_bytes(b"")  # nor its output, until we look
    answers = [None, first]
    assert planning.open_manifest(target, settings) == first


def test_further_shards_of_a_unit_that_is_done_again_are_removed(run, source, tmp_path):
    convert(run, source, tmp_path / "out", "--shards", "20KiB")
    whole = contents(tmp_path / "out")
    unit = next(number for number in range(9) if f"shard-{number:06d}_01.tar" not in whole)
    (tmp_path / "out.conversion" / "records" / f"{unit:06d}.jsonl").unlink()
    for name in ("_01.tar", "_01.idx", "_02.tar"):  # as another version may have made them
        (tmp_path / "out" / f"shard-{unit:06d}{name}").write_bytes(b"")
    convert(run, source, tmp_path / "out", "--shards", "20KiB")
    assert contents(tmp_path / "out") == whole


def test_no_folder_of_the_output_is_listed_to_tell_what_is_done(run, tmp_path, monkeypatch):
    archive_of(tmp_path / "in.tar", [f"{number % 9}/{number:03d}.png" for number in range(90)])
    monkeypatch.setattr(planning, "_FILES", 9)
    convert(run, tmp_path / "in.tar", tmp_path / "out")
    listed, sizes = [], storage.LocalStorage.sizes
    monkeypatch.setattr(
        storage.LocalStorage, "sizes", lambda self, folder: listed.append(folder) or sizes(self, folder)
    )
    assert "90 kept" in convert(run, tmp_path / "in.tar", tmp_path / "out")
    assert listed == [str(tmp_path / "out.conversion" / name) for name in ("amended", "records")]
    (tmp_path / "out" / "3" / "003.l3").unlink()
    assert "9 converted, 81 kept" in convert(run, tmp_path / "in.tar", tmp_path / "out")


@pytest.mark.parametrize("damage", ["", "{", '{"version": 1}\n', '{"version": 2}\n', "[]", "[[[["])
def test_damaged_manifests_and_records_are_named(run, source, tmp_path, damage):
    convert(run, source, tmp_path / "out", "--shards", "20KiB")
    for path in ("records/000000.jsonl", "manifest.json"):
        file = tmp_path / "out.conversion" / path
        content = file.read_text()
        for text in (damage, content[: len(content) // 2]):
            file.write_text(text)
            for arguments in (("--status", tmp_path / "out"), (source, tmp_path / "out", "--shards", "20KiB")):
                assert f"{path}: " in convert(run, *arguments, expect=2)
        file.write_text(content)
    record = tmp_path / "out.conversion" / "records" / "000000.jsonl"
    content = record.read_text()
    record.write_text(content[: content.rindex("\n", 0, -1) + 1])  # whole lines
    assert "000000.jsonl: damaged" in convert(run, "--status", tmp_path / "out", expect=2)
    record.write_text(content)
    samples = next((tmp_path / "out.conversion").glob("samples-*"))
    samples.write_bytes(samples.read_bytes()[:-9])
    (tmp_path / "out.conversion" / "records" / "000000.jsonl").unlink()
    units = len(json.loads((tmp_path / "out.conversion" / "manifest.json").read_text())["units"])
    (tmp_path / "out.conversion" / "records" / f"{units - 1:06d}.jsonl").unlink()
    assert "damaged" in convert(run, source, tmp_path / "out", "--shards", "20KiB", "--part", "1/1", expect=2)
