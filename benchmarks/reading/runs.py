"""Runs of benchmarks/liquid.py: DALI pipelines, each in a fresh process with limits on its memory and its disk."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import OthersLoad

from dali_l3.profiling.measuring import KEEPING_MEMORY, evict
from reading.groups import group

Figures = dict[str, Any]

BATCH_SIZE = 16
THREADS = 2
SIZING_BATCHES = 12  # more than are ever read ahead
# Bytes: batches in flight more or less, and what else differs from run to run. DALI's readers make page cache of what
# they do not need; the others read past it, so that more is of no use to them.
DALI_SLACK, SLACK = 128 << 20, 384 << 20

DALI, DALI_COPYING, MINIO, LIQUID = "DALI", "DALI, no mmap", "MinIO", "Liquid"
READERS: dict[str, tuple[str, Figures]] = {  # the operator's name, its arguments
    DALI: ("file", {"shuffle_after_epoch": True}),  # of DALI's two ways to shuffle the one that reads less again
    DALI_COPYING: ("file", {"shuffle_after_epoch": True, "dont_use_mmap": True}),
    MINIO: ("liquid", {"policy": "minio"}),
    LIQUID: ("liquid", {"policy": "liquid"}),
}


def run(
    files: list[Path],
    reader: str,
    *,
    cache_size: int = 0,
    decode: bool = True,
    warm_up: int = 1,
    epochs: int = 1,
    seconds: float = 0,
    count_bytes: bool = False,
    disk: str | None = None,
    disk_bytes_per_s: int | None = None,
    memory_bytes: int | None = None,
    seed: int = 0,
    environment: Mapping[str, str] = KEEPING_MEMORY,
) -> Figures:
    """Measures a pipeline.

    Args:
        files: The dataset, of which the last files may be left out, so that batches are whole.
        reader: One of READERS.
        cache_size: Bytes for MinIO and Liquid; DALI's readers do without.
        decode: Whether a decoder follows the reader.
        warm_up: Epochs before those measured.
        epochs: To measure, at least.
        seconds: To measure, at least.
        count_bytes: Whether to count bytes from disk, in some more epochs.
        disk: Where the files are (see groups.disk_of), if memory and bytes from disk are to be measured.
        disk_bytes_per_s: Speed limit of the disk, if any.
        memory_bytes: Limit on the memory of the process, page cache included, if any.
        seed: Of the reader.
        environment: How the C library allocates: by default it keeps memory for images, without which it is chance how
            fast PNG and BMP are decoded.

    Returns:
        What worker.run measures, ``memory_peak_bytes`` (without the page cache; 0 without `disk`) and
        ``cpu_share_of_other_processes``.

    Raises:
        Unavailable: Memory and disk cannot be measured or limited here.
        SystemExit: The process failed.
    """
    operator, arguments = READERS[reader]
    own = group(f"dali-l3-benchmark-{os.getpid()}", disk) if disk else None
    job = {
        "files": [str(path.resolve()) for path in files[: len(files) // BATCH_SIZE * BATCH_SIZE]],
        "reader": operator,
        "arguments": {"seed": seed} | arguments | ({"cache_size": cache_size} if operator == "liquid" else {}),
        "batch_size": BATCH_SIZE,
        "threads": THREADS,
        "decode": decode,
        "warm_up": warm_up,
        "epochs": epochs,
        "seconds": seconds,
        "count_bytes": count_bytes,
        "group": own and (own.name, disk),
    }
    others = OthersLoad()
    if not own:
        measured, peak = _run_process(job, environment, int)
    else:
        own.create(memory_bytes, disk_bytes_per_s)
        try:
            measured, peak = _run_process(job, environment, own.memory_bytes)
        finally:
            own.remove()
    return measured | {"memory_peak_bytes": peak, "cpu_share_of_other_processes": others.share()}


def _run_process(job: Figures, environment: Mapping[str, str], memory_bytes: Callable[[], int]) -> tuple[Figures, int]:
    """What the worker measures, and the peak of its memory."""
    peak = 0
    with tempfile.TemporaryFile("w+") as stdin, tempfile.TemporaryFile("w+") as stdout:
        json.dump(job, stdin)
        stdin.seek(0)
        others = {name: value for name, value in os.environ.items() if name not in KEEPING_MEMORY}
        command = [sys.executable, "-m", "reading.worker"]
        with subprocess.Popen(
            command, stdin=stdin, stdout=stdout, env=others | environment, cwd=Path(__file__).parents[1]
        ) as process:
            while process.poll() is None:
                time.sleep(0.02)
                peak = max(peak, memory_bytes())
        if process.returncode:
            what = f"readers.{job['reader']} {job['arguments']} with {job['files'][0]} and others"
            why = "was killed: too little memory" if process.returncode == -signal.SIGKILL else "failed"
            raise SystemExit(f"{what}: the process {why}")
        stdout.seek(0)
        return json.load(stdout), peak


def variation(seconds: list[float]) -> float:
    """The standard deviation over the mean."""
    return statistics.pstdev(seconds) / statistics.fmean(seconds)


def everything(files: list[Path]) -> int:
    """A cache_size that is enough for all files."""
    return sum(path.stat().st_size + 4096 for path in files)


@dataclass
class Protocol:
    """The same memory and the same disk for all: a process has room for itself and a budget for the dataset."""

    datasets: dict[str, list[Path]]
    disk: str  # as groups.disk_of returns it
    budget: int  # bytes
    environment: Mapping[str, str]  # as `run` takes it
    _sizes: dict[tuple[str, str], int] = field(default_factory=dict)

    def run(self, reader: str, dataset: str, disk_bytes_per_s: int | None, **settings: Any) -> Figures:
        """A run with the memory limited, and with files that are not in the page cache.

        Returns:
            What `run` does, and ``memory_limit_bytes``.
        """
        slack = DALI_SLACK if reader in (DALI, DALI_COPYING) else SLACK
        limit = self._size(reader, dataset) + self.budget + slack
        files = self.datasets[dataset]
        evict([str(path) for path in files])
        limits = {"disk": self.disk, "disk_bytes_per_s": disk_bytes_per_s, "memory_bytes": limit}
        measured = run(files, reader, cache_size=self.budget, environment=self.environment, **limits, **settings)
        return measured | {"memory_limit_bytes": limit}

    def _size(self, reader: str, dataset: str) -> int:
        """Bytes of a process that keeps nothing of the dataset."""
        if (reader, dataset) not in self._sizes:
            files = self.datasets[dataset][: SIZING_BATCHES * BATCH_SIZE]
            measured = run(files, reader, warm_up=0, disk=self.disk, environment=self.environment)
            self._sizes[reader, dataset] = measured["memory_peak_bytes"]
        return self._sizes[reader, dataset]
