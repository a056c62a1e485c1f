"""L3 files in a pipeline that you have: keep fn.readers.file, change its filter and the decoder.

python examples/file_reader.py data/l3
"""

import argparse

from nvidia.dali import fn, pipeline_def

import dali_l3  # noqa: F401  (adds fn.decoders.l3 to DALI)


@pipeline_def(batch_size=16, num_threads=2, device_id=None)
def pipeline(folder: str):
    # Before: encoded, labels = fn.readers.file(file_root=folder, file_filters=["*.png"])
    #         images = fn.decoders.image(encoded)
    encoded, labels = fn.readers.file(file_root=folder, file_filters=["*.l3"])
    images = fn.decoders.l3(encoded)
    return images, labels


def main() -> None:
    parser = argparse.ArgumentParser(description="Decode a batch of L3 files with DALI.")
    parser.add_argument("folder", help="folder with a subfolder of .l3 files for each class")
    arguments = parser.parse_args()

    images, labels = pipeline(arguments.folder).run()
    print(f"{len(images)} images of shape {images.at(0).shape}, classes {[int(labels.at(i)[0]) for i in range(16)]}")


if __name__ == "__main__":
    main()
