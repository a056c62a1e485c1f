"""Mixes of formats beside what the profiler's model says of them, for benchmarks/profiler.py and jpeg.py."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from dali_l3.jobs.workers import usable_cpus
from dali_l3.profiling import encoding
from dali_l3.profiling.batch_model import Batches
from dali_l3.profiling.choosing import choose
from dali_l3.profiling.cost_model import Conditions, predict
from dali_l3.profiling.isolation import call_isolated
from dali_l3.profiling.measuring import KEEPING_MEMORY, Setting, measure
from dali_l3.profiling.profiler import FormatProfile, measure_format

Figures = dict[str, Any]
Weights = dict[str, int]

ERROR_TARGET = 0.1  # of a prediction, relative to what is measured, at most
USUAL_ERROR, USUAL_TARGET = 0.05, 0.9  # the part of all predictions whose error is at most that, at least
CHOICE_TARGET = 0.97  # of the best measured throughput that a recommended mix reaches, at least


def sweep(first: str, second: str) -> list[Weights]:
    """All ratios of two formats, in tenths, from none of the first."""
    return [
        {name: weight for name, weight in ((first, tenths), (second, 10 - tenths)) if weight} for tenths in range(11)
    ]


def encode(files: list[str], formats: Iterable[str], folder: str) -> encoding.EncodedSample:
    """The files in every format, written as the profiler does: not all files of a format decode equally fast."""
    formats = tuple(formats)
    return encoding.encode_sample(files, formats, folder, encoding.announce(files, formats))


def name_of(weights: Mapping[str, int], names: Mapping[str, str]) -> str:
    """As PNG:BMP 3:7, with the formats' names here."""
    mix = ":".join(names[format] for format in weights)
    return mix + (f" {':'.join(map(str, weights.values()))}" if len(weights) > 1 else "")


def mixed(paths: Mapping[str, list[str]], weights: Weights) -> list[str]:
    """Every image once, in formats dealt out evenly in these proportions."""
    total = sum(weights.values())
    names = [name for name, weight in weights.items() for _ in range(weight)]
    count = len(next(iter(paths.values())))
    stride = next(stride for stride in (7, 3, 1) if total % stride)  # spreads each format over the images
    return [paths[names[number * stride % total]][number] for number in range(count)]


def measure_formats(
    names: Iterable[str], sample: encoding.EncodedSample, images: int, cache_size: int, setting: Setting
) -> tuple[dict[str, FormatProfile], Conditions]:
    """Measures a sample in formats, as the profiler does, under the conditions of a dataset of so many images.

    Changes the environment for processes to come: else it is chance how fast PNG and BMP are decoded.
    """
    os.environ.update(KEEPING_MEMORY)
    batches = Batches(setting.batch_size, setting.threads, tuple(sample.raw_sizes))
    conditions = Conditions(images, cache_size, usable_cpus(), batches=batches)
    return {name: measure_format(name, sample, setting, conditions) for name in names}, conditions


def recommended(formats: Mapping[str, FormatProfile], names: Iterable[str], conditions: Conditions) -> Weights:
    """The mix of some formats that the profiler recommends for speed."""
    costs = {name: formats[name].costs for name in names}
    spreads = {name: formats[name].both.spread for name in costs}
    return dict(choose(costs, conditions, spreads, "speed").recommended.weights)


def measure_mix(
    weights: Weights,
    paths: Mapping[str, list[str]],
    formats: Mapping[str, FormatProfile],
    conditions: Conditions,
    setting: Setting,
) -> Figures:
    """Images/s of a mix with the Liquid reader, predicted and measured, in the environment as it is."""
    shares = {name: weight / sum(weights.values()) for name, weight in weights.items()}
    prediction = predict(shares, {name: format.costs for name, format in formats.items()}, conditions)
    measured = call_isolated(measure, mixed(paths, weights), setting, cache_size=conditions.cache_size)
    return {
        "weights": weights,
        "predicted": prediction.throughput,
        "limit": prediction.limit,
        "measured": measured.throughput.mean,
        "error": prediction.throughput / measured.throughput.mean - 1,
        "cpu_ms_per_image": measured.cpu_seconds * 1e3,
        "cpu_share_of_other_processes": measured.others,
        "hit_ratio": measured.hit_ratio,
        "predicted_hit_ratio": prediction.hit_ratio,
    }


def others_share(conditions: Iterable[Figures]) -> float:
    """The part of the CPUs that other processes took while mixes were measured, on average."""
    return statistics.fmean(
        mix["cpu_share_of_other_processes"] for figures in conditions for mix in figures["mixes"].values()
    )


def figures_of(formats: Mapping[str, FormatProfile]) -> Figures:
    """What the profiler measured of formats, by name."""
    return {
        name: {
            "image_bytes": format.costs.image_bytes,
            "load": format.load.mean,
            "decode": format.decode.mean,
            "both": format.both.mean,
            "load_cpu_ms": format.costs.load_cpu_seconds * 1e3,
            "decode_cpu_ms": format.costs.decode_cpu_seconds * 1e3,
            "extra_ms": format.costs.extra_seconds * 1e3,
            "turn": format.costs.turn,
            "cpu_share_of_other_processes": format.others,
        }
        for name, format in formats.items()
    }
