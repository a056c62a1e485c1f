"""Registers the native parts with DALI and nvImageCodec, at no cost to programs that use neither.

The adapter to DALI is loaded when both dali_l3 and nvidia.dali have been imported, whichever comes first: the one for
that very version of DALI (`_adapter.py`). Where there is none, the import that brings the two together fails and says
so.

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

from . import _adapter
from ._import_hook import when_imported
from ._native import ADAPTER_SOURCE, EXTENSIONS

_lock = threading.Lock()
_loaded: Path | None = None


def install() -> None:
    """Makes DALI and nvImageCodec find the native parts of this package, as far as it was built with them."""
    if EXTENSIONS.is_dir():
        _add_extensions()
    if ADAPTER_SOURCE.is_dir():
        when_imported("nvidia.dali", load)


def loaded() -> Path | None:
    """The adapter that DALI has loaded; None before that."""
    return _loaded


def load() -> Path:
    """Loads the adapter into DALI, unless it is loaded already, and returns its path.

    Raises:
        RuntimeError: There is no adapter to this version of DALI, or this package was built without any.
    """
    global _loaded
    import nvidia.dali as dali  # before the lock is taken, since importing DALI leads here

    with _lock:
        if _loaded:
            return _loaded
        if not ADAPTER_SOURCE.is_dir():
            raise RuntimeError("this build of dali_l3 has no DALI operators (it was built with DALI_L3_DALI=OFF)")
        adapter = _adapter.find(dali.__version__, Path(dali.__file__).parent)
        try:
            dali.plugin_manager.load_library(str(adapter))
        except RuntimeError as error:
            raise RuntimeError(
                f"DALI {dali.__version__} refuses {adapter}, which was not built for it. "
                f"Delete it to have it built again, or reinstall dali_l3. {error}"
            ) from None
        _loaded = adapter
    if "nvidia.dali.experimental.dynamic" in sys.modules:
        _warn(
            "nvidia.dali.experimental.dynamic was imported before dali_l3 and does not see its operators: "
            "import dali_l3 first"
        )
    return adapter


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
