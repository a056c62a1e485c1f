"""The model of batches against simulations that follow every thread and every batch through time."""

from __future__ import annotations

import dataclasses
import heapq
import json
import random
import statistics
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dali_l3.profiling.batch_model import Batches, makespans, simulate, steady_seconds
from dali_l3.profiling.cost_model import Conditions, FormatCosts, predict

SECONDS = st.floats(0.001, 1)
DURATIONS = st.integers(0, 6)


def time_of_batch(images, threads):
    """Each thread, as soon as it is idle, takes the next image."""
    idle_at = [0.0] * threads
    for seconds in images:
        heapq.heappush(idle_at, heapq.heappop(idle_at) + seconds)
    return max(idle_at)


@given(st.lists(SECONDS, min_size=1, max_size=20), st.integers(1, 24))
def test_a_batch_ends_with_its_last_thread(images, threads):
    (found,) = makespans(np.array([images]), threads)
    assert found == pytest.approx(time_of_batch(images, threads))


def ends_tick_by_tick(loading, decoding):
    """When each batch is decoded: a loader and a decoder side by side, with at most three batches between them."""
    times = list(zip(loading, decoding, strict=True))
    coming, loaded, ends = list(range(len(times))), [], []
    at_loader, at_decoder = None, None  # a batch, and when it is done
    now = 0
    while len(ends) < len(times):
        moved = True
        while moved:  # all that happens at this time
            moved = False
            if at_decoder and at_decoder[1] == now:
                ends.append(now)
                at_decoder, moved = None, True
            if at_loader and at_loader[1] == now:
                loaded.append(at_loader[0])
                at_loader, moved = None, True
            if not at_decoder and loaded:
                batch = loaded.pop(0)
                at_decoder, moved = (batch, now + times[batch][1]), True
            if not at_loader and coming and coming[0] - len(ends) < 3:
                batch = coming.pop(0)
                at_loader, moved = (batch, now + times[batch][0]), True
        now += 1
    return ends


@given(st.lists(st.tuples(DURATIONS, DURATIONS), min_size=2, max_size=40))
def test_loading_and_decoding_wait_for_each_other(batches):
    loading, decoding = zip(*batches, strict=True)
    ends = ends_tick_by_tick(loading, decoding)
    skipped = len(ends) // 10
    expected = (ends[-1] - ends[skipped]) / (len(ends) - 1 - skipped)
    assert steady_seconds(loading, decoding) == pytest.approx(expected)


def brute_force(shares, load, decode, turns, batches):
    """Seconds per image of two formats: the readers give every batch the same share of each, rounded up or down."""
    draws, count = random.Random(7), max(4000, 100_000 // batches.size)

    def time_in_order(images):
        """Of (turn, pixels, seconds per pixel), sorted as nvImageCodec does."""
        images = sorted(images, key=lambda image: (image[0], -image[1]))
        return time_of_batch([pixels * seconds for _, pixels, seconds in images], batches.threads)

    def pixels():
        return draws.choices(batches.pixels, k=batches.size)

    alone = statistics.fmean(time_in_order([(0, size, 1) for size in pixels()]) for _ in range(count))
    per_pixel = batches.size / alone
    loading, decoding = [], []
    first, second = shares
    exact = shares[first] * batches.size
    for _ in range(count):
        firsts = int(exact) + (draws.random() < exact - int(exact))
        names = [first] * firsts + [second] * (batches.size - firsts)
        draws.shuffle(names)
        images = [(turns[name], size, decode[name] * per_pixel) for name, size in zip(names, pixels(), strict=True)]
        loading.append(sum(load[name] for name in names))
        decoding.append(time_in_order(images))
    ends, loaded = [0.0] * 3, 0.0
    for load_seconds, decode_seconds in zip(loading, decoding, strict=True):
        loaded = max(loaded, ends[-3]) + load_seconds
        ends.append(max(ends[-1], loaded) + decode_seconds)
    return statistics.fmean(decoding) / batches.size, ends[-1] / count / batches.size


PNG_AND_BMP = {"png": 1 / 50, "bmp": 1 / 600}


@pytest.mark.parametrize("png", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("turns", [{"png": 0, "bmp": 0}, {"png": 1, "bmp": 0}, {"png": 1, "bmp": 2}], ids=str)
@pytest.mark.parametrize(
    "batches",
    [
        Batches(16, 2),
        Batches(16, 8, tuple(np.linspace(0.2, 1.8, 24))),
        Batches(64, 4, (1.0, 1.0, 1.0, 8.0)),
        Batches(3, 8),
    ],
    ids=["two threads", "sizes", "few large", "more threads than images"],
)
def test_mixes_take_the_time_of_batches_drawn_at_random(batches, turns, png):
    shares = {"png": png, "bmp": 1 - png}
    load = {"png": 1 / 100, "bmp": 1 / 48}
    found = simulate(shares, load, PNG_AND_BMP, turns, batches)
    assert found == pytest.approx(brute_force(shares, load, PNG_AND_BMP, turns, batches), rel=0.025)


def test_slow_images_are_better_handed_out_first():
    """Two threads, and of every batch two images that take as long as all others together."""
    shares, decode, batches = {"slow": 0.125, "quick": 0.875}, {"slow": 7.0, "quick": 1.0}, Batches(16, 2)
    free = dict.fromkeys(shares, 0.0)
    first, last = ({"slow": turn, "quick": 1} for turn in (0, 2))
    assert simulate(shares, free, decode, first, batches)[0] == pytest.approx(28 / 16)  # a thread takes twice as long
    assert simulate(shares, free, decode, last, batches)[0] == pytest.approx(28 / 16)
    one = {"slow": 0.0625, "quick": 0.9375}  # of which one thread has 14, and the quick ones take 30 together
    assert simulate(one, free, decode, first, batches)[0] == pytest.approx(22 / 16)
    assert simulate(one, free, decode, last, batches)[0] == pytest.approx(28 / 16)


@pytest.mark.parametrize("size", [1, 7, 16, 300])
@pytest.mark.parametrize("threads", [1, 2, 64])
def test_a_format_alone_takes_what_was_measured(size, threads):
    batches = Batches(size, threads, (1.0, 5.0, 2.0))
    decoding, both = simulate({"png": 1.0}, {"png": 0.0}, {"png": 0.02}, {"png": 0}, batches)
    assert decoding == pytest.approx(0.02)
    assert both == pytest.approx(0.02, rel=0.05)


def test_one_thread_never_waits_for_others():
    free, turns = dict.fromkeys(PNG_AND_BMP, 0.0), {"png": 0, "bmp": 1}
    decoding, _ = simulate({"png": 0.3, "bmp": 0.7}, free, PNG_AND_BMP, turns, Batches(16, 1))
    assert decoding == pytest.approx(0.3 * 0.02 + 0.7 / 600, rel=1e-3)


def test_predictions_know_that_threads_wait_and_stages_too():
    """The few slow images of a batch of fast ones; and loading and decoding that take equally long on average."""
    costs = {
        "png": FormatCosts("png", 1e6, 1e6, 1 / 100, 1 / 50, 0.0, 0.0),
        "bmp": FormatCosts("bmp", 1e6, 1e6, 1 / 100, 1 / 600, 0.0, 0.0),
    }
    averages, batches = Conditions(1000, 0, 2), Conditions(1000, 0, 2, batches=Batches(16, 2))
    shares = {"png": 0.2, "bmp": 0.8}
    linear, found = (predict(shares, costs, conditions) for conditions in (averages, batches))
    assert found.seconds["decode"] > 1.05 * linear.seconds["decode"]
    assert found.seconds["load"] == linear.seconds["load"]
    costs["png"] = dataclasses.replace(costs["png"], load_seconds=1 / 50)
    uneven = dataclasses.replace(batches, batches=Batches(16, 2, (1.0,) * 31 + (20.0,)))
    balanced = predict({"png": 1.0}, costs, uneven)
    assert balanced.seconds["load"] == pytest.approx(balanced.seconds["decode"])
    assert balanced.waiting > 0.03 * balanced.seconds[balanced.limit]
    assert balanced.throughput == pytest.approx(1 / (balanced.seconds[balanced.limit] + balanced.waiting))
    assert predict({"png": 1.0}, costs, batches).throughput == pytest.approx(50, rel=1e-3)


def test_mixes_that_were_measured_are_predicted_better_than_by_averages():
    """The costs and mixes of PNG, BMP and L3 at several speeds of the disk that the benchmark of the profiler found."""
    document = json.loads((Path(__file__).parents[3] / "benchmarks" / "results" / "profiler.json").read_text())
    batches = Batches(document["settings"]["batch_size"], document["settings"]["threads"])
    errors = {batches: [], None: []}
    for rate in document["rates"].values():
        costs = {name: costs_of(name, rate["formats"]) for name in rate["formats"][0]}
        memory = rate["mixes"]["PNG"]["predicted_hit_ratio"] * costs["png"].memory_bytes
        for mix in rate["mixes"].values():
            shares = {name: weight / sum(mix["weights"].values()) for name, weight in mix["weights"].items()}
            for each, found in errors.items():
                conditions = Conditions(1000, int(1000 * memory), 2, batches=each)
                found.append(abs(predict(shares, costs, conditions).throughput / mix["measured"] - 1))

    def within(error, batches):
        return statistics.fmean(each <= error for each in errors[batches])

    assert within(0.05, batches) > max(0.85, within(0.05, None))
    assert within(0.1, batches) > max(0.95, within(0.1, None))


def costs_of(name, rounds):
    size, load, decode, load_cpu, decode_cpu = (
        statistics.median(formats[name][figure] for formats in rounds)
        for figure in ("image_bytes", "load", "decode", "load_cpu_ms", "decode_cpu_ms")
    )
    turn = rounds[0][name].get("turn", 0)
    return FormatCosts(name, size, size, 1 / load, 1 / decode, load_cpu / 1e3, decode_cpu / 1e3, turn)
