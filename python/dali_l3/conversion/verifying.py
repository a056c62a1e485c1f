"""Checks one image file, L3 or any other that can be read, by decoding it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Sequence

from ..codec import decode, peek, read_metadata
from ..errors import L3Error
from ..files import open_regular
from ..images.signatures import HEAD_SIZE, sniff, sniff_file
from ..images.stored import DEFAULT_OPTIONS, DamagedImageError, ImageError, OversizeError, ReadOptions, admit
from ..jobs.outcomes import Outcome, Task, reporting
from ..jobs.planning import Plan
from ..jobs.serving import reserve
from ..jobs.walking import scan
from .sources import refuse_to_verify

_DAMAGE = frozenset({"signature", "truncated", "corrupt", "checksum"})  # of L3Error.status


def plan_verification(paths: Sequence[str], quarantine: str | None = None) -> Plan:
    """Plans to verify files, and all files in folders but those in the folder `quarantine`, which will be created."""
    work = Plan(folders=[quarantine] if quarantine else [])
    for path in paths:
        if not os.path.isdir(path):
            _add_file(work, path)
            continue
        for found in scan(path, without=quarantine):
            if isinstance(found, Outcome):
                work.outcomes.append(found)
            elif not found.is_folder:
                work.tasks.append(Task(os.path.join(path, found.path)))
    return work


def _add_file(work: Plan, path: str) -> None:
    """Adds a file that was asked for by name: it fails where it would be skipped in a folder."""
    with contextlib.suppress(OSError):  # the attempt to verify it will tell
        refused = refuse_to_verify(path, sniff_file(path))
        if refused:
            work.outcomes.append(Outcome(path, None, "failed", refused[1], damaged=refused[0] == "failed"))
            return
    work.tasks.append(Task(path))


@reporting
def verify_file(task: Task, options: ReadOptions = DEFAULT_OPTIONS) -> Outcome:
    """Decodes all of `task.source`, including all pages, and checks every checksum in it.

    The outcome says whether a file that fails is damaged or only could not be read. Intact images that cannot be kept
    exactly (such as CMYK) are skipped. So are all files but L3, if the packages that read them are not installed.

    options: how to read images; their page is ignored
    """
    with open_regular(task.source) as file:
        head = file.read(HEAD_SIZE)
        name = sniff(head)
        refused = refuse_to_verify(task.source, name)
        if refused:
            return Outcome(task.source, None, *refused, damaged=refused[0] == "failed")
        data = head + file.read()
    return check_data(task.source, name, data, options)


def check_data(source: str, name: str | None, data: bytes, options: ReadOptions) -> Outcome:
    """The outcome of `verify_file` for the bytes of a file of the format `name`, which is not refused."""
    options = dataclasses.replace(options, reserve=reserve)
    try:
        raw_size, notes = _check_l3(data, options) if name == "L3" else _check_image(data, options)
    except L3Error as error:
        return Outcome(source, None, "failed", str(error), damaged=error.status in _DAMAGE)
    except DamagedImageError as error:
        return Outcome(source, None, "failed", str(error), damaged=True)
    except OversizeError:
        raise
    except ImageError as error:
        return Outcome(source, None, "skipped", f"cannot be converted: {error}")
    except ModuleNotFoundError as error:
        reason = f"{error.name} is not installed, try: pip install 'dali-l3[convert]'"
        return Outcome(source, None, "skipped", reason)
    return Outcome(source, None, "done", notes=notes, source_size=len(data), raw_size=raw_size)


def prepare_process() -> None:
    """Prepares the image libraries, if they are installed, for `verify_file`. For processes that do nothing else."""
    with contextlib.suppress(ModuleNotFoundError):
        from ..images import reading

        reading.prepare_process()


def _check_l3(data: bytes, options: ReadOptions) -> tuple[int, tuple[str, ...]]:
    """The bytes of the image's pixels, and notes."""
    info = peek(data)
    admit(info.width, info.height, info.channels * info.dtype.itemsize, options)
    raw_size = decode(data, verify=True).nbytes
    read_metadata(data)
    missing = "no tile checksums in the file: it was decoded, but pixels may have changed"
    return raw_size, () if info.has_checksums else (missing,)


def _check_image(data: bytes, options: ReadOptions) -> tuple[int, tuple[str, ...]]:
    """The bytes of the pixels of all pages, and notes."""
    from ..images.reading import count_pages, read_as_stored

    raw_size, notes = 0, []
    for page in range(max(count_pages(data), 1)):
        image = read_as_stored(data, dataclasses.replace(options, page=page))
        raw_size += image.pixels.nbytes
        notes += [note for note in image.notes if note not in notes]
        del image  # before the next page takes as much
    return raw_size, tuple(notes)
