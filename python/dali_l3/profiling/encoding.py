"""The sample, encoded in every candidate format, on the disk to measure."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..conversion.keeping import unkeepable
from ..errors import ConversionError
from ..images.formats import L3_FAST, SOURCE, find_format
from ..images.reading import prepare_process, read_as_stored, turn_upright
from ..images.resizing import RESIZING_MEMORY, Resize, resize_image
from ..images.signatures import sniff
from ..images.stored import ReadOptions, StoredImage
from ..images.writing import write_image
from ..jobs.outcomes import Outcome, Outcomes, Task, reporting
from ..jobs.planning import Plan
from ..jobs.running import run_plan
from ..jobs.serving import reserve

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_EXPANSION = 1.1  # of a file beside its pixels: formats for noise add little
_FILE_OVERHEAD = 1 << 16  # bytes: headers, metadata, the file system's blocks


@dataclass(frozen=True)
class EncodedFile:
    """An image of the sample.

    format: of the file: l3-fast where the one that was asked for cannot hold the image
    psnr: in dB, if the format changed pixels
    """

    path: str
    size: int
    format: str
    psnr: float | None = None


@dataclass
class EncodedSample:
    """The sample's files.

    files: by format; the same images in the same order for each
    raw_sizes: bytes of the images' pixels
    failures: images that could not be read, which the sample does without
    """

    files: dict[str, list[EncodedFile]]
    raw_sizes: list[int]
    failures: list[Outcome]

    def paths(self, format: str) -> list[str]:
        return [file.path for file in self.files[format]]

    def replaced(self, format: str) -> int:
        """How many images the format cannot hold: they are l3-fast instead, as `dali-l3 convert` makes them."""
        return sum(file.format != format for file in self.files[format])


@dataclass(frozen=True)
class _EncodedImage(Outcome):
    files: tuple[tuple[str, EncodedFile], ...] = ()


def announce(
    sample: Sequence[str],
    formats: Sequence[str],
    tick: Callable[[], None] = lambda: None,
    resize: Resize | None = None,
) -> int:
    """The disk space, in bytes, that `encode_sample` takes at most.

    Decodes the images to know. tick: called for each
    """
    pixels = 0
    for outcome in _run(functools.partial(_measure, resize=resize), [Task(path) for path in sample]):
        pixels += outcome.raw_size
        tick()
    return len(formats) * (int(pixels * _MOST_EXPANSION) + len(sample) * _FILE_OVERHEAD)


def encode_sample(
    sample: Sequence[str],
    formats: Sequence[str],
    folder: str,
    announced: int,
    tick: Callable[[], None] = lambda: None,
    resize: Resize | None = None,
) -> EncodedSample:
    """Encodes images in each format.

    sample: paths of image files
    formats: names, as `images.formats.check_format` takes them; of `source` the files are the sample's own
    folder: an existing one, in which each format gets its own
    announced: bytes, see `announce`
    tick: called for each image
    resize: the bounds of the images' sizes; not for `source`

    Raises:
        ConversionError: No image could be read, the disk has too little room, or more than `announced` is needed.
    """
    free = shutil.disk_usage(folder).free
    if announced > free:
        raise ConversionError(
            f"{folder}: {announced / 1e6:.0f} MB are needed at most, {free / 1e6:.0f} MB are free: "
            "make room, or measure fewer images (--sample)"
        )
    for format in formats:  # also of `source`, for what cannot stay as it is
        os.makedirs(os.path.join(folder, format))
    tasks = [Task(path, f"{number:06d}") for number, path in enumerate(sample)]
    images: dict[str | None, _EncodedImage] = {}
    failures = []
    taken = 0
    function = functools.partial(_encode, formats=tuple(formats), folder=folder, resize=resize)
    for outcome in _run(function, tasks):
        if isinstance(outcome, _EncodedImage):
            images[outcome.target] = outcome
            taken += outcome.target_size
        else:
            failures.append(outcome)
        if taken > announced:
            raise ConversionError(f"{folder}: the sample takes more than the {announced / 1e6:.0f} MB announced")
        tick()
    if not images:
        raise ConversionError(f"no image of the sample can be read; {failures[0].source}: {failures[0].reason}")
    done = [images[task.target] for task in tasks if task.target in images]
    written = [dict(image.files) for image in done]
    files = {format: [image[format] for image in written] for format in formats}
    return EncodedSample(files, [image.raw_size for image in done], failures)


def _run(function: Callable[[Task], Outcome], tasks: list[Task]) -> Outcomes:
    """The outcomes of tasks in workers, as `run_plan` yields them."""
    return run_plan(Plan(tasks), function, initializer=prepare_process)


@reporting
def _measure(task: Task, resize: Resize | None) -> Outcome:
    pixels = _pixels(_read(task.source, times=2, resize=resize)[1], resize)
    return Outcome(task.source, None, "done", raw_size=pixels.nbytes)


@reporting
def _encode(task: Task, formats: tuple[str, ...], folder: str, resize: Resize | None) -> Outcome:
    encoded = [format for format in formats if format != SOURCE]
    held = max((find_format(format).memory for format in encoded), default=1) + 1  # the pixels, while a file is proven
    data, stored = _read(task.source, held, resize)
    files = {}
    if SOURCE in formats:
        if unkeepable(sniff(data) or "", data, stored):
            encoded.append(SOURCE)
        else:
            files[SOURCE] = EncodedFile(task.source, len(data), SOURCE)
    del data
    pixels = _pixels(stored, resize)
    del stored
    files |= _write(pixels, encoded, folder, task.target)
    size = sum(file.size for file in files.values() if file.path != task.source)
    return _EncodedImage(
        task.source, task.target, "done", target_size=size, raw_size=pixels.nbytes, files=tuple(files.items())
    )


def _pixels(stored: StoredImage, resize: Resize | None) -> NDArray[Any]:
    """The pixels as they are to be stored."""
    image = turn_upright(stored)
    return (resize_image(image, resize) if resize else image).pixels


def _read(path: str, times: int, resize: Resize | None) -> tuple[bytes, StoredImage]:
    """An image file, and what it holds. times: see `reserve`"""
    with open(path, "rb") as file:
        data = file.read()
    times += RESIZING_MEMORY if resize else 0
    return data, read_as_stored(data, ReadOptions(reserve=functools.partial(reserve, times=times)))


def _write(pixels: NDArray[Any], formats: Sequence[str], folder: str, name: str) -> dict[str, EncodedFile]:
    files = {}
    for wanted in formats:
        format = find_format(L3_FAST if wanted == SOURCE else wanted)
        if format.unsupported(pixels):
            format = find_format(L3_FAST)
        path = os.path.join(folder, wanted, name + format.suffix)
        written = write_image(path, pixels, {}, format)
        files[wanted] = EncodedFile(path, written.size, format.name, written.psnr)
    return files
