"""Makes the manifest of a conversion, or finds the one that an earlier run made."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json

from ..images.reading import prepare_process
from ..jobs.outcomes import Outcome
from ..jobs.planning import PlanError
from ..jobs.running import storage_error, surrender_to_outage
from ..jobs.workers import run_tasks
from .manifest import Manifest, Part, Settings, conversion_folder
from .records import failed_samples
from .sample_conversion import Converted, convert_sample, task_of
from .samples import (
    Sample,
    check_names,
    converting_l3_alone,
    files_of_folder,
    samples_of_archives,
    samples_of_folder,
)
from .shards import member_size
from .storage import find_storage

_FILES = 256  # of a unit whose output is a folder
_TRIED = 64  # samples that tell how much the others are going to grow
_FILL = 0.95  # of a shard's size is what the samples of a unit are expected to take


def open_manifest(target: str, settings: Settings, check_source: bool = True, workers: int | None = None) -> Manifest:
    """The manifest of the conversion to the folder `target`, which is made if there is none.

    check_source: whether an earlier manifest is compared with the source, which is listed for that. If not, only those
        files are found to have changed that are converted.
    workers: processes that try samples, to tell how large their shards will be

    Raises PlanError if there is one with other settings or for another state of the source, if `target` holds files
    without being the output of a conversion, or if two files would get one name, ConversionError, OSError.
    """
    manifest = Manifest.load(target) or _load_unless_empty(target)
    if manifest is None:
        manifest = _plan(target, settings, workers)
        if manifest.create():
            return manifest
        manifest = Manifest.load(target)  # another run was quicker
        assert manifest
    difference = settings.difference(manifest.settings)
    if difference:
        raise PlanError(
            f"{conversion_folder(target)}: the conversion was begun with {difference}; go on with the same options, or "
            "choose another folder"
        )
    if check_source:
        _check_unchanged(manifest)
    return manifest


def preview(settings: Settings, target: str) -> tuple[list[Outcome], list[Outcome]]:
    """What a run would convert, and what it would pass over."""
    samples, outcomes = _list(settings)
    tasks = [task_of(sample, settings, "" if settings.shards else target) for sample in samples]
    return [Outcome(task.source, task.target, "planned") for task in tasks], outcomes


def _list(settings: Settings) -> tuple[list[Sample], list[Outcome]]:
    """The samples in their order, and what is passed over."""
    storage = find_storage(settings.source)
    archives = storage.archives(settings.source)
    if archives is not None:
        listing = samples_of_archives(storage, archives)
    else:
        listing = (samples_of_folder if settings.shards else files_of_folder)(storage, settings.source)
    samples, outcomes = [], []
    for found in listing:
        if isinstance(found, Outcome):
            outcomes.append(found)
        else:
            samples.append(found)
    if settings.format == "png" and (settings.shards or archives is not None):  # else the content of a file decides
        samples = list(map(converting_l3_alone, samples))
    check_names(samples, settings.format, settings.keep_suffix)
    if settings.shards and settings.order == "drawn":
        samples.sort(key=lambda sample: _position(sample.key, settings.seed))
    return samples, outcomes


def _position(key: str, seed: int) -> bytes:
    """Where a drawn order has a sample: the same on every machine."""
    return hashlib.blake2b(b"%d\0%b" % (seed, key.encode(errors="surrogateescape")), digest_size=16).digest()


def _written(samples: list[Sample], outcomes: list[Outcome], folders: list[str]) -> tuple[list[bytes], str]:
    """The lines of the file of samples, and their digest."""
    texts = [sample.to_json() for sample in samples] + [outcome.to_json() for outcome in outcomes]
    texts += map(json.dumps, folders)
    lines = [f"{text}\n".encode("ascii") for text in texts]
    digest = hashlib.blake2b(digest_size=16)
    for line in lines:
        digest.update(line)
    return lines, digest.hexdigest()


def _plan(target: str, settings: Settings, workers: int | None) -> Manifest:
    """Lists the samples, cuts them into units, and writes the file that lists them."""
    samples, outcomes = _list(settings)
    folders = [] if settings.shards else _folders(settings.source)
    lines, digest = _written(samples, outcomes, folders)
    name = f"samples-{digest}.jsonl"
    find_storage(target).write(f"{conversion_folder(target)}/{name}", b"".join(lines))
    cuts = _cut_for_shards(samples, settings, settings.shards, workers) if settings.shards else _cut_evenly(samples)
    begins = [0, *itertools.accumulate(map(len, lines))]
    cuts += [len(lines) - len(folders), len(lines)]
    parts = [Part(begins[cut], begins[end] - begins[cut], end - cut) for cut, end in itertools.pairwise(cuts)]
    *units, passed_over, mirrored = parts
    return Manifest(target, settings, name, tuple(units), passed_over, mirrored)


def _folders(source: str) -> list[str]:
    storage = find_storage(source)
    return storage.tree(source) if storage.archives(source) is None else []


def _cut_evenly(samples: list[Sample]) -> list[int]:
    """Where units begin whose output are files of a folder, and the number of samples."""
    return [*range(0, len(samples), _FILES), len(samples)]


def _cut_for_shards(samples: list[Sample], settings: Settings, limit: int, workers: int | None) -> list[int]:
    """Where units begin whose output is a shard of at most `limit` bytes, most likely; and the number of samples."""
    growth = _growth(samples, settings, workers)
    cuts, filled = [], float("inf")
    for number, sample in enumerate(samples):
        sizes = [member.size * (growth if member.is_image else 1) for member in sample.members]
        size = sum(map(member_size, sizes)) + (member_size(1) if sample.label else 0)
        filled += size
        if filled > _FILL * limit:
            cuts.append(number)
            filled = size
    return [*cuts, len(samples)]


def _growth(samples: list[Sample], settings: Settings, workers: int | None) -> float:
    """How many times their size images take once they are converted, from samples all over the source."""
    tried = samples[:: max(len(samples) // _TRIED, 1)][:_TRIED]
    tasks = {task.target: task for task in (task_of(sample, settings) for sample in tried)}
    before = after = 0
    with contextlib.closing(run_tasks(convert_sample, tasks.values(), workers, prepare_process)) as outcomes:
        for outcome in outcomes:
            if outcome.unreachable:  # of fewer samples, other shards would be made
                raise surrender_to_outage(storage_error(outcome))
            if isinstance(outcome, Converted):
                members = tasks[outcome.target or ""].sample.members  # files come in their order
                images = [place for place, member in enumerate(members) if member.is_image]
                before += sum(members[place].size for place in images)
                after += sum(len(outcome.files[place][1]) for place in images)
    return after / before if before else 1


def _load_unless_empty(target: str) -> Manifest | None:
    """The manifest, if `target` holds anything: another run may have made both just now. Raises PlanError if not so."""
    storage = find_storage(target)
    if not (storage.sizes(target) or storage.folders(target)):
        return None
    manifest = Manifest.load(target)
    if manifest is None:
        raise PlanError(
            f"{target}: holds files, but there is no {conversion_folder(target)} that knows about them; choose another "
            "folder"
        )
    return manifest


def _check_unchanged(manifest: Manifest) -> None:
    samples, _ = _list(manifest.settings)
    planned = set(manifest.samples())
    new, gone = set(samples) - planned, planned.difference(samples)
    if new or gone:  # those that failed may be replaced, or removed: nothing was made of them
        failed = failed_samples(manifest)
        new, gone = ({sample for sample in some if sample.source not in failed} for some in (new, gone))
    if not new and not gone:
        return
    changed = {sample.key for sample in new} & {sample.key for sample in gone}
    raise PlanError(
        f"{manifest.settings.source}: has changed since {manifest.folder} was made: {len(changed)} changed, "
        f"{len(new) - len(changed)} new, {len(gone) - len(changed)} gone, among them "
        f"{min(sample.source for sample in new | gone)}. Convert it to another folder, or restore it"
    )
