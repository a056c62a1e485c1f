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

from ..jobs.outcomes import Outcome
from ..jobs.planning import PlanError
from .manifest import Manifest

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
    there = (unit for unit in (range(len(manifest.units)) if units is None else units) if _name(unit) in names)
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
    """Removes the records of units in which samples failed, so that these units are done again."""
    for record in done_units(manifest, units):
        if any(outcome.status == "failed" for outcome in record.outcomes):
            manifest.storage.remove(_path(manifest, record.unit))


def kept(record: Record) -> Iterator[Outcome]:
    """The outcomes of a unit that an earlier run did, as those of this run."""
    for outcome in record.outcomes:
        is_kept = outcome.status == "done"
        yield dataclasses.replace(outcome, status="kept", reason="done before") if is_kept else outcome


@dataclass(frozen=True)
class State:
    """How far a conversion is. units, done: units in all, and those that are done. samples: by status, and "left"."""

    units: int
    done: int
    samples: Counter[str]


def state_of(manifest: Manifest) -> State:
    """How far a conversion is. Raises as `Record.load`."""
    samples: Counter[str] = Counter(outcome.status for outcome in manifest.outcomes_passed_over())
    samples["left"] = sum(part.count for part in manifest.units)
    done = 0
    for record in done_units(manifest):
        done += 1
        samples.update(outcome.status for outcome in record.outcomes)
        samples["left"] -= len(record.outcomes)
    return State(len(manifest.units), done, samples)


def _path(manifest: Manifest, unit: int) -> str:
    return f"{manifest.folder}/records/{_name(unit)}"


def _name(unit: int) -> str:
    return f"{unit:06d}.jsonl"
