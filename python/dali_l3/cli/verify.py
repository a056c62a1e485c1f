"""The command `dali-l3 verify`."""

from __future__ import annotations

import functools
import itertools
from typing import Annotated

import typer

from .. import catalogues
from ..conversion.quarantine import Quarantine
from ..conversion.verifying import plan_verification, prepare_process
from ..errors import StorageError
from ..images import DEFAULT_MAX_PIXELS
from ..images.stored import ReadOptions
from ..jobs.display import console, printable
from ..jobs.outcomes import Outcome
from ..jobs.planning import PlanError
from ..jobs.running import run_plan, surrender_to_outage
from ..jobs.workers import Limits
from ..units.storage import is_in_bucket, names_archives
from ..units.verifying import plan_stored, verify_stored
from ..wording import counted
from .cluster import RayOption, runner
from .common import EXIT_FAILED, MaxPixels, ReportFile, Strict, Timeout, Workers, finish, refuse_options
from .parts import PartOption, parse_part

_SHOWN = 100  # differences of a catalogue


def verify(
    context: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...", help="Image files, folders with images, tar shards, the same in buckets, or catalogues."
        ),
    ],
    quarantine: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Move damaged files to DIR, with their folders. Nothing in DIR is replaced. Files that could not be "
            "read (permissions, time, memory) stay, and so do targets of links, and files that do not fit into DIR.",
        ),
    ] = None,
    workers: Workers = None,
    max_pixels: MaxPixels = DEFAULT_MAX_PIXELS,
    timeout: Timeout = None,
    part: PartOption = None,
    ray: RayOption = None,
    strict: Strict = False,
    report: ReportFile = None,
) -> None:
    """Verify L3 files, and image files of every format that convert reads.

    Decodes each file completely and checks every checksum in it. Skips files that are not images, and images that
    convert cannot keep exactly, such as CMYK; these are not verified.

    For a catalogue (*.l3cat), it lists what has changed since it was made: files that are missing or have another size
    or format, and new ones.

    Exits with 1 if any file is damaged, missing or cannot be read.

    Examples:

    \b
    dali-l3 verify photo.l3
    dali-l3 verify train-l3/ val-l3/ --report verified.jsonl
    dali-l3 verify train/ --quarantine damaged/
    dali-l3 verify s3://bucket/train-l3 'shards/*.tar'
    dali-l3 verify train.l3cat
    """
    listed = [path for path in paths if catalogues.is_catalogue(path)]
    if listed:
        if len(listed) < len(paths):
            raise PlanError("catalogues are verified by themselves")
        refuse_options(context, "catalogues", "workers")
        _verify_catalogues(listed, workers)
        return
    stored = [path for path in paths if is_in_bucket(path) or names_archives(path)]
    if stored and quarantine:
        raise PlanError(f"--quarantine moves files of folders of this machine, which {stored[0]} is not")
    keeper = Quarantine(quarantine, paths) if quarantine else None
    planned = plan_verification([path for path in paths if path not in stored], quarantine)
    for found in itertools.chain.from_iterable(map(plan_stored, stored)):
        if isinstance(found, Outcome):
            planned.outcomes.append(found)
        else:
            planned.tasks.append(found)
    work = parse_part(part).of(planned)
    function = functools.partial(verify_stored, options=ReadOptions(max_pixels))
    outcomes = run_plan(work, function, workers, prepare_process, Limits(timeout), run=runner(ray, workers))
    totals = finish(work, keeper.receive(outcomes) if keeper else outcomes, "verified", report, strict)
    if not totals.counts["done"] and not part:
        raise PlanError(f"nothing to verify in {', '.join(paths)}")


def _verify_catalogues(paths: list[str], threads: int | None) -> None:
    failed = False
    for path in paths:
        try:
            problems = catalogues.compare(path, threads)
        except StorageError as error:
            raise surrender_to_outage(error) from error
        for problem in problems[:_SHOWN]:
            console.print(printable(problem))
        if len(problems) > _SHOWN:
            console.print("…")
        result = (
            f"{counted(len(problems), 'difference')}: make it anew with dali-l3 index" if problems else "fits its files"
        )
        console.print(printable(f"{path}: {result}"))
        failed |= bool(problems)
    if failed:
        raise typer.Exit(EXIT_FAILED)
