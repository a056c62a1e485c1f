"""Counts what the GPU decoder's kernels execute on many kinds of images. Needs no GPU: they run on the CPU (tests/ptx).

    python benchmarks/gpu/counts.py [--photographs FOLDER] [--graphics FOLDER] [WORD ...]

decodes each set of images in one batch, compares the pixels with the CPU decoder's, and prints what the kernels
executed. Without words it also writes the counts to results/gpu_counts.json and the tables of docs/gpu.md, and prints
the targets; with words it counts only sets whose names have one of them. Needs nvcc, nvdisasm (the PyPI package
nvidia-cuda-nvdisasm has it), CMake, and what benchmarks/datasets.py needs. Without folders it takes synthetic
photographs and a logo of scikit-image.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "csrc/l3/cuda")]
import datasets  # noqa: E402
import resources  # noqa: E402
import tables  # noqa: E402
from common import write_results  # noqa: E402
from gpu import make_images, model  # noqa: E402
from gpu.image_sets import FHD, SETS, Images, ImageSet  # noqa: E402
from gpu.machine_code import UNITS, Kernel, compile_ptx, executed  # noqa: E402
from skimage import data  # noqa: E402

import dali_l3  # noqa: E402

DOCUMENT = ROOT / "docs/gpu.md"


@dataclass(frozen=True)
class Machine:
    """What ptxas makes of the kernels for an architecture: their code by symbol, and what they take by name."""

    code: dict[str, Kernel]
    resources: dict[str, resources.Resources]


def build(nvcc: str, folder: Path, jobs: int) -> None:
    """Builds the program that counts."""
    configure = ["cmake", "-S", ROOT / "tests/ptx", "-B", folder, "-DL3_PTX_TARGETS=90"]
    make = ["cmake", "--build", folder, "--target", "decode_counts", "--parallel", str(jobs)]
    for command in (configure, make):
        result = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"CUDACXX": nvcc})
        if result.returncode:
            raise SystemExit(f"{' '.join(map(str, command))} failed:\n{result.stdout}{result.stderr}")


def compile_kernels(nvcc: str, nvdisasm: str, folder: Path) -> dict[str, Machine]:
    """From the PTX that is executed, by architecture."""
    machines = {}
    for architecture in dict.fromkeys(card.architecture for card in model.CARDS):
        machine = machines[architecture] = Machine({}, {})
        for source in resources.kernel_sources():
            code, report = compile_ptx(nvcc, nvdisasm, folder / f"kept/{source.stem}.ptx", architecture)
            machine.code.update(code)
            machine.resources.update(resources.parse_report(report))
    return machines


def count(program: Path, images: Images, image_set: ImageSet, machines: dict[str, Machine]) -> dict[str, Any]:
    """What a batch makes the kernels execute."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.l3" for number in range(len(images))]
        for path, image in zip(paths, images, strict=True):
            path.write_bytes(dali_l3.encode(image, profile=image_set.profile))
        file_bytes = sum(path.stat().st_size for path in paths)
        command = [program, str(image_set.color), str(image_set.sample), *paths]
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if result.returncode:
        raise SystemExit(f"{program} ended with {result.returncode}, for the reason above")
    kernels = json.loads(result.stdout)
    for kernel in kernels:
        basic_blocks = kernel.pop("basic_blocks")
        symbol = kernel["kernel"]
        (name,) = resources.demangle([symbol])
        kernel["kernel"] = name
        kernel["machine"] = {key: by_unit(machine.code[symbol], basic_blocks) for key, machine in machines.items()}
        kernel["resources"] = {key: machine.resources[name] for key, machine in machines.items()}
    return {
        "profile": image_set.profile,
        "converts": image_set.converts,
        "images": len(images),
        "file_bytes": file_bytes,
        "sample_bytes": image_set.output_sample_bytes(images),
        "kernels": kernels,
    }


def by_unit(kernel: Kernel, basic_blocks: list[dict]) -> dict[str, dict[str, int]]:
    """Instructions of warps and lanes for each unit."""
    warps: Counter[str] = Counter()
    lanes: Counter[str] = Counter()
    for one in executed(kernel, basic_blocks):
        warps[one.instruction.unit] += one.warps
        lanes[one.instruction.unit] += one.lanes
    return {unit: {"warps": round(warps[unit]), "lanes": round(lanes[unit])} for unit in UNITS}


def sources(arguments: argparse.Namespace) -> tuple[Images, Images]:
    """Photographs and graphics, of FHD size."""

    def read(folder: Path) -> Images:
        images = list(datasets.read_photos(folder).values())
        return [datasets.enlarge(image, *FHD) for image in images[: arguments.images]]

    photos = (
        [make_images.photograph(*FHD, seed) for seed in range(arguments.images)] if not arguments.photographs else []
    )
    graphics = [datasets.enlarge(data.logo()[..., :3], *FHD)] if not arguments.graphics else []
    return photos or read(arguments.photographs), graphics or read(arguments.graphics)


def main() -> None:
    parser = argparse.ArgumentParser(description="Count what the GPU decoder's kernels execute.")
    parser.add_argument("words", nargs="*", help="of sets' names")
    parser.add_argument("--photographs", type=Path, help="folder of PNG files")
    parser.add_argument("--graphics", type=Path, help="folder of PNG files")
    parser.add_argument("--images", type=int, default=2, help="to take of each folder (default: %(default)s)")
    parser.add_argument("--build", type=Path, default=ROOT / "build/counts", help="folder (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the build (default: %(default)s)")
    parser.add_argument("--nvcc", default=resources.find_nvcc(), help="(default: %(default)s)")
    parser.add_argument("--nvdisasm", default=shutil.which("nvdisasm"), help="(default: %(default)s)")
    arguments = parser.parse_args()
    if arguments.nvcc is None or arguments.nvdisasm is None:
        parser.error("needs nvcc and nvdisasm; name them with --nvcc and --nvdisasm")

    build(arguments.nvcc, arguments.build, arguments.jobs)
    machines = compile_kernels(arguments.nvcc, arguments.nvdisasm, arguments.build)
    photos, graphics = sources(arguments)
    sets = {}
    for name, image_set in SETS.items():
        if arguments.words and not any(word in name for word in arguments.words):
            continue
        print(f"{name} …", file=sys.stderr, flush=True)
        sets[name] = count(arguments.build / "decode_counts", image_set.make(photos, graphics), image_set, machines)
    print(tables.markdown(*model.counts_rows(sets)))
    if arguments.words:
        return
    settings = {
        "nvcc": resources.nvcc_version(arguments.nvcc),
        "photographs": arguments.photographs.name if arguments.photographs else "synthetic",
        "graphics": arguments.graphics.name if arguments.graphics else "scikit-image's logo",
        "images": arguments.images,
    }
    targets = model.targets(sets)
    write_results(model.RESULTS, {"settings": settings, "sets": sets}, targets)
    tables.update(DOCUMENT)


if __name__ == "__main__":
    main()
