"""The command `dali-l3 index`."""

from __future__ import annotations

import functools
from typing import Annotated

import typer

from ..conversion.indexing import index_archive, plan_indexing
from ..jobs.running import run_plan
from .cluster import RayOption, runner
from .common import ReportFile, Workers, finish
from .parts import PartOption, parse_part


def index(
    shards: Annotated[
        list[str],
        typer.Argument(
            metavar="SHARD...",
            help="Tar archives: paths, patterns, ranges such as 'train-{000..015}.tar', or text files (*.txt) that "
            "list these.",
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="DIR", help="Write the indices to DIR, not beside the shards."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Write every index again and replace any file of its name.")
    ] = False,
    workers: Workers = None,
    part: PartOption = None,
    ray: RayOption = None,
    report: ReportFile = None,
) -> None:
    """Index tar archives with samples, the shards of webdataset, for readers.

    Writes for each archive, such as train-000.tar, which samples it holds and where: train-000.idx. The readers of
    dali_l3 do this by themselves where an index is missing; fn.readers.webdataset reads these files too. An index that
    still fits its archive is kept.

    Exits with 1 if an archive is compressed, damaged or cut off, or cannot be read.

    Examples:

    \b
    dali-l3 index train-*.tar
    dali-l3 index 'shards/train-{0000..1023}.tar' --output indices/
    """
    work = parse_part(part).of(plan_indexing(shards, output))
    function = functools.partial(index_archive, overwrite=overwrite)
    finish(work, run_plan(work, function, workers, run=runner(ray, workers)), "indexed", report)
