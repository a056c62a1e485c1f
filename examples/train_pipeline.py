"""A training input pipeline over L3 files: what it takes to move from PNG to L3 is the import and the file filter.

    dali-l3 convert train/ train-l3/
    python examples/train_pipeline.py train-l3/

The folder has a subfolder for each class. Runs on the CPU, and with --gpu on GPU 0 from decoding on.
"""

import argparse
import time

from nvidia.dali import fn, pipeline_def, types

import dali_l3  # noqa: F401  (makes DALI's decoders handle L3 files)

MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]


@pipeline_def(num_threads=4)
def training(folder: str, size: int, gpu: bool):
    encoded, labels = fn.readers.file(file_root=folder, file_filters=["*.l3"], random_shuffle=True, name="reader")
    # Of each image, only the tiles that the random region touches are decoded.
    images = fn.decoders.image_random_crop(encoded, device="mixed" if gpu else "cpu", random_area=[0.08, 1.0])
    images = fn.resize(images, size=(size, size))
    images = fn.crop_mirror_normalize(
        images, mirror=fn.random.coin_flip(), mean=MEAN, std=STD, dtype=types.FLOAT, output_layout="CHW"
    )
    return images, labels


def main() -> None:
    parser = argparse.ArgumentParser(description="Iterate over one epoch of training batches.")
    parser.add_argument("folder", help="folder with a subfolder of .l3 files for each class")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--size", type=int, default=224, help="height and width of the crops, pixels")
    parser.add_argument("--gpu", action="store_true", help="process images on GPU 0")
    arguments = parser.parse_args()

    pipe = training(
        arguments.folder,
        arguments.size,
        arguments.gpu,
        batch_size=arguments.batch_size,
        device_id=0 if arguments.gpu else None,
    )
    pipe.build()
    batches = -(-pipe.epoch_size("reader") // arguments.batch_size)
    start = time.perf_counter()
    for _ in range(batches):
        images, labels = pipe.run()  # a training step would go here
    speed = batches * arguments.batch_size / (time.perf_counter() - start)
    print(f"{batches} batches of {images.shape()[0]} images (CHW, {images.dtype}), {speed:.0f} images/s")


if __name__ == "__main__":
    main()
