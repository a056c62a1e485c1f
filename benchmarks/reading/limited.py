"""Calls in processes whose disk is limited."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

from common import console

from reading.groups import Group, group

Result = TypeVar("Result")

GROUPS = itertools.count()  # numbers of control groups


def run_limited(disk: str, bytes_per_s: int | None, function: Callable[..., Result], *arguments: Any) -> Result:
    """Calls a function in a process of its own whose disk, as groups.disk_of returns it, is limited, if at all.

    Raises:
        Unavailable: There are no control groups for disks.
    """
    context = multiprocessing.get_context("spawn")
    if bytes_per_s is None:
        with ProcessPoolExecutor(1, context) as pool:
            return pool.submit(function, *arguments).result()
    own = group(f"dali-l3-limited-{os.getpid()}-{next(GROUPS)}", disk)
    own.create(disk_bytes_per_s=bytes_per_s)
    try:
        with ProcessPoolExecutor(1, context, _join, (own.name, disk)) as pool:
            return pool.submit(function, *arguments).result()
    finally:
        _remove(own)


def _join(name: str, disk: str) -> None:
    group(name, disk).join()


def _remove(own: Group) -> None:
    """Removes the group as soon as it is empty: the processes that made others for it end some time later."""
    for _ in range(100):
        try:
            return own.remove()
        except OSError:
            time.sleep(0.1)
    console.print(f"The control group {own.name} is not empty and stays.")
