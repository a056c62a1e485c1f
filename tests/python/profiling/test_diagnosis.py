"""What the profiler tells from measurements: the stage that limits, the times of batches, their spikes."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dali_l3.profiling import diagnosis
from dali_l3.profiling.diagnosis import batch_times, limiting_stage
from dali_l3.profiling.measuring import Measurement, Setting, Throughput, memory_bytes

TIMES = st.lists(st.floats(1e-4, 10), min_size=1, max_size=200)


@pytest.mark.parametrize(
    ("synthetic", "memory", "page_cache", "disk", "limit"),
    [
        pytest.param(None, 20, 20, 50, "disk", id="the disk"),
        pytest.param(None, 20, 30, 30, "read", id="the reader"),
        pytest.param(None, 20, 20, 20, "decode", id="decoding"),
        pytest.param(5, 20, 20, 20, "decode", id="decoding, with a short training step"),
        pytest.param(50, 50, 50, 50, "step", id="the training step, which hides all others"),
        pytest.param(50, 50, 50, 80, "disk", id="the disk, in spite of a long training step"),
        pytest.param(50, 50, 80, 80, "read", id="the reader, in spite of a long training step"),
        pytest.param(None, 20, 30, 50, "disk", id="each part is slower than the one before: the last"),
        pytest.param(19, 20, 21, 22, "step", id="small differences are noise"),
        pytest.param(50, 48, 47, 49, "step", id="so are stages that get faster"),
    ],
)
def test_limiting_stage(synthetic, memory, page_cache, disk, limit):
    seconds = {"memory": memory, "page cache": page_cache, "disk": disk}
    if synthetic:
        seconds["synthetic"] = synthetic
    assert limiting_stage(seconds) == limit


def stub_measurements(monkeypatch, disk=50.0, new_memory=0.0, kept=50.0):
    """Measurements have what they are given, in images/s, else 50; no process is started."""

    def measured(speed, new_memory=0.0):
        throughput = Throughput(speed, speed, speed)
        return lambda *arguments, **keywords: Measurement(throughput, 1e-3, [0.1] * 8, new_memory)

    monkeypatch.setattr(diagnosis, "call_isolated", lambda function, *rest, **keywords: function(*rest, **keywords))
    monkeypatch.setattr(diagnosis, "measure", measured(50, new_memory))
    monkeypatch.setattr(diagnosis, "measure_keeping_memory", measured(kept))
    monkeypatch.setattr(diagnosis, "measure_file_reader", measured(50))
    monkeypatch.setattr(diagnosis, "measure_file_reader_cold", measured(disk))


@pytest.mark.parametrize(
    ("in_memory", "limit", "now"),
    [pytest.param(False, "disk", 20, id="no"), pytest.param(True, "decode", 50, id="yes")],
)
def test_the_disk_does_not_count_where_memory_holds_the_dataset(monkeypatch, in_memory, limit, now):
    stub_measurements(monkeypatch, disk=20)
    found = diagnosis.diagnose([], [], Setting(16, 2), 2, in_memory)
    assert [stage.name for stage in found.stages] == ["memory", "page cache", "disk"]
    assert (found.limit, found.now.mean) == (limit, now)
    told = any("only the first epoch comes from the disk, at 20 images/s" in each for each in found.findings)
    assert told == in_memory


@pytest.mark.parametrize(
    ("new_memory", "kept", "told"),
    [
        pytest.param(12e6, 80, True, id="it gains much"),
        pytest.param(12e6, 52, False, id="it gains nothing"),
        pytest.param(1e5, 80, False, id="it returns little"),
    ],
)
def test_memory_that_the_c_library_returns_is_a_finding(monkeypatch, new_memory, kept, told):
    stub_measurements(monkeypatch, new_memory=new_memory, kept=kept)
    finding = (
        "returns 12 MB of memory to the system and takes it again. With MALLOC_MMAP_THRESHOLD_=33554432 "
        "MALLOC_TRIM_THRESHOLD_=268435456 in the environment it keeps the memory, and decoding reaches 80 instead of "
        "50 images/s."
    )
    findings = diagnosis.diagnose([], [], Setting(16, 2), 2).findings
    assert any(finding in each for each in findings) == told
    assert any("MALLOC" in each for each in findings) == told


# ---- Times of batches ------------------------------------------------------------------------------------------------


@given(TIMES)
def test_percentiles_are_within_the_times(seconds):
    times = batch_times(seconds)
    assert times.p50 == pytest.approx(statistics.median(seconds))
    slack = 1 + 1e-9
    assert min(seconds) <= times.p50 * slack
    assert times.p50 <= times.p95 * slack
    assert times.p95 <= times.p99 * slack
    assert times.p99 <= max(seconds) * slack


def test_percentiles():
    times = batch_times([number / 100 for number in range(101)])
    assert (times.p50, times.p95, times.p99) == pytest.approx((0.50, 0.95, 0.99))


@pytest.mark.parametrize("period", [2, 4, 7])
def test_regular_spikes(period):
    seconds = [1.0 if number % period else 5.0 for number in range(1, 10 * period + 1)]
    if period == 2:  # else the median is half a spike
        seconds += [1.0] * 3
    times = batch_times(seconds)
    assert times.spikes == 10
    assert times.period == period


def test_regular_spikes_of_which_some_are_missing():
    spikes = [number for number in range(4, 80, 4) if number not in (24, 52)]
    times = batch_times([5.0 if number in spikes else 1.0 for number in range(80)])
    assert (times.spikes, times.period) == (len(spikes), 4)


@pytest.mark.parametrize(
    ("spikes", "count"),
    [
        pytest.param([], 0, id="none"),
        pytest.param([10, 20, 30], 3, id="too few to tell"),
        pytest.param([3, 10, 12, 25, 31, 50, 51, 70], 8, id="at any distance"),
        pytest.param([40, 41, 42, 43, 44], 5, id="one after another: a pause"),
    ],
)
def test_irregular_spikes(spikes, count):
    times = batch_times([3.0 if number in spikes else 1.0 + 0.9 * (number % 4 == 0) for number in range(80)])
    assert (times.spikes, times.period) == (count, None)


# ---- Throughput ------------------------------------------------------------------------------------------------------


@given(TIMES, st.integers(1, 64))
def test_throughput_is_within_that_of_the_batches(seconds, batch_size):
    found = Throughput.of(seconds, batch_size)
    slack = 1 + 1e-9
    assert batch_size / max(seconds) <= found.low * slack
    assert found.low <= found.mean * slack
    assert found.mean <= found.high * slack
    assert found.high <= batch_size / min(seconds) * slack


def test_throughput_has_the_quartiles_of_windows():
    windows = [0.1, 0.2, 0.1, 0.2, 0.2, 0.1, 0.3, 0.2]  # seconds of a batch
    found = Throughput.of([seconds for seconds in windows for _ in range(5)], 10)
    assert found.low == pytest.approx(10 / 0.2)
    assert found.high == pytest.approx(10 / 0.1)


@given(TIMES)
def test_throughput_is_the_slope_of_the_least_squares_line(seconds):
    found = Throughput.of(seconds, 10)
    ends = np.cumsum([0.0, *seconds])
    assert 10 / found.mean == pytest.approx(np.polyfit(range(len(ends)), ends, 1)[0])


@pytest.mark.parametrize("first", range(8))
@pytest.mark.parametrize("last", range(8))
def test_throughput_does_not_depend_on_where_bursts_are_cut_off(first, last):
    """A disk that delivers eight batches at once, every 100 ms, for two seconds. All over all would be up to 4% off."""
    bursts = [0.093, *[0.001] * 7] * 20
    cut = bursts[first : len(bursts) - last]
    assert Throughput.of(cut, 16).mean == pytest.approx(8 * 16 / 0.1, rel=0.005)


def test_memory_comes_in_pages():
    assert [memory_bytes(size) for size in (1, 4096, 4097)] == [4096, 4096, 8192]
