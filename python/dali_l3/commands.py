"""The commands of `dali-l3`: convert, export, verify and info; profile is in `profiling.command`.

Imports no DALI, and image libraries only in the commands that need them.
"""

from __future__ import annotations

import enum
import functools
import importlib
import json
import mmap
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Annotated, Any

import typer

from .codec import peek, read_metadata
from .conversion.mix_record import RECORD_NAME, MixRecord, refuse_mixed
from .conversion.verifying import verify_file
from .errors import ConversionError, L3Error
from .files import open_regular
from .images import DEFAULT_MAX_PIXELS
from .jobs.display import console, printable, show
from .jobs.outcomes import Outcome, Task
from .jobs.planning import Plan, PlanError, plan, preview
from .jobs.running import run_plan
from .jobs.walking import walk
from .profiling.command import profile
from .version import __version__

EXIT_FAILED = 1
EXIT_USAGE = 2

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Profile(str, enum.Enum):
    """The profiles that can be written."""

    RAW = "raw"
    PAPER = "paper"
    FAST = "fast"


Workers = Annotated[int | None, typer.Option(min=1, help="Worker processes.", show_default="one per CPU")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Write every target again, and replace other files in its place.")
]
KeepSuffix = Annotated[bool, typer.Option("--keep-suffix", help="Append the new suffix to the old one.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", "-n", help="List on standard output what would be done; write nothing.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 also when files were skipped.")]
Report = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write what became of each file to FILE as JSON lines; '-' is standard output."),
]


@app.callback(invoke_without_command=True)
def dali_l3(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Lossless images that decode fast: convert image files to L3, and look after them.

    Start with: dali-l3 convert photos/ photos-l3/
    """
    if version:
        print(__version__)
        raise typer.Exit()


@app.command(no_args_is_help=True)
def convert(
    source: Annotated[str, typer.Argument(metavar="SRC", help="An image file, or a folder of them.")],
    target: Annotated[
        str, typer.Argument(metavar="DST", help="A folder; for a single file also a name ending in .l3.")
    ],
    profile: Annotated[
        Profile | None,
        typer.Option(help="fast: small, quick to decode. raw: stored. paper: to compare.", show_default="fast"),
    ] = None,
    effort: Annotated[int, typer.Option(min=1, max=3, help="Of L3. 1: quickest, 3: smallest.")] = 2,
    mix: Annotated[
        str | None,
        typer.Option(metavar="FORMAT:WEIGHT,...", help="Convert to several formats in these proportions."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the draw of formats, with --mix.", show_default="0")] = None,
    workers: Workers = None,
    overwrite: Overwrite = False,
    keep_suffix: KeepSuffix = False,
    max_pixels: Annotated[
        int, typer.Option(min=1, help="Refuse larger images, before decoding them.")
    ] = DEFAULT_MAX_PIXELS,
    dry_run: DryRun = False,
    strict: Strict = False,
    report: Report = None,
) -> None:
    """Convert an image, or a tree of them, to L3, or to a mix of formats.

    Reads PNG, JPEG, WebP, BMP, TIFF, PNM and NPY, told by their content. 16 bits, alpha and ICC profiles are kept,
    palettes are expanded, EXIF orientation is applied. CMYK, animations, several pages and float samples are refused
    by name. Sources are only read. Folders are mirrored, class folders and all.

    Each file is decoded and compared before it gets its name, and bears its source's date. A run that was stopped, even
    killed, is continued by the same command: files that are done are kept, unless their source's date or the profile is
    another. Ctrl-C lets the files at hand be finished; a second one does not.

    With --mix, the formats of the images of each folder are drawn in proportion: l3-fast, l3-raw, l3-paper, png, tiff,
    bmp, webp, and the lossy jpeg@Q and webp@Q with a quality Q. DST/dali_l3_mix.json records them.

    Exits with 0 when all went well, 1 when any file failed, 2 when the request makes no sense, 130 after Ctrl-C.

    Examples:

    \b
    dali-l3 convert photo.png photo.l3
    dali-l3 convert train/ train-l3/ --dry-run
    dali-l3 convert train/ train-l3/ --workers 8
    dali-l3 convert train/ train-l3/ --effort 3 --report report.jsonl
    dali-l3 convert train/ train-mix/ --mix l3-fast:7,bmp:3
    """
    converting, mixing, formats, reading, stored = _import_with_image_libraries(
        "conversion.converting", "conversion.mixing", "images.formats", "images.reading", "images.stored"
    )
    record = None
    if mix is not None:
        if profile:
            raise PlanError("--profile and --mix exclude each other: name l3-fast, l3-raw or l3-paper in the mix")
        weights = mixing.parse_mix(mix)
        work, record = mixing.plan_mix(source, target, weights, seed or 0, overwrite, keep_suffix)
    else:
        if seed is not None:
            raise PlanError("--seed is for --mix")
        refuse_mixed(target)
        direction = converting.direction_to(formats.find_format(f"l3-{(profile or Profile.FAST).value}"))
        work = plan(source, target, direction, overwrite, keep_suffix)
    if dry_run:
        outcomes = preview(work.tasks, converting.refusal)
    else:
        function = functools.partial(converting.convert_file, effort=effort, options=stored.ReadOptions(max_pixels))
        outcomes = run_plan(work, function, workers, reading.prepare_process)
        if record:
            outcomes = mixing.recorded(outcomes, record, source, target)
    _finish(work, outcomes, "converted", report, strict, dry_run, record)


@app.command(no_args_is_help=True)
def export(
    source: Annotated[str, typer.Argument(metavar="SRC", help="An L3 file, or a folder of them.")],
    target: Annotated[
        str, typer.Argument(metavar="DST", help="A folder; for a single file also a name ending in .png.")
    ],
    level: Annotated[int, typer.Option(min=0, max=9, help="Compression level of the PNG files.")] = 6,
    workers: Workers = None,
    overwrite: Overwrite = False,
    keep_suffix: KeepSuffix = False,
    dry_run: DryRun = False,
    strict: Strict = False,
    report: Report = None,
) -> None:
    """Convert L3 files back to PNG.

    Writes the same pixels, 8 or 16 bits, with alpha, ICC profile and EXIF data.
    Works as convert does: folders are mirrored, files appear whole or not at all, and the same command continues a run.

    Examples:

    \b
    dali-l3 export photo.l3 photo.png
    dali-l3 export train-l3/ train-png/
    """
    (exporting,) = _import_with_image_libraries("conversion.exporting")
    work = plan(source, target, exporting.TO_PNG, overwrite, keep_suffix)
    if dry_run:
        outcomes = preview(work.tasks, exporting.TO_PNG.refusal)
    else:
        outcomes = run_plan(work, functools.partial(exporting.export_file, level=level), workers)
    _finish(work, outcomes, "exported", report, strict, dry_run)


@app.command(no_args_is_help=True)
def verify(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="L3 files, or folders: all their files ending in .l3.")
    ],
    workers: Workers = None,
    report: Report = None,
) -> None:
    """Prove that L3 files are sound.

    Decodes them completely and compares every checksum. Exits with 1 when any file is damaged or missing.

    Examples:

    \b
    dali-l3 verify photo.l3
    dali-l3 verify train-l3/ val-l3/ --report verified.jsonl
    """
    work = Plan()
    for path in paths:
        if os.path.isdir(path):
            tree = walk(path)
            work.tasks += [Task(os.path.join(path, file)) for file in tree.files if file.lower().endswith(".l3")]
            work.outcomes += tree.outcomes
        else:
            work.tasks.append(Task(path))
    if not work.tasks and all(outcome.status != "failed" for outcome in work.outcomes):
        raise PlanError(f"no L3 files in {', '.join(paths)}")
    _finish(work, run_plan(work, verify_file, workers), "verified", report)


@app.command(no_args_is_help=True)
def info(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="L3 files.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per file, each on a line.")] = False,
) -> None:
    """Show what L3 files hold.

    Reads headers and metadata; pixels are not decoded (see verify).

    Examples:

    \b
    dali-l3 info photo.l3
    dali-l3 info --json train-l3/*/*.l3 | jq .width
    """
    failed = False
    for path in files:
        try:
            facts = _inspect(path)
        except (OSError, L3Error) as error:
            failed = True
            _complain(f"{path}: {_reason(error)}")
            continue
        print(json.dumps(facts) if as_json else _describe(facts))
    if failed:
        raise typer.Exit(EXIT_FAILED)


app.command(name="profile", no_args_is_help=True)(profile)


def run() -> None:
    """Runs the command line and exits."""
    if sys.stdout:  # which may be closed
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files may hold what the terminal's encoding lacks
    try:
        app()
    except ConversionError as error:
        _complain(str(error))
        sys.exit(EXIT_USAGE)
    except OSError as error:
        _complain(f"{error.filename}: {_reason(error)}" if error.filename else _reason(error))
        sys.exit(EXIT_FAILED)


def _import_with_image_libraries(*names: str) -> list[ModuleType]:
    """Imports modules that read images, or says which package to install."""
    try:
        return [importlib.import_module(f"{__package__}.{name}") for name in names]
    except ModuleNotFoundError as error:
        raise ConversionError(f"{error.name} is not installed, try: pip install 'dali-l3[convert]'") from error


def _finish(
    work: Plan,
    outcomes: Iterator[Outcome],
    verb: str,
    report: str | None,
    strict: bool = False,
    dry_run: bool = False,
    record: MixRecord | None = None,
) -> None:
    """Shows the run and exits as it ended."""

    def every_outcome() -> Iterator[Outcome]:
        yield from work.outcomes
        yield from outcomes

    if report and report != "-":
        _check_report(report, work, dry_run)
    total = len(work.outcomes) + len(work.tasks)
    totals = show(every_outcome(), total, verb, report, listing=dry_run and report != "-")
    for line in record.describe() if record else ():
        console.print(printable(line))
    if totals.interrupted:
        raise totals.interrupted
    if totals.counts["failed"] or (strict and totals.counts["skipped"]):
        raise typer.Exit(EXIT_FAILED)


def _check_report(report: str, work: Plan, dry_run: bool) -> None:
    """Raises PlanError in a dry run, which writes nothing, and if the report would replace a file of the run."""
    if dry_run:
        raise PlanError("--dry-run writes no report: --report - prints it")
    paths = {path for item in (*work.tasks, *work.outcomes) for path in (item.source, item.target) if path}
    paths.update(os.path.join(folder, RECORD_NAME) for folder in work.folders[:1])
    for path in paths:
        if _are_same_file(path, report):
            raise PlanError(f"{report}: the report would take the place of {path}")


def _are_same_file(path: str, other: str) -> bool:
    """Whether two names mean one file, even if there is none yet."""
    try:
        return os.path.samefile(path, other)
    except OSError:  # the names are compared first, for resolving links takes longer
        return os.path.basename(path) == os.path.basename(other) and os.path.realpath(path) == os.path.realpath(other)


def _inspect(path: str) -> dict[str, Any]:
    """The facts that `info` shows, ready for JSON."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        # Mapped, so that nothing is read but the header, the tables and the metadata. An empty file cannot be.
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    facts = peek(data)
    metadata = read_metadata(data)
    raw_size = facts.width * facts.height * facts.channels * facts.dtype.itemsize
    return {
        "file": path,
        "width": facts.width,
        "height": facts.height,
        "channels": facts.channels,
        "dtype": facts.dtype.name,
        "shape": list(facts.shape),
        "profile": facts.profile,
        "version": facts.version,
        "prototype": facts.prototype,
        "tiles": facts.tiles,
        "has_checksums": facts.has_checksums,
        "metadata": {key: len(value) for key, value in metadata.items()},
        "payload_size": facts.payload_size,
        "file_size": size,
        "raw_size": raw_size,
    }


def _describe(facts: dict[str, Any]) -> str:
    """The facts as lines of text."""
    format_name = (
        "published prototype" if facts["prototype"] else f"version {facts['version']}, profile {facts['profile']}"
    )
    metadata = ", ".join(f"{printable(key)} ({size} bytes)" for key, size in facts["metadata"].items())
    ratio = facts["file_size"] / facts["raw_size"]
    return "\n".join(
        (
            printable(facts["file"]),
            f"  image      {facts['width']} x {facts['height']} pixels of {facts['channels']} x {facts['dtype']}",
            f"  format     {format_name}",
            f"  tiles      {facts['tiles']}, {'with' if facts['has_checksums'] else 'without'} checksums",
            f"  metadata   {metadata or 'none'}",
            f"  size       {facts['file_size']} bytes, {ratio:.3f} of the {facts['raw_size']} bytes of pixels",
        )
    )


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _complain(message: str) -> None:
    console.print("dali-l3: " + "\n".join(map(printable, message.split("\n"))))
