"""Indices of tar archives: which samples they hold, and where."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .. import _core
from ..errors import ConversionError, TargetError
from ..jobs.outcomes import Outcome, Task, reporting
from ..jobs.planning import Plan, PlanError
from ..wording import counted


def plan_indexing(paths: Sequence[str], folder: str | None = None, objects: Any = None) -> Plan:
    """Plans the indices of archives, each beside its archive or in `folder`, which will be created.

    paths: as the readers take them: paths, patterns, brace ranges, and text files that list these
    objects: what reaches buckets, as the core takes it

    Raises PlanError if a pattern finds nothing, a path is a folder, or two archives would have one index.
    """
    try:
        archives = _core.expand_paths(list(paths), objects)
    except RuntimeError as error:
        raise PlanError(str(error)) from error
    archive_of: dict[str, str] = {}
    for archive in dict.fromkeys(archives):
        if os.path.isdir(archive):
            raise PlanError(
                f"{archive} is a folder: name the archives in it, such as '{os.path.join(archive, '*.tar')}', or make "
                "a catalogue of it: -o FILE.l3cat"
            )
        index = _core.default_index_path(archive)
        if folder is not None:
            index = os.path.join(folder, os.path.basename(index))
        if index in archive_of:
            raise PlanError(f"{archive_of[index]} and {archive} would have the same index, {index}")
        archive_of[index] = archive
    tasks = [Task(archive, index) for index, archive in archive_of.items()]
    return Plan(tasks, folders=[folder] if folder is not None else [])


@reporting
def index_archive(task: Task, overwrite: bool = False) -> Outcome:
    """Writes the index of the archive `task.source` to `task.target`, unless that is one which still fits."""
    try:
        was_current, repeated = _core.update_index(task.source, task.target, overwrite)
    except ValueError as error:
        raise ConversionError(str(error)) from error
    except OSError as error:
        if str(error.filename).startswith(task.target):  # or the temporary file beside it
            raise TargetError(error.errno, error.strerror, task.target) from error
        raise
    notes = (f"{counted(repeated, 'sample')} with the name of another: each is one of its own",) if repeated else ()
    if was_current:
        return Outcome(task.source, task.target, "kept", "done before", notes)
    return Outcome(task.source, task.target, "done", notes=notes, source_size=os.path.getsize(task.source))
