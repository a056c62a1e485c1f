"""L3 for PyTorch without DALI: a dataset over a folder, and a collate function that decodes a batch at once.

>>> dataset = L3Folder("train", window=(256, 256))
>>> loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=4, collate_fn=collate)
>>> for images, labels in loader: ...

The dataset says which part of which file a sample is; ``collate`` reads and decodes all of a batch in native threads,
straight into one tensor: in pinned memory where there is a CUDA device, and in shared memory in a worker process, which
uses that again. Of a file no more is read than its window needs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch.utils.data import Dataset, get_worker_info

from ._arguments import integer, type_error
from ._lending import lend
from .batches import decode_sources
from .image_files import StrPath, imshape
from .jobs.outcomes import Outcome
from .jobs.walking import scan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._arguments import Roi
    from .batches import DTypes, Shapes

Position = Literal["random", "center"]

_CPU = torch.device("cpu")  # named throughout: programs may have made another one the default


@dataclass(frozen=True)
class Sample:
    """What `L3Folder` says of a sample: where its pixels are.

    Attributes:
        path: The image's file.
        label: The number of its class; -1 if it has none.
        target: The target's file, if the dataset has targets.
        window: The part to read of both, ``(top, left, height, width)``; None: everything.
    """

    path: str
    label: int
    target: str | None
    window: Roi | None


class L3Folder(Dataset[Sample]):
    """The L3 files in a folder and below, sorted by path; each is a `Sample`, which `collate` decodes.

    Args:
        root: The folder. Those in it are classes, numbered from 0 in the order of their names.
        window: (height, width) of the part to read of each image; by default all of it.
        position: Where the window is: ``"random"``, drawn anew for each access by PyTorch's generator, or ``"center"``.
        targets: A file for each image, a label map for instance, which takes the place of the label: a folder with
            files of the same relative paths, or a function that gives the target's path for that of an image. With a
            window, both must have the same height and width.

    Attributes:
        classes: The names of the classes.
        labels: The number of the class of each image, for samplers; -1 where it has none.

    Raises:
        OSError: A folder cannot be read, or a link leads nowhere.
        ValueError: There are no L3 files, or targets are missing.
    """

    def __init__(
        self,
        root: StrPath,
        *,
        window: tuple[int, int] | None = None,
        position: Position = "random",
        targets: StrPath | Callable[[str], StrPath] | None = None,
    ) -> None:
        if position not in ("random", "center"):
            raise ValueError(f"position must be 'random' or 'center', not {position!r}")
        self._root = os.fspath(root)
        self._window = None if window is None else _size(window)
        self._position = position
        self._files = sorted(_l3_files(self._root))
        if not self._files:
            raise ValueError(f"{self._root}: no L3 files in this folder or below; `dali-l3 convert` makes them")
        folders = {file.split(os.sep, 1)[0] for file in self._files if os.sep in file}
        self.classes = sorted(folders)
        numbers = {name: number for number, name in enumerate(self.classes)}
        self.labels = [numbers[file.split(os.sep, 1)[0]] if os.sep in file else -1 for file in self._files]
        self._targets = None if targets is None else _target_files(targets, self._root, self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> Sample:
        path = os.path.join(self._root, self._files[index])
        target = None if self._targets is None else self._targets[index]
        window = None if self._window is None else self._place(path, target, self._window)
        return Sample(path, self.labels[index], target, window)

    def _place(self, path: str, target: str | None, window: tuple[int, int]) -> Roi:
        size = imshape(path)[:2]
        if target is not None and (other := imshape(target)[:2]) != size:
            raise ValueError(
                f"{target}: the target of {other} pixels cannot share a window with {path} of {size}: "
                "convert both to one size"
            )
        if any(whole < part for whole, part in zip(size, window, strict=True)):
            raise ValueError(
                f"{path}: the image of {size} is smaller than the window of {window} pixels: "
                "use a smaller window, or move the image away"
            )
        top, left = (self._offset(whole - part) for whole, part in zip(size, window, strict=True))
        return top, left, *window

    def _offset(self, room: int) -> int:
        return room // 2 if self._position == "center" else int(torch.randint(room + 1, (), device=_CPU))


def collate(samples: Sequence[Sample], threads: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Reads and decodes the samples of a batch, for a DataLoader's ``collate_fn``.

    Args:
        samples: Items of an `L3Folder`.
        threads: How many to decode in; by default one for each CPU, and one in a worker process, which has others
            beside it. ``functools.partial(collate, threads=2)`` sets it.

    Returns:
        The images and, without targets, the labels, int64 of shape (N,), or else the targets. Images are tensors of
        shape (N, C, H, W), in channels-last memory, or (N, H, W) if they were encoded without channels; uint8 or
        uint16.

    Raises:
        OSError, L3Error: As `dali_l3.decode_batch`.
        ValueError: There are no samples, or the images differ in shape or dtype; the message starts with the path of
            the first that does.
    """
    if not samples:
        raise ValueError("samples is empty: there is nothing to make a batch of")
    if threads is None and get_worker_info() is not None:
        threads = 1
    windows = [sample.window for sample in samples]
    images = _decode([sample.path for sample in samples], windows, threads)
    targets = [sample.target for sample in samples if sample.target is not None]
    if targets:
        return images, _decode(targets, windows, threads)
    return images, torch.tensor([sample.label for sample in samples], device=_CPU)


def _decode(paths: list[str], windows: list[Roi | None], threads: int | None) -> torch.Tensor:
    batch = torch.empty(0, device=_CPU)

    def allocate(shapes: Shapes, dtypes: DTypes) -> list[NDArray[Any]]:
        nonlocal batch
        _check_same(paths, shapes, dtypes)
        shape, dtype = (len(paths), *shapes[0]), dtypes[0]
        kind: torch.dtype = getattr(torch, dtype.name)
        if get_worker_info() is None:
            batch = torch.empty(shape, dtype=kind, device=_CPU, pin_memory=torch.cuda.is_available())
            return list(batch.numpy())
        size = math.prod(shape) * dtype.itemsize
        memory, storage = lend(size)
        batch = torch.empty(0, dtype=kind, device=_CPU).set_(storage).view(shape)
        return list(np.frombuffer(memory, dtype, math.prod(shape)).reshape(shape))

    decode_sources(list(paths), None, threads, windows, None, allocate)
    return batch.permute(0, 3, 1, 2) if batch.ndim == 4 else batch


def _check_same(paths: list[str], shapes: Shapes, dtypes: DTypes) -> None:
    def described(number: int) -> str:
        return f"{dtypes[number]} of shape {shapes[number]}"

    for number, path in enumerate(paths):
        if (shapes[number], dtypes[number]) != (shapes[0], dtypes[0]):
            raise ValueError(
                f"{path} is {described(number)}, but {paths[0]} is {described(0)}: "
                "the images of a batch must be alike; give L3Folder a window, or batch images of one size"
            )


def _size(window: Any) -> tuple[int, int]:
    try:
        height, width = window
    except (TypeError, ValueError):
        raise type_error("window", window, "(height, width)") from None
    size = integer("window's height", height), integer("window's width", width)
    if min(size) < 1:
        raise ValueError(f"window must have at least one row and column, not (height, width) = {size}")
    return size


def _l3_files(root: str) -> Iterator[str]:
    """Paths relative to `root`; hidden files and folders are left out."""
    for found in scan(root):
        if isinstance(found, Outcome):
            if found.status == "failed":
                raise OSError(f"{found.source}: {found.reason}")
        elif found.path.lower().endswith(".l3") and not found.is_folder:
            yield found.path


def _target_files(targets: StrPath | Callable[[str], StrPath], root: str, files: list[str]) -> list[str]:
    """One for each of the files, all of which exist."""
    if callable(targets):
        paths = [os.fspath(targets(os.path.join(root, file))) for file in files]
    else:
        paths = [os.path.join(targets, file) for file in files]
    missing = [number for number, path in enumerate(paths) if not os.path.isfile(path)]
    if missing:
        image, target = files[missing[0]], paths[missing[0]]
        raise ValueError(
            f"{len(missing)} of {len(files)} images in {root} have no target; {image} has none at {target}. "
            "Where the paths differ, give a function as `targets`"
        )
    return paths
