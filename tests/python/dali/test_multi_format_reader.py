"""readers.multi_format against DALI's fn.readers.file, and the mixing of formats."""

import itertools
import math
import re
from collections import Counter

import numpy as np
import pytest
from nvidia.dali import fn

import dali_l3
from dali_l3.fn import readers
from reading import Reading, file_reader, format_counts, read, write_dataset
from versions import DALI, since

pytestmark = pytest.mark.usefixtures("plugin")


def multi_format(**arguments):
    return fn.readers.multi_format(**arguments)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """23 files of two formats in three class folders."""
    root = tmp_path_factory.mktemp("dataset")
    write_dataset(root, {"png": 14, "jpg": 9})
    return root


# ---- The file reader's order ----

ORDERS = {
    "listed": {},
    "random_shuffle": {"random_shuffle": True, "initial_fill": 5},
    "random_shuffle, large buffer": {"random_shuffle": True},
    "seeded": {"random_shuffle": True, "initial_fill": 5, "seed": 99},
    "shuffle_after_epoch": {"shuffle_after_epoch": True},
    "shuffle_after_epoch_seed": {"shuffle_after_epoch": True, "shuffle_after_epoch_seed": 3},
}


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("pad_last_batch", [False, True])
@pytest.mark.parametrize("stick_to_shard", [False, True])
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize(
    "order",
    [
        pytest.param(order, marks=since(2, 1, "readers.file's shuffle_after_epoch_seed") if "seed" in order else ())
        for order in ORDERS
    ],
)
def test_the_samples_are_those_of_the_file_reader(
    dataset, order, shards, stick_to_shard, pad_last_batch, checkpointing
):
    if stick_to_shard and "shuffle_after_epoch" in ORDERS[order]:
        pytest.skip("the two exclude each other")
    for shard, batch_size in itertools.product(range(shards), [3, 9]):  # 9: more than each of three shards has
        arguments = ORDERS[order] | {
            "file_root": str(dataset),
            "num_shards": shards,
            "shard_id": shard,
            "stick_to_shard": stick_to_shard,
            "pad_last_batch": pad_last_batch,
            "batch_size": batch_size,
            "checkpointing": checkpointing,
        }
        batches = math.ceil(3 * 23 / shards / batch_size) + 2
        found, expected = (read(reader, batches, **arguments) for reader in (multi_format, file_reader))
        assert found == expected, f"shard {shard}, batches of {batch_size}"


@pytest.mark.parametrize("shards", [1, 2, 3, 5])
@pytest.mark.parametrize("pad_last_batch", [False, True])
@pytest.mark.parametrize("lazy_init", [False, True])
def test_reader_meta_is_that_of_the_file_reader(dataset, shards, pad_last_batch, lazy_init):
    arguments = {
        "file_root": str(dataset),
        "num_shards": shards,
        "shard_id": shards - 1,
        "pad_last_batch": pad_last_batch,
        "lazy_init": lazy_init,
    }
    ours, theirs = (Reading(reader, **arguments).pipeline for reader in (multi_format, file_reader))
    assert ours.reader_meta("reader") == theirs.reader_meta("reader")
    assert ours.epoch_size("reader") == theirs.epoch_size("reader")


@pytest.mark.parametrize(
    ("arguments", "ignored"),
    [
        ({"shuffle_after_epoch_seed": 3}, "shuffle_after_epoch_seed"),
        ({"shuffle_after_epoch_seed": 3, "shuffle_after_epoch": True}, None),
        ({"random_shuffle": True, "initial_fill": 10}, None),
        ({"mix": "dataset", "shuffle_after_epoch_seed": 3, "shuffle_after_epoch": True}, "shuffle_after_epoch_seed"),
        ({"mix": "dataset", "random_shuffle": True, "initial_fill": 10}, "initial_fill"),
    ],
    ids=str,
)
def test_arguments_without_effect_are_warned_of(dataset, arguments, ignored, capfd):
    Reading(multi_format, file_root=str(dataset), **arguments)
    warned = capfd.readouterr().err
    assert re.findall(r"(\w+) has no effect", warned) == ([ignored] if ignored else [])
    if "mix" not in arguments and ("shuffle_after_epoch_seed" not in arguments or DALI >= (2, 1)):
        Reading(file_reader, file_root=str(dataset), **arguments)
        assert bool(capfd.readouterr().err) == bool(warned)


# ---- Mixing ----


@pytest.fixture(scope="module")
def four_formats(tmp_path_factory):
    return write_dataset(tmp_path_factory.mktemp("four formats"), {"png": 21, "jpg": 8, "bmp": 11, "l3": 5})


@pytest.mark.parametrize("shuffled", [{}, {"random_shuffle": True}, {"shuffle_after_epoch": True}], ids=str)
@pytest.mark.parametrize("pad_last_batch", [False, True])
@pytest.mark.parametrize("shards", [1, 2, 3])
def test_batches_hold_the_formats_in_the_proportions_of_the_shard(four_formats, shards, pad_last_batch, shuffled):
    paths, root = four_formats, four_formats[0].parent.parent
    seen = []
    for shard in range(shards):
        reading = Reading(
            multi_format,
            batch_size=7,
            file_root=str(root),
            mix="dataset",
            num_shards=shards,
            shard_id=shard,
            pad_last_batch=pad_last_batch,
            **shuffled,
        )
        size = len(paths) * (shard + 1) // shards - len(paths) * shard // shards
        first, *full = reading.batches(size // 7)
        epoch = [sample for batch in (first, *full) for sample in batch]
        epoch += reading.batch()[: size - len(epoch)]
        seen += epoch
        totals = format_counts(epoch)
        for batch in (first, *full):
            counts = format_counts(batch)
            for name, total in totals.items():
                assert math.floor(total * 7 / size) <= counts[name] <= math.ceil(total * 7 / size)
    assert sorted(sample.path for sample in seen) == [str(path.relative_to(root)) for path in paths]


@pytest.mark.parametrize("arguments", [{"mix": "dataset", "random_shuffle": True}, {"cache_size": 25 * 4096}], ids=str)
def test_profiles_of_l3_are_formats_of_their_own(tmp_path, arguments):
    (tmp_path / "class").mkdir()
    counts = {"fast": 35, "raw": 14, "paper": 7}
    for profile, count in counts.items():
        for i in range(count):
            path = tmp_path / "class" / f"{i}-{profile}.l3"
            path.write_bytes(dali_l3.encode(np.full((2, 3), i, np.uint8), profile=profile))
    reader = readers.multi_format if "mix" in arguments else readers.liquid
    reading = Reading(reader, batch_size=8, file_root=str(tmp_path), **arguments)
    for batch in reading.batches(14):
        delivered = Counter(sample.path.rpartition("-")[2] for sample in batch)
        assert delivered == {"fast.l3": 5, "raw.l3": 2, "paper.l3": 1}
    for part in reading.statistics()["batches"]:
        counted = {name: each["hits"] + each["misses"] for name, each in part["formats"].items()}
        assert counted == {"L3": 5, "L3 raw": 2, "L3 paper": 1}
