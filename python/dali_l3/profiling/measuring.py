"""Throughput of real DALI pipelines."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .. import _core
from .. import fn as dali_l3_fn
from ..errors import ConversionError
from ..statistics import reader_stats
from .cpu_load import busy_seconds

if TYPE_CHECKING:
    from nvidia.dali import Pipeline

_READER = "reader"
_SETTLING = 4  # batches after the first epoch, until the pace is steady
_WINDOWS = 8
_MOST_IN_MEMORY = 1 << 30  # bytes of encoded images

KEEPING_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "268435456"}
"""Environment of a process whose C library (glibc) keeps the memory of one image for the next.

By default it may return it to the system, which then has to clear it for every image. Whether it does is chance: it
depends on what else the process has allocated.
"""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of mallopt(3)


@dataclass(frozen=True)
class Setting:
    """The settings of the measured pipelines.

    batch_size: images
    threads: of the pipeline
    device: of the decoder, "cpu" or "mixed"
    seconds: minimum length of a measurement, after warming up
    seed: of the readers' order
    """

    batch_size: int
    threads: int
    device: str = "cpu"
    seconds: float = 2.0
    seed: int = 0


@dataclass(frozen=True)
class Throughput:
    """Images/s.

    mean: how fast the number of images grows. (Not a median: where a disk delivers in bursts, batches are quick or
        slow, and the median is one or the other.)
    low, high: the quartiles of windows of batches, or the mean, if that is beyond them
    """

    mean: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles, relative to the mean."""
        return (self.high - self.low) / (2 * self.mean)

    @classmethod
    def of(cls, batch_seconds: Sequence[float], batch_size: int) -> Throughput:
        """From the times of consecutive batches.

        The mean is the slope of the least squares line through the moments at which they ended. All images over all the
        time would depend on how much of a burst the first and the last moment cut off: a disk that is limited by a
        control group delivers for 100 ms at once, and such a measurement of 2 s was up to 5% off.
        """
        size = max(len(batch_seconds) // _WINDOWS, 1)
        windows = [batch_seconds[start : start + size] for start in range(0, len(batch_seconds) - size + 1, size)]
        speeds = [len(window) * batch_size / sum(window) for window in windows]
        low, _, high = statistics.quantiles(speeds, n=4, method="inclusive") if len(speeds) > 1 else speeds * 3
        numbers = np.arange(1, len(batch_seconds) + 1)
        weights = numbers * numbers[::-1]  # of a time between moments in the slope
        mean = batch_size / float(np.average(batch_seconds, weights=weights))
        return cls(mean, min(low, mean), max(high, mean))


@dataclass(frozen=True)
class Measurement:
    """A pipeline's run.

    throughput: images/s
    cpu_seconds: per image, of all threads of the process
    batch_seconds: of each batch
    new_memory: bytes per image of pages that were new to the process, such as memory that its C library had returned;
        0 where it is not measured
    hit_ratio: of the Liquid reader, as it planned it; 0 for others
    others: the part of the CPUs it may use that other processes took meanwhile; 0 where it is not measured
    """

    throughput: Throughput
    cpu_seconds: float
    batch_seconds: list[float]
    new_memory: float = 0.0
    hit_ratio: float = 0.0
    others: float = 0.0


class PipelineError(ConversionError):
    """DALI ended a pipeline, for example because it cannot decode an image. The message is DALI's."""


Consume = Callable[[Any], object]
"""Called with the outputs of a batch before the next one is taken, such as a training step."""


def memory_bytes(size: int) -> int:
    """Bytes that a file of `size` bytes takes in the reader's memory."""
    return -(-size // _core.PAGE_SIZE) * _core.PAGE_SIZE  # the reader's memory comes in pages


def first_in_memory(paths: Sequence[str], least: int) -> list[str]:
    """The first files, `least` at least, that are together small enough to measure decoding from memory with."""
    sizes = itertools.accumulate(map(os.path.getsize, paths))
    return list(paths[: max(sum(size <= _MOST_IN_MEMORY for size in sizes), least)])


def measure(
    files: Sequence[str],
    setting: Setting,
    *,
    load: bool = True,
    decode: bool = True,
    cache_size: int = 0,
    policy: Literal["liquid", "minio", "none"] = "liquid",
    consume: Consume | None = None,
) -> Measurement:
    """Measures a pipeline with the Liquid reader.

    files: paths, each read once an epoch
    load: whether files come from the disk (past the page cache), except for those that `cache_size` bytes keep in
        memory; else all of them are kept
    decode: whether they are decoded, by `fn.decoders.image`; else they are only read
    cache_size: bytes
    policy: of the reader
    consume: see Consume
    """
    # The reader warns of more memory than its files take, and of none without this policy.
    everything = sum(memory_bytes(os.path.getsize(path)) for path in files)
    cache_size = min(cache_size, everything) if load else everything
    policy = policy if cache_size else "none"

    def read() -> Any:
        return dali_l3_fn.readers.liquid(
            files=list(files),
            cache_size=cache_size,
            policy=policy,
            seed=setting.seed,
            name=_READER,
            pad_last_batch=False,
        )

    pipeline = _build(read, setting, decode)
    epoch = -(-len(files) // setting.batch_size)
    measured = _run(pipeline, setting, warm_up=epoch + _SETTLING, consume=consume)
    return replace(measured, hit_ratio=reader_stats(pipeline, _READER)["hit_ratio"])


def measure_keeping_memory(files: Sequence[str], setting: Setting, **arguments: Any) -> Measurement:
    """As `measure`, with the settings of KEEPING_MEMORY, which stay: for a process that ends afterwards."""
    c_library = ctypes.CDLL(None)
    if hasattr(c_library, "mallopt"):  # glibc's
        c_library.mallopt(_M_MMAP_THRESHOLD, int(KEEPING_MEMORY["MALLOC_MMAP_THRESHOLD_"]))
        c_library.mallopt(_M_TRIM_THRESHOLD, int(KEEPING_MEMORY["MALLOC_TRIM_THRESHOLD_"]))
    return measure(files, setting, **arguments)


def measure_file_reader(files: Sequence[str], setting: Setting, consume: Consume | None = None) -> Measurement:
    """Measures a pipeline with DALI's `fn.readers.file`, after an epoch that leaves the files in the page cache."""
    from nvidia.dali import fn

    pipeline = _build(lambda: fn.readers.file(files=list(files), name=_READER), setting, decode=True)
    epoch = -(-len(files) // setting.batch_size)
    return _run(pipeline, setting, warm_up=epoch + _SETTLING, consume=consume)


def measure_file_reader_cold(files: Sequence[str], setting: Setting, consume: Consume | None = None) -> Measurement:
    """Measures DALI's `fn.readers.file` on files that have just been dropped from the page cache, each read once.

    So DALI reads what exceeds the memory. Where there are few files, pipelines are built, and files dropped, again and
    again, and the start of the pipelines counts.
    """
    from nvidia.dali import fn

    epoch = max(len(files) // setting.batch_size, 1)
    skipped = _SETTLING if epoch >= 2 * _SETTLING else 0
    seconds: list[float] = []
    cpu = 0.0
    while len(seconds) < _WINDOWS or sum(seconds) < setting.seconds:
        evict(files)
        pipeline = _build(lambda: fn.readers.file(files=list(files), name=_READER), setting, decode=True)
        for _ in range(skipped):
            _take(pipeline, consume)
        cpu -= time.process_time()
        seconds += [_time(_take, pipeline, consume) for _ in range(epoch - skipped)]
        cpu += time.process_time()
        del pipeline  # it has files mapped that are to be dropped next
    return Measurement(Throughput.of(seconds, setting.batch_size), cpu / (len(seconds) * setting.batch_size), seconds)


def measure_step(files: Sequence[str], setting: Setting, step: Consume) -> Measurement:
    """Measures `step` with one batch of decoded images that stays."""
    from nvidia.dali import fn

    pipeline = _build(lambda: fn.readers.file(files=list(files), name=_READER), setting, decode=True)
    return _collect(setting, step, _run_once(pipeline))


def measure_copy(files: Sequence[str], setting: Setting) -> Measurement:
    """Measures copying a batch of decoded images, always the same, to the GPU."""
    from nvidia.dali import fn, pipeline_def

    decoding = _build(lambda: fn.readers.file(files=list(files), name=_READER), setting, decode=True)
    (images,) = _run_once(decoding)
    batch = [np.array(image) for image in images.as_cpu()]

    @pipeline_def(batch_size=setting.batch_size, num_threads=setting.threads, device_id=0)
    def define() -> Any:
        return fn.external_source(lambda: batch, no_copy=True).gpu()

    copying = define()
    copying.build()
    return _run(copying, setting, _SETTLING, None)


def require_gpu() -> None:
    """Raises ConversionError if DALI cannot use the GPU that pipelines would run on."""
    from nvidia.dali import fn, pipeline_def

    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def define() -> Any:
        return fn.constant(idata=0, device="gpu")

    try:
        pipeline = define()
        pipeline.build()
        pipeline.run()
    except RuntimeError as error:
        reason = str(error).strip().partition("\n")[0]
        raise ConversionError(f"there is no GPU that DALI can use: {reason}") from error


def evict(files: Sequence[str]) -> None:
    """Drops files from the page cache, as far as no process has them mapped."""
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # what is not on the disk yet cannot be dropped
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _build(read: Callable[[], Any], setting: Setting, decode: bool) -> Pipeline:
    from nvidia.dali import fn, pipeline_def

    @pipeline_def(
        batch_size=setting.batch_size,
        num_threads=setting.threads,
        device_id=None if setting.device == "cpu" else 0,
    )
    def define() -> Any:
        encoded, _ = read()
        return fn.decoders.image(encoded, device=setting.device) if decode else encoded

    with _pipeline_errors():
        pipeline = define()
        pipeline.build()
    return pipeline


def _run_once(pipeline: Pipeline) -> Any:
    with _pipeline_errors():
        return pipeline.run()


@contextlib.contextmanager
def _pipeline_errors() -> Iterator[None]:
    """Makes DALI's errors a PipelineError."""
    try:
        yield
    except RuntimeError as error:
        _, _, reason = str(error).rpartition("encountered:")  # after the operator and where it was defined
        raise PipelineError(f"DALI: {reason.partition('Current pipeline object')[0].strip()}") from error


def _take(pipeline: Pipeline, consume: Consume | None) -> None:
    """Takes a batch and consumes it."""
    outputs = _run_once(pipeline)
    if consume:
        consume(outputs)


def _run(pipeline: Pipeline, setting: Setting, warm_up: int, consume: Consume | None) -> Measurement:
    for _ in range(warm_up):
        _take(pipeline, consume)
    return _collect(setting, _take, pipeline, consume)


def _collect(setting: Setting, batch: Callable[..., object], *arguments: Any) -> Measurement:
    """Measures as many batches as the setting wants."""
    cpu, busy, memory = time.process_time(), busy_seconds(), _new_memory()
    seconds: list[float] = []
    while len(seconds) < _WINDOWS or sum(seconds) < setting.seconds:
        seconds.append(_time(batch, *arguments))
    images = len(seconds) * setting.batch_size
    cpu, busy = time.process_time() - cpu, busy_seconds() - busy
    return Measurement(
        Throughput.of(seconds, setting.batch_size),
        cpu / images,
        seconds,
        (_new_memory() - memory) / images,
        others=max(busy - cpu, 0.0) / (sum(seconds) * len(os.sched_getaffinity(0))),
    )


def _new_memory() -> int:
    """Bytes of pages that were new to this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt * resource.getpagesize()


def _time(batch: Callable[..., object], *arguments: Any) -> float:
    start = time.perf_counter()
    batch(*arguments)
    return time.perf_counter() - start
