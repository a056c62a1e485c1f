"""The command `dali-l3 export`."""

from __future__ import annotations

import functools
import os
from typing import Annotated

import typer

from .. import catalogues
from ..errors import ConversionError
from ..jobs.display import console, printable
from ..jobs.planning import PlanError, plan, preview
from ..jobs.running import run_plan
from ..wording import counted
from .cluster import RayOption, runner
from .common import DryRun, KeepSuffix, Overwrite, ReportFile, Strict, Workers, finish, import_extra, refuse_options
from .parts import PartOption, parse_part


def export(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SRC", help="An L3 file, a folder of them, or a catalogue.")],
    target: Annotated[
        str,
        typer.Argument(
            metavar="DST",
            help="A folder, or for a single file a name that ends in .png; for a catalogue one that ends in .parquet.",
        ),
    ],
    level: Annotated[int, typer.Option(min=0, max=9, help="Compression level of the PNG files.")] = 6,
    workers: Workers = None,
    overwrite: Overwrite = False,
    keep_suffix: KeepSuffix = False,
    part: PartOption = None,
    ray: RayOption = None,
    dry_run: DryRun = False,
    strict: Strict = False,
    report: ReportFile = None,
) -> None:
    """Convert L3 files back to PNG.

    Writes the same pixels, 8 or 16 bits, with alpha, ICC profile, EXIF and XMP. As with convert, the target mirrors the
    folders of the source, files are never half-written, and the same command continues a run.

    A catalogue becomes a Parquet table, with a row for each sample. Needs pyarrow: pip install 'dali-l3[parquet]'.

    Examples:

    \b
    dali-l3 export photo.l3 photo.png
    dali-l3 export train-l3/ train-png/
    dali-l3 export train.l3cat train.parquet
    """
    if catalogues.is_catalogue(source):
        refuse_options(context, "catalogues", "overwrite")
        _export_catalogue(source, target, overwrite)
        return
    (exporting,) = import_extra("convert", "conversion.exporting")
    work = parse_part(part).of(plan(source, target, exporting.TO_PNG, overwrite, keep_suffix))
    if dry_run:
        outcomes = preview(work.tasks, exporting.TO_PNG.refuse)
    else:
        function = functools.partial(exporting.export_file, level=level)
        outcomes = run_plan(work, function, workers, run=runner(ray, workers))
    finish(work, outcomes, "exported", report, strict, dry_run)


def _export_catalogue(source: str, target: str, overwrite: bool) -> None:
    if not target.endswith(".parquet"):
        raise PlanError(f"a catalogue is exported to a Parquet table, so {target} must end in .parquet")
    if os.path.exists(target) and not overwrite:
        raise PlanError(f"{target} exists; --overwrite replaces it")
    try:
        rows = catalogues.export(source, target)
    except ModuleNotFoundError as error:
        raise ConversionError("pyarrow is not installed, try: pip install 'dali-l3[parquet]'") from error
    console.print(printable(f"{target}: {counted(rows, 'row')}"))
