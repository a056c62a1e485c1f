"""Memory to decode into: whatever lends its own to numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from ._arguments import type_error

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer


class HasArrayInterface(Protocol):
    """An array that describes its memory as numpy's do."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


class HasDLPack(Protocol):
    """A tensor that shares its memory by DLPack, as those of PyTorch and JAX do."""

    def __dlpack__(self) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, Any]: ...


if TYPE_CHECKING:
    Output: TypeAlias = NDArray[Any] | HasArrayInterface | HasDLPack | Buffer


def as_output(name: str, out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The memory of `out` as an array; a buffer without dimensions of its own, that is long enough, gets `shape`.

    Raises:
        TypeError: `out` lends no memory, or not this computer's.
    """
    if isinstance(out, np.ndarray):
        return out
    if hasattr(out, "__array_interface__"):
        return np.asarray(out)
    if hasattr(out, "__dlpack__"):
        return _from_dlpack(name, out)
    try:
        memory = memoryview(out)
    except TypeError:
        raise type_error(name, out, "an array, a DLPack tensor or a buffer") from None
    size = dtype.itemsize * int(np.prod(shape))
    if memory.ndim == 1 and memory.contiguous and memory.itemsize in (1, dtype.itemsize) and memory.nbytes == size:
        return np.frombuffer(memory, dtype).reshape(shape)
    return np.asarray(memory)


def _from_dlpack(name: str, out: Any) -> NDArray[Any]:
    device, _ = out.__dlpack_device__()
    if device not in (_CPU, _PINNED):
        raise TypeError(f"{name} is not in the computer's main memory (its DLPack device is {device!r})")
    return np.from_dlpack(out)


_CPU, _PINNED = 1, 3  # DLDeviceType of DLPack; the memory of either is the CPU's
