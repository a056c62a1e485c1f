"""What type checkers see of the interface: mypy checks this file; nothing runs it.

``assert_type`` says what is inferred, and a ``type: ignore`` that nothing needs is an error.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import dali_l3
import dali_l3.fn
from dali_l3.torch import L3Folder, Sample

if TYPE_CHECKING:
    AnyArray = NDArray[Any]


def codec(path: Path, image: NDArray[np.uint8]) -> None:
    data = dali_l3.encode(image, profile="raw", metadata={"source": b"camera 3"})
    assert_type(data, bytes)
    assert_type(dali_l3.decode(data), "AnyArray")
    assert_type(dali_l3.decode(data, out=image, roi=(0, 0, 1, 1)), NDArray[np.uint8])
    assert_type(dali_l3.decode(memoryview(data), out=bytearray(3)), bytearray)
    assert_type(dali_l3.imread(path, verify=True), "AnyArray")
    assert_type(dali_l3.imshape("a.l3"), tuple[int, ...])
    assert_type(dali_l3.peek(data).dtype, np.dtype[Any])
    dali_l3.imwrite(path, image, effort=3)
    dali_l3.imwrite(path, image, profile="best")  # type: ignore[arg-type]
    dali_l3.encode(image, effort="2")  # type: ignore[arg-type]
    dali_l3.decode(path)  # type: ignore[call-overload]


def batches(path: Path, image: NDArray[np.uint8]) -> None:
    assert_type(dali_l3.decode_batch([path, "a.l3", b"", memoryview(b"")], threads=2), "list[AnyArray]")
    assert_type(dali_l3.decode_batch([path], out=image, roi=[(0, 0, 1, 1)]), NDArray[np.uint8])
    assert_type(dali_l3.decode_batch([path, path], out=[image, image]), list[NDArray[np.uint8]])
    assert_type(dali_l3.decode_batch([path], roi=[None], out=mmap.mmap(-1, 3)), mmap.mmap)
    dali_l3.decode_batch([3])  # type: ignore[list-item]


def readers(path: Path) -> None:
    table = dali_l3.read_table(path, labels=["x", "y"])
    images, _masks, _labels = dali_l3.fn.readers.liquid(
        file_root=path, companions="{stem}.png", cache_size="50%", subset=(0.0, 0.8), class_proportions="balanced"
    )
    dali_l3.fn.readers.multi_format(file_root="a", mix="dataset", weights=np.ones(3), subset=np.arange(3), **table)
    dali_l3.fn.decoders.l3(images, on_error="zeros", crop=(3, 4))
    dali_l3.fn.readers.liquid(file_root=path, policy="lru")  # type: ignore[arg-type]
    dali_l3.fn.readers.liquid(file_root=path, cache_sise=3)  # type: ignore[call-arg]
    dali_l3.fn.readers.multi_format(file_root=path, cache_size=3)  # type: ignore[call-arg]


def pytorch(path: Path) -> None:
    dataset = L3Folder(path, window=(256, 256), targets=lambda image: image.replace("a", "b"))
    assert_type(dataset[0], Sample)
    assert_type(dataset.labels, list[int])
    L3Folder(path, position="left")  # type: ignore[arg-type]
