"""Buckets for the core, which lists datasets and looks at their files, wherever these are."""

from __future__ import annotations

from .storage import find_storage


def size(uri: str) -> int:
    """The bytes of an object. Raises OSError, as all of these; StorageError, if the object is not to blame."""
    return find_storage(uri).entry(uri).size


def read(uri: str, offset: int, size: int) -> bytes:
    """A range of an object; fewer bytes if it ends before."""
    return find_storage(uri).read(uri, offset, size)


def objects_in(folder: str) -> list[tuple[str, int]]:
    """The objects in a folder and below, relative to it, with their sizes."""
    return find_storage(folder).objects(folder)
