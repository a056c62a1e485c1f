"""One file to process, and the result."""

from __future__ import annotations

import errno
import functools
import json
import os
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ..errors import ConversionError, L3Error, StorageError, TargetError

Status = Literal["done", "planned", "kept", "skipped", "failed"]

_OF_ONE_NAME = {
    errno.ENAMETOOLONG,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.ENOTEMPTY,
    errno.EEXIST,
    errno.EILSEQ,
    errno.EINVAL,
}
"""Errors of writing that other files in the same folder need not meet."""


@dataclass(frozen=True)
class Task:
    """One file to process.

    source: its path
    target: path of what it becomes; empty: nothing is written
    format: name of the target's format; empty: what the kind of task always writes
    page: the page to read, from 0, if each page of the source becomes a target
    otherwise: path of what it becomes if the format does not suit it; empty: only l3-fast may take its place
    size: bytes of the source, if that is not a file of its own; None: the file's
    """

    source: str
    target: str = ""
    format: str = ""
    page: int | None = None
    otherwise: str = ""
    size: int | None = None


@dataclass(frozen=True)
class Outcome:
    """The result for one file.

    source: path of the file that was read
    target: path of the file that it becomes, if any
    status: "done" (converted, exported or verified), "planned" (in a dry run), "kept" (done by an earlier run),
        "skipped" (not a file of the kind that is asked for) or "failed"
    reason: why it was kept or skipped, or why it failed
    notes: what was changed or left out, a sentence each
    source_size, target_size: bytes of the two files
    raw_size: bytes of the pixels
    format: name of the target's format, where there was a choice
    psnr: the peak signal-to-noise ratio in dB, if a lossy format changed the pixels
    page: the page that was read, from 0, if each page of the source becomes a target
    damaged: whether it failed because the content of the file is damaged; set by verification
    unwritable: for a failure to write that other files will have too: the error number of the system, and the folder
    unreachable: for a failure to read that is none of the file's: the error number, and what was to be read
    """

    source: str
    target: str | None
    status: Status
    reason: str = ""
    notes: tuple[str, ...] = ()
    source_size: int = 0
    target_size: int = 0
    raw_size: int = 0
    format: str = ""
    psnr: float | None = None
    page: int | None = None
    damaged: bool = False
    unwritable: tuple[int, str] | None = None
    unreachable: tuple[int, str] | None = None

    @property
    def name(self) -> str:
        """The source, and the page of it if there is one, counted from 1, as messages call it."""
        return self.source if self.page is None else f"{self.source}, page {self.page + 1}"

    def to_json(self) -> str:
        """One line of JSON, in ASCII. `page`, counted from 1, and `damaged` are there only where they say something."""
        facts = asdict(self)
        del facts["unwritable"], facts["unreachable"]
        page, damaged = facts.pop("page"), facts.pop("damaged")
        if page is not None:
            facts["page"] = page + 1
        if damaged:
            facts["damaged"] = True
        return json.dumps(facts)

    @classmethod
    def from_json(cls, line: str | bytes) -> Outcome:
        """Reads a line of `to_json`. Raises ValueError, KeyError or TypeError if it is none."""
        facts = json.loads(line)
        facts["notes"] = tuple(facts["notes"])
        if "page" in facts:
            facts["page"] -= 1
        return cls(**facts)


Outcomes = Generator[Outcome, None, None]
"""Outcomes as they come. To be closed by whoever does not take them all."""


def failed(task: Task, reason: str, unwritable: tuple[int, str] | None = None) -> Outcome:
    """The outcome of a task that failed."""
    return Outcome(task.source, task.target or None, "failed", reason, page=task.page, unwritable=unwritable)


def failure(task: Task, error: BaseException) -> Outcome:
    """The outcome of a task that raised `error`."""
    if isinstance(error, TargetError):
        reason = f"cannot write {error.filename}: {error.strerror}"
        folder = os.path.dirname(error.filename) or os.curdir
        number = error.errno or errno.EIO
        return failed(task, reason, None if number in _OF_ONE_NAME else (number, folder))
    if isinstance(error, StorageError):
        unreachable = error.errno or errno.EIO, error.filename or task.source
        return replace(failed(task, error.strerror or str(error)), unreachable=unreachable)
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
    elif isinstance(error, (L3Error, ConversionError)):
        reason = str(error)
    elif isinstance(error, MemoryError):
        reason = "not enough memory"
    else:
        reason = f"unexpected {type(error).__name__}: {error}"
    return failed(task, reason)


def reporting(function: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """Makes a function of a Task return its failure as an Outcome, so that one bad file does not end a run.

    Outcomes get the page of their task.
    """

    @functools.wraps(function)
    def wrapper(task: Task, *args: Any, **kwargs: Any) -> Outcome:
        try:
            outcome = function(task, *args, **kwargs)
        except Exception as error:
            outcome = failure(task, error)
        return outcome if task.page is None else replace(outcome, page=task.page)

    return wrapper
