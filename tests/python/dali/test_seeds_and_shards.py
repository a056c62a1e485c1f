"""Two seeds give two orders; one seed deals every epoch to the shards, each sample to one of them."""

import math
from collections import Counter

import pytest

from dali_l3.fn import readers
from reading import Reading, write_dataset

pytestmark = pytest.mark.usefixtures("plugin")

EPOCHS, BATCH_SIZE = 3, 5
COUNTS = {"png": 29, "jpg": 13, "bmp": 5}
SIZE = sum(COUNTS.values())

# Every way of shuffling.
ORDERS = {
    "multi_format": (readers.multi_format, {"random_shuffle": True, "initial_fill": 7}),
    "multi_format, fixed shards": (readers.multi_format, {"random_shuffle": True, "stick_to_shard": True}),
    "mix": (readers.multi_format, {"random_shuffle": True, "mix": "dataset"}),
    **{
        f"liquid, {policy}, {cached} held": (readers.liquid, {"policy": policy, "cache_size": cached * 4096})
        for policy, cached in [("liquid", 10), ("liquid", 100), ("minio", 10), ("none", 0)]
    },
    "liquid, sequential": (readers.liquid, {"read_order": "sequential", "cache_size": 10 * 4096}),
}
# The first epoch of this one is not shuffled, and the others have a seed of their own.
AFTER_EPOCH = {"shuffle_after_epoch": (readers.multi_format, {"shuffle_after_epoch": True})}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    root = tmp_path_factory.mktemp("dataset")
    write_dataset(root, COUNTS)
    return root


def epochs(dataset, order, seed, shard=0, shards=1):
    """The paths of each epoch, padding included."""
    reader, arguments = (ORDERS | AFTER_EPOCH)[order]
    reading = Reading(
        reader,
        batch_size=BATCH_SIZE,
        file_root=str(dataset),
        seed=seed,
        shard_id=shard,
        num_shards=shards,
        pad_last_batch=True,
        **arguments,
    )
    batches = math.ceil(math.ceil(SIZE / shards) / BATCH_SIZE)
    paths = [sample.path for batch in reading.batches(EPOCHS * batches) for sample in batch]
    size = batches * BATCH_SIZE
    return [paths[size * epoch : size * (epoch + 1)] for epoch in range(EPOCHS)]


@pytest.mark.parametrize("order", ORDERS)
def test_two_seeds_give_two_orders(dataset, order):
    one, again, other = (epochs(dataset, order, seed) for seed in (1, 1, 2))
    assert one == again
    for epoch in range(EPOCHS):
        assert one[epoch] != other[epoch]
        assert set(one[epoch]) == set(other[epoch])
    assert len({tuple(epoch) for epoch in one}) == EPOCHS  # and no epoch is like another


@pytest.mark.parametrize("order", ORDERS | AFTER_EPOCH)
@pytest.mark.parametrize("shards", [2, 3, 4])
def test_one_seed_deals_every_epoch_to_the_shards(dataset, order, shards):
    by_shard = [epochs(dataset, order, 1, shard, shards) for shard in range(shards)]
    for parts in zip(*by_shard, strict=True):
        times = Counter(path for part in parts for path in set(part))
        assert len(times) == SIZE
        assert set(times.values()) == {1}
