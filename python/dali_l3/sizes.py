"""Sizes in bytes, as people write them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from decimal import Decimal
from typing import SupportsIndex

_UNITS = {"": 1, "B": 1} | {
    prefix + suffix: base**power
    for power, prefix in enumerate("KMGT", start=1)
    for suffix, base in (("", 1024), ("iB", 1024), ("B", 1000))
}
_LARGEST = 2**63 - 1  # which DALI's arguments can hold


def parse_size(size: SupportsIndex | str, total: Callable[[], int] | None = None) -> int:
    """Bytes in a size such as ``"60GiB"``, ``"1.5 GB"``, ``"512M"`` (binary, as of memory) or a plain number.

    total: gives the bytes that ``"50%"`` is half of; None: percentages are no sizes

    Raises:
        ValueError: The text is not a size, or the size is negative or does not fit into 64 bits.
        TypeError: The size is neither a string nor an integer.
    """
    if isinstance(size, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", size)
        percentage = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", size)
        if total and percentage and Decimal(percentage[1]) <= 100:
            return int(Decimal(percentage[1]) * total() / 100)
        units = {unit.lower(): factor for unit, factor in _UNITS.items()}
        if not match or match[2].lower() not in units or (not match[2] and "." in match[1]):  # half a byte?
            examples = "such as '60GiB'" + (", or a percentage such as '50%'" if total else "")
            raise ValueError(f"{size!r} is not a size: write a number of bytes, or one with a unit, {examples}")
        number: int = round(Decimal(match[1]) * units[match[2].lower()])
    elif isinstance(size, SupportsIndex) and not isinstance(size, bool):
        number = operator.index(size)
    else:
        raise TypeError(f"a size is a whole number of bytes or a string such as '60GiB', not {type(size).__name__}")
    if number < 0:
        raise ValueError(f"a size cannot be negative: {number}")
    if number > _LARGEST:
        raise ValueError(f"a size cannot be larger than {_LARGEST} bytes: {number}")
    return number
