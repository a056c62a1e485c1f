"""Stops in the middle of an epoch and goes on from a checkpoint, with the same samples in the same order.

python examples/resume.py data/l3
"""

import argparse

from nvidia.dali import fn, pipeline_def

import dali_l3.fn


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=1, enable_checkpointing=True)
def pipeline(folder: str):
    encoded, labels = dali_l3.fn.readers.liquid(
        file_root=folder, file_filters=["*.l3"], cache_size="500KiB", name="reader"
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

    pipe = pipeline(arguments.folder)
    for _ in range(5):
        names(pipe)
    checkpoint = pipe.checkpoint()  # bytes: save them with the model
    expected = [names(pipe) for _ in range(10)]
    print(f"after the checkpoint: {', '.join(expected[0])}")

    resumed = pipeline(arguments.folder, checkpoint=checkpoint)
    assert [names(resumed) for _ in range(10)] == expected
    print("the resumed pipeline delivers the same 10 batches")


if __name__ == "__main__":
    main()
