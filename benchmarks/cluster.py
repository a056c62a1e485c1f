"""Conversion to shards on two nodes of Ray, with a CPU core each, beside one worker process on this machine.

    python benchmarks/cluster.py

writes JPEG files, converts them to smaller L3 files by the command line, systems taking turns, and writes
results/cluster.json. Planning is done before the clock starts, as it is the same for all; all else counts: starting the
program, connecting, reporting.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
from common import OthersLoad, argument_parser, console, median_ratio, settings_of, write_results
from rich.table import Table
from targets import Target

sys.path.append(str(Path(__file__).parents[1] / "tests/python/support"))
from ray_nodes import two_nodes

SHAPE, DISTINCT = (1200, 1600, 3), 100
OPTIONS = ("--resize-shorter", "256", "--shards", "8MiB")
ONE_CORE, ONE_WORKER, CLUSTER = "one worker, on one core", "one worker", "two Ray nodes of one core"


def write_images(folder: Path, count: int) -> None:
    """Photographs, more or less: gradients with noise. Some are there under many names."""
    folder.mkdir()
    generator = np.random.default_rng(0)
    ramp = np.add.outer(np.linspace(0, 120, SHAPE[0]), np.linspace(0, 120, SHAPE[1]))[..., None]
    for number in range(count):
        path = folder / f"{number:05d}.jpg"
        if number < DISTINCT:
            pixels = np.clip(ramp + generator.normal(0, 4, SHAPE), 0, 255).astype(np.uint8)
            path.write_bytes(imagecodecs.jpeg8_encode(pixels, level=90))
        else:
            path.hardlink_to(folder / f"{number % DISTINCT:05d}.jpg")


def convert(source: Path, target: Path, *options: str, cores: set[int] | None = None) -> float:
    """Seconds that the command takes to do units that are planned."""
    command = [sys.executable, "-m", "dali_l3.cli", "convert", str(source), str(target), *OPTIONS]
    subprocess.run([*command, "--plan"], check=True, capture_output=True)
    allowed = os.sched_getaffinity(0)
    start = time.perf_counter()
    try:
        if cores:
            os.sched_setaffinity(0, cores)  # which the command inherits
        subprocess.run([*command, *options], check=True, capture_output=True)
    finally:
        os.sched_setaffinity(0, allowed)
    return time.perf_counter() - start


def measure(folder: Path, images: int, rounds: int) -> dict[str, Any]:
    write_images(folder / "in", images)
    write_images(folder / "few", DISTINCT)
    first, second = sorted(os.sched_getaffinity(0))[:2]
    seconds: dict[str, list[float]] = {ONE_CORE: [], ONE_WORKER: [], CLUSTER: []}
    with two_nodes((first, second)) as (cluster, _):
        systems: dict[str, dict[str, Any]] = {
            ONE_CORE: {"options": ("--workers", "1"), "cores": {first}},
            ONE_WORKER: {"options": ("--workers", "1")},
            CLUSTER: {"options": ("--ray", cluster.address)},
        }
        for source in [folder / "few"] + rounds * [folder / "in"]:  # the first starts Ray's processes
            for name, system in systems.items():
                taken = convert(source, folder / "out", *system["options"], cores=system.get("cores"))
                if source.name == "in":
                    seconds[name].append(taken)
                shutil.rmtree(folder / "out")
                shutil.rmtree(folder / "out.conversion")
    return {
        name: {"images_per_s": images / statistics.median(taken), "runs_s": taken} for name, taken in seconds.items()
    }


def main() -> None:
    parser = argument_parser("Measure conversion on a Ray cluster.")
    parser.add_argument("--folder", help="where files are written (default: temporary)")
    parser.add_argument("--images", type=int, default=6000, help="of 1600 x 1200; to start takes some seconds")
    parser.add_argument("--rounds", type=int, default=2, help="timed runs of each system")
    arguments = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("needs two CPU cores")

    others = OthersLoad()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        systems = measure(Path(folder), arguments.images, arguments.rounds)
    table = Table("", "images/s", title=f"JPEG files of {SHAPE[1]} x {SHAPE[0]}: {' '.join(OPTIONS)}")
    for name, figures in systems.items():
        table.add_row(name, f"{figures['images_per_s']:.1f}")
    console.print(table)
    targets = [
        Target(f"{CLUSTER} beside {name}", median_ratio(systems[name]["runs_s"], systems[CLUSTER]["runs_s"]), 1.8)
        for name in (ONE_CORE, ONE_WORKER)
    ]
    chosen = settings_of(arguments, "images", "rounds")
    document = {"settings": chosen, "cpu_share_of_other_processes": others.share(), "systems": systems}
    write_results("cluster", document, targets, arguments.out)


if __name__ == "__main__":
    main()
