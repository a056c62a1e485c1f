"""Options that several commands have, and how the commands end."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..conversion.mix_record import RECORD_NAME
from ..errors import ConversionError
from ..images.signatures import sniff_file
from ..jobs.display import Totals, console, printable, show
from ..jobs.outcomes import Outcome, Outcomes, Task
from ..jobs.planning import Plan, PlanError

if TYPE_CHECKING:
    from ..images.resizing import Resize

EXIT_FAILED = 1
EXIT_USAGE = 2

Workers = Annotated[int | None, typer.Option(min=1, help="Number of worker processes.", show_default="one per CPU")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Write every target again and replace any file of its name.")
]
KeepSuffix = Annotated[
    bool, typer.Option("--keep-suffix", help="Append the new suffix instead of replacing the old one.")
]
MaxPixels = Annotated[int, typer.Option(min=1, help="Refuse larger images before decoding them.")]
Timeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        min=0,
        help="Give up on a file that takes longer than this; 0: never.",
        show_default="60, and more for large images",
    ),
]
ResizeShorter = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Store images smaller: the shorter side has at most this many pixels."),
]
ResizeLonger = Annotated[int | None, typer.Option(metavar="N", min=1, help="The same for the longer side.")]
ResizePixels = Annotated[int | None, typer.Option(metavar="N", min=1, help="The same for all pixels of an image.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", "-n", help="List on standard output what would be done; write nothing.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 also when files were skipped.")]
ReportFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write a line of JSON for each file to FILE; '-' is standard output."),
]


def import_extra(extra: str, *names: str) -> list[ModuleType]:
    """Imports modules of this package that need the packages of an extra, or says what to install."""
    try:
        return [importlib.import_module(f"..{name}", __package__) for name in names]
    except ModuleNotFoundError as error:
        raise ConversionError(f"{error.name} is not installed, try: pip install 'dali-l3[{extra}]'") from error


def resize_of(shorter: int | None, longer: int | None, pixels: int | None, filter: str = "lanczos") -> Resize | None:
    """The bounds that the options give to the sizes of images; None without any."""
    if not (shorter or longer or pixels):
        return None
    (resizing,) = import_extra("convert", "images.resizing")
    return cast("Resize", resizing.Resize(shorter, longer, pixels, filter))


def finish(
    work: Plan,
    outcomes: Outcomes,
    verb: str,
    report: str | None,
    strict: bool = False,
    dry_run: bool = False,
    closing_lines: Iterable[str] = (),
    count: int = 0,
) -> Totals:
    """Shows the run and returns its totals; exits if it was interrupted or failed.

    count: outcomes to come beside those of the plan
    """

    def every_outcome() -> Outcomes:
        yield from work.outcomes
        yield from outcomes

    if report and report != "-":
        if dry_run:
            raise PlanError("--dry-run writes no report file; use --report - to print the report")
        _check_is_no_file_of(work, report)
        check_report(report)
    total = len(work.outcomes) + len(work.tasks) + count
    totals = show(every_outcome(), total, verb, report, listing=dry_run and report != "-")
    for line in closing_lines:
        console.print(printable(line))
    if totals.interrupted:
        raise totals.interrupted
    if totals.stopped or totals.counts["failed"] or (strict and totals.counts["skipped"]):
        raise typer.Exit(EXIT_FAILED)
    return totals


def require_target(source: str, target: str | None) -> str:
    """The target. Raises BadParameter if it is missing, PlanError if it or the source is empty."""
    if target is None:
        raise typer.BadParameter("name a target", param_hint="DST")
    if not (source and target):  # as of a variable of the shell that is not set: not the folder of this moment
        raise PlanError("SRC and DST must not be empty; write . for the folder where you are")
    return target


def refuse_options(context: typer.Context, what: str, *suited: str) -> None:
    """Raises PlanError for an option on the command line that would do nothing beside `what`.

    suited: the parameters of the command that do something
    """
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        is_given = source is not None and source.name == "COMMANDLINE"
        if parameter.param_type_name == "option" and is_given and parameter.name not in suited:
            raise PlanError(f"{parameter.opts[0]} does not go with {what}")


def reason(error: Exception) -> str:
    """The message of an exception; for errors of the system without their number and file."""
    return getattr(error, "strerror", None) or str(error)


def complain(message: str) -> None:
    """Prints a message of the program to standard error."""
    console.print("dali-l3: " + "\n".join(map(printable, message.split("\n"))))


def check_report(path: str) -> None:
    """Raises ConversionError if no report can be written to `path`, or if it would replace an image."""
    if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise ConversionError(f"{path}: no such folder")
    if os.path.isdir(path):
        raise ConversionError(f"{path} is a folder; name a file for the report")
    if os.path.isfile(path) and sniff_file(path):
        raise ConversionError(f"{path}: the report would replace an image")


def _check_is_no_file_of(work: Plan, report: str) -> None:
    """Raises PlanError if the report would replace a file of the run."""
    items: list[Task | Outcome] = [*work.tasks, *work.outcomes]
    paths = {path for item in items for path in (item.source, item.target) if path}
    paths.update(os.path.join(folder, RECORD_NAME) for folder in work.folders[:1])
    for path in paths:
        if _are_same_file(path, report):
            raise PlanError(f"{report}: the report would replace {path}")


def _are_same_file(path: str, other: str) -> bool:
    """Whether two names are the same file, even if it does not exist yet."""
    try:
        return os.path.samefile(path, other)
    except OSError:  # the names are compared first, for resolving links takes longer
        return os.path.basename(path) == os.path.basename(other) and os.path.realpath(path) == os.path.realpath(other)
