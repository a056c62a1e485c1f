"""Stops in the middle of an epoch and goes on from a checkpoint: with the same samples in the same order, or in two
processes with another batch size.

python examples/resume.py data/l3
"""

import argparse

from nvidia.dali import fn, pipeline_def

import dali_l3.fn


@pipeline_def(num_threads=2, device_id=None, seed=1, enable_checkpointing=True)
def pipeline(folder: str, rank: int = 0, world: int = 1):
    encoded, labels = dali_l3.fn.readers.liquid(
        file_root=folder,
        file_filters=["*.l3"],
        cache_size="500KiB",
        shard_id=rank,
        num_shards=world,
        stick_to_shard=True,
        pad_last_batch=True,
        on_mismatch="redistribute",
        name="reader",
    )
    return fn.decoders.image(encoded), labels


def names(pipe) -> list[str]:
    """The files of the next batch."""
    images, _ = pipe.run()
    return [images[i].source_info() for i in range(len(images))]


def main() -> None:
    parser = argparse.ArgumentParser(description="Resume an epoch from a checkpoint.")
    parser.add_argument("folder", help="folder with a subfolder of .l3 files for each class")
    arguments = parser.parse_args()

    pipe = pipeline(arguments.folder, batch_size=4)
    before = [name for _ in range(3) for name in names(pipe)]
    checkpoint = pipe.checkpoint()  # bytes: save them with the model
    expected = [names(pipe) for _ in range(10)]
    print(f"after the checkpoint: {', '.join(expected[0])}")

    resumed = pipeline(arguments.folder, batch_size=4, checkpoint=checkpoint)
    assert [names(resumed) for _ in range(10)] == expected
    print("the resumed pipeline delivers the same 10 batches")

    rest = []
    for rank in range(2):
        half = pipeline(arguments.folder, rank, 2, batch_size=3, checkpoint=checkpoint)
        batches = dali_l3.reader_stats(half, "reader")["rest_batches"]
        rest += dict.fromkeys(name for _ in range(batches) for name in names(half))  # padding repeats the last one
    assert len(set(before + rest)) == len(before + rest) == pipe.epoch_size("reader")
    print(f"two processes deliver the other {len(rest)} of {pipe.epoch_size('reader')} files, each once")


if __name__ == "__main__":
    main()
