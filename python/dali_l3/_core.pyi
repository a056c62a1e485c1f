from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

Roi = tuple[int, int, int, int]
Shape = tuple[int, ...]
DType = np.dtype[Any]

def encode(
    array: NDArray[Any], profile: str, effort: int, metadata: list[tuple[bytes, bytes]], checksums: bool
) -> bytes: ...
def decode(
    data: Buffer,
    out: NDArray[Any] | Callable[[Shape, DType], NDArray[Any]] | None,
    roi: Roi | None,
    verify: bool | None,
) -> NDArray[Any]: ...
def decode_batch(
    images: list[Buffer | str],
    out: Callable[[list[Shape], list[DType]], list[NDArray[Any]]] | None,
    rois: list[Roi | None],
    threads: int,
    verify: bool | None,
) -> list[NDArray[Any]]: ...
def read_header(path: str) -> tuple[Shape, DType]: ...
def peek(data: Buffer) -> dict[str, Any]: ...
def metadata(data: Buffer) -> dict[str, bytes]: ...
def version() -> str: ...
def sniff(head: bytes) -> str | None: ...
def backend() -> Literal["avx512", "avx2", "portable", "none"]: ...
def set_backend(name: str) -> None: ...

SNIFFED_BYTES: int
PAGE_SIZE: int
MAX_METADATA: int
