"""The meaning of the samples of a TIFF image, as in TIFF 6.0, and their conversion to pixels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..stored import PALETTE_DROPPED, PALETTE_EXPANDED, DamagedImageError, ImageError, ReadOptions, strips
from .compression import COMPRESSION
from .directories import Directory
from .layout import Layout

PHOTOMETRIC = 262
_COLOUR_MAP, _EXTRA_SAMPLES, _SAMPLE_FORMAT, _INDEXED = 320, 338, 339, 346
_YCBCR_COEFFICIENTS, _REFERENCE_BLACK_WHITE = 529, 532

_WHITE_IS_ZERO, _BLACK_IS_ZERO, _RGB, PALETTE, _YCBCR = 0, 1, 2, 3, 6
_REFUSED = {
    4: "TIFF of a transparency mask: convert it to gray first",
    5: "CMYK colours: convert to RGB first, with the right colour profile",
    8: "CIELAB colours: convert to RGB first",
    9: "ICCLAB colours: convert to RGB first",
    10: "ITULAB colours: convert to RGB first",
    32803: "raw samples of a camera's sensor (CFA): develop the image first",
    32844: "LogL samples: convert to gray of 16 bits first",
    32845: "LogLuv colours: convert to RGB of 16 bits first",
    34892: "linear raw samples of a camera: develop the image first",
}
_FORMATS = {
    2: "signed samples: shift them into the range of uint8 or uint16 first",
    3: "floating-point samples: scale them to uint16 first",
    4: "samples of undefined format: store them as unsigned integers first",
    5: "complex samples: store their parts as unsigned integers first",
    6: "complex samples: scale their parts to uint16 first",
}
_NAMES = {_WHITE_IS_ZERO: "gray", _BLACK_IS_ZERO: "gray", _RGB: "RGB", PALETTE: "palette", _YCBCR: "YCbCr"}
_PREMULTIPLIED_ALPHA, _ALPHA = 1, 2
_JPEG = 7
_JPEG_COEFFICIENTS = (0.299, 0.587, 0.114)


@dataclass
class Colours:
    """The meaning of an image's samples.

    inverted: whether 0 is white
    palette: (entries, 3), uint8 or uint16, for samples that are numbers of its entries
    notes: sentences about what was changed, or is not known
    """

    photometric: int
    inverted: bool = False
    palette: np.ndarray | None = None
    notes: list[str] = field(default_factory=list)


def read_colours(directory: Directory, layout: Layout) -> Colours:
    """The meaning of the samples. Raises ImageError where tags contradict one another, or are not supported."""
    if PHOTOMETRIC not in directory:
        raise ImageError("TIFF without the required tag PhotometricInterpretation: its colours are unknown")
    photometric = directory.integer(PHOTOMETRIC)
    _check_format(directory, layout)
    if photometric in _REFUSED:
        raise ImageError(_REFUSED[photometric])
    if photometric not in (_WHITE_IS_ZERO, _BLACK_IS_ZERO, _RGB, PALETTE, _YCBCR):
        raise ImageError(f"TIFF with photometric interpretation {photometric} is not supported")
    if layout.bits not in (1, 2, 4, 8, 16):
        raise ImageError(f"TIFF with {layout.bits} bits per sample; 1, 2, 4, 8 and 16 are supported")
    if directory.integer(_INDEXED) == 1 and photometric != PALETTE:
        raise ImageError("TIFF of indexed colours without a palette of its own: convert to RGB first")

    notes = _check_samples(directory, layout, photometric)
    colours = Colours(photometric, photometric == _WHITE_IS_ZERO, notes=notes)
    if photometric == PALETTE:
        colours.palette = _read_palette(directory, layout, notes)
    elif photometric == _YCBCR:
        _check_ycbcr(directory, layout, notes)
    return colours


def _check_format(directory: Directory, layout: Layout) -> None:
    for value in directory.integers(_SAMPLE_FORMAT, layout.samples).tolist():
        if value != 1:
            raise ImageError("TIFF of " + _FORMATS.get(value, f"samples of the unknown format {value}"))


def _check_samples(directory: Directory, layout: Layout, photometric: int) -> list[str]:
    """Makes sure that the number of samples suits the colours. Returns notes about extra samples."""
    colours = 3 if photometric in (_RGB, _YCBCR) else 1
    extra = layout.samples - colours
    values = directory.entries[_EXTRA_SAMPLES].count if _EXTRA_SAMPLES in directory else 0
    kinds = directory.integers(_EXTRA_SAMPLES, max(0, extra)).tolist()
    name = _NAMES[photometric]
    if extra < 0 or values not in (0, extra):
        raise DamagedImageError(
            f"damaged TIFF file: {name} colours do not go with {layout.samples} as SamplesPerPixel "
            f"and {values} values of ExtraSamples"
        )
    if photometric == _WHITE_IS_ZERO and extra > 1:
        raise ImageError(f"TIFF of {layout.samples} samples a pixel with WhiteIsZero, which is only for gray")
    if photometric in (PALETTE, _YCBCR) and extra:
        raise ImageError(f"TIFF with extra samples beside {name} colours: convert to RGBA first")
    if layout.samples > 4:
        raise ImageError(f"TIFF with {layout.samples} channels; at most 4 are supported")
    notes = []
    if _PREMULTIPLIED_ALPHA in kinds:
        notes.append("premultiplied alpha kept as stored")
    if extra and not set(kinds) & {_PREMULTIPLIED_ALPHA, _ALPHA} or len(kinds) > 1:
        notes.append("extra samples of unknown meaning kept as stored")
    return notes


def _read_palette(directory: Directory, layout: Layout, notes: list[str]) -> np.ndarray:
    """The colours as (entries, 3), of 16 bits only where 8 do not hold them."""
    entries = 1 << layout.bits
    values = directory.integers(_COLOUR_MAP, 3 * entries)
    if values.size != 3 * entries or directory.entries[_COLOUR_MAP].count != 3 * entries:
        raise DamagedImageError(f"damaged TIFF file: its palette does not hold {entries} colours")
    colours = values.reshape(3, entries).T.astype(np.uint16)
    if colours.max() < 256:
        if colours.any():
            notes.append("palette values taken as 8-bit colours, since all are below 256")
        return colours.astype(np.uint8)
    if not (colours % 257).any() or not (colours % 256).any():
        return (colours >> 8).astype(np.uint8)
    return colours


def _check_ycbcr(directory: Directory, layout: Layout, notes: list[str]) -> None:
    if directory.integer(COMPRESSION, 1) != _JPEG:
        raise ImageError("YCbCr colours without JPEG compression: convert to RGB first")
    if layout.separate:
        raise ImageError("YCbCr colours in separate planes: convert to RGB first")
    coefficients = directory.rationals(_YCBCR_COEFFICIENTS, 3)
    if coefficients and not np.allclose(coefficients, _JPEG_COEFFICIENTS, atol=1e-3):
        raise ImageError("YCbCr colours with other coefficients than those of JPEG: convert to RGB first")
    levels = directory.rationals(_REFERENCE_BLACK_WHITE, 6)
    if levels and levels != [0, 255, 128, 255, 128, 255]:
        notes.append("ReferenceBlackWhite ignored, as JPEG decoders do")


def bytes_per_pixel(layout: Layout, colours: Colours, options: ReadOptions) -> int:
    """Bytes of a pixel that `to_pixels` returns."""
    if colours.palette is not None and options.palette == "rgb":
        return 3 * colours.palette.itemsize
    return layout.samples * (2 if layout.bits == 16 else 1)


def to_pixels(samples: np.ndarray, bits: int, colours: Colours, options: ReadOptions) -> np.ndarray:
    """Samples of so many bits, (H, W, C), to pixels, (H, W) or (H, W, C). The samples change, or become the pixels."""
    if colours.palette is not None:
        return _look_up(samples[:, :, 0], colours.palette, colours, options)
    top = (1 << bits) - 1
    if colours.inverted:
        samples[:, :, 0] ^= samples.dtype.type(top)  # not the alpha channel
    if bits < 8:
        samples *= np.uint8(255 // top)
    return samples if samples.shape[2] > 1 else samples[:, :, 0]


def _look_up(indices: np.ndarray, palette: np.ndarray, colours: Colours, options: ReadOptions) -> np.ndarray:
    if options.palette == "index":
        colours.notes.append(PALETTE_DROPPED)
        return indices
    colours.notes.append(PALETTE_EXPANDED)
    pixels = np.empty((*indices.shape, 3), palette.dtype)
    for rows in strips(len(pixels), pixels[0].nbytes):
        pixels[rows] = palette[indices[rows]]
    return pixels
