"""Measures one DALI pipeline in a process of its own, which benchmarks/liquid.py starts.

The job comes as JSON by standard input, the measurements go as JSON to standard output.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from liquid_groups import group

SETTLING = 8  # batches, more than are ever read ahead
READER = "reader"


def run(job: dict[str, Any], disk_bytes: Callable[[], int]) -> dict[str, Any]:
    """Runs a pipeline for some epochs.

    Bytes from disk are counted from standstill to standstill: as much has been read ahead at the end as at the
    beginning. What was read ahead makes the first batches quick, so that these count for nothing else.

    Args:
        job: ``files``, whole batches; ``reader``, the operator's name; ``arguments``, the reader's; ``decode``, whether
            to; ``batch_size``; ``threads``; ``warm_up``, epochs before those measured; ``epochs`` to measure at least;
            ``seconds`` to measure at least.
        disk_bytes: Returns the bytes that this process has read from the disk.

    Returns:
        ``disk_bytes_per_epoch``; without the first SETTLING batches ``images_per_s`` of each epoch,
        ``cpu_ms_per_image``, and of each batch its ``batch_seconds`` and the ``batch_disk_bytes`` read meanwhile;
        ``hit_ratio``, as the reader planned it, null for DALI's.
    """
    pipe = pipeline(job)
    pipe.build()
    epoch = len(job["files"]) // job["batch_size"]
    for _ in range(job["warm_up"] * epoch):
        pipe.run()
    bytes_before = standstill(disk_bytes)
    times, counts, cpu = [time.perf_counter()], [bytes_before], [cpu_seconds()]
    for epochs in itertools.count(1):
        for _ in range(epoch):
            pipe.run()
            times.append(time.perf_counter())
            counts.append(disk_bytes())
            cpu.append(cpu_seconds())
        if epochs >= job["epochs"] and times[-1] - times[0] >= job["seconds"]:
            break
    bytes_after = standstill(disk_bytes)

    borders = [SETTLING, *range(epoch, len(times), epoch)]
    return {
        "images_per_s": [job["batch_size"] * (b - a) / (times[b] - times[a]) for a, b in itertools.pairwise(borders)],
        "cpu_ms_per_image": (cpu[-1] - cpu[SETTLING]) * 1e3 / job["batch_size"] / (len(times) - 1 - SETTLING),
        "disk_bytes_per_epoch": (bytes_after - bytes_before) / epochs,
        "batch_seconds": [b - a for a, b in itertools.pairwise(times[SETTLING:])],
        "batch_disk_bytes": [b - a for a, b in itertools.pairwise(counts[SETTLING:])],
        "hit_ratio": hit_ratio(pipe, job),
    }


def pipeline(job: dict[str, Any]):
    if job["reader"] != "file":
        import dali_l3  # noqa: F401, pipelines of DALI's own parts are measured without it
    from nvidia.dali import fn, pipeline_def

    @pipeline_def(batch_size=job["batch_size"], num_threads=job["threads"], device_id=None)
    def define():
        read = getattr(fn.readers, job["reader"])
        encoded, _ = read(files=job["files"], name=READER, **job["arguments"])
        return fn.decoders.image(encoded) if job["decode"] else encoded

    return define()


def standstill(disk_bytes: Callable[[], int]) -> int:
    """Waits until nothing is read or decoded ahead any more; the bytes read until then."""
    while True:
        bytes_before, cpu_before = disk_bytes(), cpu_seconds()
        time.sleep(0.3)
        if disk_bytes() == bytes_before and cpu_seconds() - cpu_before < 0.02:
            return bytes_before


def cpu_seconds() -> float:
    """CPU time of all threads of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def hit_ratio(pipe, job: dict[str, Any]) -> float | None:
    if job["reader"] == "file":
        return None
    from dali_l3 import reader_stats

    return reader_stats(pipe, READER)["hit_ratio"]


def main() -> None:
    job = json.load(sys.stdin)
    disk_bytes: Callable[[], int] = int
    if job["group"]:
        own = group(*job["group"])
        own.join()  # before DALI is imported, which allocates
        disk_bytes = own.disk_bytes
    # Only the measurements go to standard output; libraries may write to it, too.
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    measured = run(job, disk_bytes)
    with open(output, "w") as stream:
        json.dump(measured, stream)


if __name__ == "__main__":
    main()
