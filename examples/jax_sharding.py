"""Batches for JAX, sharded over its devices: a pipeline and a shard of the dataset for each of them.

XLA_FLAGS=--xla_force_host_platform_device_count=4 python examples/jax_sharding.py data/l3
"""

import argparse

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from nvidia.dali import fn, pipeline_def
from nvidia.dali.plugin.base_iterator import LastBatchPolicy
from nvidia.dali.plugin.jax import DALIGenericIterator

import dali_l3.fn


@pipeline_def(batch_size=4, num_threads=1, device_id=None, seed=1, enable_checkpointing=True)
def pipeline(folder: str, shard: int, shards: int):
    encoded, labels = dali_l3.fn.readers.liquid(
        file_root=folder,
        file_filters=["*.l3"],
        cache_size="500KiB",
        shard_id=shard,
        num_shards=shards,
        stick_to_shard=True,
        pad_last_batch=True,
        name="reader",
    )
    return fn.decoders.image(encoded), labels


def batches(folder: str, checkpoints: list[bytes] | None = None):
    """Batches with an axis for the devices in front. JAX knows no LastBatchPolicy.PARTIAL: shapes are constant."""
    shards = jax.device_count()
    pipelines = [
        pipeline(folder, shard, shards, checkpoint=checkpoints[shard] if checkpoints else None)
        for shard in range(shards)
    ]
    return DALIGenericIterator(
        pipelines, ["image", "label"], reader_name="reader", auto_reset=True, last_batch_policy=LastBatchPolicy.FILL
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Iterate over batches that are sharded over JAX's devices.")
    parser.add_argument("folder", help="folder with a subfolder of .l3 files for each class")
    arguments = parser.parse_args()

    mesh = Mesh(np.array(jax.devices()), ("batch",))
    sharding = NamedSharding(mesh, PartitionSpec("batch"))
    brightness = jax.jit(lambda images: images.mean(axis=(1, 2, 3)), out_shardings=sharding)

    iterator = batches(arguments.folder)
    expected = []
    for epoch in range(2):
        for number, batch in enumerate(iterator):
            # With GPUs, pass sharding=sharding to the iterator instead. It expects a pipeline's outputs on a device of
            # their own, but without GPUs DALI has one place only.
            images = jax.device_put(batch["image"].reshape(-1, *batch["image"].shape[2:]), sharding)
            result = brightness(images)  # a training step would go here
            if (epoch, number) == (1, 0):
                checkpoints = iterator.checkpoints()  # bytes, one for each pipeline: save them with the model
            elif epoch == 1:
                expected.append(batch["label"].tolist())
        shards = [shard.data.shape for shard in result.addressable_shards]
        print(f"epoch {epoch}: {len(iterator)} batches of shape {images.shape}, results of shapes {shards}")

    assert [batch["label"].tolist() for batch in batches(arguments.folder, checkpoints)] == expected
    print(f"the resumed iterator delivers the other {len(expected)} batches of epoch 1")


if __name__ == "__main__":
    main()
