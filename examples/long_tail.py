"""Draws all classes equally often from a dataset in which some classes are rare, and sets a part aside for validation.

python examples/long_tail.py data/l3
"""

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
from nvidia.dali import fn, pipeline_def

import dali_l3
import dali_l3.fn

BATCH_SIZE = 10


def long_tail(folder: Path) -> list[str]:
    """Files of the class folders: 12 of the first, half as many of the second, and so on."""
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
    return [f"{name}/{i:02d}.l3" for c, name in enumerate(classes) for i in range(12 >> c)]


@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, device_id=None, seed=1)
def training(folder: str, files: list[str], labels: list[int]):
    encoded, label = dali_l3.fn.readers.liquid(
        file_root=folder,
        files=files,
        labels=labels,
        subset=(0.0, 0.8),
        class_proportions="balanced",
        epoch_size=40,
        cache_size="400KiB",
        name="reader",
    )
    return fn.decoders.image(encoded), label


@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, device_id=None)
def validation(folder: str, files: list[str], labels: list[int]):
    encoded, label = dali_l3.fn.readers.multi_format(
        file_root=folder, files=files, labels=labels, subset=(0.8, 1.0), name="reader"
    )
    return fn.decoders.image(encoded), label


def classes(pipe, batches: int) -> str:
    """How many samples of each class the next batches hold."""
    labels = [label for _ in range(batches) for label in np.array(pipe.run()[1].as_array()).ravel().tolist()]
    counts = Counter(labels)
    return ", ".join(f"{counts[label]} of class {label}" for label in sorted(counts))


def main() -> None:
    parser = argparse.ArgumentParser(description="Balance classes of different sizes.")
    parser.add_argument("folder", help="folder with a subfolder of .l3 files for each class")
    arguments = parser.parse_args()
    files = long_tail(Path(arguments.folder))
    names = sorted({name.split("/")[0] for name in files})
    labels = [names.index(name.split("/")[0]) for name in files]

    pipe = training(arguments.folder, files, labels)
    for epoch in range(3):
        print(f"epoch {epoch}: {classes(pipe, pipe.epoch_size('reader') // BATCH_SIZE)}")
    print(f"drawn from memory: {dali_l3.reader_stats(pipe, 'reader')['hit_ratio']:.0%}")

    pipe = validation(arguments.folder, files, labels)
    size = pipe.epoch_size("reader")
    print(f"validation has {size} of {len(files)} images")


if __name__ == "__main__":
    main()
