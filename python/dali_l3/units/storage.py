"""Where units read and write files: every access of theirs goes through here."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from .. import _core
from ..errors import ConversionError, StorageError
from ..files import create_atomically, open_regular, remove_stale_partials, target_errors, write_atomically, writing
from ..jobs.outcomes import Outcome
from ..jobs.planning import PlanError
from ..jobs.walking import Found, scan

_FOLDERS = 4096  # whose listings are kept, where files are far away
_AWAY = {  # errors of file systems that are far away, and of processes with too many files open
    errno.ECONNABORTED,
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.EHOSTDOWN,
    errno.EHOSTUNREACH,
    errno.EMFILE,
    errno.ENETDOWN,
    errno.ENETRESET,
    errno.ENETUNREACH,
    errno.ENFILE,
    errno.ENODEV,
    errno.ENOTCONN,
    errno.EREMOTEIO,
    errno.ESHUTDOWN,
    errno.ESTALE,
    errno.ETIMEDOUT,
}


@dataclass(frozen=True)
class Entry:
    """A file that was found.

    path: relative to the folder that was listed
    size: in bytes
    version: changes when the file does; on this machine, its modification time in ns, and in a bucket no number
    """

    path: str
    size: int
    version: str


class Storage(ABC):
    """Files by their paths, which are those that users write. What cannot be read raises OSError; StorageError, if that
    is no fault of the file.

    What is written appears whole or not at all, with the folders above it, and is on the disk when a method returns.
    Raises TargetError if it cannot be written.
    """

    @abstractmethod
    def absolute(self, path: str) -> str:
        """The path as it is understood wherever the command is run."""

    @abstractmethod
    def archives(self, path: str) -> list[str] | None:
        """The tar archives that a path, a pattern, a range or a text file stands for; None: it is a folder.

        Raises PlanError if there are none.
        """

    @abstractmethod
    def files(self, folder: str) -> Iterator[Entry | Outcome]:
        """All files below a folder in a fixed order, and outcomes for what is passed over or cannot be read."""

    def objects(self, folder: str) -> list[tuple[str, int]]:
        """The paths of all files below a folder of a bucket, relative to it, and their sizes in bytes, as they come."""
        raise NotImplementedError(f"{folder} is not in a bucket")

    @abstractmethod
    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder, sorted, without hidden ones. A folder that is missing has none."""

    def tree(self, folder: str) -> list[str]:
        """The paths of all folders below a folder, relative to it, where there are folders without files in them."""
        return []

    def make_folders(self, paths: Iterable[str]) -> None:  # noqa: B027 - where there are none, there is nothing to do
        """Makes folders, unless they are there, where there are folders without files in them."""

    @abstractmethod
    def sizes(self, folder: str) -> dict[str, int]:
        """The names of the files in a folder, with their sizes in bytes. A folder that is missing has none."""

    def size_finder(self) -> Callable[[str], int | None]:
        """A function that tells the size of a file, or None if there is none; for many that stay as they are."""
        sizes = functools.lru_cache(_FOLDERS)(self.sizes)

        def size_of(path: str) -> int | None:
            folder, _, name = path.rpartition("/")
            return sizes(folder).get(name)

        return size_of

    @abstractmethod
    def entry(self, path: str) -> Entry:
        """One file, by its path."""

    @abstractmethod
    def read(self, path: str, offset: int = 0, size: int | None = None) -> bytes:
        """`size` bytes from `offset` on, or fewer if the file ends before; None: all of them."""

    def index_of(self, archive: str) -> bytes:
        """The text of the index of a tar archive, as `dali-l3 index` writes it. Raises ConversionError if it is bad."""
        return self.make_index(archive)

    @abstractmethod
    def make_index(self, archive: str) -> bytes:
        """The same, from the archive itself, whatever index lies beside it."""

    @abstractmethod
    def write(self, path: str, data: bytes, version: str = "") -> None:
        """Writes a file, in the place of what is there. `version`, of its source, dates it where files have dates."""

    @abstractmethod
    def create(self, path: str, data: bytes) -> bool:
        """Writes a file unless there is one, and says whether it did. Of two that try at once, one does."""

    @abstractmethod
    def writing(self, path: str) -> contextlib.AbstractContextManager[BinaryIO]:
        """A file of this machine (`name` is its path) to write and read, which gets to its place at the end."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Removes a file, if it is there."""

    @abstractmethod
    def clear(self, folder: str) -> None:
        """Removes what killed runs left below a folder, which may be missing."""


class LocalStorage(Storage):
    """The file systems of this machine."""

    def absolute(self, path: str) -> str:
        return os.path.abspath(path)

    def archives(self, path: str) -> list[str] | None:
        if os.path.isdir(path):
            return None
        try:
            archives = _core.expand_paths([path])
        except RuntimeError as error:
            raise PlanError(str(error)) from error
        others = [archive for archive in archives if not archive.endswith(".tar")]
        if others:
            what = (
                "neither a folder nor a tar archive (*.tar)" if os.path.exists(others[0]) else "no such file or folder"
            )
            raise PlanError(f"{others[0]}: {what}")
        return archives

    def files(self, folder: str) -> Iterator[Entry | Outcome]:
        for found in scan(folder):
            if isinstance(found, Outcome):
                yield found
            elif not found.is_folder:
                path = os.path.join(folder, found.path)
                try:
                    entry = self.entry(path)
                except StorageError:  # for this time only: nobody may take the file for one that cannot be read
                    raise
                except OSError as error:
                    yield Outcome(path, None, "failed", error.strerror or str(error))
                else:
                    yield Entry(found.path, entry.size, entry.version)

    def folders(self, folder: str) -> list[str]:
        try:
            with os.scandir(folder) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
        except FileNotFoundError:
            return []

    def tree(self, folder: str) -> list[str]:
        return [found.path for found in scan(folder) if isinstance(found, Found) and found.is_folder and found.path]

    def make_folders(self, paths: Iterable[str]) -> None:
        for path in paths:
            with target_errors(path):
                os.makedirs(path, exist_ok=True)

    def sizes(self, folder: str) -> dict[str, int]:
        try:
            with os.scandir(folder) as entries:
                return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}
        except FileNotFoundError:
            return {}

    def size_finder(self) -> Callable[[str], int | None]:
        def size_of(path: str) -> int | None:  # by no listing: units may be all over a tree with large folders
            try:
                return os.stat(path).st_size
            except (FileNotFoundError, NotADirectoryError):
                return None

        return size_of

    def entry(self, path: str) -> Entry:
        with _source_errors(path):
            status = os.stat(path)
        return Entry(path, status.st_size, str(status.st_mtime_ns))

    def read(self, path: str, offset: int = 0, size: int | None = None) -> bytes:
        with _source_errors(path), open_regular(path) as file:
            file.seek(offset)
            return file.read() if size is None else file.read(size)

    def make_index(self, archive: str) -> bytes:
        try:
            return _core.index_text(archive)
        except ValueError as error:
            raise ConversionError(f"{archive}: {error}") from error

    def write(self, path: str, data: bytes, version: str = "") -> None:
        self.make_folders([os.path.dirname(path)])
        write_atomically(path, data, int(version) if version.isdecimal() else None)

    def create(self, path: str, data: bytes) -> bool:
        self.make_folders([os.path.dirname(path)])
        return create_atomically(path, data)

    @contextlib.contextmanager
    def writing(self, path: str) -> Iterator[BinaryIO]:
        self.make_folders([os.path.dirname(path)])
        with writing(path) as file:
            yield file

    def remove(self, path: str) -> None:
        with target_errors(path), contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def clear(self, folder: str) -> None:
        for path, _, _ in os.walk(folder):
            remove_stale_partials(path)


@contextlib.contextmanager
def _source_errors(path: str) -> Iterator[None]:
    """Turns errors of the system that are no file's fault into StorageError."""
    try:
        yield
    except OSError as error:
        if error.errno in _AWAY:
            raise StorageError(error.errno, error.strerror, path) from error
        raise


_LOCAL = LocalStorage()
_BUCKETS = {"s3": "s3fs", "gs": "gcsfs"}  # schemes, and the packages that they need


def is_in_bucket(path: str) -> bool:
    """Whether a path is not one of this machine, but SCHEME://…"""
    scheme, separator, _ = path.partition("://")
    return bool(separator) and scheme.isalnum()


def names_archives(path: str) -> bool:
    """Whether a path of this machine stands for tar archives: by its name, or as a pattern or a range."""
    is_pattern = any(char in path for char in "*?[{") and not os.path.exists(path)
    return is_pattern or (path.endswith(".tar") and not os.path.isdir(path))


def find_storage(path: str) -> Storage:
    """The storage that a path belongs to. Raises ConversionError if there is none for it."""
    if not is_in_bucket(path):
        return _LOCAL
    scheme = path.partition("://")[0]
    if scheme not in _BUCKETS:
        raise ConversionError(f"{path}: neither a file of this machine, nor in a bucket that is known (s3://, gs://)")
    return _bucket_storage(scheme)


@functools.cache
def _bucket_storage(scheme: str) -> Storage:
    try:
        from .buckets import BucketStorage

        return BucketStorage(scheme)
    except ImportError as error:
        raise ConversionError(
            f"{scheme}:// needs {_BUCKETS[scheme]}, try: pip install 'dali-l3[buckets]' ({error})"
        ) from error
