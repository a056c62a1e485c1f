"""The readers' arguments that take several forms, in the form that the operators take."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..files import open_regular
from ..image_files import StrPath

Subset: TypeAlias = "float | tuple[float, float] | Sequence[int] | Sequence[StrPath] | StrPath | NDArray[Any]"


def operator_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """`arguments` with those of the operators in the place of `subset` and ``class_proportions="balanced"``, and with
    lists in the place of arrays.

    Raises:
        TypeError, ValueError: When an argument has another form.
        OSError: When a file of names cannot be read.
    """
    translated = dict(arguments)
    if "subset" in translated:
        translated |= _subset(translated.pop("subset"))
    proportions = translated.get("class_proportions")
    if isinstance(proportions, str):
        if proportions != "balanced":
            raise ValueError(f'class_proportions is "{proportions}", but must be "balanced" or a list of numbers')
        del translated["class_proportions"]
        translated["class_balanced"] = True
    for name, as_list in _LISTS.items():
        if name in translated:
            translated[name] = as_list(name, translated[name])
    return translated


def _paths(name: str, paths: Any) -> list[str]:
    return [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]


def _numbers(name: str, values: Any) -> list[float]:
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a list of numbers, not {values!r:.200}") from None
    if numbers.ndim != 1:
        raise ValueError(f"{name} must be a list of numbers, not of shape {numbers.shape}")
    return list(map(float, numbers))


def _integers(name: str, values: Any) -> list[int]:
    numbers = np.asarray(values)
    if numbers.size and (numbers.dtype.kind not in "biuf" or not np.array_equal(numbers, np.rint(numbers))):
        raise TypeError(f"{name} must be integers, not {values!r:.200}")
    if numbers.size and not (numbers.min() >= -(2**31) and numbers.max() < 2**31):
        raise ValueError(f"{name} must be integers of 32 bits, not {values!r:.200}")
    return list(map(int, numbers.ravel()))


_LISTS = {
    "files": _paths,
    "paths": _paths,
    "index_paths": _paths,
    "ext": _paths,
    "labels": _integers,
    "weights": _numbers,
    "class_proportions": _numbers,
}


def _subset(subset: Any) -> dict[str, Any]:
    if isinstance(subset, (str, os.PathLike)):
        return {"subset_files": _names(Path(subset))}
    items = subset.tolist() if hasattr(subset, "tolist") else subset
    if isinstance(items, Sequence) and len(items) > 0 and all(isinstance(item, (str, os.PathLike)) for item in items):
        return {"subset_files": [os.fspath(item) for item in items]}
    values = np.asarray(subset)
    if isinstance(subset, tuple) and values.dtype.kind in "iu" and values.tolist() == [0, 1]:
        raise TypeError("subset=(0, 1) is ambiguous: write (0.0, 1.0) for the whole dataset, or [0, 1] for two samples")
    if values.size == 0:
        raise ValueError("subset is empty")
    if values.dtype.kind == "b" and values.ndim == 1:
        raise TypeError("subset must be a list of indices, not a mask: give np.flatnonzero(mask)")
    if values.dtype.kind == "f" and values.ndim == 0:
        return {"subset_range": [0.0, float(values)]}
    if values.dtype.kind == "f" and values.shape == (2,):
        return {"subset_range": values.tolist()}
    if values.dtype.kind in "iuO" and values.ndim == 1 and all(isinstance(item, int) for item in values.tolist()):
        if not all(-(2**63) <= index < 2**63 for index in values.tolist()):
            raise ValueError(f"subset must be indices of 64 bits, not {subset!r:.200}")
        return {"subset_indices": values.tolist()}
    raise TypeError(
        "subset must be a fraction, two fractions, a list of indices, a list of paths or the path of a file that "
        f"lists them, not {subset!r:.200}"
    )


def _names(path: Path) -> list[str]:
    """The lines of a file."""
    try:
        with open_regular(path) as file:
            lines = file.read().decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"subset {path} is not a text file in UTF-8: {error}") from error
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise ValueError(f"subset {path} names no files")
    return names
