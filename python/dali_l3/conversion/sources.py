"""Which files a command takes: by their first bytes or, if these are unknown, by their names.

Each function takes a file's path and the name of its format as `signatures.sniff` gives it (None: unknown). It returns
None for a file that the command takes, else the result and the reason, as (status, reason).
"""

from __future__ import annotations

import os
from collections.abc import Collection

from ..files import open_regular
from ..images.signatures import IMAGE_SUFFIXES, READABLE_FORMATS, not_an_image, unsupported
from ..jobs.outcomes import Status

Refusal = tuple[Status, str] | None

L3_SUFFIXES = frozenset({".l3"})


def refuse_to_convert(path: str, name: str | None, head: bytes | None = None) -> Refusal:
    """For conversion from images to L3 or another format. head: the first KiB; None: it is read if it is needed."""
    if name in READABLE_FORMATS:
        return None
    if name == "L3":
        return "skipped", "an L3 file already"
    return ("failed", unsupported(name)) if name else _judge_by_name(path, IMAGE_SUFFIXES, "an image", head)


def refuse_to_export(path: str, name: str | None, head: bytes | None = None) -> Refusal:
    """For conversion from L3 to PNG. head: as above"""
    if name == "L3":
        return None
    if name and os.path.splitext(path)[1].lower() in L3_SUFFIXES:
        return "failed", f"named like an L3 file, but the content is {name}"
    return _judge_by_name(path, L3_SUFFIXES, "an L3 file", head)


def refuse_to_verify(path: str, name: str | None, head: bytes | None = None) -> Refusal:
    """For verification of L3 files and images. head: as above"""
    if name == "L3" or name in READABLE_FORMATS:
        return None
    if name:
        return "skipped", unsupported(name)
    return _judge_by_name(path, IMAGE_SUFFIXES | L3_SUFFIXES, "an image", head)


def _judge_by_name(path: str, suffixes: Collection[str], what: str, head: bytes | None = None) -> tuple[Status, str]:
    """The result for a file that is not `what`: failed if its name says that it is, else skipped."""
    if os.path.splitext(path)[1].lower() not in suffixes:
        return "skipped", f"not {what}"
    if head is None:
        with open_regular(path) as file:
            head = file.read(1024)
    return "failed", not_an_image(head) or f"named like {what}, but the content is not one"
