"""Functions that let other threads run Python meanwhile."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from waiting import wait_until


def check_gil_is_released(function: Callable[[], object]) -> None:
    """Fails the test unless the function releases the GIL, and takes some 100 us while it does.

    Another thread sees one inside the function, though it cannot make it give up the GIL: see setswitchinterval.
    """
    inside = False

    def work() -> None:
        nonlocal inside
        inside = True
        function()
        inside = False

    def is_seen_inside() -> bool:
        thread = threading.Thread(target=work)
        thread.start()
        seen = False
        while thread.is_alive():
            seen |= inside
            time.sleep(0)
        return seen

    interval = sys.getswitchinterval()
    sys.setswitchinterval(3600)
    try:
        wait_until(is_seen_inside)  # a thread that gets its turn late, on a busy machine, may find the other done
    finally:
        sys.setswitchinterval(interval)
