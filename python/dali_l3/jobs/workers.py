"""Tasks in worker processes.

Processes, not threads: a crash in an image library, or the kernel's out-of-memory killer, takes one worker and one
file, not the run; and the parts of image readers that are Python do not queue for the GIL.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, ThreadPoolExecutor, wait
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
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Outcome]:
    """Yields `function(task)` for every task, in order of completion.

    function, initializer: picklable; the latter is called first in each worker.
    stopped: once this returns True, the tasks at hand are completed, and the others dropped.
    A task whose worker dies is tried once more by itself, and counts as failed when it dies again.
    When the iteration is abandoned, by KeyboardInterrupt, say, they are completed too; another exception ends that.
    Workers end when the process that started them does, however it ends.
    """
    pending = deque(tasks)
    while pending and not stopped():
        suspects = yield from _run_until_crash(function, pending, workers, initializer, stopped)
        for task in suspects:
            crashed = yield from _run_until_crash(function, deque([task]), 1, initializer, stopped)
            if crashed and not stopped():
                reason = "the worker process died (out of memory, or a crash in a library)"
                yield Outcome(task.source, task.target, "failed", reason)


def _run_until_crash(
    function: Callable[[Task], Outcome],
    pending: deque[Task],
    workers: int,
    initializer: Callable[[], None] | None,
    stopped: Callable[[], bool],
) -> Generator[Outcome, None, list[Task]]:
    """Runs `pending` empty, or until a worker dies; returns the tasks that were under way then."""
    workers = min(workers, len(pending))
    strangers = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start_worker, (initializer,))
    submitter = ThreadPoolExecutor(1)
    running = {}
    try:
        submitter.submit(_block_interrupts).result()
        while running or (pending and not stopped()):
            while pending and len(running) < workers * _QUEUED_PER_WORKER and not stopped():
                # May raise: a task leaves the queue when it is accepted.
                future = submitter.submit(pool.submit, function, pending[0]).result()
                running[future] = pending.popleft()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                outcome = future.result()
                del running[future]
                yield outcome
    except BrokenProcessPool:
        wait(running)
        crashed = [task for future, task in running.items() if future.exception()]
        yield from (future.result() for future in running if not future.exception())
        return crashed
    finally:
        try:
            submitter.shutdown()
            pool.shutdown(cancel_futures=True)
        except BaseException:  # a second Ctrl-C: a pool that is half shut down would keep this process for ever
            submitter.shutdown()  # so that no worker is missing from the list
            for worker in set(multiprocessing.active_children()) - strangers:
                worker.kill()
            pool.shutdown()
            raise
    return []


def _block_interrupts() -> None:
    """Keeps Ctrl-C from the processes that this thread starts, for good: they inherit its signal mask.

    The terminal sends it to the workers too, even to those still starting, but only the main thread shall act on it.
    That one must not block it, not even for a while: another thread would receive the signal and not wake it.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _start_worker(initializer: Callable[[], None] | None) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if initializer:
        initializer()


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)
