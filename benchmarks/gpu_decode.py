"""Builds, checks and measures the GPU decoder on the machine at hand.

    python benchmarks/gpu_decode.py

needs a CUDA device, nvcc, CMake, a C++20 compiler and numpy, and takes less than ten minutes. Where Pillow is
installed, PNG is measured on the CPU beside it; where nvCOMP 6 is, its decoders; where DALI and dali_l3 are, DALI's
pipelines. What is missing is left out with a word. Writes results/gpu_decode-CARD.json. The protocol is described in
docs/gpu.md.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpu import make_images

HERE = Path(__file__).parent
RESULTS = HERE / "results"
Record = dict[str, Any]  # what was measured ("what"), under which conditions, and the figures

MANY = 32  # images in a batch, from which on the targets hold
PNG_SECONDS = 5  # how long to decode PNG


# ---- targets ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """A figure that was measured and the one that it should reach."""

    name: str
    measured: float
    limit: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.measured <= self.limit if self.at_most else self.measured >= self.limit

    def __str__(self) -> str:
        sign, verdict = "<=" if self.at_most else ">=", "pass" if self.met else "MISS"
        return f"  {verdict}  {self.name}: {self.measured:.3g} (wanted {sign} {self.limit:g})"


def find(records: list[Record], what: str, **conditions: Any) -> list[Record]:
    return [r for r in records if r["what"] == what and all(r.get(key) == value for key, value in conditions.items())]


def targets(records: list[Record]) -> Iterator[Target]:
    """The targets for FHD images: the worst figure over the batches of MANY images and more counts."""
    (copy,) = find(records, "device copy")
    (host_copy,) = find(records, "host to device")
    kernels = [r for r in find(records, "kernel", size="FHD", profile="fast") if r["batch"] >= MANY]
    whole = [r for r in find(records, "end to end", size="FHD", profile="fast") if r["batch"] >= MANY]
    if kernels:
        bandwidth = min((r["bytes_in"] + r["bytes_out"]) / r["seconds"] for r in kernels)
        yield Target("fast kernel, bytes in and out / device copy", bandwidth / copy["bytes_per_s"], 0.4)
    for published in find(records, "published", size="FHD"):
        if kernels:
            pixels_per_s = min(r["bytes_out"] / r["seconds"] for r in kernels)
            ratio = pixels_per_s / (published["bytes_out"] / published["kernel_seconds"])
            yield Target("fast kernel / published mapping's kernel", ratio, 5)
        if whole:
            image_bytes = kernels[0]["bytes_out"] / kernels[0]["batch"]
            pixels_per_s = min(r["images_per_s"] for r in whole) * image_bytes
            ratio = pixels_per_s / (published["bytes_out"] / published["seconds"])
            yield Target("end to end / published mapping with its allocations and copies", ratio, 20)
    for name, figures in (("C interface", whole), ("DALI, decoders.l3(mixed)", dali_at_best(records))):
        if figures:
            rate = min(r["file_bytes_per_s"] for r in figures) / host_copy["bytes_per_s"]
            yield Target(f"{name}: encoded bytes end to end / copied to the device", rate, 0.8)
            cpu = max(r["cpu_seconds_per_image"] for r in figures)
            yield Target(f"{name}: CPU ms per FHD image", cpu * 1e3, 0.5, at_most=True)


def dali_at_best(records: list[Record]) -> list[Record]:
    return find(records, "dali", size="FHD", decoder="decoders.l3", files="l3")


# ---- building and running --------------------------------------------------------------------------------------------


def find_nvcomp() -> Path | None:
    """The folder of nvCOMP 6, as the PyPI package nvidia-libnvcomp-cu13 installs it."""
    try:
        spec = importlib.util.find_spec("nvidia.libnvcomp")
    except ModuleNotFoundError:
        return None
    folders = map(Path, spec.submodule_search_locations or []) if spec else []
    return next((folder for folder in folders if (folder / "lib64/libnvcomp.so.6").exists()), None)


def build(folder: Path, nvcomp: Path | None) -> Path:
    """Builds the program with CMake for the card at hand; returns its path."""
    if shutil.which("cmake") is None:
        raise SystemExit("CMake is missing: pip install cmake")
    configure = ["cmake", "-S", str(HERE / "gpu"), "-B", str(folder), f"-DNVCOMP_DIR={nvcomp or ''}"]
    configure.append(f"-DCMAKE_CUDA_ARCHITECTURES={query_card('compute_cap').replace('.', '')}")
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(folder), "--parallel", str(os.cpu_count())], check=True)
    return folder / "gpu_decode"


def query_card(field: str) -> str:
    """A field of nvidia-smi about the first card."""
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader", "--id=0"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"There is no CUDA device to measure: nvidia-smi fails ({error})") from None


def run_program(program: Path, images: Path, seconds: float) -> list[Record]:
    """Runs the program and returns what it measured; prints the lines as they come."""
    records = []
    with subprocess.Popen([program, images, "--seconds", str(seconds)], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            records.append(json.loads(line))
            print(summary(records[-1]), flush=True)
    if process.returncode != 0:
        raise SystemExit("the GPU decoder failed")
    return records


def summary(record: Record) -> str:
    """A record in one line."""
    names = [str(value) for value in record.values() if isinstance(value, str)]
    if "batch" in record:
        names.append(f"batch {record['batch']}")
    figures = []
    if "bytes_out" in record and "seconds" in record:
        figures.append(f"{record['bytes_out'] / record['seconds'] / 1e9:.1f} GB/s out")
        figures.append(f"{(record['bytes_in'] + record['bytes_out']) / record['seconds'] / 1e9:.1f} GB/s in and out")
    figures += [f"{record[key] / 1e9:.1f} GB/s" for key in ("bytes_per_s", "file_bytes_per_s") if key in record]
    if "images_per_s" in record:
        figures.append(f"{record['images_per_s']:.0f} images/s")
    if "cpu_seconds_per_image" in record:
        figures.append(f"{record['cpu_seconds_per_image'] * 1e3:.2f} CPU ms/image")
    return f"{', '.join(names)}: {', '.join(figures)}" if figures else ", ".join(names)


# ---- PNG on the CPU --------------------------------------------------------------------------------------------------


def measure_png(images: Path, size: str) -> list[Record]:
    """Images per second that all of the machine's CPUs decode from PNG in memory, with Pillow."""
    try:
        from PIL import Image
    except ModuleNotFoundError:
        print("PNG: left out, Pillow is not installed")
        return []
    files = []
    for path in sorted((images / size).glob("*.ppm")):
        buffer = io.BytesIO()
        Image.open(path).save(buffer, "PNG", compress_level=6)
        files.append(buffer.getvalue())

    def decode(number: int) -> None:
        Image.open(io.BytesIO(files[number % len(files)])).load()

    threads = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(threads) as pool:  # Pillow decodes without the interpreter's lock
        start, decoded = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < PNG_SECONDS:
            list(pool.map(decode, range(4 * threads)))
            decoded += 4 * threads
    file_bytes = sum(map(len, files)) / len(files)
    record = {"what": "png", "size": size, "threads": threads, "images_per_s": decoded / elapsed}
    return [record | {"bytes_in": file_bytes, "file_bytes_per_s": file_bytes * decoded / elapsed}]


# ---- DALI ------------------------------------------------------------------------------------------------------------


def measure_dali(images: Path) -> list[Record]:
    """What gpu/dali_mixed.py measures, in a process of its own."""
    missing = [name for name in ("nvidia.dali", "dali_l3", "PIL") if not importable(name)]
    if missing:
        print(f"DALI: left out, not installed: {', '.join(missing)} (docs/gpu.md lists the packages)")
        return []
    command = [sys.executable, str(HERE / "gpu/dali_mixed.py"), str(images)]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        print("DALI: its pipelines failed; what they measured before counts")
    records = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    for record in records:
        print(summary(record))
    return records


def importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


# ---- results ---------------------------------------------------------------------------------------------------------


def write_results(records: list[Record], reached: list[Target], folder: Path) -> Path:
    (device,) = find(records, "device")
    document = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": {
            "card": device["card"],
            "driver": query_card("driver_version"),
            "cuda_runtime": device["cuda_runtime"],
            "cpus": os.cpu_count(),
            "os": f"Linux {platform.release()}",
            "python": platform.python_version(),
        },
        "records": records,
        "targets": [asdict(target) | {"met": target.met} for target in reached],
    }
    slug = re.sub(r"[^a-z0-9]+", "-", device["card"].lower()).strip("-")
    path = folder / f"gpu_decode-{slug}.json"
    folder.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    text = json.dumps(document, indent=1)
    partial.write_text(re.sub(r"\{[^{}]*\}", lambda record: " ".join(record[0].split()), text) + "\n", encoding="utf-8")
    partial.replace(path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="Build, check and measure the GPU decoder.")
    parser.add_argument(
        "--work", type=Path, default=HERE.parent / "build/gpu_decode", help="folder of build and images"
    )
    parser.add_argument("--nvcomp", type=Path, default=find_nvcomp(), help="folder of nvCOMP 6 (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.1, help="least time for each figure")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    arguments = parser.parse_args()

    start = time.perf_counter()
    if arguments.nvcomp is None:
        print("nvCOMP: left out, it is not installed (PyPI: nvidia-libnvcomp-cu13)")
    program = build(arguments.work, arguments.nvcomp)
    images = arguments.work / "images"
    make_images.write(images)
    print(f"Built, and images made, after {time.perf_counter() - start:.0f} s", flush=True)
    records = run_program(program, images, arguments.seconds)
    for size in make_images.SIZES:
        for record in measure_png(images, size):
            records.append(record)
            print(summary(record))
    records += measure_dali(images)
    reached = list(targets(records))
    path = write_results(records, reached, arguments.out)
    print(*map(str, reached), sep="\n")
    print(f"Results: {path}, after {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
