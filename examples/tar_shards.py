"""Reads images and their labels from tar shards with Liquid.

python examples/tar_shards.py data/shards
"""

import argparse

import numpy as np
from nvidia.dali import fn, pipeline_def

import dali_l3
import dali_l3.fn


@pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=0)
def training(shards: str):
    encoded, labels = dali_l3.fn.readers.liquid(
        paths=f"{shards}/*.tar", ext="l3", label_ext="cls", cache_size="2MiB", name="reader"
    )
    return fn.decoders.image(encoded), labels, fn.get_property(encoded, key="source_info")


def main() -> None:
    parser = argparse.ArgumentParser(description="Read tar shards.")
    parser.add_argument("shards", help="folder of shards with .l3 and .cls files")
    arguments = parser.parse_args()

    pipe = training(arguments.shards)
    images, labels, names = pipe.run()
    for i in range(3):
        name, label = np.array(names[i]).tobytes().decode(), int(np.array(labels[i])[0])
        print(f"{name}: label {label}, {images.at(i).shape[1]} x {images.at(i).shape[0]} pixels")
    for _ in range(2 * pipe.epoch_size("reader") // 8 - 1):
        pipe.run()
    statistics = dali_l3.reader_stats(pipe, "reader")
    read, ratio = statistics["epochs"][1]["files_read"], statistics["hit_ratio"]
    print(f"second epoch: {read} of {pipe.epoch_size('reader')} images read, at a hit ratio of {ratio:.2f}")


if __name__ == "__main__":
    main()
