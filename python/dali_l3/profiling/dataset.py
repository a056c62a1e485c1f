"""Converts the dataset to the recommended mix, and measures it."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Sequence

from ..conversion import mixing
from ..conversion.converting import convert_file
from ..conversion.mix_record import MixRecord
from ..errors import ConversionError
from ..images.formats import L3_FAST
from ..images.reading import prepare_process
from ..images.resizing import Resize
from ..jobs.outcomes import Outcome, Outcomes
from ..jobs.planning import Plan
from ..jobs.running import run_plan
from .isolation import call_isolated
from .measuring import measure
from .profiler import DatasetProfile, WrittenDataset
from .sampling import choose_sample, list_images
from .work_folder import plain_names

_TOLERANCE = 1.1  # of the size that the sample lets expect
_MOST_MEASURED = 2048  # images: with them an epoch is not too long


def announced_size(profile: DatasetProfile) -> int:
    """Bytes that the dataset takes at most; beyond them its conversion stops."""
    mix = profile.recommendation
    rounded = sum(profile.formats[name].costs.image_bytes for name in mix.weights)  # shares are of whole images
    return round(mix.bytes * _TOLERANCE + rounded)


def check_target(source: str, target: str, seed: int = 0, resize: Resize | None = None) -> None:
    """Raises the errors of `convert_dataset` that are known before the mix is."""
    record = MixRecord.load(target)
    weights = record.settings.mix if record else {L3_FAST: 1}
    mixing.plan_mix(source, target, weights, seed, resize=resize)


def convert_dataset(profile: DatasetProfile, target: str, seed: int = 0) -> tuple[Plan, Outcomes]:
    """Plans the conversion of the dataset to the recommended mix in the folder `target`, as `dali-l3 convert --mix`.

    Returns the plan and the outcomes of all its files; tasks are done as they are asked for. Run again, it continues.

    Raises:
        ConversionError: As `mixing.plan_mix`; the disk has too little room; while iterating, the files take more than
            `announced_size`.
        OSError
    """
    mix = profile.recommendation
    work, record = mixing.plan_mix(profile.source, target, mix.weights, seed, resize=profile.resize)
    announced = announced_size(profile)
    free = shutil.disk_usage(_existing_parent(target)).free
    needed = announced * len(work.tasks) // max(len(work.tasks) + len(work.outcomes), 1)
    if needed > free:
        raise ConversionError(
            f"{target}: {needed / 1e6:.0f} MB are needed, {free / 1e6:.0f} MB are free: "
            "make room, or name another folder"
        )

    convert = functools.partial(convert_file, resize=profile.resize)
    outcomes = mixing.recorded(run_plan(work, convert, initializer=prepare_process), record, profile.source, target)
    return work, _bounded(work.outcomes, outcomes, announced, target)


def measure_dataset(profile: DatasetProfile, folder: str) -> WrittenDataset:
    """Measures the Liquid reader and the decoder on the dataset in `folder`, which has the recommended mix.

    At most 2048 of its images take part, with as large a part of the cache.

    Raises:
        ConversionError: There are no images.
    """
    dataset = list_images(folder, with_l3=True)
    files = choose_sample(dataset, _MOST_MEASURED)
    part = len(files) / len(dataset.files)
    with plain_names() as plain:
        names = [*map(plain, files)]
        measured = call_isolated(measure, names, profile.setting, cache_size=int(profile.conditions.cache_size * part))
    return WrittenDataset(
        folder,
        str(profile.recommendation),
        dataset.bytes,
        profile.recommendation.prediction.throughput,
        measured.throughput,
        measured.hit_ratio,
    )


def _bounded(settled: Sequence[Outcome], outcomes: Outcomes, most: int, target: str) -> Outcomes:
    yield from settled
    written = 0
    for outcome in outcomes:
        written += outcome.target_size
        yield outcome
        if written > most:
            raise ConversionError(
                f"{target}: the files take more than the {most / 1e6:.0f} MB announced, since the sample's were smaller"
            )


def _existing_parent(path: str) -> str:
    path = os.path.abspath(path)
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path
