"""Tasks in worker processes.

Processes, not threads: a crash in an image library, or the kernel's out-of-memory killer, takes one worker and one
file, not the run; and the parts of image readers that are Python do not queue for the GIL.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from .outcomes import Outcome, Task

_QUEUED_PER_WORKER = 2  # keeps every worker busy, and lets an interrupted run end after few files


def default_workers() -> int:
    """The number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def run_tasks(
    function: Callable[[Task], Outcome],
    tasks: Iterable[Task],
    workers: int,
    initializer: Callable[[], None] | None = None,
) -> Iterator[Outcome]:
    """Yields `function(task)` for every task, in order of completion.

    function, initializer: picklable; the latter is called first in each worker.
    A task whose worker dies is tried once more by itself, and counts as failed when it dies again.
    When the iteration is abandoned (on Ctrl-C, say), the tasks at hand are completed and the others dropped.
    Workers end when the process that started them does, however it ends.
    """
    pending = deque(tasks)
    while pending:
        suspects: list[Task] = []
        yield from _run_until_crash(function, pending, min(workers, len(pending)), initializer, suspects)
        for task in suspects:
            crashed: list[Task] = []
            yield from _run_until_crash(function, deque([task]), 1, initializer, crashed)
            if crashed:
                reason = "the worker process died (out of memory, or a crash in a library)"
                yield Outcome(task.source, task.target, "failed", reason)


def _run_until_crash(
    function: Callable[[Task], Outcome],
    pending: deque[Task],
    workers: int,
    initializer: Callable[[], None] | None,
    suspects: list[Task],
) -> Iterator[Outcome]:
    """Runs `pending` empty, or until a worker dies; then `suspects` are the tasks that were under way."""
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start_worker, (initializer,))
    running = {}
    try:
        while pending or running:
            while pending and len(running) < workers * _QUEUED_PER_WORKER:
                with _interrupts_held():
                    future = pool.submit(function, pending[0])  # may raise: the task leaves the queue when accepted
                    running[future] = pending.popleft()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                outcome = future.result()
                del running[future]
                yield outcome
    except BrokenProcessPool:
        suspects.extend(running.values())
    finally:
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Puts Ctrl-C off, and keeps it for good from processes that are started meanwhile, which inherit the signal mask.

    The terminal sends it to the workers too, even to those still starting, but only this process shall act on it.
    """
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _start_worker(initializer: Callable[[], None] | None) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if initializer:
        initializer()


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)
