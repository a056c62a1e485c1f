"""Makes image sets from real photographs: 16-bit samples, label maps, binary masks, photographs of any size, and JPEG.

    python benchmarks/datasets.py OUT [FOLDER ...]

writes a folder of PNG or JPEG files for each set. The photographs are those in the folders, or those that come with
scikit-image. Everything is deterministic.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

import imagecodecs
import numpy as np
from PIL import Image
from scipy.cluster.vq import kmeans2
from scipy.ndimage import gaussian_filter, mean
from skimage import color, data, filters, segmentation, transform

Images = dict[str, np.ndarray]

SEED = 4  # of views
JPEG_SIZES = {
    "500x375": (375, 500),
    "1920x1080": (1080, 1920),
}  # height, width in pixels: as in ImageNet; FHD
JPEG_QUALITY = 90
LABEL_MAP_WIDTH = 1024  # pixels at most: the usual size of annotated photographs
DEEP_HEIGHT = 540  # rows, about: what is left of a photograph after averaging to gain depth


def bundled_photos() -> Images:
    """The photographs in scikit-image's wheel, uint8 (H, W, 3); some of them were JPEG files."""
    names = ("astronaut", "chelsea", "coffee", "hubble_deep_field", "immunohistochemistry", "retina", "rocket")
    photos = {name: getattr(data, name)() for name in names}
    photos["motorcycle"], _, _ = data.stereo_motorcycle()
    return photos


def read_photos(folder: Path) -> Images:
    """All PNG images in a folder, as RGB: uint8 (H, W, 3)."""
    paths = sorted(folder.glob("*.png"))
    if not paths:
        raise SystemExit(f"{folder}: no PNG files")
    return {path.stem: np.asarray(Image.open(path).convert("RGB")) for path in paths}


def enlarge(photo: np.ndarray, height: int, width: int) -> np.ndarray:
    """A photograph of the size asked for: repeated by reflection, which keeps its statistics without seams, or cut."""
    rows, columns = photo.shape[:2]
    padding = ((0, max(0, height - rows)), (0, max(0, width - columns)), (0, 0))
    return np.ascontiguousarray(np.pad(photo, padding, mode="symmetric")[:height, :width])


def shrink(photo: np.ndarray, height: int, width: int) -> np.ndarray:
    """A photograph scaled down by averaging over areas."""
    return np.asarray(Image.fromarray(photo).resize((width, height), Image.Resampling.BOX))


def view(photo: np.ndarray, size: tuple[int, int], number: int) -> np.ndarray:
    """An image cut from a photograph at a place, and flipped in a way, that the number decides.

    The photograph is extended by reflection, so that a view as large as the photograph can be shifted, too.
    """
    rng = np.random.default_rng((SEED, number))
    height, width = size
    margins = ((height // 2, height - height // 2), (width // 2, width - width // 2), (0, 0))
    extended = np.pad(photo, margins, mode="symmetric")
    top, left = (rng.integers(extended.shape[axis] - size[axis] + 1) for axis in (0, 1))
    rows, columns = rng.choice([1, -1], 2)
    return np.ascontiguousarray(extended[top : top + height, left : left + width][::rows, ::columns])


def scaled_view(photo: np.ndarray, size: tuple[int, int], number: int) -> np.ndarray:
    """A view of the photograph scaled down, at most to this size, by a factor that the number decides."""
    rows, columns = photo.shape[:2]
    factor = np.random.default_rng((SEED, number, 1)).uniform(1, max(1, min(rows / size[0], columns / size[1])))
    return view(shrink(photo, round(rows / factor), round(columns / factor)), size, number)


# ---- 16 bits ---------------------------------------------------------------------------------------------------------


def _linear(photo: np.ndarray) -> np.ndarray:
    """Light intensity, 0 … 1, averaged over squares of pixels, which gives it more levels than the photograph's 256."""
    factor = max(2, round(photo.shape[0] / DEEP_HEIGHT))
    rows, columns = (size // factor * factor for size in photo.shape[:2])
    value = photo[:rows, :columns] / 255
    light = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)  # the inverse of sRGB's curve
    return transform.downscale_local_mean(light, (factor, factor, 1))


def rgb16(photo: np.ndarray) -> np.ndarray:
    """Linear RGB that uses the whole range of uint16."""
    return np.round(_linear(photo) * 65535).astype(np.uint16)


def gray16(photo: np.ndarray) -> np.ndarray:
    """Linear luminance that uses the whole range of uint16."""
    return np.round(color.rgb2gray(_linear(photo)) * 65535).astype(np.uint16)


def gray12(photo: np.ndarray) -> np.ndarray:
    """Linear luminance of 12 bits, 0 … 4095, as sensors and medical devices store it."""
    return np.round(color.rgb2gray(_linear(photo)) * 4095).astype(np.uint16)


def gray12_shifted(photo: np.ndarray) -> np.ndarray:
    """The 12 bits of `gray12` in the high bits of a sample, as many converters store them."""
    return gray12(photo) << 4


def gray8_repeated(photo: np.ndarray) -> np.ndarray:
    """Luminance of 8 bits made 16 by multiplication with 257, which repeats the byte."""
    return np.round(color.rgb2gray(photo) * 255).astype(np.uint16) * 257


# ---- label maps and masks --------------------------------------------------------------------------------------------


def _annotated_size(photo: np.ndarray) -> np.ndarray:
    height, width = photo.shape[:2]
    if width <= LABEL_MAP_WIDTH:
        return photo
    return shrink(photo, height * LABEL_MAP_WIDTH // width, LABEL_MAP_WIDTH)


def _cluster(features: np.ndarray, labels: int) -> np.ndarray:
    """Assigns each row of `features` to one of `labels` clusters."""
    return kmeans2(features, labels, minit="++", rng=0)[1].astype(np.uint8)


def _cluster_segments(photo: np.ndarray, segments: np.ndarray, labels: int) -> np.ndarray:
    """Gives segments of similar mean colour the same label."""
    numbers = np.unique(segments)
    colours = np.stack([mean(photo[..., channel], segments, numbers) for channel in range(3)], axis=1)
    table = np.zeros(segments.max() + 1, np.uint8)
    table[numbers] = _cluster(colours, min(labels, len(numbers)))
    return table[segments]


def labels_of_pixels(photo: np.ndarray) -> np.ndarray:
    """8 labels: blurred colours, clustered. Many small regions, as an unrefined segmentation has them."""
    photo = _annotated_size(photo)
    blurred = gaussian_filter(photo.astype(np.float32), (3, 3, 0))
    return _cluster(blurred.reshape(-1, 3), 8).reshape(photo.shape[:2])


def labels_of_superpixels(photo: np.ndarray) -> np.ndarray:
    """12 labels: 400 superpixels, clustered by colour. Compact regions with smooth borders."""
    photo = _annotated_size(photo)
    return _cluster_segments(photo, segmentation.slic(photo, 400, compactness=20, start_label=0), 12)


def labels_of_regions(photo: np.ndarray) -> np.ndarray:
    """20 labels: a graph-based segmentation, clustered by colour. Regions of every size with ragged borders."""
    photo = _annotated_size(photo)
    return _cluster_segments(photo, segmentation.felzenszwalb(photo, scale=300, sigma=1.5, min_size=100), 20)


def mask_by_threshold(photo: np.ndarray) -> np.ndarray:
    """0 or 255: blurred luminance against Otsu's threshold."""
    blurred = gaussian_filter(color.rgb2gray(_annotated_size(photo)), 2)
    return (blurred > filters.threshold_otsu(blurred)).astype(np.uint8) * 255


def mask_of_label(photo: np.ndarray) -> np.ndarray:
    """0 or 255: the commonest label of the superpixels against the others."""
    labels = labels_of_superpixels(photo)
    return (labels == np.bincount(labels.ravel()).argmax()).astype(np.uint8) * 255


SETS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], ...]] = {
    "16-bit gray": (gray16, gray12),
    "16-bit gray of fewer bits": (gray12_shifted, gray8_repeated),
    "16-bit RGB": (rgb16,),
    "label maps": (labels_of_pixels, labels_of_superpixels, labels_of_regions),
    "binary masks": (mask_by_threshold, mask_of_label),
}


def make_set(name: str, photos: Images) -> Images:
    """One of `SETS` made from photographs: every photograph by every function of the set."""
    return {f"{photo}-{make.__name__}": make(photos[photo]) for photo in photos for make in SETS[name]}


# ---- command line ----------------------------------------------------------------------------------------------------


def write_set(folder: Path, images: Images) -> None:
    """Writes PNG files of level 6, 8 or 16 bits."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, image in images.items():
        (folder / f"{name}.png").write_bytes(imagecodecs.png_encode(image, level=6))


def write_jpegs(folder: Path, photos: Images, size: tuple[int, int], count: int) -> list[Path]:
    """Writes JPEG files, with subsampled colours as Pillow does by default: views of the photographs in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{number:04}.jpg" for number in range(count)]
    for number, path in enumerate(paths):
        image = scaled_view(list(photos.values())[number % len(photos)], size, number)
        Image.fromarray(image).save(path, quality=JPEG_QUALITY)
    return paths


def load(folders: Iterable[Path]) -> dict[str, Images]:
    """The photographs by folder name; those of scikit-image where no folder is given."""
    return {folder.name: read_photos(folder) for folder in folders} or {"scikit-image": bundled_photos()}


def load_together(folders: Iterable[Path]) -> Images:
    """The photographs of all folders; those of scikit-image where no folder is given."""
    return {name: photo for photos in load(folders).values() for name, photo in photos.items()}


def load_sized(folder: Path | None, height: int, width: int) -> Images:
    """The photographs of a folder scaled down to a size; those of scikit-image, enlarged, where no folder is given."""
    if folder is None:
        return {name: enlarge(photo, height, width) for name, photo in bundled_photos().items()}
    return {name: shrink(photo, height, width) for name, photo in read_photos(folder).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Make image sets from photographs.")
    parser.add_argument("out", type=Path, help="folder to write to")
    parser.add_argument("folders", type=Path, nargs="*", help="folders of PNG photographs (default: scikit-image's)")
    parser.add_argument("--jpegs", type=int, default=160, help="files of each JPEG set")
    arguments = parser.parse_args()

    photos = load_together(arguments.folders)
    for name in SETS:
        write_set(arguments.out / name.replace(" ", "-"), make_set(name, photos))
    for name, size in {"fhd": (1080, 1920), "uhd": (2160, 3840)}.items():
        write_set(arguments.out / name, {key: enlarge(photo, *size) for key, photo in photos.items()})
    for name, size in JPEG_SIZES.items():
        write_jpegs(arguments.out / f"jpeg-{name}", photos, size, arguments.jpegs)


if __name__ == "__main__":
    main()
