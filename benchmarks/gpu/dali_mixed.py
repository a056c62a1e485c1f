"""DALI's part of benchmarks/gpu_decode.py: pipelines that decode on the GPU from encoded bytes in host memory.

    python benchmarks/gpu/dali_mixed.py FOLDER

reads FOLDER/N.ppm and prints a JSON object a line. No file is read while the time runs: what is measured is
decoding and what DALI does around it. Needs a CUDA device, Pillow, DALI and dali_l3.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from PIL import Image

import dali_l3

BATCH_SIZE = 32
PREFETCHED = 2  # batches, DALI's default
SECONDS = 2.0
SYSTEMS: dict[str, tuple[str, Callable]] = {  # decoder: files, operator
    "decoders.l3": ("l3", lambda encoded: fn.decoders.l3(encoded, device="mixed")),
    "decoders.image": ("l3", lambda encoded: fn.decoders.image(encoded, device="mixed")),
    "decoders.image of PNG": ("png", lambda encoded: fn.decoders.image(encoded, device="mixed")),
}


@pipeline_def(batch_size=BATCH_SIZE, num_threads=os.cpu_count(), device_id=0, prefetch_queue_depth=PREFETCHED)
def pipeline(batch: list[np.ndarray], decode: Callable):
    encoded = fn.external_source(
        source=itertools.repeat(batch), batch=True, no_copy=True, dtype=types.UINT8, ndim=1, cycle=False
    )
    return decode(encoded)


def encode_png(image: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", compress_level=6)
    return buffer.getvalue()


def run(pipe, batches: int) -> None:
    """Runs a number of batches, keeping as many under way as DALI prefetches; nothing is under way before or after."""
    for scheduled in range(batches + PREFETCHED):
        if scheduled >= PREFETCHED:
            pipe.share_outputs()
            pipe.release_outputs()
        if scheduled < batches:
            pipe.schedule_run()


def seconds_and_cpu() -> tuple[float, float]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), usage.ru_utime + usage.ru_stime


def measure(images: list[np.ndarray], files: list[bytes], decode: Callable) -> dict[str, float]:
    batch = [np.frombuffer(files[i % len(files)], np.uint8).copy() for i in range(BATCH_SIZE)]
    pipe = pipeline(batch, decode)
    (decoded,) = pipe.run()
    decoded = decoded.as_cpu()
    for i in range(BATCH_SIZE):
        if not np.array_equal(decoded.at(i), images[i % len(images)]):
            raise ValueError(f"sample {i} differs from its original")
    timed = pipeline(batch, decode)
    timed.build()
    run(timed, 4)
    start = time.perf_counter()
    run(timed, 4)
    batches = max(8, int(4 * SECONDS / (time.perf_counter() - start)))
    start, cpu_start = seconds_and_cpu()
    run(timed, batches)
    end, cpu_end = seconds_and_cpu()
    count = batches * BATCH_SIZE
    return {
        "images_per_s": count / (end - start),
        "file_bytes_per_s": batches * sum(map(len, batch)) / (end - start),
        "cpu_seconds_per_image": (cpu_end - cpu_start) / count,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure DALI's mixed pipelines.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    images = [np.asarray(Image.open(path)) for path in sorted(folder.glob("*.ppm"))]
    files = {"l3": [dali_l3.encode(image) for image in images], "png": [encode_png(image) for image in images]}
    failures = []
    for name, (kind, decode) in SYSTEMS.items():
        record = {"what": "dali", "size": folder.name, "decoder": name, "files": kind, "batch": BATCH_SIZE}
        try:
            print(json.dumps(record | measure(images, files[kind], decode)), flush=True)
        except (RuntimeError, ValueError) as error:  # of one decoder; the others may do
            failures.append(f"{name}: {error}")
    if failures:
        raise SystemExit("\n".join(failures))


if __name__ == "__main__":
    main()
