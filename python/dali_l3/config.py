"""What a report of a problem needs: versions, where the native parts are, and the machine."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
from pathlib import Path

import numpy as np

from . import _adapter, _native
from ._adapter_build import BuildError, dali_version
from .codec import backend
from .version import __version__


def show_config() -> None:
    """Prints the versions of this package and of what it works with, which parts are in use, and the machine.

    DALI is not imported, and nothing is compiled.
    """
    items = {
        "dali_l3": __version__,
        "library": str(_native.LIBRARY),
        "CPU back end": backend(),
        **_dali(),
        "nvImageCodec": _nvimgcodec(),
        "extension": _extension(),
        "CUDA devices": _devices(),
        "Python": f"{platform.python_version()}, numpy {np.__version__}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}, {' '.join(platform.libc_ver())}",
    }
    width = max(map(len, items))
    for name, value in items.items():
        print(f"{name:{width}}  {value}")


def _dali() -> dict[str, str]:
    adapters = ", ".join(_adapter.packaged()) or "none"
    folder = _folder("nvidia.dali")
    if folder is None:
        return {"DALI": "not installed", "adapters": adapters}
    try:
        version = dali_version(folder)
        adapter = _adapter.locate(version, folder)
        found = str(adapter) if os.path.exists(adapter) else f"none yet; the import of DALI will compile {adapter}"
    except BuildError as error:
        return {"DALI": str(error), "adapters": adapters}
    return {"DALI": f"{version} in {folder}", "adapter": found, "adapters": adapters}


def _nvimgcodec() -> str:
    from importlib import metadata  # which is slow to import

    for package in ("nvidia-nvimgcodec-cu12", "nvidia-nvimgcodec-cu13"):
        try:
            return f"{metadata.version(package)} ({package})"
        except metadata.PackageNotFoundError:
            continue
    return "not installed" if _folder("nvidia.nvimgcodec") is None else "of unknown version"


def _extension() -> str:
    extensions = sorted(_native.EXTENSIONS.glob("*.so"))
    if not extensions:
        return "none (built with DALI_L3_DALI=OFF)"
    searched = os.environ.get("NVIMGCODEC_EXTENSIONS_PATH", "").split(os.pathsep)
    unused = "" if str(_native.EXTENSIONS) in searched else ", which NVIMGCODEC_EXTENSIONS_PATH does not name"
    return f"{extensions[0]}{unused}"


def _devices() -> str:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "none: there is no CUDA driver"
    if code := driver.cuInit(0):
        return f"none: the CUDA driver fails with error {code}"
    version, count = ctypes.c_int(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    driver.cuDeviceGetCount(ctypes.byref(count))
    name = ctypes.create_string_buffer(256)
    names = []
    for device in range(count.value):
        driver.cuDeviceGetName(name, len(name), device)
        names.append(name.value.decode(errors="replace"))
    return f"{', '.join(names)}; driver for CUDA {version.value // 1000}.{version.value % 1000 // 10}"


def _folder(package: str) -> Path | None:
    """Of a package that is installed, which is not imported."""
    try:
        spec = importlib.util.find_spec(package)
    except (ModuleNotFoundError, ValueError):  # its parent is missing, or it has been taken out of sys.modules
        return None
    return Path(spec.origin).parent if spec and spec.origin else None
