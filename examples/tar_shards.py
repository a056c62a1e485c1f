"""Puts a folder of images into tar shards, as webdataset has them, and reads these with Liquid.

python examples/tar_shards.py data/l3 data/shards
"""

import argparse
import io
import random
import tarfile
from pathlib import Path

import numpy as np
from nvidia.dali import fn, pipeline_def

import dali_l3
import dali_l3.fn

SHARD_SIZE = 16  # samples; in real life as many as make a gigabyte or so


def add(shard: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    shard.addfile(member, io.BytesIO(content))


def write_shards(images: Path, shards: Path) -> None:
    """Each sample is an image and its label, two files that differ in their extension."""
    shards.mkdir(parents=True, exist_ok=True)
    classes = sorted(path.name for path in images.iterdir() if path.is_dir())
    files = sorted(images.rglob("*.l3"))
    random.Random(0).shuffle(files)  # for those who read shards from the begin to the end: Liquid does not need it
    for number in range(0, len(files), SHARD_SIZE):
        with tarfile.open(shards / f"train-{number // SHARD_SIZE:03d}.tar", "w") as shard:
            for file in files[number : number + SHARD_SIZE]:
                key = file.relative_to(images).with_suffix("")
                add(shard, f"{key}.l3", file.read_bytes())
                add(shard, f"{key}.cls", str(classes.index(key.parts[0])).encode())


@pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=0)
def training(shards: str):
    encoded, labels = dali_l3.fn.readers.liquid(
        paths=f"{shards}/train-*.tar", ext="l3", label_ext="cls", cache_size="2MiB", name="reader"
    )
    return fn.decoders.image(encoded), labels, fn.get_property(encoded, key="source_info")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write tar shards and read them.")
    parser.add_argument("images", help="folder with a subfolder of .l3 files for each class")
    parser.add_argument("shards", help="folder for the shards")
    arguments = parser.parse_args()
    write_shards(Path(arguments.images), Path(arguments.shards))

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
