"""One file to process, and what became of it."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Literal

from ..errors import ConversionError, L3Error

Status = Literal["done", "planned", "kept", "skipped", "failed"]


@dataclass(frozen=True)
class Task:
    """One file to process.

    source: its path
    target: path of what it becomes, if anything is written
    format: name of the target's format; empty: what the kind of task always writes
    page: of a source whose pages become a target each, the one to read, from 0
    """

    source: str
    target: str | None = None
    format: str = ""
    page: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of one file.

    source: path of the file that was read
    target: path of the file that it becomes, if any
    status: "done" (converted, exported or verified), "planned" (in a dry run), "kept" (done by an earlier run),
        "skipped" (not a file of the kind that is asked for) or "failed"
    reason: why it was kept, skipped or failed
    notes: what was changed or left out, a sentence each
    source_size, target_size: bytes of the two files
    raw_size: bytes of the pixels
    format: name of the target's format, where there was a choice
    psnr: of pixels that a lossy format changed, the peak signal-to-noise ratio in dB
    page: of a source whose pages become a target each, the one that was read, from 0
    damaged: whether it failed because the file's content is damaged, as verifying finds out
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

    @property
    def name(self) -> str:
        """What messages call it: the source, and the page of it if there is one, counted from 1."""
        return self.source if self.page is None else f"{self.source}, page {self.page + 1}"

    def to_json(self) -> str:
        """One line of JSON, in ASCII. `page`, counted from 1, and `damaged` are there only where they say something."""
        facts = asdict(self)
        page, damaged = facts.pop("page"), facts.pop("damaged")
        if page is not None:
            facts["page"] = page + 1
        if damaged:
            facts["damaged"] = True
        return json.dumps(facts)


def failure(task: Task, error: BaseException) -> Outcome:
    """The outcome of a task that raised `error`."""
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
    elif isinstance(error, (L3Error, ConversionError)):
        reason = str(error)
    elif isinstance(error, MemoryError):
        reason = "not enough memory"
    else:
        reason = f"unexpected {type(error).__name__}: {error}"
    return Outcome(task.source, task.target, "failed", reason)


def reporting(function: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """Makes a function of a Task return its failure as an Outcome, so that one bad file does not end a run.

    Outcomes get the page of their task.
    """

    @functools.wraps(function)
    def wrapper(task: Task, *args, **kwargs) -> Outcome:
        try:
            outcome = function(task, *args, **kwargs)
        except Exception as error:
            outcome = failure(task, error)
        return outcome if task.page is None else replace(outcome, page=task.page)

    return wrapper
