"""The shards that conversion writes, read by others and by our readers; and shards as its source."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
import webdataset

import dali_l3
from image_files import noise, write_png
from tar_shards import WRITERS, write_shard

pytestmark = pytest.mark.usefixtures("one_process")

COUNT = 10


def pixels_of(number):
    return noise((16 + number, 24, 3), seed=number)


@pytest.fixture
def written(run, tmp_path):
    """A folder of shards, from a folder of images in two classes."""
    for number in range(COUNT):
        path = tmp_path / "train" / f"class{number % 2}" / f"{number:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(imagecodecs.png_encode(pixels_of(number)))
        path.with_suffix(".json").write_text(json.dumps({"number": number}))
    assert run("convert", tmp_path / "train", tmp_path / "out", "--shards", "10KiB")[0] == 0
    shards = sorted((tmp_path / "out").glob("*.tar"))
    assert len(shards) > 2
    return shards


def assert_samples(samples):
    """All of them once, as (pixels, label, number)."""
    samples = sorted(samples, key=lambda sample: sample[2])
    assert [(label, number) for _, label, number in samples] == [(number % 2, number) for number in range(COUNT)]
    for pixels, _, number in samples:
        np.testing.assert_array_equal(pixels, pixels_of(number))


def test_webdataset_reads_them(written):
    dataset = webdataset.WebDataset([str(path) for path in written], shardshuffle=False)
    assert_samples(
        (dali_l3.decode(sample["l3"]), int(sample["cls"]), json.loads(sample["json"])["number"]) for sample in dataset
    )


def test_tar_reads_them(written, tmp_path):
    for path in written:
        listing = subprocess.run(["tar", "-tvf", path], capture_output=True, text=True, check=True)
        assert listing.stderr == ""
        assert all("root/root" in line or "0/0" in line for line in listing.stdout.splitlines())
        subprocess.run(["tar", "-C", tmp_path / "train", "-xf", path], check=True)
    assert_samples(
        (dali_l3.imread(path), int(path.with_suffix(".cls").read_text()), int(path.stem))
        for path in (tmp_path / "train").rglob("*.l3")
    )


@pytest.mark.parametrize("reader", ["webdataset", "multi_format", "liquid"])
def test_readers_read_them(written, reader, plugin):
    from nvidia.dali import fn, pipeline_def

    import dali_l3.fn

    paths = [str(path) for path in written]
    indices = [str(path.with_suffix(".idx")) for path in written]

    @pipeline_def(batch_size=COUNT, num_threads=1, device_id=None)
    def pipeline():
        common = {"paths": paths, "index_paths": indices, "ext": ["l3", "cls", "json"]}
        if reader == "webdataset":
            image, label, text = fn.readers.webdataset(**common)
        else:
            options = {"cache_size": "1MiB"} if reader == "liquid" else {}
            image, label, text = getattr(dali_l3.fn.readers, reader)(**common, **options)
        return dali_l3.fn.decoders.l3(image), label, text

    pipe = pipeline()
    images, labels, texts = pipe.run()
    assert_samples(
        (images.at(i), int(bytes(labels.at(i))), json.loads(bytes(texts.at(i)))["number"]) for i in range(COUNT)
    )


def test_names_of_all_kinds(run, tmp_path, plugin):
    from nvidia.dali import fn, pipeline_def

    import dali_l3.fn

    names = ["a b/ü", "v1.0/x", "50%", "n" * 150, "l/" * 60 + "q"]
    images = {name: noise((5, 6 + number), seed=number) for number, name in enumerate(names)}
    for name, pixels in images.items():
        write_png(tmp_path / "in" / f"{name}.png", pixels)
    assert run("convert", tmp_path / "in", tmp_path / "out", "--shards", "1MiB")[0] == 0
    shard = str(tmp_path / "out" / "shard-000000.tar")
    found = {sample["__key__"]: sample["l3"] for sample in webdataset.WebDataset([shard], shardshuffle=False)}
    assert found.keys() == images.keys()
    for name, pixels in images.items():
        np.testing.assert_array_equal(dali_l3.decode(found[name]), pixels)

    @pipeline_def(batch_size=len(names), num_threads=1, device_id=None)
    def pipeline():
        ours = dali_l3.fn.readers.multi_format(paths=[shard], ext=["l3"])
        index = str(tmp_path / "out" / "shard-000000.idx")
        return ours, fn.readers.webdataset(paths=[shard], index_paths=[index], ext=["l3"])

    pipe = pipeline()
    for output in pipe.run():
        assert [bytes(output.at(i)) for i in range(len(names))] == [*found.values()]


def source_members():
    return [
        member
        for number in range(COUNT)
        for member in (
            (f"c/{number:02d}.png", imagecodecs.png_encode(pixels_of(number))),
            (f"c/{number:02d}.cls", str(number % 2).encode()),
            (f"c/{number:02d}.json", json.dumps({"number": number}).encode()),
        )
    ]


def read_with_tarfile(paths):
    files = {}
    for path in paths:
        with tarfile.open(path) as archive:
            for name in archive.getnames():
                assert name not in files
                files[name] = archive.extractfile(name).read()
    return files


def assert_files(files, prefix="c/"):
    assert len(files) == 3 * COUNT
    assert_samples(
        (
            dali_l3.decode(files[f"{prefix}{number:02d}.l3"]),
            int(files[f"{prefix}{number:02d}.cls"]),
            json.loads(files[f"{prefix}{number:02d}.json"])["number"],
        )
        for number in range(COUNT)
    )


@pytest.mark.parametrize("writer", WRITERS)
def test_shards_become_shards_and_a_folder(run, writer, tmp_path):
    source = tmp_path / "in.tar"
    WRITERS[writer](source, source_members())
    assert run("convert", source, tmp_path / "out", "--shards", "10KiB")[0] == 0
    assert_files(read_with_tarfile((tmp_path / "out").glob("*.tar")))
    assert run("convert", source, tmp_path / "folder")[0] == 0
    folder = tmp_path / "folder"
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert_files(files)
    assert not source.with_suffix(".idx").exists(), "the source is not changed"


def test_shards_of_l3_are_packed_anew(run, written, tmp_path):
    pattern = str(written[0].parent / "*.tar")
    assert run("convert", pattern, tmp_path / "large", "--shards", "1MiB", "--order", "source")[0] == 0
    before = read_with_tarfile(written)
    assert read_with_tarfile([tmp_path / "large" / "shard-000000.tar"]) == before


@pytest.mark.parametrize("names", [("a", "b"), ("train/0", "val/0")])
def test_keys_that_several_shards_have(run, tmp_path, names):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_shard(tmp_path / f"{name}.tar", source_members())
    assert run("convert", f"{tmp_path}/{{{','.join(names)}}}.tar", tmp_path / "out", "--shards", "1MiB")[0] == 0
    files = read_with_tarfile((tmp_path / "out").glob("*.tar"))
    for name in names:
        assert_files({path: data for path, data in files.items() if path.startswith(name)}, f"{name}/c/")


def test_a_name_that_repeats_is_another_sample(run, tmp_path):
    image = imagecodecs.png_encode(pixels_of(0))
    write_shard(tmp_path / "in.tar", [("1.png", image), ("1.cls", b"0"), ("1.png", image), ("1.cls", b"1")])
    assert run("convert", tmp_path / "in.tar", tmp_path / "out")[0] == 0
    labels = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.cls")}
    assert labels == {"1.cls": b"0", "1-2.cls": b"1"}


def test_names_that_lead_out_of_the_folder(run, tmp_path):
    image = imagecodecs.png_encode(pixels_of(0))
    names = ["../../evil.png", "/absolute.png", "./a/./b.png", "x/../../y.png"]
    write_shard(tmp_path / "in.tar", [(name, image) for name in names])
    code, _, err = run("convert", tmp_path / "in.tar", tmp_path / "t" / "out")
    assert (code, err.count("leads out of the folder")) == (1, 2)
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.l3")}
    assert found == {"t/out/absolute.l3", "t/out/a/b.l3"}


def test_bad_shards_and_bad_samples(run, tmp_path):
    image = imagecodecs.png_encode(pixels_of(0))
    array = noise((3, 3)).astype(np.float32).tobytes()
    members = [("1.png", image), ("1.npy", array), ("2.png", image[:50]), ("2.cls", b"0"), ("3.cls", b"0")]
    path = Path(write_shard(tmp_path / "in.tar", members))
    code, _, err = run("convert", path, tmp_path / "out")
    assert (code, "1 converted, 1 skipped, 1 failed" in err) == (1, True)
    assert "in.tar: 2.png: " in err
    assert "the sample has no image" in err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["1.l3", "1.npy"]
    assert (tmp_path / "out" / "1.npy").read_bytes() == array

    path.write_bytes(path.read_bytes()[:3000])
    code, _, err = run("convert", path, tmp_path / "other")
    assert code == 2
    assert "in.tar: " in err
    assert not (tmp_path / "other").exists()
