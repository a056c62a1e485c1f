"""Options of work in units, which `convert` and `export` have. `in_units` does what they ask for."""

from __future__ import annotations

import enum
from typing import Annotated

import typer


class Order(str, enum.Enum):
    """In which order shards have the samples."""

    DRAWN = "drawn"
    SOURCE = "source"


Shards = Annotated[
    str | None,
    typer.Option(
        "--shards",
        metavar="SIZE",
        help="Write tar shards of at most this size, such as 1GiB, with their indices, to DST.",
    ),
]
OrderOption = Annotated[
    Order | None,
    typer.Option("--order", help="Order of samples in shards: drawn, or that of the source.", show_default="drawn"),
]
PlanOnly = Annotated[
    bool, typer.Option("--plan", help="Only list the source and plan units, for --part; write no images.")
]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Do the units again in which samples failed.")]
Status = Annotated[bool, typer.Option("--status", help="Say how far the work for the folder is: --status DST.")]
MergeReports = Annotated[
    bool,
    typer.Option("--merge-reports", help="Write the report of all parts: --merge-reports DST --report FILE."),
]
