"""Checkpoints: a pipeline that goes on from one delivers what the first would have delivered."""

from __future__ import annotations

import re
import textwrap
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nvidia.dali import backend, pipeline_def

import dali_l3
from dali_l3.fn import readers
from reading import Reading, file_reader, read, write_dataset
from versions import DALI

pytestmark = pytest.mark.usefixtures("plugin")

UNWEIGHTED = {
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
WEIGHTED = {
    "multi_format, weighted": (readers.multi_format, {"weights": range(23), "epoch_size": 17, "random_shuffle": True}),
    "liquid, balanced": (readers.liquid, {"class_proportions": "balanced", "cache_size": 40000}),
}
READERS = UNWEIGHTED | WEIGHTED

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
    with pytest.raises(
        ValueError, match="This is not the checkpoint of a reader of this version of dali_l3, or it is damaged"
    ):
        Reading(
            readers.multi_format,
            checkpoint=theirs.pipeline.checkpoint(),
            exec_dynamic=exec_dynamic,
            file_root=dataset,
        )


def varint(number: int) -> bytes:
    """As protocol buffers write it."""
    low, high = number & 127, number >> 7
    return bytes([low | 128]) + varint(high) if high else bytes([low])


def state_of(checkpoint: bytes) -> bytes:
    """The reader's part."""
    start = checkpoint.index(b"dali_l3-reader=")
    return checkpoint[start : checkpoint.index(b" crc32=") + len(" crc32=01234567")]


def with_state(checkpoint: bytes, state: bytes) -> bytes:
    def message(state):
        content = b"\n\x06reader\x12" + varint(len(state)) + state
        return varint(len(content)) + content

    old = message(state_of(checkpoint))
    assert checkpoint.count(old) == 1
    return checkpoint.replace(old, message(state))


def with_checksum(words: bytes) -> bytes:
    return words + b" crc32=%08x" % zlib.crc32(words)


WORDS = b"dali_l3-reader=4 seed=7 shard_id=0 files=23"


@pytest.mark.parametrize(
    "change",
    [
        lambda state: b"",
        lambda state: b" ",
        lambda state: b"7 2 83365f25",  # of an earlier version
        lambda state: state[:-1],
        lambda state: state[1:],
        lambda state: state + b" ",
        lambda state: state + state,
        lambda state: state.replace(b"seed=7", b"seed=8"),
        lambda state: with_checksum(state),
        lambda state: with_checksum(WORDS),
        lambda state: with_checksum(WORDS + b" stage=-1"),
        lambda state: with_checksum(WORDS + b" stage=9223372036854775808"),
        lambda state: with_checksum(WORDS.replace(b"7", b"9223372036854775808") + b" stage=2"),
        lambda state: with_checksum(WORDS.replace(b"reader=4", b"reader=5") + b" stage=2"),
    ],
)
def test_a_damaged_checkpoint_is_refused(dataset, change):
    reading = Reading(readers.multi_format, checkpointing=True, file_root=dataset, seed=7)
    reading.batches(2)
    checkpoint = reading.pipeline.checkpoint()
    damaged = with_state(checkpoint, change(state_of(checkpoint)))
    with pytest.raises(ValueError, match="This is not the checkpoint of a reader of this version of dali_l3"):
        Reading(readers.multi_format, checkpoint=damaged, file_root=dataset)


def test_the_text_of_a_checkpoint(dataset):
    """What it says of the dataset, worked out in Python."""
    reading = Reading(readers.liquid, checkpointing=True, file_root=dataset, seed=7, cache_size=40000)
    reading.batches(2)
    paths = sorted(Path(dataset).glob("*/*"))
    names = b"".join(str(path.relative_to(dataset)).encode() + b"\0" for path in paths)
    labels = np.array([int(path.parent.name[-1]) for path in paths], "<i4")
    formats = bytes({".png": 2, ".jpg": 3}[path.suffix] for path in paths)
    sizes = np.full(len(paths), 4096, "<u8")
    sums = [f"{zlib.crc32(data):08x}" for data in (names, labels.tobytes(), formats, sizes.tobytes())]
    words = (
        "dali_l3-reader=4 seed=7 shard_id=0 files=23 names={} labels={} formats={} sizes={} stage=2 reader=liquid "
        "policy=liquid read_order=random cache_size=40000 batch_size=4 num_shards=1 pad_last_batch=False "
        "weights=None class_proportions=None epoch_size=None"
    ).format(*sums)
    assert state_of(reading.pipeline.checkpoint()) == with_checksum(words.encode())


def test_resuming_after_many_epochs(dataset):
    """A checkpoint holds nothing but numbers: Liquid's epochs, each drawn from the one before, are planned anew."""
    arguments = {"file_root": dataset, "cache_size": 40000, "batch_size": 23}
    reading = Reading(readers.liquid, checkpointing=True, **arguments)
    reading.pass_over(2000)
    resumed = Reading(readers.liquid, checkpoint=reading.pipeline.checkpoint(), **arguments)
    assert resumed.batches(3) == reading.batches(3)


def test_ctrl_c_ends_the_planning_of_epochs(dataset, tmp_path, run_python):
    """A checkpoint made by hand tells of so many that it would take minutes."""
    arguments = {"file_root": dataset, "cache_size": 40000, "seed": 7}
    reading = Reading(readers.liquid, checkpointing=True, **arguments)
    checkpoint = reading.pipeline.checkpoint()
    words = state_of(checkpoint).split(b" crc32=")[0].replace(b" stage=0", b" stage=%d" % (23 * 10**7 // 4))
    (tmp_path / "checkpoint").write_bytes(with_state(checkpoint, with_checksum(words)))
    program = f"""
        import os, signal, subprocess, time
        import dali_l3
        from nvidia.dali import Pipeline

        with open("checkpoint", "rb") as file:
            resumed = {{"enable_checkpointing": True, "checkpoint": file.read()}}
        pipeline = Pipeline(batch_size=4, num_threads=1, device_id=None, **resumed)
        with pipeline:
            pipeline.set_outputs(*dali_l3.fn.readers.liquid(**{arguments!r}, name="reader"))
        noticed = []  # by Python, which goes on: the planning may not have begun
        signal.signal(signal.SIGINT, lambda *_: noticed.append(True))
        sender = subprocess.Popen(["sh", "-c", f"sleep 1; while kill -INT {{os.getpid()}}; do sleep 0.2; done"])
        try:
            pipeline.build()
        except RuntimeError as error:
            print(error)
        finally:
            sender.kill()
        while not noticed:
            time.sleep(0.01)
    """
    assert "The planning of epochs was interrupted" in run_python(textwrap.dedent(program))


# ---- Other arguments, other files -----------------------------------------------------------------------------------

BITS = "" if DALI >= (2, 2) else "/32bit"  # of the seeds of epochs

SAME = ""  # nothing: the next batches are those that a reader with the new arguments delivers after as many


@dataclass(frozen=True)
class Change:
    """Another value of an argument, and what the error says of it."""

    value: object
    named: str = SAME
    beside: dict = field(default_factory=dict)  # arguments that are needed before and after
    in_liquid: str | None = None  # what the error of Liquid says, if not the same
    by: str | None = None  # the argument that gives it in dali_l3.fn, if it has another name

    def error(self, function) -> str:
        return self.named if self.in_liquid is None or function is readers.multi_format else self.in_liquid


def differs(name: str, before: object, after: object) -> str:
    return f"{name}: {before} in the checkpoint, {after} here"


def files_differ(what: str) -> str:
    return f"{what} of the files: not those in the checkpoint"


def changes(root: str) -> dict[str, Change]:
    """For each argument one that may have an effect."""
    files = [str(path.relative_to(root)) for path in sorted(Path(root).glob("*/*"))]
    listed, two_shards = {"files": files}, {"num_shards": 2, "stick_to_shard": False}
    shuffled, afterwards = {"random_shuffle": True, "initial_fill": 5}, {"shuffle_after_epoch": True}
    return {
        "bytes_per_sample_hint": Change(1000),
        "cache_size": Change(80000, differs("cache_size", 40000, 80000)),
        "case_sensitive_filter": Change(True, differs("files", 23, 14), {"file_filters": ["*.png", "*.JPG"]}),
        "check": Change("headers"),
        "class_balanced": Change("balanced", differs("class_proportions", None, "balanced"), by="class_proportions"),
        "class_proportions": Change([1, 2, 3], differs("class_proportions", None, "[1,2,3]")),
        "companion_files": Change(files, SAME, listed | {"companion_files": files[::-1]}),
        "companions": Change(["../large"], SAME, {"companions": ["{dir}/{name}"]}, files_differ("sizes")),
        "dir_filters": Change(["class0"], differs("files", 23, 8)),
        "dont_use_mmap": Change(True),
        "epoch_size": Change(17, differs("epoch_size", None, 17)),
        "equal_sizes": Change(True, SAME, {"companions": ["{dir}/{name}"]}),
        "file_filters": Change(["*.png"], differs("files", 23, 14)),
        "file_list": Change(f"{root}/../backwards.txt", files_differ("names")),
        "file_root": Change(f"{root}/../moved"),
        "files": Change(files[::-1], files_differ("names"), listed),
        "initial_fill": Change(6, differs("initial_fill", 5, 6), shuffled, SAME),
        "label_columns": Change(23, files_differ("labels"), listed | {"label_columns": 1, "label_values": [0.5] * 23}),
        "label_values": Change(
            [0.5] * 22 + [1], files_differ("labels"), listed | {"label_columns": 1, "label_values": [0.5] * 23}
        ),
        "labels": Change(list(range(23)), files_differ("labels"), listed | {"labels": [0] * 23}),
        "lazy_init": Change(True),
        "missing_companions": Change("empty", SAME, {"companions": ["{dir}/{name}"]}),
        "mix": Change("dataset", differs("mix", None, "dataset")),
        "num_shards": Change(3, differs("num_shards", 2, 3), two_shards),
        "on_error": Change("skip"),
        "on_mismatch": Change("redistribute"),
        "pad_last_batch": Change(True, differs("pad_last_batch", False, True)),
        "policy": Change("none", differs("policy", "liquid", "none")),
        "prefetch_queue_depth": Change(5),
        "preserve": Change(True),
        "random_shuffle": Change(True, differs("random_shuffle", False, True), {}, SAME),
        "read_ahead": Change(True),
        "read_order": Change("sequential", differs("read_order", "random", "sequential")),
        "read_threads": Change(2),
        "seed": Change(99),  # the checkpoint's is taken
        "shard_id": Change(1, SAME, two_shards),  # any shard may go on from the checkpoint
        "shuffle_after_epoch": Change(True, differs("shuffle_after_epoch", False, True), {}, SAME),
        "shuffle_after_epoch_seed": Change(
            3, differs("shuffle_after_epoch_seed", f"524287{BITS}", f"3{BITS}"), afterwards, SAME
        ),
        "skip_cached_images": Change(False),  # True is refused
        "stick_to_shard": Change(True, differs("stick_to_shard", False, True), two_shards, SAME),
        "strict": Change(True),
        "subset_files": Change(files[:9], differs("files", 23, 9), by="subset"),
        "subset_indices": Change([4, 2], differs("files", 23, 2), by="subset"),
        "subset_range": Change((0.0, 0.5), differs("files", 23, 12), by="subset"),
        "subset_seed": Change(5, files_differ("names"), {"subset": 0.5}),
        "substitute": Change(
            f"{root}/{files[0]}", SAME, {"on_error": "substitute", "substitute": f"{root}/{files[1]}"}
        ),
        "tensor_init_bytes": Change(1000),
        "use_o_direct": Change(True),
        "weights": Change([1.0] * 22 + [2.5], differs("weights", None, f"[{'1,' * 22}2.5]")),
    }


# They decide which samples there are, so a checkpoint knows them by names and labels: see test_tar_shards.py and
# test_catalogues.py.
OF_OTHER_SOURCES = {
    "case_sensitive_extensions",
    "catalogue",
    "ext",
    "index_paths",
    "label_ext",
    "label_field",
    "missing_component_behavior",
    "paths",
}


@pytest.fixture(scope="module")
def moved(dataset):
    """Beside the dataset: itself under another path, a list of its files from the last to the first, a large file."""
    root = Path(dataset)
    (root.parent / "moved").symlink_to(root)
    files = [str(path.relative_to(root)) for path in sorted(root.glob("*/*"))]
    (root.parent / "backwards.txt").write_text("".join(f"{file} 0\n" for file in files[::-1]))
    (root.parent / "large").write_bytes(bytes(5000))


@pytest.mark.parametrize("function", [readers.multi_format, readers.liquid])
def test_of_every_argument_it_is_known_whether_the_order_follows_from_it(dataset, moved, function):
    """An argument that is added is missing here until somebody says so."""
    schema = backend.GetSchema({"multi_format": "readers__MultiFormat", "liquid": "readers__Liquid"}[function.__name__])
    for name in set(schema.GetArgumentNames()) - OF_OTHER_SOURCES:
        change = changes(dataset)[name]
        before = {"file_root": dataset} | ({"cache_size": 40000} if function is readers.liquid else {}) | change.beside
        after = before | {change.by or name: change.value}
        if name == "label_columns":
            after["label_values"] = [0.5] * 23 * change.value
        reading = Reading(function, checkpointing=True, **before)
        reading.pass_over(9)
        checkpoint = reading.pipeline.checkpoint()
        if change.error(function) == SAME:
            resumed = Reading(function, checkpoint=checkpoint, **after)
            alike = Reading(function, checkpointing=True, **after | ({"seed": None} if name == "seed" else {}))
            alike.pass_over(9)
            assert resumed.batches(14) == alike.batches(14), name
        else:
            with pytest.raises(ValueError, match=re.escape(change.error(function))):
                Reading(function, checkpoint=checkpoint, **after)
            Reading(function, checkpoint=checkpoint, **after | {"on_mismatch": "ignore"}).batches(14)


@pytest.mark.parametrize("function", [readers.multi_format, readers.liquid])
def test_what_differs_of_long_lists(dataset, function):
    files = [str(path) for path in sorted(Path(dataset).glob("*/*"))] * 2

    def read(weights, **arguments):
        return Reading(function, files=files, weights=weights, **arguments)

    weights = [1.0] * 46
    checkpoint = read(weights, checkpointing=True).pipeline.checkpoint()
    read(weights, checkpoint=checkpoint)
    summed = r"46_numbers_of_checksum_[0-9a-f]{8}"
    with pytest.raises(ValueError, match=f"weights: {summed} in the checkpoint, {summed} here"):
        read([1.0] * 45 + [2.0], checkpoint=checkpoint)
    with pytest.raises(ValueError, match=f"weights: {summed} in the checkpoint, None here"):
        read(None, checkpoint=checkpoint)


@pytest.mark.parametrize("function", [readers.multi_format, readers.liquid])
@pytest.mark.parametrize("proportions", [[1, 1, 1], [0.1, 0.1, 0.1]])
def test_equal_proportions_are_balanced_classes(dataset, function, proportions):
    def read(value, **arguments):
        return Reading(function, file_root=dataset, class_proportions=value, random_shuffle=True, **arguments)

    reading = read(proportions, checkpointing=True)
    reading.pass_over(9)
    checkpoint = reading.pipeline.checkpoint()
    assert read("balanced", checkpoint=checkpoint).batches(14) == reading.batches(14)
    with pytest.raises(ValueError, match=re.escape(differs("class_proportions", "balanced", "[1,1,2]"))):
        read([1, 1, 2], checkpoint=checkpoint)


def test_more_companions_are_more_outputs(dataset):
    """Which DALI refuses, as docs/readers.md says."""

    def read(count, **arguments):
        companions = ["{dir}/{name}"] * count or None
        return Reading(readers.multi_format, file_root=dataset, companions=companions, **arguments)

    for before, after, message in ((0, 1, "There's no checkpoint for operator"), (1, 0, "The executor doesn't")):
        checkpoint = read(before, checkpointing=True).pipeline.checkpoint()
        with pytest.raises(RuntimeError, match=message):
            read(after, checkpoint=checkpoint)


def test_the_batch_size_and_the_reader(dataset):
    reading = Reading(readers.multi_format, checkpointing=True, file_root=dataset)
    checkpoint = reading.pipeline.checkpoint()
    with pytest.raises(ValueError, match=differs("batch_size", 4, 5)):
        Reading(readers.multi_format, checkpoint=checkpoint, batch_size=5, file_root=dataset)
    with pytest.raises(ValueError, match=differs("reader", "multi_format", "liquid")):
        Reading(readers.liquid, checkpoint=checkpoint, file_root=dataset)


@both_executors
def test_ignoring_takes_the_number_of_the_batch(dataset, exec_dynamic):
    """As a reader does that knows nothing of other batch sizes."""
    arguments = {"file_root": dataset, "exec_dynamic": exec_dynamic}
    reading = Reading(readers.liquid, checkpointing=True, **arguments)
    reading.pass_over(9)
    other = Reading(readers.liquid, batch_size=3, **arguments)
    other.pass_over(9)
    resumed = Reading(
        readers.liquid, batch_size=3, checkpoint=reading.pipeline.checkpoint(), on_mismatch="ignore", **arguments
    )
    assert resumed.batches(9) == other.batches(9)


# ---- The rest of an epoch for other shards --------------------------------------------------------------------------


def in_epochs(reading: Reading, count: int) -> list[tuple[int, str]]:
    """The epoch and the path of each sample in the next batches, without padding."""
    delivered = reading.batches(count)
    parts = reading.statistics()["batches"]
    samples = []
    for number, batch in enumerate(delivered, parts[0]["batch"] if parts else 0):
        position = 0
        for part in (part for part in parts if part["batch"] == number):
            samples += [(part["epoch"], sample.path) for sample in batch[position : position + part["samples"]]]
            position += part["samples"]
    return samples


worlds = st.fixed_dictionaries(
    {
        "num_shards": st.integers(1, 4),
        "batch_size": st.integers(1, 9),
        "pad_last_batch": st.booleans(),
        "stick_to_shard": st.booleans(),
    }
)


@given(
    reader=st.sampled_from(sorted(UNWEIGHTED)),
    history=st.lists(st.tuples(worlds, st.integers(0, 9)), min_size=1, max_size=2),
    last=worlds,
    seed=st.integers(0, 2**62),
)
@settings(max_examples=40)
def test_every_epoch_is_delivered_exactly_once_whatever_worlds_share_it(dataset, reader, history, last, seed):
    function, arguments = READERS[reader]
    arguments = arguments | {"file_root": dataset, "seed": seed, "on_mismatch": "redistribute"}
    checkpoint, delivered, reached = None, Counter(), []
    for world, batches in [*history, (last, 30)]:
        if "shuffle_after_epoch" in arguments:
            world = world | {"stick_to_shard": False}  # which it excludes
        shards = [
            Reading(function, checkpointing=True, checkpoint=checkpoint, shard_id=shard, **world, **arguments)
            for shard in range(world["num_shards"])
        ]
        of_shards = [in_epochs(shard, batches) for shard in shards]
        for samples in of_shards:
            delivered.update(samples)
        checkpoint = shards[0].pipeline.checkpoint()
        reached = [max((epoch for epoch, _ in samples), default=0) for samples in of_shards]
    complete = min(reached)
    assert complete >= 1
    paths = {path for _, path in delivered}
    assert len(paths) == 23
    for epoch in range(complete):
        assert {path: delivered[epoch, path] for path in paths} == dict.fromkeys(paths, 1)


@pytest.mark.parametrize("reader", WEIGHTED)
def test_epochs_of_weights_are_not_redistributed(dataset, reader):
    function, arguments = WEIGHTED[reader]
    checkpoint = Reading(function, checkpointing=True, file_root=dataset, **arguments).pipeline.checkpoint()
    arguments = arguments | {"file_root": dataset, "batch_size": 5, "checkpoint": checkpoint}
    with pytest.raises(ValueError, match=differs("batch_size", 4, 5) + "\n.*epochs of weights are not shared out anew"):
        Reading(function, on_mismatch="redistribute", **arguments)


def test_the_rest_comes_from_disk_and_then_the_hit_ratio_is_back(dataset):
    arguments = {"file_root": dataset, "cache_size": 40000, "pad_last_batch": True, "on_mismatch": "redistribute"}
    reading = Reading(readers.liquid, checkpointing=True, batch_size=4, **arguments)
    reading.pass_over(6 + 2)
    checkpoint = reading.pipeline.checkpoint()
    other = Reading(readers.liquid, checkpointing=True, checkpoint=checkpoint, batch_size=5, **arguments)
    assert reading.statistics()["rest_batches"] == 0
    assert other.statistics()["rest_batches"] == 3  # of the 15 samples that are left
    other.pass_over(1)
    again = Reading(readers.liquid, checkpoint=other.pipeline.checkpoint(), batch_size=5, **arguments)
    assert again.statistics()["rest_batches"] == 2
    other.pass_over(2 + 4 * 5)
    epochs = other.statistics()["epochs"][:5]
    hits = [sum(counts["hits"] for counts in epoch["formats"].values()) for epoch in epochs]
    held = round(23 * other.statistics()["hit_ratio"])
    assert [(epoch["epoch"], epoch["samples"]) for epoch in epochs[:4]] == [(1, 15), (2, 23), (3, 23), (4, 23)]
    assert hits[0] == 0
    assert 0 <= hits[1] < held
    assert hits[2:4] == [held, held]


def test_redistribution_needs_the_checkpoint_of_shard_0_and_its_seed(dataset):
    arguments = {"file_root": dataset, "on_mismatch": "redistribute", "num_shards": 2}
    first, second = (
        Reading(readers.liquid, checkpointing=True, shard_id=shard, **arguments).pipeline.checkpoint()
        for shard in range(2)
    )
    with pytest.raises(ValueError, match="This is the checkpoint of shard 1. Use that of shard 0 for all shards"):
        Reading(readers.liquid, checkpoint=second, **arguments | {"num_shards": 3})
    with pytest.raises(ValueError, match="To share out the rest of an epoch, all shards need one seed"):
        Reading(readers.liquid, checkpoint=first, pipeline_seed=8, **arguments | {"num_shards": 3})
    with pytest.raises(ValueError, match="To go on from the checkpoint of another shard, all shards need one seed"):
        Reading(readers.liquid, checkpoint=first, pipeline_seed=8, shard_id=1, **arguments)


@pytest.mark.parametrize("policy", ["FILL", "PARTIAL", "DROP"])
def test_pytorch_iterators_begin_behind_the_rest(dataset, policy):
    pytest.importorskip("torch")
    from nvidia.dali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

    files = [str(path.relative_to(dataset)) for path in sorted(Path(dataset).glob("*/*"))]

    @pipeline_def(num_threads=2, device_id=None, seed=7, enable_checkpointing=True)
    def numbers(rank, world):
        return readers.liquid(
            file_root=dataset,
            files=files,
            labels=list(range(23)),
            shard_id=rank,
            num_shards=world,
            stick_to_shard=True,
            pad_last_batch=True,
            on_mismatch="redistribute",
            name="reader",
        )[1]

    def iterator(pipe):
        return DALIGenericIterator(
            pipe, ["number"], reader_name="reader", last_batch_policy=LastBatchPolicy[policy], auto_reset=True
        )

    def batch(item):
        return item[0]["number"][:, 0].tolist()

    old = [iterator(numbers(rank, 2, batch_size=4)) for rank in range(2)]
    seen = Counter(number for shard in old for _ in range(2) for number in batch(next(shard)))
    checkpoint = old[0].checkpoints()[0]

    later = []
    for rank in range(3):
        pipe = numbers(rank, 3, batch_size=5, checkpoint=checkpoint)
        for _ in range(dali_l3.reader_stats(pipe, "reader")["rest_batches"]):
            (rest,) = pipe.run()
            seen.update({int(np.array(number)[0]) for number in rest})  # less padding
        later.append(iterator(numbers(rank, 3, batch_size=5, checkpoint=pipe.checkpoint())))
    assert seen == Counter(range(23))

    for _ in range(2):  # epochs of 7, 8 and 8 samples
        epochs = [[batch(item) for item in shard] for shard in later]
        sizes = {"FILL": [[5, 5]] * 3, "PARTIAL": [[5, 2], [5, 3], [5, 3]], "DROP": [[5]] * 3}[policy]
        assert [[len(numbers) for numbers in epoch] for epoch in epochs] == sizes
        delivered = Counter(number for epoch in epochs for numbers in epoch for number in numbers)
        if policy == "DROP":
            assert max(delivered.values()) == 1
        else:
            assert set(delivered) == set(range(23))
        if policy == "PARTIAL":
            assert set(delivered.values()) == {1}
