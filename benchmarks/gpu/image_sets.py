"""The sets of images that the GPU decoder's kernels are counted on: one batch each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import datasets
import numpy as np

FHD = 1080, 1920
SMALL = 224, 224
SMALL_IMAGES = 32
Images = list[np.ndarray]

# Values of l3_color and l3_sample.
NATIVE, GRAY, BGR, FLOAT32 = 0, 3, 2, 7


@dataclass(frozen=True)
class ImageSet:
    """Images of one batch, and what they are decoded to."""

    make: Callable[[Images, Images], Images]  # of photographs and graphics, RGB of FHD size
    profile: str = "fast"
    color: int = NATIVE
    sample: int = NATIVE

    @property
    def converts(self) -> bool:
        return (self.color, self.sample) != (NATIVE, NATIVE)

    def output_sample_bytes(self, images: Images) -> int:
        return 4 if self.sample == FLOAT32 else images[0].itemsize


def photographs(photos: Images, graphics: Images) -> Images:
    return photos


def gray(photos: Images, graphics: Images) -> Images:
    return [np.ascontiguousarray(photo[..., 1]) for photo in photos]


def small(photos: Images, graphics: Images) -> Images:
    """Parts of photographs that were scaled down, so that they show as much as such images do."""
    height, width = SMALL
    halves = [datasets.shrink(photo, 2 * height, 4 * width) for photo in photos]
    parts = [half[y:, x:][:height, :width] for half in halves for y in (0, height) for x in range(0, 4 * width, width)]
    return [np.ascontiguousarray(parts[number % len(parts)]) for number in range(SMALL_IMAGES)]


def made_by(*makers: Callable[[np.ndarray], np.ndarray]) -> Callable[[Images, Images], Images]:
    return lambda photos, graphics: [make(photo) for make in makers for photo in photos]


SETS = {
    "photographs": ImageSet(photographs),
    "photographs, gray": ImageSet(gray),
    "graphics": ImageSet(lambda photos, graphics: graphics),
    "224x224": ImageSet(small),
    **{name: ImageSet(made_by(*datasets.SETS[name])) for name in datasets.SETS if name.startswith("16-bit")},
    "labels of pixels": ImageSet(made_by(datasets.labels_of_pixels)),
    "labels of superpixels": ImageSet(made_by(datasets.labels_of_superpixels)),
    "binary masks": ImageSet(made_by(*datasets.SETS["binary masks"])),
    "photographs to gray": ImageSet(photographs, color=GRAY),
    "photographs to BGR": ImageSet(photographs, color=BGR),
    "photographs to float32": ImageSet(photographs, sample=FLOAT32),
    "photographs, raw": ImageSet(photographs, "raw"),
    "photographs, paper": ImageSet(photographs, "paper"),
}
