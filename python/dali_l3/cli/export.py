"""The command `dali-l3 export`."""

from __future__ import annotations

import dataclasses
import functools
import os
from typing import Annotated

import typer

from .. import catalogues
from ..errors import ConversionError
from ..jobs.display import console, printable
from ..jobs.planning import PlanError, plan, preview
from ..jobs.running import run_plan
from ..jobs.workers import Limits
from ..wording import counted
from .cluster import RayOption
from .common import (
    DryRun,
    KeepSuffix,
    Overwrite,
    ReportFile,
    Strict,
    Timeout,
    Workers,
    finish,
    import_extra,
    refuse_options,
    require_target,
)
from .parts import PartOption, parse_part
from .unit_options import MergeReports, OrderOption, PlanOnly, RetryFailed, Shards, Status


def export(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SRC", help="An L3 file, a folder of them, tar shards such as 'train-*.tar', or a catalogue."
        ),
    ],
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="DST",
            help="A folder, or for a single file a name that ends in .png; for a catalogue one that ends in .parquet.",
            show_default=False,
        ),
    ] = None,
    level: Annotated[int, typer.Option(min=0, max=9, help="Compression level of the PNG files.")] = 6,
    shards: Shards = None,
    order: OrderOption = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed for the draw of the order in shards.", show_default="0")
    ] = None,
    part: PartOption = None,
    ray: RayOption = None,
    plan_only: PlanOnly = False,
    retry_failed: RetryFailed = False,
    status: Status = False,
    merge_reports: MergeReports = False,
    workers: Workers = None,
    overwrite: Overwrite = False,
    keep_suffix: KeepSuffix = False,
    timeout: Timeout = None,
    dry_run: DryRun = False,
    strict: Strict = False,
    report: ReportFile = None,
) -> None:
    """Convert L3 files back to PNG.

    Writes the same pixels, 8 or 16 bits, with alpha, ICC profile, EXIF and XMP. As with convert, the target mirrors the
    folders of the source, files are never half-written, and the same command continues a run.

    In tar shards, L3 files become PNG files, and all other files stay as they are. With --shards, DST gets tar shards.
    With these, with --part, and from or to buckets, a manifest and records in DST.conversion say what is done.

    A catalogue becomes a Parquet table, with a row for each sample. Needs pyarrow: pip install 'dali-l3[parquet]'.

    Examples:

    \b
    dali-l3 export photo.l3 photo.png
    dali-l3 export train-l3/ train-png/
    dali-l3 export 'train-*.tar' train-png/
    dali-l3 export 's3://bucket/train-l3/*.tar' s3://bucket/train-png --shards 1GiB
    dali-l3 export --status train-png/
    dali-l3 export train.l3cat train.parquet
    """
    if status or merge_reports:
        (in_units,) = import_extra("convert", "cli.in_units")
        in_units.tell(context, source, target, status, merge_reports, report)
        return
    target = require_target(source, target)
    if catalogues.is_catalogue(source):
        refuse_options(context, "catalogues", "overwrite")
        _export_catalogue(source, target, overwrite)
        return
    exporting, in_units = import_extra("convert", "conversion.exporting", "cli.in_units")
    if in_units.is_needed(source, target, shards or part or plan_only or ray):
        in_units.refuse_beside_units({"--overwrite": overwrite})
        settings = in_units.settings_of(source, shards, order and order.value, seed)
        in_units.convert_in_units(
            target,
            dataclasses.replace(settings, format="png", level=level, keep_suffix=keep_suffix),
            parse_part(part) if part else None,
            plan_only=plan_only,
            retry_failed=retry_failed,
            workers=workers,
            limits=Limits(timeout),
            dry_run=dry_run,
            strict=strict,
            report=report,
            ray=ray,
        )
        return
    in_units.refuse_without_units(order, retry_failed)
    if seed is not None:
        raise PlanError("--seed needs --shards")
    work = plan(source, target, exporting.TO_PNG, overwrite, keep_suffix)
    if dry_run:
        outcomes = preview(work.tasks, exporting.TO_PNG.refuse)
    else:
        function = functools.partial(exporting.export_file, level=level)
        outcomes = run_plan(work, function, workers, limits=Limits(timeout))
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
