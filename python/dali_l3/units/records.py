"""What became of units: a record for each, which stands beside the output."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..errors import StorageError
from ..jobs.outcomes import Outcome
from ..jobs.planning import PlanError
from .manifest import Manifest, unit_file
from .samples import Sample
from .storage import find_storage

_AT_ONCE = 16  # records that are read: those in a bucket are far away


@dataclass(frozen=True)
class Record:
    """A unit that is done.

    unit: its number
    outputs: the files that it became, shards or others, relative to the output folder, and their bytes
    outcomes: of its samples, in their order
    """

    unit: int
    outputs: dict[str, int]
    outcomes: tuple[Outcome, ...]

    def save(self, manifest: Manifest) -> None:
        """Writes the record, which makes the unit done. Raises TargetError."""
        head = {"unit": self.unit, "samples": manifest.samples_file, "outputs": self.outputs}
        lines = [json.dumps(head), *(outcome.to_json() for outcome in self.outcomes)]
        text = "".join(f"{line}\n" for line in lines)
        manifest.storage.write(_path(manifest, self.unit), text.encode("ascii"))

    @classmethod
    def load(cls, manifest: Manifest, unit: int) -> Record:
        """Reads the record of a unit that is done. Raises PlanError if it is damaged, OSError."""
        path = _path(manifest, unit)
        try:
            head, *lines = manifest.storage.read(path).splitlines()
            facts = json.loads(head)
            outcomes = tuple(map(Outcome.from_json, lines))
            if (facts["unit"], facts["samples"]) != (unit, manifest.samples_file):
                raise PlanError(f"{path}: belongs to another conversion; remove it and run the command again")
            if len(outcomes) != manifest.units[unit].count:
                raise ValueError("lines are missing")
            return cls(unit, dict(facts["outputs"]), outcomes)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, PlanError):
                raise
            raise PlanError(f"{path}: damaged; remove it and run the command again") from error


def done_units(manifest: Manifest, units: Iterable[int] | None = None) -> Iterator[Record]:
    """The records of those of the units that are done. One whose files are missing, or not as they were, is not.

    units: their numbers; None: all
    """
    storage = manifest.storage
    size_of = storage.size_finder()
    names = storage.sizes(f"{manifest.folder}/records")
    there = (unit for unit in (range(len(manifest.units)) if units is None else units) if unit_file(unit) in names)
    with ThreadPoolExecutor(_AT_ONCE) as readers:
        while some := list(itertools.islice(there, _AT_ONCE)):
            for record in readers.map(functools.partial(Record.load, manifest), some):
                if all(size_of(f"{manifest.target}/{output}") == size for output, size in record.outputs.items()):
                    yield record


def find_record(manifest: Manifest, unit: int) -> Record | None:
    """The record of one unit, if it is done, as for `done_units`."""
    storage = manifest.storage
    try:
        record = Record.load(manifest, unit)
        sizes = {name: storage.entry(f"{manifest.target}/{name}").size for name in record.outputs}
    except FileNotFoundError:
        return None
    return record if sizes == record.outputs else None


def forget_failures(manifest: Manifest, units: Iterable[int]) -> None:
    """Removes the records of units in which samples failed, so that these units are done again.

    The manifest takes the files of those samples as they are now, for they may have been replaced by good ones.
    """
    for record in done_units(manifest, units):
        if not any(outcome.status == "failed" for outcome in record.outcomes):
            continue
        samples = manifest.samples_of(record.unit)
        pairs = zip(samples, record.outcomes, strict=True)
        now = [_as_it_is_now(sample) if outcome.status == "failed" else sample for sample, outcome in pairs]
        if now != samples:
            manifest.amend(record.unit, now)
        manifest.storage.remove(_path(manifest, record.unit))


def _as_it_is_now(sample: Sample) -> Sample:
    """A sample of files that may have changed. One in an archive stays: with that, others would have changed, too."""
    members = []
    for member in sample.members:
        try:
            if member.offset is None:
                entry = find_storage(member.path).entry(member.path)
                member = dataclasses.replace(member, size=entry.size, version=entry.version)
        except StorageError:
            raise
        except OSError:  # the attempt to read it will tell
            pass
        members.append(member)
    return dataclasses.replace(sample, members=tuple(members))


def failed_samples(manifest: Manifest) -> set[str]:
    """The sources of the samples that failed in units that are done."""
    outcomes = itertools.chain.from_iterable(record.outcomes for record in done_units(manifest))
    return {outcome.source for outcome in outcomes if outcome.status == "failed"}


def kept(record: Record) -> Iterator[Outcome]:
    """The outcomes of a unit that an earlier run did, as those of this run."""
    for outcome in record.outcomes:
        is_kept = outcome.status == "done"
        yield dataclasses.replace(outcome, status="kept", reason="done before") if is_kept else outcome


class Survey:
    """The outcomes of all samples so far, and of what belongs to none, once; and then how far the conversion is.

    units, done: units in all, and those that are done
    samples: by status, and "left"

    Raises as `Record.load`.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self.units, self.done = len(manifest.units), 0
        self.samples = Counter({"left": sum(part.count for part in manifest.units)})

    def __iter__(self) -> Iterator[Outcome]:
        for outcome in self._manifest.outcomes_passed_over():
            self.samples[outcome.status] += 1
            yield outcome
        for record in done_units(self._manifest):
            self.done += 1
            self.samples["left"] -= len(record.outcomes)
            for outcome in record.outcomes:
                self.samples[outcome.status] += 1
                yield outcome


def _path(manifest: Manifest, unit: int) -> str:
    return f"{manifest.folder}/records/{unit_file(unit)}"
