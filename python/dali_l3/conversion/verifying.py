"""Checks one L3 file."""

from __future__ import annotations

from ..codec import decode, peek, read_metadata
from ..files import open_regular
from ..jobs.outcomes import Outcome, Task, reporting
from ..jobs.serving import reserve


@reporting
def verify_file(task: Task) -> Outcome:
    """Decodes all of `task.source` and compares every checksum that it carries."""
    with open_regular(task.source) as file:
        data = file.read()
    reserve(peek(data).raw_size)
    raw_size = decode(data, verify=True).nbytes
    read_metadata(data)
    notes = () if peek(data).has_checksums else ("no tile checksums in the file: decoded, but pixels are not proven",)
    return Outcome(task.source, None, "done", notes=notes, source_size=len(data), raw_size=raw_size)
