"""A representative sample of a dataset."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field

from ..errors import ConversionError
from ..images.signatures import READABLE_FORMATS, sniff_file
from ..jobs.walking import walk

_OTHERS = {  # what a dataset without images may hold
    "L3": "; convert its L3 files with `dali-l3 export` first",
    "NPY": "; fn.decoders.image does not decode its NPY files",
}


@dataclass(frozen=True)
class Dataset:
    """The images of a tree.

    files, sizes: paths and bytes of those that can be profiled, in the order of the tree
    other_sizes: bytes of those that can only be converted, NPY files
    """

    files: list[str]
    sizes: list[int]
    other_sizes: list[int] = field(default_factory=list)

    @property
    def images(self) -> int:
        """How many there are of both."""
        return len(self.sizes) + len(self.other_sizes)

    @property
    def bytes(self) -> int:
        """Of both."""
        return sum(self.sizes) + sum(self.other_sizes)


def list_images(root: str, with_l3: bool = False) -> Dataset:
    """Lists the images in the tree `root` that can be converted, told by their content; with `with_l3` also L3 files.

    Files that cannot be opened are passed over.

    Raises:
        ConversionError: `root` is not a folder, or has no images that can be profiled.
    """
    if not os.path.isdir(root):
        raise ConversionError(f"{root}: " + ("not a folder" if os.path.exists(root) else "no such folder"))
    paths = [os.path.join(root, file) for file in walk(root).files]
    formats = {path: _format_of(path) for path in paths}
    wanted = {*READABLE_FORMATS, *(("L3",) if with_l3 else ())} - {"NPY"}
    files = [path for path, format in formats.items() if format in wanted]
    if not files:
        found = set(formats.values())
        reasons = "".join(why for format, why in _OTHERS.items() if format in found)
        raise ConversionError(f"{root}: no images that can be profiled{reasons}")
    others = [path for path, format in formats.items() if format == "NPY"]
    return Dataset(files, list(map(os.path.getsize, files)), list(map(os.path.getsize, others)))


def choose_sample(dataset: Dataset, count: int, seed: int = 0) -> list[str]:
    """Chooses `count` images, or all if there are fewer, stratified by folder and by size.

    A systematic sample: at even intervals, from a random start, of a list that is sorted by folder and then by size.
    Each folder gets its share, to within one image, and so does each range of sizes in it. Returns paths in random
    order, so that the first of them stand for the dataset, too.
    """
    images = zip(dataset.files, dataset.sizes, strict=True)
    by_size = [path for path, _ in sorted(images, key=lambda image: (os.path.dirname(image[0]), image[1]))]
    count = min(count, len(by_size))
    rng = random.Random(seed)
    start = rng.randrange(len(by_size))  # in parts of an image, of which an interval has as many as there are images
    chosen = [by_size[(start + len(by_size) * number) // count] for number in range(count)]
    rng.shuffle(chosen)
    return chosen


def _format_of(path: str) -> str | None:
    try:
        return sniff_file(path)
    except OSError:
        return None
