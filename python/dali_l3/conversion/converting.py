"""Converts one image file to L3."""

from __future__ import annotations

import os

import numpy as np

from ..codec import decode, encode, peek, read_metadata
from ..errors import L3Error
from . import DEFAULT_MAX_PIXELS
from .files import write_atomically
from .outcomes import ConversionError, Outcome, Status, Task, reporting
from .planning import Direction
from .reading import read_image
from .signatures import HEAD_SIZE, IMAGE_SUFFIXES, READABLE_FORMATS, sniff


def _refusal(path: str, name: str | None) -> tuple[Status, str] | None:
    if name in READABLE_FORMATS:
        return None
    if name == "L3":
        return "skipped", "an L3 file already"
    if name:
        return "failed", f"{name} files are not supported"
    if os.path.splitext(path)[1].lower() in IMAGE_SUFFIXES:
        return "failed", "empty file" if not os.path.getsize(
            path
        ) else "named like an image, but the content is not one"
    return "skipped", "not an image"


TO_L3 = Direction(suffix=".l3", format="L3", source_suffixes=IMAGE_SUFFIXES, refusal=_refusal)


@reporting
def convert_file(task: Task, profile: str = "fast", effort: int = 2, max_pixels: int = DEFAULT_MAX_PIXELS) -> Outcome:
    """Converts `task.source`. The target gets its name only after it decoded to the same pixels and metadata."""
    with open(task.source, "rb") as file:
        head = file.read(HEAD_SIZE)
        refusal = _refusal(task.source, sniff(head))
        if refusal:
            return Outcome(task.source, task.target, *refusal)
        data = head + file.read()
    image = read_image(data, max_pixels)
    encoded = encode(image.pixels, profile=profile, effort=effort, metadata=image.metadata)

    def check(written: bytes) -> None:
        decoded = decode(written, verify=True)
        same = decoded.dtype == image.pixels.dtype and np.array_equal(decoded, image.pixels)
        if not same or read_metadata(written) != image.metadata:
            raise ConversionError("the file that was written does not decode to the same image; please report this")

    write_atomically(task.target, encoded, check)
    return Outcome(
        task.source,
        task.target,
        "done",
        "",
        image.notes,
        source_size=len(data),
        target_size=len(encoded),
        raw_size=image.pixels.nbytes,
    )


def has_profile(path: str, profile: str) -> bool:
    """Whether the file at `path` is a whole L3 file of this profile, going by its header and size."""
    try:
        with open(path, "rb") as file:
            info = peek(file.read(64))
        return info.profile == profile and not info.prototype and os.path.getsize(path) >= info.file_size
    except L3Error:
        return False
