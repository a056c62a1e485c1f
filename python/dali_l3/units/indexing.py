"""Indices of tar archives that are in buckets, or are written to one."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _core
from ..conversion.indexing import index_archive, plan_indexing
from ..errors import ConversionError
from ..jobs.outcomes import Outcome, Task, reporting
from ..jobs.planning import Plan
from . import objects
from .storage import find_storage, is_in_bucket


def plan_stored(paths: Sequence[str], folder: str | None = None) -> Plan:
    """As `conversion.indexing.plan_indexing`, wherever the archives and the folder of their indices are.

    Raises ConversionError if there is no such kind of bucket, or if what reaches it is not installed.
    """
    for place in filter(is_in_bucket, [*paths, *([folder] if folder else [])]):
        find_storage(place)
    planned = plan_indexing(paths, folder, objects)
    if folder and is_in_bucket(folder):
        planned.folders.clear()  # there are none in buckets
    return planned


@reporting
def index_stored(task: Task, overwrite: bool = False) -> Outcome:
    """As `conversion.indexing.index_archive`, wherever the archive and its index are."""
    if not is_in_bucket(task.source) and not is_in_bucket(task.target):
        return index_archive(task, overwrite)
    archives, indices = find_storage(task.source), find_storage(task.target)
    try:
        there = b"" if overwrite else indices.read(task.target)
    except FileNotFoundError:
        there = b""
    if _core.is_index_of(task.source, there, objects):
        return Outcome(task.source, task.target, "kept", "done before")
    if there and not there.startswith(b"v1."):
        raise ConversionError(f"{task.target}: exists and is no index")
    indices.write(task.target, archives.make_index(task.source))
    return Outcome(task.source, task.target, "done", source_size=archives.entry(task.source).size)
