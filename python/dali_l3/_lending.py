"""Shared memory that a worker process lends to the training process, and uses again when it is back.

New memory costs more than decoding into it: the kernel clears every page, and maps it at its first use.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import threading

import numpy as np
import torch

KEPT = 16  # pieces of memory of a process at most; beyond that, each is used once


class Memory:
    """A file without a name, in memory.

    What is lent is the same file, opened anew and locked. The kernel unlocks it when nobody has it any more: neither
    this process, nor any that got the storage, in whatever way, nor one that ended with it. So whoever can lock the
    file knows that it is back.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._file = os.fdopen(os.memfd_create("dali_l3"), "r+b", buffering=0)
        self._file.truncate(size)
        self.bytes = mmap.mmap(self._file.fileno(), size)

    def is_back(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        fcntl.flock(self._file, fcntl.LOCK_UN)
        return True

    def lend(self, size: int) -> torch.UntypedStorage:
        with open(f"/proc/self/fd/{self._file.fileno()}", "r+b", buffering=0) as lent:
            fcntl.flock(lent, fcntl.LOCK_SH)
            return torch.UntypedStorage._new_shared_fd_cpu(lent.fileno(), size)  # which duplicates the descriptor


# glibc gives freed memory back to the system unless it has seen a larger block come and go. A new process would fetch
# the memory of its files anew for every batch, which takes a third of its time.
np.empty(31 << 20, np.uint8)

_kept: list[Memory] = []
_lock = threading.Lock()
os.register_at_fork(after_in_child=_kept.clear)  # a file's lock does not tell parent from child


def lend(size: int) -> tuple[mmap.mmap, torch.UntypedStorage]:
    """Memory of `size` bytes or more to write to, and its beginning as a storage, which PyTorch sends as it is.

    This process has already mapped what it writes to; the storage is mapped by those who look at it.
    """
    with _lock:
        memory = _free_memory(size)
        return memory.bytes, memory.lend(size)


def _free_memory(size: int) -> Memory:
    """The smallest that suffices of what is back, or, if all of that is too small, new memory in its place."""
    back = sorted((memory for memory in _kept if memory.is_back()), key=lambda memory: memory.size)
    for memory in back:
        if memory.size >= size:
            return memory
    for memory in back:
        _kept.remove(memory)
    memory = Memory(size)
    if len(_kept) < KEPT:
        _kept.append(memory)
    return memory
