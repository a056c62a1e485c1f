"""PBM, PGM and PPM files to arrays."""

from __future__ import annotations

import re

import numpy as np

from .stored import ImageError, ReadOptions, StoredImage, admit

_PNM_GAP = rb"(?:\s|#[^\r\n]*[\r\n])+"
_PNM_NUMBER = _PNM_GAP + rb"(\d{1,9})"
_PNM_HEADER = re.compile(rb"P(?:([14])" + 2 * _PNM_NUMBER + rb"|([2356])" + 3 * _PNM_NUMBER + rb")\s")
_PNM_COMMENT = re.compile(rb"#[^\r\n]*")


def read(data: bytes, options: ReadOptions) -> StoredImage:
    """PBM, PGM and PPM, as text or binary. Pillow narrows their 16-bit colours, so it is not used."""
    header = _PNM_HEADER.match(data)
    if header is None:
        raise ImageError("damaged PNM file: no valid header")
    kind, width, height, *rest = (int(value) for value in header.groups() if value is not None)
    maximum = rest[0] if rest else 1
    admit(width, height, (3 if kind in (3, 6) else 1) * (2 if maximum > 255 else 1), options)
    if not 1 <= maximum <= 65535:
        raise ImageError(f"PNM with a maximum value of {maximum}")
    channels = 3 if kind in (3, 6) else 1
    samples, end = _pnm_samples(kind, data[header.end() :], width, height, channels, maximum)
    if end.strip():
        raise ImageError("PNM file with several images, or with data after its image")
    if samples.size and samples.max() > maximum:
        raise ImageError(f"damaged PNM file: a sample exceeds the maximum value of {maximum}")

    notes = []
    full = 255 if maximum <= 255 else 65535
    if maximum != full:
        samples = (samples.astype(np.uint32) * full + maximum // 2) // maximum
        if kind not in (1, 4):
            notes.append(f"samples scaled from 0 … {maximum} to 0 … {full}")
    pixels = samples.astype(np.uint8 if full == 255 else np.uint16)
    return StoredImage(pixels.reshape((height, width, 3) if channels == 3 else (height, width)), notes=notes)


def _pnm_samples(
    kind: int, body: bytes, width: int, height: int, channels: int, maximum: int
) -> tuple[np.ndarray, bytes]:
    """The samples of a PNM body, in order, 0 for black, and the bytes that follow them."""
    count = width * height * channels
    if kind == 4:
        row_size = (width + 7) // 8
        rows = np.frombuffer(body, np.uint8, row_size * height).reshape(height, row_size)
        return 1 - np.unpackbits(rows, axis=1, count=width), body[row_size * height :]
    if kind in (5, 6):
        dtype = np.dtype(">u2" if maximum > 255 else "u1")
        return np.frombuffer(body, dtype, count), body[count * dtype.itemsize :]
    tokens = _PNM_COMMENT.sub(b"", body).split()
    if kind == 1:  # digits need no gaps
        digits = b"".join(tokens)
        return 1 - (np.frombuffer(digits, np.uint8, count) - ord("0")), digits[count:]
    if len(tokens) < count:
        raise ImageError(f"damaged PNM file: {len(tokens)} of {count} samples")
    return np.array([int(token) for token in tokens[:count]], np.uint32), b"".join(tokens[count:])
