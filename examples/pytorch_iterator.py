"""Class folders of L3 files to tensors of PyTorch: DALI's iterator in the place of a DataLoader.

python examples/pytorch_iterator.py data/l3
"""

import argparse

from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIClassificationIterator

import dali_l3.fn


@pipeline_def(batch_size=16, num_threads=2, device_id=None, seed=0)
def pipeline(folder: str):
    encoded, labels = dali_l3.fn.readers.multi_format(
        file_root=folder, file_filters=["*.l3"], random_shuffle=True, pad_last_batch=True, name="reader"
    )
    images = fn.decoders.image(encoded)
    images = fn.crop_mirror_normalize(images, crop=(192, 256), mean=[128.0], std=[64.0], dtype=types.FLOAT)
    return images, labels


def main() -> None:
    parser = argparse.ArgumentParser(description="Iterate over class folders of L3 files with PyTorch.")
    parser.add_argument("folder", help="folder with a subfolder of .l3 files for each class")
    arguments = parser.parse_args()

    batches = DALIClassificationIterator(pipeline(arguments.folder), reader_name="reader", auto_reset=True)
    for epoch in range(2):
        for batch in batches:
            images, labels = batch[0]["data"], batch[0]["label"].squeeze(1)  # a training step would go here
        print(
            f"epoch {epoch}: {len(batches)} batches, the last of shape {tuple(images.shape)} and {len(labels)} labels"
        )


if __name__ == "__main__":
    main()
