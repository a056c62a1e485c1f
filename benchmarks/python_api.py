"""The Python API without DALI: what threads gain in decode_batch, and L3 against PNG in PyTorch's DataLoader.

    python benchmarks/python_api.py [--fhd FOLDER] [--photos FOLDER]

takes PNG photographs of 1920x1080 pixels, and others of at least 500x375, and writes results/python_api.json. By
default, it takes those of scikit-image, enlarged by reflection, which favours PNG: what repeats is quick to decompress.
What is compared takes turns, and medians count. The DataLoader delivers whole photographs of 1024x512 pixels and random
windows of 256x256, from files in the page cache: L3 by dali_l3.torch, PNG by Pillow and, where it is installed, by
torchvision.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import torch
from common import OthersLoad, argument_parser, console, png, settings_of, tree_cpu_seconds, write_results
from PIL import Image
from rich.table import Table
from targets import Target
from torch.utils.data import DataLoader, Dataset

import dali_l3
from dali_l3.torch import L3Folder, collate

SIZE = (512, 1024)
WINDOW = (256, 256)
BATCH_SIZE = 16
FILES = 64
BATCHES = {"FHD": ((1080, 1920), 16, 1.9), "500x375": ((375, 500), 128, 1.8)}  # shape, images, target
TARGETS = {"whole": 10, "windows": 30}  # times PNG's images/s by Pillow, at least
WORKERS = [(0, None), (4, "fork"), (4, "spawn")]


# ---- decode_batch ----------------------------------------------------------------------------------------------------


def measure_threads(photos: datasets.Images, count: int, rounds: int) -> dict[str, Any]:
    """What a second thread gains; and what a second process does, which shares nothing but the machine with the first.

    One thread, two threads, and two processes that decode a batch each take turns.
    """
    blobs = [dali_l3.encode(photo) for _, photo in zip(range(count), itertools.cycle(photos.values()))]
    out = np.empty((count, *next(iter(photos.values())).shape), np.uint8)
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(decoding_process(blobs, out.shape)) for _ in range(2)]

        def decode_in_processes() -> None:
            for process in processes:
                process.send(True)
            for process in processes:
                process.recv()

        systems: dict[str, Callable[[], Any]] = {
            "1 thread": lambda: dali_l3.decode_batch(blobs, out=out, threads=1),
            "2 threads": lambda: dali_l3.decode_batch(blobs, out=out, threads=2),
            "2 processes": decode_in_processes,
        }
        seconds: dict[str, list[float]] = {name: [] for name in systems}
        for number in range(rounds + 1):
            for name, decode in systems.items():
                start = time.perf_counter()
                decode()
                if number:  # the first is to warm up
                    seconds[name].append(time.perf_counter() - start)
    batches = {"1 thread": 1, "2 threads": 1, "2 processes": 2}
    gains = {
        name: [batches[name] * one / own for one, own in zip(seconds["1 thread"], measured, strict=True)]
        for name, measured in seconds.items()
        if name != "1 thread"
    }
    return {
        "images": count,
        "images_per_s": {
            name: batches[name] * count / statistics.median(measured) for name, measured in seconds.items()
        },
        "gain": {name: statistics.median(ratios) for name, ratios in gains.items()},
        "gains": gains,
    }


@contextlib.contextmanager
def decoding_process(blobs: list[bytes], shape: tuple[int, ...]) -> Iterator[Connection]:
    """A process that decodes the batch in one thread when it is sent True, and answers when it has."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=decode_on_demand, args=(there, blobs, shape))
    process.start()
    try:
        yield here
    finally:
        here.send(False)
        process.join()


def decode_on_demand(asked: Connection, blobs: list[bytes], shape: tuple[int, ...]) -> None:
    out = np.empty(shape, np.uint8)
    while asked.recv():
        dali_l3.decode_batch(blobs, out=out, threads=1)
        asked.send(None)


# ---- DataLoader ------------------------------------------------------------------------------------------------------


class PngFolder(Dataset):
    """PNG files as most training scripts read them: each decoded whole by itself, and cut if windows are asked for."""

    def __init__(self, folder: Path, window: tuple[int, int] | None, decode: Callable[[Path], torch.Tensor]) -> None:
        self.paths = sorted(folder.glob("*.png"))
        self.window = window
        self.decode = decode

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = self.decode(self.paths[index])
        if self.window:
            top, left = (
                int(torch.randint(size - part + 1, ())) for size, part in zip(image.shape[1:], self.window, strict=True)
            )
            image = image[:, top : top + self.window[0], left : left + self.window[1]]
        return image, 0


def by_pillow(path: Path) -> torch.Tensor:
    return torch.from_numpy(np.array(Image.open(path))).permute(2, 0, 1)


def by_torchvision(path: Path) -> torch.Tensor:
    from torchvision.io import read_image

    return read_image(str(path))


def systems(folder: Path, window: tuple[int, int] | None) -> dict[str, dict[str, Any]]:
    """Arguments of a DataLoader for each system."""
    found = {
        "L3": {"dataset": L3Folder(folder, window=window), "collate_fn": collate},
        "PNG, Pillow": {"dataset": PngFolder(folder, window, by_pillow)},
    }
    if importlib.util.find_spec("torchvision"):
        found["PNG, torchvision"] = {"dataset": PngFolder(folder, window, by_torchvision)}
    return found


def check(loaders: dict[str, DataLoader]) -> None:
    """Makes sure that all systems deliver the same batches, of whole images."""
    wanted, *others = ([images for images, _ in loader] for loader in loaders.values())
    for batches in others:
        if not all(map(torch.equal, wanted, batches)):
            raise SystemExit("the systems deliver different images")


def run(loader: DataLoader, seconds: float) -> tuple[float, float]:
    """Images/s and CPU ms for each, with the workers', of whole epochs until the time is over.

    Workers have been started before.
    """
    images = 0
    start, cpu_start = time.perf_counter(), tree_cpu_seconds()
    while not images or time.perf_counter() - start < seconds:
        for batch, _ in loader:
            images += len(batch)
    return images / (time.perf_counter() - start), (tree_cpu_seconds() - cpu_start) / images * 1e3


def measure_loaders(folder: Path, kind: str, rounds: int, seconds: float) -> dict[str, Any]:
    window = WINDOW if kind == "windows" else None
    results = {}
    for workers, method in WORKERS:
        arguments = {"batch_size": BATCH_SIZE, "num_workers": workers}
        if workers:
            arguments |= {"persistent_workers": True, "multiprocessing_context": method}
        loaders = {name: DataLoader(**arguments, **own) for name, own in systems(folder, window).items()}
        if window is None:
            check(loaders)
        measured: dict[str, list[tuple[float, float]]] = {name: [] for name in loaders}
        for loader in loaders.values():
            run(loader, 0)
        for _ in range(rounds):
            for name, loader in loaders.items():
                measured[name].append(run(loader, seconds))
        results[f"{workers} workers" + (f", {method}" if method else "")] = figures(measured)
    return results


def figures(measured: dict[str, list[tuple[float, float]]]) -> dict[str, Any]:
    """Medians over the runs. `times_pillow` is of images/s; the ratio of CPU times bears a busy machine better."""
    result = {}
    for name, runs in measured.items():
        speeds, cpu_ms = zip(*runs, strict=True)
        result[name] = {
            "images_per_s": statistics.median(speeds),
            "cpu_ms_per_image": statistics.median(cpu_ms),
            "runs_images_per_s": list(speeds),
        }
    pillow = result["PNG, Pillow"]
    for system in result.values():
        system["times_pillow"] = system["images_per_s"] / pillow["images_per_s"]
        system["pillow_cpu_ratio"] = pillow["cpu_ms_per_image"] / system["cpu_ms_per_image"]
    return result


def write_files(folder: Path, photos: datasets.Images) -> None:
    for number, (name, photo) in zip(range(FILES), itertools.cycle(photos.items())):
        path = folder / f"{number:03}-{name}"
        dali_l3.imwrite(f"{path}.l3", photo)
        Path(f"{path}.png").write_bytes(png(photo))


# ---- report ----------------------------------------------------------------------------------------------------------


def show(batches: dict[str, Any], loaders: dict[str, Any]) -> None:
    table = Table("decode_batch, images/s", "1 thread", "2 threads", "gain", "2 processes", "gain")
    for name, result in batches.items():
        speeds, gain = result["images_per_s"], result["gain"]
        row = [f"{speeds['1 thread']:.0f}"]
        for system in gain:
            row += [f"{speeds[system]:.0f}", f"{gain[system]:.2f}"]
        table.add_row(name, *row)
    console.print(table)
    table = Table("DataLoader", "", "system", "images/s", "x Pillow", "CPU ms/image", "Pillow's / its")
    for kind, results in loaders.items():
        for workers, measured in results.items():
            for name, system in measured.items():
                speeds = (f"{system['images_per_s']:.0f}", f"{system['times_pillow']:.1f}")
                cpu = (f"{system['cpu_ms_per_image']:.2f}", f"{system['pillow_cpu_ratio']:.1f}")
                table.add_row(kind, workers, name, *speeds, *cpu)
    console.print(table)


def main() -> None:
    parser = argument_parser("Measure the Python API without DALI.")
    parser.add_argument("--fhd", type=Path, help="folder of PNG photographs of 1920x1080 pixels")
    parser.add_argument("--photos", type=Path, help="folder of PNG photographs of at least 500x375 pixels")
    parser.add_argument("--rounds", type=int, default=21, help="timed batches for each number of threads")
    parser.add_argument("--epochs", type=int, default=5, help="timed runs of each DataLoader")
    parser.add_argument("--seconds", type=float, default=2, help="rough length of such a run")
    arguments = parser.parse_args()

    others = OthersLoad()
    batches, loaders, targets = {}, {}, []
    for name, (shape, count, target) in BATCHES.items():
        folder = arguments.fhd if name == "FHD" else arguments.photos
        batches[name] = measure_threads(datasets.load_sized(folder, *shape), count, arguments.rounds)
        targets.append(Target(f"decode_batch, {name}: 2 threads / 1", batches[name]["gain"]["2 threads"], target))
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), datasets.load_sized(arguments.fhd, *SIZE))
        for kind, target in TARGETS.items():
            loaders[kind] = measure_loaders(Path(folder), kind, arguments.epochs, arguments.seconds)
            for workers, measured in loaders[kind].items():
                targets.append(Target(f"{kind}, {workers}: L3 / Pillow", measured["L3"]["times_pillow"], target))
    show(batches, loaders)
    results = {
        "settings": {
            "torch": torch.__version__,
            "batch_size": BATCH_SIZE,
            "files": FILES,
            "size": list(SIZE),
            "window": list(WINDOW),
            **settings_of(arguments, "rounds", "epochs", "seconds"),
        },
        "cpu_share_of_other_processes": others.share(),
        "decode_batch": batches,
        "data_loader": loaders,
    }
    write_results("python_api", results, targets, arguments.out)


if __name__ == "__main__":
    main()
