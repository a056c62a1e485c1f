"""The sample, encoded in every candidate format, on the disk to measure."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import ConversionError
from ..images.formats import L3_FAST, find_format
from ..images.reading import prepare_process, read_image
from ..images.stored import ReadOptions
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
    """An image of the sample in a format. psnr: in dB, if the format changed pixels."""

    path: str
    size: int
    psnr: float | None


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
        suffix = find_format(format).suffix
        return sum(not path.endswith(suffix) for path in self.paths(format))


@dataclass(frozen=True)
class _EncodedImage(Outcome):
    files: tuple[tuple[str, EncodedFile], ...] = ()


def announce(sample: Sequence[str], formats: Sequence[str], tick: Callable[[], None] = lambda: None) -> int:
    """The disk space, in bytes, that `encode_sample` takes at most.

    Decodes the images to know. tick: called for each
    """
    pixels = 0
    for outcome in _run(_measure, [Task(path) for path in sample]):
        pixels += outcome.raw_size
        tick()
    return len(formats) * (int(pixels * _MOST_EXPANSION) + len(sample) * _FILE_OVERHEAD)


def encode_sample(
    sample: Sequence[str],
    formats: Sequence[str],
    folder: str,
    announced: int,
    tick: Callable[[], None] = lambda: None,
) -> EncodedSample:
    """Encodes images in each format.

    sample: paths of image files
    formats: names, as `images.formats.find_format` takes them
    folder: an existing one, in which each format gets its own
    announced: bytes, see `announce`
    tick: called for each image

    Raises:
        ConversionError: No image could be read, the disk has too little room, or more than `announced` is needed.
    """
    free = shutil.disk_usage(folder).free
    if announced > free:
        raise ConversionError(f"{folder}: {announced / 1e6:.0f} MB are needed at most, {free / 1e6:.0f} MB are free")
    for format in formats:
        os.makedirs(os.path.join(folder, format))
    tasks = [Task(path, f"{number:06d}") for number, path in enumerate(sample)]
    images: dict[str | None, _EncodedImage] = {}
    failures = []
    taken = 0
    function = functools.partial(_encode, formats=tuple(formats), folder=folder)
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
def _measure(task: Task) -> Outcome:
    pixels = _read(task.source, times=2)
    return Outcome(task.source, None, "done", raw_size=pixels.nbytes)


@reporting
def _encode(task: Task, formats: tuple[str, ...], folder: str) -> Outcome:
    held = max(find_format(format).memory for format in formats) + 1  # while a file is proven, the pixels are kept
    pixels = _read(task.source, held)
    files = dict(_write(pixels, formats, folder, task.target))
    size = sum(file.size for file in files.values())
    return _EncodedImage(
        task.source, task.target, "done", target_size=size, raw_size=pixels.nbytes, files=tuple(files.items())
    )


def _read(path: str, times: int) -> NDArray[Any]:
    """The pixels of an image. times: see `reserve`"""
    with open(path, "rb") as file:
        return read_image(file.read(), ReadOptions(reserve=functools.partial(reserve, times=times))).pixels


def _write(pixels: NDArray[Any], formats: tuple[str, ...], folder: str, name: str) -> Iterator[tuple[str, EncodedFile]]:
    for wanted in formats:
        format = find_format(wanted)
        if format.unsupported(pixels):
            format = find_format(L3_FAST)
        path = os.path.join(folder, wanted, name + format.suffix)
        written = write_image(path, pixels, {}, format)
        yield wanted, EncodedFile(path, written.size, written.psnr)
