"""Measures lossy formats at several qualities: size, decoding throughput, PSNR and SSIM.

Sizes by codec and quality factor as in table II of Behme et al., "The Art of Losing to Win: Using Lossy Image
Compression to Improve Data Loading in Deep Learning Pipelines" (ICDE 2023), beside the throughput of its section V.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from skimage.metrics import structural_similarity

from ..images.formats import SOURCE, find_format
from .encoding import EncodedFile, EncodedSample
from .isolation import call_isolated
from .measuring import Setting, Throughput, first_in_memory, measure

_MOST_COMPARED = 8  # images: the structural similarity takes one to two seconds for each
_SSIM_WINDOW = 7  # pixels


@dataclass(frozen=True)
class Quality:
    """A lossy format at one quality.

    format: its name, as jpeg@90
    images: of the sample, those that the format holds; all figures are of them
    image_bytes, pixel_bytes: of a file, and of its pixels, on average
    lossless_bytes: of a file in the lossless format that takes least, on average; None if the sample has none
    decode: images/s of decoding from memory
    psnr, least_psnr: in dB, the average and the least of the images with changed pixels; None if there are none
    ssim: average structural similarity to the original, of 8 images at most; None without an original in a lossless
        format, or where all are smaller than its window of 7 pixels
    """

    format: str
    images: int
    image_bytes: float
    pixel_bytes: float
    lossless_bytes: float | None
    decode: Throughput
    psnr: float | None
    least_psnr: float | None
    ssim: float | None


def sweep(
    names: Sequence[str],
    sample: EncodedSample,
    setting: Setting,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> list[Quality]:
    """Measures lossy formats on the sample. Formats that hold none of its images are left out.

    names: of `sample.files`
    progress: called with what is measured, how many formats are done, and of how many
    """
    lossless = [name for name in sample.files if name != SOURCE and not find_format(name).lossy]
    reference = min(lossless, key=lambda name: sum(file.size for file in sample.files[name]), default=None)
    qualities = []
    for number, name in enumerate(names):
        progress(f"measuring {name}", number, len(names))
        held = [index for index, file in enumerate(sample.files[name]) if file.format == name]
        if held:
            qualities.append(_measure(name, held, reference, sample, setting))
    return qualities


def ssim(changed: np.ndarray, original: np.ndarray) -> float | None:
    """The structural similarity of two images of the same shape, (H, W) or (H, W, C), uint8.

    None if a side has less than 7 pixels.
    """
    if min(original.shape[:2]) < _SSIM_WINDOW:
        return None
    channel_axis = 2 if original.ndim == 3 else None
    return float(structural_similarity(changed, original, win_size=_SSIM_WINDOW, channel_axis=channel_axis))


def _measure(name: str, held: list[int], reference: str | None, sample: EncodedSample, setting: Setting) -> Quality:
    files = [sample.files[name][index] for index in held]
    psnr = [file.psnr for file in files if file.psnr is not None]
    lossless_bytes, similarities = None, []
    if reference is not None:
        originals = [sample.files[reference][index] for index in held]
        lossless_bytes = statistics.fmean(file.size for file in originals)
        pairs = list(zip(files, originals, strict=True))[:: -(-len(held) // _MOST_COMPARED)]
        compared = (_compare(file, original) for file, original in pairs)
        similarities = [similarity for similarity in compared if similarity is not None]
    in_memory = first_in_memory([file.path for file in files], setting.batch_size)
    return Quality(
        name,
        len(held),
        statistics.fmean(file.size for file in files),
        statistics.fmean(sample.raw_sizes[index] for index in held),
        lossless_bytes,
        call_isolated(measure, in_memory, setting, load=False).throughput,
        statistics.fmean(psnr) if psnr else None,
        min(psnr, default=None),
        statistics.fmean(similarities) if similarities else None,
    )


def _compare(file: EncodedFile, original: EncodedFile) -> float | None:
    changed = _read(file)
    return ssim(changed, _read(original).reshape(changed.shape))  # gray is (H, W, 1) in L3, else (H, W)


def _read(file: EncodedFile) -> np.ndarray:
    with open(file.path, "rb") as stream:
        return find_format(file.format).decode(stream.read())[0]
