"""Compiles the adapter to one version of DALI: the one way in which adapters come about.

The build of the package runs this file as a program, before there is a package, for each DALI that it is to work with;
the package itself calls it for a DALI that it brings no adapter for. It needs a C++20 compiler and the headers of the
CUDA runtime, which those of DALI include; the adapter links with no CUDA library.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

OLDEST = (1, 53)
"""The first version of DALI for which the adapter compiles; wheels before it have another C++ ABI."""

NAME = "libdali_l3_dali.so"
LIBRARIES = ("libdali.so", "libdali_core.so", "libdali_operators.so")
"""Of DALI, that the adapter links with."""

_OPTIONS = (
    "-std=c++20 -O3 -DNDEBUG -fPIC -shared -fvisibility=hidden -fvisibility-inlines-hidden "
    "-Wall -Wextra -Wno-free-nonheap-object "  # a false alarm in DALI's headers
    "-Wl,--no-undefined -Wl,--allow-shlib-undefined"
)
_LIBRARY_IN_PACKAGE = "$ORIGIN/../.."  # seen from plugin/VERSION
_COMPILERS = ("c++", "g++", "clang++")
_CUDA_HEADERS = ("cuda_runtime.h", "crt/host_config.h", "nv/target")
_CUDA_PACKAGES = "nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl"


class BuildError(Exception):
    """The adapter cannot be compiled here; the message says why, and what to do."""


def dali_version(dali: Path) -> str:
    """The version of the DALI in a folder ``nvidia/dali``, which is not imported."""
    try:
        found = re.search(r"^__version__ = '(.+)'", (dali / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError as error:
        raise BuildError(f"{dali} holds no DALI: {error.strerror}") from error
    if not found:
        raise BuildError(f"{dali}/__init__.py does not tell the version of DALI")
    return found[1]


def check(dali: Path) -> None:
    """Raises BuildError unless an adapter can be built against the DALI in a folder ``nvidia/dali``."""
    version = dali_version(dali)
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST:
        raise BuildError(f"DALI {version} is too old: dali_l3 works with DALI {'.'.join(map(str, OLDEST))} and later")
    for part in ("include", *LIBRARIES):
        if not (dali / part).exists():
            raise BuildError(f"{dali} has no {part}")


def find_compiler() -> list[str]:
    """The command of the C++ compiler: that of the variable CXX, options included, or the first on the path."""
    named = os.environ.get("CXX", "").strip()
    command = [named] if shutil.which(named) else _words("CXX")  # a path may have spaces
    command = command or [next(filter(shutil.which, _COMPILERS), "")]
    if not shutil.which(command[0]):
        problem = f"CXX names {command[0]}, which is not there" if command[0] else "there is no C++ compiler"
        raise BuildError(f"{problem}. Install g++ 12 or later, or set the variable CXX to a compiler")
    return command


def _words(variable: str) -> list[str]:
    """Those of a variable of the environment, as a shell splits them."""
    value = os.environ.get(variable, "")
    try:
        return shlex.split(value)
    except ValueError as error:
        raise BuildError(f"the variable {variable} is {value!r}: {error}") from None


def find_cuda_headers() -> list[Path]:
    """The folders that hold the headers of the CUDA runtime, of a toolkit or of NVIDIA's packages on PyPI."""
    toolkits = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME")]
    if nvcc := shutil.which("nvcc"):
        toolkits.append(str(Path(nvcc).resolve().parent.parent))
    folders = [Path(toolkit) for toolkit in toolkits if toolkit]
    folders += [Path("/usr/local/cuda"), *sorted(Path("/usr/local").glob("cuda-*"), reverse=True)]
    choices = [[folder / "include"] for folder in folders]
    for parts in (["cu13"], ["cuda_runtime", "cuda_nvcc", "cuda_cccl"]):  # the second of CUDA 12
        choices.append([Path(place, "nvidia", part, "include") for place in sys.path for part in parts])
    for choice in choices:
        if all(any(os.path.exists(folder / header) for folder in choice) for header in _CUDA_HEADERS):
            return [folder for folder in choice if os.path.isdir(folder)]
    raise BuildError(
        "DALI's headers need those of the CUDA runtime, which are not there. "
        f"Install a CUDA toolkit, or run: pip install {_CUDA_PACKAGES}"
    )


def compile_adapter(
    dali: Path,
    source: Path,
    library: Path,
    output: Path,
    cuda_headers: Sequence[Path] | None = None,
    dependencies: Path | None = None,
    rpath: str | None = None,
) -> None:
    """Compiles and links the adapter to one DALI; a file named `output` appears only if it succeeds.

    Args:
        dali: The folder ``nvidia/dali``, with headers and libraries.
        source: The folder csrc of the repository, or its copy in the package.
        library: libdali_l3.so of the package.
        output: The file to write, in a folder that exists.
        cuda_headers: Folders with the headers of the CUDA runtime; None: they are looked for.
        dependencies: A file to write that tells a build tool the files that the adapter follows from.
        rpath: Where the adapter looks for the library; None: it works where the library has been loaded before.

    Raises:
        BuildError: With the reason, which for errors of the compiler is what it printed.
    """
    check(dali)
    includes = [source / "dali", source, source / "loader", source / "l3" / "include"]
    system = [dali / "include", *(find_cuda_headers() if cuda_headers is None else cuda_headers)]
    partial = output.with_name(f"{output.name}.{os.getpid()}.partial")
    command = [*find_compiler(), *_OPTIONS.split(), *_words("CXXFLAGS")]
    command.append(f"-fmacro-prefix-map={source / 'dali'}/=dali_l3/")  # DALI puts the place in front of warnings
    command += [f"-I{folder}" for folder in includes]
    command += [part for folder in system for part in ("-isystem", str(folder))]
    if dependencies:
        command += ["-MD", "-MF", str(dependencies), "-MT", str(output)]
    command += [str(source / "dali" / "adapter.cc"), "-o", str(partial), str(library)]
    command += [str(dali / name) for name in LIBRARIES]
    if rpath:
        command.append(f"-Wl,-rpath,{rpath}")
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        if result.returncode:
            raise BuildError(f"the compiler failed ({shlex.join(command)}):\n{result.stdout[-4000:].strip()}")
        if result.stdout:
            print(result.stdout, file=sys.stderr)
        partial.replace(output)
    except OSError as error:
        raise BuildError(f"{error.filename or command[0]}: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compiles the adapter to one version of DALI.")
    parser.add_argument("--dali", type=Path, required=True, help="the folder nvidia/dali of a DALI")
    parser.add_argument("--source", type=Path, required=True, help="the folder csrc")
    parser.add_argument("--library", type=Path, required=True, help="libdali_l3.so")
    parser.add_argument("--cuda-headers", type=Path, action="append", help="a folder with headers of the CUDA runtime")
    parser.add_argument("--dependencies", type=Path, help="a file to write for the build tool")
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    try:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        compile_adapter(**vars(arguments), rpath=_LIBRARY_IN_PACKAGE)
    except BuildError as error:
        sys.exit(f"{Path(__file__).name}: {error}")


if __name__ == "__main__":
    main()
