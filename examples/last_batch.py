"""The end of an epoch with PyTorch: every LastBatchPolicy, over several shards, and a checkpoint before it.

python examples/last_batch.py data/l3
"""

import argparse

from nvidia.dali import fn, pipeline_def
from nvidia.dali.plugin.pytorch import DALIClassificationIterator, LastBatchPolicy

import dali_l3.fn

SHARDS = 5  # of 48 images: shard 0 has 9 of them, shard 1 has 10


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=1, enable_checkpointing=True)
def pipeline(folder: str, shard: int):
    encoded, labels = dali_l3.fn.readers.liquid(
        file_root=folder,
        file_filters=["*.l3"],
        cache_size="500KiB",
        shard_id=shard,
        num_shards=SHARDS,
        stick_to_shard=True,
        pad_last_batch=True,  # as many batches for every shard
        name="reader",
    )
    return fn.decoders.image(encoded), labels


def batches(folder: str, shard: int, policy: LastBatchPolicy, checkpoint: bytes | None = None):
    pipe = pipeline(folder, shard, checkpoint=checkpoint)
    return DALIClassificationIterator(pipe, reader_name="reader", auto_reset=True, last_batch_policy=policy)


def labels_of(batch) -> list[int]:
    return batch[0]["label"].flatten().tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description="Show how the epochs of shards end.")
    parser.add_argument("folder", help="folder with a subfolder of .l3 files for each class")
    arguments = parser.parse_args()

    for policy in (LastBatchPolicy.FILL, LastBatchPolicy.PARTIAL, LastBatchPolicy.DROP):
        for shard in (0, 1):
            iterator = batches(arguments.folder, shard, policy)
            sizes, rest = [], []
            for number, batch in enumerate(iterator):  # a training step would go here
                sizes.append(len(labels_of(batch)))
                if number == 0:
                    [checkpoint] = iterator.checkpoints()  # bytes: save them with the model
                else:
                    rest.append(labels_of(batch))
            print(f"{policy.name}, shard {shard}: batches of {sizes}")

            resumed = batches(arguments.folder, shard, policy, checkpoint)
            assert [labels_of(batch) for batch in resumed] == rest
            assert [labels_of(batch) for batch in resumed] == [labels_of(batch) for batch in iterator]
    print("resumed iterators end their epochs, and go through the next ones, in the same way")


if __name__ == "__main__":
    main()
