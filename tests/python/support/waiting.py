"""Waiting, on machines of any speed: for what comes about, and no longer than something that hangs would take."""

from __future__ import annotations

import time
from collections.abc import Callable

HANGS = 600
"""Seconds after which a process counts as hanging: many times what any takes, on a busy machine too."""


def wait_until(condition: Callable[[], object]) -> None:
    """Asks until it holds. Fails the test if it never does."""
    deadline = time.monotonic() + HANGS / 5
    while not condition():
        assert time.monotonic() < deadline, "this does not come about"
        time.sleep(0.01)
