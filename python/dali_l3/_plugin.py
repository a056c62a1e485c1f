"""Registers the native parts with DALI and nvImageCodec, at no cost to programs that use neither.

The DALI plugin is loaded when both dali_l3 and nvidia.dali have been imported, whichever comes first. A plugin works
with exactly the DALI it was built against; with another one, the import that brings the two together fails and says so.

nvImageCodec loads its extensions from the folders in an environment variable, which dali_l3 sets while it is imported.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import warnings
from pathlib import Path
from types import FrameType

from . import _core
from ._import_hook import when_imported
from .version import __version__

# Beside the native module, which in an editable install is not where the Python files are.
_NATIVE = Path(_core.__file__).parent
PLUGIN = _NATIVE / "plugin" / "libdali_l3.so"
EXTENSIONS = _NATIVE / "extension"

_lock = threading.Lock()
_loaded = False


def install() -> None:
    """Makes DALI and nvImageCodec find the native parts of this package, as far as it was built with them."""
    if EXTENSIONS.is_dir():
        _add_extensions()
    if PLUGIN.exists():
        when_imported("nvidia.dali", load)


def load() -> None:
    """Loads the plugin into DALI, unless it is loaded already.

    Raises:
        RuntimeError: This package was built without the plugin, or for another version of DALI.
    """
    global _loaded
    import nvidia.dali as dali  # before the lock is taken, since importing DALI leads here

    with _lock:
        if _loaded:
            return
        if not PLUGIN.exists():
            raise RuntimeError("this build of dali_l3 has no DALI operators (it was built with DALI_L3_DALI=OFF)")
        _check_version(dali.__version__, Path(dali.__file__).parent)
        dali.plugin_manager.load_library(str(PLUGIN))
        _loaded = True
    if "nvidia.dali.experimental.dynamic" in sys.modules:
        _warn(
            "nvidia.dali.experimental.dynamic was imported before dali_l3 and does not see its operators: "
            "import dali_l3 first"
        )


def _check_version(version: str, folder: Path) -> None:
    requirement = _dali_requirement()
    if requirement is None:
        return  # the dynamic linker refuses another DALI too, but does not say what to do
    required = requirement.partition("==")[2]
    if version != required:
        raise RuntimeError(
            f"dali_l3 {__version__} was built for DALI {required} and does not work with DALI {version} ({folder}). "
            f"Run: pip install '{requirement}'"
        )


def _dali_requirement() -> str | None:
    """The DALI that pip installs beside this package; None without the distribution's metadata, as in some bundles."""
    from importlib import metadata  # which is slow to import, and only needed beside DALI

    try:
        requirements = metadata.requires("dali-l3") or []
    except metadata.PackageNotFoundError:
        return None
    return next((requirement for requirement in requirements if requirement.startswith("nvidia-dali")), None)


def _add_extensions() -> None:
    default = _default_extensions()
    if default is None:
        return
    folders = os.environ.get("NVIMGCODEC_EXTENSIONS_PATH") or str(default)
    if str(EXTENSIONS) in folders.split(os.pathsep):
        return
    os.environ["NVIMGCODEC_EXTENSIONS_PATH"] = f"{folders}{os.pathsep}{EXTENSIONS}"
    if "nvidia.nvimgcodec" in sys.modules:
        _warn(
            "nvidia.nvimgcodec was imported before dali_l3 and will not handle .l3 files (DALI's decoders do): "
            "import dali_l3 first"
        )


def _warn(message: str) -> None:
    """Warns of the line outside of this package that led here, such as the program's ``import dali_l3``."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level += 1
        frame = frame.f_back
    warnings.warn(message, stacklevel=level)  # which passes over the frames of the import system by itself


def _default_extensions() -> Path | None:
    """The folder that nvImageCodec uses when the variable is not set; None where nvImageCodec is not installed."""
    try:
        spec = importlib.util.find_spec("nvidia.nvimgcodec")
    except ModuleNotFoundError:  # not even the namespace package
        return None
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).with_name("extensions")
