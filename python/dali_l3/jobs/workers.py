"""Runs tasks in worker processes and watches them.

Processes, not threads: a crash in an image library, or the kernel's out-of-memory killer, takes one worker and one
file, not the run; what hangs can be ended; and the parts of image readers that are Python do not queue for the GIL.

Each worker has a pipe and one task at a time, so it is known which file it is at. It is watched from here, not by a
thread of its own, which would not run while a library holds the GIL.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, cast

from ..memory import anonymous_memory, available_memory
from .interrupting import GRACE
from .outcomes import Outcome, Outcomes, Task, failed
from .serving import GOES_ON, READY, SMALL, WAITS, MemoryRequest, serve

_TICK = 0.1  # seconds between two looks at the workers' time and memory
_LONGEST_LOOK = 1.0  # seconds that pass at most from one look to the next: more is time in which nobody looked
PART_OF_MEMORY = 0.9
"""Of what is available; the rest is left to others, and to files that are being written."""

_WORKER_MEMORY = 128 << 20  # bytes: the interpreter and its libraries, 50 MB as measured, and what `SMALL` images need
_UNEXPLAINED = 512 << 20  # bytes that a worker may take beyond what its image explains: twice that is still harmless
_SECONDS = 60.0  # that every file may take by default
_SECONDS_PER_BYTE = 2e-6  # more than the slowest of encoders takes on a busy machine
_UNKILLABLE = 5.0  # seconds after which a worker that was killed is left to the kernel: its disk does not answer

_DIED = "the worker process died (out of memory, or a crash in a library)"


@dataclass(frozen=True)
class Limits:
    """Limits on time and memory of tasks.

    timeout: seconds for each task, without the time that it waits for memory or for a bucket; None: 60, and 2 more for
        each million bytes of its file and of its pixels; 0: no limit
    memory: bytes for all workers together; None: nine tenths of what is available at the start
    grace: seconds that running tasks have to finish when a run is stopped or abandoned
    """

    timeout: float | None = None
    memory: int | None = None
    grace: float = GRACE


DEFAULT_LIMITS = Limits()


def usable_cpus() -> int:
    """The number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def run_tasks(
    function: Callable[[Task], Outcome],
    tasks: Iterable[Task],
    workers: int | None = None,
    initializer: Callable[[], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    limits: Limits = DEFAULT_LIMITS,
) -> Outcomes:
    """Yields `function(task)` for every task, in order of completion.

    function, initializer: picklable; the latter is called first in each worker. An exception of the function becomes
        the outcome of its task.
    workers: processes; by default one for each CPU, but no more than memory allows
    stopped: once this returns True, no more tasks are started. Running tasks get `limits.grace` seconds to finish and
        are dropped after that

    A function that announces images (see `serving.reserve`) waits until they fit into memory beside the others. A task
    that takes more time than the limits allow, or more memory than its image needs, fails, and its worker is replaced.
    A task whose worker dies is tried once more by itself, after all others, and fails if its worker dies again.

    If the iteration is abandoned, for example by KeyboardInterrupt, running tasks may finish too, as after `stopped`;
    another exception ends that. Workers end with the process that started them, however it ends.
    """
    tasks = deque(tasks)
    with Pool(function, workers, initializer, stopped, limits, len(tasks)) as pool:
        yield from pool.run(tasks)


@dataclass
class _Attempt:
    """A task that a worker has.

    size: bytes of its source
    is_second: whether its worker died the first time
    raw, needed: as its worker announced them, see MemoryRequest; 0 before that
    is_waiting: for memory
    is_away: waiting for a storage
    spent: seconds of work
    seen: when that was last added up
    """

    task: Task
    size: int
    is_second: bool
    raw: int = 0
    needed: int = 0
    is_waiting: bool = False
    is_away: bool = False
    spent: float = 0.0
    seen: float = field(default_factory=time.monotonic)

    @property
    def claim(self) -> int:
        """Bytes that it holds or is about to, as far as they exceed what every worker may take."""
        if self.is_waiting:
            return self.size
        return self.claim_if_granted if self.needed else _probable_claim(self.size)

    @property
    def claim_if_granted(self) -> int:
        return max(self.needed, self.size + self.raw)

    def work(self) -> None:
        """Counts the time that has passed, but not the hours in which the terminal kept all of us stopped."""
        now = time.monotonic()
        self.spent += min(now - self.seen, _LONGEST_LOOK)
        self.seen = now

    def time_limit(self, timeout: float | None) -> float:
        if timeout is None:
            return _SECONDS + _SECONDS_PER_BYTE * (self.size + self.raw)
        return timeout or float("inf")

    @property
    def memory_limit(self) -> int:
        """Bytes: generous, since only what grows without end is meant, or what nobody announced."""
        return 2 * (self.size + self.needed) + _UNEXPLAINED


@dataclass(eq=False)
class _Worker:
    """A process, and what it is at.

    connection: our end of its pipe
    is_ready: whether it has started
    """

    process: BaseProcess
    connection: Connection
    is_ready: bool = False
    attempt: _Attempt | None = None

    def send(self, message: Task | None) -> None:
        with contextlib.suppress(OSError):  # it is dead, which will be noticed
            self.connection.send(message)

    def end(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join(_UNKILLABLE)


class Pool:
    """The workers of a run, which start as they are needed, and end with the context.

    Its arguments are those of `run_tasks`. There are no more workers than `most`.
    """

    def __init__(
        self,
        function: Callable[[Task], Outcome],
        workers: int | None = None,
        initializer: Callable[[], None] | None = None,
        stopped: Callable[[], bool] = lambda: False,
        limits: Limits = DEFAULT_LIMITS,
        most: int = sys.maxsize,
    ) -> None:
        memory = limits.memory
        if memory is None:
            memory = int(PART_OF_MEMORY * available_memory())
        self._size = min(max(workers or min(usable_cpus(), memory // _WORKER_MEMORY), 1), most)
        self._memory = memory - self._size * _WORKER_MEMORY  # for what is announced
        self._work = function, initializer
        self._pending: deque[Task] = deque()
        self._suspects: deque[Task] = deque()  # whose worker died
        self._stopped = stopped
        self._limits = limits
        self._workers: list[_Worker] = []
        self._starter = ThreadPoolExecutor(1)
        self._watched = 0.0
        self._deadline: float | None = None  # of tasks at hand, once the run is stopped

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def run(self, tasks: Iterable[Task]) -> Outcomes:
        """Yields what becomes of tasks, as `run_tasks` does. May be called again once it is through."""
        self._pending.extend(tasks)
        outcomes: list[Outcome] = []
        while True:
            self._dispatch()
            yield from outcomes  # while the workers are busy
            if not self._attempts() or self._is_over():
                return
            outcomes = self._look()

    def close(self) -> None:
        """Ends the workers: the idle ones at once, the others when their tasks are done or their time is up."""
        try:
            self._starter.submit(int).result()  # now no worker is missing from the list
            for worker in self._workers:
                worker.connection.close()  # so that it ends after its task
                if not worker.attempt:
                    worker.process.kill()
            alive = {worker.process.sentinel for worker in self._workers}
            deadline = self._deadline or time.monotonic() + self._limits.grace
            while alive and (left := deadline - time.monotonic()) > 0:
                alive.difference_update(wait(alive, left))
        finally:  # also when a second Ctrl-C ends the waiting
            self._starter.shutdown()
            for worker in self._workers:
                worker.end()

    # ---- Tasks to workers

    def _dispatch(self) -> None:
        while not self._stopped() and (queue := self._pending or self._suspects):
            attempts = self._attempts()
            worker = next((worker for worker in self._workers if not worker.attempt), None)
            if not worker and len(self._workers) == self._size:
                return
            size = _size_of(queue[0])
            is_suspect = queue is self._suspects
            claim = _probable_claim(size)
            if attempts and (is_suspect or (claim and self._claimed() + claim > self._memory)):
                return
            worker = worker or self._starter.submit(self._start).result()
            worker.attempt = _Attempt(queue.popleft(), size, is_suspect)
            worker.send(worker.attempt.task)

    def _start(self) -> _Worker:
        """In a thread of its own, which lasts as long as the workers."""
        _block_interrupts()
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, *self._work), daemon=True)
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker

    def _grant(self) -> None:
        """Lets those work that wait for memory, as far as it goes; one of them if nobody else is at work."""
        for attempt in (attempts := self._attempts()):
            if attempt.is_waiting:
                others = self._claimed() - attempt.claim
                fits = others + attempt.claim_if_granted <= self._memory
                if fits or all(other.is_waiting for other in attempts):
                    attempt.is_waiting = False
                    attempt.seen = time.monotonic()
                    next(worker for worker in self._workers if worker.attempt is attempt).send(None)

    def _attempts(self) -> list[_Attempt]:
        return [worker.attempt for worker in self._workers if worker.attempt]

    def _claimed(self) -> int:
        return sum(attempt.claim for attempt in self._attempts())

    def _is_over(self) -> bool:
        """Whether the run is stopped, and the time of the tasks at hand is up."""
        if not self._stopped():
            return False
        if self._deadline is None:
            self._deadline = time.monotonic() + self._limits.grace
        return time.monotonic() >= self._deadline

    # ---- What workers do

    def _look(self) -> list[Outcome]:
        """Waits until workers say something, or for a moment; returns what became of tasks."""
        handles: dict[Any, _Worker] = {worker.connection: worker for worker in self._workers}
        handles.update({worker.process.sentinel: worker for worker in self._workers})
        spoke = dict.fromkeys(handles[handle] for handle in wait(handles, _TICK))
        outcomes = [self._hear(worker) for worker in spoke]
        if time.monotonic() - self._watched >= _TICK:
            self._watched = time.monotonic()
            outcomes += [self._judge(worker) for worker in list(self._workers)]
        self._grant()
        return [outcome for outcome in outcomes if outcome]

    def _hear(self, worker: _Worker) -> Outcome | None:
        """Takes a message, or the end of a worker."""
        try:
            if worker.connection.poll():
                message = worker.connection.recv()
            elif worker.process.is_alive():
                return None
            else:
                raise EOFError
        except (EOFError, OSError):
            return self._bury(worker)
        attempt = worker.attempt
        assert attempt, "only a worker that has a task speaks"
        if message == READY:
            worker.is_ready = True
            attempt.seen = time.monotonic()
        elif isinstance(message, MemoryRequest):
            attempt.work()
            attempt.raw, attempt.needed = attempt.raw + message.raw, max(attempt.needed, message.needed)
            attempt.is_waiting = True
        elif message == WAITS:
            attempt.work()
            attempt.is_away = True
        elif message == GOES_ON:
            attempt.is_away = False
            attempt.seen = time.monotonic()
        else:
            worker.attempt = None
            return cast(Outcome, message)
        return None

    def _bury(self, worker: _Worker) -> Outcome | None:
        """A worker died: its task is tried again if this was the first time."""
        self._discard(worker)
        attempt = worker.attempt
        if not attempt or self._stopped():  # whoever stops the run may have ended the worker too
            return None
        if attempt.is_second:
            return failed(attempt.task, _DIED)
        self._suspects.append(attempt.task)
        return None

    def _judge(self, worker: _Worker) -> Outcome | None:
        """Gives a task up that takes too much."""
        attempt = worker.attempt
        if not attempt or not worker.is_ready or attempt.is_waiting or attempt.is_away or worker.connection.poll():
            return None
        attempt.work()
        limit, memory = attempt.time_limit(self._limits.timeout), anonymous_memory(worker.process.pid or 0)
        if attempt.spent > limit:
            reason = f"gave up after {round(limit, 1):g} s; use --timeout to allow more"
        elif memory > attempt.memory_limit:
            reason = f"gave up: took {memory / 1e6:.0f} MB of memory, more than its pixels need"
        else:
            return None
        self._discard(worker)
        return failed(attempt.task, reason)

    def _discard(self, worker: _Worker) -> None:
        worker.end()
        self._workers.remove(worker)


def _size_of(task: Task) -> int:
    if task.size is not None:
        return task.size
    try:
        return os.path.getsize(task.source)
    except OSError:  # the attempt to read it will tell
        return 0


def _probable_claim(size: int) -> int:
    """What a task claims before its image is announced: the truth if its source, of `size` bytes, is not compressed."""
    return 2 * size if 2 * size > SMALL else 0


def _block_interrupts() -> None:
    """Keeps the terminal's signals from the processes that this thread starts, for good: they inherit its signal mask.

    It sends them to the workers too, even to those still starting, but only the main thread shall act on them. That one
    must not block them, not even for a while: another thread would receive the signal and not wake it.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    resource_tracker.ensure_running()  # which unblocks SIGINT; nothing happens when that is called once more
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
