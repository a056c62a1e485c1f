"""The versions of DALI that the package works with: fetches them, and runs the tests of the operators with each.

    python _build/dali_matrix.py folders [NAME …]      fetches DALI; prints a value for CMake's MORE_DALI_DIRS
    python _build/dali_matrix.py nvimgcodec            the oldest nvImageCodec; prints one for NVIMGCODEC_DIR
    python _build/dali_matrix.py test [--short] [NAME …]

A NAME is a version, such as 2.4.0, or with the CUDA that it is for, cuda130-2.4.0; by default CUDA 12. `nightly` is the
newest nightly build, which is fetched each time. Without names, all that pyproject.toml lists: `folders` for CUDA 12,
whose builds have the same headers and symbols, and `test` for both.

Each gets a folder of its own under build/dali, into which pip installs it with all that it needs. The interpreter that
runs this has the package and the tools of the tests; that folder goes before its own packages.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "dali"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["dali-l3"]
TESTS = ["tests/python/dali", "tests/gpu"]
SHORT = ["test_decoder_windows", "test_multi_format_reader", "test_nvimgcodec", "test_plugin_loading"]

# Loads the adapter, compiling it if the package has none, and says what was loaded.
VERSIONS = """
from importlib import metadata
import nvidia.dali, dali_l3
codec = next(d for d in metadata.distributions() if d.name.startswith("nvidia-nvimgcodec-cu")).version
print(nvidia.dali.__version__, codec)
"""


def fetch(name: str, *requirements: str) -> Path:
    """The folder of an environment, made if need be. One that pip could not fill completely does not stay."""
    folder = FOLDER / name
    if not folder.exists():
        partial = FOLDER / f"{name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", str(partial)]
        if subprocess.run([*command, *requirements], stdout=sys.stderr).returncode:
            sys.exit(f"pip cannot install {requirements[-1]}")
        partial.rename(folder)
    return folder


def fetch_dali(name: str) -> Path:
    cuda, _, version = name.rpartition("-")
    cuda = cuda or "cuda120"
    if version == "nightly":
        shutil.rmtree(FOLDER / f"{cuda}-nightly", ignore_errors=True)
        return fetch(f"{cuda}-nightly", f"nvidia-dali-nightly-{cuda}")
    return fetch(f"{cuda}-{version}", f"nvidia-dali-{cuda}=={version}")


def run_tests(name: str, short: bool, jobs: int) -> dict[str, object]:
    """A row of the table. What pytest prints is kept in build/dali, and shown where a test fails."""
    folder = fetch_dali(name)
    environment = {**os.environ, "PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(FOLDER / "cache")}
    start = time.monotonic()
    command = [sys.executable, "-c", VERSIONS]
    loaded = subprocess.run(command, cwd=FOLDER, env=environment, stdout=subprocess.PIPE, text=True)
    row: dict[str, object] = {"DALI": folder.name, "seconds to load or compile": f"{time.monotonic() - start:.0f}"}
    if loaded.returncode:
        return {**row, "failed": "all"}
    version, codec = loaded.stdout.split()
    if folder.name.endswith("-nightly"):
        row["DALI"] = f"{folder.name} {version}"
    else:
        assert version == folder.name.rpartition("-")[2], f"{folder} holds DALI {version}"
    tests = [f"tests/python/dali/{test}.py" for test in SHORT] if short else TESTS
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "-n", str(jobs), *tests]
    start = time.monotonic()
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    (FOLDER / f"{folder.name}.log").write_text(result.stdout + result.stderr)
    *_, summary = result.stdout.strip().rsplit("\n", 1)
    counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|skipped|error)", summary)}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    if result.returncode:
        print(result.stdout[-20000:], result.stderr, sep="\n", file=sys.stderr)
        failed = failed or "all"
    row |= {"nvImageCodec": codec, "passed": counts.get("passed", 0), "skipped": counts.get("skipped", 0)}
    return {**row, "failed": failed, "seconds of tests": f"{time.monotonic() - start:.0f}"}


def test(names: list[str], short: bool, jobs: int) -> bool:
    """Prints the table; whether all is well."""
    columns = ["DALI", "nvImageCodec", "passed", "skipped", "failed", "seconds of tests", "seconds to load or compile"]
    print("| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |", sep="\n", flush=True)
    good = True
    for name in names:
        row = run_tests(name, short, jobs)
        print("| " + " | ".join(str(row.get(column, "")) for column in columns) + " |", flush=True)
        good &= row["failed"] == 0
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    folders = commands.add_parser("folders")
    commands.add_parser("nvimgcodec")
    testing = commands.add_parser("test")
    testing.add_argument("--short", action="store_true", help="run only the tests that depend most on the version")
    testing.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    for command in (folders, testing):
        command.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    versions = SETTINGS["dali"]
    if arguments.command == "folders":
        print(";".join(str(fetch_dali(name) / "nvidia" / "dali") for name in arguments.names or versions))
    elif arguments.command == "nvimgcodec":
        version = SETTINGS["nvimgcodec"]
        folder = fetch(f"nvimgcodec-{version}", "--no-deps", f"nvidia-nvimgcodec-cu12=={version}")
        print(folder / "nvidia" / "nvimgcodec")
    else:
        names = arguments.names or [f"{cuda}-{version}" for version in versions for cuda in ("cuda120", "cuda130")]
        sys.exit(not test(names, arguments.short, arguments.jobs))


if __name__ == "__main__":
    main()
