"""Converts one image to L3, or to another format: a file, or its bytes."""

from __future__ import annotations

import dataclasses
import functools
import os

import numpy as np

from ..errors import ConversionError
from ..files import open_regular, target_errors
from ..images.formats import L3_FAST, SOURCE, Format, find_format
from ..images.palettes import is_read_otherwise
from ..images.reading import read_as_stored, read_image, turn_upright
from ..images.resizing import RESIZING_MEMORY, Resize, is_resized_otherwise, resize_image
from ..images.signatures import HEAD_SIZE, IMAGE_SUFFIXES, sniff
from ..images.stored import DEFAULT_OPTIONS, ColourError, Palette, ReadOptions
from ..images.writing import encode_image, prepare_image
from ..jobs.outcomes import Outcome, Task, reporting
from ..jobs.planning import Conversion, is_other_file
from ..jobs.serving import reserve
from .keeping import Way, keep, unkeepable
from .sources import refuse_to_convert


def conversion_to(format: Format, palette: Palette | None = None, resize: Resize | None = None) -> Conversion:
    """The conversion of images to `format`.

    palette: as in `ReadOptions`; L3 files of an earlier run with the other choice, or with another for `resize`, are
        written again. None: they stay
    resize: the bounds of the images' sizes
    """

    def is_finished(task: Task) -> bool:
        finished = format.is_finished(task.target)
        if not finished or palette is None:
            return finished
        return not (
            is_read_otherwise(task.source, task.page, task.target, palette) or is_resized_otherwise(task.target, resize)
        )

    return Conversion(format.name, format.suffix, format.signature, IMAGE_SUFFIXES, refuse_to_convert, is_finished)


TO_L3 = conversion_to(find_format(L3_FAST))


def convert_image(data: bytes, format: str = L3_FAST, effort: int = 2, options: ReadOptions = DEFAULT_OPTIONS) -> bytes:
    """Converts the bytes of an image file to the bytes of a file in `format`, upright and with its metadata.

    format: a name as in `formats.find_format`: "l3-fast", "png", "jpeg@95", …
    effort: of the L3 encoder, 1 … 3
    options: how to read the image

    Raises ConversionError if the image cannot be read, or if the format cannot hold it.
    """
    image = read_image(data, options)
    return encode_image(image.pixels, image.metadata, find_format(format, effort))


@reporting
def convert_file(
    task: Task,
    effort: int = 2,
    options: ReadOptions = DEFAULT_OPTIONS,
    source_as: Way = "auto",
    resize: Resize | None = None,
) -> Outcome:
    """Converts `task.source` to `task.format` (by default l3-fast), upright, with metadata and modification time.

    If the format cannot hold the image, it becomes l3-fast instead. The outcome then names the target that was written,
    and the reason, and a file at `task.target` from an earlier source is removed.
    The target gets its name only after it was decoded and compared with the pixels.

    The format `source` keeps the file as it is, once it was decoded. If `fn.decoders.image` would not show it as it
    shows the conversion, it becomes l3-fast, at `task.otherwise`. The other way round, what cannot be converted because
    of its colours (JPEG in CMYK) stays as it is, at `task.otherwise`, if the task has that.

    Takes at most twice the size of the pixels, plus a constant; more for lossy formats and WebP (Format.memory).

    effort: of the L3 encoder, 1 … 3
    options: how to read the image; the page of the task, if any, replaces theirs
    source_as: how files that stay as they are get to their place
    resize: the bounds of the image's size; files that stay as they are keep theirs
    """
    with open_regular(task.source) as file:
        mtime_ns = os.fstat(file.fileno()).st_mtime_ns  # before reading: what is written later is newer
        signature = sniff(file.read(HEAD_SIZE))
        refused = refuse_to_convert(task.source, signature)
        if refused:
            return Outcome(task.source, task.target, *refused)
        file.seek(0)
        data = file.read()
    stays = task.format == SOURCE
    format = find_format(L3_FAST if stays else task.format or L3_FAST, effort)
    try:
        stored = read_as_stored(data, _reading_options(task, options, format, resize))
    except ColourError as error:
        if not (stays or task.otherwise):
            raise
        note = f"cannot be converted ({error}) and stays as it is, not checked for damage"
        return _keep(task, task.target if stays else task.otherwise, data, mtime_ns, source_as, note)
    target = task.target
    reasons: tuple[str, ...] = ()
    if stays:
        unfit = unkeepable(signature or "", data, stored)
        if not unfit:
            return _keep(task, task.target, data, mtime_ns, source_as, raw_size=stored.pixels.nbytes)
        if not task.otherwise:
            raise ConversionError(f"cannot stay as it is: {unfit}")
        target, reasons = task.otherwise, (f"cannot stay as it is ({unfit}): converted to {L3_FAST}",)
    source_size = len(data)
    del data  # here and below: so that the image fits into memory beside what it becomes
    image = turn_upright(stored)
    del stored
    if resize:
        image = resize_image(image, resize)
    format, target, unsupported = _format_that_holds(image.pixels, format, target, effort)
    if target != task.target:
        _check_free(target, format.signature)
    notes = image.notes + reasons + unsupported
    raw_size, prepared = image.pixels.nbytes, prepare_image(image.pixels, image.metadata, format)
    del image
    written = prepared.write(target, mtime_ns)
    _remove_former(task, target)
    return Outcome(
        task.source,
        target,
        "done",
        "",
        notes + written.notes,
        source_size=source_size,
        target_size=written.size,
        raw_size=raw_size,
        format=format.name,
        psnr=written.psnr,
    )


def _reading_options(task: Task, options: ReadOptions, format: Format, resize: Resize | None) -> ReadOptions:
    """How to read the image of a task: its page, with memory reserved for all that is done with it."""
    times = format.memory + (RESIZING_MEMORY if resize else 0)
    page = options.page if task.page is None else task.page
    return dataclasses.replace(options, page=page, reserve=functools.partial(reserve, times=times))


def _format_that_holds(
    pixels: np.ndarray, format: Format, target: str, effort: int
) -> tuple[Format, str, tuple[str, ...]]:
    """`format` and `target`, or L3 and its target if that cannot hold the pixels; and then a note that says why."""
    unsupported = format.unsupported(pixels)
    if not unsupported:
        return format, target, ()
    l3 = find_format(L3_FAST, effort)
    note = f"not representable in {format.name} ({unsupported}): kept as {L3_FAST}"
    return l3, target.removesuffix(format.suffix) + l3.suffix, (note,)


def _keep(task: Task, target: str, data: bytes, mtime_ns: int, way: Way, *notes: str, raw_size: int = 0) -> Outcome:
    """Keeps the source as it is, at `target`."""
    if target != task.target:
        _check_free(target, sniff(data) or "")
    how = keep(task.source, target, data, mtime_ns, way)
    _remove_former(task, target)
    return Outcome(
        task.source,
        target,
        "done",
        "",
        (*notes, f"stays as it is ({how})"),
        source_size=len(data),
        target_size=len(data),
        raw_size=raw_size,
        format=SOURCE,
    )


def _check_free(target: str, signature: str) -> None:
    """Raises ConversionError if a file would be replaced at a target that was not planned."""
    if is_other_file(target, signature):
        raise ConversionError(f"{target} exists and is not a file of format {signature}; move it away")


def _remove_former(task: Task, target: str) -> None:
    """Removes what the source became when the format still suited it."""
    if target != task.target and os.path.isfile(task.target):
        with target_errors(task.target):
            os.unlink(task.target)
