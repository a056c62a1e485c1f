"""The best mix of any number of formats, by linear programming over their costs.

It is of averages; `choosing` compares its answer with others by the model of batches, which is not linear.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
from collections.abc import Mapping

import numpy as np
from scipy.optimize import linprog

from .cost_model import Conditions, FormatCosts, hit_ratio, predict

Shares = dict[str, float]

_TIE = 1e-3  # time that may be lost for smaller files, relatively: so near, mixes count as equally fast
_TOLERANCE = 1e-4  # of the search, likewise
_MOST_PROGRAMS = 1000  # usually a dozen are enough
_NEGLIGIBLE = 1e-6  # share below which a format is left out: the solver's rounding errors
_ROUNDING = 0.02  # throughput that may be lost for weights in tenths


def best_shares(costs: Mapping[str, FormatCosts], conditions: Conditions) -> Shares:
    """The shares of the formats with the highest throughput that `cost_model.predict` gives without batches.

    They sum to 1; formats without a share are left out. Of mixes that are equally fast, to within 0.1%, it is the one
    with the smallest files. Mixes that take more than `conditions.max_bytes` do not count; if all do, the result is the
    format with the smallest files.

    For a given hit ratio the least time per image is a linear program: of all stages, each linear in the shares, the
    slowest is to be as quick as possible. But the hit ratio depends on the mix, and the time may have several minima
    along it. Hence branch and bound: for a range of hit ratios, a linear program gives a time that no mix in the range
    beats, and a mix that may reach it. The range with the least time is halved, until none can beat the best mix known.

    Raises:
        ValueError: There is no format.
    """
    if not costs:
        raise ValueError("no formats to mix")
    conditions = dataclasses.replace(conditions, batches=None)

    def seconds(shares: Shares) -> float:
        return 1 / predict(shares, costs, conditions).throughput

    smallest = min(costs, key=lambda name: costs[name].image_bytes)
    fitting = [name for name in costs if fits({name: 1.0}, costs, conditions)]
    if not fitting:
        return {smallest: 1.0}
    fastest = min(fitting, key=lambda name: (seconds({name: 1.0}), costs[name].image_bytes))
    unit = seconds({fastest: 1.0})
    best = {fastest: 1.0}
    if not unit:  # nothing is faster than that
        return best

    def objective(shares: Shares) -> float:
        largest = max(cost.image_bytes for cost in costs.values())
        size = sum(share * costs[name].image_bytes for name, share in shares.items())
        return seconds(shares) / unit + _TIE * size / largest

    ranges = [(0.0, 0.0, max(hit_ratio({name: 1.0}, costs, conditions) for name in costs))]  # bound, from, to
    for _ in range(_MOST_PROGRAMS):
        if not ranges:
            break
        bound, low, high = heapq.heappop(ranges)
        if bound >= objective(best) - _TOLERANCE:
            break
        relaxed = _relax(costs, conditions, unit, low, high)
        if relaxed is None:
            continue
        bound, shares = relaxed
        if fits(shares, costs, conditions):
            best = min(best, shares, key=objective)
        middle = (low + high) / 2
        for part in ((low, middle), (middle, high)):
            heapq.heappush(ranges, (bound, *part))
    return best


def _relax(
    costs: Mapping[str, FormatCosts], conditions: Conditions, unit: float, low: float, high: float
) -> tuple[float, Shares] | None:
    """The linear program for hit ratios from `low` to `high`: a lower bound of the objective, and the shares.

    The variables are, of all images, the parts that are read from the disk and the parts that are kept in memory, in
    each format, and the time per image, in `unit`. The reader keeps the same part of every format; what is relaxed is
    that here the parts may differ within the range.

    Returns None if no mix has such a hit ratio, as rounding errors make of a very narrow range.
    """

    def column(cost: str) -> np.ndarray:
        return np.array([getattr(each, cost) for each in costs.values()], dtype=float)

    load, decode = column("load_seconds") / unit, column("decode_seconds") / unit
    load_cpu = column("load_cpu_seconds") / (unit * conditions.cpus)
    decode_cpu = column("decode_cpu_seconds") / (unit * conditions.cpus)
    extra = column("extra_seconds") / unit
    memory = column("memory_bytes")
    available = conditions.cache_size / conditions.images
    scale = max(available, memory.min())  # the solver's tolerances are absolute
    size = _TIE * column("image_bytes") / column("image_bytes").max()
    room = 1.0  # on the disk, in parts of what all images take in the largest format
    if conditions.max_bytes is not None:
        room = min(conditions.max_bytes / (conditions.images * column("image_bytes").max()), 1.0)
    each, none = np.eye(len(costs)), np.zeros(len(costs))

    # By row: load, decode, cpu and copy take no more than the time, each with what formats take beyond them; what is
    # kept fits, and so do all files on the disk; hit ratios are within the range.
    solution = linprog(
        c=[*size, *size, 1.0],
        A_ub=np.block(
            [
                [load + extra, extra, -1.0],
                [decode + extra, decode + extra, -1.0],
                [load_cpu + decode_cpu + extra, decode_cpu + extra, -1.0],
                [extra, extra, -1.0],
                [none, memory / scale, 0.0],
                [size / _TIE, size / _TIE, 0.0],
                [low * each, (low - 1) * each, none[:, None]],
                [-high * each, (1 - high) * each, none[:, None]],
            ]
        ),
        b_ub=[0, 0, 0, -conditions.copy_seconds / unit, available / scale, room, *none, *none],
        A_eq=[[1.0] * (2 * len(costs)) + [0.0]],
        b_eq=[1],
        bounds=[(0, 1)] * (2 * len(costs)) + [(0, None)],
    )
    if not solution.success or solution.x is None or solution.fun is None:
        return None
    read, kept = solution.x[:-1].reshape(2, -1)
    shares = {name: share for name, share in zip(costs, read + kept, strict=True) if share > _NEGLIGIBLE}
    whole = sum(shares.values())
    return solution.fun, {name: float(share / whole) for name, share in shares.items()}


def fits(shares: Mapping[str, float], costs: Mapping[str, FormatCosts], conditions: Conditions) -> bool:
    """Whether the files take no more than the conditions allow."""
    size = conditions.images * sum(share * costs[name].image_bytes for name, share in shares.items())
    return conditions.max_bytes is None or size <= conditions.max_bytes * (1 + _NEGLIGIBLE)


def to_weights(shares: Mapping[str, float], costs: Mapping[str, FormatCosts], conditions: Conditions) -> dict[str, int]:
    """Positive integer weights for `shares`: tenths, as in the paper, or hundredths where tenths lose more than 2%."""
    conditions = dataclasses.replace(conditions, batches=None)
    wanted = predict(shares, costs, conditions).throughput
    tenths, reached = _round(shares, 10, costs, conditions)
    return tenths if reached >= (1 - _ROUNDING) * wanted else _round(shares, 100, costs, conditions)[0]


def _round(
    shares: Mapping[str, float], total: int, costs: Mapping[str, FormatCosts], conditions: Conditions
) -> tuple[dict[str, int], float]:
    """Of the ways to round shares of `total` up or down to integers with this sum, the fastest, and its throughput."""

    def throughput(weights: Mapping[str, int]) -> float:
        return predict({name: weight / total for name, weight in weights.items()}, costs, conditions).throughput

    exact = [share * total for share in shares.values()]
    roundings = itertools.product(*({math.floor(part), math.ceil(part)} for part in exact))
    choices = [
        {name: weight for name, weight in zip(shares, rounding, strict=True) if weight}
        for rounding in roundings
        if sum(rounding) == total
    ]

    def is_within(weights: Mapping[str, int]) -> bool:
        return fits({name: weight / total for name, weight in weights.items()}, costs, conditions)

    best = max(choices, key=lambda weights: (is_within(weights), throughput(weights)))
    return best, throughput(best)
