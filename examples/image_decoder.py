"""L3, PNG and JPEG files in one batch: fn.decoders.image decodes them all, through the nvImageCodec extension.

python examples/image_decoder.py data/mix
"""

import argparse
from collections import Counter
from pathlib import Path

from nvidia.dali import fn, pipeline_def

import dali_l3  # noqa: F401  (makes DALI's own decoders handle L3 files)


@pipeline_def(batch_size=16, num_threads=2, device_id=None, seed=0)
def pipeline(folder: str):
    filters = ["*.l3", "*.png", "*.jpg"]
    encoded, labels = fn.readers.file(file_root=folder, file_filters=filters, random_shuffle=True)
    return fn.decoders.image(encoded), labels


def main() -> None:
    parser = argparse.ArgumentParser(description="Decode a batch of files in several formats with DALI.")
    parser.add_argument("folder", help="folder with a subfolder of images for each class")
    arguments = parser.parse_args()

    images, _ = pipeline(arguments.folder).run()
    formats = Counter(Path(images[i].source_info()).suffix for i in range(len(images)))
    print(f"{len(images)} images of shape {images.at(0).shape}")
    for suffix, count in sorted(formats.items()):
        print(f"{count} from {suffix} files")


if __name__ == "__main__":
    main()
