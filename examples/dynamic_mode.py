"""DALI's dynamic mode, in which operators are called without a pipeline: epochs, a checkpoint, and capture.

python examples/dynamic_mode.py data/l3
"""

import argparse

import numpy as np

import dali_l3  # isort: skip  (before dynamic mode, which shows the operators that are registered when it is imported)
import nvidia.dali.experimental.dynamic as ndd  # isort: skip


def reader(folder: str):
    return ndd.readers.Liquid(
        file_root=folder,
        file_filters=["*.l3"],
        cache_size="500KB",
        pad_last_batch=True,
        seed=1,
    )


def labels_of(batch) -> list[int]:
    return np.asarray(ndd.as_tensor(batch)).flatten().tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description="Read and decode in DALI's dynamic mode.")
    parser.add_argument("folder", help="folder with a subfolder of .l3 files for each class")
    arguments = parser.parse_args()

    files = reader(arguments.folder)
    checkpoint = ndd.checkpoint.Checkpoint()
    checkpoint.register(files, "reader")
    delivered = []
    for epoch in range(3):
        for encoded, labels in files.next_epoch(batch_size=10):
            images = ndd.decoders.l3(encoded)
            small = ndd.resize(images, size=(64, 64))  # a training step would go here
            delivered.append(labels_of(labels))
        print(f"epoch {epoch}: {len(delivered)} batches so far, the last of {small.batch_size} images")
        if epoch == 0:
            checkpoint.collect()
            saved = checkpoint.serialize()  # a str: save it with the model
    stats = dali_l3.reader_stats(files)
    print(f"hit ratio {stats['hit_ratio']:.2f}, {stats['epochs'][1]['files_read']} files read in epoch 1")

    # From a checkpoint. A captured loop becomes a pipeline after its first step: it reads ahead and decodes meanwhile.
    resumed = reader(arguments.folder)
    checkpoint = ndd.checkpoint.Checkpoint()
    checkpoint.deserialize(saved)
    checkpoint.register(resumed, "reader")
    again = [labels_of(labels) for _ in range(2) for _, labels in resumed.next_epoch(batch_size=10)]
    assert again == delivered[5:]
    print("the resumed reader delivers the same two epochs")

    captured = reader(arguments.folder)
    again = []
    for _ in range(3):
        for encoded, labels in captured.next_epoch(batch_size=10, capture=True):
            images = ndd.decoders.l3(encoded)
            small = ndd.resize(images, size=(64, 64))
            again.append(labels_of(labels))
    assert again == delivered
    print("the captured loop delivers the same three epochs")


if __name__ == "__main__":
    main()
