"""Runs a plan: creates folders, starts worker processes, and cleans up after signals and failures to write."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable

from ..errors import StorageError, TargetError
from ..wording import counted
from .interrupting import stopping_on_signals
from .outcomes import Outcome, Outcomes, Task
from .planning import Plan
from .workers import DEFAULT_LIMITS, Limits, run_tasks

_MOST_UNWRITABLE = 3  # targets: the first could be another one's fault, and more would tell nothing new
_ADVICE = {
    errno.ENOSPC: "free some space and run it again",
    errno.EDQUOT: "free some space and run it again",
    errno.EFBIG: "allow larger files and run it again",
    errno.EXDEV: "use --source-as copy",
    errno.EOPNOTSUPP: "use --source-as copy",
    errno.ENOENT: "run it again to create the folder again",
}


def run_plan(
    plan: Plan,
    function: Callable[[Task], Outcome],
    workers: int | None = None,
    initializer: Callable[[], None] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    run: Callable[..., Outcomes] | None = None,
) -> Outcomes:
    """Prepares the plan's folders and yields `function(task)` for every task, in order of completion.

    function, workers, initializer, limits: as `run_tasks` takes them
    run: what runs the tasks; by default `run_tasks`

    Ctrl-C, SIGTERM and SIGHUP end the run after the running tasks, which get `limits.grace` seconds; a second signal
    ends it at once. Both raise Interrupted in the end. No half-written files are left. For the main thread.

    Raises OSError if the folders cannot be prepared. Raises TargetError, which names the folder and says what to do,
    after a few targets could not be written, and StorageError once the storage does not answer; the other tasks are
    not tried.
    """
    plan.prepare_folders()
    unwritable: list[tuple[int, str]] = []
    unreachable: list[StorageError] = []
    try:
        with stopping_on_signals(limits.grace) as interrupted:
            outcomes = (run or run_tasks)(
                function,
                plan.tasks,
                workers,
                initializer,
                lambda: interrupted() or len(unwritable) >= _MOST_UNWRITABLE or bool(unreachable),
                limits,
            )
            with contextlib.closing(outcomes):
                for outcome in outcomes:
                    if outcome.unwritable:
                        unwritable.append(outcome.unwritable)
                    if outcome.unreachable:
                        unreachable.append(storage_error(outcome))
                    yield outcome
    finally:
        plan.clear_folders()
    if unreachable:
        raise surrender_to_outage(unreachable[0])
    if len(unwritable) >= _MOST_UNWRITABLE:
        number, folder = unwritable[0]
        raise surrender(TargetError(number, os.strerror(number), folder), len(unwritable))


def surrender(error: TargetError, files: int = 1) -> TargetError:
    """The error that ends a run because `files` files could not be written, and says what to do."""
    number = error.errno or errno.EIO
    advice = _ADVICE.get(number, "make it writable and run it again")
    what = f"{counted(files, 'file')} could not be written"
    return TargetError(number, f"{error.strerror}: the run was stopped after {what}; {advice}", error.filename)


def storage_error(outcome: Outcome) -> StorageError:
    """What an outcome that has `unreachable` failed for."""
    assert outcome.unreachable
    number, path = outcome.unreachable
    return StorageError(number, outcome.reason, path)


def surrender_to_outage(error: StorageError) -> StorageError:
    """The error that ends a run because the storage does not answer, or not to us, and says what to do."""
    advice = "no file is to blame, so the run was stopped; run it again to go on when the storage is within reach"
    return StorageError(error.errno, f"{error.strerror}: {advice}", error.filename)
