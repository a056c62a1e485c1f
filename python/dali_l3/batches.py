"""Decoding of many images at once, in native threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from . import _core
from ._arguments import Roi, integer, optional_flag, region, type_error
from ._outputs import as_output

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from ._outputs import Output

    Out = TypeVar("Out", bound=Output | Sequence[Output])
    Image = Buffer | str | os.PathLike[str] | os.PathLike[bytes]
    Rois = Roi | Sequence[Roi | None] | NDArray[np.integer[Any]]

Shapes = list[tuple[int, ...]]
DTypes = list["np.dtype[Any]"]


@overload
def decode_batch(
    images: Iterable[Image],
    out: None = None,
    threads: int | None = None,
    roi: Rois | None = None,
    verify: bool | None = None,
) -> list[NDArray[Any]]: ...
@overload
def decode_batch(
    images: Iterable[Image],
    out: Out,
    threads: int | None = None,
    roi: Rois | None = None,
    verify: bool | None = None,
) -> Out: ...
def decode_batch(
    images: Iterable[Image],
    out: Any = None,
    threads: int | None = None,
    roi: Rois | None = None,
    verify: bool | None = None,
) -> Any:
    """Decodes L3 images in native threads, which share the tiles of large ones, without holding the GIL.

    Args:
        images: The files' bytes (bytes-like objects, which must not be changed meanwhile) or paths (str or PathLike).
            Of a file no more is read than `roi` needs. The images may differ in shape and dtype.
        out: Memory to decode into, for images of one shape and dtype: an array (N, H, W) or (N, H, W, C), or whatever
            else `decode` takes. Or a list of such, one for each image.
        threads: How many threads to use, the caller's among them; by default one for each CPU that this process may
            run on. The others wait for the next call, no more of them than there are CPUs, and end before a fork, so
            that it works in forked processes too.
        roi: Region ``(top, left, height, width)`` of every image, or a sequence with one, or None, for each.
        verify: Whether to check the tiles' checksums, as for `decode`.

    Returns:
        `out`, or a list of new arrays, in the order of `images`. After an error, the contents of `out` are undefined.

    Raises:
        L3Error: An image cannot be decoded; the message starts with its path or, for bytes, its number, from 0. Of
            several such images the first is named.
        OSError: A file cannot be read; ``filename`` is its path.
        TypeError, ValueError: As `decode` does, with the image's path or number; or there is not one region, or one
            place in `out`, for each image.
    """
    sources = [_source(number, image) for number, image in enumerate(_several(images))]
    return decode_sources(sources, out, threads, roi, verify)


def decode_sources(
    sources: list[Buffer | str],
    out: Any,
    threads: int | None,
    roi: Rois | None,
    verify: bool | None,
    allocate: Callable[[Shapes, DTypes], list[NDArray[Any]]] | None = None,
) -> Any:
    """`decode_batch` for bytes and str. `allocate` may provide the memory once shapes and dtypes are known."""
    threads = len(os.sched_getaffinity(0)) if threads is None else integer("threads", threads)
    if not 1 <= threads < 2**31:
        raise ValueError(f"threads must be at least 1 and below 2**31, not {threads}")
    rois = _regions(roi, len(sources))
    verify = optional_flag("verify", verify)
    if out is not None:

        def allocate(shapes: Shapes, dtypes: DTypes) -> list[NDArray[Any]]:
            return _places(out, shapes, dtypes)

    decoded = _core.decode_batch(sources, allocate, rois, threads, verify)
    return decoded if out is None else out


def _several(images: Iterable[Image]) -> Iterable[Image]:
    if isinstance(images, (str, bytes, bytearray, memoryview, os.PathLike)) or not isinstance(images, Iterable):
        raise type_error("images", images, "a sequence of bytes-like objects or paths")
    return images


def _source(number: int, image: Any) -> Buffer | str:
    if isinstance(image, (str, os.PathLike)):
        return os.fsdecode(image)
    try:
        contiguous = memoryview(image).c_contiguous
    except TypeError:
        raise type_error(f"image {number}", image, "bytes-like or a path") from None
    if not contiguous:
        raise BufferError(f"image {number}: its bytes have gaps")
    return image  # type: ignore[no-any-return]


def _regions(roi: Any, count: int) -> list[Roi | None]:
    """One for each image."""
    if roi is None:
        return [None] * count
    if not isinstance(roi, (Sequence, np.ndarray)):
        raise type_error("roi", roi, "(top, left, height, width), or one for each image")
    if len(roi) and not any(one is None or isinstance(one, (Sequence, np.ndarray)) for one in roi):
        return [region(roi)] * count
    if len(roi) != count:
        raise ValueError(f"there are {len(roi)} regions for {count} images")
    return [None if one is None else region(one) for one in roi]


def _places(out: Any, shapes: Shapes, dtypes: DTypes) -> list[NDArray[Any]]:
    """The part of `out` that is for each image, not yet compared with its shape."""
    count = len(shapes)
    if not isinstance(out, (list, tuple)):
        shape, dtype = (shapes[0], dtypes[0]) if count else ((), np.dtype(np.uint8))
        out = as_output("out", out, (count, *shape), dtype)
        if out.ndim == 0:
            raise ValueError(f"out has shape (), but there are {count} images")
    if len(out) != count:
        raise ValueError(f"out has {len(out)} places for {count} images")
    return [
        as_output(f"out[{number}]", place, shape, dtype)
        for number, (place, shape, dtype) in enumerate(zip(out, shapes, dtypes, strict=True))
    ]
