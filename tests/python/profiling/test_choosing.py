"""The choice of a mix: small enough, fast enough, and beaten by none."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from dali_l3.profiling.batch_model import Batches
from dali_l3.profiling.choosing import MARGINS, choose
from dali_l3.profiling.cost_model import Conditions, FormatCosts, predict

PNG = FormatCosts("png", 2.6e6, 2.6e6, 1 / 98, 1 / 51, 0.4e-3, 38e-3)
BMP = FormatCosts("bmp", 6.2e6, 6.2e6, 1 / 48, 1 / 650, 0.6e-3, 3e-3)
FAST = FormatCosts("l3-fast", 2.4e6, 2.4e6, 1 / 122, 1 / 3200, 0.4e-3, 0.6e-3)
RAW = FormatCosts("l3-raw", 6.2e6, 6.2e6, 1 / 125, 1 / 3300, 0.6e-3, 0.6e-3)
CONDITIONS = Conditions(1000, 0, 2, batches=Batches(16, 2))


def by_name(*costs):
    return {each.format: each for each in costs}


def grid(costs, conditions):
    """(throughput, bytes) of all mixes in tenths."""
    for tenths in itertools.product(range(11), repeat=len(costs)):
        if sum(tenths) == 10:
            shares = {name: tenth / 10 for name, tenth in zip(costs, tenths, strict=True) if tenth}
            size = conditions.images * sum(share * costs[name].image_bytes for name, share in shares.items())
            yield predict(shares, costs, conditions).throughput, round(size)


@pytest.mark.parametrize("prefer", ["speed", "space"])
@pytest.mark.parametrize("costs", [by_name(PNG, BMP), by_name(PNG, BMP, FAST)], ids=len)
@pytest.mark.parametrize(("memory", "budget"), [(0, None), (10**9, 4 * 10**9), (10**12, None)])
def test_the_smallest_within_the_margin_and_the_front_are_those_of_a_grid(costs, prefer, memory, budget):
    conditions = dataclasses.replace(CONDITIONS, cache_size=memory, max_bytes=budget)
    found = choose(costs, conditions, prefer=prefer)
    mixes = [mix for mix in grid(costs, conditions) if budget is None or mix[1] <= budget]
    best = max(mixes)[0]
    fastest = found.front[-1].prediction.throughput
    assert fastest >= best * (1 - 1e-9)
    assert found.margin == MARGINS[prefer]
    assert found.recommended.prediction.throughput >= (1 - found.margin) * fastest
    fast_enough = [size for speed, size in mixes if speed >= (1 - found.margin) * fastest]
    assert all(found.recommended.bytes <= size for size in fast_enough)
    assert budget is None or found.recommended.bytes <= budget
    assert found.recommended in found.front
    for mix in found.front:
        assert not any(speed > mix.prediction.throughput * (1 + 1e-9) and size < mix.bytes for speed, size in mixes)
    for small, large in itertools.pairwise(found.front):
        assert (small.bytes, small.prediction.throughput) < (large.bytes, large.prediction.throughput)
    assert len(found.front) <= 9


def test_a_gain_within_the_spread_is_none():
    """Raw files, a little faster in the measurements, are recommended only where these are exact."""
    raw = dataclasses.replace(RAW, decode_seconds=0.9 * FAST.decode_seconds, decode_cpu_seconds=0.0)
    fast = dataclasses.replace(FAST, load_seconds=1e-6, load_cpu_seconds=0.0, decode_cpu_seconds=0.0)
    raw = dataclasses.replace(raw, load_seconds=1e-6, load_cpu_seconds=0.0)
    costs = by_name(fast, raw)

    def recommended(spread):
        return choose(costs, CONDITIONS, dict.fromkeys(costs, spread), "speed").recommended.weights

    assert recommended(0.0).get("l3-raw", 0) >= 8
    assert recommended(0.15) == {"l3-fast": 1}


def test_what_is_preferred_decides_how_much_speed_may_go():
    sizes = {prefer: choose(by_name(PNG, BMP), CONDITIONS, prefer=prefer).recommended.bytes for prefer in MARGINS}
    assert sizes["space"] < sizes["speed"]


def test_where_nothing_fits_the_smallest_files():
    found = choose(by_name(PNG, BMP), dataclasses.replace(CONDITIONS, max_bytes=10**9))
    assert found.recommended.weights == {"png": 1}
    assert found.front == [found.recommended]


def test_formats_that_take_no_time():
    free = FormatCosts("free", 1e6, 1e6, 0.0, 0.0)
    found = choose(by_name(free, dataclasses.replace(free, format="large", image_bytes=2e6)), CONDITIONS)
    assert found.recommended.weights == {"free": 1}
