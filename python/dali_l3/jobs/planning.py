"""Which file becomes which. Everything is decided before anything is written."""

from __future__ import annotations

import dataclasses
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..errors import ConversionError
from ..files import is_dated, remove_stale_partials
from ..images.signatures import sniff_file
from .outcomes import Outcome, Outcomes, Status, Task, reporting
from .walking import walk


class PlanError(ConversionError):
    """The request would mix up or overwrite files. Nothing has been written."""


SourceCheck = Callable[[str, str | None], tuple[Status, str] | None]
PageCount = Callable[[str], int]


@dataclass(frozen=True)
class Conversion:
    """A way to convert files.

    name: of the format that is written, for tasks
    suffix: of the files that are written
    signature: their format, as `signatures.sniff` names it
    source_suffixes: suffixes that give way to `suffix`; others stay and are followed by it
    refuse: for a source's path and its format (None: unknown), why it is not converted, as (status, reason), or None
    is_finished: whether a task's target, which has this signature, is whole and holds what would be written
    keeps_files: whether files stay as they are, so that a suffix that gives way does so even if suffixes are kept
    otherwise: the way for files that this one does not suit
    """

    name: str
    suffix: str
    signature: str
    source_suffixes: frozenset[str]
    refuse: SourceCheck
    is_finished: Callable[[Task], bool]
    keeps_files: bool = False
    otherwise: Conversion | None = None


@dataclass
class Plan:
    """tasks: the work. outcomes: files that need no work. folders: the folders of the targets, parents first."""

    tasks: list[Task] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)

    def prepare_folders(self) -> None:
        """Creates the folders and removes temporary files that killed runs left in them. Raises OSError."""
        for folder in self.folders:
            os.makedirs(folder, exist_ok=True)
        self.clear_folders()

    def clear_folders(self) -> None:
        """Removes temporary files that killed runs, or workers of this run, left in the folders. Raises OSError."""
        for folder in self.folders:
            remove_stale_partials(folder)


def plan(
    source: str,
    target: str,
    conversion: Conversion,
    overwrite: bool = False,
    keep_suffix: bool = False,
    count_pages: PageCount | None = None,
) -> Plan:
    """Plans the conversion of the file or folder `source` to `target`, which mirrors its folders, even empty ones.

    A target with the modification time of its source is kept if it is finished. Other targets are written again; files
    of another format fail. With `overwrite` all targets are written again.
    With `keep_suffix`, a.png becomes a.png.l3, not a.l3.

    count_pages: returns the number of pages of the file at a path. Each page becomes a target: a.tif with three pages
        becomes a-1.l3 to a-3.l3 (with `keep_suffix` a.tif-1.l3 …), with thirty pages a-01.l3 to a-30.l3. May raise the
        errors of a conversion. None: each source becomes one target.

    Raises PlanError if source and target overlap, if two images would become one file, if `target` names a file that
    exists, without `overwrite`, or if it names a file where the source becomes several.
    """
    if not os.path.exists(source):
        raise PlanError(f"{source}: no such file or folder")
    if os.path.isdir(source):
        return plan_tree(
            source, target, lambda files: dict.fromkeys(files, conversion), overwrite, keep_suffix, count_pages
        )
    result, tasks = _pair_file(source, target, conversion, overwrite, keep_suffix, count_pages)
    _settle(result, [(task, conversion) for task in tasks], overwrite)
    return result


def plan_tree(
    source: str,
    target: str,
    choose: Callable[[list[str]], Mapping[str, Conversion]],
    overwrite: bool = False,
    keep_suffix: bool = False,
    count_pages: PageCount | None = None,
) -> Plan:
    """`plan` for a folder whose files are converted in different ways.

    choose: for the files of the tree, as paths relative to `source`, which way each goes. No two images may differ in
        their suffixes alone, even if they go different ways.
    """
    if os.path.exists(target) and not os.path.isdir(target):
        raise PlanError(f"{target}: the target of a folder must be a folder")
    if is_inside(target, source) or is_inside(source, target):
        raise PlanError(f"{target}: source and target folder must not be the same or inside one another")
    tree = walk(source)
    folders = [os.path.join(target, folder) for folder in tree.folders]
    for folder in folders:
        if os.path.exists(folder) and is_inside(folder, source):
            raise PlanError(f"{folder}: this target folder is a link into the source")
    conversions = choose(tree.files)
    pairs = []
    for path in tree.files:
        conversion = conversions[path]
        name = os.path.join(target, _target_name(path, conversion, keep_suffix))
        tasks = _tasks(os.path.join(source, path), name, conversion, count_pages)
        if conversion.otherwise:
            otherwise = os.path.join(target, _target_name(path, conversion.otherwise, keep_suffix))
            tasks = [dataclasses.replace(task, otherwise=otherwise) for task in tasks]
        pairs += [(task, conversion) for task in tasks]
    _check_collisions(pairs)
    result = Plan(outcomes=tree.outcomes, folders=folders)
    _settle(result, pairs, overwrite)
    return result


def preview(tasks: list[Task], refuse: SourceCheck) -> Outcomes:
    """The outcomes of a dry run: the tasks that would be attempted, by the signatures of their files."""
    for task in tasks:
        yield _preview(task, refuse)


@reporting
def _preview(task: Task, refuse: SourceCheck) -> Outcome:
    refused = refuse(task.source, sniff_file(task.source))
    status, reason = refused or ("planned", "")
    return Outcome(task.source, task.target, status, reason, format=task.format)


def _pair_file(
    source: str,
    target: str,
    conversion: Conversion,
    overwrite: bool,
    keep_suffix: bool,
    count_pages: PageCount | None,
) -> tuple[Plan, list[Task]]:
    if not os.path.isfile(source):
        raise PlanError(f"{source}: not a regular file")
    is_folder = os.path.isdir(target) or target.endswith(os.sep)
    if is_folder:
        target = os.path.join(target, _target_name(os.path.basename(source), conversion, keep_suffix))
    elif os.path.splitext(target)[1].lower() != conversion.suffix:
        raise PlanError(f"{target}: the target of a file must end in {conversion.suffix} or be an existing folder")
    tasks = _tasks(source, target, conversion, count_pages)
    if len(tasks) > 1 and not is_folder:
        raise PlanError(f"{target} is not a folder: the {len(tasks)} pages of {source} need a folder as their target")
    if os.path.exists(target) and os.path.samefile(source, target):
        raise PlanError(f"{source}: source and target are the same file")
    if not (is_folder or overwrite) and os.path.lexists(target):
        raise PlanError(f"{target}: exists already; --overwrite replaces it")
    refused = conversion.refuse(source, sniff_file(source))
    if refused:  # what may be skipped in a tree is a failure when it is asked for by name
        return Plan(outcomes=[Outcome(source, target, "failed", refused[1])]), []
    return Plan(folders=[os.path.dirname(target) or os.curdir]), tasks


def _target_name(path: str, conversion: Conversion, keep_suffix: bool) -> str:
    stem, suffix = os.path.splitext(path)
    if suffix.lower() in conversion.source_suffixes and (conversion.keeps_files or not keep_suffix):
        path = stem
    return path + conversion.suffix


def _tasks(source: str, target: str, conversion: Conversion, count_pages: PageCount | None) -> list[Task]:
    """The conversion of the file `source` to `target`, or, if it has several pages, to a file beside it for each."""
    try:
        pages = count_pages(source) if count_pages else 1
    except (OSError, ConversionError):  # the attempt to convert it will tell
        pages = 1
    if pages <= 1:
        return [Task(source, target, conversion.name)]
    stem, suffix = os.path.splitext(target)
    width = len(str(pages))
    return [Task(source, f"{stem}-{page + 1:0{width}}{suffix}", conversion.name, page) for page in range(pages)]


def is_inside(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it, links resolved."""
    path, folder = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath([path, folder]) == folder


def _check_collisions(pairs: list[tuple[Task, Conversion]]) -> None:
    rivals = defaultdict(list)
    for task, conversion in pairs:
        for name in _names(task, conversion):
            rivals[name].append((task, conversion))
    collisions: dict[str, None] = {}  # each once
    for group in rivals.values():
        if len(group) > 1:  # only then is it worth opening them: a.png beside a.txt is no collision
            images = [task for task, conversion in group if _preview(task, conversion.refuse).status == "planned"]
            if len(images) > 1:
                collisions[f"  {', '.join(task.source for task in images)} -> {images[0].target}"] = None
    if collisions:
        shown = "\n".join([*collisions][:20] + [f"  and {len(collisions) - 20} more"] * (len(collisions) > 20))
        raise PlanError(f"several sources would become one file; rename them, or use --keep-suffix:\n{shown}")


def _names(task: Task, conversion: Conversion) -> set[str]:
    """What may be the name of the task's target, and what stands for it with any suffix that formats have."""
    if not conversion.otherwise:
        return {task.target.removesuffix(conversion.suffix)}
    target, suffix = (
        (task.otherwise, conversion.otherwise.suffix) if conversion.keeps_files else (task.target, conversion.suffix)
    )
    return {task.target, task.otherwise, target.removesuffix(suffix)}


def _settle(result: Plan, pairs: list[tuple[Task, Conversion]], overwrite: bool) -> None:
    """Sorts tasks into those to do and those whose target makes them needless or impossible."""
    for task, conversion in pairs:
        settled = None if overwrite else _settled(task, conversion)
        if settled:
            result.outcomes.append(settled)
        else:
            result.tasks.append(task)


def _settled(task: Task, conversion: Conversion) -> Outcome | None:
    if not os.path.lexists(task.target):
        return None
    try:
        if is_other_file(task.target, conversion.signature):
            reason = f"the target exists and is not a file of format {conversion.signature}"
            return Outcome(task.source, task.target, "failed", reason, page=task.page)
        # Not "at least as new": a source that was replaced may well be old.
        if is_dated(task.target, os.stat(task.source).st_mtime_ns) and conversion.is_finished(task):
            return Outcome(task.source, task.target, "kept", "done before", format=conversion.name, page=task.page)
    except OSError:  # it disappeared or cannot be read: the attempt to write it will tell
        pass
    return None


def is_other_file(path: str, signature: str) -> bool:
    """Whether there is something at `path` that is not a file of this format. Raises OSError."""
    return os.path.lexists(path) and (not os.path.isfile(path) or sniff_file(path) != signature)
