"""A folder for damaged files: the dataset can be used without them, and nothing is lost."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import itertools
import os
import shutil
from collections.abc import Callable, Sequence

from ..errors import ConversionError
from ..files import remove_stale_partials, write_atomically
from ..jobs.outcomes import Outcome, Outcomes
from ..jobs.planning import PlanError, is_inside


class Quarantine:
    """Moves files to a folder and keeps their paths below the folders that are verified."""

    def __init__(self, folder: str, verified: Sequence[str]) -> None:
        """Writes nothing yet.

        folder: its path
        verified: the files and folders that are verified

        Raises PlanError if `folder` is not a folder, or if any of `verified` is in it.
        """
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise PlanError(f"{folder}: the quarantine must be a folder")
        for path in verified:
            if is_inside(path, folder):
                raise PlanError(f"{folder}: the quarantine must not contain what is verified ({path})")
        self._folder, self._verified = folder, verified

    def receive(self, outcomes: Outcomes) -> Outcomes:
        """Passes on the outcomes of `verify_file`, and moves the files that are damaged.

        The reason of such an outcome then also says where the file was moved, or why it was not.
        """
        with contextlib.closing(outcomes):
            for outcome in outcomes:
                yield self._moved(outcome) if outcome.damaged else outcome

    def _moved(self, outcome: Outcome) -> Outcome:
        try:
            place = self._move(outcome.source)
        except (OSError, ConversionError) as error:
            why = getattr(error, "strerror", None) or str(error)
            return dataclasses.replace(outcome, reason=f"{outcome.reason}; not moved: {why}")
        return dataclasses.replace(outcome, target=place, reason=f"{outcome.reason}; moved to {place}")

    def _move(self, source: str) -> str:
        """Moves a file, or a link as such, and returns its new path. Raises OSError or ConversionError if it stays."""
        roots = (path for path in self._verified if source.startswith(os.path.join(path, "")))
        root = max(roots, key=len, default=os.path.dirname(source))
        below = source[len(os.path.join(root, "")) :] if root else source
        parent = os.path.realpath(os.path.dirname(source))
        if parent != os.path.join(os.path.realpath(root), os.path.dirname(below)).rstrip(os.sep):
            raise ConversionError("it lies behind a symbolic link to a folder")
        wanted = os.path.join(self._folder, below)
        os.makedirs(os.path.dirname(wanted), exist_ok=True)
        return _move_link(source, parent, wanted) if os.path.islink(source) else _move_file(source, wanted)


def _move_link(source: str, folder: str, wanted: str) -> str:
    """Moves the symbolic link in `folder` so that it leads to the same file, which stays."""
    destination = os.path.join(folder, os.readlink(source))
    place = _first_free(wanted, lambda name: os.symlink(destination, name))
    os.unlink(source)
    return place


def _move_file(source: str, wanted: str) -> str:
    """Moves a file, also to another file system. Whatever happens, it is at its old or its new place."""
    flags = os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    place = _first_free(wanted, lambda name: os.close(os.open(name, flags)))  # an empty file, which keeps the name
    try:
        try:
            os.rename(source, place)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy(source, place)
            os.unlink(source)
    except OSError:
        if os.path.lexists(source):  # over a network, what succeeded may seem to have failed
            os.unlink(place)
        raise
    return place


def _first_free(path: str, create: Callable[[str], None]) -> str:
    """Creates a.png, or a-1.png, a-2.png, … if there is one, and returns its path."""
    stem, suffix = os.path.splitext(path)
    for number in itertools.count():
        name = f"{stem}-{number}{suffix}" if number else path
        with contextlib.suppress(FileExistsError):
            create(name)
            return name
    raise AssertionError


def _copy(source: str, place: str) -> None:
    """Copies a file to another file system, on whose disk it is when this returns."""
    folder = os.path.dirname(place)
    remove_stale_partials(folder)
    with open(source, "rb") as file:
        write_atomically(place, file.read())
    with contextlib.suppress(OSError):  # of a file system that keeps less
        shutil.copystat(source, place)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
