"""`dali-l3 convert` file by file: to L3, or to a mix of formats."""

from __future__ import annotations

import functools
from typing import Literal

from ..conversion.converting import conversion_to, convert_file
from ..conversion.keeping import Way
from ..conversion.mix_record import MixRecord, refuse_mixed
from ..conversion.mixing import parse_mix, plan_mix, recorded
from ..conversion.sources import refuse_to_convert
from ..images.formats import L3_FAST, SOURCE, find_format
from ..images.reading import count_pages, prepare_process
from ..images.resizing import Resize
from ..images.stored import Palette, ReadOptions
from ..jobs.planning import PlanError, plan, preview
from ..jobs.running import run_plan
from ..jobs.workers import DEFAULT_LIMITS, Limits
from .common import finish


def convert_files(
    source: str,
    target: str,
    *,
    mix: str | None = None,
    source_as: Way | None = None,
    seed: int | None = None,
    profile: str | None = None,
    effort: int = 2,
    palette: Palette = "rgb",
    pages: Literal["first", "split"] | None = None,
    resize: Resize | None = None,
    keep_suffix: bool = False,
    max_pixels: int = ReadOptions.max_pixels,
    overwrite: bool = False,
    workers: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    dry_run: bool = False,
    strict: bool = False,
    report: str | None = None,
) -> None:
    """Converts an image, or those of a folder, and shows what becomes of them. The options are those of the command."""
    if source_as and SOURCE not in parse_mix(mix or f"{L3_FAST}:1"):
        raise PlanError("--source-as needs source in --mix")
    record: MixRecord | None = None
    if mix is None:
        if seed is not None:
            raise PlanError("--seed needs --mix or --shards")
        refuse_mixed(target)
        conversion = conversion_to(find_format(f"l3-{profile}" if profile else L3_FAST), palette, resize)
        work = plan(source, target, conversion, overwrite, keep_suffix, count_pages if pages == "split" else None)
    else:
        if profile:
            raise PlanError("--profile and --mix cannot be combined: name l3-fast, l3-raw or l3-paper in the mix")
        if pages == "split":
            raise PlanError("--pages split and --mix cannot be combined: split the files first (convert, then export)")
        work, record = plan_mix(source, target, parse_mix(mix), seed or 0, overwrite, keep_suffix, palette, resize)
    if dry_run:
        outcomes = preview(work.tasks, refuse_to_convert)
    else:
        options = ReadOptions(max_pixels, palette, page="first" if pages == "first" else None)
        function = functools.partial(
            convert_file, effort=effort, options=options, source_as=source_as or "auto", resize=resize
        )
        outcomes = run_plan(work, function, workers, prepare_process, limits)
        if record:
            outcomes = recorded(outcomes, record, source, target)
    finish(work, outcomes, "converted", report, strict, dry_run, record.describe() if record else ())
