"""Finds what limits a pipeline, by measuring it without one part after another.

The stages follow Watkins ("Data loading: the next frontier in scale-out deep learning", 2019) and the differential
analysis of section IV of "The Art of Losing to Win" (lossy image compression for data loading).
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..wording import counted
from .isolation import call_isolated
from .measuring import (
    KEEPING_MEMORY,
    Consume,
    Measurement,
    PipelineError,
    Setting,
    Throughput,
    first_in_memory,
    measure,
    measure_file_reader,
    measure_file_reader_cold,
    measure_keeping_memory,
    measure_step,
)

_NOTABLE = 1.1  # of one stage's time beside another's: less is noise
_SPIKE = 2.0  # times the median batch
_REGULAR = 0.6  # part of the spikes that have to follow at the same distance
_MUCH_MEMORY = 1 << 20  # bytes per image: as much new memory may take notable time
_MOST_KEPT = 500  # batches of a stage whose times are kept, for plots


@dataclass(frozen=True)
class Sleep:
    """A training step that takes `seconds` for a batch, and none of the CPU."""

    seconds: float

    def __call__(self, outputs: object) -> None:
        time.sleep(self.seconds)


@dataclass(frozen=True)
class BatchTimes:
    """Times of batches, in seconds.

    spikes: how many took more than twice the median
    period: batches from spike to spike, if most of them come at the same distance, else None
    """

    p50: float
    p95: float
    p99: float
    spikes: int
    period: int | None


@dataclass(frozen=True)
class Stage:
    """A pipeline with some of its parts.

    name: "synthetic", "memory", "page cache" or "disk"
    what: a description
    batch_seconds: of the first batches, 500 at most
    """

    name: str
    what: str
    throughput: Throughput
    cpu_seconds: float
    batches: BatchTimes
    batch_seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Diagnosis:
    """The diagnosis of the dataset as it is.

    stages: from the fewest parts to all
    limit: "step", "decode", "read" or "disk"
    findings: sentences with figures
    in_memory: whether memory holds the dataset, so that only its first epoch comes from the disk
    """

    stages: list[Stage]
    limit: str
    findings: list[str]
    in_memory: bool = False

    @property
    def now(self) -> Throughput:
        """Images/s of training on the dataset as it is."""
        return _training(self.stages, self.in_memory).throughput


def diagnose(
    files: Sequence[str],
    more_files: Sequence[str],
    setting: Setting,
    cpus: int,
    in_memory: bool = False,
    step: Consume | None = None,
    tick: Callable[[str], None] = lambda name: None,
) -> Diagnosis:
    """Measures the dataset as it is with DALI's own reader and decoder, and without one part after another.

    files: a sample of it
    more_files: a larger one, for what is measured on files of which each can be read only once; not used if DALI cannot
        decode all of them
    cpus: that the process may use
    in_memory: whether memory holds the dataset, so that the disk does not count after the first epoch
    step: the training step, called with the outputs of every batch; in this process, unless it is a Sleep
    tick: called with the name of each stage before it is measured

    Raises:
        PipelineError: DALI cannot decode `files`.
    """
    call = call_isolated if step is None or isinstance(step, Sleep) else _call
    measured: dict[str, tuple[str, Measurement]] = {}

    def add(name: str, what: str, function: Callable[..., Measurement], files: Sequence[str], **keywords: Any) -> None:
        tick(name)
        measured[name] = (what, call(function, files, setting, **keywords))

    if step:
        add("synthetic", "the training step alone, with a batch that stays", measure_step, files, step=step)
    first = first_in_memory(files, setting.batch_size)
    add("memory", "decoding, encoded images in memory", measure, first, load=False, consume=step)
    add("page cache", "fn.readers.file, files in the page cache", measure_file_reader, files, consume=step)
    disk = "fn.readers.file, files on the disk"
    try:
        add("disk", disk, measure_file_reader_cold, more_files, consume=step)
    except PipelineError:
        add("disk", disk, measure_file_reader_cold, files, consume=step)
    stages = [
        Stage(
            name,
            what,
            run.throughput,
            run.cpu_seconds,
            batch_times(run.batch_seconds),
            run.batch_seconds[:_MOST_KEPT],
        )
        for name, (what, run) in measured.items()
    ]
    counting = [stage for stage in stages if not (in_memory and stage.name == "disk")]
    limit = limiting_stage({stage.name: 1 / stage.throughput.mean for stage in counting})
    findings = list(_findings(stages, limit, setting, cpus, in_memory))
    _, memory = measured["memory"]
    if call is call_isolated and memory.new_memory > _MUCH_MEMORY:  # this process is to keep its settings
        tick("memory, kept")
        kept = call(measure_keeping_memory, first, setting, load=False, consume=step)
        findings += _memory_findings(memory, kept)
    return Diagnosis(stages, limit, findings, in_memory)


def limiting_stage(seconds: dict[str, float]) -> str:
    """The part that takes most, for seconds per image of the stages: "step", "decode", "read" or "disk".

    The last of the parts whose addition makes the pipeline notably slower. Parts run side by side, so that a part that
    is added costs nothing as long as another is slower. "synthetic" is there with a training step, "disk" unless memory
    holds the dataset.
    """
    if "disk" in seconds and seconds["disk"] > _NOTABLE * seconds["page cache"]:
        return "disk"
    if seconds["page cache"] > _NOTABLE * seconds["memory"]:
        return "read"
    if "synthetic" in seconds and seconds["memory"] <= _NOTABLE * seconds["synthetic"]:
        return "step"
    return "decode"


def batch_times(seconds: Sequence[float]) -> BatchTimes:
    """Percentiles of batch times, and their spikes."""
    if len(seconds) < 2:
        p50 = p95 = p99 = seconds[0]
    else:
        percentiles = statistics.quantiles(seconds, n=100, method="inclusive")
        p50, p95, p99 = (percentiles[percent - 1] for percent in (50, 95, 99))
    spikes = [number for number, each in enumerate(seconds) if each > _SPIKE * p50]
    return BatchTimes(p50, p95, p99, len(spikes), _period(spikes))


def _period(spikes: Sequence[int]) -> int | None:
    """The distance, in batches, at which most of the spikes follow each other; None if there is none, or few spikes."""
    distances = [after - before for before, after in itertools.pairwise(spikes)]
    if len(distances) < 3:
        return None
    period = statistics.mode(distances)
    return period if period > 1 and distances.count(period) >= _REGULAR * len(distances) else None


def _call(function: Callable[..., Measurement], *arguments: Any, **keywords: Any) -> Measurement:
    return function(*arguments, **keywords)


def _training(stages: Sequence[Stage], in_memory: bool) -> Stage:
    """The stage that is like training: with the files in the page cache if memory holds them, else on the disk."""
    return stages[-2] if in_memory else stages[-1]


def _findings(stages: Sequence[Stage], limit: str, setting: Setting, cpus: int, in_memory: bool) -> Iterator[str]:
    by_name = {stage.name: stage for stage in stages}
    speeds = {stage.name: stage.throughput.mean for stage in stages}
    memory, training = by_name["memory"], _training(stages, in_memory)
    if limit == "disk":
        yield (
            f"The disk limits: {speeds['disk']:.0f} images/s from it, {speeds['page cache']:.0f} from the page cache. "
            "Smaller files, or more of them in memory, help; more decoding threads do not."
        )
    elif limit == "read":
        yield (
            f"Reading limits: {speeds['page cache']:.0f} images/s with fn.readers.file from the page cache, "
            f"{speeds['memory']:.0f} with the images in the reader's own memory. A reader with direct I/O helps."
        )
    elif limit == "decode":
        yield (
            f"Decoding limits: {speeds['memory']:.0f} images/s even with all encoded images in memory. "
            "A format that decodes faster helps; a faster disk does not."
        )
    else:
        yield (
            f"The training step limits: {speeds['synthetic']:.0f} images/s with a batch that stays, "
            f"{training.throughput.mean:.0f} with the whole pipeline. Storing the dataset otherwise gains nothing."
        )
    busy = memory.cpu_seconds * memory.throughput.mean
    if limit == "decode" and setting.threads < cpus and busy < 0.8 * cpus:
        yield (
            f"Decoding keeps {busy:.1f} of {cpus} CPUs busy with {counted(setting.threads, 'thread')}: "
            f"num_threads={cpus} would decode up to {cpus / busy:.1f} times as fast."
        )
    if in_memory:
        yield (
            "The memory that the cache may take holds the whole dataset as it is: only the first epoch comes from the "
            f"disk, at {speeds['disk']:.0f} images/s, and it does not count here."
        )
    if training.batches.period:
        yield (
            f"Every {training.batches.period} batches one takes more than twice the median "
            f"({training.batches.p99 * 1e3:.0f} against {training.batches.p50 * 1e3:.0f} ms): typical of as many "
            "workers that fall behind together. More threads, or a longer prefetch queue, even that out."
        )


def _memory_findings(memory: Measurement, kept: Measurement) -> Iterator[str]:
    """The cost of memory that the C library returns to the system. kept: as `memory`, but with memory kept."""
    if kept.throughput.mean > _NOTABLE * memory.throughput.mean:
        settings = " ".join(f"{name}={value}" for name, value in KEEPING_MEMORY.items())
        yield (
            f"For every image the C library returns {memory.new_memory / 1e6:.0f} MB of memory to the system and takes "
            f"it again. With {settings} in the environment it keeps the memory, and decoding reaches "
            f"{kept.throughput.mean:.0f} instead of {memory.throughput.mean:.0f} images/s. Set it for this command too."
        )
