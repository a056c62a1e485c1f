"""A run on the terminal: progress, messages as they arise, a summary, and the report for machines."""

from __future__ import annotations

import bisect
import contextlib
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..errors import StorageError, TargetError
from ..wording import counted
from .interrupting import Interrupted
from .outcomes import Outcome, Outcomes

_LISTED_PER_REASON = 10  # the report has them all

console = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)


def printable(text: str) -> str:
    """`text` with everything escaped that a terminal would act upon: file names may hold control codes."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


@dataclass
class Totals:
    """The totals of a run.

    counts: outcomes by status
    left: files that were not tried
    interrupted, stopped: why the run ended early: by a signal, or because nothing could be written, or read
    source_size, target_size, raw_size: sums over files that were done, in bytes
    """

    counts: Counter[str]
    left: int = 0
    interrupted: Interrupted | None = None
    stopped: StorageError | TargetError | None = None
    source_size: int = 0
    target_size: int = 0
    raw_size: int = 0


def show(outcomes: Outcomes, total: int, verb: str, report: str | None = None, listing: bool = False) -> Totals:
    """Shows a run as it happens and returns its totals, also if Interrupted, StorageError or TargetError ends it early.

    outcomes: of all files, as they come; closed at the end
    total: the number of outcomes to come
    verb: what happens to a file that is done: "converted", …
    report: path of a file that gets each outcome as a line of JSON, or "-" for standard output
    listing: print the planned files on standard output, without a progress bar in between
    Raises OSError, which names the report, if that cannot be written.
    """
    totals = Totals(Counter())
    skipped: dict[str, _Names] = defaultdict(_Names)
    notes: dict[str, _Names] = defaultdict(_Names)
    start = time.monotonic()
    with _Report(report) as report_lines, _progress(not listing) as progress, contextlib.closing(outcomes):
        bar = progress.add_task(verb, total=total, rate="")
        try:
            for outcome in outcomes:
                totals.counts[outcome.status] += 1
                if outcome.status == "done":
                    totals.source_size += outcome.source_size
                    totals.target_size += outcome.target_size
                    totals.raw_size += outcome.raw_size
                report_lines.add(outcome)
                if outcome.status == "failed":
                    console.print(f"failed: {printable(outcome.name)}: {printable(outcome.reason)}")
                elif outcome.status == "skipped":
                    skipped[outcome.reason].add(outcome.name)
                elif outcome.status == "planned" and listing:
                    print(f"{printable(outcome.source)} -> {printable(outcome.target or '')}")
                for note in outcome.notes:
                    notes[note].add(outcome.name)
                progress.update(bar, advance=1, rate=_rate(totals, time.monotonic() - start))
        except Interrupted as interruption:
            totals.interrupted = interruption
        except (StorageError, TargetError) as error:
            totals.stopped = error
    totals.left = total - sum(totals.counts.values())
    _list_by_reason("skipped", skipped)
    _list_by_reason("note", notes)
    if totals.stopped:
        console.print(f"{printable(totals.stopped.filename)}: {totals.stopped.strerror}")
    console.print(_summary(totals, verb, time.monotonic() - start))
    return totals


def _progress(enabled: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not (enabled and console.is_terminal),
    )


class _Report:
    """The outcomes as lines of JSON in a file, on standard output ("-"), or nowhere (None). A context manager."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._file: TextIO | None = None
        if path == "-":
            self._file = sys.stdout  # which the progress bar is going to replace
        elif path:  # line by line, so that a run that is killed leaves what it did
            self._file = open(path, "w", encoding="ascii", buffering=1)  # noqa: SIM115

    def __enter__(self) -> _Report:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file and self._path != "-":
            with self._errors_named():
                self._file.close()

    def add(self, outcome: Outcome) -> None:
        if self._file:
            with self._errors_named():
                print(outcome.to_json(), file=self._file)

    @contextlib.contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            name = "standard output" if self._path == "-" else self._path
            raise OSError(error.errno, error.strerror, name) from error


def _rate(totals: Totals, seconds: float) -> str:
    files = totals.counts["done"]
    if not files or not seconds:
        return ""
    if not totals.raw_size:
        return f"{files / seconds:.1f} files/s"
    return f"{files / seconds:.1f} images/s, {totals.raw_size / seconds / 1e6:.1f} MB/s of pixels"


@dataclass
class _Names:
    """The number of names, and the first of them, sorted. There may be very many."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, name: str) -> None:
        self.count += 1
        bisect.insort(self.first, name)
        del self.first[_LISTED_PER_REASON:]


def _list_by_reason(heading: str, names_by_reason: dict[str, _Names]) -> None:
    for reason, names in sorted(names_by_reason.items()):
        console.print(f"{heading}: {printable(reason)}: {counted(names.count, 'file')}")
        for name in names.first:
            console.print(f"  {printable(name)}")
        if names.count > _LISTED_PER_REASON:
            console.print("  … (--report lists all)")


def _summary(totals: Totals, verb: str, seconds: float) -> str:
    words = {"done": verb, "planned": "planned", "kept": "kept", "skipped": "skipped", "failed": "failed"}
    parts = [
        f"{totals.counts[status]} {word}"
        for status, word in words.items()
        if totals.counts[status] or status == "failed"
    ]
    if totals.left:
        parts.append(f"{totals.left} left")
    text = ("interrupted; run it again to continue: " if totals.interrupted else "") + ", ".join(parts)
    if totals.counts["done"]:
        text += f" in {seconds:.1f} s: {_rate(totals, seconds)}"
        if totals.target_size:
            text += f"; {totals.source_size / 1e6:.2f} MB became {totals.target_size / 1e6:.2f} MB"
        if totals.target_size and totals.raw_size:  # the pixels of files that stay as they are may not be known
            text += f" ({totals.target_size / totals.raw_size:.3f} of the pixels' size)"
    return text
