"""A worker process from the inside: it does the tasks that its parent sends, until the parent has no more."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection

from .outcomes import Outcome, Task, reporting

READY = "ready"
"""A worker's first message: it has started, and does its task from now on."""

SMALL = 1 << 25
"""Bytes: tasks that need no more than that need not ask for them. It is part of what every worker may take."""

WAITS, GOES_ON = "waits", "goes on"
"""Messages around the time that a worker waits for a storage that is far away, which is no time of its task."""

_PR_SET_PDEATHSIG = 1

_parent: Connection | None = None


@dataclass(frozen=True)
class MemoryRequest:
    """A worker's question whether it may take memory for an image; it waits until it is answered.

    raw: bytes of the pixels
    needed: bytes that it takes at most to deal with them
    """

    raw: int
    needed: int


def reserve(raw: int, times: int = 2) -> None:
    """Waits until there is memory for an image; to be called before its pixels are decoded, as `ReadOptions.reserve`.

    Does nothing outside of worker processes.

    raw: bytes of the pixels
    times: how often the pixels, or as many bytes, are held at once
    """
    if _parent is None or raw * times <= SMALL:
        return
    _parent.send(MemoryRequest(raw, raw * times))
    try:
        _parent.recv()
    except EOFError:  # nobody waits for the image any more
        sys.exit()


@contextlib.contextmanager
def waiting_for_storage() -> Iterator[None]:
    """Around requests to a service, which has limits of time of its own. Does nothing outside of worker processes."""
    if _parent is None:
        yield
        return
    _parent.send(WAITS)
    try:
        yield
    finally:
        _parent.send(GOES_ON)


def serve(connection: Connection, function: Callable[[Task], Outcome], initializer: Callable[[], None] | None) -> None:
    """The main loop of a worker: sends READY, and `function(task)` for every task that it receives."""
    global _parent
    _end_with_parent()
    _parent = connection
    if initializer:
        initializer()
    function = reporting(function)
    with contextlib.suppress(EOFError, ConnectionError):  # the parent closed its end
        connection.send(READY)
        while True:
            connection.send(function(connection.recv()))


def _end_with_parent() -> None:
    """Lets the kernel kill this process when the thread that started it ends, whatever this process is at then."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent is None or os.getppid() != parent.pid:  # it ended before
        os._exit(1)
