"""The registers, shared memory and spills of every kernel on every architecture, as the compiler reports them.

    python csrc/l3/cuda/resources.py [--nvcc NVCC]

compiles the kernels and writes resources.json beside this file. tests/python/project/test_gpu_resources.py holds later
compilers, and changes to the kernels, to it. Needs the standard library, nvcc and c++filt (of GNU binutils).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
REPORT = FOLDER / "resources.json"
ARCHITECTURES = ("75", "80", "86", "89", "90", "100", "120")
FLAGS = ("-std=c++20", "-O3", "--expt-relaxed-constexpr")  # as in CMakeLists.txt
Resources = dict[str, int]

ENTRY = re.compile(
    r"Compiling entry function '(?P<symbol>\w+)' for '\w+'.*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<spill_stores>\d+) bytes spill stores, "
    r"(?P<spill_loads>\d+) bytes spill loads.*?"
    r"Used (?P<registers>\d+) registers(?P<used>[^\n]*)",
    re.DOTALL,
)


class CompilerError(RuntimeError):
    """nvcc failed; the message is what it said."""


def find_nvcc() -> str | None:
    """The path of nvcc: that of the environment variable CUDACXX, the one on the PATH or the one in its usual place."""
    return os.environ.get("CUDACXX") or shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def nvcc_version(nvcc: str) -> str:
    """Such as "13.0.88"."""
    output = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    return re.search(r"V(\d+\.\d+\.\d+)", output)[1]


def kernel_sources() -> list[Path]:
    return sorted(FOLDER.glob("*_kernel.cu"))


def compile_kernels(nvcc: str, source: Path, architecture: str, cubin: Path) -> str:
    """Compiles one source file to a cubin and returns what the compiler reported."""
    command = [nvcc, *FLAGS, f"-arch=sm_{architecture}", "-cubin", "-Xptxas", "-v"]
    command += ["-I", str(FOLDER.parent / "include"), "-I", str(FOLDER.parent), str(source), "-o", str(cubin)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise CompilerError(f"{source.name} for sm_{architecture}:\n{result.stderr}")
    return result.stdout + result.stderr


def parse_report(text: str) -> dict[str, Resources]:
    """From ptxas's report: for each kernel its registers a thread and its bytes of shared memory, stack and spills."""

    def resources(entry: re.Match[str]) -> Resources:
        shared = re.search(r"(\d+) bytes smem", entry["used"])
        names = ("registers", "stack", "spill_stores", "spill_loads")
        return {name: int(entry[name]) for name in names} | {"shared": int(shared[1]) if shared else 0}

    entries = list(ENTRY.finditer(text))
    names = demangle([entry["symbol"] for entry in entries])
    return {name: resources(entry) for name, entry in zip(names, entries, strict=True)}


def demangle(symbols: list[str]) -> list[str]:
    """Kernels' names as in the source, such as decode_fast8<3>: without namespaces, arguments or return type."""
    if not symbols:
        return []
    output = subprocess.run(["c++filt"], input="\n".join(symbols), check=True, capture_output=True, text=True).stdout
    names = []
    for line in output.splitlines():
        name = re.search(r"(\w+)(<[^()]*>)?\((?!anonymous)", line)
        names.append(name[1] + re.sub(r"(\d)u\b", r"\1", name[2] or ""))
    return names


def measure(nvcc: str, architecture: str) -> dict[str, Resources]:
    """The resources of all kernels on one architecture. Raises CompilerError."""
    kernels: dict[str, Resources] = {}
    with tempfile.TemporaryDirectory() as folder:
        for source in kernel_sources():
            kernels |= parse_report(compile_kernels(nvcc, source, architecture, Path(folder) / "kernels.cubin"))
    return dict(sorted(kernels.items()))


def to_json(report: dict) -> str:
    """JSON with the resources of a kernel on one line."""
    return re.sub(r"\{[^{}]*\}", lambda numbers: " ".join(numbers[0].split()), json.dumps(report, indent=1)) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Write resources.json, the compiler's report on the kernels.")
    parser.add_argument("--nvcc", default=find_nvcc(), help="the compiler (default: %(default)s)")
    arguments = parser.parse_args()
    if arguments.nvcc is None:
        parser.error("there is no nvcc on the PATH; name one with --nvcc")
    report = {
        "nvcc": nvcc_version(arguments.nvcc),
        "architectures": {f"sm_{name}": measure(arguments.nvcc, name) for name in ARCHITECTURES},
    }
    partial = REPORT.with_suffix(".partial")
    partial.write_text(to_json(report), encoding="utf-8")
    partial.replace(REPORT)


if __name__ == "__main__":
    main()
