"""Functions that worker processes import: they misbehave where the name of a task's source says so."""

from __future__ import annotations

import os
import signal
import time

from dali_l3.files import write_atomically
from dali_l3.jobs.outcomes import Outcome, Task, reporting


@reporting
def run(task: Task) -> Outcome:
    if "crash" in task.source:
        os.kill(os.getpid(), signal.SIGKILL)
    if "half" in task.source:
        os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
        write_atomically(task.target, b"data")
    if "raise" in task.source:
        raise KeyError("no such thing")
    if "memory" in task.source:
        raise MemoryError
    if "endless" in task.source:
        time.sleep(1e6)
    if "slow" in task.source:
        time.sleep(0.02)
    if task.target:
        open(task.target, "w").close()
    return Outcome(task.source, task.target, "done")
