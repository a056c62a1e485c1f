"""The best mix of formats on simulated machines, against trying a fine grid of mixes."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dali_l3.profiling.batch_model import Batches
from dali_l3.profiling.cost_model import Conditions, FormatCosts, hit_ratio, predict
from dali_l3.profiling.mixing_program import best_shares, to_weights
from simulated_machine import Machine

CLOSE = 0.996  # of the best throughput: the smaller of mixes that are nearly as fast is taken
IMAGES = 1000
GRID_STEPS = {1: 1, 2: 400, 3: 60}  # by number of formats

fewer_examples = settings(max_examples=50)  # each solves linear programs


def powers_of_ten(low, high):
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


def format_costs(seconds, sizes):
    """Any format with such times and sizes."""
    extra = st.just(0.0) | seconds
    return st.builds(FormatCosts, st.just(""), sizes, sizes, *[seconds] * 4, st.just(0), extra)


ANY_FORMAT = format_costs(powers_of_ten(-6, 1) | st.just(0.0), powers_of_ten(3, 8))
USUAL_FORMAT = format_costs(powers_of_ten(-3, -1), powers_of_ten(5.5, 7))


def by_name(formats):
    return {f"format {number}": costs for number, costs in enumerate(formats)}


@st.composite
def problems(draw, formats, least=1):
    """Formats and conditions: a cache from nothing to more than all, limits by CPUs and by copying, or not."""
    costs = by_name(draw(st.lists(formats, min_size=least, max_size=3)))
    largest = max(each.memory_bytes for each in costs.values())
    cached = draw(st.sampled_from([0.0, 0.3, 1.5]) | st.floats(0, 1.2))
    copy = draw(st.just(0.0) | powers_of_ten(-4, -1))
    cpus = draw(st.sampled_from([1, 2, 64]))
    return costs, Conditions(IMAGES, int(cached * largest * IMAGES), cpus, copy)


def throughput(shares, costs, conditions):
    return predict(shares, costs, conditions).throughput


def compositions(total, parts):
    """All ways to write `total` as a sum of `parts` numbers: (N, parts)."""
    bars = itertools.combinations(range(total + parts - 1), parts - 1)
    return np.array([np.diff([-1, *bar, total + parts - 1]) - 1 for bar in bars])


def best_of_grid(costs, conditions):
    """The highest throughput on a grid of mixes. States the model a second time, for many mixes at once."""
    shares = compositions(GRID_STEPS[len(costs)], len(costs)) / GRID_STEPS[len(costs)]
    table = np.array([dataclasses.astuple(each)[2:7] for each in costs.values()])
    memory, load, decode, load_cpu, decode_cpu = (shares @ table).T
    misses = np.maximum(1 - conditions.cache_size / memory / conditions.images, 0)
    cpu = (misses * load_cpu + decode_cpu) / conditions.cpus
    seconds = np.max([misses * load, decode, cpu, np.full(len(cpu), conditions.copy_seconds)], axis=0)
    seconds += shares @ [each.extra_seconds for each in costs.values()]
    if conditions.max_bytes is not None:
        seconds[IMAGES * shares @ [each.image_bytes for each in costs.values()] > conditions.max_bytes] = math.inf
    return 1 / seconds.min() if seconds.min() else math.inf


def check_against_grid(problem):
    shares = best_shares(*problem)
    assert sum(shares.values()) == pytest.approx(1)
    assert all(share > 0 for share in shares.values())
    assert throughput(shares, *problem) >= CLOSE * best_of_grid(*problem)


@given(problems(USUAL_FORMAT))
@fewer_examples
def test_no_mix_of_a_grid_is_faster(problem):
    check_against_grid(problem)


@given(problems(ANY_FORMAT))
@fewer_examples
def test_no_mix_of_a_grid_is_faster_whatever_the_costs_are(problem):
    check_against_grid(problem)


@given(problems(USUAL_FORMAT), st.floats(0, 1.1))
@fewer_examples
def test_no_mix_of_a_grid_is_faster_within_a_budget(problem, budget):
    """From the smallest files to more than the largest take."""
    costs, conditions = problem
    sizes = [IMAGES * each.image_bytes for each in costs.values()]
    most = math.ceil(min(sizes) + budget * (max(sizes) - min(sizes)))
    conditions = dataclasses.replace(conditions, max_bytes=most)
    check_against_grid((costs, conditions))
    shares = best_shares(costs, conditions)
    weights = to_weights(shares, costs, conditions)
    for parts in (shares, weights):
        whole = sum(parts.values())
        assert sum(IMAGES * part / whole * costs[name].image_bytes for name, part in parts.items()) <= most * (1 + 2e-6)


def test_a_budget_that_nothing_fits_leaves_the_smallest_files():
    costs = {"slow": FormatCosts("", 1e6, 1e6, 1, 1), "fast": FormatCosts("", 2e6, 2e6, 0.1, 0.1)}
    assert best_shares(costs, Conditions(IMAGES, 0, 1, max_bytes=int(0.9e6 * IMAGES))) == {"slow": 1.0}
    assert best_shares(costs, Conditions(IMAGES, 0, 1)) == {"fast": 1.0}


def test_time_with_two_minima_along_the_hit_ratio():
    """The small format is all in memory, and the large one not decoded: either alone beats what is between."""
    costs = {
        "small": FormatCosts("", 1e6, 1e6, 0, 0, 0.010, 0.010),
        "large": FormatCosts("", 9e6, 9e6, 0, 0, 0.012, 0.0),
    }
    conditions = Conditions(IMAGES, int(1e6 * IMAGES), 1)
    mixes = [{"small": share, "large": 1 - share} for share in (0.0, 0.5, 1.0)]
    large, between, small = (throughput(mix, costs, conditions) for mix in mixes)
    assert small < 1.1 * large
    assert between < 0.95 * min(small, large)
    assert best_shares(costs, conditions) == {"small": 1.0}


def test_no_format():
    with pytest.raises(ValueError, match="no formats"):
        best_shares({}, Conditions(IMAGES, 0, 1))


@given(problems(ANY_FORMAT))
@fewer_examples
def test_one_format_is_all_there_is(problem):
    costs, conditions = problem
    assert best_shares({"only": costs["format 0"]}, conditions) == {"only": 1.0}


@given(problems(USUAL_FORMAT, least=2), st.floats(1.05, 10))
@fewer_examples
def test_a_format_that_is_worse_in_everything_has_no_share(problem, worse):
    costs, conditions = problem
    first = costs["format 0"]
    values = dataclasses.astuple(first)[1:]
    costs = {"useless": FormatCosts("", *(value * worse for value in values)), **costs}
    assert "useless" not in best_shares(costs, conditions)


@pytest.mark.parametrize("cached", [0.0, 0.3, 2.0])
def test_of_equal_formats_the_one_with_smaller_files(cached):
    costs = FormatCosts("", 2e6, 2e6, 0.01, 0.01, 0.001, 0.01)
    smaller = dataclasses.replace(costs, image_bytes=1.9e6)
    conditions = Conditions(IMAGES, int(cached * 2e6 * IMAGES), 2)
    for formats in ({"a": costs, "b": smaller}, {"b": smaller, "a": costs}):
        assert best_shares(formats, conditions) == {"b": 1.0}


def test_where_copying_limits_the_smallest_files():
    machine = Machine(disk=2000)
    costs = {"bmp": machine.costs(6.2, 1), "l3": machine.costs(2.4, 5), "webp": machine.costs(2.1, 90)}
    conditions = dataclasses.replace(machine.conditions, copy_seconds=0.01)
    shares = best_shares(costs, conditions)
    assert predict(shares, costs, conditions).limit == "copy"
    # WebP by itself would be too slow; with as much of it as copying allows, the files are smallest.
    assert shares == {"webp": pytest.approx((10 - 2.5) / (45 - 2.5), abs=1e-3), "l3": pytest.approx(0.824, abs=1e-3)}


@given(problems(USUAL_FORMAT))
@fewer_examples
def test_memory_for_all_makes_loading_free(problem):
    costs, conditions = problem
    costs = {name: dataclasses.replace(each, extra_seconds=0.0) for name, each in costs.items()}
    largest = max(each.memory_bytes for each in costs.values())
    conditions = dataclasses.replace(conditions, cache_size=math.ceil(largest * IMAGES), cpus=10**6)
    found = predict(best_shares(costs, conditions), costs, conditions)
    assert found.hit_ratio == 1
    assert found.throughput_of("load") == math.inf
    fastest = max(min(each.decode_seconds for each in costs.values()), conditions.copy_seconds)
    assert found.throughput == pytest.approx(1 / fastest, rel=1 - CLOSE)


@given(problems(ANY_FORMAT), st.integers(-20, 20), st.integers(-3, 10))
@fewer_examples
def test_units_do_not_matter(problem, time_exponent, size_exponent):
    """Powers of two, which round nothing."""
    costs, conditions = problem
    conditions = dataclasses.replace(conditions, cache_size=conditions.cache_size // 8 * 8)
    time, size = 2.0**time_exponent, 2.0**size_exponent
    scaled = {
        name: FormatCosts("", *(value * size for value in values[1:3]), *(value * time for value in values[3:]))
        for name, values in ((name, dataclasses.astuple(each)) for name, each in costs.items())
    }
    larger = dataclasses.replace(
        conditions, cache_size=int(conditions.cache_size * size), copy_seconds=conditions.copy_seconds * time
    )
    assert best_shares(scaled, larger) == best_shares(costs, conditions)


# ---- Weights ---------------------------------------------------------------------------------------------------------


def loses_more_than_2_percent(weights, shares, problem):
    rounded = {name: weight / sum(weights.values()) for name, weight in weights.items()}
    return throughput(rounded, *problem) < 0.98 * throughput(shares, *problem)


def roundings(shares, total):
    """All weights summing to `total` that are shares of it, rounded up or down."""
    sides = [range(math.floor(share * total), math.ceil(share * total) + 1) for share in shares.values()]
    for weights in itertools.product(*sides):
        if sum(weights) == total:
            yield dict(zip(shares, weights, strict=True))


@given(problems(USUAL_FORMAT), st.data())
def test_weights_are_tenths_that_lose_little_or_else_hundredths(problem, data):
    costs, _ = problem
    parts = data.draw(st.lists(st.floats(0.001, 1), min_size=len(costs), max_size=len(costs)))
    shares = {name: part / sum(parts) for name, part in zip(costs, parts, strict=True)}
    weights = to_weights(shares, *problem)
    assert all(isinstance(weight, int) and weight > 0 for weight in weights.values())
    total = sum(weights.values())
    assert all(abs(weights.get(name, 0) - share * total) < 1 + 1e-9 for name, share in shares.items())
    if total == 10:
        assert not loses_more_than_2_percent(weights, shares, problem)
    else:
        assert total == 100
        assert all(loses_more_than_2_percent(tenths, shares, problem) for tenths in roundings(shares, 10))


@pytest.mark.parametrize(
    ("decode", "weights"),
    [
        pytest.param(0.98, {"encoded": 5, "raw": 5}, id="a balance at 5.05 tenths: 5 lose 1%"),
        pytest.param(0.94, {"encoded": 52, "raw": 48}, id="a balance at 5.15 tenths: 5 lose 3%"),
    ],
)
def test_tenths_as_long_as_they_lose_little(decode, weights):
    costs = {"encoded": FormatCosts("", 1e6, 1e6, 0, decode), "raw": FormatCosts("", 1e6, 1e6, 1.0, 0)}
    conditions = Conditions(IMAGES, 0, 1)
    assert to_weights(best_shares(costs, conditions), costs, conditions) == weights


def test_of_the_roundings_the_fastest_rather_than_the_nearest():
    """A balance at 8.7 hundredths of a format that decodes very slowly: 9 loses more than 8."""
    costs = {"encoded": FormatCosts("", 1e3, 1e3, 0, 10.5), "raw": FormatCosts("", 1e6, 1e6, 1.0, 0)}
    conditions = Conditions(IMAGES, 0, 1)
    shares = best_shares(costs, conditions)
    assert shares["encoded"] == pytest.approx(1 / 11.5, abs=1e-3)
    assert to_weights(shares, costs, conditions) == {"encoded": 8, "raw": 92}


# ---- The paper's cases, and a study's table --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "raw_share"),
    [
        pytest.param(Machine(disk=2000, cpus=1), (0.8, 1.0), id="decode-bound: mostly raw"),
        pytest.param(Machine(disk=250, cpus=16), (0.0, 0.2), id="load-bound: mostly encoded"),
        pytest.param(Machine(disk=400, cpus=2), (0.3, 0.7), id="balanced: both"),
    ],
)
def test_cases_of_the_paper(machine, raw_share):
    costs = {"png": machine.costs(2.6, 40), "bmp": machine.costs(6.2, 1)}
    assert raw_share[0] <= best_shares(costs, machine.conditions).get("bmp", 0.0) <= raw_share[1]


@pytest.mark.parametrize(
    ("disk", "weights", "gain"),
    [(150, {"png": 7, "bmp": 3}, 1.2), (300, {"png": 3, "bmp": 7}, 1.8), (800, {"bmp": 10}, 3.4)],
)
def test_table_of_the_study(disk, weights, gain):
    """PNG and BMP of FHD photographs on two cores, with memory for 30% of the mix: what measurements have found."""
    size = sum(weight * {"png": 2.6, "bmp": 6.2}[name] for name, weight in weights.items()) / 10
    machine = Machine(disk, cpus=2, memory=0.3 * size * IMAGES, images=IMAGES)
    costs = {"png": machine.costs(2.6, 42.5), "bmp": machine.costs(6.2, 12.6)}
    found = to_weights(best_shares(costs, machine.conditions), costs, machine.conditions)
    total = sum(found.values())
    for name in costs:
        assert found.get(name, 0) / total == pytest.approx(weights.get(name, 0) / 10, abs=0.05)
    reached = throughput({name: weight / total for name, weight in found.items()}, costs, machine.conditions)
    assert reached * costs["png"].decode_seconds == pytest.approx(gain, rel=0.05)


# ---- The model -------------------------------------------------------------------------------------------------------


def test_prediction():
    costs = {
        "a": FormatCosts("", 2e6, 4e6, 0.010, 0.040, 0.001, 0.080),
        "b": FormatCosts("", 8e6, 8e6, 0.030, 0.020, 0.003, 0.020),
    }
    found = predict({"a": 0.5, "b": 0.5}, costs, Conditions(100, int(150e6), 4, copy_seconds=0.015))
    assert found.hit_ratio == pytest.approx(0.25)
    assert found.seconds == pytest.approx(
        {"load": 0.75 * 0.020, "decode": 0.030, "cpu": (0.75 * 0.002 + 0.050) / 4, "copy": 0.015}
    )
    assert found.limit == "decode"
    assert found.throughput == pytest.approx(1 / 0.030)
    assert found.throughput_of("copy") == pytest.approx(1 / 0.015)


@pytest.mark.parametrize("batches", [None, Batches(16, 2)])
def test_what_formats_take_beyond_their_stages_comes_on_top(batches):
    costs = {
        "a": FormatCosts("", 2e6, 4e6, 0.010, 0.040, extra_seconds=0.004),
        "b": FormatCosts("", 8e6, 8e6, 0.030, 0.020),
    }
    conditions = Conditions(100, 0, 4, batches=batches)
    without = {name: dataclasses.replace(each, extra_seconds=0.0) for name, each in costs.items()}
    for share in (0.0, 0.25, 1.0):
        mix = {"a": share, "b": 1 - share}
        found, before = predict(mix, costs, conditions), predict(mix, without, conditions)
        assert 1 / found.throughput == pytest.approx(1 / before.throughput + share * 0.004)
        assert (found.seconds, found.limit) == (before.seconds, before.limit)


@pytest.mark.parametrize(("cache", "expected"), [(0, 0.0), (5 * 10**8, 0.5), (10**9, 1.0), (10**12, 1.0)])
def test_hit_ratio(cache, expected):
    costs = {"a": FormatCosts("", 1e6, 1e6, 0.01, 0.01)}
    assert hit_ratio({"a": 1.0}, costs, Conditions(1000, cache, 1)) == pytest.approx(expected)
