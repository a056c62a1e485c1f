"""Functions that worker processes import: they misbehave where the name of a task's source says so."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import time

from dali_l3.errors import TargetError
from dali_l3.files import write_atomically
from dali_l3.jobs.outcomes import Outcome, Task, reporting
from dali_l3.jobs.serving import reserve, waiting_for_storage


@reporting
def run(task: Task) -> Outcome:
    if "crash" in task.source:
        os.kill(os.getpid(), signal.SIGKILL)
    if "half" in task.source:
        os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
        write_atomically(task.target, b"data")
    if "far away" in task.source:
        with waiting_for_storage():
            time.sleep(2)
    if "raise" in task.source:
        raise KeyError("no such thing")
    if "memory" in task.source:
        raise MemoryError
    if "endless" in task.source:
        time.sleep(1e6)
    if "stuck" in task.source:
        ctypes.PyDLL(None).sleep(1_000_000)  # which keeps the GIL
    if "greedy" in task.source:
        blocks = []
        while True:
            blocks.append(b"x" * (1 << 24))
    if "large" in task.source:
        reserve(100 << 20)
        os.mkdir(task.target)  # fails if another one is at work
        time.sleep(0.2)
        os.rmdir(task.target)
        return Outcome(task.source, None, "done")
    if "unwritable" in task.source:
        raise TargetError(errno.ENOSPC, "No space left on device", task.target)
    if "slow" in task.source:
        time.sleep(0.02)
    if task.target:
        open(task.target, "w").close()
    return Outcome(task.source, task.target, "done")
