"""Makes the manifest of a conversion, or finds the one that an earlier run made."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Iterable

from ..images.reading import prepare_process
from ..jobs.outcomes import Outcome
from ..jobs.planning import PlanError
from ..jobs.workers import run_tasks
from .manifest import Manifest, Part, Settings, conversion_folder
from .sample_conversion import Converted, convert_sample, task_of
from .samples import Sample, check_names, files_of_folder, samples_of_archives, samples_of_folder
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
    tasks = [task_of(sample, settings, target) for sample in samples]
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
    check_names(samples, settings.keep_suffix)
    if settings.shards and settings.order == "drawn":
        samples.sort(key=lambda sample: _position(sample.key, settings.seed))
    return samples, outcomes


def _position(key: str, seed: int) -> bytes:
    """Where a drawn order has a sample: the same on every machine."""
    return hashlib.blake2b(b"%d\0%b" % (seed, key.encode(errors="surrogateescape")), digest_size=16).digest()


def _written(samples: Iterable[Sample], outcomes: Iterable[Outcome]) -> tuple[list[bytes], str]:
    """The lines of the file of samples, and their digest."""
    lines = [f"{item.to_json()}\n".encode("ascii") for items in (samples, outcomes) for item in items]
    digest = hashlib.blake2b(digest_size=16)
    for line in lines:
        digest.update(line)
    return lines, digest.hexdigest()


def _plan(target: str, settings: Settings, workers: int | None) -> Manifest:
    """Lists the samples, cuts them into units, and writes the file that lists them."""
    samples, outcomes = _list(settings)
    lines, digest = _written(samples, outcomes)
    name = f"samples-{digest}.jsonl"
    find_storage(target).write(f"{conversion_folder(target)}/{name}", b"".join(lines))
    growth = _growth(settings, samples, workers) if settings.shards else 0
    cuts, expected = [0], 0.0
    for number, sample in enumerate(samples):
        size = _expected_size(sample, growth)
        is_full = expected + size > _FILL * settings.shards if settings.shards else number - cuts[-1] >= _FILES
        if is_full and number > cuts[-1]:
            cuts.append(number)
            expected = 0
        expected += size
    cuts += [len(samples)] * (len(samples) > cuts[-1]) + [len(lines)]
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))
    parts = [Part(begins[cut], begins[end] - begins[cut], end - cut) for cut, end in itertools.pairwise(cuts)]
    return Manifest(target, settings, name, tuple(parts[:-1]), parts[-1])


def _expected_size(sample: Sample, growth: float) -> float:
    """Bytes in a shard, where images take `growth` times what they take now."""
    sizes = [member.size * (growth if member.is_image else 1) for member in sample.members]
    return sum(map(member_size, sizes)) + (member_size(1) if sample.label else 0)


def _growth(settings: Settings, samples: list[Sample], workers: int | None) -> float:
    """How many times their size images take once they are converted, from samples all over the source."""
    step = max(len(samples) // _TRIED, 1)
    tried = samples[::step][:_TRIED]
    before = after = 0
    tasks = [task_of(sample, settings) for sample in tried]
    outcomes = run_tasks(convert_sample, tasks, workers, prepare_process)
    with contextlib.closing(outcomes):
        for outcome in outcomes:
            if isinstance(outcome, Converted):
                before += outcome.source_size
                after += outcome.target_size
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
    samples, outcomes = _list(manifest.settings)
    lines, digest = _written(samples, outcomes)
    if digest in manifest.samples_file:
        return
    before = {sample for unit in range(len(manifest.units)) for sample in manifest.samples_of(unit)}
    new, gone = set(samples) - before, before - set(samples)
    changed = {sample.key for sample in new} & {sample.key for sample in gone}
    example = min(sample.source for sample in new | gone) if new | gone else "files that are no samples"
    raise PlanError(
        f"{manifest.settings.source}: has changed since {manifest.folder} was made: {len(changed)} changed, "
        f"{len(new) - len(changed)} new, {len(gone) - len(changed)} gone, among them {example}. Convert it to another "
        "folder, or restore it"
    )
