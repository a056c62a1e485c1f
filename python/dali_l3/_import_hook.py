"""Runs a function as soon as some module has been imported, without importing that module."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast


def when_imported(name: str, callback: Callable[[], object]) -> None:
    """Calls `callback` at once where module `name` has been imported, and otherwise right after its first import.

    An exception that `callback` raises leaves the import statement that led to it. `callback` is called
    again when the module is reloaded, and must allow that.
    """
    sys.meta_path.insert(0, _Finder(name, callback))
    if name in sys.modules:
        importlib.import_module(name)  # where another thread is importing it just now, this waits for the end
        callback()


class _Finder:
    """Finds one module as the finders after it do, and hooks its loader.

    It is never removed from the path, which other threads may be walking.
    """

    def __init__(self, name: str, callback: Callable[[], object]) -> None:
        self._name = name
        self._callback = callback

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        # Nobody follows where this finder has been taken off the path; the search goes on without it then.
        followers = itertools.dropwhile(lambda finder: finder is not self, tuple(sys.meta_path))
        for finder in followers:
            find_spec = getattr(finder, "find_spec", None)  # which ancient finders lack
            if finder is self or find_spec is None:
                continue
            spec: ModuleSpec | None = find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = cast(Loader, _Loader(spec.loader, self._callback))
                return spec
        return None


class _Loader:
    """The module's own loader, followed by the callback."""

    def __init__(self, loader: Any, callback: Callable[[], object]) -> None:
        self._loader = loader
        self._callback = callback

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        # The module shall look as if nobody had been here.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._callback()
