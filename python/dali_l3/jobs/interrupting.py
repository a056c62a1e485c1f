"""Ends a run in order on Ctrl-C, SIGTERM and SIGHUP, with exit code 130, 143 or 129."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

GRACE = 10.0
"""Default of the seconds that running tasks may take to finish."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last as a terminal closes
_STOPPING = "\ndali-l3: finishing the files at work, for at most {:g} s; interrupt again to stop at once\n"


class Interrupted(SystemExit):
    """A signal ended the run. The code is 128 plus the number of the signal, as in shells."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)


@contextlib.contextmanager
def exiting_on_signals() -> Iterator[None]:
    """Raises Interrupted wherever the main thread is when one of the signals comes. For the main thread."""

    def handle(number: int, frame: FrameType | None) -> NoReturn:
        raise Interrupted(number)

    with _handlers(handle):
        yield


@contextlib.contextmanager
def stopping_on_signals(grace: float = GRACE) -> Iterator[Callable[[], bool]]:
    """Yields a function that says whether one of the signals came, and raises Interrupted at the end if so.

    The first of them does nothing else: who sees it finishes what is under way. A second one kills the processes that
    this one started, a third this one. For the main thread.

    grace: seconds that what is under way is going to get, which the user is told
    """
    received: list[int] = []
    message = _STOPPING.format(grace).encode()

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) == 1:
            with contextlib.suppress(OSError):
                os.write(2, message)  # sys.stderr may be in use where the signal came
            return
        for process in multiprocessing.active_children():
            process.kill()
        for other in _SIGNALS:
            signal.signal(other, signal.SIG_DFL)

    with _handlers(handle):
        yield lambda: bool(received)
    if received:
        raise Interrupted(received[0])


@contextlib.contextmanager
def deferring_signals() -> Iterator[None]:
    """Lets the signals wait, and raises Interrupted at the end if one came. For the main thread."""
    received: list[int] = []
    with _handlers(lambda number, frame: received.append(number)):
        yield
    if received:
        raise Interrupted(received[0])


@contextlib.contextmanager
def _handlers(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handles the signals, but those that whoever started this process wants to be ignored."""
    previous = {number: signal.getsignal(number) for number in _SIGNALS}
    heeded = {number: handler for number, handler in previous.items() if handler is not signal.SIG_IGN}
    for number in heeded:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in heeded.items():
            signal.signal(number, handler)
