"""Measures one DALI pipeline in a process of its own, which benchmarks/liquid.py starts.

The job comes as JSON by standard input, the measurements go as JSON to standard output.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from reading.groups import group

READER = "reader"
COUNTED_SECONDS = 15  # in which files are drawn anew often enough for what is read to be near its mean


def run(job: dict[str, Any], disk_bytes: Callable[[], int]) -> dict[str, Any]:
    """Runs a pipeline for some epochs.

    Bytes from disk are counted from standstill to standstill: as much has been read ahead at the end as at the
    beginning. That is done after all else, since what was read ahead would make batches quick for epochs.

    Args:
        job: ``files``, whole batches; ``reader``, the operator's name; ``arguments``, the reader's; ``decode``, whether
            to; ``batch_size``; ``threads``; ``warm_up``, epochs before those measured; ``epochs`` to measure at least;
            ``seconds`` to measure at least; ``count_bytes``, whether to count bytes from disk in some more epochs.
        disk_bytes: Returns the bytes that this process has read from the disk.

    Returns:
        ``images_per_s`` of each epoch, ``cpu_ms_per_image``, and of each batch its ``batch_seconds`` and the
        ``batch_disk_bytes`` read meanwhile; ``disk_bytes_per_epoch`` of those counted, null without;
        ``hit_ratio``, as the reader planned it, and ``batch_planned_bytes``, which it read from disk for each batch of
        the epochs measured and of those before, the latest last; both null for DALI's.
    """
    pipe = pipeline(job)
    pipe.build()
    epoch = len(job["files"]) // job["batch_size"]
    run_epochs(pipe, epoch, job["warm_up"])
    times, counts, cpu = [time.perf_counter()], [disk_bytes()], time.process_time()
    while len(times) <= job["epochs"] * epoch or times[-1] - times[0] < job["seconds"]:
        for _ in range(epoch):
            pipe.run()
            times.append(time.perf_counter())
            counts.append(disk_bytes())
    cpu = time.process_time() - cpu

    return {
        "images_per_s": [len(job["files"]) / (b - a) for a, b in itertools.pairwise(times[::epoch])],
        "cpu_ms_per_image": cpu * 1e3 / job["batch_size"] / (len(times) - 1),
        "batch_seconds": [b - a for a, b in itertools.pairwise(times)],
        "batch_disk_bytes": [b - a for a, b in itertools.pairwise(counts)],
        "disk_bytes_per_epoch": count_bytes(pipe, epoch, disk_bytes) if job["count_bytes"] else None,
        **of_reader(pipe, job),
    }


def count_bytes(pipe, epoch: int, disk_bytes: Callable[[], int]) -> float:
    """Bytes from disk per epoch, of `epoch` batches, on average over those of COUNTED_SECONDS."""
    bytes_before, start = standstill(disk_bytes), time.perf_counter()
    epochs = 0
    while time.perf_counter() - start < COUNTED_SECONDS:
        run_epochs(pipe, epoch, 1)
        epochs += 1
    return (standstill(disk_bytes) - bytes_before) / epochs


def run_epochs(pipe, epoch: int, epochs: int) -> None:
    for _ in range(epochs * epoch):
        pipe.run()


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
        bytes_before, cpu_before = disk_bytes(), time.process_time()
        time.sleep(0.3)
        if disk_bytes() == bytes_before and time.process_time() - cpu_before < 0.02:
            return bytes_before


def of_reader(pipe, job: dict[str, Any]) -> dict[str, Any]:
    """What the reader itself counts."""
    if job["reader"] == "file":
        return {"hit_ratio": None, "batch_planned_bytes": None}
    from dali_l3 import reader_stats

    stats = reader_stats(pipe, READER)
    later = [batch["bytes_read"] for batch in stats["batches"] if batch["epoch"] > 0]
    return {"hit_ratio": stats["hit_ratio"], "batch_planned_bytes": later}


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
