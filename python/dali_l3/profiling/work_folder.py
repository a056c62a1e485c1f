"""The hidden folder for the sample, which does not stay behind, however the profiler ends.

It is removed at the end of a run, and signals wait for that. What a run leaves that is killed outright, the next run
beside it removes. A lock on the folder, which the kernel drops with the process, tells which those are.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator

from ..errors import ConversionError
from ..jobs.interrupting import deferring_signals

_PREFIX = f".dali-l3-profile-{socket.gethostname()}-"  # locks may not be seen from other machines


@contextlib.contextmanager
def work_folder(parent: str) -> Iterator[str]:
    """Makes a hidden folder in `parent` that is removed at the end, and first removes stale ones. For the main thread.

    Raises ConversionError if nothing can be written there.
    """
    _remove_stale(parent)
    with contextlib.ExitStack() as stack:
        with deferring_signals():
            try:
                folder, lock = _create(parent)
            except OSError as error:
                reason = error.strerror or str(error)
                raise ConversionError(f"{parent}: {reason}; the sample needs a folder: name one with --work") from error
            stack.callback(_remove, folder, lock)
        yield folder


@contextlib.contextmanager
def plain_names() -> Iterator[Callable[[str], str]]:
    """Yields a function from paths to paths that DALI takes: links, where those are not UTF-8. They go at the end.

    ConversionErrors that pass through here name the paths instead of the links.
    """
    with contextlib.ExitStack() as stack:
        links: dict[str, str] = {}
        folder = None

        def plain(path: str) -> str:
            nonlocal folder
            if _is_utf8(path):
                return path
            if path not in links:
                folder = folder or stack.enter_context(work_folder(tempfile.gettempdir()))
                links[path] = os.path.join(folder, str(len(links)))
                os.symlink(os.path.abspath(path), links[path])
            return links[path]

        try:
            yield plain
        except ConversionError as error:
            message = str(error)
            for path, link in reversed(links.items()):  # the longest numbers first
                message = message.replace(link, path)
            raise type(error)(message) from error


def _create(parent: str) -> tuple[str, int]:
    """Creates a folder and locks it."""
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        with contextlib.suppress(FileNotFoundError):  # another run removed it before it was locked
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            with contextlib.suppress(OSError):  # a file system without locks: what is stale stays there
                fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.isdir(folder):
                return folder, lock
            os.close(lock)


def _remove(folder: str, lock: int) -> None:
    with deferring_signals():
        try:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(folder)
        finally:
            os.close(lock)


def _remove_stale(parent: str) -> None:
    """Removes folders whose process has ended."""
    with contextlib.suppress(OSError):
        stale = [name for name in os.listdir(parent) if name.startswith(_PREFIX)]
        for folder in (os.path.join(parent, name) for name in stale):
            with contextlib.suppress(OSError):  # gone already, in use, or not ours to remove
                lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
                finally:
                    os.close(lock)


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
