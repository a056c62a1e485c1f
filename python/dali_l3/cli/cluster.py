"""`--ray [ADDRESS]`: the work is done on a Ray cluster."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Annotated

import typer

from ..jobs.cluster import AUTO, run_tasks_on_cluster
from ..jobs.outcomes import Outcomes
from ..jobs.planning import PlanError

RayOption = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Do the work on a Ray cluster: that at ADDRESS (HOST:PORT) or, without one, of $RAY_ADDRESS or this "
        "machine. All its machines need this package, and to reach the files by the same paths.",
    ),
]

_ADDRESS = re.compile(r"auto|(ray://)?[\w.-]+:\d+|(ray://)?\[[0-9A-Fa-f:]+\]:\d+")


def with_addresses(arguments: list[str]) -> list[str]:
    """The arguments of the program, where every --ray has an address; what does not look like one belongs to others."""
    complete = []
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        complete.append(argument)
        if argument == "--ray" and not _ADDRESS.fullmatch(following):
            complete.append(AUTO)
    return complete


def runner(ray: str | None, workers: int | None) -> Callable[..., Outcomes] | None:
    """What runs the tasks of a plan on the cluster at the address `ray`; None: they are run here."""
    check_workers(ray, workers)
    return functools.partial(run_tasks_on_cluster, ray) if ray else None


def check_workers(ray: str | None, workers: int | None) -> None:
    """Raises PlanError if processes of this machine are asked for where the cluster does the work."""
    if ray and workers:
        raise PlanError("--workers counts processes of this machine; with --ray, each CPU of the cluster has a task")
