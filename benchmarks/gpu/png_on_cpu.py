"""Images per second that all of the machine's CPUs decode from PNG in memory, with Pillow.

    python benchmarks/gpu/png_on_cpu.py FOLDER

reads FOLDER/N.ppm and prints a JSON object. Needs Pillow.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image

SECONDS = 3.0


def encoded(path: Path) -> bytes:
    buffer = io.BytesIO()
    Image.open(path).save(buffer, "PNG", compress_level=6)
    return buffer.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure PNG on the CPU.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    threads = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(threads) as pool:  # Pillow works without the interpreter's lock
        files = list(pool.map(encoded, sorted(folder.glob("*.ppm"))))

        def decode(number: int) -> None:
            Image.open(io.BytesIO(files[number % len(files)])).load()

        start, decoded = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < SECONDS:
            list(pool.map(decode, range(4 * threads)))
            decoded += 4 * threads
    bytes_in = sum(map(len, files)) / len(files)
    record = {"what": "png", "size": folder.name, "threads": threads, "images_per_s": decoded / elapsed}
    print(json.dumps(record | {"bytes_in": bytes_in, "file_bytes_per_s": bytes_in * decoded / elapsed}))


if __name__ == "__main__":
    main()
