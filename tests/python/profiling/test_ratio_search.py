"""The paper's search for a ratio of two formats, on simulated machines."""

from __future__ import annotations

import functools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dali_l3.profiling.mixing_program import best_shares
from dali_l3.profiling.ratio_search import TENTHS, search_ratio
from simulated_machine import Machine

INFINITE = float("inf")


def fastest(curves):
    """The highest throughput of all ratios."""
    return max(min(curve) for curve in curves)


def search(curves):
    """Searches on (load, decode) by tenths of encoded images; returns what was found and the ratios measured."""
    measured = []

    def measure(tenths):
        measured.append(tenths)
        return curves[tenths]

    return search_ratio(measure), measured


def speeds(least=1, most=1000):
    return st.lists(st.floats(least, most), min_size=TENTHS + 1, max_size=TENTHS + 1, unique=True).map(sorted)


@given(speeds(), speeds())
def test_finds_the_balance_in_six_measurements(load, decode):
    """The more images are encoded, the faster is loading and the slower decoding."""
    curves = list(zip(load, reversed(decode), strict=True))
    found, measured = search(curves)
    assert found.best.throughput == fastest(curves)
    assert len(measured) <= 6
    assert len(set(measured)) == len(measured)
    assert [step.encoded for step in found.steps] == measured


@given(speeds(), speeds())
def test_finds_the_best_of_a_pair_with_a_useless_format(load, decode):
    """One of the formats both loads and decodes faster, so that there is no balance."""
    rising = list(zip(load, decode, strict=True))
    assert search(rising)[0].best.encoded == TENTHS
    assert search(rising[::-1])[0].best.encoded == 0


@pytest.mark.parametrize(
    ("load", "decode", "measured"),
    [
        pytest.param(1, 100, [5, 7, 8, 9, 10], id="loading slower: more encoded images"),
        pytest.param(100, 1, [5, 2, 1, 0], id="decoding slower: fewer"),
        pytest.param(INFINITE, 1, [5, 2, 1, 0], id="all in memory: none"),
    ],
)
def test_direction(load, decode, measured):
    """The curves never meet, so that the search ends at an end; the paper's text would lead to the other one."""
    curves = [(load * (10 + tenths), decode * (30 - tenths)) for tenths in range(TENTHS + 1)]
    found, order = search(curves)
    assert order == measured
    assert found.best.encoded == measured[-1]
    assert found.best.throughput == fastest(curves)


def test_steps_are_those_of_a_binary_search():
    curves = [(10 * (tenths + 1), 10 * (TENTHS + 1) - 10 * tenths - 41) for tenths in range(TENTHS + 1)]
    found, order = search(curves)
    assert order[: found.halvings] == [5, 2, 3]
    assert [step.ratio for step in found.steps[: found.halvings]] == ["5:5", "2:8", "3:7"]
    assert found.best.ratio == "3:7"
    assert {2, 4} <= set(order)


@given(st.lists(st.tuples(st.floats(1, 100), st.floats(1, 100)), min_size=11, max_size=11))
def test_ends_with_a_ratio_better_than_its_neighbours_whatever_is_measured(curves):
    found, measured = search(curves)
    assert len(set(measured)) == len(measured) <= TENTHS + 1
    for neighbour in (found.best.encoded - 1, found.best.encoded + 1):
        if 0 <= neighbour <= TENTHS:
            assert neighbour in measured
            assert min(curves[neighbour]) <= found.best.throughput


@given(st.integers(0, 2**32), st.floats(0, 0.05))
def test_noise_costs_no_more_than_its_size(seed, noise):
    rng = random.Random(seed)
    curves = [(20 + 10 * tenths, 150 - 10 * tenths) for tenths in range(TENTHS + 1)]
    noisy = [tuple(speed * rng.uniform(1 - noise, 1 + noise) for speed in pair) for pair in curves]
    found, _ = search(noisy)
    assert min(curves[found.best.encoded]) >= fastest(curves) * (1 - noise) / (1 + noise) - 1e-9


def test_of_equally_fast_ratios_the_one_with_smaller_files():
    assert search([(10, 10)] * (TENTHS + 1))[0].best.encoded == TENTHS


@given(
    st.floats(50, 3000),
    st.sampled_from([1, 2, 8, 32]),
    st.floats(0, 1.2),
    st.floats(1, 5),
    st.floats(1.2, 4),
    st.floats(1, 20),
    st.floats(1.2, 20),
)
def test_agrees_with_the_program(disk, cpus, cached, size, larger, decode, slower):
    """The search measures at every ratio, the program knows each format's costs only."""
    images = 1000
    machine = Machine(disk, cpus, memory=cached * size * images, images=images)
    costs = {"encoded": machine.costs(size, decode * slower), "raw": machine.costs(size * larger, decode)}
    found = search_ratio(functools.partial(machine.measure, costs["encoded"], costs["raw"]))
    share = best_shares(costs, machine.conditions).get("encoded", 0.0)
    assert abs(found.best.encoded / TENTHS - share) <= 0.1 + 0.01
