"""Conversion in units: to shards, from shards, in parts; what is done again and what is not."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import imagecodecs
import numpy as np
import pytest

import dali_l3
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
    output = convert(run, source, target, "--shards", "20KiB")
    assert contents(target) == whole
    assert " converted" in output
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


def test_a_folder_that_holds_files_is_refused(run, source, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    assert "holds files" in convert(run, source, tmp_path / "out", "--shards", "20KiB", expect=2)
    assert not (tmp_path / "out.conversion" / "manifest.json").exists()
