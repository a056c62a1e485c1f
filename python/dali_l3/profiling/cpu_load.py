"""The time that CPUs are busy, whoever uses them."""

from __future__ import annotations

import os
from collections.abc import Collection


def busy_seconds() -> float:
    """Seconds that the CPUs which this process may use have been busy so far, all together."""
    with open("/proc/stat") as file:
        return busy_ticks(file.read(), os.sched_getaffinity(0)) / os.sysconf("SC_CLK_TCK")


def busy_ticks(stat: str, cpus: Collection[int]) -> int:
    """The same in ticks, from the text of /proc/stat."""
    ticks = 0
    for name, *fields in map(str.split, stat.splitlines()):
        if name.startswith("cpu") and name != "cpu" and int(name.removeprefix("cpu")) in cpus:  # "cpu" is their sum
            user, nice, system, _idle, _iowait, irq, softirq, steal, *_guests = map(int, fields)
            ticks += user + nice + system + irq + softirq + steal  # user and nice hold the guests' time
    return ticks
