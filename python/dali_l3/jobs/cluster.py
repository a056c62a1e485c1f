"""Work on the machines of a Ray cluster (https://docs.ray.io), as tasks that take a CPU each.

Ray knows the machines, shares the tasks out, and starts those anew whose machine or process was lost. The function of a
task runs in a process of Ray, and what it needs must be there: this package, and the files.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import os
import signal
import socket
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from types import ModuleType
from typing import Any, TypeVar

from ..errors import ConversionError
from ..memory import available_memory
from ..version import __version__
from .interrupting import GRACE
from .outcomes import Outcome, Outcomes, Task, failed
from .workers import DEFAULT_LIMITS, PART_OF_MEMORY, Limits, run_tasks, usable_cpus

Item = TypeVar("Item")
Result = TypeVar("Result")

AUTO = "auto"
"""The address of the cluster that RAY_ADDRESS names, or that this machine belongs to."""

_TRIES_AGAIN = 5  # of a task whose machine or process was lost
_AHEAD = 2  # tasks that Ray has at a time for each CPU: no CPU waits, and a cluster that can grow sees that it should
_LEAST_AHEAD = 8
_ANSWER = 10.0  # seconds that a cluster has to answer
_TICK = 0.5  # seconds between two looks whether the run is stopped
_SLICE = 256  # files that are one task


@dataclasses.dataclass(frozen=True)
class Lost:
    """In the place of a result: all tries of a task ended with its machine or its process."""

    reason: str


def run_on_cluster(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    address: str = AUTO,
    stopped: Callable[[], bool] = lambda: False,
    grace: float = GRACE,
) -> Generator[tuple[Item, Result | Lost], None, None]:
    """Yields every item with `function(item)`, which a machine of the cluster computed, in order of completion.

    function: picklable. If it raises ConversionError or OSError, so does this.
    address: of the cluster, HOST:PORT or AUTO
    stopped: once this returns True, or if the iteration is abandoned, no more tasks are started, and those at work are
        interrupted, and get `grace` seconds to clear up

    For the main thread. Raises ConversionError if there is no such cluster, or one of its machines has another version
    of this package.
    """
    waiting = iter(items)
    running: dict[Any, Item] = {}
    with _connected(address) as ray:
        task = ray.remote(num_cpus=1, max_retries=_TRIES_AGAIN)(_work)
        try:
            while not stopped():
                for item in itertools.islice(waiting, max(_room(ray) - len(running), 0)):
                    running[task.remote(function, item, __version__)] = item
                if not running:
                    return
                ready, _ = ray.wait(list(running), timeout=_TICK)
                for reference in ready:
                    yield running.pop(reference), _result(ray, reference)
        finally:
            for reference in running:
                ray.cancel(reference)
            if running:
                ray.wait(list(running), num_returns=len(running), timeout=grace)


@contextlib.contextmanager
def _connected(address: str) -> Iterator[ModuleType]:
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ConversionError("ray is not installed, try: pip install 'dali-l3[ray]'") from error
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns of a change to come
    ours = signal.getsignal(signal.SIGTERM)
    try:
        _check_reachable(address)
        ray.init(address=address, logging_level="ERROR", log_to_driver=False)
        signal.signal(signal.SIGTERM, ours)  # Ray has set one of its own, which exits
    except Exception as error:  # of many kinds
        raise ConversionError(
            f"--ray: no connection to a cluster at {address}: {error}\n"
            "Start one with 'ray start --head', or name its address: --ray HOST:PORT"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raises OSError, or ValueError, if nothing listens at an address. Ray would try for many minutes."""
    address = os.environ.get("RAY_ADDRESS", AUTO) if address == AUTO else address
    if address != AUTO:
        host, _, port = address.removeprefix("ray://").rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER).close()


def _room(ray: ModuleType) -> int:
    """How many tasks Ray should have at the moment."""
    return max(_AHEAD * int(ray.cluster_resources().get("CPU", 0)), _LEAST_AHEAD)


def _result(ray: ModuleType, reference: Any) -> Any:
    try:
        result = ray.get(reference)
    except ray.exceptions.RayTaskError:
        raise  # an error in our program
    except ray.exceptions.RayError as error:
        return Lost(f"its machine or process was lost {_TRIES_AGAIN + 1} times: {str(error).splitlines()[0]}")
    if isinstance(result, Exception):
        raise result
    return result


def _work(function: Callable[[Item], Result], item: Item, version: str) -> Result | Exception:
    """Runs on a machine of the cluster. Returns the errors that are no program's fault, to be raised as they are."""
    if version != __version__:
        return ConversionError(
            f"a machine of the cluster has dali_l3 {__version__}, and this one {version}: install the same"
        )
    # Else our own processes would import it as theirs, which takes longer than many a task.
    with contextlib.suppress(AttributeError):
        del sys.modules["__main__"].__file__
    try:
        return function(item)
    except (ConversionError, OSError) as error:
        return error


def of_one_cpu(limits: Limits) -> Limits:
    """Limits for one of many tasks on this machine, each of which has a CPU: its share of the memory."""
    memory = limits.memory or int(PART_OF_MEMORY * available_memory() / usable_cpus())
    return dataclasses.replace(limits, memory=memory)


def run_tasks_on_cluster(
    address: str,
    function: Callable[[Task], Outcome],
    tasks: Iterable[Task],
    workers: int | None = None,
    initializer: Callable[[], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    limits: Limits = DEFAULT_LIMITS,
) -> Outcomes:
    """`workers.run_tasks` on a cluster, where some hundred tasks are one of Ray's. workers: has no meaning there."""
    iterator = iter(tasks)
    slices = iter(lambda: list(itertools.islice(iterator, _SLICE)), [])
    run_slice = functools.partial(_run_slice, function, initializer, limits)
    results = run_on_cluster(run_slice, slices, address, stopped, limits.grace)
    with contextlib.closing(results):
        for slice_, outcomes in results:
            if isinstance(outcomes, Lost):
                outcomes = [failed(task, outcomes.reason) for task in slice_]
            yield from outcomes


def _run_slice(
    function: Callable[[Task], Outcome],
    initializer: Callable[[], None] | None,
    limits: Limits,
    tasks: list[Task],
) -> list[Outcome]:
    return list(run_tasks(function, tasks, 1, initializer, limits=of_one_cpu(limits)))
