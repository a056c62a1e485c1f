"""The ends of epochs, as PyTorch's iterators and DALI's dynamic mode see them, against DALI's own reader."""

import itertools
from collections import Counter

import numpy as np
import pytest
from nvidia.dali import Pipeline, fn

import dali_l3
from dali_l3.fn import readers
from reading import file_reader, write_dataset
from versions import DALI, since

pytestmark = pytest.mark.usefixtures("plugin")

SIZE, BATCH_SIZE, EPOCHS = 23, 4, 3
LIQUID = {"cache_size": 5 * 4096}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """A file list that gives every file a label of its own, by which it is known."""
    root = tmp_path_factory.mktemp("dataset")
    paths = write_dataset(root, {"png": 14, "jpg": 9})
    listing = root / "list.txt"
    listing.write_text("".join(f"{path.relative_to(root)} {i}\n" for i, path in enumerate(paths)))
    return {"file_root": str(root), "file_list": str(listing)}


def shard_size(shard, shards):
    return SIZE * (shard + 1) // shards - SIZE * shard // shards


# ---- PyTorch ----


@pytest.fixture
def torch_plugin():
    pytest.importorskip("torch", reason="the iterators are for PyTorch")
    from nvidia.dali.plugin import pytorch

    return pytorch


class Labels:
    """An iterator over the labels that a reader delivers."""

    def __init__(self, plugin, policy, reader, checkpoint=None, **arguments):
        pipeline = Pipeline(
            BATCH_SIZE, 1, device_id=None, seed=3, enable_checkpointing=True, checkpoint=checkpoint, exec_dynamic=True
        )
        with pipeline:
            pipeline.set_outputs(reader(name="reader", **arguments)[-1])
        self.iterator = plugin.DALIGenericIterator(
            pipeline, ["label"], reader_name="reader", auto_reset=True, last_batch_policy=policy
        )

    def epoch(self):
        """The labels in each batch of an epoch, and a checkpoint after each."""
        batches, checkpoints = [], []
        for batch in self.iterator:
            batches.append(batch[0]["label"].flatten().tolist())
            checkpoints += self.iterator.checkpoints()
        return batches, checkpoints


SETTINGS = list(itertools.product([False, True], [(0, 1), (0, 3), (2, 3), (1, 5)]))


@pytest.mark.parametrize("policy", ["FILL", "PARTIAL", "DROP"])
@pytest.mark.parametrize("reader", [readers.multi_format, readers.liquid])
def test_epochs_end_as_those_of_the_file_reader(dataset, torch_plugin, policy, reader):
    policy = torch_plugin.LastBatchPolicy[policy]
    for pad_last_batch, (shard, shards) in SETTINGS:
        context = f"pad_last_batch={pad_last_batch}, shard {shard} of {shards}"
        arguments = dataset | {"pad_last_batch": pad_last_batch, "shard_id": shard, "num_shards": shards}
        arguments |= {"stick_to_shard": True, "random_shuffle": True}
        liquid = LIQUID if reader is readers.liquid else {}
        ours = Labels(torch_plugin, policy, reader, **arguments, **liquid)
        theirs = Labels(torch_plugin, policy, file_reader, **arguments)
        resumptions = []
        for epoch in range(EPOCHS):
            (found, checkpoints), (expected, _) = ours.epoch(), theirs.epoch()
            assert list(map(len, found)) == list(map(len, expected)), f"{context}, epoch {epoch}"
            if reader is readers.multi_format:
                assert found == expected, f"{context}, epoch {epoch}"
            resumptions.append((found, checkpoints))
            labels = Counter(itertools.chain(*found))
            if pad_last_batch and policy == torch_plugin.LastBatchPolicy.PARTIAL:
                assert labels.total() == len(labels) == shard_size(shard, shards), f"{context}, epoch {epoch}"
            if pad_last_batch and policy == torch_plugin.LastBatchPolicy.FILL:
                assert len(labels) == shard_size(shard, shards), f"{context}, epoch {epoch}"

        (first, checkpoints), (second, _) = resumptions[:2]
        for done, checkpoint in enumerate(checkpoints[:-1], start=1):
            resumed = Labels(torch_plugin, policy, reader, checkpoint, **arguments, **liquid)
            assert resumed.epoch()[0] == first[done:], f"{context}, after {done} batches"
            assert resumed.epoch()[0] == second, f"{context}, after {done} batches"
        # One that is taken with the last batch begins the next epoch.
        resumed = Labels(torch_plugin, policy, reader, checkpoints[-1], **arguments, **liquid)
        assert resumed.epoch()[0] == second, f"{context}, at the end"


# ---- Dynamic mode ----


@pytest.fixture(scope="module")
def ndd():
    """Dynamic mode, imported after dali_l3."""
    if DALI < (2, 2):
        pytest.skip("dynamic mode without a GPU came with DALI 2.2")
    import nvidia.dali.experimental.dynamic as ndd

    return ndd


DYNAMIC = {
    "multi_format": ("MultiFormat", {"random_shuffle": True}),
    "mix": ("MultiFormat", {"random_shuffle": True, "mix": "dataset"}),
    "liquid": ("Liquid", LIQUID),
    "minio": ("Liquid", LIQUID | {"policy": "minio"}),
}


def dynamic_reader(ndd, name, dataset, **arguments):
    reader, more = DYNAMIC[name]
    shards = {"num_shards": 2, "shard_id": 1, "stick_to_shard": True, "pad_last_batch": True}
    return getattr(ndd.readers, reader)(**dataset, **more, **shards, **{"seed": 5, **arguments})


def dynamic_epoch(ndd, reader, **arguments):
    return [
        np.asarray(ndd.as_tensor(labels)).flatten().tolist()
        for _, labels in reader.next_epoch(batch_size=BATCH_SIZE, **arguments)
    ]


def pipeline_epochs(name, dataset):
    """What a pipeline delivers: the same, in batches of an epoch each."""
    reader, more = DYNAMIC[name]
    reader = {"MultiFormat": readers.multi_format, "Liquid": readers.liquid}[reader]
    pipeline = Pipeline(BATCH_SIZE, 1, device_id=None)
    with pipeline:
        shards = {"num_shards": 2, "shard_id": 1, "stick_to_shard": True, "pad_last_batch": True}
        pipeline.set_outputs(reader(**dataset, **more, **shards, seed=5)[-1])
    batches = -(-shard_size(1, 2) // BATCH_SIZE)
    return [[np.array(pipeline.run()[0].as_tensor()).flatten().tolist() for _ in range(batches)] for _ in range(EPOCHS)]


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic_mode_delivers_what_a_pipeline_does(dataset, ndd, name):
    expected = pipeline_epochs(name, dataset)
    reader = dynamic_reader(ndd, name, dataset)
    assert [dynamic_epoch(ndd, reader) for _ in range(EPOCHS)] == expected
    assert reader.get_metadata()["epoch_size"] == SIZE


@since(2, 3, "capture")
@pytest.mark.parametrize("name", DYNAMIC)
def test_captured_epochs_are_those_of_a_pipeline(dataset, ndd, name):
    expected = pipeline_epochs(name, dataset)
    captured = dynamic_reader(ndd, name, dataset)
    assert [captured_epoch(ndd, captured) for _ in range(EPOCHS)] == expected


def captured_epoch(ndd, reader):
    epoch = []
    for _, labels in reader.next_epoch(batch_size=BATCH_SIZE, capture=True):
        ndd.cast(labels, dtype=ndd.float32)  # something to capture
        epoch.append(np.asarray(ndd.as_tensor(labels)).flatten().tolist())
    return epoch


@pytest.mark.parametrize("name", DYNAMIC)
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_dynamic_mode_resumes(dataset, ndd, name, cut):
    straight = dynamic_reader(ndd, name, dataset)
    checkpoint = ndd.checkpoint.Checkpoint()
    checkpoint.register(straight, "reader")
    rest = []
    for number, (_, labels) in enumerate(straight.next_epoch(batch_size=BATCH_SIZE), start=1):
        rest.append(np.asarray(ndd.as_tensor(labels)).flatten().tolist())
        if number == cut:
            rest.clear()
            checkpoint.collect()
    rest += dynamic_epoch(ndd, straight)

    again = ndd.checkpoint.Checkpoint()
    again.deserialize(checkpoint.serialize())
    resumed = dynamic_reader(ndd, name, dataset, seed=6)  # the checkpoint's takes the place of this one
    again.register(resumed, "reader")
    # next_epoch counts a whole epoch from where it begins.
    assert (dynamic_epoch(ndd, resumed) + dynamic_epoch(ndd, resumed))[: len(rest)] == rest


def test_statistics_of_a_reader_of_dynamic_mode(dataset, ndd):
    reader = dynamic_reader(ndd, "liquid", dataset)
    for _ in range(EPOCHS):
        dynamic_epoch(ndd, reader)
    epochs = dali_l3.reader_stats(reader)["epochs"][:EPOCHS]
    assert [epoch["samples"] for epoch in epochs] == [shard_size(1, 2)] * EPOCHS
    held = [sum(counts["hits"] for counts in epoch["formats"].values()) for epoch in epochs]
    assert held[0] == 0 < held[1] == held[2]
    other = ndd.readers.File(**dataset)
    with pytest.raises(ValueError, match="not a reader of dali_l3"):
        dali_l3.reader_stats(other)


def test_statistics_need_the_name_of_a_reader_in_a_pipeline(dataset):
    pipeline = Pipeline(BATCH_SIZE, 1, device_id=None)
    with pipeline:
        pipeline.set_outputs(*fn.readers.file(**dataset, name="reader"))
    with pytest.raises(TypeError, match="name must be"):
        dali_l3.reader_stats(pipeline)
