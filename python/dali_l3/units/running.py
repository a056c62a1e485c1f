"""Does units: one of them, wherever this is, or all that are left, on this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable
from dataclasses import fields

from ..errors import StorageError, TargetError
from ..images.reading import prepare_process
from ..jobs.interrupting import stopping_on_signals
from ..jobs.outcomes import Outcome, Outcomes
from ..jobs.running import storage_error, surrender, surrender_to_outage
from ..jobs.workers import DEFAULT_LIMITS, Limits, Pool
from .manifest import Manifest
from .records import Record, find_record
from .sample_conversion import Converted, convert_sample, task_of
from .sequence import in_order
from .shards import writing_shards

_FACTS = [field.name for field in fields(Outcome)]


def run_unit(
    manifest: Manifest,
    unit: int,
    workers: int | None = 1,
    limits: Limits = DEFAULT_LIMITS,
    stopped: Callable[[], bool] = lambda: False,
) -> Record | None:
    """Does one unit, and writes its record in the end. Needs the storage of source and target, and nothing else.

    unit: its number
    workers, limits, stopped: as `run_tasks` takes them

    Returns None if it was stopped before it was done. Then, and if anything is raised, the unit is left to be done.
    Raises TargetError, which says what to do, if its output cannot be written, StorageError, which does so, too, if the
    storage of the source does not answer, PlanError if the manifest is damaged, OSError.
    """
    with Pool(convert_sample, workers, prepare_process, stopped, limits, manifest.units[unit].count) as pool:
        return do_unit(manifest, unit, pool)


def do_unit(manifest: Manifest, unit: int, pool: Pool) -> Record | None:
    """As `run_unit`, in a pool of `convert_sample`, which should be closed if anything is raised."""
    folder = "" if manifest.settings.shards else manifest.target
    tasks = [task_of(sample, manifest.settings, folder) for sample in manifest.samples_of(unit)]
    places = {task.target: place for place, task in enumerate(tasks)}
    try:
        with contextlib.closing(pool.run(tasks)) as results:
            in_turn = in_order(_unless_no_fault_of_samples(results), lambda result: places[result.target or ""])
            record = _collect(manifest, unit, in_turn, len(tasks))
        record.save(manifest)
    except _StoppedError:
        return None
    except TargetError as error:
        raise surrender(error) from error
    except StorageError as error:
        raise surrender_to_outage(error) from error
    return record


class _StoppedError(Exception):
    """The unit was stopped before all of its samples were done."""


def _collect(manifest: Manifest, unit: int, results: Iterable[Outcome], count: int) -> Record:
    """Writes the shards of a unit, if its output are shards. Raises _StoppedError if there are less than `count`."""
    limit = manifest.settings.shards
    outcomes: list[Outcome] = []
    outputs: dict[str, int] = {}
    shards = writing_shards(manifest.storage, manifest.target, unit, limit) if limit else contextlib.nullcontext()
    with shards as writer:
        for result in results:
            target = result.target
            if writer:
                target = f"{manifest.target}/{writer.add(result.files)}" if isinstance(result, Converted) else None
            elif isinstance(result, Converted):
                outputs.update(result.written)
            outcomes.append(_plain(result, target))
        if len(outcomes) < count:
            raise _StoppedError
    return Record(unit, writer.sizes if writer else outputs, tuple(outcomes))


def _unless_no_fault_of_samples(results: Outcomes) -> Outcomes:
    """Passes results on. Raises TargetError or StorageError for one that says that others fare no better."""
    for result in results:
        if result.unreachable:
            raise storage_error(result)
        if result.unwritable:
            number, folder = result.unwritable
            raise TargetError(number, result.reason, folder)
        yield result


def _plain(result: Outcome, target: str | None) -> Outcome:
    """A result without the bytes of its files."""
    return Outcome(**{**{name: getattr(result, name) for name in _FACTS}, "target": target})


def run_locally(
    manifest: Manifest, units: Iterable[int], workers: int | None = None, limits: Limits = DEFAULT_LIMITS
) -> Generator[Record, None, None]:
    """Does units one after the other, each with all workers, and yields their records. For the main thread.

    A unit that another run has done meanwhile is not done again.

    Ctrl-C, SIGTERM and SIGHUP end the run as they end `jobs.running.run_plan`; the unit at hand is left to be done.
    Raises as `run_unit`, and Interrupted.
    """
    clear(manifest)
    try:
        with (
            stopping_on_signals(limits.grace) as interrupted,
            Pool(convert_sample, workers, prepare_process, interrupted, limits) as pool,
        ):
            for unit in units:
                if interrupted():
                    break
                record = find_record(manifest, unit) or do_unit(manifest, unit, pool)
                if record:
                    yield record
    finally:
        clear(manifest)


def clear(manifest: Manifest) -> None:
    """Removes what killed runs left."""
    for folder in (manifest.folder, manifest.target):
        manifest.storage.clear(folder)
