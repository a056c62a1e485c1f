"""Writes the small dataset that the other examples read: photographs in class folders, and a mask for each.

python examples/photos.py data/

Makes data/images/CLASS/00.png, … and data/masks/CLASS/00.png, … from photographs that are part of scikit-image.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

CLASSES = ("astronaut", "chelsea", "coffee", "rocket")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write crops of four photographs, a class each, and their masks.")
    parser.add_argument("folder", type=Path, help="folder to write to")
    parser.add_argument("--count", type=int, default=12, help="images of each class")
    parser.add_argument("--height", type=int, default=200, help="of an image, pixels")
    parser.add_argument("--width", type=int, default=300, help="of an image, pixels")
    arguments = parser.parse_args()

    generator = np.random.default_rng(0)
    size = arguments.height, arguments.width
    for name in CLASSES:
        photo = getattr(data, name)()
        for folder in ("images", "masks"):
            (arguments.folder / folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(arguments.count):
            top, left = (generator.integers(full - part + 1) for full, part in zip(photo.shape, size, strict=False))
            crop = photo[top : top + size[0], left : left + size[1]]
            mask = np.where(crop.mean(axis=2) > photo.mean(), 255, 0).astype(np.uint8)  # where it is bright
            Image.fromarray(crop).save(arguments.folder / "images" / name / f"{number:02d}.png")
            Image.fromarray(mask).save(arguments.folder / "masks" / name / f"{number:02d}.png")
    print(f"{len(CLASSES) * arguments.count} images and masks in {arguments.folder}")


if __name__ == "__main__":
    main()
