"""Does units on a Ray cluster, each as a task that takes a CPU."""

from __future__ import annotations

import contextlib
import errno
import functools
from collections.abc import Generator, Iterable, Iterator

from ..errors import StorageError
from ..images.reading import prepare_process
from ..jobs.cluster import Lost, of_one_cpu, run_on_cluster
from ..jobs.interrupting import stopping_on_signals
from ..jobs.outcomes import Outcome
from ..jobs.planning import PlanError
from ..jobs.workers import DEFAULT_LIMITS, Limits, Pool
from .manifest import Manifest
from .records import Record, find_record
from .running import clear, do_unit
from .sample_conversion import check_mounted, convert_sample

_pools: dict[Limits, Pool] = {}


def run_on_ray(
    manifest: Manifest, units: Iterable[int], address: str, limits: Limits = DEFAULT_LIMITS
) -> Generator[Record, None, None]:
    """Does units on the cluster at `address`, and yields their records as they come. For the main thread.

    All machines must reach source and target by the same paths. A unit whose machine is lost is done again by another.
    If that was so each time that Ray tried, its samples have failed, and it has no record: the next run does it.

    Ctrl-C, SIGTERM and SIGHUP interrupt the units at work, which are left to be done.
    Raises as `run_on_cluster` and `run_unit`, and Interrupted.
    """
    clear(manifest)
    try:
        with stopping_on_signals(limits.grace) as interrupted:
            function = functools.partial(_do_unit, manifest, limits)
            results = run_on_cluster(function, units, address, interrupted, limits.grace)
            with contextlib.closing(results):
                for unit, result in results:
                    yield _lost(manifest, unit, result.reason) if isinstance(result, Lost) else result
    finally:
        clear(manifest)


def _do_unit(manifest: Manifest, limits: Limits, unit: int) -> Record:
    """Runs on a machine of the cluster, perhaps after another one did the unit and was lost."""
    try:
        record = find_record(manifest, unit)
        if not record:
            check_mounted(manifest.samples_of(unit)[0].members[0], manifest.settings)
            with _pool(limits) as pool:
                record = do_unit(manifest, unit, pool)
    except (FileNotFoundError, StorageError) as error:
        if error.errno != errno.ENOENT:
            raise
        raise PlanError(
            f"{error.filename}: a machine of the cluster has no such file; all of them must reach source and target by "
            "the same paths, which are those of a shared file system, or s3:// or gs://"
        ) from error
    assert record, "nobody stops it"
    return record


@contextlib.contextmanager
def _pool(limits: Limits) -> Iterator[Pool]:
    """The pool of this process, which does one unit after the other: to start a worker takes longer than small units.

    It ends if anything is raised, since it may be at the samples of that unit, or with the process.
    """
    pool = _pools.pop(limits, None) or Pool(convert_sample, 1, prepare_process, limits=of_one_cpu(limits))
    try:
        yield pool
    except BaseException:
        pool.close()
        raise
    _pools[limits] = pool


def _lost(manifest: Manifest, unit: int, reason: str) -> Record:
    samples = manifest.samples_of(unit)
    return Record(unit, {}, tuple(Outcome(sample.source, None, "failed", reason) for sample in samples))
