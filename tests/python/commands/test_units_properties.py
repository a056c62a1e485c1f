"""What holds for all samples, sizes, orders and parts."""

from __future__ import annotations

import itertools
import os
import tarfile
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from dali_l3.cli.parts import Part
from dali_l3.errors import TargetError
from dali_l3.jobs.outcomes import Outcome, Task
from dali_l3.jobs.planning import Plan
from dali_l3.units import shards
from dali_l3.units.samples import Member, Sample
from dali_l3.units.sequence import in_order
from dali_l3.units.shards import writing_shards
from dali_l3.units.storage import LocalStorage

checksum_of = shards._checksum_of

NAMES = some.text(some.characters(exclude_characters="\0/."), min_size=1, max_size=120)


@settings(max_examples=60)
@given(some.lists(some.lists(some.integers(0, 4000), min_size=1, max_size=3), max_size=12), some.integers(10240, 30000))
def test_shards_hold_all_samples_in_order_and_are_as_full_as_they_can_be(sizes, limit):
    samples = [
        [(f"{number}.{place}", bytes([number]) * size) for place, size in enumerate(members)]
        for number, members in enumerate(sizes)
    ]
    with tempfile.TemporaryDirectory() as folder:
        with writing_shards(LocalStorage(), folder, 7, limit) as writer:
            names = [writer.add(sample) for sample in samples]
        assert [*writer.sizes] == sorted(path.name for path in Path(folder).glob("*.tar")) == sorted({*names})
        found, archives = [], []
        for name, size in writer.sizes.items():
            with tarfile.open(f"{folder}/{name}") as archive:
                archives.append([(member.name, archive.extractfile(member).read()) for member in archive])
            assert Path(folder, name).stat().st_size == size
            found += archives[-1]
            assert size <= limit or len({name.partition(".")[0] for name, _ in archives[-1]}) == 1
        assert found == list(itertools.chain(*samples))
        for size, shard in itertools.pairwise(zip(writer.sizes.values(), archives, strict=True)):
            first = shard[1][0][0].partition(".")[0]
            further = sum(512 + -(-len(data) // 512) * 512 for _, data in samples[int(first)])
            assert size[0] + further > limit, "the next sample would have fitted"


@given(some.permutations(range(12)), some.integers(0, 12), some.integers(0, 500))
def test_results_come_in_order_whatever_memory_there_is(order, count, held):
    results = [Outcome("", str(place), "done", target_size=40 + place) for place in order]
    found = list(in_order(iter(results[:count]), lambda result: int(result.target), held))
    expected = itertools.takewhile(lambda place: place in order[:count], range(12))
    assert [int(result.target) for result in found] == list(expected)
    assert all(result in results for result in found)


@given(some.integers(1, 9), some.lists(some.text(min_size=1), unique=True))
def test_parts_share_the_work_out(count, names):
    work = Plan([Task(name) for name in names], [Outcome(f"{name}!", None, "skipped") for name in names], ["folder"])
    parts = [Part(index, count).of(work) for index in range(1, count + 1)]
    assert sorted(task.source for part in parts for task in part.tasks) == sorted(names)
    assert sorted(outcome.source for part in parts for outcome in part.outcomes) == sorted(f"{name}!" for name in names)
    numbers = [number for index in range(1, count + 1) for number in range(100) if Part(index, count).takes(number)]
    assert sorted(numbers) == list(range(100))


MEMBERS = some.builds(
    Member, NAMES, NAMES, some.integers(0, 1 << 50), NAMES, some.none() | some.integers(0, 1 << 50), some.booleans()
)


@given(some.builds(Sample, NAMES, some.lists(MEMBERS, max_size=3).map(tuple), NAMES))
def test_samples_are_the_same_after_they_were_written(sample):
    text = sample.to_json()
    assert text.isascii()
    assert "\n" not in text
    assert Sample.from_json(text) == sample


def test_no_room_for_results_that_wait(monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: open("/dev/full", "r+b", buffering=0))  # noqa: SIM115
    results = [Outcome("", str(place), "done", target_size=40) for place in (1, 0)]
    with pytest.raises(TargetError, match="No space left on device") as caught:
        list(in_order(iter(results), lambda result: int(result.target), 0))
    assert caught.value.filename == tempfile.gettempdir()


def test_a_shard_that_reads_back_differently_does_not_appear(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: os.pwrite(descriptor, b"?", 700))  # as a bad disk would
    with (
        pytest.raises(TargetError, match="reads back differently"),
        writing_shards(LocalStorage(), str(tmp_path), 0, 10240) as writer,
    ):
        writer.add([("a.l3", b"x")])
    assert [*tmp_path.iterdir()] == []


def test_the_checksum_is_that_of_all_bytes(tmp_path):
    path = tmp_path / "file"
    data = bytes(range(256)) * 10000
    for size in (0, 1, (1 << 20) - 1, 1 << 20, len(data)):
        path.write_bytes(data[:size])
        with path.open("rb") as file:
            assert checksum_of(file) == zlib.crc32(data[:size])
