"""Trains a small classifier with PyTorch and DALI's iterator; one line differs between DALI's file reader and Liquid's.

    python examples/train_torch.py data/l3
    python examples/train_torch.py train-l3/ --cache-size 60GiB
    torchrun --nproc-per-node 2 examples/train_torch.py train-l3/ --cache-size 30GiB

The folder has a subfolder for each class; its files may be L3, PNG, JPEG, BMP, TIFF and WebP, also mixed. Runs on the
CPU. With torchrun every process trains on a shard of its own, and has a cache of its own.
"""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIClassificationIterator
from torch import nn

import dali_l3.fn


@pipeline_def(num_threads=2, device_id=None, seed=0)
def training(folder: str, cache_size: str, size: int, rank: int, world: int):
    dataset = {
        "name": "reader",
        "file_root": folder,
        "file_filters": ["*.l3", "*.png", "*.jpg", "*.jpeg", "*.bmp", "*.tif", "*.tiff", "*.webp"],
        "shard_id": rank,
        "num_shards": world,
        "stick_to_shard": True,
        "pad_last_batch": True,  # equally many batches for all processes, which wait for one another in every step
    }
    # Before: encoded, labels = fn.readers.file(random_shuffle=True, **dataset)
    encoded, labels = dali_l3.fn.readers.liquid(cache_size=cache_size, **dataset)
    images = fn.decoders.image(encoded)
    images = fn.resize(images, size=(size, size))
    mirror = fn.random.coin_flip()
    images = fn.crop_mirror_normalize(images, mirror=mirror, mean=[128.0], std=[64.0], dtype=types.FLOAT)
    return images, labels


def make_model(classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=4), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, classes),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small classifier on the CPU.")
    parser.add_argument("folder", type=Path, help="folder with a subfolder of images for each class")
    parser.add_argument("--cache-size", default="1MiB", help="memory that the reader of a process may fill")
    parser.add_argument("--batch-size", type=int, default=8, help="images in a batch of a process")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--size", type=int, default=64, help="height and width of the model's images, pixels")
    arguments = parser.parse_args()

    # torchrun sets RANK and WORLD_SIZE, and all that init_process_group needs.
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world > 1:
        dist.init_process_group("gloo")

    pipe = training(
        str(arguments.folder), arguments.cache_size, arguments.size, rank, world, batch_size=arguments.batch_size
    )
    batches = DALIClassificationIterator(pipe, reader_name="reader", auto_reset=True)

    torch.manual_seed(0)
    model = make_model(sum(path.is_dir() for path in arguments.folder.iterdir()))
    if world > 1:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    for epoch in range(arguments.epochs):
        totals = torch.zeros(3)  # images, the sum of their losses, and how many were classified correctly
        for batch in batches:
            images, labels = batch[0]["data"], batch[0]["label"].squeeze(1).long()
            scores = model(images)
            loss = nn.functional.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct = (scores.argmax(1) == labels).sum()
            totals += torch.tensor([len(labels), len(labels) * loss.item(), correct.item()])
        if world > 1:
            dist.all_reduce(totals)
        if rank == 0:
            count, loss, correct = totals.tolist()
            print(f"epoch {epoch}: {count:.0f} images, loss {loss / count:.3f}, accuracy {correct / count:.2f}")
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
