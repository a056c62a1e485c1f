"""What the profiler finds on machines that do not exist, for tests of what is made of it."""

from __future__ import annotations

import dataclasses

from dali_l3.profiling.choosing import Mix, choose
from dali_l3.profiling.cost_model import Conditions, FormatCosts, predict
from dali_l3.profiling.diagnosis import Diagnosis, Stage, batch_times
from dali_l3.profiling.measuring import Setting, Throughput
from dali_l3.profiling.mixing_program import best_shares
from dali_l3.profiling.profiler import DatasetProfile, FormatProfile, PairSearch, WrittenDataset, compare
from dali_l3.profiling.quality import Quality
from dali_l3.profiling.ratio_search import search_ratio

PNG = FormatCosts("png", 2.6e6, 2.6e6, 1 / 120, 1 / 40, 1e-3, 48e-3)
BMP = FormatCosts("bmp", 6.2e6, 6.2e6, 1 / 50, 1 / 400, 2e-3, 4e-3)
JPEG = FormatCosts("jpeg@95", 0.7e6, 0.7e6, 1 / 420, 1 / 130, 0.3e-3, 14e-3)
CONDITIONS = Conditions(images=2000, cache_size=10**9, cpus=2)


def throughput(mean):
    return Throughput(mean, 0.98 * mean, 1.02 * mean)


def stage(name, speed, batches=40):
    seconds = [16 / speed * (3 if number % 8 == 0 else 1) for number in range(batches)]
    return Stage(name, f"{name}, as it is", throughput(speed), 1 / speed, batch_times(seconds), seconds)


def format_profile(costs, conditions=CONDITIONS, **others):
    predicted = predict({costs.format: 1.0}, {costs.format: costs}, conditions).throughput
    speeds = [throughput(speed) for speed in (1 / costs.load_seconds, 1 / costs.decode_seconds, 0.95 * predicted)]
    return FormatProfile(costs, *speeds, predicted, **others)


def profile(source="/data/train", costs=(PNG, BMP), conditions=CONDITIONS, **others) -> DatasetProfile:
    """What is found about `costs`; the search's steps, if there are two of them, are those of the model."""
    by_name = {cost.format: cost for cost in costs}
    choice = choose(by_name, conditions)
    now = 37.0
    found = DatasetProfile(
        source=source,
        images=conditions.images,
        bytes=5 * 10**9,
        sample=48,
        conditions=conditions,
        setting=Setting(16, 2),
        formats={cost.format: format_profile(cost, conditions) for cost in costs},
        diagnosis=Diagnosis(
            [stage("memory", 41.0), stage("page cache", 40.0), stage("disk", now)],
            "decode",
            ["Decoding limits: 41 images/s even with all encoded images in memory."],
        ),
        choice=choice,
        mixes=compare(choice, by_name, conditions),
        search=pair_search(by_name, conditions) if len(costs) > 1 else None,
        gain=choice.recommended.prediction.throughput / now,
    )
    return dataclasses.replace(found, **others)


def pair_search(costs, conditions):
    """The search for the first two formats on a machine that does exactly as the model says."""
    pair = {name: costs[name] for name in list(costs)[:2]}
    encoded, raw = pair

    def measure(tenths):
        predicted = predict({encoded: tenths / 10, raw: 1 - tenths / 10}, pair, conditions)
        return predicted.throughput_of("load"), predicted.throughput_of("decode")

    program = 10 * best_shares(pair, conditions).get(encoded, 0.0)
    return PairSearch(encoded, raw, search_ratio(measure), program, agrees=True)


def quality(format="jpeg@75", **others):
    found = Quality(format, 48, 310_000.0, 6_220_800.0, 2_600_000.0, throughput(150.0), 38.25, 33.5, 0.9712)
    return dataclasses.replace(found, **others)


def written(mix: Mix, folder="/data/train-mix"):
    predicted = mix.prediction.throughput
    return WrittenDataset(folder, str(mix), 9 * 10**9, predicted, throughput(0.97 * predicted), 0.11)
