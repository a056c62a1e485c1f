"""L3 files by path, as arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from . import _core
from ._arguments import type_error
from .batches import decode_sources
from .codec import Profile, encode
from .errors import L3Error, TargetError
from .files import write_atomically

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Buffer

    from ._arguments import Roi
    from ._outputs import HasArrayInterface, Output

    Out = TypeVar("Out", bound=Output)

StrPath = str | os.PathLike[str]


@overload
def imread(path: StrPath, out: None = None, roi: Roi | None = None, verify: bool | None = None) -> NDArray[Any]: ...
@overload
def imread(path: StrPath, out: Out, roi: Roi | None = None, verify: bool | None = None) -> Out: ...
def imread(path: StrPath, out: Any = None, roi: Roi | None = None, verify: bool | None = None) -> Any:
    """Reads an L3 file, or a region of it, without holding the GIL.

    Args:
        path: The file.
        out: Memory to decode into, as for `decode`.
        roi: Region ``(top, left, height, width)`` in pixels, inside the image. Only its tiles are read.
        verify: Whether to check the tiles' checksums, as for `decode`.

    Returns:
        `out`, or a new array (height, width) or (height, width, channels), uint8 or uint16.

    Raises:
        OSError: The file cannot be read; ``filename`` is its path.
        L3Error: It is not a sound L3 file, or `roi` is not inside the image; the message starts with the path.
        TypeError, ValueError: As `decode`.
    """
    outputs = None if out is None else [out]
    (image,) = decode_sources([_path(path)], outputs, 1, None if roi is None else [roi], verify)
    return image


def imwrite(
    path: StrPath,
    array: ArrayLike | HasArrayInterface,
    profile: Profile = "fast",
    effort: int = 2,
    metadata: Mapping[str, Buffer] | None = None,
    checksums: bool = True,
) -> None:
    """Encodes an image and writes it to a file, which appears whole or not at all, replacing what is there.

    Args:
        path: The file; by custom its name ends in ``.l3``.
        array: The image, as for `encode`, which explains the other arguments.

    Raises:
        OSError: The file cannot be written; ``filename`` is its path.
        TypeError, L3Error: As `encode`, with the path before the message.
    """
    path = _path(path)
    try:
        data = encode(array, profile, effort, metadata, checksums)
    except L3Error as error:
        raise L3Error(f"{path}: {error}", error.status) from None
    except TypeError as error:
        raise TypeError(f"{path}: {error}") from None
    try:
        write_atomically(path, data)
    except TargetError as error:
        raise OSError(error.errno, error.strerror, path) from error  # of the kind that its number stands for


def imshape(path: StrPath) -> tuple[int, ...]:
    """The shape of the array in an L3 file, (height, width) or (height, width, channels). Reads the header alone.

    Raises:
        OSError: The file cannot be read; ``filename`` is its path.
        L3Error: It does not start as a sound L3 file does; the message starts with the path.
    """
    shape, _ = _core.read_header(_path(path))
    return shape


def _path(path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise type_error("path", path, "a str or PathLike")
    return os.fsdecode(path)
