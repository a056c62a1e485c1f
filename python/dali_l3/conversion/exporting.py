"""Converts one L3 file back to PNG."""

from __future__ import annotations

import dataclasses
import functools
import os

from ..codec import decode, peek, read_metadata
from ..files import open_regular
from ..images.encoders import encode_png
from ..images.formats import find_format
from ..images.signatures import HEAD_SIZE, not_an_image, sniff
from ..images.writing import prepare_image
from ..jobs.outcomes import Outcome, Status, Task, reporting
from ..jobs.planning import Direction
from ..jobs.serving import reserve

_PNG = find_format("png")


def _refusal(path: str, name: str | None) -> tuple[Status, str] | None:
    if name == "L3":
        return None
    if os.path.splitext(path)[1].lower() in TO_PNG.source_suffixes:
        with open_regular(path) as file:
            return "failed", not_an_image(file.read(1024)) or "named like an L3 file, but the content is not one"
    return "skipped", "not an L3 file"


def _is_finished(task: Task) -> bool:
    return _PNG.is_finished(task.target)


TO_PNG = Direction(_PNG.name, _PNG.suffix, _PNG.signature, frozenset({".l3"}), _refusal, _is_finished)


@reporting
def export_file(task: Task, level: int = 6) -> Outcome:
    """Converts `task.source`, with its date.

    The target gets its name only after it decoded to the same pixels and metadata.

    level: zlib's compression level, 0 … 9.
    """
    with open_regular(task.source) as file:
        mtime_ns = os.fstat(file.fileno()).st_mtime_ns
        refusal = _refusal(task.source, sniff(file.read(HEAD_SIZE)))
        if refusal:
            return Outcome(task.source, task.target, *refusal)
        file.seek(0)
        data = file.read()
    reserve(peek(data).raw_size)
    source_size, pixels, metadata = len(data), decode(data, verify=True), read_metadata(data)
    del data
    png = dataclasses.replace(_PNG, encode=functools.partial(encode_png, level=level))
    raw_size, prepared = pixels.nbytes, prepare_image(pixels, metadata, png)
    del pixels
    written = prepared.write(task.target, mtime_ns)
    return Outcome(
        task.source,
        task.target,
        "done",
        "",
        written.notes,
        source_size=source_size,
        target_size=written.size,
        raw_size=raw_size,
        format=png.name,
    )
