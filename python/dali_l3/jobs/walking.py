"""The files of a tree, in a fixed order, whatever else the tree holds."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from .outcomes import Outcome, Status


@dataclass
class Tree:
    """files, folders: paths relative to the root, which is the folder "". outcomes: what was passed over, and why."""

    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)


def walk(root: str) -> Tree:
    """Lists the tree under `root`. Symbolic links are followed, hidden entries and loops are skipped.

    Dangling links and folders that cannot be read count as failed: files that were expected are missing.
    """
    tree = Tree()
    pending = [("", frozenset())]  # folder, identities of the folders above it
    while pending:
        folder, above = pending.pop()
        path = os.path.join(root, folder)
        try:
            identity = _identity(path)
            if identity in above:
                tree.outcomes.append(Outcome(path, None, "skipped", "symbolic link to a folder that contains it"))
                continue
            with os.scandir(path) as entries:
                listing = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            tree.outcomes.append(Outcome(path, None, "failed", f"folder cannot be read: {error.strerror}"))
            continue
        tree.folders.append(folder)
        below = []
        for entry in listing:
            relative = os.path.join(folder, entry.name)
            kind = _kind(entry)
            if kind == "file":
                tree.files.append(relative)
            elif kind == "folder":
                below.append((relative, above | {identity}))
            else:
                tree.outcomes.append(Outcome(entry.path, None, *kind))
        pending.extend(reversed(below))
    return tree


def _kind(entry: os.DirEntry[str]) -> str | tuple[Status, str]:
    """Tells a "file" from a "folder"; for an entry to pass over, its (status, reason)."""
    if entry.name.startswith("."):
        return "skipped", "hidden"
    try:
        if entry.is_dir():
            return "folder"
        if entry.is_file():
            return "file"
        if entry.is_symlink():
            return "failed", "dangling symbolic link"
    except OSError as error:  # a link to itself, say
        return "failed", error.strerror
    return "skipped", "not a regular file"


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
