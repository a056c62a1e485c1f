"""Converts one L3 file back to PNG."""

from __future__ import annotations

import dataclasses
import functools
import os

from ..codec import decode, peek, read_metadata
from ..files import open_regular
from ..images.encoders import encode_png
from ..images.formats import Format, find_format
from ..images.signatures import HEAD_SIZE, sniff
from ..images.writing import prepare_image
from ..jobs.outcomes import Outcome, Task, reporting
from ..jobs.planning import Conversion
from ..jobs.serving import reserve
from .sources import L3_SUFFIXES, refuse_to_export

_PNG = find_format("png")


def _is_finished(task: Task) -> bool:
    return _PNG.is_finished(task.target)


TO_PNG = Conversion(_PNG.name, _PNG.suffix, _PNG.signature, L3_SUFFIXES, refuse_to_export, _is_finished)


def png_format(level: int = 6) -> Format:
    """PNG at a compression level of zlib, 0 … 9."""
    return dataclasses.replace(_PNG, encode=functools.partial(encode_png, level=level))


@reporting
def export_file(task: Task, level: int = 6) -> Outcome:
    """Converts `task.source` to PNG, with its modification time.

    The target gets its name only after it decoded to the same pixels and metadata.

    level: zlib's compression level, 0 … 9.
    """
    with open_regular(task.source) as file:
        mtime_ns = os.fstat(file.fileno()).st_mtime_ns
        refused = refuse_to_export(task.source, sniff(file.read(HEAD_SIZE)))
        if refused:
            return Outcome(task.source, task.target, *refused)
        file.seek(0)
        data = file.read()
    png = png_format(level)
    reserve(peek(data).raw_size, png.memory)
    source_size, pixels, metadata = len(data), decode(data, verify=True), read_metadata(data)
    del data
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
