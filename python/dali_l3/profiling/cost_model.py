"""The model: the cost of images in each format, and the speed of a dataset in several formats.

Loading and decoding run side by side, so that the slower of them sets the pace (Baek et al., "Liquid: Mix-and-Match
Multiple Image Formats to Balance DNN Training Pipeline", APSys 2023, section 3). Both take time of the same CPUs, which
is a third limit here; copying decoded images to the GPU may be a fourth. `batch_model` adds what averages do not tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .batch_model import Batches, simulate

STAGES = ("load", "decode", "cpu", "copy")
_ROUNDING = 1e-9  # relative: mixes that just fit are computed ones


@dataclass(frozen=True)
class FormatCosts:
    """The average cost of an image in a format, over a sample.

    format: its name
    image_bytes: of a file
    memory_bytes: that a file takes in the reader's memory
    load_seconds: between images when they are only read, all from the disk
    decode_seconds: between images when they are decoded from memory
    decode_cpu_seconds, load_cpu_seconds: CPU time of all threads that decoding takes, and that loading adds to it
    turn: of the format's images in a batch, see `batch_model.simulate`
    extra_seconds: that an image takes more, with reading and decoding together, than all of the above explain
    """

    format: str
    image_bytes: float
    memory_bytes: float
    load_seconds: float
    decode_seconds: float
    load_cpu_seconds: float = 0.0
    decode_cpu_seconds: float = 0.0
    turn: int = 0
    extra_seconds: float = 0.0


@dataclass(frozen=True)
class Conditions:
    """The conditions that all formats share.

    images: in the dataset
    cache_size: bytes of memory for what the Liquid reader keeps of it
    cpus: that the process may use
    copy_seconds: between decoded images when they are only copied to the GPU; 0 where they are not
    max_bytes: that the dataset may take on the disk; None: any number
    batches: in which images are decoded; None: no account is taken of them
    """

    images: int
    cache_size: int
    cpus: int
    copy_seconds: float = 0.0
    max_bytes: int | None = None
    batches: Batches | None = None


@dataclass(frozen=True)
class Prediction:
    """The model's prediction for a dataset.

    hit_ratio: the part of every batch that comes from memory
    seconds: per image, by stage, as if there were no other: load, decode, cpu (the work of both on all CPUs), copy
    waiting: seconds per image that the slowest stage waits for others, since batches differ, and what formats take
        beyond that
    """

    hit_ratio: float
    seconds: Mapping[str, float]
    waiting: float = 0.0

    @property
    def limit(self) -> str:
        """The stage that sets the pace."""
        return max(STAGES, key=lambda stage: self.seconds[stage])

    @property
    def throughput(self) -> float:
        """Images/s."""
        return _per_second(self.seconds[self.limit] + self.waiting)

    def throughput_of(self, stage: str) -> float:
        """Images/s of a stage by itself; infinite if it takes no time, as loading does when memory holds all."""
        return _per_second(self.seconds[stage])


def hit_ratio(shares: Mapping[str, float], costs: Mapping[str, FormatCosts], conditions: Conditions) -> float:
    """The part of the dataset that comes from memory. shares: of the formats in the images, summing to 1.

    It is as much as fits. (The reader has a little less where files are few and differ in size: what it keeps changes.)
    """
    fitting = conditions.cache_size / _mean(shares, costs, "memory_bytes")  # images
    return 1.0 if fitting >= conditions.images * (1 - _ROUNDING) else fitting / conditions.images


def predict(shares: Mapping[str, float], costs: Mapping[str, FormatCosts], conditions: Conditions) -> Prediction:
    """Predicts the throughput of a dataset of which `shares` of the images, summing to 1, are in each format."""
    hits = hit_ratio(shares, costs, conditions)
    misses = 1 - hits
    cpu = misses * _mean(shares, costs, "load_cpu_seconds") + _mean(shares, costs, "decode_cpu_seconds")
    seconds = {
        "load": misses * _mean(shares, costs, "load_seconds"),
        "decode": _mean(shares, costs, "decode_seconds"),
        "cpu": cpu / conditions.cpus,
        "copy": conditions.copy_seconds,
    }
    extra = _mean(shares, costs, "extra_seconds")
    if not conditions.batches:
        return Prediction(hits, seconds, extra)
    load = {name: misses * costs[name].load_seconds for name in shares}
    decode = {name: costs[name].decode_seconds for name in shares}
    turns = {name: costs[name].turn for name in shares}
    seconds["decode"], both = simulate(shares, load, decode, turns, conditions.batches)
    return Prediction(hits, seconds, max(both - max(seconds.values()), 0.0) + extra)


def _per_second(seconds: float) -> float:
    return 1 / seconds if seconds else float("inf")


def _mean(shares: Mapping[str, float], costs: Mapping[str, FormatCosts], cost: str) -> float:
    return sum(share * float(getattr(costs[name], cost)) for name, share in shares.items())
