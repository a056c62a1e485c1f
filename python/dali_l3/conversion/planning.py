"""Which file becomes which: decided as a whole, before anything is written."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .files import remove_stale_partials
from .outcomes import ConversionError, Outcome, Status, Task, reporting
from .signatures import sniff_file
from .walking import walk


class PlanError(ConversionError):
    """A request that would mix up or overwrite files. Nothing has been written."""


@dataclass(frozen=True)
class Direction:
    """One way of conversion.

    suffix: of the files that are written
    format: their format, as `signatures.sniff` names it
    source_suffixes: suffixes that give way to `suffix`; others stay and are followed by it
    refusal: for a source's path and its format (None: unknown), why it is not converted, as (status, reason), or None
    """

    suffix: str
    format: str
    source_suffixes: frozenset[str]
    refusal: Callable[[str, str | None], tuple[Status, str] | None]


@dataclass
class Plan:
    """tasks: what is to do. outcomes: what is settled already. folders: in which targets lie, the uppermost first."""

    tasks: list[Task] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)

    def prepare_folders(self) -> None:
        """Creates the folders and clears away what killed runs left in them. Raises OSError."""
        for folder in self.folders:
            os.makedirs(folder, exist_ok=True)
            remove_stale_partials(folder)


def plan(
    source: str,
    target: str,
    direction: Direction,
    overwrite: bool = False,
    keep_suffix: bool = False,
    is_finished: Callable[[str], bool] = lambda path: True,
) -> Plan:
    """Plans the conversion of the file or tree `source` to `target`, whose folders will mirror it, empty ones included.

    A target that is as new as its source is kept if `is_finished` says so of its path, and written again otherwise.
    One that is a file of another format counts as failed. With `overwrite` all of them are written again.
    With `keep_suffix`, a.png becomes a.png.l3, not a.l3.

    Raises PlanError if source and target overlap, or if two images would become one file.
    """
    if not os.path.exists(source):
        raise PlanError(f"{source}: no such file or folder")
    if os.path.isdir(source):
        result, pairs = _pair_tree(source, target, direction, keep_suffix)
    else:
        result, pairs = _pair_file(source, target, direction, keep_suffix)
    for task in pairs:
        settled = None if overwrite else _settled(task, direction, is_finished)
        if settled:
            result.outcomes.append(settled)
        else:
            result.tasks.append(task)
    return result


def preview(tasks: list[Task], direction: Direction) -> Iterator[Outcome]:
    """What a dry run reports: the tasks that would be attempted, judged by the signatures of their files."""
    for task in tasks:
        yield _preview(task, direction)


@reporting
def _preview(task: Task, direction: Direction) -> Outcome:
    refusal = direction.refusal(task.source, sniff_file(task.source))
    return Outcome(task.source, task.target, *(refusal or ("planned",)))


def _pair_file(source: str, target: str, direction: Direction, keep_suffix: bool) -> tuple[Plan, list[Task]]:
    if not os.path.isfile(source):
        raise PlanError(f"{source}: not a regular file")
    if os.path.isdir(target) or target.endswith(os.sep):
        target = os.path.join(target, _target_name(os.path.basename(source), direction, keep_suffix))
    elif os.path.splitext(target)[1].lower() != direction.suffix:
        raise PlanError(f"{target}: the target of a file must end in {direction.suffix} or be an existing folder")
    if os.path.exists(target) and os.path.samefile(source, target):
        raise PlanError(f"{source}: source and target are the same file")
    refusal = direction.refusal(source, sniff_file(source))
    if refusal:  # what may be skipped in a tree is a failure when it is asked for by name
        return Plan(outcomes=[Outcome(source, target, "failed", refusal[1])]), []
    return Plan(folders=[os.path.dirname(target) or os.curdir]), [Task(source, target)]


def _pair_tree(source: str, target: str, direction: Direction, keep_suffix: bool) -> tuple[Plan, list[Task]]:
    if os.path.exists(target) and not os.path.isdir(target):
        raise PlanError(f"{target}: the target of a folder must be a folder")
    if _is_inside(target, source) or _is_inside(source, target):
        raise PlanError(f"{target}: source and target folder must not be the same or inside one another")
    tree = walk(source)
    folders = [os.path.join(target, folder) for folder in tree.folders]
    for folder in folders:
        if os.path.exists(folder) and _is_inside(folder, source):
            raise PlanError(f"{folder}: this target folder is a link into the source")
    tasks = [
        Task(os.path.join(source, path), os.path.join(target, _target_name(path, direction, keep_suffix)))
        for path in tree.files
    ]
    _check_collisions(tasks, direction)
    return Plan(outcomes=tree.outcomes, folders=folders), tasks


def _target_name(path: str, direction: Direction, keep_suffix: bool) -> str:
    stem, suffix = os.path.splitext(path)
    if not keep_suffix and suffix.lower() in direction.source_suffixes:
        path = stem
    return path + direction.suffix


def _is_inside(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it, links resolved."""
    path, folder = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath([path, folder]) == folder


def _check_collisions(tasks: list[Task], direction: Direction) -> None:
    sources = defaultdict(list)
    for task in tasks:
        sources[task.target].append(task)
    collisions = []
    for target, group in sources.items():
        if len(group) > 1:  # only then is it worth opening them: a.png beside a.txt is no collision
            rivals = [task.source for task in group if _preview(task, direction).status == "planned"]
            if len(rivals) > 1:
                collisions.append(f"  {', '.join(rivals)} -> {target}")
    if collisions:
        shown = "\n".join(collisions[:20] + [f"  and {len(collisions) - 20} more"] * (len(collisions) > 20))
        raise PlanError(f"several sources would become one file; rename them, or keep their suffixes:\n{shown}")


def _settled(task: Task, direction: Direction, is_finished: Callable[[str], bool]) -> Outcome | None:
    """The outcome of a task whose target makes it needless or impossible."""
    if not os.path.lexists(task.target):
        return None
    try:
        if not os.path.isfile(task.target) or sniff_file(task.target) != direction.format:
            return Outcome(
                task.source, task.target, "failed", f"the target exists and is not a file of format {direction.format}"
            )
        is_current = os.stat(task.target).st_mtime_ns >= os.stat(task.source).st_mtime_ns
        if is_current and is_finished(task.target):
            return Outcome(task.source, task.target, "kept", "done before")
    except OSError:  # it disappeared or cannot be read: the attempt to write it will tell
        pass
    return None
