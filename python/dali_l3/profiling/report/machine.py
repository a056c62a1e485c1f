"""The machine and the versions that a report's figures depend on."""

from __future__ import annotations

import platform
from typing import Any

import psutil

from ...version import __version__


def describe() -> dict[str, Any]:
    """The processor's name, bytes of memory, the system, and the versions of Python, DALI and this package."""
    import nvidia.dali

    return {
        "cpu": _cpu_name(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()}",
        "versions": {"python": platform.python_version(), "dali": nvidia.dali.__version__, "dali_l3": __version__},
    }


def _cpu_name() -> str:
    """As the kernel names it; where it does not, as on ARM, the architecture."""
    with open("/proc/cpuinfo") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.machine()
