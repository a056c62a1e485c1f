"""Several windows of each image, as contrastive learning and detection want them: each tile is decoded once.

python examples/windows.py data/l3
"""

import argparse

import numpy as np
from nvidia.dali import fn, pipeline_def, types

import dali_l3.fn

BATCH_SIZE, COUNT, SIZE = 8, 4, 96  # images, windows of each, rows and columns of a window
generator = np.random.default_rng(0)


def draw_windows(shape: np.ndarray) -> np.ndarray:
    """Rows of y, x, height and width, inside an image of that shape."""
    starts = generator.integers(0, shape[:2] - SIZE + 1, (COUNT, 2))
    return np.concatenate([starts, np.full((COUNT, 2), SIZE)], axis=1).astype(np.int32)


@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, device_id=None, seed=0, exec_dynamic=True)
def pipeline(folder: str):
    encoded, labels = fn.readers.file(file_root=folder, file_filters=["*.l3"])
    windows = fn.python_function(fn.peek_image_shape(encoded), function=draw_windows)
    images = dali_l3.fn.decoders.l3(encoded, windows=windows)  # (windows, height, width, channels)
    # What follows treats the windows as frames of a video.
    images = fn.crop_mirror_normalize(images, mean=[127.5], std=[127.5], dtype=types.FLOAT, output_layout="FCHW")
    return images, windows, labels


def main() -> None:
    parser = argparse.ArgumentParser(description="Decode several windows of each image with DALI.")
    parser.add_argument("folder", help="folder with a subfolder of .l3 files for each class")
    folder = parser.parse_args().folder

    images, windows, labels = pipeline(folder).run()
    for i in range(2):
        places = ", ".join(f"({y}, {x})" for y, x, _, _ in windows.at(i))
        print(f"image {i} of class {labels.at(i)[0]}: {images.at(i).shape}, windows at {places}")


if __name__ == "__main__":
    main()
