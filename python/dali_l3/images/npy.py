"""NPY files to arrays."""

from __future__ import annotations

import io
import math

import numpy as np

from .stored import ImageError, ReadOptions, StoredImage, admit


def read(data: bytes, options: ReadOptions) -> StoredImage:
    """Arrays of shape (H, W) or (H, W, C), C = 1 … 4, of uint8 or uint16 in either byte order."""
    file = io.BytesIO(data)
    major, _ = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if dtype.newbyteorder("=") not in (np.dtype(np.uint8), np.dtype(np.uint16)):
        raise ImageError(f"NPY of dtype {dtype}; uint8 and uint16 are supported")
    if len(shape) not in (2, 3) or (len(shape) == 3 and not 1 <= shape[2] <= 4):
        raise ImageError(f"NPY of shape {shape}; (H, W) and (H, W, C) with C = 1 … 4 are supported")
    admit(shape[1], shape[0], math.prod(shape[2:]) * dtype.itemsize, options)
    if len(data) - file.tell() < math.prod(shape) * dtype.itemsize:
        raise ImageError("truncated NPY file")
    pixels = np.load(io.BytesIO(data), allow_pickle=False)
    return StoredImage(pixels.astype(dtype.newbyteorder("="), copy=False))
