"""What the benchmarks share: interleaved timing, a description of the machine, targets and results files."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import io
import json
import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import psutil
from PIL import Image, features
from rich.console import Console
from rich.table import Table
from targets import Target

import dali_l3
from dali_l3.profiling.cpu_load import busy_seconds

RESULTS = Path(__file__).parent / "results"
console = Console()


# ---- measuring -------------------------------------------------------------------------------------------------------


def interleave(functions: dict[str, Callable[[], object]], rounds: int, warm: bool) -> dict[str, list[float]]:
    """CPU seconds of each function in each round. The functions take turns, so that a disturbance hits them alike.

    CPU time, because time on the clock flatters the quick: other processes take the CPU away in the middle of a long
    call. With `warm` each timed call follows an untimed one at once: the function finds its own data in the caches, not
    those of the function before it.
    """
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            if warm:
                function()
            start = time.process_time()
            function()
            seconds[name].append(time.process_time() - start)
    return seconds


def tree_cpu_seconds() -> float:
    """CPU time so far of this process and of all that it has started, running or ended."""
    total = 0.0
    for process in (me := psutil.Process(), *me.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
            total += sum(process.cpu_times()[:4])  # user, system, and both of children that have ended
    return total


class OthersLoad:
    """The share of the CPUs that this process may use which others took since this object was made.

    Others are all but this process and what it started.
    """

    def __init__(self) -> None:
        self._start = self._now()

    def share(self) -> float:
        wall, busy, own = (now - start for now, start in zip(self._now(), self._start, strict=True))
        return max(0.0, busy - own) / (wall * len(os.sched_getaffinity(0)))

    @staticmethod
    def _now() -> tuple[float, float, float]:
        return time.monotonic(), busy_seconds(), tree_cpu_seconds()


def median_ratio(numerators: Iterable[float], denominators: Iterable[float]) -> float:
    """The median of pairwise ratios."""
    return statistics.median(a / b for a, b in zip(numerators, denominators, strict=True))


# ---- encoders --------------------------------------------------------------------------------------------------------


def pillow(name: str, **options: Any) -> Callable[[np.ndarray], bytes]:
    """An encoder to a format that Pillow writes."""

    def encode(image: np.ndarray) -> bytes:
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, name, **options)
        return buffer.getvalue()

    return encode


def png(image: np.ndarray) -> bytes:
    """A PNG file of level 6, the baseline: by Pillow, or, for 16-bit colours, which Pillow cannot write, by libpng."""
    if image.dtype == np.uint16 and image.ndim == 3:
        return imagecodecs.png_encode(image, level=6)
    return pillow("PNG", compress_level=6)(image)


# ---- the command line ------------------------------------------------------------------------------------------------


def argument_parser(description: str) -> argparse.ArgumentParser:
    """A parser that knows --out, the folder for `write_results`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    return parser


def settings_of(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Some of the arguments, for the results."""
    return {name: getattr(arguments, name) for name in names}


# ---- reporting -------------------------------------------------------------------------------------------------------


def _show_targets(targets: Iterable[Target]) -> None:
    table = Table("target", "measured", "wanted", "", title="Targets")
    for target in targets:
        verdict = "[green]met[/]" if target.met else "[red]missed[/]"
        table.add_row(target.name, f"{target.measured:.3g}", target.wanted, verdict)
    console.print(table)


def machine() -> dict[str, Any]:
    """What the figures depend on: processor, operating system, versions."""
    dali = [f"nvidia-dali-{cuda}" for cuda in ("cuda120", "cuda130") if _is_installed(f"nvidia-dali-{cuda}")]
    packages = ("dali-l3", *dali, "numpy", "pillow", "imagecodecs", "scikit-image")
    imagecodecs_parts = ("libpng", "libspng", "libwebp", "libjxl", "openjph", "qoi", "zlib", "zstd")
    built_with = (part.partition("-") for part in imagecodecs.version().split(", "))
    return {
        "cpu": _cpu_model(),
        "cpus": os.cpu_count(),
        "os": f"{platform.freedesktop_os_release()['PRETTY_NAME']}, Linux {platform.release()}",
        "python": platform.python_version(),
        "l3_backend": dali_l3.backend(),
        "packages": {name: importlib.metadata.version(name) for name in packages},
        "pillow_zlib": features.version("zlib") + _zlib_ng(),
        "imagecodecs": {name: version for name, _, version in built_with if name in imagecodecs_parts},
    }


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _cpu_model() -> str:
    """The model as the kernel names it, with family and model number, which tell generations apart."""
    facts = dict.fromkeys(("model name", "cpu family", "model"), "?")
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() in facts:
            facts[key.strip()] = value.strip()
    return f"{facts['model name']} (family {facts['cpu family']}, model {facts['model']})"


def _zlib_ng() -> str:
    version = features.version("zlib_ng")
    return f" (zlib-ng {version})" if version else ""


def write_results(name: str, results: dict[str, Any], targets: Sequence[Target], folder: Path = RESULTS) -> Path:
    """Shows the targets; writes NAME.json with the machine, the date, the results and the targets; returns its path."""
    if targets:
        _show_targets(targets)
    document = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": machine(),
        **results,
        "targets": [asdict(target) | {"met": target.met} for target in targets],
    }
    path = folder / f"{name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(_to_json(document), encoding="utf-8")
    partial.replace(path)
    console.print(f"Results: {path}")
    return path


def _to_json(document: dict[str, Any]) -> str:
    """JSON with four significant digits and with each list of numbers on one line."""

    def rounded(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: rounded(item) for key, item in value.items()}
        if isinstance(value, list):
            return [rounded(item) for item in value]
        return float(f"{value:.4g}") if isinstance(value, float) else value

    text = json.dumps(rounded(document), indent=1)
    return re.sub(r"\[[^][{}]*\]", lambda numbers: " ".join(numbers[0].split()), text) + "\n"
