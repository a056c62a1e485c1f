"""Where the native parts are: beside the native module, which an editable install keeps apart from the Python files."""

from __future__ import annotations

from pathlib import Path

from . import _core

FOLDER = Path(_core.__file__).parent
LIBRARY = FOLDER / f"libdali_l3.so.{_core.version()}"
PLUGINS = FOLDER / "plugin"
"""A folder for each version of DALI that there is an adapter for."""
ADAPTER_SOURCE = FOLDER / "adapter_source"
"""Of the adapter, for versions that there is none for; missing in a build without DALI."""
EXTENSIONS = FOLDER / "extension"
"""Holds the extension alone, because nvImageCodec loads every library in there."""
