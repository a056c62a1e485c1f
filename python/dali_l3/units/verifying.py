"""Verifies files that are no files of a folder: objects in buckets, and images in tar shards."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

from ..conversion.sources import refuse_to_verify
from ..conversion.verifying import check_data, verify_file
from ..errors import ConversionError, StorageError, TargetError
from ..images.signatures import HEAD_SIZE, IMAGE_SUFFIXES, sniff
from ..images.stored import DEFAULT_OPTIONS, ReadOptions
from ..jobs.outcomes import Outcome, Task, failure, reporting
from .samples import Member, is_image, members_of_archive
from .storage import Entry, Storage, find_storage

_HEAD = 1024  # bytes that tell what a file is that is no image


@dataclass(frozen=True)
class StoredTask(Task):
    """A file to verify that a storage reads. member: where it is; name: its own, which may say that it is an image"""

    member: Member = Member("", "", 0, "")
    name: str = ""


def plan_stored(path: str) -> Iterator[StoredTask | Outcome]:
    """What there is to verify in a folder or object of a bucket, or in tar archives: a path, a pattern or a range.

    Files in archives that have no suffix of an image are skipped, without a look at them.
    """
    storage = find_storage(path)
    path = storage.absolute(path)
    archives = storage.archives(path)
    if archives is not None:
        for archive in archives:
            yield from _plan_archive(storage, archive)
        return
    for found in _objects(storage, path):
        if isinstance(found, Outcome):
            yield found
        else:
            member = Member("", found.path, found.size, found.version)
            yield StoredTask(found.path, size=found.size, member=member, name=found.path)


def _plan_archive(storage: Storage, archive: str) -> Iterator[StoredTask | Outcome]:
    """The same for one archive: an outcome alone if it is damaged or cannot be read."""
    try:
        members = list(members_of_archive(storage, archive))
    except (StorageError, TargetError):
        raise
    except ConversionError as error:
        reason = str(error).removeprefix(f"{archive}: ")
        yield Outcome(archive, None, "failed", reason, damaged=True)
        return
    except OSError as error:
        yield failure(Task(archive), error)
        return
    for name, member in members:
        source = f"{archive}: {name}"
        if is_image(member):
            yield StoredTask(source, size=member.size, member=member, name=name)
        else:
            yield Outcome(source, None, "skipped", "not an image")


def _objects(storage: Storage, path: str) -> Iterator[Entry | Outcome]:
    """The objects in a folder, or the one that a path is of, with their whole paths."""
    with contextlib.suppress(FileNotFoundError):
        yield storage.entry(path)
        return
    for found in storage.files(path):
        yield found if isinstance(found, Outcome) else Entry(f"{path}/{found.path}", found.size, found.version)


@reporting
def verify_stored(task: Task, options: ReadOptions = DEFAULT_OPTIONS) -> Outcome:
    """As `conversion.verifying.verify_file`, of a StoredTask, too."""
    if not isinstance(task, StoredTask):
        return verify_file(task, options)
    member, storage = task.member, find_storage(task.member.path)
    begin = member.offset or 0
    may_be_image = os.path.splitext(task.name)[1].lower() in IMAGE_SUFFIXES | {".l3"}
    data = storage.read(member.path, begin, member.size if may_be_image else min(member.size, _HEAD))
    signature = sniff(data[:HEAD_SIZE])
    refused = refuse_to_verify(task.name, signature, data[:_HEAD])
    if refused:
        return Outcome(task.source, None, *refused, damaged=refused[0] == "failed")
    if len(data) < member.size:
        data += storage.read(member.path, begin + len(data), member.size - len(data))
    if len(data) < member.size:
        raise ConversionError(f"has changed since it was listed: it ends before byte {begin + member.size}")
    return check_data(task.source, signature, data, options)
