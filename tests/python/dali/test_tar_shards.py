"""Tar shards in both readers: whoever wrote them, with the order, shards, epochs and checkpoints of files, and beside
fn.readers.webdataset."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nvidia.dali import Pipeline, fn, types

import dali_l3
from dali_l3.fn import readers
from reading import Reading, read
from tar_shards import WRITERS, image, samples, write_shard

pytestmark = pytest.mark.usefixtures("plugin")
both_readers = pytest.mark.parametrize("reader", [readers.multi_format, readers.liquid])

EXT = ["png", "cls", "seg.png"]


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Three shards of different sizes, in which names repeat from shard to shard."""
    folder = tmp_path_factory.mktemp("shards")
    return [write_shard(folder / f"s-{i}.tar", samples(count)) for i, count in enumerate((7, 12, 4))]


def outputs(make_outputs, batches: int, batch_size: int = 4) -> list[tuple[bytes, ...]]:
    """What a pipeline delivers: for each sample the bytes of its outputs."""
    pipeline = Pipeline(batch_size, 2, None, seed=3)
    with pipeline:
        made = make_outputs()
        pipeline.set_outputs(*(made if isinstance(made, (list, tuple)) else [made]))
    rows = []
    for _ in range(batches):
        columns = pipeline.run()
        rows += [tuple(np.array(column[i]).tobytes() for column in columns) for i in range(batch_size)]
    return rows


def contents(members) -> Counter:
    """The samples of an archive, as `outputs` returns them."""
    by_name = dict(members)
    keys = dict.fromkeys(name.split(".")[0] for name in by_name)
    return Counter(tuple(by_name.get(f"{key}.{ext}", b"") for ext in EXT) for key in keys)


@both_readers
def test_components_are_called_by_their_own_names(reader, tmp_path):
    members = [(name, data) for name, data in samples(3) if name != "001.seg.png"]
    path = write_shard(tmp_path / "a.tar", members)
    images, classes, masks = Reading(reader, paths=str(path), ext=EXT, batch_size=3).pipeline.run()
    for i in range(3):
        image = images[i].source_info()
        assert classes[i].source_info() == image.replace(".png", ".cls")
        assert masks[i].source_info() == (image if "001" in image else image.replace(".png", ".seg.png"))


# ---- Who wrote them ----


@pytest.mark.parametrize("writer", WRITERS)
@both_readers
def test_shards_of_every_writer(reader, writer, tmp_path):
    members = samples(4, "plain/") + samples(4, "with space/")
    if writer not in ("tar v7", "tar ustar", "tarfile ustar"):  # which have no names of this length
        members += samples(4, "d" * 120 + "/" + "n" * 130)
    path = WRITERS[writer](tmp_path / "a.tar", members)
    count = len(members) // 3
    for _ in range(2):  # first the archive is read, then its index
        assert Counter(outputs(lambda: reader(paths=path, ext=EXT), 1, count)) == contents(members)
    reading = Reading(reader, batch_size=count, paths=path, ext=EXT, label_ext="cls")
    delivered = reading.batch()
    assert {sample.path for sample in delivered} == {f"a.tar:{name}" for name, _ in members[::3]}
    assert all(sample.label == int(sample.files[1]) for sample in delivered)


def test_members_that_are_not_adjacent_and_names_that_repeat(tmp_path, capfd):
    first, second = samples(3), [(name, content + b"2") for name, content in samples(2)]
    members = first[::3] + first[1::3] + first[2::3]
    path = write_shard(tmp_path / "a.tar", members)
    assert Counter(outputs(lambda: readers.multi_format(paths=path, ext=EXT), 1, 3)) == contents(first)
    path = write_shard(tmp_path / "b.tar", first + second)
    rows = outputs(lambda: readers.multi_format(paths=path, ext=EXT), 1, 5)
    assert Counter(rows) == contents(first) + contents(second)
    assert "b.tar: 2 samples have the name of another" in capfd.readouterr().err
    with pytest.raises(RuntimeError, match="b.tar: 000.png is listed twice"):
        read(readers.multi_format, 1, paths=path, ext=EXT, label_ext="cls", strict=True)


# ---- Beside fn.readers.webdataset ----


def test_one_line_replaces_fn_readers_webdataset(shards):
    """The same samples in the same order, with our index, with that of wds2idx and without one."""
    indices = [path.replace(".tar", ".idx") for path in shards]
    arguments = dict(paths=shards, ext=["jpg;png", "cls", "none"], missing_component_behavior="empty")
    ours = outputs(lambda: readers.multi_format(**arguments), 8)
    assert ours == outputs(lambda: fn.readers.webdataset(index_paths=indices, **arguments), 8)
    assert ours == outputs(lambda: fn.readers.webdataset(**arguments), 8)
    for path, index in zip(shards, indices, strict=True):
        subprocess.run([sys.executable, "-m", "wds2idx", path, index + "2"], check=True, stdout=subprocess.DEVNULL)
    theirs = [index + "2" for index in indices]
    assert ours == outputs(lambda: readers.multi_format(index_paths=theirs, **arguments), 8)


@pytest.mark.parametrize("names", [["a b.png", "a b.cls", "tab\t.png"], ["100%.png", "é.png"]])
def test_dali_reads_our_index_whatever_the_names(names, tmp_path):
    members = [(name, image(name)) for name in names]
    path, index = write_shard(tmp_path / "a.tar", members), str(tmp_path / "a.idx")
    count = len({name.split(".")[0] for name in names})
    ours = outputs(lambda: readers.multi_format(paths=path, ext=["png"]), 1, count)
    assert ours == outputs(lambda: fn.readers.webdataset(paths=path, index_paths=index, ext=["png"]), 1, count)
    assert {row[0] for row in ours} == {content for name, content in members if name.endswith("png")}
    with pytest.raises(RuntimeError, match=r'should hold the label, but "\?PNG" is no number'):
        read(readers.multi_format, 1, paths=path, ext="png", label_ext="png")


@pytest.mark.parametrize("behavior", ["empty", "skip"])
def test_components_that_are_missing(behavior, tmp_path):
    members = samples(8)
    del members[11], members[4]  # a mask and a label
    path = write_shard(tmp_path / "a.tar", members)
    arguments = dict(paths=path, ext=EXT, missing_component_behavior=behavior)
    count = 8 if behavior == "empty" else 6
    ours = outputs(lambda: readers.multi_format(**arguments), 2, count)
    assert ours == outputs(lambda: fn.readers.webdataset(**arguments), 2, count)
    assert sum(b"" in row for row in ours) == (4 if behavior == "empty" else 0)
    with pytest.raises(RuntimeError, match=r"2 of 8 samples have bad files:\s+.*a.tar: 001.png: has no component cls"):
        read(readers.multi_format, 1, **arguments | {"missing_component_behavior": "error"})


# ---- Order ----

READERS = {
    "in order": (readers.multi_format, {}),
    "shuffled": (readers.multi_format, {"random_shuffle": True, "initial_fill": 5}),
    "after epoch": (readers.multi_format, {"shuffle_after_epoch": True}),
    "mix": (readers.multi_format, {"mix": "dataset", "random_shuffle": True}),
    "weights": (readers.multi_format, {"weights": list(range(1, 24)), "epoch_size": 30}),
    "Liquid": (readers.liquid, {"cache_size": 40_000}),
    "MinIO": (readers.liquid, {"cache_size": 40_000, "policy": "minio"}),
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("direct", [False, True])
def test_the_order_and_the_hits_are_those_of_the_same_files(kind, direct, shards, tmp_path):
    """Archives change where the bytes come from, and nothing else."""
    files, masks, labels = [], [], []
    for path in shards:
        with tarfile.open(path) as archive:
            archive.extractall(tmp_path / Path(path).stem, filter="data")
        for name in sorted((tmp_path / Path(path).stem).glob("*.cls")):
            labels.append(int(name.read_bytes()))
            files.append(name.with_suffix(".png"))
            masks.append([name.with_suffix(".seg.png")])
    reader, arguments = READERS[kind]
    arguments = arguments | {"use_o_direct": direct, "num_shards": 2, "shard_id": 1}
    of_files = Reading(reader, files=files, labels=labels, companion_files=masks, **arguments)
    of_shards = Reading(reader, paths=shards, ext=["png", "seg.png"], label_ext="cls", **arguments)
    assert of_files.pipeline.reader_meta("reader") == of_shards.pipeline.reader_meta("reader")
    for theirs, ours in zip(of_files.batches(12), of_shards.batches(12), strict=True):
        assert [(s.files, s.label) for s in theirs] == [(s.files, s.label) for s in ours]
    drop = {"wait_seconds", "idle_bytes", "other_bytes_peak", "other_bytes_used"}
    theirs, ours = (
        {k: v for k, v in r.statistics()["epochs"][0].items() if k not in drop} for r in (of_files, of_shards)
    )
    assert theirs == ours


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_every_sample_comes_once_an_epoch_in_any_world(shards, data):
    world = data.draw(st.integers(1, 5))
    batch_size = data.draw(st.integers(1, 5))
    reader, arguments = READERS[data.draw(st.sampled_from(["in order", "shuffled", "mix", "Liquid", "MinIO"]))]
    seed = data.draw(st.integers(0, 1000))
    seen = [Counter() for _ in range(3)]
    for shard in range(world):
        reading = Reading(
            reader,
            batch_size=batch_size,
            paths=shards,
            ext="png",
            label_ext="cls",
            num_shards=world,
            shard_id=shard,
            stick_to_shard=True,
            seed=seed,
            **arguments,
        )
        size = 23 * (shard + 1) // world - 23 * shard // world
        stream = [s.path for batch in reading.batches(3 * size // batch_size + 1) for s in batch]
        for epoch in range(3):
            seen[epoch].update(stream[epoch * size : (epoch + 1) * size])
    expected = {f"s-{i}.tar:{j:03d}.png": 1 for i, count in enumerate((7, 12, 4)) for j in range(count)}
    assert all(counts == expected for counts in seen)


@pytest.mark.parametrize("kind", ["in order", "shuffled", "mix", "Liquid"])
def test_checkpoints(kind, shards, tmp_path):
    reader, arguments = READERS[kind]
    arguments = {"paths": shards, "ext": ["png", "seg.png"], "label_ext": "cls"} | arguments
    reading = Reading(reader, checkpointing=True, **arguments)
    reading.pass_over(9)
    checkpoint = reading.pipeline.checkpoint()
    rest = reading.batches(10)
    assert Reading(reader, checkpoint=checkpoint, **arguments).batches(10) == rest
    # The archives may lie elsewhere, but must be the same.
    moved = [
        write_shard(tmp_path / Path(path).name, samples(count)) for path, count in zip(shards, (7, 12, 4), strict=True)
    ]
    assert Reading(reader, checkpoint=checkpoint, **arguments | {"paths": moved}).batches(10) == rest
    with pytest.raises(ValueError, match="names of the files"):
        Reading(reader, checkpoint=checkpoint, **arguments | {"paths": [moved[1], moved[0], moved[2]]})
    world = {"num_shards": 2, "pad_last_batch": True, "on_mismatch": "redistribute"}
    if kind in ("mix", "Liquid"):
        left = Counter()
        for shard in range(2):
            other = Reading(reader, checkpoint=checkpoint, shard_id=shard, **arguments | world)
            left.update({s.path for batch in other.batches(other.statistics()["rest_batches"]) for s in batch})
        assert len(left) == 2 * 23 - 9 * 4
        assert set(left.values()) == {1}


@both_readers
def test_subsets_and_classes(reader, shards):
    arguments = dict(paths=shards, ext="png", label_ext="cls")
    names = ["s-0.tar:003.png", "s-2.tar:001.png"]
    assert {s.path for s in read(reader, 2, batch_size=2, subset=names, **arguments)} == set(names)
    counts = Counter(
        s.label for s in read(reader, 5, batch_size=6, class_proportions="balanced", epoch_size=30, **arguments)
    )
    assert set(counts.values()) == {10}
    with pytest.raises((RuntimeError, ValueError), match="say with label_ext where they are"):
        outputs(lambda: reader(paths=shards, ext="png", class_proportions="balanced"), 1)
    parts = [
        {s.path for s in read(reader, 12, batch_size=2, subset=part, **arguments)} for part in ((0.0, 0.5), (0.5, 1.0))
    ]
    assert not parts[0] & parts[1]
    assert len(parts[0] | parts[1]) == 23


def test_vectors_in_json(tmp_path):
    members = []
    for i in range(4):
        members += [(f"{i}.png", image(str(i))), (f"{i}.json", b'{"a": {"box": [%d, 0.5]}, "caption": "x"}' % i)]
    path = write_shard(tmp_path / "a.tar", members)
    pipeline = Pipeline(4, 2, None)
    with pipeline:
        arguments = dict(label_ext="json", label_field="a.box", label_columns=2)
        pipeline.set_outputs(*readers.multi_format(paths=path, ext="png", **arguments))
    _, labels = pipeline.run()
    np.testing.assert_array_equal(np.array(labels.as_tensor()), [[i, 0.5] for i in range(4)])
    assert labels.dtype == types.FLOAT


# ---- What is wrong ----


def problem(**arguments) -> str:
    with pytest.raises((RuntimeError, ValueError)) as caught:
        outputs(lambda: readers.multi_format(**arguments), 1)
    return str(caught.value)


def test_bad_shards_are_named(tmp_path):
    good = samples(5)
    path = Path(write_shard(tmp_path / "a.tar", good))
    data = path.read_bytes()

    def with_bytes(name, content):
        (tmp_path / name).write_bytes(content)
        return problem(paths=str(tmp_path / name), ext="png")

    assert "z.tar.gz: is compressed with gzip" in with_bytes("z.tar.gz", gzip.compress(data))
    assert "cut.tar: is cut off" in with_bytes("cut.tar", data[:5000])
    assert "text.tar: is no tar archive" in with_bytes("text.tar", b"text" * 1000)
    assert "damaged.tar: has no sound header" in with_bytes("damaged.tar", data[:1030] + b"x" + data[1031:])
    assert "two.tar: has more behind its end" in with_bytes("two.tar", data * 2)
    assert not list(tmp_path.glob("*.idx"))
    assert "no file matches" in problem(paths=str(tmp_path / "none-*.tar"), ext="png")
    assert "is a URI" in problem(paths="https://host/a.tar", ext="png")
    assert "ext needs the argument paths" in problem(file_root=str(tmp_path), ext="png")
    assert "excludes file_root" in problem(file_root=str(tmp_path), paths=str(path), ext="png")


def test_an_archive_that_is_replaced_has_another_index(tmp_path):
    path = write_shard(tmp_path / "a.tar", samples(3))
    assert len(outputs(lambda: readers.multi_format(paths=path, ext=EXT), 1, 3)) == 3
    write_shard(tmp_path / "a.tar", samples(5))
    assert Counter(outputs(lambda: readers.multi_format(paths=path, ext=EXT), 1, 5)) == contents(samples(5))


@both_readers
def test_bad_samples_are_skipped_and_replaced(reader, tmp_path, capfd):
    members = samples(20)
    members[3] = ("001.png", b"no image")
    members[7] = ("002.cls", b"cat")
    path = write_shard(tmp_path / "a.tar", members)
    arguments = dict(paths=path, ext=["png"], label_ext="cls")
    with pytest.raises(RuntimeError, match=r"a\.tar: 002\.cls: should hold the label, but \"cat\" is no number"):
        read(reader, 1, **arguments)
    delivered = read(reader, 1, batch_size=18, on_error="skip", **arguments)
    assert {s.path for s in delivered} == {f"a.tar:{i:03d}.png" for i in range(20) if i not in (1, 2)}
    err = capfd.readouterr().err
    assert re.search(r"a\.tar: 001\.png: of no known image format", err)

    (tmp_path / "gray.png").write_bytes(image("gray"))
    reading = Reading(
        reader,
        batch_size=18,
        on_error="substitute",
        substitute=str(tmp_path / "gray.png"),
        prefetch_queue_depth=0,
        **arguments,
    )
    os.truncate(path, 15_000)  # while it is open
    delivered = reading.batches(3)[-1]
    assert str(tmp_path / "gray.png") in {s.path for s in delivered}
    assert "lies beyond the end of the archive" in capfd.readouterr().err


@both_readers
@pytest.mark.parametrize("direct", [False, True], ids=["at once", "one by one"])
def test_batches_that_are_read_at_once_leave_the_pipeline_without_a_copy(reader, direct, tmp_path):
    """What is held of them is the reader's own memory, which it counts. DALI copies images that lie apart."""
    images = {f"{i:03d}.png": image(str(i)) + bytes(3000) for i in range(96)}
    labels = [(f"{i:03d}.cls", b"0") for i in range(96)]
    path = write_shard(tmp_path / "a.tar", sorted([*images.items(), *labels]))
    reading = Reading(
        reader, batch_size=8, paths=path, ext="png", label_ext="cls", use_o_direct=direct, prefetch_queue_depth=1
    )
    reading.pass_over(3)
    before = reading.statistics()["other_bytes_used"]
    held = [reading.pipeline.run()[0] for _ in range(60)]
    grown = reading.statistics()["other_bytes_used"] - before
    delivered = [(files[i].source_info(), np.asarray(files[i]).tobytes()) for files in held for i in range(8)]
    size = sum(len(content) for _, content in delivered)
    assert grown < 0.3 * size if direct else grown >= 0.7 * size
    assert {name.rpartition(":")[2]: content for name, content in delivered} == images


def test_checks_look_into_members(tmp_path):
    generator = np.random.default_rng(0)
    members = [(f"{i}.l3", dali_l3.encode(generator.integers(0, 256, (64, 64), np.uint8))) for i in range(6)]
    members[2] = ("2.l3", members[2][1][:-20])
    damaged = bytearray(members[4][1])
    damaged[len(damaged) // 2] ^= 1
    members[4] = ("4.l3", bytes(damaged))
    path = write_shard(tmp_path / "a.tar", members)
    with pytest.raises(RuntimeError, match=r"1 of 6 samples has bad files:\s+.*a\.tar: 2\.l3"):
        outputs(lambda: readers.multi_format(paths=path, ext="l3", check="headers"), 1, 6)
    with pytest.raises(RuntimeError, match=r"a\.tar: 4\.l3"):
        outputs(lambda: readers.multi_format(paths=path, ext="l3", check="content", subset=[0, 1, 3, 4, 5]), 2, 5)


def test_liquid_counts_what_it_reads(tmp_path):
    members = [(f"{i:03d}.png", image(f"{i}") + bytes(9000)) for i in range(40)]
    path = write_shard(tmp_path / "a.tar", members)
    pipeline = Pipeline(8, 2, None, seed=1)
    with pipeline:
        pipeline.set_outputs(readers.liquid(name="reader", cache_size=20 * 12288, paths=path, ext="png"))
    for _ in range(20):
        pipeline.run()
    statistics = dali_l3.reader_stats(pipeline, "reader")
    sizes = sum(len(content) for _, content in members)
    assert 0.4 < statistics["hit_ratio"] <= 0.5
    second = statistics["epochs"][1]
    assert second["bytes_read"] == pytest.approx((1 - statistics["hit_ratio"]) * sizes, rel=0.1)
    assert {part["formats"]["PNG"]["hits"] for part in statistics["batches"][5:10]} <= {2, 3, 4}


def test_many_shards_few_descriptors(tmp_path, run_python):
    """More archives than the process may open at once."""
    paths = [write_shard(tmp_path / f"{i:03d}.tar", samples(1, f"{i}-")) for i in range(150)]
    program = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).parents[1] / "support")!r})
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
from dali_l3.fn import readers
from reading import read
delivered = read(readers.liquid, 15, batch_size=10, paths={str(tmp_path)!r} + "/*.tar", ext="png", label_ext="cls")
print(len({{sample.path for sample in delivered}}))
"""
    assert len(paths) == 150
    assert run_python(program) == "150"
