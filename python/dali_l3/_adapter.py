"""The adapter to the DALI that is there: one of those in the package, or one that is compiled once and then kept.

DALI's symbols carry its version, so an adapter works with the very version that it was built against, and the linker
refuses any other.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import _adapter_build, _native
from ._adapter_build import NAME, BuildError
from .version import __version__


def packaged() -> dict[str, Path]:
    """The adapters in the package, by the version of DALI."""
    return {path.parent.name: path for path in sorted(_native.PLUGINS.glob(f"*/{NAME}"))}


def find(version: str, dali: Path) -> Path:
    """The adapter to a version of DALI, compiled if need be, which takes some 15 seconds.

    Args:
        version: ``nvidia.dali.__version__``
        dali: The folder of ``nvidia.dali``.

    Raises:
        RuntimeError: There is none, and it cannot be compiled here.
    """
    try:
        adapter = locate(version, dali)
        return adapter if os.path.exists(adapter) else _compiled(version, dali, adapter)
    except BuildError as error:
        choices = sorted(packaged(), key=_by_number)
        cure = f" Or install one of those: pip install '{_package(dali)}=={choices[-1]}'" if choices else ""
        raise RuntimeError(
            f"dali_l3 {__version__} has adapters to DALI {', '.join(choices) or '(none)'}, but DALI here is {version} "
            f"({dali}), and compiling an adapter to it failed: {error}.{cure}"
        ) from None


def locate(version: str, dali: Path) -> Path:
    """Where the adapter to a version of DALI is, or will be once it is compiled.

    `os.path.exists` tells which; `Path.exists` raises an error where it may not look.

    Raises:
        BuildError: None can be compiled.
    """
    if adapter := packaged().get(version):
        return adapter
    _adapter_build.check(dali)
    return cache_folder() / f"{version}-{_digest(dali)}" / NAME


def cache_folder() -> Path:
    """Where compiled adapters are kept: ``$XDG_CACHE_HOME/dali_l3``, by default ``~/.cache/dali_l3``."""
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache, "dali_l3")
    try:
        return Path.home() / ".cache" / "dali_l3"
    except RuntimeError:  # a user whom the system does not know, in a container say
        return Path("/nonexistent/.cache/dali_l3")  # as Debian calls it: a temporary folder will take its place


def _compiled(version: str, dali: Path, adapter: Path) -> Path:
    folder = adapter.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / "lock"):
            if not adapter.exists():  # or another process has compiled it meanwhile
                _compile(version, dali, adapter)
        return adapter
    except OSError as error:
        problem = f"{error.filename or folder}: {error.strerror}"
        cure = "let the variable XDG_CACHE_HOME name a folder that can be written to"
        try:
            temporary = Path(tempfile.mkdtemp(prefix="dali_l3-"))
        except OSError as second:
            raise BuildError(f"{problem}; {second}. There is no place for it: {cure}") from None
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        _say(f"{problem}. The adapter will last as long as this process; to keep it, {cure}")
        _compile(version, dali, temporary / NAME)
        return temporary / NAME


def _compile(version: str, dali: Path, adapter: Path) -> None:
    """Without an rpath: environments share what is kept, and this process has loaded the library of its own."""
    _say(f"compiling the adapter to DALI {version}, which takes some 15 seconds, into {adapter.parent}")
    _adapter_build.compile_adapter(dali, _native.ADAPTER_SOURCE, _native.LIBRARY, adapter)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keeps other processes waiting, where the file system has locks; without, several compile the same."""
    with path.open("w") as lock:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _digest(dali: Path) -> str:
    """Of all that an adapter follows from: its sources, the program that compiles it, and DALI's build."""
    digest = hashlib.sha256()
    sources = (path for path in _native.ADAPTER_SOURCE.rglob("*") if path.is_file())
    for path in (Path(_adapter_build.__file__), *sorted(sources), dali / "__init__.py"):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode())
        digest.update(content)
    for library in _adapter_build.LIBRARIES:
        digest.update(f"{library} {(dali / library).stat().st_size}\n".encode())
    return digest.hexdigest()[:16]


def _package(dali: Path) -> str:
    """The name on PyPI of the DALI in a folder, by the major version of its CUDA."""
    major = re.search(r"^__cuda_version__ = int\('(\d+)", (dali / "__init__.py").read_text(), re.MULTILINE)
    return f"nvidia-dali-cuda{major[1] if major else 12}0"


def _by_number(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def _say(message: str) -> None:
    print(f"dali_l3: {message}", file=sys.stderr)
