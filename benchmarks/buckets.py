"""Readers of objects in a bucket beside plain GETs in as many threads, and the bytes that Liquid asks a bucket for.

    python benchmarks/buckets.py [--folder FOLDER]

writes objects of random bytes to a folder, serves them by the protocol of S3 with an added latency
(reading/object_server.py), measures readers alone, and writes results/buckets.json. Systems take turns, and ratios are
medians over the rounds. The server runs on the same machine: its CPU time comes beside that of what is measured.
"""

from __future__ import annotations

import argparse
import http.client
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psutil
from common import OthersLoad, argument_parser, console, median_ratio, write_results
from nvidia.dali import Pipeline, fn
from reading.object_server import object_server
from rich.table import Table
from targets import Target

import dali_l3.fn

BATCH_SIZE = 8
SIGNATURE = b"\x89PNG\r\n\x1a\n"  # so that Liquid knows a format; nobody decodes them

Run = Callable[[int], float]  # reads so many objects; returns the wall time


def write_objects(bucket: Path, count: int, size: int) -> list[str]:
    """Writes objects to class folders; returns their keys."""
    generator = np.random.default_rng(0)
    keys = [f"data/{number % 4}/{number:05d}.png" for number in range(count)]
    for key in keys:
        path = bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(SIGNATURE + generator.bytes(size - len(SIGNATURE)))
    return keys


def make_pipeline(reader, threads: int, **arguments: Any) -> Pipeline:
    pipe = Pipeline(BATCH_SIZE, threads, None, seed=1)
    with pipe:
        pipe.set_outputs(reader(name="reader", **arguments)[0])
    pipe.build()
    return pipe


def reading_with(pipe: Pipeline) -> Run:
    def run(objects: int) -> float:
        start = time.perf_counter()
        for _ in range(objects // BATCH_SIZE):
            pipe.run()
        return time.perf_counter() - start

    return run


def plain_gets(url: str, keys: list[str], size: int, threads: int) -> Run:
    """A system that gets objects whole, by connections that stay open, to memory that stays."""
    connections = [http.client.HTTPConnection(urlsplit(url).netloc) for _ in range(threads)]
    buffers = [bytearray(size) for _ in range(threads)]

    def run(objects: int) -> float:
        def get(thread: int) -> None:
            for number in range(thread, objects, threads):
                connections[thread].request("GET", f"/bucket/{keys[number % len(keys)]}")
                answer, got = connections[thread].getresponse(), 0
                while count := answer.readinto(memoryview(buffers[thread])[got:]):
                    got += count
                if got != size or answer.read():
                    raise SystemExit("an object of another size")

        start = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(get, range(threads)))
        return time.perf_counter() - start

    return run


def server_seconds(process: int) -> float:
    times = psutil.Process(process).cpu_times()
    return times.user + times.system


def measure(systems: dict[str, Run], server: int, arguments: argparse.Namespace) -> dict[str, Any]:
    lead = 96  # objects before each timed run, more than are ever read ahead
    for run in systems.values():
        run(lead)
    runs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in systems}
    for _ in range(arguments.rounds):
        for name, run in systems.items():
            run(lead)
            before, before_server = time.process_time(), server_seconds(server)
            wall = run(arguments.objects)
            own, of_server = time.process_time() - before, server_seconds(server) - before_server
            runs[name].append((arguments.objects / wall, own / arguments.objects, of_server / arguments.objects))
    return {
        name: {
            "objects_per_s": statistics.median(run[0] for run in of_one),
            "megabytes_per_s": statistics.median(run[0] for run in of_one) * arguments.size / 1e6,
            "cpu_ms_per_object": statistics.median(run[1] for run in of_one) * 1e3,
            "servers_cpu_ms_per_object": statistics.median(run[2] for run in of_one) * 1e3,
            "runs_objects_per_s": [run[0] for run in of_one],
        }
        for name, of_one in runs.items()
    }


def bytes_asked_for(pipe: Pipeline) -> int:
    """When what is read ahead has been read."""
    counts = None
    while counts != (counts := dali_l3.reader_stats(pipe, "reader")["storage"]):
        time.sleep(1)
    return counts["bytes"]


def bytes_of_an_epoch(uri: str, arguments: argparse.Namespace, epochs: int = 4) -> dict[str, float]:
    """What Liquid asks the bucket for, beside (1 - h) D."""
    total = arguments.count * arguments.size
    pipe = make_pipeline(dali_l3.fn.readers.liquid, 2, file_root=uri, cache_size=total // 2)
    run = reading_with(pipe)
    run(2 * arguments.count)
    before = bytes_asked_for(pipe)
    run(epochs * arguments.count)
    asked = (bytes_asked_for(pipe) - before) / epochs
    hit_ratio = dali_l3.reader_stats(pipe, "reader")["hit_ratio"]
    expected = (1 - hit_ratio) * total
    return {"hit_ratio": hit_ratio, "asked": asked, "expected": expected, "ratio": asked / expected}


def show(measured: dict[str, Any], threads: int) -> None:
    table = Table("", "objects/s", "MB/s", "CPU ms an object", "of the server", title=f"{threads} threads")
    for name, figures in measured.items():
        table.add_row(
            name,
            f"{figures['objects_per_s']:.0f}",
            f"{figures['megabytes_per_s']:.0f}",
            f"{figures['cpu_ms_per_object']:.2f}",
            f"{figures['servers_cpu_ms_per_object']:.2f}",
        )
    console.print(table)


def main() -> None:
    parser = argument_parser("Measure readers of buckets.")
    parser.add_argument("--folder", help="where objects are written (default: temporary)")
    parser.add_argument("--count", type=int, default=160, help="objects in the bucket")
    parser.add_argument("--size", type=int, default=2_400_000, help="bytes of an object")
    parser.add_argument("--latency", type=float, default=0.02, help="seconds before each answer")
    parser.add_argument("--threads", type=int, nargs="+", default=[4, 8], help="that read, at once")
    parser.add_argument("--objects", type=int, default=160, help="that a timed run reads")
    parser.add_argument("--rounds", type=int, default=15, help="timed runs of each system")
    arguments = parser.parse_args()

    others = OthersLoad()
    measured: dict[str, Any] = {}
    targets = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        keys = write_objects(Path(folder) / "bucket", arguments.count, arguments.size)
        with object_server(Path(folder), arguments.latency) as (url, server):
            os.environ |= {
                "AWS_ENDPOINT_URL": url,
                "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_EC2_METADATA_DISABLED": "true",
            }
            uri = "s3://bucket/data"
            for threads in arguments.threads:
                ours = make_pipeline(
                    dali_l3.fn.readers.multi_format, 2, file_root=uri, read_threads=threads, random_shuffle=True
                )
                theirs = make_pipeline(fn.readers.file, threads, file_root=uri, random_shuffle=True, initial_fill=64)
                systems = {
                    "plain GETs": plain_gets(url, keys, arguments.size, threads),
                    "multi_format": reading_with(ours),
                    "fn.readers.file": reading_with(theirs),
                }
                of_these = measured[f"{threads} threads"] = measure(systems, server, arguments)
                show(of_these, threads)
                speeds = [of_these[name]["runs_objects_per_s"] for name in ("multi_format", "plain GETs")]
                targets.append(Target(f"beside plain GETs, {threads} threads", median_ratio(*speeds), 0.9))
            epoch = bytes_of_an_epoch(uri, arguments)
    console.print(
        f"Liquid at a hit ratio of {epoch['hit_ratio']:.3f}: {epoch['asked'] / 1e6:.1f} MB asked for an epoch, "
        f"{epoch['expected'] / 1e6:.1f} MB missing"
    )
    targets.append(Target("bytes asked for, off (1 - h) D by", abs(epoch["ratio"] - 1), 0.02, at_most=True))
    document = {
        "settings": {name: value for name, value in vars(arguments).items() if name not in ("folder", "out")},
        "cpu_share_of_other_processes": others.share(),
        "systems": measured,
        "bytes_of_an_epoch": epoch,
    }
    write_results("buckets", document, targets, arguments.out)


if __name__ == "__main__":
    main()
