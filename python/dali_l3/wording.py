"""Text that messages share."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number and its noun, which agree: "1 file", "2 files", "2 copies" (whose plural is to be given)."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
