"""Buckets by way of fsspec: s3://BUCKET/KEY needs s3fs, gs://BUCKET/KEY needs gcsfs.

An object appears whole or not at all: with its PUT, or with the end of an upload in parts. Credentials, endpoints and
retries are those of s3fs and gcsfs: what still fails after these because of the service, of the way to it or of the
credentials raises StorageError. Imports fsspec, so only who has a bucket imports this.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO

import fsspec

from .. import _core
from ..errors import ConversionError, StorageError, TargetError
from ..files import target_errors
from ..jobs.outcomes import Outcome
from ..jobs.planning import PlanError
from ..jobs.serving import waiting_for_storage
from . import objects
from .storage import Entry, Storage

_PATTERN = "*?["
_LONGEST_KEY = 1024  # bytes, of both services
_BLOCK = 1 << 26  # bytes that are fetched at once
_OPTIONS = {"gs": {"consistency": "md5"}}  # else gcsfs would not compare what arrived; s3fs does
_VERSIONS = ("generation", "ETag", "etag", "md5Hash")  # facts of which each object has one that changes with it
_NUMBERS: dict[type[BaseException], int] = {
    FileNotFoundError: errno.ENOENT,
    PermissionError: errno.EACCES,
    FileExistsError: errno.EEXIST,
    TimeoutError: errno.ETIMEDOUT,
}
_NOT_OF_ONE_OBJECT = {  # exceptions, by the modules that have them once they are in use
    "aiohttp": ("ClientError",),
    "botocore.exceptions": (
        "ConnectionError",
        "CredentialRetrievalError",
        "HTTPClientError",
        "IncompleteReadError",
        "NoCredentialsError",
        "PartialCredentialsError",
        "TokenRetrievalError",
    ),
    "gcsfs.retry": ("ChecksumError",),
    "google.auth.exceptions": ("GoogleAuthError",),
    "requests.exceptions": ("RequestException",),
}
_PASSING = {401, 408, 429}  # statuses below 500 that tell nothing of the object
_CREDENTIALS = {  # codes of S3; HEAD has none, and no 400 but for these
    "400",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
}


class BucketStorage(Storage):
    """The buckets of one scheme."""

    def __init__(self, scheme: str) -> None:
        """Raises ImportError if the package for the scheme is missing."""
        # A listing that is kept would not show what others do meanwhile.
        self._objects: Any = fsspec.filesystem(scheme, use_listings_cache=False, **_OPTIONS.get(scheme, {}))

    def absolute(self, path: str) -> str:
        scheme, _, place = path.partition("://")
        parts = place.rstrip("/").split("/")
        if {"", ".", ".."}.intersection(parts):
            raise PlanError(f"{path}: write {scheme}://BUCKET/FOLDER, without empty names, '.' and '..'")
        return f"{scheme}://{'/'.join(parts)}"

    def archives(self, path: str) -> list[str] | None:
        if "{" in path or path.endswith(".txt"):
            raise PlanError(f"{path}: in a bucket, write a pattern instead, such as train-*.tar")
        if any(char in path for char in _PATTERN):
            with _errors(path):
                archives = sorted(self._objects.glob(path))
            scheme = path.partition("://")[0]
            archives = [f"{scheme}://{name}" for name in archives]
            if not archives:
                raise PlanError(f"{path}: stands for no objects")
        elif path.endswith(".tar"):
            archives = [path]
        else:
            return None
        others = [archive for archive in archives if not archive.endswith(".tar")]
        if others:
            raise PlanError(f"{others[0]}: neither a folder nor a tar archive (*.tar)")
        return archives

    def files(self, folder: str) -> Iterator[Entry | Outcome]:
        root = self._objects._strip_protocol(folder).rstrip("/")
        with _errors(folder):
            found = self._objects.find(root, detail=True)
        if root in found:
            raise PlanError(f"{folder}: a single object; name the folder that it is in")
        entries = [_entry(name[len(root) + 1 :], facts) for name, facts in found.items() if _is_file(name, facts)]
        if not entries:
            raise FileNotFoundError(errno.ENOENT, "there are no objects in this folder", folder)
        for entry in sorted(entries, key=_place):
            parts = entry.path.split("/")
            if any(part.startswith(".") for part in parts):
                yield Outcome(f"{folder}/{entry.path}", None, "skipped", "hidden")
            elif "" in parts:  # no file could have its name, or two would have the same
                yield Outcome(f"{folder}/{entry.path}", None, "failed", "its name has an empty part (//); rename it")
            else:
                yield entry

    def objects(self, folder: str) -> list[tuple[str, int]]:
        """The keys of all objects below a folder, relative to it, and their sizes in bytes."""
        root = self._objects._strip_protocol(folder).rstrip("/")
        with _errors(folder):
            found = self._objects.find(root, detail=True)
        return [(name[len(root) + 1 :], facts["size"] or 0) for name, facts in found.items() if name != root]

    def folders(self, folder: str) -> list[str]:
        names = [os.path.basename(name.rstrip("/")) for name, is_file, _ in self._listing(folder) if not is_file]
        return sorted(name for name in names if name and not name.startswith("."))

    def sizes(self, folder: str) -> dict[str, int]:
        return {os.path.basename(name): size for name, is_file, size in self._listing(folder) if is_file}

    def _listing(self, folder: str) -> Iterator[tuple[str, bool, int]]:
        """Names, whether they are files, and sizes of what is in a folder."""
        try:
            with _errors(folder):
                found = self._objects.ls(folder, detail=True)
        except FileNotFoundError:
            return
        root = self._objects._strip_protocol(folder).rstrip("/")
        for facts in found:
            if facts["name"].rstrip("/") != root:
                yield facts["name"], _is_file(facts["name"], facts), facts["size"] or 0

    def entry(self, path: str) -> Entry:
        try:
            with _errors(path):
                facts = self._objects.info(path)
        except PermissionError:
            self.read(path, 0, 1)  # to learn why: an answer to HEAD has no words
            raise
        if not _is_file(path, facts):
            raise FileNotFoundError(errno.ENOENT, "no such object", path)
        return _entry(path, facts)

    def read(self, path: str, offset: int = 0, size: int | None = None) -> bytes:
        if size == 0:  # no range has no bytes
            return b""
        with _errors(path):
            end = None if size is None else offset + size
            data: bytes = self._objects.cat_file(path, start=offset or None, end=end)  # bytes=0- of nothing is an error
        return data

    def index_of(self, archive: str) -> bytes:
        """The index beside the archive if it fits, else what is found in the archive, which is fetched for that."""
        with contextlib.suppress(FileNotFoundError):
            index = self.read(_core.default_index_path(archive))
            if _core.is_index_of(archive, index, objects):
                return index
        return self.make_index(archive)

    def make_index(self, archive: str) -> bytes:
        size = self.entry(archive).size
        with _temporary_file() as file:
            while file.tell() < size:  # without get_file, which may remove the file if it fails
                block = self.read(archive, file.tell(), _BLOCK)
                if not block:
                    raise ConversionError(f"{archive}: has changed while it was read; run it again")
                with target_errors(tempfile.gettempdir()):
                    file.write(block)
                    file.flush()
            try:
                return _core.index_text(file.name)
            except ValueError as error:
                raise ConversionError(f"{archive}: {error}") from error

    def write(self, path: str, data: bytes, version: str = "") -> None:
        _check_key(path)
        with _errors(path, TargetError):
            self._objects.pipe_file(path, data)

    def create(self, path: str, data: bytes) -> bool:
        if self._exists(path):
            return False
        try:
            with _errors(path, TargetError):
                self._objects.pipe_file(path, data, mode="create")
        except TargetError:
            if not self._exists(path):
                raise
            return False
        return self.read(path) == data  # else there was another, and the store does not know of conditions

    def _exists(self, path: str) -> bool:
        try:
            self.entry(path)
        except FileNotFoundError:
            return False
        return True

    @contextlib.contextmanager
    def writing(self, path: str) -> Iterator[BinaryIO]:
        with _temporary_file() as file:
            try:
                yield file
                file.flush()
            except OSError as error:
                if error.filename not in (None, path):
                    raise
                # The object is not to blame.
                raise TargetError(error.errno or errno.EIO, error.strerror, tempfile.gettempdir()) from error
            with _errors(path, TargetError):
                self._objects.put_file(file.name, path)

    def remove(self, path: str) -> None:
        with _errors(path, TargetError), contextlib.suppress(FileNotFoundError):
            self._objects.rm_file(path)

    def clear(self, folder: str) -> None:
        """Does nothing: an upload in parts that was cut off is no object, and ends by the rules of its bucket."""


def _check_key(path: str) -> None:
    """Raises TargetError for a name that no object can have, which must not end the run as other errors do."""
    key = path.partition("://")[2].partition("/")[2]
    try:
        size = len(key.encode())
    except UnicodeEncodeError as error:
        raise TargetError(errno.EILSEQ, "names of objects are UTF-8; rename it", path) from error
    if size > _LONGEST_KEY:
        raise TargetError(errno.ENAMETOOLONG, f"names of objects have at most {_LONGEST_KEY} bytes", path)


def _place(entry: Entry) -> tuple[list[str], str]:
    """Sorts files as they are sorted on a disk: those of a folder, then those of its folders, one after the other."""
    folder, _, name = entry.path.rpartition("/")
    return folder.split("/") if folder else [], name


def _is_file(name: str, facts: dict[str, Any]) -> bool:
    """Some programs make an empty object, a/, to have a folder a."""
    return facts["type"] == "file" and not name.endswith("/") and not facts["name"].endswith("/")


def _entry(path: str, facts: dict[str, Any]) -> Entry:
    version = next((f"{name}={facts[name]}" for name in _VERSIONS if facts.get(name)), "")
    return Entry(path, facts["size"], version)


@contextlib.contextmanager
def _temporary_file() -> Iterator[BinaryIO]:
    """A file without a name, of which nothing is left, however the process ends. Its `name` can be opened, though."""
    with tempfile.TemporaryFile() as file, open(f"/proc/self/fd/{file.fileno()}", "r+b") as named:
        yield named


@contextlib.contextmanager
def _errors(path: str, kind: type[OSError] = OSError) -> Iterator[None]:
    """Turns whatever the libraries of a bucket raise into errors of the system about `path`; around a request."""
    try:
        with waiting_for_storage():
            yield
    except Exception as error:
        if kind is OSError and _is_of_service(error):
            kind = StorageError
        known = (number for types, number in _NUMBERS.items() if isinstance(error, types))
        number = getattr(error, "errno", None) or next(known, errno.EIO)
        reason = getattr(error, "strerror", None) or str(error)
        if " " not in reason:  # some say only which object it was
            reason = os.strerror(number)
        raise kind(number, reason, path) from error


def _is_of_service(error: BaseException | None) -> bool:
    """Whether not the object that was asked for is to blame, but the service, the way to it or our credentials."""
    while error and not isinstance(error, FileNotFoundError):
        status, code = _answer_of(error)
        if status is not None:
            return status >= 500 or status in _PASSING or code in _CREDENTIALS
        if isinstance(error, (ConnectionError, TimeoutError, asyncio.TimeoutError, *_library_errors())):
            return True
        error = error.__cause__ or error.__context__
    return False


def _answer_of(error: BaseException) -> tuple[int | None, str]:
    """The status of HTTP, if it was an answer that an exception tells of, and the code in the answer's text."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # of botocore
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return status, str(response.get("Error", {}).get("Code", ""))
    for name in ("status", "code"):  # of aiohttp, of gcsfs
        status = getattr(error, name, None)
        if isinstance(status, int) or (isinstance(status, str) and status.isdecimal()):
            return int(status), ""
    return None, ""


def _library_errors() -> Iterator[type[BaseException]]:
    for module, names in _NOT_OF_ONE_OBJECT.items():
        if module in sys.modules:
            yield from (getattr(sys.modules[module], name) for name in names)
