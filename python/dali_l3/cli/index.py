"""The command `dali-l3 index`."""

from __future__ import annotations

import functools
import os
from typing import Annotated

import typer

from .. import catalogues
from ..catalogues import Selection, Source
from ..jobs.display import console, printable
from ..jobs.planning import PlanError
from ..jobs.running import run_plan
from ..jobs.workers import Limits
from ..units.indexing import index_stored, plan_stored
from ..units.storage import is_in_bucket
from ..wording import counted
from .cluster import RayOption, runner
from .common import ReportFile, Workers, finish
from .parts import PartOption, parse_part

_CATALOGUE = "Of a catalogue"
_KINDS = {"catalogue": "catalogue", "paths": "shards", "file_root": "folder", "file_list": "list"}
_SUITED = {
    "catalogue": (),
    "paths": ("ext", "label_ext", "label_field", "label_columns", "skip_bad"),
    "file_root": ("companions", "file_filters", "skip_bad"),
    "file_list": ("companions", "label_columns", "skip_bad"),
}


def index(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Tar archives: paths, patterns, ranges such as 'train-{000..015}.tar', or text files (*.txt) that "
            "list these. For a catalogue also a folder, a list of files (*.txt) or another catalogue. All but the last "
            "may be in a bucket, s3://… or gs://….",
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR|FILE",
            help="Write the indices to DIR, not beside the shards; or a catalogue to FILE, which ends with .l3cat.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Write every index again and replace any file of its name.")
    ] = False,
    workers: Workers = None,
    part: PartOption = None,
    ray: RayOption = None,
    report: ReportFile = None,
    ext: Annotated[
        list[str] | None,
        typer.Option(help="Extension of the image in shards, then of each companion.", rich_help_panel=_CATALOGUE),
    ] = None,
    label_ext: Annotated[
        str | None, typer.Option(help="Extension of the label in shards.", rich_help_panel=_CATALOGUE)
    ] = None,
    label_field: Annotated[
        str | None, typer.Option(help="Where the label is in JSON.", rich_help_panel=_CATALOGUE)
    ] = None,
    label_columns: Annotated[
        int, typer.Option(min=0, help="Numbers of a label; 0: an integer.", rich_help_panel=_CATALOGUE)
    ] = 0,
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="error|empty|skip",
            help="What to do about a companion or component that is missing; error if not given; skip is for shards.",
            rich_help_panel=_CATALOGUE,
        ),
    ] = None,
    companions: Annotated[
        list[str] | None,
        typer.Option(help="Path template of a companion of files, once for each.", rich_help_panel=_CATALOGUE),
    ] = None,
    file_filters: Annotated[
        list[str] | None,
        typer.Option("--filter", help="Names of the files in a folder, such as '*.png'.", rich_help_panel=_CATALOGUE),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out bad files.", rich_help_panel=_CATALOGUE)
    ] = False,
    root: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|URI",
            help="Where readers find the files, in the place of the folder that their paths are relative to, such as "
            "s3://bucket/train for a copy there.",
            rich_help_panel=_CATALOGUE,
        ),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            help="Samples of a catalogue: 'label in 1,2,7', 'label not in 3', 'format in L3,PNG', 'size <= 1MB'. All "
            "rules must hold.",
            rich_help_panel=_CATALOGUE,
        ),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The same by name: a text file with one a line.", rich_help_panel=_CATALOGUE),
    ] = None,
    fraction: Annotated[
        str | None,
        typer.Option(
            metavar="A:B",
            help="A part, such as 0:0.8, that holds the labels in proportion. Parts that do not overlap have no sample "
            "in common.",
            rich_help_panel=_CATALOGUE,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of --fraction.", rich_help_panel=_CATALOGUE)] = 0,
) -> None:
    """Index tar archives with samples, the shards of webdataset, or make a catalogue of any dataset.

    Writes for each archive, such as train-000.tar, which samples it holds and where: train-000.idx. The readers of
    dali_l3 do this by themselves where an index is missing; fn.readers.webdataset reads these files too. An index that
    still fits its archive is kept.

    With -o FILE.l3cat it writes one catalogue of all samples, with sizes, formats and labels, from which readers start
    at once (catalogue="FILE.l3cat").

    Exits with 1 if an archive is compressed, damaged or cut off, or cannot be read.

    Examples:

    \b
    dali-l3 index train-*.tar
    dali-l3 index 'shards/train-{0000..1023}.tar' --output indices/
    dali-l3 index train/ -o train.l3cat
    dali-l3 index s3://bucket/train -o train.l3cat
    dali-l3 index 'shards/*.tar' --ext jpg --label-ext cls -o train.l3cat
    dali-l3 index train.l3cat --select 'label in 1,2,7' -o some.l3cat
    """
    every: dict[str, object] = {
        "ext": ext,
        "label_ext": label_ext,
        "label_field": label_field,
        "label_columns": label_columns,
        "missing": missing,
        "companions": companions,
        "file_filters": file_filters,
        "skip_bad": skip_bad,
    }
    arguments = {name: value for name, value in every.items() if value}
    chosen = {"root": root, "select": select, "names": names, "fraction": fraction, "seed": seed}
    if output and catalogues.is_catalogue(output):
        if part or ray or report:
            raise PlanError("--part, --ray and --report do not go with catalogues: they are made in one piece")
        if seed and fraction is None:
            raise PlanError("--seed is for --fraction")
        source = _source(sources, arguments)
        selection = Selection(select or (), names, _part(fraction), seed)
        _write_catalogue(source, output, selection, root, workers)
        return
    for name, value in {**arguments, **chosen}.items():
        if value:
            raise PlanError(f"{_option(name)} is for catalogues: say where to write one, -o FILE.l3cat")
    work = parse_part(part).of(plan_stored(sources, output))
    function = functools.partial(index_stored, overwrite=overwrite)
    limits = Limits(timeout=0)  # an archive may be as large as it likes
    finish(work, run_plan(work, function, workers, limits=limits, run=runner(ray, workers)), "indexed", report)


def _write_catalogue(source: Source, output: str, selection: Selection, root: str | None, workers: int | None) -> None:
    samples, problems = catalogues.write(source, output, selection, root, workers)
    for problem in problems:
        console.print(printable(problem))
    console.print(f"{printable(output)}: {counted(samples, 'sample')}")


def _source(sources: list[str], arguments: dict[str, object]) -> Source:
    """What to make a catalogue from. Raises PlanError where arguments do not suit that."""
    missing = arguments.pop("missing", None)
    name = _argument_for(sources[0], "ext" in arguments)
    if len(sources) > 1 and name != "paths":
        raise PlanError("a catalogue is made of one folder, list or catalogue, or of archives, which need --ext")
    for argument in arguments:
        if argument not in _SUITED[name]:
            raise PlanError(f"{_option(argument)} does not go with {sources[0]}")
    if name == "paths":
        arguments["missing_component_behavior"] = missing or "error"
    elif "companions" in arguments:
        arguments["missing_companions"] = [missing or "error"]
    elif missing:
        raise PlanError("--missing goes with --companions or shards")
    return Source(_KINDS[name], {name: sources if name == "paths" else sources[0], **arguments})


def _option(argument: str) -> str:
    """What the command line calls an argument."""
    return "--filter" if argument == "file_filters" else "--" + argument.replace("_", "-")


def _argument_for(source: str, has_ext: bool) -> str:
    """The argument of the readers that takes a source."""
    if catalogues.is_catalogue(source):
        return "catalogue"
    if has_ext:
        return "paths"
    if source.endswith(".tar"):
        raise PlanError("a catalogue of archives needs --ext, the extension of the image")
    if is_in_bucket(source):
        return "file_list" if source.endswith(".txt") else "file_root"
    return "file_root" if os.path.isdir(source) else "file_list"


def _part(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        begin, _, end = text.rpartition(":")
        return float(begin or 0), float(end)
    except ValueError:
        raise PlanError(f"--fraction is {text}, but must be such as 0:0.8") from None
