"""Files that appear whole or not at all, whatever kills the process that writes them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Callable

PARTIAL_SUFFIX = ".l3-partial"
"""Files that are being written are hidden and end in this, so no reader of the folder takes them for images."""


def write_atomically(path: str, data: bytes, check: Callable[[bytes], None] | None = None) -> None:
    """Writes `data` to `path`, replacing what is there.

    The bytes go to a temporary file in the same folder and are flushed to the disk; `check`, if given, is called with
    what the file then holds, and only when it returns does the file get its name. When anything raises, the temporary
    file is removed and `path` is as it was.
    """
    partial, descriptor = _create_partial(os.path.dirname(path))
    try:
        with open(descriptor, "r+b") as file:  # the lock lasts until the file is closed
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if check:
                file.seek(0)
                check(file.read())
            os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def remove_stale_partials(folder: str) -> int:
    """Removes temporary files whose writer is gone, and returns their number. Those of a running process stay."""
    removed = 0
    with os.scandir(folder) as entries:
        partials = [entry.path for entry in entries if entry.name.endswith(PARTIAL_SUFFIX) and entry.name[0] == "."]
    for partial in partials:
        with contextlib.suppress(OSError):  # gone already, locked by its writer, or not ours to remove
            descriptor = os.open(partial, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(partial)
                removed += 1
            finally:
                os.close(descriptor)
    return removed


def _create_partial(folder: str) -> tuple[str, int]:
    """Creates a temporary file and locks it, which tells `remove_stale_partials` that its writer lives."""
    while True:
        path = os.path.join(folder, f".{secrets.token_hex(8)}{PARTIAL_SUFFIX}")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with contextlib.suppress(OSError):  # a file system without locks: stale files stay there, harmlessly
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)  # another run removed it between the two calls
