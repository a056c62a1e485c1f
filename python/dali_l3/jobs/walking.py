"""The files of a tree, in a fixed order, whatever else the tree holds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from .outcomes import Outcome, Status


@dataclass(frozen=True)
class Found:
    """A file or a folder of a tree. path: relative to the root, which is the folder ""."""

    path: str
    is_folder: bool = False


@dataclass
class Tree:
    """files, folders: paths relative to the root, which is the folder "". outcomes: skipped entries and failures."""

    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)


def walk(root: str) -> Tree:
    """Lists the tree under `root`, in the order of `scan`."""
    tree = Tree()
    for found in scan(root):
        if isinstance(found, Outcome):
            tree.outcomes.append(found)
        elif found.is_folder:
            tree.folders.append(found.path)
        else:
            tree.files.append(found.path)
    return tree


def scan(root: str, without: str | None = None) -> Iterator[Found | Outcome]:
    """Goes through the tree under `root`, a folder at a time, so that memory does not grow with the tree.

    Symbolic links are followed, hidden entries and loops are skipped. Yields outcomes for skipped
    entries; dangling links and folders that cannot be read count as failed, because expected files are missing.

    without: a folder that is passed over in silence, if it is met
    """
    excluded = _identity(without) if without and os.path.exists(without) else None
    pending: list[tuple[str, frozenset[tuple[int, int]]]] = [
        ("", frozenset())
    ]  # folder, identities of the folders above it
    while pending:
        folder, above = pending.pop()
        path = os.path.join(root, folder)
        try:
            identity = _identity(path)
            if identity == excluded:
                continue
            if identity in above:
                yield Outcome(path, None, "skipped", "symbolic link to a folder that contains it")
                continue
            with os.scandir(path) as entries:
                listing = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            yield Outcome(path, None, "failed", f"folder cannot be read: {error.strerror}")
            continue
        yield Found(folder, is_folder=True)
        below = []
        for entry in listing:
            relative = os.path.join(folder, entry.name)
            kind = _kind(entry)
            if kind == "file":
                yield Found(relative)
            elif kind == "folder":
                below.append((relative, above | {identity}))
            else:
                yield Outcome(entry.path, None, *kind)
        pending.extend(reversed(below))


def _kind(entry: os.DirEntry[str]) -> str | tuple[Status, str]:
    """Tells a "file" from a "folder"; for an entry to pass over, its (status, reason)."""
    if entry.name.startswith("."):
        return "skipped", "hidden"
    try:
        if entry.is_dir():
            return "folder"
        if entry.is_file():
            return "file"
        if entry.is_symlink() and not os.path.exists(entry.path):
            return "failed", "dangling symbolic link"
    except OSError as error:  # a link to itself, say
        return "failed", error.strerror or str(error)
    return "skipped", "not a regular file"


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
