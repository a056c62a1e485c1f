"""readers.liquid: what it promises of epochs, batches and memory, and what happens when files go bad meanwhile."""

from __future__ import annotations

import gc
import itertools
import math
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nvidia.dali import Pipeline, fn

import dali_l3
from bmp_files import bmp
from dali_l3.fn import readers
from dali_l3.sizes import parse_size
from reading import HEADERS, Delivered, Reading, file_reader, read, write_dataset

pytestmark = pytest.mark.usefixtures("plugin")

# As the statistics name the formats.
FORMATS = {"l3": "L3", "png": "PNG", "jpg": "JPEG", "bmp": "BMP", "webp": "WebP"}

POLICIES = ["liquid", "minio", "none"]


def memory_of(paths: list[Path]) -> int:
    """Bytes that the files take in the reader's memory."""
    return sum(-(-path.stat().st_size // 4096) * 4096 for path in paths)


# ---- Epochs and batches ----


@dataclass(frozen=True)
class Setting:
    """A dataset and a way of reading it."""

    counts: dict[str, int]  # files of each format
    file_size: int  # at most, in bytes
    shards: int
    batch_size: int
    pad_last_batch: bool
    memory: float  # cache_size as a part of a shard's share of the dataset
    seed: int
    read_order: str

    @contextmanager
    def dataset(self) -> Iterator[list[Path]]:
        with tempfile.TemporaryDirectory() as folder:
            yield write_dataset(Path(folder), self.counts, size=self.file_size)

    def cache_size(self, paths: list[Path]) -> int:
        return int(self.memory * memory_of(paths) / self.shards)

    def read(self, paths: list[Path], shard: int, epochs: int, policy: str) -> Shard:
        return Shard(
            len(paths),
            epochs,
            file_root=str(paths[0].parent.parent),
            num_shards=self.shards,
            shard_id=shard,
            batch_size=self.batch_size,
            pad_last_batch=self.pad_last_batch,
            cache_size=self.cache_size(paths),
            seed=self.seed,
            policy=policy,
            read_order=self.read_order if policy == "liquid" else "random",
        )


@st.composite
def a_setting(draw) -> Setting:
    counts = draw(st.dictionaries(st.sampled_from(sorted(FORMATS)), st.integers(1, 14), min_size=1, max_size=4))
    return Setting(
        counts,
        file_size=draw(st.sampled_from([300, 30000])),
        shards=draw(st.integers(1, min(3, sum(counts.values())))),
        batch_size=draw(st.integers(1, 9)),
        pad_last_batch=draw(st.booleans()),
        memory=draw(st.sampled_from([0, 0.05, 0.3, 0.5, 0.8, 1, 1.5])),
        seed=draw(st.integers(0, 2**62)),
        read_order=draw(st.sampled_from(["random", "sequential"])),
    )


@dataclass(frozen=True)
class Part:
    """The samples of one epoch in one batch, without padding, and what the statistics say of them."""

    samples: list[Delivered]
    statistics: dict

    def of(self, name: str) -> tuple[int, int]:
        """Hits and misses of a format."""
        counts = self.statistics["formats"].get(FORMATS[name], {"hits": 0, "misses": 0})
        return counts["hits"], counts["misses"]


class Shard:
    """A reading of some epochs of a shard."""

    def __init__(
        self, dataset_size: int, epochs: int, *, num_shards, shard_id, batch_size, pad_last_batch, **arguments
    ):
        self.size = dataset_size * (shard_id + 1) // num_shards - dataset_size * shard_id // num_shards
        largest = -(-dataset_size // num_shards)
        batches = epochs * -(-largest // batch_size) if pad_last_batch else -(-epochs * self.size // batch_size)
        shards = {"num_shards": num_shards, "shard_id": shard_id, "stick_to_shard": True}
        self.reading = Reading(
            readers.liquid, batch_size=batch_size, pad_last_batch=pad_last_batch, **shards, **arguments
        )
        delivered = [list(batch) for batch in self.reading.batches(batches)]
        self.statistics = self.reading.statistics()
        self.epochs: list[list[Part]] = [[] for _ in range(epochs)]
        self.padding: list[tuple[Delivered, Delivered]] = []  # after the last sample of its epoch, which it repeats
        for counted in self.statistics["batches"]:
            if counted["batch"] >= batches or counted["epoch"] >= epochs:
                continue  # read ahead
            batch, parts, size = delivered[counted["batch"]], self.epochs[counted["epoch"]], counted["samples"]
            if size > 0:
                parts.append(Part(batch[:size], counted))
            if pad_last_batch:
                self.padding += [(parts[-1].samples[-1], repeated) for repeated in batch[size:]]
            del batch[:size]

    def samples(self, epoch: int) -> list[Delivered]:
        return [sample for part in self.epochs[epoch] for sample in part.samples]

    def total(self, epoch: int, field: str) -> float:
        return sum(part.statistics[field] for part in self.epochs[epoch])

    def held(self) -> dict[str, int]:
        """Samples of each format that Liquid holds, all the hits of an epoch: what one ratio gives, rounded down."""
        totals = Counter(sample.format for sample in self.samples(0))
        held = {name: sum(part.of(name)[0] for part in self.epochs[1]) for name in totals}
        assert sum(held.values()) == round(self.statistics["hit_ratio"] * self.size)
        least = max(Fraction(held[name], total) for name, total in totals.items())
        assert all(least < Fraction(held[name] + 1, total) for name, total in totals.items())
        return held

    def bytes(self) -> int:
        return sum(len(file) for sample in self.samples(0) for file in sample.files)


def is_share(count: int, total: int, part: int, size: int) -> bool:
    """Whether a count is the floor or the ceiling of the share that a part of a whole has of a total."""
    return total * part // size <= count <= -(-total * part // size)


@given(setting=a_setting(), policy=st.sampled_from(["liquid", *POLICIES]))
@settings(max_examples=60)
def test_promises_about_epochs_batches_and_memory(setting, policy):
    """All that follow, about the same readings."""
    with setting.dataset() as paths:
        root, cache_size = paths[0].parent.parent, setting.cache_size(paths)
        files = {str(path.relative_to(root)): (path.parent.name, path.read_bytes()) for path in paths}
        shards = [setting.read(paths, shard, 4, policy) for shard in range(setting.shards)]
    check_that_every_epoch_delivers_every_sample_once_over_all_shards(shards, files)
    check_that_padding_makes_shards_equal(shards, setting, len(paths))
    for shard in shards:
        check_that_padding_repeats_the_last_sample(shard)
        check_that_an_epoch_takes_from_memory_what_the_one_before_kept_and_the_rest_from_disk(shard)
        check_that_what_is_kept_stays_within(cache_size, shard.statistics)
        if policy == "liquid":
            check_that_every_batch_takes_its_share_of_each_format_from_memory_and_from_disk(shard)
        if policy == "none":
            assert shard.statistics["hit_ratio"] == 0


def check_that_every_epoch_delivers_every_sample_once_over_all_shards(shards, files):
    for epoch in range(4):
        samples = [sample for shard in shards for sample in shard.samples(epoch)]
        assert Counter(sample.path for sample in samples) == Counter(files.keys())
        for sample in samples:
            folder, content = files[sample.path]
            assert sample.files == (content,)
            assert f"class{sample.label}" == folder


def check_that_every_batch_takes_its_share_of_each_format_from_memory_and_from_disk(shard):
    totals = Counter(sample.format for sample in shard.samples(0))
    held = shard.held()
    for epoch, parts in enumerate(shard.epochs):
        for part in parts:
            delivered = Counter(sample.format for sample in part.samples)
            for name, total in totals.items():
                hits, misses = part.of(name)
                all_hits = held[name] if epoch > 0 else 0
                assert hits + misses == delivered[name]
                for count, of in ((hits, all_hits), (misses, total - all_hits), (hits + misses, total)):
                    assert is_share(count, of, len(part.samples), shard.size)


def check_that_an_epoch_takes_from_memory_what_the_one_before_kept_and_the_rest_from_disk(shard):
    held = round(shard.statistics["hit_ratio"] * shard.size)
    kept_bytes = 0
    for epoch, parts in enumerate(shard.epochs):
        hits = sum(part.of(name)[0] for part in parts for name in FORMATS)
        assert hits == (held if epoch > 0 else 0)
        assert shard.total(epoch, "files_read") == shard.size - hits
        assert shard.total(epoch, "bytes_read") == shard.bytes() - kept_bytes
        assert shard.total(epoch, "bad_samples") == 0
        assert parts[-1].statistics["current_bytes"] == 0
        kept_bytes = parts[-1].statistics["next_bytes"]


def check_that_padding_repeats_the_last_sample(shard):
    assert all(repeated == last for last, repeated in shard.padding)


def check_that_padding_makes_shards_equal(shards, setting, size):
    if setting.pad_last_batch:
        batches = math.ceil(math.ceil(size / setting.shards) / setting.batch_size)
        assert {4 * shard.size + len(shard.padding) for shard in shards} == {4 * setting.batch_size * batches}


def check_that_what_is_kept_stays_within(cache_size, statistics):
    assert statistics["cache_bytes_used"] <= statistics["cache_bytes_peak"] <= cache_size
    assert statistics["cache_bytes_planned"] <= cache_size
    for part in statistics["batches"]:
        assert part["current_bytes"] >= 0
        assert part["next_bytes"] >= 0
        assert part["current_bytes"] + part["next_bytes"] <= cache_size


@given(setting=a_setting(), policy=st.sampled_from(POLICIES))
@settings(max_examples=25)
def test_the_order_depends_on_the_seed_alone(setting, policy):
    with setting.dataset() as paths:
        arguments = {
            "file_root": str(paths[0].parent.parent),
            "batch_size": 5,
            "policy": policy,
            "cache_size": int(setting.memory * memory_of(paths)),
        }
        once, again, slowly = (
            read(readers.liquid, 20, seed=setting.seed, **arguments, **ways)
            for ways in ({}, {"exec_dynamic": False}, {"read_threads": 1, "use_o_direct": False})
        )
        assert once == again == slowly


@pytest.mark.parametrize("policy", POLICIES)
def test_another_seed_and_another_epoch_give_another_order(tmp_path, policy):
    write_dataset(tmp_path, {"png": 20, "jpg": 10})
    arguments = {"file_root": str(tmp_path), "batch_size": 30, "cache_size": 60000, "policy": policy}
    orders = [
        tuple(sample.path for sample in batch)
        for seed in (1, 2)
        for batch in Reading(readers.liquid, seed=seed, **arguments).batches(3)
    ]
    assert len(set(orders)) == 6


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("pad_last_batch", [False, True])
@pytest.mark.parametrize("shards", [1, 2, 5])
def test_the_length_of_an_epoch_is_that_of_the_file_reader(tmp_path, shards, pad_last_batch, policy):
    write_dataset(tmp_path, {"png": 14, "jpg": 9})
    arguments = {
        "file_root": str(tmp_path),
        "num_shards": shards,
        "shard_id": shards - 1,
        "stick_to_shard": True,
        "pad_last_batch": pad_last_batch,
    }
    ours, theirs = Reading(readers.liquid, policy=policy, **arguments), Reading(file_reader, **arguments)
    assert ours.pipeline.reader_meta("reader") == theirs.pipeline.reader_meta("reader")


def test_a_reader_keeps_its_shard(tmp_path):
    write_dataset(tmp_path, {"png": 15, "jpg": 9})
    reading = Reading(readers.liquid, batch_size=12, file_root=str(tmp_path), num_shards=2, shard_id=1)
    assert reading.pipeline.reader_meta("reader")["stick_to_shard"]
    first, *later = ({sample.path for sample in batch} for batch in reading.batches(4))
    assert later == [first] * 3


# ---- Memory ----


@pytest.mark.parametrize("policy", ["liquid", "minio"])
def test_memory_is_used_as_far_as_it_goes(tmp_path, policy):
    paths = write_dataset(tmp_path, {"png": 60, "jpg": 40})
    ratios = []
    for part in (0, 0.2, 0.5, 0.9, 1):
        cache_size = int(part * memory_of(paths))
        reading = Reading(readers.liquid, batch_size=5, file_root=str(tmp_path), cache_size=cache_size, policy=policy)
        reading.batches(60)
        statistics = reading.statistics()
        ratios.append(statistics["hit_ratio"])
        assert statistics["cache_bytes_planned"] == cache_size
        assert max(0, cache_size - 5 * 4096) <= statistics["cache_bytes_peak"] <= cache_size
    assert ratios == [0, 0.2, 0.5, 0.9, 1]


def test_the_first_batch_does_not_wait_for_the_memory_to_fill(tmp_path):
    paths = write_dataset(tmp_path, {"png": 200})
    reading = Reading(
        readers.liquid, batch_size=2, file_root=str(tmp_path), cache_size=memory_of(paths), prefetch_queue_depth=1
    )
    reading.batch()
    statistics = reading.statistics()
    assert statistics["cache_bytes_used"] + statistics["other_bytes_used"] <= 20 * 4096


@pytest.mark.parametrize("held_batches", [3, 40])
def test_memory_that_the_consumer_holds_comes_on_top_and_is_given_back(tmp_path, held_batches):
    paths = write_dataset(tmp_path, {"png": 40, "jpg": 20}, size=9000)
    cache_size = memory_of(paths) // 2
    reading = Reading(
        readers.liquid, batch_size=1, file_root=str(tmp_path), cache_size=cache_size, prefetch_queue_depth=1
    )
    reading.batches(60)
    held = [reading.pipeline.run() for _ in range(held_batches)]
    statistics = reading.statistics()
    assert statistics["cache_bytes_peak"] <= cache_size
    assert statistics["cache_bytes_used"] + statistics["other_bytes_used"] >= held_batches * 4096
    while held:
        held.pop()
    reading.batches(60)
    ahead = 20 * 3 * 4096  # what is read ahead of the consumer and in use by the pipeline, at the most
    assert reading.statistics()["other_bytes_used"] <= ahead


def test_memory_that_is_used_no_more_is_counted_and_used_again(tmp_path):
    paths = write_dataset(tmp_path, {"png": 60}, size=9000)
    reading = Reading(readers.liquid, batch_size=1, file_root=str(tmp_path), cache_size=memory_of(paths) // 2)
    assert reading.statistics()["idle_bytes"] == 0
    held = [reading.pipeline.run() for _ in range(300)]  # half of which are not from memory, of two pages at least
    before = reading.statistics()
    while held:
        held.pop()
    after = reading.statistics()
    # Some of it may have been used at once, for what is read ahead: 64 images, half of them, of three pages at most.
    assert after["idle_bytes"] >= before["idle_bytes"] + 150 * 4096
    reading.batches(240)
    kinds = ("cache_bytes_used", "other_bytes_used", "idle_bytes")
    total = [sum(statistics[kind] for kind in kinds) for statistics in (after, reading.statistics())]
    assert total[1] <= 1.3 * total[0]


@pytest.mark.parametrize("reader", [readers.multi_format, readers.liquid])
def test_outputs_outlive_the_pipeline(tmp_path, reader):
    """Files are handed on without being copied, and batches of one sample even out of the pipeline."""
    paths = write_dataset(tmp_path, {"png": 10, "jpg": 5}, size=9000)
    cache = {"cache_size": memory_of(paths) // 2} if reader is readers.liquid else {}
    reading = Reading(reader, batch_size=1, file_root=str(tmp_path), **cache)
    files = [reading.pipeline.run()[0] for _ in range(45)]
    del reading
    gc.collect()
    for file in files:
        assert np.asarray(file[0]).tobytes() == (tmp_path / file[0].source_info()).read_bytes()


# ---- Files that go bad while they are read ----


@pytest.fixture
def dataset(tmp_path):
    """80 files."""
    return write_dataset(tmp_path / "dataset", {"png": 48, "jpg": 32})


@pytest.fixture
def substitute(tmp_path):
    path = tmp_path / "substitute.bmp"
    path.write_bytes(bmp(np.zeros((1, 1), np.uint8), 8))
    return path


def reading_of(dataset, memory=0.5, **arguments):
    """A reading of 16 batches an epoch."""
    root, cache_size = str(dataset[0].parent.parent), int(memory * memory_of(dataset))
    arguments = {"cache_size": cache_size, "prefetch_queue_depth": 1} | arguments
    return Reading(readers.liquid, batch_size=5, file_root=root, **arguments)


def rewrite(path, content):
    """Puts another file in the place of one that the reader may be reading, so that it finds either as a whole."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)


FAULTS = {
    "deleted": Path.unlink,
    "emptied": lambda path: rewrite(path, b""),
    "of no format": lambda path: rewrite(path, b"no image"),
    "of another format": lambda path: rewrite(path, HEADERS["bmp"] + b"image"),
    "cut off in the header": lambda path: rewrite(path, path.read_bytes()[:9]),
    "replaced by a folder": lambda path: (path.unlink(), path.mkdir()),
    "replaced by a link to nothing": lambda path: (path.unlink(), path.symlink_to("nowhere")),
}


# Batches that are delivered before files go bad.
batches_before = pytest.mark.parametrize(
    "batches_before",
    [
        pytest.param(0, id="before the first epoch"),
        pytest.param(5, id="within it"),
        pytest.param(16, id="after it"),
        pytest.param(22, id="within the second"),
    ],
)


class TestFilesThatGoBad:
    def damage(self, dataset, faults=FAULTS):
        """Makes every other file a bad one, of the `faults` in turn; returns the faults by path."""
        found = dict(zip(dataset[::2], itertools.cycle(faults), strict=False))
        for path, fault in found.items():
            FAULTS[fault](path)
        return found

    def replaced(self, expected, reading, batches):
        """Pairs of a sample as it was expected and of what was delivered in its place."""
        pairs = []
        for batch, delivered in zip(expected, reading.batches(batches), strict=True):
            pairs += [pair for pair in zip(batch, delivered, strict=True) if pair[0] != pair[1]]
        return pairs

    def check_that_all_faults_were_met(self, dataset, bad, pairs):
        root = dataset[0].parent.parent
        assert {bad[root / missing.path] for missing, _ in pairs} == set(FAULTS)

    @pytest.mark.parametrize(("fault", "batches_before"), [*zip(FAULTS, itertools.cycle([0, 5, 16, 22]), strict=False)])
    def test_raise_names_one(self, dataset, fault, batches_before):
        # All faults but one are found without looking at headers.
        reading = reading_of(dataset, check="headers" if fault == "cut off in the header" else "none")
        reading.batches(batches_before)
        bad = self.damage(dataset, [fault])
        with pytest.raises(RuntimeError) as error:
            reading.batches(32)
        assert any(str(path) in str(error.value) for path in bad)

    @batches_before
    def test_skip_delivers_good_samples_of_the_same_format(self, dataset, batches_before, capfd):
        expected = reading_of(dataset).batches(batches_before + 48)
        good = {sample for batch in expected for sample in batch}
        reading = reading_of(dataset, on_error="skip", check="headers")
        assert self.replaced(expected[:batches_before], reading, batches_before) == []
        bad = self.damage(dataset)
        pairs = self.replaced(expected[batches_before:], reading, 48)
        del reading  # it reads ahead, and what it reports meanwhile would overwrite what is captured
        gc.collect()
        reported = capfd.readouterr().err
        self.check_that_all_faults_were_met(dataset, bad, pairs)
        for missing, delivered in pairs:
            assert missing.path in reported
            assert delivered.format == missing.format
            assert delivered in good

    @batches_before
    def test_substitute_delivers_the_substitute_with_the_label(self, dataset, batches_before, substitute):
        expected = reading_of(dataset).batches(batches_before + 48)
        reading = reading_of(dataset, on_error="substitute", substitute=str(substitute), check="headers")
        assert self.replaced(expected[:batches_before], reading, batches_before) == []
        bad = self.damage(dataset)
        pairs = self.replaced(expected[batches_before:], reading, 48)
        self.check_that_all_faults_were_met(dataset, bad, pairs)
        for missing, delivered in pairs:
            assert delivered == Delivered(str(substitute), missing.label, (substitute.read_bytes(),))


def test_the_statistics_count_bad_samples(dataset, substitute):
    reading = reading_of(dataset, memory=0, on_error="substitute", substitute=str(substitute))
    for path in dataset[::2]:
        path.unlink()
    reading.batches(16)
    (epoch, *_) = reading.statistics()["epochs"]
    assert (epoch["samples"], epoch["bad_samples"]) == (80, 40)


def test_skip_fails_when_no_sample_of_the_format_is_left(dataset):
    reading = reading_of(dataset, on_error="skip")
    for path in dataset:
        if path.suffix == ".jpg":
            path.unlink()
    with pytest.raises(RuntimeError, match="The 31 other samples of its format that were tried in its place are bad"):
        reading.batches(16)


def test_a_pipeline_after_one_that_failed(dataset):
    reading = reading_of(dataset)
    (bad, *good) = dataset
    bad.unlink()
    with pytest.raises(RuntimeError, match="No such file"):
        reading.batches(16)
    assert len(reading_of(good).batches(16)) == 16


@pytest.mark.parametrize("policy", ["liquid", "minio"])
def test_hits_come_from_memory(dataset, policy):
    """Files whose content changes are delivered as they were if they are hits, and as they are now otherwise."""
    reading = reading_of(dataset, policy=policy)
    old = {sample.files[0] for batch in reading.batches(16) for sample in batch}
    for path in dataset:
        rewrite(path, HEADERS[path.suffix[1:]] + f"new {path.name}".encode())
    second = reading.batches(16)
    statistics = {part["batch"]: part for part in reading.statistics()["batches"]}
    for number, batch in enumerate(second[8:], start=16 + 8):  # those before may have been read ahead
        hits = sum(counts["hits"] for counts in statistics[number]["formats"].values())
        assert sum(sample.files[0] in old for sample in batch) == hits
    if policy == "minio":
        held = {sample for batch in reading.batches(16) for sample in batch if sample.files[0] in old}
        assert held == {sample for batch in reading.batches(16) for sample in batch if sample.files[0] in old}
        assert len(held) == round(reading.statistics()["hit_ratio"] * 80)


@pytest.mark.parametrize("policy", ["liquid", "minio"])
def test_a_dataset_that_fits_is_read_once(dataset, policy):
    reading = reading_of(dataset, memory=1, policy=policy)
    first = reading.batches(16)
    shutil.rmtree(dataset[0].parent.parent)
    for _ in range(3):
        assert Counter(itertools.chain(*reading.batches(16))) == Counter(itertools.chain(*first))


# ---- Pipelines ----


def test_pipelines_may_end_at_any_time(dataset):
    for batches in (0, 1, 2, 3, 5, 8, 13, 17):
        reading = reading_of(dataset)
        reading.pass_over(batches)
        del reading
        gc.collect()


def test_pipelines_side_by_side(dataset):
    alone = [reading_of(dataset, seed=seed).batches(40) for seed in range(3)]
    readings = [reading_of(dataset, seed=seed) for seed in range(3)]
    together = [[reading.batch() for reading in readings] for _ in range(40)]
    assert [list(batches) for batches in zip(*together, strict=True)] == alone


def test_pipelines_in_threads(dataset):
    alone = [reading_of(dataset, seed=seed).batches(40) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda seed: reading_of(dataset, seed=seed).batches(40), range(6))) == alone


def test_readers_in_one_pipeline(dataset):
    root = str(dataset[0].parent.parent)
    pipeline = Pipeline(batch_size=5, num_threads=2, device_id=None, seed=7)
    with pipeline:
        outputs = [*readers.liquid(name="one", file_root=root, cache_size="1MiB")]
        outputs += readers.multi_format(name="two", file_root=root)
        pipeline.set_outputs(*outputs)
    pipeline.build()
    for _ in range(32):
        pipeline.run()
    assert dali_l3.reader_stats(pipeline, "one")["hit_ratio"] == 1
    assert dali_l3.reader_stats(pipeline, "two")["hit_ratio"] == 0


# ---- Arguments ----


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"random_shuffle": False}, "readers.liquid always shuffles: without random_shuffle use readers.multi_format"),
        ({"policy": "lru"}, 'policy is "lru", but must be "liquid", "minio" or "none"'),
        ({"read_order": "sorted"}, 'read_order is "sorted", but must be "random" or "sequential"'),
        ({"read_order": "sequential", "policy": "minio"}, 'read_order="sequential" needs policy="liquid"'),
        ({"read_order": "sequential", "policy": "none"}, 'read_order="sequential" needs policy="liquid"'),
        ({"prefetch_queue_depth": -1}, "prefetch_queue_depth must not be negative"),
        ({"read_threads": 0}, "The number of reading threads is 0, but must be from 1 to 1024"),
        ({"read_threads": 10**9}, "The number of reading threads is 1000000000, but must be from 1 to 1024"),
        ({"on_error": "ignore"}, 'on_error is "ignore", but must be "raise", "skip" or "substitute"'),
        ({"on_error": "substitute"}, 'on_error="substitute" needs the argument substitute'),
        ({"substitute": "some.png"}, 'on_error="substitute" needs the argument substitute'),
        ({"skip_cached_images": True}, "skip_cached_images is not supported"),
        ({"num_shards": 81}, r"There are fewer samples \(80\) than shards \(81\)"),
        ({"num_shards": 2, "shard_id": 2}, "shard_id is 2, but must be at least 0 and below num_shards, which is 2"),
    ],
)
def test_arguments_that_make_no_sense(dataset, arguments, message):
    with pytest.raises((ValueError, RuntimeError), match=message):
        reading_of(dataset, **arguments)


@pytest.mark.parametrize("cache_size", [-1, "much", "-1"])
def test_cache_sizes_that_are_none(cache_size):
    with pytest.raises(ValueError, match="size"):
        readers.liquid(file_root="/", cache_size=cache_size)


def test_a_negative_cache_size_given_to_the_operator_itself(dataset):
    with pytest.raises(ValueError, match="cache_size is -1 bytes, but must not be negative"):
        Reading(fn.readers.liquid, file_root=str(dataset[0].parent.parent), cache_size=-1)


@pytest.mark.parametrize(
    ("arguments", "warning"),
    [
        ({"initial_fill": 10}, "readers.liquid shuffles the whole shard: initial_fill has no effect"),
        ({"shuffle_after_epoch_seed": 10}, "readers.liquid shuffles by seed: shuffle_after_epoch_seed has no effect"),
        ({"num_shards": 2}, "readers.liquid keeps its shard in all epochs, as with stick_to_shard=True"),
        ({"num_shards": 2, "stick_to_shard": True}, ""),
        ({"random_shuffle": True, "shuffle_after_epoch": True}, ""),
        ({"cache_size": 0}, "readers.liquid has no cache_size: it keeps no files in memory"),
        ({"cache_size": 0, "policy": "minio"}, "readers.liquid has no cache_size: it keeps no files in memory"),
        ({"cache_size": 0, "policy": "none"}, ""),
    ],
)
def test_arguments_that_are_warned_of(dataset, arguments, warning, capfd):
    reading_of(dataset, memory=0.2, **arguments)
    printed = capfd.readouterr().err
    assert warning in printed
    assert bool(warning) == bool(printed)


@pytest.mark.parametrize("policy", ["liquid", "minio"])
@pytest.mark.parametrize(("spare", "warnings"), [(0, 0), (1, 1)])
def test_a_cache_larger_than_the_shard_is_warned_of_once(tmp_path, policy, spare, warnings, capfd):
    paths = write_dataset(tmp_path, {"png": 20})
    needed = memory_of(paths)
    arguments = {"file_root": str(tmp_path), "cache_size": needed + spare, "policy": policy}
    reading = Reading(readers.liquid, batch_size=5, checkpointing=True, **arguments)
    reading.pass_over(9)
    Reading(readers.multi_format, batch_size=5, file_root=str(tmp_path)).pass_over(1)
    assert reading.statistics()["cache_bytes_planned"] == needed
    said = f"cache_size is {needed + 1} bytes, but the files of this shard take {needed}: the rest is of no use to it"
    assert len(re.findall(rf"^\[dali_l3/readers/reader\.cc:\d+\] {said}$", capfd.readouterr().err, re.M)) == warnings


@pytest.mark.parametrize("size", [2**20, np.int64(2**20), "1000000", "1MiB", "1.5 mb", "2M"])
def test_the_operator_itself_takes_sizes_as_people_write_them(tmp_path, size, capfd):
    write_dataset(tmp_path, {"png": 5})
    Reading(fn.readers.liquid, file_root=str(tmp_path), cache_size=size)
    assert f"cache_size is {parse_size(size)} bytes, but the files" in capfd.readouterr().err


@pytest.mark.parametrize("size", ["much", "50%", 0.5, True])
def test_what_is_no_size_for_the_operator_itself(dataset, size):
    with pytest.raises(ValueError, match=f'cache_size is "{size}", but must be a number of bytes, or one with a unit'):
        Reading(fn.readers.liquid, file_root=str(dataset[0].parent.parent), cache_size=size)


# ---- Statistics ----


class TestStatistics:
    def test_before_the_first_batch(self, dataset):
        statistics = reading_of(dataset).statistics()
        assert statistics["epochs"] == statistics["batches"] == []
        for kind in ("cache_bytes_used", "other_bytes_used", "idle_bytes"):
            assert statistics[kind] == 0

    def test_epochs_are_the_sums_of_their_batches(self, dataset):
        reading = reading_of(dataset)
        reading.batches(40)
        statistics = reading.statistics()
        for epoch in statistics["epochs"]:
            parts = [part for part in statistics["batches"] if part["epoch"] == epoch["epoch"]]
            for field in ("samples", "files_read", "bytes_read", "bad_samples"):
                assert epoch[field] == sum(part[field] for part in parts)
            assert epoch["wait_seconds"] == pytest.approx(sum(part["wait_seconds"] for part in parts))
            for field in ("batch", "current_bytes", "next_bytes"):
                assert epoch[field] == parts[-1][field]
            for name, counts in epoch["formats"].items():
                for kind, count in counts.items():
                    assert count == sum(part["formats"].get(name, {kind: 0})[kind] for part in parts)

    def test_the_latest_batches_are_remembered(self, dataset):
        reading = reading_of(dataset)
        reading.pass_over(4200)
        batches = [part["batch"] for part in reading.statistics()["batches"]]
        assert len(batches) == 4096
        assert batches == list(range(batches[-1] - 4095, batches[-1] + 1))

    def test_an_unknown_name(self, dataset):
        with pytest.raises(ValueError, match="the pipeline has no reader 'other'; it has 'reader'"):
            dali_l3.reader_stats(reading_of(dataset).pipeline, "other")

    def test_what_is_no_pipeline(self, dataset):
        with pytest.raises(TypeError, match="pipeline must be a pipeline, or a reader of dynamic mode .*, not list"):
            dali_l3.reader_stats([], "reader")
        with pytest.raises(TypeError, match=r"pipeline must be .*, not list"):
            dali_l3.reader_stats([])
        with pytest.raises(TypeError, match="name must be the name of a reader in the pipeline"):
            dali_l3.reader_stats(reading_of(dataset).pipeline)

    @pytest.mark.parametrize("lazy_init", [False, True])
    def test_a_pipeline_that_cannot_be_built(self, tmp_path, lazy_init):
        pipeline = Pipeline(batch_size=1, num_threads=1, device_id=None)
        with pipeline:
            pipeline.set_outputs(*readers.liquid(name="reader", file_root=str(tmp_path), lazy_init=lazy_init))
        with pytest.raises(RuntimeError, match=f"No files found in {tmp_path}"):
            dali_l3.reader_stats(pipeline, "reader")

    def test_a_reader_of_dali(self, dataset):
        reading = Reading(file_reader, file_root=str(dataset[0].parent.parent))
        with pytest.raises(ValueError, match="'reader' is not a reader of dali_l3"):
            reading.statistics()

    def test_a_pipeline_without_readers(self):
        pipeline = Pipeline(batch_size=1, num_threads=1, device_id=None)
        with pipeline:
            pipeline.set_outputs(fn.constant(idata=1))
        pipeline.build()
        with pytest.raises(ValueError, match="the pipeline has no reader 'reader'"):
            dali_l3.reader_stats(pipeline, "reader")

    def test_a_reader_that_was_asked_for_its_meta_data_is_gone(self, dataset):
        for _ in range(20):
            reading_of(dataset).pipeline.reader_meta("reader")
            gc.collect()
            assert reading_of(dataset).statistics()["epochs"] == []


def test_the_cache_can_be_a_part_of_memory(tmp_path, monkeypatch):
    paths = write_dataset(tmp_path, {"png": 20})
    monkeypatch.setattr(readers, "total_memory", lambda: 2 * memory_of(paths))
    reading = Reading(readers.liquid, batch_size=5, file_root=str(tmp_path), cache_size="25%", policy="minio")
    reading.pass_over(4)
    assert reading.statistics()["cache_bytes_planned"] == memory_of(paths) // 2


def test_a_cache_beyond_what_is_available_is_warned_of(tmp_path, monkeypatch):
    write_dataset(tmp_path, {"png": 4})
    monkeypatch.setattr(readers, "available_memory", lambda: 10**9)
    with pytest.warns(UserWarning, match=r"cache_size is 2\.0 GB, but 1\.0 GB of memory are available now"):
        Reading(readers.liquid, file_root=str(tmp_path), cache_size=2 * 10**9)
