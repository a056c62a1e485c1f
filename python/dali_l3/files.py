"""Writes files completely or not at all, even if the process is killed; opens files for reading."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from typing import BinaryIO

from .errors import TargetError

PARTIAL_SUFFIX = ".l3-partial"
"""Files that are being written are hidden and end in this, so no reader of the folder takes them for images."""

_TIME_UNITS = (1, 100, 10_000_000, 1_000_000_000)
"""In ns: how exactly file systems keep times. Linux's own; NTFS and SMB; exFAT; older ones."""

_BLOCK = 1 << 20  # bytes
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK}  # of file systems without hard links
_FICLONE = 0x40049409  # of linux/fs.h, for ioctl


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Opens a file for reading. Raises OSError, also for a FIFO, a socket or a device, which might block forever."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return open(path, "rb")


def is_dated(path: str, mtime_ns: int) -> bool:
    """Whether the file was last modified at that time, as exactly as its file system may keep it. Raises OSError."""
    dated = os.stat(path).st_mtime_ns
    return any(mtime_ns // unit * unit == dated for unit in _TIME_UNITS)


@contextlib.contextmanager
def target_errors(path: str) -> Iterator[None]:
    """Turns every OSError into a TargetError about `path`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        folder = os.path.dirname(path) or os.curdir
        if error.errno == errno.ENOENT and not os.path.isdir(folder):
            reason = f"there is no folder {folder}"
        raise TargetError(error.errno or errno.EIO, reason, path) from error


def write_atomically(path: str, data: bytes, mtime_ns: int | None = None) -> None:
    """Writes `data` to `path`, replacing what is there.

    The bytes go to a temporary file in the same folder, are flushed to the disk, and read back; only when they are the
    same does the file get its name. When anything raises, the temporary file is removed and `path` is as it was.

    mtime_ns: the modification time of the file, if its file system lets us choose

    Raises TargetError if the file cannot be written, or reads back differently.
    """
    _replace(path, lambda file: file.write(data), data, mtime_ns)


def clone_atomically(source: str, path: str, data: bytes, mtime_ns: int) -> None:
    """As `write_atomically`, but the file shares its blocks with the file `source`, which holds `data` (a reflink).

    Raises TargetError, also where the file system cannot do that.
    """
    with open_regular(source) as original:
        _replace(path, lambda file: fcntl.ioctl(file.fileno(), _FICLONE, original.fileno()), data, mtime_ns)


def link(source: str, path: str) -> None:
    """Makes `path` another name of the file `source` (a hard link), in the place of what is there.

    Raises TargetError, also where the file system cannot do that.
    """
    source = os.path.realpath(source)  # else it would be a name of the symbolic link
    with target_errors(path):
        partial = _partial_path(os.path.dirname(path))
        os.link(source, partial)
        try:
            os.replace(partial, path)
        finally:
            with contextlib.suppress(FileNotFoundError):  # it stays if `path` is a name of the file already
                os.unlink(partial)


def create_atomically(path: str, data: bytes) -> bool:
    """Writes `data` to `path` unless that exists, and says whether it did. Of several that try at once, one does.

    Raises TargetError if the file cannot be written.
    """
    with target_errors(path):
        partial, descriptor = _create_partial(os.path.dirname(path))
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                try:
                    os.link(partial, path)
                except FileExistsError:
                    return False
                except OSError as error:
                    if error.errno not in _NO_LINKS:
                        raise
                    if os.path.lexists(path):
                        return False
                    os.replace(partial, path)
                return True
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(partial)


@contextlib.contextmanager
def writing(path: str, is_right: Callable[[BinaryIO], bool] = lambda file: True) -> Iterator[BinaryIO]:
    """A temporary file in the same folder to write and to read, whose path is its `name`, and which becomes `path`.

    At the end it is flushed to the disk, read by `is_right` from its begin, and replaces what is at `path`. When
    anything raises, it is removed, and `path` is as it was.

    Raises TargetError if it cannot be created or get its name, or if `is_right` finds that it reads back differently.
    """
    with target_errors(path):
        partial, descriptor = _create_partial(os.path.dirname(path))
    file = open(partial, "r+b", opener=lambda *_: descriptor)  # noqa: SIM115
    try:
        yield file
        with target_errors(path):
            file.flush()
            os.fsync(file.fileno())
            file.seek(0)
            if not is_right(file):
                raise OSError(errno.EIO, "the file reads back differently from what was written")
            os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
    finally:
        with contextlib.suppress(OSError):  # of what could not be written, which was raised before
            file.close()  # the lock lasts until then


def _replace(path: str, fill: Callable[[BinaryIO], object], data: bytes, mtime_ns: int | None) -> None:
    """`write_atomically`, with a function that fills the temporary file with `data`."""
    with target_errors(path), writing(path, lambda file: _holds(file, data)) as file:
        fill(file)
        file.flush()
        if mtime_ns is not None:
            with contextlib.suppress(OSError):
                os.utime(file.fileno(), ns=(mtime_ns, mtime_ns))


def _holds(file: BinaryIO, data: bytes) -> bool:
    """Whether `data` is what is left of the file; holds a small part of it at once."""
    for start in range(0, len(data), _BLOCK):
        block = data[start : start + _BLOCK]  # a copy: comparing bytes with a view of them takes far longer
        if file.read(len(block)) != block:
            return False
    return not file.read(1)


def remove_stale_partials(folder: str) -> int:
    """Removes temporary files whose writer has ended, and returns their number. Files of a running process stay.

    Raises OSError if the folder cannot be read. The folder may be missing.
    """
    removed = 0
    try:
        with os.scandir(folder) as entries:
            partials = [entry.path for entry in entries if entry.name.endswith(PARTIAL_SUFFIX) and entry.name[0] == "."]
    except FileNotFoundError:
        return 0
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


def _partial_path(folder: str) -> str:
    return os.path.join(folder, f".{secrets.token_hex(8)}{PARTIAL_SUFFIX}")


def _create_partial(folder: str) -> tuple[str, int]:
    """Creates a temporary file and locks it, which tells `remove_stale_partials` that its writer lives."""
    while True:
        path = _partial_path(folder)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with contextlib.suppress(OSError):  # a file system without locks: stale files stay there, harmlessly
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)  # another run removed it between the two calls
