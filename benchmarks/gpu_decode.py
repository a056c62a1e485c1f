"""Builds, checks and measures the GPU decoder on the machine at hand.

    python benchmarks/gpu_decode.py

needs a CUDA device, nvcc, CMake, a C++20 compiler and numpy. First it checks every kind of image against the CPU, then
it measures. Where Pillow is installed, PNG is measured on the CPU beside it; where nvCOMP 6 is, its decoders; where
DALI and dali_l3 are, DALI's pipelines; where compute-sanitizer is, the check is repeated under it. What is missing is
left out with a word, and so is what ten minutes leave no time for. A part that fails is reported, and the others go
on. Writes results/gpu_decode-CARD.json, anew after each part. The protocol is described in docs/gpu.md.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpu import make_images
from targets import Target

HERE = Path(__file__).parent
RESULTS = HERE / "results"
Record = dict[str, Any]  # what was measured ("what"), under which conditions, and the figures

MANY = 32  # images in a batch, from which on the targets hold
PROFILES = ("fast", "raw", "paper")
PART_SECONDS = 150  # after which a part counts as hanging


# ---- targets ---------------------------------------------------------------------------------------------------------


def find(records: list[Record], what: str, **conditions: Any) -> list[Record]:
    return [r for r in records if r["what"] == what and all(r.get(key) == value for key, value in conditions.items())]


def targets(records: list[Record]) -> Iterator[Target]:
    """The targets for FHD images: the worst figure over the batches of MANY images and more counts."""
    kernels = [r for r in find(records, "kernel", size="FHD", profile="fast") if r["batch"] >= MANY]
    whole = [r for r in find(records, "end to end", size="FHD", profile="fast") if r["batch"] >= MANY]
    dali = find(records, "dali", size="FHD", decoder="decoders.l3", files="l3")
    for copy in find(records, "device copy"):
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
    for name, figures in (("C interface", whole), ("DALI, decoders.l3(mixed)", dali)):
        if not figures:
            continue
        for copy in find(records, "host to device"):
            rate = min(r["file_bytes_per_s"] for r in figures) / copy["bytes_per_s"]
            yield Target(f"{name}: encoded bytes end to end / copied to the device", rate, 0.8)
        cpu = max(r["cpu_seconds_per_image"] for r in figures)
        yield Target(f"{name}: CPU ms per FHD image", cpu * 1e3, 0.5, at_most=True)


# ---- building --------------------------------------------------------------------------------------------------------


def find_nvcomp() -> Path | None:
    """The folder of nvCOMP 6, as the PyPI package nvidia-libnvcomp-cu13 installs it."""
    if not importable("nvidia.libnvcomp"):
        return None
    folders = map(Path, importlib.util.find_spec("nvidia.libnvcomp").submodule_search_locations or [])
    return next((folder for folder in folders if (folder / "lib64/libnvcomp.so.6").exists()), None)


def importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # a package above it is missing
        return False


def build(folder: Path, nvcomp: Path | None) -> Path:
    """Builds the program with CMake for the card at hand; returns its path. Raises CalledProcessError."""
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


# ---- parts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stage:
    """A process that prints records as JSON, one a line, or the reason why it is left out."""

    name: str
    command: list[str]
    missing: str = ""


def parts(program: Path, images: Path, with_nvcomp: bool) -> Iterator[Stage]:
    """What there is to do, the most important first."""

    def run(name: str, *arguments: str | Path, **options: str) -> Stage:
        return Stage(name, [str(program), *map(str, arguments)], **options)

    def python(name: str, script: str, folder: Path, *packages: str) -> Stage:
        missing = [package for package in packages if not importable(package)]
        reason = f"not installed: {', '.join(missing)} (docs/gpu.md lists the packages)" if missing else ""
        return Stage(name, [sys.executable, str(HERE / "gpu" / script), str(folder)], reason)

    sizes = sorted(make_images.SIZES, key=lambda size: size != "FHD")  # the targets' size first
    check = run("check", "check", images / "HD")
    sanitizer = shutil.which("compute-sanitizer")
    no_sanitizer = "" if sanitizer else "compute-sanitizer, of the CUDA toolkit, is not on the PATH"
    yield check
    yield run("copies", "copies")
    for size in sizes:
        for profile in PROFILES:
            yield run(f"{size}, {profile}", "decode", images / size, profile)
        yield run(f"{size}, published mapping", "published", images / size)
        yield python(f"{size}, DALI", "dali_mixed.py", images / size, "nvidia.dali", "dali_l3", "PIL")
        yield python(f"{size}, PNG on the CPU", "png_on_cpu.py", images / size, "PIL")
        if size == sizes[0]:
            for tool in ("memcheck", "racecheck"):
                command = [str(sanitizer), "--tool", tool, "--error-exitcode", "1", *check.command]
                yield Stage(f"check under {tool}", command, no_sanitizer)
        missing = "" if with_nvcomp else "it is not installed (PyPI: nvidia-libnvcomp-cu13)"
        yield run(f"{size}, nvCOMP", "nvcomp", images / size, missing=missing)


def run_part(part: Stage, seconds: float) -> list[Record]:
    """The records that a part prints; at the end one that tells of its failure, if it fails or takes too long."""
    records: list[Record] = []
    last_words = "no reason given"
    late = threading.Event()
    with subprocess.Popen(part.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:

        def kill() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, kill)
        timer.start()
        for line in map(str.strip, process.stdout):
            if line.startswith('{"what"'):
                records.append(json.loads(line))
                print(f"  {summary(records[-1])}", flush=True)
            elif line:
                last_words = line
                print(f"  {line}", flush=True)
        timer.cancel()
    if late.is_set():
        last_words = f"stopped after {seconds:.0f} s"
    if process.returncode != 0:
        records.append({"what": "failure", "part": part.name, "reason": last_words})
        print(f"  FAILED: {last_words}", flush=True)
    return records


def summary(record: Record) -> str:
    """A record in one line."""
    names = [str(value) for value in record.values() if isinstance(value, str)]
    if "batch" in record:
        names.append(f"batch {record['batch']}")
    if "images" in record:
        names.append(f"{record['images']} images equal the CPU's")
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


# ---- results ---------------------------------------------------------------------------------------------------------


def write_results(device: Record, records: list[Record], folder: Path) -> Path:
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
        "records": [device, *records],
        "targets": [asdict(target) | {"met": target.met} for target in targets(records)],
    }
    slug = re.sub(r"[^a-z0-9]+", "-", device["card"].lower()).strip("-")
    path = folder / f"gpu_decode-{slug}.json"
    folder.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    text = json.dumps(document, indent=1)
    partial.write_text(re.sub(r"\{[^{}]*\}", lambda record: " ".join(record[0].split()), text) + "\n", encoding="utf-8")
    partial.replace(path)
    return path


def prepare(work: Path, nvcomp: Path | None) -> tuple[Path, bool]:
    """Builds the program and makes the images; returns the program's path and whether it holds nvCOMP."""
    if shutil.which("cmake") is None:
        raise SystemExit("CMake is missing: pip install cmake")
    try:
        program = build(work, nvcomp)
    except subprocess.CalledProcessError:
        if nvcomp is None:
            raise SystemExit("the GPU decoder does not compile here") from None
        print("nvCOMP: left out, the program does not compile with it", flush=True)
        return prepare(work, None)
    make_images.write(work / "images")
    return program, nvcomp is not None


def main() -> None:
    parser = argparse.ArgumentParser(description="Build, check and measure the GPU decoder.")
    parser.add_argument(
        "--work", type=Path, default=HERE.parent / "build/gpu_decode", help="folder of build and images"
    )
    parser.add_argument("--nvcomp", type=Path, default=find_nvcomp(), help="folder of nvCOMP 6 (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=10, help="after which no more is measured (%(default)s)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    arguments = parser.parse_args()

    start = time.monotonic()
    print("Building, and making images", flush=True)
    program, with_nvcomp = prepare(arguments.work, arguments.nvcomp)
    device = run_part(Stage("device", [str(program), "device"]), PART_SECONDS)[0]
    if device["what"] == "failure":
        raise SystemExit(f"the device cannot be used: {device['reason']}")

    records: list[Record] = []
    for part in parts(program, arguments.work / "images", with_nvcomp):
        elapsed = time.monotonic() - start
        seconds = min(PART_SECONDS, arguments.minutes * 60 - elapsed)
        missing = part.missing or ("" if seconds > 0 else f"{arguments.minutes:g} minutes are over")
        print(f"[{elapsed:.0f} s] {part.name}" + (f": left out, {missing}" if missing else ""), flush=True)
        if missing:
            records.append({"what": "left out", "part": part.name, "reason": missing})
        else:
            records += run_part(part, seconds)
        path = write_results(device, records, arguments.out)

    for target in targets(records):
        print(f"{'pass' if target.met else 'MISS'}  {target.name}: {target.measured:.3g} (wanted {target.wanted})")
    print(f"Results: {path}, after {time.monotonic() - start:.0f} s")
    if failures := find(records, "failure"):
        raise SystemExit(f"failed: {', '.join(failure['part'] for failure in failures)}")


if __name__ == "__main__":
    main()
