"""Datasets of small files in several formats, and what readers deliver of them."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from nvidia.dali import Pipeline, fn

import dali_l3
from image_files import png_chunk

# Enough for a reader, which looks at headers only.
HEADERS = {
    "l3": dali_l3.encode(np.zeros((1, 1), np.uint8)),
    "png": b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", bytes([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0])),
    "jpg": b"\xff\xd8\xff\xc0\0\2\xff\xda\0\2",
    "bmp": b"BM" + struct.pack("<IIIIiiHHIIiiII", 58, 0, 54, 40, 1, 1, 1, 24, 0, 4, 0, 0, 0, 0) + bytes(4),
    "webp": b"RIFF\x08\0\0\0WEBPVP8L",
}


def write_dataset(root: Path, counts: dict[str, int], classes: int = 3, size: int = 300) -> list[Path]:
    """Writes files with a format's header and a content of their own, dealt to class folders; returns their paths."""
    generator = np.random.default_rng(0)
    names = [f"{i:04d}.{extension}" for extension, count in counts.items() for i in range(count)]
    paths = [root / f"class{i % classes}" / name for i, name in enumerate(generator.permutation(names))]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = generator.integers(0, 256, generator.integers(size // 2, size), np.uint8).tobytes()
        path.write_bytes(HEADERS[path.suffix[1:]] + content)
    return sorted(paths)


def grow(root: Path, tree: list[str]) -> str:
    """Makes files with contents of their own; of "path/" an empty folder, of "path -> target" a link."""
    for item in tree:
        path, _, target = item.partition(" -> ")
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if target:
            (root / path).symlink_to(target)
        elif path.endswith("/"):
            (root / path).mkdir()
        else:
            (root / path).write_bytes(HEADERS.get(Path(path).suffix[1:].lower(), HEADERS["png"]) + path.encode())
    return str(root)


@dataclass(frozen=True)
class Delivered:
    """A sample as it left a reader."""

    path: str
    label: int
    files: tuple[bytes, ...]

    @property
    def format(self) -> str:
        return Path(self.path).suffix[1:]


class Reading:
    """A pipeline that consists of a reader."""

    def __init__(
        self,
        reader,
        *,
        batch_size=4,
        pipeline_seed=7,
        checkpoint=None,
        checkpointing=None,
        exec_dynamic=True,
        **arguments,
    ):
        checkpointing = checkpoint is not None if checkpointing is None else checkpointing
        self.pipeline = Pipeline(
            batch_size=batch_size,
            num_threads=2,
            device_id=None,
            seed=pipeline_seed,
            exec_dynamic=exec_dynamic,
            enable_checkpointing=checkpointing,
            checkpoint=checkpoint,
        )
        with self.pipeline:
            self.pipeline.set_outputs(*reader(name="reader", **arguments))
        self.pipeline.build()

    def batch(self) -> list[Delivered]:
        *files, labels = self.pipeline.run()
        return [
            Delivered(
                files[0][i].source_info(), int(np.array(labels[i])[0]), tuple(np.array(f[i]).tobytes() for f in files)
            )
            for i in range(len(labels))
        ]

    def batches(self, count: int) -> list[list[Delivered]]:
        return [self.batch() for _ in range(count)]

    def pass_over(self, count: int) -> None:
        """Runs batches without a look at them."""
        for _ in range(count):
            self.pipeline.run()

    def statistics(self) -> dict:
        return dali_l3.reader_stats(self.pipeline, "reader")


def read(reader, batches: int, **arguments) -> list[Delivered]:
    """The samples of the first batches."""
    return [sample for batch in Reading(reader, **arguments).batches(batches) for sample in batch]


def format_counts(samples: list[Delivered]) -> Counter[str]:
    return Counter(sample.format for sample in samples)


def file_reader(**arguments):
    """DALI's own."""
    return fn.readers.file(**arguments)
