"""Does units: one of them, wherever this is, or all that are left, on this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable
from dataclasses import fields

from ..errors import TargetError
from ..images.reading import prepare_process
from ..jobs.interrupting import stopping_on_signals
from ..jobs.outcomes import Outcome, Outcomes
from ..jobs.running import surrender
from ..jobs.workers import DEFAULT_LIMITS, Limits, Pool
from .manifest import Manifest
from .records import Record, find_record
from .sample_conversion import Converted, convert_sample, task_of
from .sequence import in_order
from .shards import ShardWriter

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
    Raises TargetError, which says what to do, if its output cannot be written, PlanError if the manifest is damaged,
    OSError.
    """
    with Pool(convert_sample, workers, prepare_process, stopped, limits, manifest.units[unit].count) as pool:
        return _do_unit(manifest, unit, pool)


def _do_unit(manifest: Manifest, unit: int, pool: Pool) -> Record | None:
    settings, storage = manifest.settings, manifest.storage
    folder = "" if settings.shards else manifest.target
    tasks = [task_of(sample, settings, folder) for sample in manifest.samples_of(unit)]
    places = {task.target: place for place, task in enumerate(tasks)}
    results = pool.run(tasks)
    outcomes: list[Outcome] = []
    outputs: dict[str, int] = {}
    try:
        with contextlib.closing(results):
            ordered = in_order(_writable(results), lambda result: places[result.target or ""])
            if settings.shards:
                with ShardWriter(storage, manifest.target, unit, settings.shards) as writer:
                    for result in ordered:
                        shard = writer.add(result.files) if isinstance(result, Converted) else None
                        outcomes.append(_plain(result, shard and f"{manifest.target}/{shard}"))
                    if len(outcomes) < len(tasks):
                        raise _StoppedError
                outputs = writer.sizes
            else:
                outcomes += [_plain(result, result.target) for result in ordered]
        if len(outcomes) < len(tasks):
            raise _StoppedError
        record = Record(unit, outputs, tuple(outcomes))
        record.save(manifest)
    except _StoppedError:
        return None
    except TargetError as error:
        raise surrender(error) from error
    return record


class _StoppedError(Exception):
    """The unit was stopped before all of its samples were done."""


def _writable(results: Outcomes) -> Outcomes:
    """Passes results on. Raises TargetError for one that says that nothing can be written."""
    for result in results:
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
                record = find_record(manifest, unit) or _do_unit(manifest, unit, pool)
                if record:
                    yield record
    finally:
        clear(manifest)


def clear(manifest: Manifest) -> None:
    """Removes what killed runs left."""
    for folder in (manifest.folder, manifest.target):
        manifest.storage.clear(folder)
