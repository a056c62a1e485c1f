"""Converts one sample: in a worker process, so that one bad sample does not end a unit."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from dataclasses import dataclass

from ..codec import decode, peek, read_metadata
from ..conversion.exporting import png_format
from ..conversion.sources import refuse_to_convert, refuse_to_export
from ..errors import ConversionError, StorageError, TargetError
from ..images.formats import Format, find_format
from ..images.reading import ReadImage, read_as_stored, turn_upright
from ..images.resizing import RESIZING_MEMORY, resize_image
from ..images.signatures import HEAD_SIZE, sniff
from ..images.stored import ReadOptions
from ..images.writing import prepare_image
from ..jobs.outcomes import Outcome, Status, Task, reporting
from ..jobs.serving import reserve
from .manifest import Settings
from .samples import Member, Sample, target_names
from .storage import find_storage, is_in_bucket

_HEAD = 1024  # bytes that tell what a file is that is no image


@dataclass(frozen=True)
class SampleTask(Task):
    """A sample to convert. `target` is the path of its first file or, in a shard, its name there.

    settings: of the conversion
    folder: that gets its files; empty: they are returned
    """

    sample: Sample = Sample("", ())
    settings: Settings = Settings("")
    folder: str = ""


@dataclass(frozen=True)
class Converted(Outcome):
    """What became of a sample that was converted.

    files: names and bytes of those that are yet to be written
    written: names and sizes of the others
    """

    files: tuple[tuple[str, bytes], ...] = ()
    written: tuple[tuple[str, int], ...] = ()


def task_of(sample: Sample, settings: Settings, folder: str = "") -> SampleTask:
    """The task to convert a sample. folder: that gets its files; empty: they are returned."""
    name = target_names(sample, settings.format, settings.keep_suffix)[0]
    target = f"{folder}/{name}" if folder else name
    return SampleTask(sample.source, target, size=sample.size, sample=sample, settings=settings, folder=folder)


@reporting
def convert_sample(task: Task) -> Outcome:
    """Converts the images of a sample to L3, or its L3 files to PNG, and takes its other files as they are.

    Each file was decoded and compared with the pixels. Images that are L3 files already are decoded, too, and stay as
    they are, but not from a folder to a folder: there they are skipped.

    Returns one outcome for the sample. It goes whole or not at all: if one of its files fails, so does the sample.
    """
    assert isinstance(task, SampleTask)
    sample, settings = task.sample, task.settings
    files: list[tuple[str, bytes]] = []
    notes: dict[str, None] = {}  # each once
    raw_size, format = 0, ""
    if not any(member.is_image for member in sample.members):
        notes["no L3 file, stays as it is"] = None
    names = target_names(sample, settings.format, settings.keep_suffix)
    for member, name in zip(sample.members, names, strict=True):
        if member.is_image:
            try:
                image = _convert(member, settings)
            except _RefusedError as refusal:
                return Outcome(task.source, task.target, refusal.status, refusal.reason)
            files.append((name, image.data))
            notes |= dict.fromkeys(image.notes)
            raw_size += image.raw_size
            format = format or image.format
        else:
            files.append((name, _read(member, settings)))
    if sample.label:
        files.append((f"{sample.key}.cls", sample.label.encode()))
    target_size = sum(len(data) for _, data in files)
    written: list[tuple[str, int]] = []
    if task.folder:
        written = _write(files, sample, task.folder)
        files = []
    return Converted(
        task.source,
        task.target,
        "done",
        notes=tuple(notes),
        source_size=sample.size,
        target_size=target_size,
        raw_size=raw_size,
        format=format,
        files=tuple(files),
        written=tuple(written),
    )


def _write(files: list[tuple[str, bytes]], sample: Sample, folder: str) -> list[tuple[str, int]]:
    """Writes the files of a sample, all or none of them. Returns their names and sizes. Raises TargetError."""
    storage = find_storage(folder)
    written: list[tuple[str, int]] = []
    try:
        for (name, data), member in zip(files, sample.members, strict=True):
            storage.write(f"{folder}/{name}", data, member.version)
            written.append((name, len(data)))
    except TargetError:
        for name, _ in written:
            with contextlib.suppress(OSError):
                storage.remove(f"{folder}/{name}")
        raise
    return written


@dataclass(frozen=True)
class _Image:
    data: bytes
    notes: tuple[str, ...]
    raw_size: int
    format: str


class _RefusedError(Exception):
    """An image that is not converted."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


def _convert(member: Member, settings: Settings) -> _Image:
    """Takes no more memory than `converting.convert_file` and `exporting.export_file` of `conversion`."""
    exports = settings.format == "png"
    data = _read(member, settings)
    signature = sniff(data[:HEAD_SIZE])
    if not exports and signature == "L3" and (settings.shards or member.offset is not None):
        return _kept(data, settings)
    refuse = refuse_to_export if exports else refuse_to_convert
    refused = refuse(f"{member.path}.{member.extension}", signature, data[:_HEAD])
    if refused:
        raise _RefusedError(*refused)
    if exports:
        format = png_format(settings.level)
        reserve(peek(data).raw_size, format.memory)
        image = ReadImage(decode(data, verify=True), read_metadata(data), ())
        del data
    else:
        format = find_format(f"l3-{settings.profile}", settings.effort)
        stored = read_as_stored(data, _read_options(settings, format))
        del data
        image = turn_upright(stored)
        del stored
        if settings.resize:
            image = resize_image(image, settings.resize)
    raw_size, notes = image.pixels.nbytes, image.notes
    prepared = prepare_image(image.pixels, image.metadata, format)
    del image
    prepared.prove()
    return _Image(prepared.data, notes + prepared.notes, raw_size, format.name)


def _kept(data: bytes, settings: Settings) -> _Image:
    """An L3 file that stays as it is, once it was decoded."""
    info = peek(data)
    size = info.width, info.height
    if settings.resize and settings.resize.size(*size) != size:
        raise _RefusedError("failed", "L3 files are not made smaller: export it, and convert that")
    reserve(info.raw_size)
    return _Image(data, (), decode(data, verify=True).nbytes, f"l3-{info.profile}")


def _read_options(settings: Settings, format: Format) -> ReadOptions:
    times = format.memory + (RESIZING_MEMORY if settings.resize else 0)
    return ReadOptions(
        settings.max_pixels,
        settings.palette,
        "first" if settings.first_page else None,
        functools.partial(reserve, times=times),
    )


def _read(member: Member, settings: Settings) -> bytes:
    """The bytes of a file. Raises ConversionError if it is no longer the one that the manifest lists, OSError."""
    storage = find_storage(member.path)
    try:
        entry = storage.entry(member.path)
    except FileNotFoundError:
        check_mounted(member, settings)
        raise
    if entry.version != member.version or (member.offset is None and entry.size != member.size):
        raise ConversionError(f"{member.path}: has changed since the conversion was begun")
    data = storage.read(member.path, member.offset or 0, member.size)
    if len(data) != member.size:
        raise ConversionError(f"{member.path}: ends before byte {(member.offset or 0) + member.size}")
    return data


def check_mounted(member: Member, settings: Settings) -> None:
    """Raises StorageError if all of the source is gone, and not only this file of it, or the folder that it was in.

    Where a file system is not mounted, there may be an empty folder in its place.
    """
    folder = settings.source if member.offset is None else os.path.dirname(member.path)
    if is_in_bucket(folder):
        return
    try:
        with os.scandir(folder) as entries:
            is_empty = next(entries, None) is None
    except PermissionError:  # which the files in it may not need
        return
    except (FileNotFoundError, NotADirectoryError):
        raise StorageError(errno.ENOENT, "the folder of the source is not there", folder) from None
    if is_empty:
        raise StorageError(errno.ENOENT, "the folder of the source is empty", folder)
