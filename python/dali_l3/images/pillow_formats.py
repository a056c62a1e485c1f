"""JPEG, WebP and BMP files to arrays."""

from __future__ import annotations

import io
import threading

import numpy as np
from PIL import Image, UnidentifiedImageError

from .stored import ImageError, ReadOptions, StoredImage, admit


def read(data: bytes, options: ReadOptions) -> StoredImage:
    """Formats of 8 bits per sample, which Pillow reads as they are."""
    notes = []
    with _open_with_pillow(data) as image:
        admit(*image.size, len(image.getbands()), options)
        frames = getattr(image, "n_frames", 1)
        if image.format == "MPO":
            # Phones append previews and gain maps to ordinary photographs; every viewer shows the first picture.
            notes.append(f"the first of {frames} pictures in the file was taken")
        elif frames > 1:
            raise ImageError(f"animated {image.format} ({frames} frames)")
        if image.mode == "CMYK":
            raise ImageError("CMYK colours: convert to RGB first, with the right colour profile")
        target_mode = {"1": "L", "P": "RGB"}.get(image.mode, image.mode)
        if target_mode not in ("L", "RGB", "RGBA"):
            raise ImageError(f"pixels of Pillow's mode {image.mode} are not supported")
        pixels = np.asarray(image.convert(target_mode))
        icc, exif, xmp = (image.info.get(key) or b"" for key in ("icc_profile", "exif", "xmp"))
        return StoredImage(pixels, icc, exif, xmp, notes=notes)


_pillow_limit = threading.Lock()


def _open_with_pillow(data: bytes) -> Image.Image:
    """Reads the header. Pillow's own limit, a global that it looks at here, gives way to `max_pixels`."""
    with _pillow_limit:
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            return Image.open(io.BytesIO(data), formats=("JPEG", "WEBP", "BMP"))
        except UnidentifiedImageError:  # which names the object in memory
            raise ValueError("its header cannot be read") from None
        finally:
            Image.MAX_IMAGE_PIXELS = limit
