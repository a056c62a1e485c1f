"""A plan carried out: folders, worker processes, and what is left when a signal comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .interrupting import stopping_on_signals
from .outcomes import Outcome, Task
from .planning import Plan
from .workers import default_workers, run_tasks


def run_plan(
    plan: Plan,
    function: Callable[[Task], Outcome],
    workers: int | None = None,
    initializer: Callable[[], None] | None = None,
) -> Iterator[Outcome]:
    """Prepares the plan's folders and yields `function(task)` for every task, in order of completion.

    function, initializer: as `run_tasks` takes them
    workers: processes; one per CPU by default

    Ctrl-C and SIGTERM end it after the tasks at hand, a second one at once; both raise Interrupted in the end. Nothing
    half-written is left. For the main thread.
    """
    plan.prepare_folders()
    try:
        with stopping_on_signals() as stopped:
            yield from run_tasks(function, plan.tasks, workers or default_workers(), initializer, stopped)
    finally:
        plan.clear_folders()
