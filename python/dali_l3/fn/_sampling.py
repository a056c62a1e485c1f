"""Which samples the readers read: arguments that take several forms, in the form that the operators take."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

Subset: TypeAlias = "float | tuple[float, float] | Sequence[int] | Sequence[str] | str | os.PathLike[str]"


def operator_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """`arguments` with those of the operators in the place of `subset` and ``class_proportions="balanced"``.

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
    for name in ("weights", "class_proportions"):
        if name in translated:
            translated[name] = np.asarray(translated[name]).tolist()
    return translated


def _subset(subset: Any) -> dict[str, Any]:
    if isinstance(subset, (str, os.PathLike)):
        return {"subset_files": _names(Path(subset))}
    if isinstance(subset, Sequence) and len(subset) > 0 and all(isinstance(item, str) for item in subset):
        return {"subset_files": list(subset)}
    values = np.asarray(subset)
    if values.size == 0:
        raise ValueError("subset is empty")
    if values.dtype.kind == "f" and values.ndim == 0:
        return {"subset_range": [0.0, float(values)]}
    if values.dtype.kind == "f" and values.shape == (2,):
        return {"subset_range": values.tolist()}
    if values.dtype.kind in "iu" and values.ndim == 1:
        return {"subset_indices": values.tolist()}
    raise TypeError(
        "subset must be a fraction, two fractions, a list of indices, a list of paths or the path of a file that "
        f"lists them, not {subset!r:.200}"
    )


def _names(path: Path) -> list[str]:
    """The lines of a file."""
    lines = path.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise ValueError(f"subset {path} names no files")
    return names
