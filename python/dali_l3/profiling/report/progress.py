"""Progress of the profiler: a bar on a terminal, else a line for everything that is begun."""

from __future__ import annotations

from types import TracebackType

from rich import progress as bars
from rich.console import Console


class Progress:
    """A context manager, to be called with what is being done, how many steps of it are done, and of how many."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._what = ""
        self._bar = bars.Progress(
            bars.SpinnerColumn("line"),
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        if what != self._what and not self._console.is_terminal:
            self._console.print(what, markup=False)
        self._what = what
        self._bar.update(self._task, description=what, completed=done, total=total)
