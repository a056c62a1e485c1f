"""NPY files to arrays."""

from __future__ import annotations

import io
import math

import numpy as np

from .stored import DamagedImageError, ImageError, ReadOptions, StoredImage, admit

_MAX_START = 1 << 14  # bytes: more than the headers that numpy takes


def read(data: bytes, options: ReadOptions) -> StoredImage:
    """Arrays of shape (H, W) or (H, W, C), C = 1 … 4, of uint8 or uint16; either byte order, C or Fortran order."""
    shape, is_fortran, dtype, start = _read_header(data[:_MAX_START])
    if dtype.kind in "biuf" and dtype.name not in ("uint8", "uint16"):
        raise ImageError(f"NPY of {dtype.name} samples: scale to uint8 or uint16 first")
    if dtype.name not in ("uint8", "uint16"):
        raise ImageError(f"NPY of {dtype.name}: not the samples of an image")
    if len(shape) not in (2, 3) or (len(shape) == 3 and not 1 <= shape[2] <= 4):
        raise ImageError(f"NPY of shape {shape}; (H, W) and (H, W, C) with C = 1 … 4 are supported")
    admit(shape[1], shape[0], math.prod(shape[2:]) * dtype.itemsize, options)
    count = math.prod(shape)
    end = start + count * dtype.itemsize
    if end > len(data):
        raise DamagedImageError("truncated NPY file")
    if end < len(data):
        raise ImageError("NPY file with several arrays, or with data after its array")
    stored = np.frombuffer(data, dtype, count, start)
    stored = stored.reshape(shape[::-1]).T if is_fortran else stored.reshape(shape)
    return StoredImage(stored.astype(dtype.newbyteorder("="), order="C"))


def _read_header(head: bytes) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Shape, whether it is in Fortran order, dtype, and where the array starts."""
    file = io.BytesIO(head)
    try:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            header = np.lib.format.read_array_header_1_0(file)
        elif version in ((2, 0), (3, 0)):  # 3.0 allows more letters in names of fields, which images do not have
            header = np.lib.format.read_array_header_2_0(file)
        else:
            raise ImageError(f"NPY of version {version[0]}.{version[1]}, which is not supported")
    except ImageError:
        raise
    except Exception as error:  # numpy evaluates it as a Python literal, which fails in many ways
        raise DamagedImageError("damaged NPY file: no valid header") from error
    shape, is_fortran, dtype = header
    return tuple(map(int, shape)), is_fortran, dtype, file.tell()
