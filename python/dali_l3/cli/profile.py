"""The command `dali-l3 profile`. Imports DALI and the packages that profiling needs only when it runs."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ..errors import ConversionError
from ..files import write_atomically
from ..jobs.display import console, printable, show
from ..jobs.workers import usable_cpus
from ..profiling import DEFAULT_FORMATS
from ..sizes import parse_size
from .common import ResizeLonger, ResizePixels, ResizeShorter, check_report, import_extra, resize_of

if TYPE_CHECKING:
    from ..profiling.profiler import DatasetProfile

_QUICK_SAMPLE, _QUICK_SECONDS = 48, 0.6
_SAMPLE, _SECONDS = 128, 4.0
_SWEEP = ("jpeg@50", "jpeg@75", "jpeg@85", "jpeg@95", "webp@50", "webp@75", "webp@85", "webp@95")


def profile(
    source: Annotated[str, typer.Argument(metavar="SRC", help="The dataset: a folder of images.")],
    formats: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT,...",
            help="Formats to compare; lossy ones only if named here, as jpeg@95. source is the files as they are.",
            show_default=",".join(DEFAULT_FORMATS),
        ),
    ] = None,
    device: Annotated[str, typer.Option(metavar="cpu|mixed", help="Device of the decoder.")] = "cpu",
    threads: Annotated[
        int | None, typer.Option(min=1, help="Number of DALI threads.", show_default="one per CPU")
    ] = None,
    cache_size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Memory for the Liquid reader, such as 60GiB.", show_default="half of the free memory"
        ),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Images in a batch.")] = 16,
    sample: Annotated[
        int | None,
        typer.Option(
            min=1, help="Images to measure with, at least a batch.", show_default=f"{_SAMPLE}, or {_QUICK_SAMPLE}"
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure less, in a minute or two.")] = False,
    step_time: Annotated[
        float | None, typer.Option(metavar="MS", min=0, help="Time of a training step for a batch.")
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="A training step, called with the outputs of every batch."),
    ] = None,
    quality_sweep: Annotated[
        bool, typer.Option("--quality-sweep", help="Also measure JPEG and WebP at several qualities.")
    ] = False,
    work: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder for the sample, on the disk to measure.", show_default="beside SRC"),
    ] = None,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the findings as JSON.")] = None,
    html_file: Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write a report with plots.")] = None,
    write: Annotated[
        str | None, typer.Option(metavar="DST", help="Then convert the dataset as recommended, and measure again.")
    ] = None,
    max_size: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Recommend nothing that takes more than this.", show_default="no limit"),
    ] = None,
    prefer: Annotated[
        str,
        typer.Option(
            metavar="speed|space", help="Recommend the smallest dataset within 2% (speed) or 10% of the fastest."
        ),
    ] = "space",
    resize_shorter: ResizeShorter = None,
    resize_longer: ResizeLonger = None,
    resize_pixels: ResizePixels = None,
    seed: Annotated[int, typer.Option(help="Seed for the draw of formats with --write.")] = 0,
) -> None:
    """Find out what limits loading a dataset on this machine, and in which formats to store it.

    Encodes a sample in each format, measures loading and decoding with DALI on the disk, and computes the mix of
    formats that is fastest with the Liquid reader. The format `source` is the files as they are. Never changes source
    files, and removes the sample at the end.

    Examples:

    \b
    dali-l3 profile train/ --quick
    dali-l3 profile train/ --cache-size 60GiB --html report.html
    dali-l3 profile train/ --formats png,bmp --threads 4 --step-time 120
    dali-l3 profile train/ --write train-mix/ --max-size 500GB
    """
    if step and step_time is not None:
        raise ConversionError("--step and --step-time cannot be combined")
    if device not in ("cpu", "mixed"):
        raise ConversionError(f"--device {device}: must be cpu or mixed")
    if prefer not in ("speed", "space"):
        raise ConversionError(f"--prefer {prefer}: must be speed or space")
    for path in filter(None, (json_file, html_file)):
        check_report(path)
    profiler, diagnosis, measuring, report, dataset = _import(
        *(f"profiling.{name}" for name in ("profiler", "diagnosis", "measuring", "report", "dataset"))
    )
    resize = resize_of(resize_shorter, resize_longer, resize_pixels)
    default = tuple(name for name in DEFAULT_FORMATS if not (resize and name == "source"))
    options = profiler.Options(
        measuring.Setting(batch_size, threads or usable_cpus(), device, _QUICK_SECONDS if quick else _SECONDS),
        _parse_size("--cache-size", cache_size) if cache_size else _half_of_free_memory(),
        tuple(name.strip() for name in formats.split(",")) if formats else default,
        sample or (_QUICK_SAMPLE if quick else _SAMPLE),
        work,
        quality=_SWEEP if quality_sweep else (),
        resize=resize,
        max_size=_parse_size("--max-size", max_size) if max_size else None,
        prefer=prefer,
    )
    train = diagnosis.Sleep(step_time / 1e3) if step_time is not None else step and _load(step)
    output = Console(markup=False, highlight=False)  # standard output; what happens on the way goes to standard error
    with contextlib.ExitStack() as stack:
        with report.Progress(console) as progress:
            if write:
                progress(f"checking {printable(write)}", 0, 1)
                dataset.check_target(source, write, seed, resize)
            found = stack.enter_context(profiler.profiling(source, options, train, _announce, progress))
        try:  # before the sample is removed, which takes time
            report.show(found, output)
        finally:  # also if nobody reads the output any more
            _save(found, json_file, html_file)
    if write and found.advice != "convert":
        console.print(f"Nothing is written to {printable(write)}: no conversion is recommended.", soft_wrap=True)
    elif write:
        _convert(found, write, seed, output, json_file, html_file)


def _convert(
    found: DatasetProfile, target: str, seed: int, output: Console, json_file: str | None, html_file: str | None
) -> None:
    """Converts the dataset as recommended, and measures and shows what has been written."""
    from ..profiling import dataset, report

    most = dataset.announced_size(found)
    console.print(f"The converted dataset will take at most {most / 1e6:.0f} MB in {printable(target)}.")
    plan, outcomes = dataset.convert_dataset(found, target, seed)
    totals = show(outcomes, len(plan.tasks) + len(plan.outcomes), "converted")
    if totals.interrupted:
        console.print(f"To continue: {report.command(found, target)}" + (f" --seed {seed}" if seed else ""))
        raise totals.interrupted
    with report.Progress(console) as progress:
        progress("measuring the dataset as written", 0, 1)
        found.written = dataset.measure_dataset(found, target)
    report.show_written(found, output)
    _save(found, json_file, html_file)
    if totals.counts["failed"]:
        raise typer.Exit(1)


def _save(found: DatasetProfile, json_file: str | None, html_file: str | None) -> None:
    from ..profiling import report

    if json_file:
        write_atomically(json_file, report.to_json(found).encode())
    if html_file:
        write_atomically(html_file, report.to_html(found).encode())


def _announce(size: int, folder: str) -> None:
    console.print(f"The sample will take at most {size / 1e6:.0f} MB in {printable(folder)} and is removed again.")


def _import(*names: str) -> list[Any]:
    """Imports modules of this package, or says what to install."""
    try:
        return import_extra("profile", *names)
    except RuntimeError as error:  # another DALI than the operators were built for, or no operators
        raise ConversionError(str(error)) from error


def _parse_size(option: str, text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise ConversionError(f"{option}: {error}") from error


def _half_of_free_memory() -> int:
    import psutil

    return int(psutil.virtual_memory().available) // 2


def _load(name: str) -> Callable[[Any], None]:
    """The function called `name`, as module:function, the module being importable from the working folder.

    What it raises becomes a ConversionError that says where it was raised.
    """
    module_name, separator, function_name = name.partition(":")
    if not separator:
        raise ConversionError(f"--step {name}: write the step as module:function")
    sys.path.insert(0, os.getcwd())  # and it stays there: the function, too, may import modules
    try:
        function = functools.reduce(getattr, function_name.split("."), importlib.import_module(module_name))
    except Exception as error:
        raise ConversionError(f"--step {name}: {type(error).__name__}: {error}") from error
    if not callable(function):
        raise ConversionError(f"--step {name} is not a function")

    def step(outputs: Any) -> None:
        try:
            function(outputs)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{type(error).__name__}: {error} ({place.filename}, line {place.lineno})"
            raise ConversionError(f"--step {name}: {reason}") from error

    return step
