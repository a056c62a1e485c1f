"""Encoding and decoding of L3 images as numpy arrays. Needs neither DALI nor a GPU."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np

from . import _core
from ._arguments import Roi, flag, integer, optional_flag, region, type_error
from ._outputs import as_output
from .errors import L3Error

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Buffer

    from ._outputs import HasArrayInterface, Output

    Out = TypeVar("Out", bound=Output)

Profile = Literal["fast", "raw", "paper"]
Backend = Literal["avx512", "avx2", "portable", "none"]


@dataclass(frozen=True)
class ImageInfo:
    """The contents of the header of an L3 file.

    Attributes:
        width: Pixels in a row.
        height: Rows.
        channels: Samples in a pixel, 1 to 4.
        dtype: ``uint8`` or ``uint16``.
        shape: Shape of the decoded array: ``(height, width)`` or ``(height, width, channels)``.
        profile: ``"raw"``, ``"paper"`` or ``"fast"``.
        version: Version of the format, such as ``"1.0"``; None for files of the published prototype.
        tiles: Number of tiles, which decode independently.
        has_checksums: Whether every tile has a checksum that decoding can verify.
        prototype: Whether this is a file of the published prototype (``LLL.``).
        metadata_size: Size of the metadata area in bytes.
        payload_size: Size of all tiles in bytes; 0 for files of the published prototype, whose header does not
            contain it.
        file_size: Size that the whole file must have, in bytes; for files of the prototype without the tiles.
    """

    width: int
    height: int
    channels: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    profile: Profile
    version: str | None
    tiles: int
    has_checksums: bool
    prototype: bool
    metadata_size: int
    payload_size: int
    file_size: int

    @property
    def raw_size(self) -> int:
        """Size of the decoded array in bytes."""
        return self.width * self.height * self.channels * self.dtype.itemsize


def encode(
    array: ArrayLike | HasArrayInterface,
    profile: Profile = "fast",
    effort: int = 2,
    metadata: Mapping[str, Buffer] | None = None,
    checksums: bool = True,
) -> bytes:
    """Encodes an image losslessly; `decode` returns the same shape, dtype and values.

    Args:
        array: Image of shape (height, width) or (height, width, channels) with 1 to 4 channels, of dtype uint8 or
            uint16 in native byte order. Any strides will do.
        profile: ``"fast"`` (small and quick to decode), ``"raw"`` (stored pixels) or ``"paper"`` (published scheme).
        effort: 1 (quickest) to 3 (smallest files); only ``"fast"`` uses it.
        metadata: Bytes to keep beside the pixels, by name; ``"icc"``, ``"exif"`` and ``"xmp"`` have an agreed meaning.
        checksums: Whether to store a checksum for every tile.

    Returns:
        The bytes of an L3 file.

    Raises:
        TypeError: The dtype is not supported, `array` is masked, or a Pillow image with a transparent colour or whose
            array is not its colours (mode "P", "CMYK", "1", …), the metadata is not bytes by name, or an argument has a
            wrong type.
        L3Error: The shape is not supported (such as one with channels first), the image or its metadata exceeds the
            limits of the format, or the profile or the effort is unknown.
    """
    _check_meaning(array)
    image = np.asarray(array)
    if image.dtype.kind not in "biufc" and not hasattr(array, "dtype"):  # a path, say
        raise type_error("array", array, "an image as an array of uint8 or uint16")
    _check_image(image)
    if not isinstance(profile, str):
        raise type_error("profile", profile, "a str")
    effort = integer("effort", effort)
    if not 1 <= effort <= 3:
        raise L3Error(f"effort must be 1, 2 or 3, not {effort}", "argument")
    return _core.encode(image, profile, effort, _entries(metadata), flag("checksums", checksums))


@overload
def decode(data: Buffer, out: None = None, roi: Roi | None = None, verify: bool | None = None) -> NDArray[Any]: ...
@overload
def decode(data: Buffer, out: Out, roi: Roi | None = None, verify: bool | None = None) -> Out: ...
def decode(data: Buffer, out: Any = None, roi: Roi | None = None, verify: bool | None = None) -> Any:
    """Decodes an L3 file, or a region of it, without holding the GIL.

    Args:
        data: The file's bytes: any contiguous bytes-like object (bytes, memoryview, mmap, uint8 array, …). It must not
            be changed meanwhile.
        out: Memory to decode into: a numpy array, or whatever lends its memory by ``__array_interface__``, DLPack (CPU
            tensors of PyTorch, for instance; needs NumPy 2.1) or the buffer protocol. Of exactly the shape and dtype of
            the result, or a flat buffer of its size (bytearray, shared memory, …). Its pixels must be contiguous within
            a row; rows may be any distance apart, as in a slice of a larger image.
        roi: Region ``(top, left, height, width)`` in pixels, inside the image. Only the tiles it touches are decoded.
        verify: Whether to check the checksums of the tiles, if the file has them. None: for all profiles but ``"raw"``,
            whose pixels take as long to sum as to copy.

    Returns:
        `out`, or a new array: the image, or the region `roi` of it. After an error, the contents of `out` are
        undefined.

    Raises:
        L3Error: The bytes are not a valid L3 file, or `roi` is not inside the image.
        TypeError: `data` is not bytes-like, `out` has the wrong dtype, or an argument has a wrong type.
        BufferError: `data` is not contiguous.
        ValueError: `out` has the wrong shape, is read-only or not contiguous within a row, or `roi` does not have four
            values.
    """
    if roi is not None:
        roi = region(roi)
    memory = out
    if out is not None and not isinstance(out, np.ndarray):

        def memory(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
            return as_output("out", out, shape, dtype)

    decoded = _core.decode(data, memory, roi, optional_flag("verify", verify))
    return decoded if out is None else out


def peek(data: Buffer) -> ImageInfo:
    """Reads only the header.

    Args:
        data: The file's bytes; the first 48 are enough.

    Raises:
        L3Error: The bytes are not the start of a valid L3 file.
        TypeError: `data` is not bytes-like.
    """
    return ImageInfo(**_core.peek(data))


def read_metadata(data: Buffer) -> dict[str, bytes]:
    """Returns the metadata that was given to `encode`, in the same order.

    Args:
        data: The file's bytes.

    Raises:
        L3Error: The bytes are not a valid L3 file.
        TypeError: `data` is not bytes-like.
    """
    return _core.metadata(data)


def backend() -> Backend:
    """Returns the name of the codec's CPU back end: ``"avx512"``, ``"avx2"`` or ``"portable"``.

    The codec chooses the best one that the CPU can run when it is first used. The environment variable
    ``DALI_L3_BACKEND`` forces another. If that is unknown, or the CPU cannot run it, this returns ``"none"``, and
    encoding and decoding raise L3Error.
    """
    return _core.backend()


_PILLOW_MODES = ("L", "LA", "RGB", "RGBA", "I;16", "I;16L", "I;16B", "I;16N")
"""Modes of Pillow whose arrays are the gray, RGB and alpha that readers of L3 files expect."""
_PILLOW_ADVICE = {
    "1": "encode image.convert('L')",
    "La": "encode image.convert('LA')",
    "RGBa": "encode image.convert('RGBA')",
    "I": "scale np.asarray(image) to uint8 or uint16 first",
    "F": "scale np.asarray(image) to uint8 or uint16 first",
}


_MAX_CHANNELS = 4


def _check_meaning(array: object) -> None:
    """Refuses images whose numbers alone would not be what they are. (Does not import Pillow.)"""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("masked arrays are not supported: L3 has no mask; encode array.filled(value)")
    mode = getattr(array, "mode", None)
    if not isinstance(mode, str) or not hasattr(array, "getbands"):
        return
    if mode not in _PILLOW_MODES:
        advice = "encode image.convert('RGB'), or np.asarray(image) for the numbers"
        raise TypeError(f"images of Pillow's mode {mode!r} are not supported: {_PILLOW_ADVICE.get(mode, advice)}")
    if "transparency" in getattr(array, "info", {}):
        raise TypeError(
            "images of Pillow with a transparent colour are not supported: "
            "encode image.convert('RGBA'), or np.asarray(image) for the numbers"
        )


def _check_image(array: np.ndarray) -> None:
    dtype = array.dtype
    if dtype.kind == "u" and dtype.itemsize == 2 and not dtype.isnative:
        raise TypeError("big-endian uint16 images are not supported: convert the array with array.astype('uint16')")
    if dtype not in (np.uint8, np.uint16):
        raise TypeError(
            f"{dtype} images are not supported: L3 holds uint8 and uint16; cast, shift or scale the values first"
        )
    if array.ndim not in (2, 3):
        raise L3Error(
            f"an image must have shape (height, width) or (height, width, channels), not {array.shape}", "argument"
        )
    if array.ndim == 3 and 1 <= array.shape[0] <= _MAX_CHANNELS < array.shape[2]:
        raise L3Error(
            f"an image of shape {array.shape} has {array.shape[2]} channels, at most {_MAX_CHANNELS} are possible: "
            "channels last? encode np.moveaxis(array, 0, -1)",
            "limit",
        )


def _entries(metadata: Mapping[str, Buffer] | None) -> list[tuple[bytes, bytes]]:
    """The keys and values of metadata, as the core takes them."""
    if metadata is None:
        return []
    if not isinstance(metadata, Mapping):
        raise type_error("metadata", metadata, "a mapping")
    entries = []
    for key, value in metadata.items():
        if not isinstance(key, str):
            raise type_error("metadata's keys", key, "str")
        try:
            view = memoryview(value)
        except TypeError:
            raise type_error(f"metadata[{reprlib.repr(key)}]", value, "bytes-like") from None
        entries.append((key.encode(errors="surrogatepass"), bytes(view)))  # the core judges keys
    return entries
