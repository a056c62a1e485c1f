"""Checks of arguments that several functions take; what is wrong with one is said with its name."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

Roi = tuple[int, int, int, int]


def type_error(name: str, value: object, expected: str) -> TypeError:
    return TypeError(f"{name} must be {expected}, not {type(value).__name__}")


def integer(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise type_error(name, value, "an integer") from None


def flag(name: str, value: object) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise type_error(name, value, "True or False")
    return bool(value)


def optional_flag(name: str, value: object) -> bool | None:
    return None if value is None else flag(name, value)


def region(roi: Any) -> Roi:
    try:
        top, left, height, width = roi
    except TypeError:
        raise type_error("roi", roi, "(top, left, height, width)") from None
    except ValueError:
        raise ValueError("roi must have four values: top, left, height, width") from None
    return (
        integer("roi's top", top),
        integer("roi's left", left),
        integer("roi's height", height),
        integer("roi's width", width),
    )
