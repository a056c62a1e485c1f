"""Checkpoints: a pipeline that goes on from one delivers what the first would have delivered."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dali_l3.fn import readers
from reading import Reading, file_reader, read, write_dataset

pytestmark = pytest.mark.usefixtures("plugin")

READERS = {
    "multi_format": (readers.multi_format, {}),
    "multi_format, random_shuffle": (readers.multi_format, {"random_shuffle": True, "initial_fill": 5}),
    "multi_format, shuffle_after_epoch": (readers.multi_format, {"shuffle_after_epoch": True}),
    "multi_format, mix": (readers.multi_format, {"mix": "dataset", "random_shuffle": True}),
    "multi_format, mix in order": (readers.multi_format, {"mix": "dataset"}),
    "liquid without memory": (readers.liquid, {}),
    "liquid": (readers.liquid, {"cache_size": 40000}),
    "liquid, all in memory": (readers.liquid, {"cache_size": "1MiB"}),
    "liquid, sequential": (readers.liquid, {"cache_size": 40000, "read_order": "sequential"}),
    "liquid, minio": (readers.liquid, {"cache_size": 40000, "policy": "minio"}),
    "liquid, none": (readers.liquid, {"policy": "none"}),
}

# In batches of 4, of 23 files: at the start, within the first epoch, around the borders of epochs, and much later.
MOMENTS = [0, 1, 5, 6, 12, 40]

every_reader = pytest.mark.parametrize("reader", READERS)
both_executors = pytest.mark.parametrize("exec_dynamic", [False, True])


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """23 files of two formats."""
    root = tmp_path_factory.mktemp("dataset")
    write_dataset(root, {"png": 14, "jpg": 9})
    return str(root)


@every_reader
@pytest.mark.parametrize(
    ("exec_dynamic", "shards", "pad_last_batch"),
    [(False, 1, False), (False, 2, True), (True, 1, True), (True, 2, False)],  # each with each
)
def test_a_checkpoint_resumes_with_the_same_samples_in_the_same_order(
    dataset, reader, exec_dynamic, shards, pad_last_batch
):
    function, arguments = READERS[reader]
    arguments = arguments | {
        "file_root": dataset,
        "num_shards": shards,
        "shard_id": shards - 1,
        "pad_last_batch": pad_last_batch,
        "exec_dynamic": exec_dynamic,
    }
    reading = Reading(function, checkpointing=True, **arguments)
    delivered, checkpoints = [], []
    for _ in range(MOMENTS[-1] + 1):
        checkpoints.append(reading.pipeline.checkpoint())
        delivered.append(reading.batch())
    delivered += reading.batches(14)  # more than two epochs
    for moment in MOMENTS:
        resumed = Reading(function, checkpoint=checkpoints[moment], **arguments)
        assert resumed.batches(14) == delivered[moment : moment + 14]


@every_reader
def test_checkpoints_of_a_resumed_pipeline(dataset, reader):
    function, arguments = READERS[reader]
    expected = Reading(function, checkpointing=True, file_root=dataset, **arguments).batches(40)
    checkpoint, delivered = None, []
    for count in (3, 4, 9, 1, 0, 23):
        reading = Reading(function, checkpoint=checkpoint, checkpointing=True, file_root=dataset, **arguments)
        delivered += reading.batches(count)
        checkpoint = reading.pipeline.checkpoint()
    assert delivered == expected


@every_reader
def test_a_checkpoint_moves_from_one_executor_to_the_other(dataset, reader):
    function, arguments = READERS[reader]
    reading = Reading(function, checkpointing=True, exec_dynamic=False, file_root=dataset, **arguments)
    reading.batches(9)
    resumed = Reading(
        function, checkpoint=reading.pipeline.checkpoint(), exec_dynamic=True, file_root=dataset, **arguments
    )
    assert resumed.batches(14) == reading.batches(14)


@every_reader
@pytest.mark.parametrize(("exec_dynamic", "lazy_init"), [(False, True), (True, False)])
def test_a_reader_without_a_seed_resumes_in_the_order_that_it_had(dataset, reader, exec_dynamic, lazy_init):
    function, arguments = READERS[reader]
    arguments = arguments | {
        "file_root": dataset,
        "pipeline_seed": None,
        "exec_dynamic": exec_dynamic,
        "lazy_init": lazy_init,
    }
    first, another = (Reading(function, checkpointing=True, **arguments) for _ in range(2))
    seeded = not reader.startswith("multi_format") or arguments.get("random_shuffle", False)
    assert (first.batches(9) != another.batches(9)) == seeded
    resumed = Reading(function, checkpoint=first.pipeline.checkpoint(), **arguments)
    assert resumed.batches(14) == first.batches(14)
    again = Reading(function, checkpoint=resumed.pipeline.checkpoint(), **arguments)
    assert again.batches(14) == first.batches(14)
    for figure in ("hit_ratio", "cache_bytes_planned"):
        assert again.statistics()[figure] == first.statistics()[figure]


@pytest.mark.parametrize("function", [file_reader, readers.multi_format, readers.liquid])
def test_the_seed_of_a_checkpoint_takes_the_place_of_another(dataset, function):
    arguments = {"file_root": dataset, "random_shuffle": True, "initial_fill": 5}
    first = Reading(function, checkpointing=True, seed=1, **arguments)
    first.batches(9)
    resumed = Reading(function, checkpoint=first.pipeline.checkpoint(), seed=2, **arguments)
    assert resumed.batches(14) == first.batches(14)


@pytest.mark.parametrize("reader", [name for name in READERS if "shuffle_after_epoch" not in name])
def test_checkpointing_does_not_change_the_order(dataset, reader):
    """As with the file reader, except for its shuffle_after_epoch, which test_multi_format_reader.py has."""
    function, arguments = READERS[reader]
    with_checkpoints, without = (
        read(function, 20, checkpointing=checkpointing, file_root=dataset, **arguments)
        for checkpointing in (True, False)
    )
    assert with_checkpoints == without


@given(
    batches=st.integers(0, 60),
    batch_size=st.integers(1, 9),
    shards=st.integers(1, 3),
    pad_last_batch=st.booleans(),
    cache_size=st.sampled_from([0, 9000, 40000, 80000, 100000]),
    policy=st.sampled_from(["liquid", "minio"]),
    seed=st.integers(0, 2**62),
)
@settings(max_examples=40)
def test_liquid_resumes_anywhere(dataset, batches, shards, **arguments):
    arguments |= {"file_root": dataset, "num_shards": shards, "shard_id": shards - 1, "stick_to_shard": True}
    reading = Reading(readers.liquid, checkpointing=True, **arguments)
    reading.pass_over(batches)
    resumed = Reading(readers.liquid, checkpoint=reading.pipeline.checkpoint(), **arguments)
    assert resumed.batches(30) == reading.batches(30)


@pytest.mark.parametrize("policy", ["liquid", "minio"])
def test_what_was_in_memory_is_read_again_when_its_turn_comes_and_kept_from_then_on(dataset, policy):
    arguments = {"file_root": dataset, "cache_size": 40000, "policy": policy, "batch_size": 23}
    reading = Reading(readers.liquid, checkpointing=True, **arguments)
    reading.batches(3)
    resumed = Reading(readers.liquid, checkpoint=reading.pipeline.checkpoint(), **arguments)
    reading.batches(3)
    resumed.batches(3)
    hits = {
        name: [sum(counts["hits"] for counts in epoch["formats"].values()) for epoch in statistics["epochs"]]
        for name, statistics in (("first", reading.statistics()), ("resumed", resumed.statistics()))
    }
    held = hits["first"][1]
    assert held > 0
    assert hits["first"][:6] == [0] + [held] * 5
    assert hits["resumed"][:3] == [0] + [held] * 2
    assert [epoch["epoch"] for epoch in resumed.statistics()["epochs"]][:3] == [3, 4, 5]


@both_executors
def test_checkpoints_are_refused_by_readers_of_the_other_kind(dataset, exec_dynamic):
    theirs = Reading(file_reader, checkpointing=True, exec_dynamic=exec_dynamic, file_root=dataset)
    with pytest.raises(ValueError, match="This is not the checkpoint of a reader of dali_l3"):
        Reading(
            readers.multi_format,
            checkpoint=theirs.pipeline.checkpoint(),
            exec_dynamic=exec_dynamic,
            file_root=dataset,
        )


def state_of(seed: int, batch: int) -> bytes:
    """A reader's part of a checkpoint: its seed, the number of the next batch, and their checksum."""
    numbers = f"{seed} {batch}".encode()
    return numbers + f" {zlib.crc32(numbers):08x}".encode()


@pytest.mark.parametrize(
    "state",
    [b"", b" ", b"7", b"7 ", b" 2", b"7 2", b"7 2 2", state_of(7, -1), state_of(2**63, 2), state_of(7, 2**63)]
    + [state_of(7, 2).replace(b"2", b"3", 1), state_of(7, 2)[:-1], state_of(7, 2) + b" ", b" " + state_of(7, 2)],
)
def test_a_damaged_checkpoint_is_refused(dataset, state):
    reading = Reading(readers.multi_format, checkpointing=True, file_root=dataset, seed=7)
    reading.batches(2)
    checkpoint = reading.pipeline.checkpoint()
    name, good = b"\n\x06reader\x12", state_of(7, 2)  # followed by the state and its length
    field = name + bytes([len(good)]) + good
    assert checkpoint.count(field) == 1
    size = checkpoint[checkpoint.index(field) - 1]
    damaged = checkpoint.replace(
        bytes([size]) + field, bytes([size - len(good) + len(state)]) + name + bytes([len(state)]) + state
    )
    with pytest.raises(ValueError, match="This is not the checkpoint of a reader of dali_l3"):
        Reading(readers.multi_format, checkpoint=damaged, file_root=dataset)


def test_resuming_after_many_epochs(dataset):
    """A checkpoint holds nothing but numbers: Liquid's epochs, each drawn from the one before, are planned anew."""
    arguments = {"file_root": dataset, "cache_size": 40000, "batch_size": 23}
    reading = Reading(readers.liquid, checkpointing=True, **arguments)
    reading.pass_over(2000)
    resumed = Reading(readers.liquid, checkpoint=reading.pipeline.checkpoint(), **arguments)
    assert resumed.batches(3) == reading.batches(3)
