"""Memory: how much of it this program may use, and how much a process does."""

from __future__ import annotations

import os

_PAGE = os.sysconf("SC_PAGE_SIZE")
_CGROUP_FILES = {  # by version: the limit, what is used, and the entry of memory.stat that can be had back at once
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}


def available_memory(proc: str = "/proc", cgroups: str = "/sys/fs/cgroup") -> int:
    """Bytes that this process and those it starts can still take before the machine or a control group runs out.

    Counts what the machine has available, and the room that each control group around this process leaves, of version
    1 and 2.

    proc, cgroups: where these file systems are mounted

    Raises OSError if `proc` is not there.
    """
    room = _meminfo(proc, "MemAvailable")
    for version, folder in _memory_groups(proc, cgroups):
        room = min(room, _room(folder, version, room))
    return max(room, 0)


def total_memory(proc: str = "/proc", cgroups: str = "/sys/fs/cgroup") -> int:
    """Bytes of memory that this process could have: the machine's, or what a control group around it allows.

    Arguments and errors as those of `available_memory`.
    """
    total = _meminfo(proc, "MemTotal")
    for version, folder in _memory_groups(proc, cgroups):
        total = min(total, _limit(folder, version) or total)
    return total


def anonymous_memory(pid: int) -> int:
    """Bytes that a process holds and no file backs, so that mapped files do not count; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            _, resident, shared, *_ = map(int, file.read().split())
    except (OSError, ValueError):
        return 0
    return (resident - shared) * _PAGE


def _meminfo(proc: str, name: str) -> int:
    with open(f"{proc}/meminfo") as file:
        meminfo = dict(line.split(":") for line in file)
    return int(meminfo[name].split()[0]) * 1024


def _memory_groups(proc: str, cgroups: str) -> list[tuple[int, str]]:
    """The folders of the control groups that may limit the memory of this process, with their version.

    In a container the path that the kernel tells may be the host's, of which only the root is mounted.
    """
    groups = []
    try:
        with open(f"{proc}/self/cgroup") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:  # a kernel without control groups
        return []
    for _, controllers, path in lines:
        if controllers == "":
            version, root = 2, cgroups
        elif "memory" in controllers.split(","):
            version, root = 1, os.path.join(cgroups, "memory")
        else:
            continue
        parts = [part for part in path.split("/") if part]
        groups += [(version, os.path.join(root, *parts[:depth])) for depth in range(len(parts) + 1)]
    return groups


def _room(folder: str, version: int, unlimited: int) -> int:
    """Bytes that the control group leaves; `unlimited` if it sets no limit."""
    _, usage_file, reclaimable = _CGROUP_FILES[version]
    limit = _limit(folder, version)
    try:
        with open(os.path.join(folder, usage_file)) as file:
            usage = int(file.read())
        with open(os.path.join(folder, "memory.stat")) as file:
            statistics = dict(line.split() for line in file)
        return unlimited if limit is None else limit - usage + int(statistics.get(reclaimable, 0))
    except (OSError, ValueError):
        return unlimited


def _limit(folder: str, version: int) -> int | None:
    """Bytes that the control group allows; None if it sets no limit."""
    try:
        with open(os.path.join(folder, _CGROUP_FILES[version][0])) as file:
            limit = file.read().strip()
        return None if limit == "max" else int(limit)
    except (OSError, ValueError):
        return None
