"""What the profiler measures with: the encoded sample, and pipelines in processes of their own."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dali_l3
from dali_l3.errors import ConversionError
from dali_l3.profiling import cpu_load, encoding, measuring, profiler
from dali_l3.profiling.cost_model import Conditions, predict
from dali_l3.profiling.diagnosis import diagnose
from dali_l3.profiling.isolation import call_isolated
from dali_l3.profiling.measuring import (
    Measurement,
    PipelineError,
    Setting,
    Throughput,
    evict,
    measure,
    measure_file_reader,
    measure_keeping_memory,
    memory_bytes,
)
from dali_l3.profiling.profiler import loading_cpu_seconds, mixed
from image_files import noise, write_png

FORMATS = ("png", "bmp", "l3-fast", "jpeg@50")
SETTING = Setting(batch_size=4, threads=2, seconds=0.05)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Ten images: noise, which nothing compresses, a smooth one, and one of 16 bits, which BMP and JPEG cannot hold."""
    folder = tmp_path_factory.mktemp("sources")
    paths = [write_png(folder / f"{number}.png", noise((40, 60, 3), seed=number)) for number in range(8)]
    paths.append(write_png(folder / "smooth.png", np.full((40, 60, 3), 77, np.uint8)))
    paths.append(write_png(folder / "deep.png", noise((40, 60), np.uint16)))
    return [str(path) for path in paths]


@pytest.fixture(scope="module")
def sample(sources, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample")
    return encoding.encode_sample(sources, FORMATS, str(folder), encoding.announce(sources, FORMATS))


def test_the_sample_holds_the_images_in_every_format_and_order(sample, sources):
    for index, source in enumerate(sources[:9]):
        pixels = np.asarray(Image.open(source))
        for format in ("png", "bmp"):
            np.testing.assert_array_equal(np.asarray(Image.open(sample.paths(format)[index])), pixels)
        with open(sample.paths("l3-fast")[index], "rb") as file:
            np.testing.assert_array_equal(dali_l3.decode(file.read()), pixels)
        assert sample.raw_sizes[index] == pixels.nbytes
    for files in sample.files.values():
        assert [file.size for file in files] == [os.path.getsize(file.path) for file in files]


def test_what_a_format_cannot_hold_becomes_l3(sample):
    assert {name: sample.replaced(name) for name in sample.files} == {"png": 0, "bmp": 1, "l3-fast": 0, "jpeg@50": 1}
    assert sample.paths("bmp")[9].endswith(".l3")


def test_only_lossy_formats_have_a_psnr(sample):
    assert all(file.psnr is None for format in ("png", "bmp", "l3-fast") for file in sample.files[format])
    assert all(8 < file.psnr < 40 for file in sample.files["jpeg@50"][:8])


def test_the_sample_takes_no_more_than_announced(sample, sources):
    taken = sum(file.size for files in sample.files.values() for file in files)
    blocks = sum(os.stat(file.path).st_blocks * 512 for files in sample.files.values() for file in files)
    assert max(taken, blocks) <= encoding.announce(sources, FORMATS)


def test_a_sample_beyond_what_was_announced_is_refused(sources, tmp_path):
    with pytest.raises(ConversionError, match="more than the 0 MB announced"):
        encoding.encode_sample(sources, FORMATS, str(tmp_path), 1000)


def test_a_sample_beyond_the_free_space_is_refused_before_it_is_written(sources, tmp_path):
    with pytest.raises(ConversionError, match="are free"):
        encoding.encode_sample(sources, FORMATS, str(tmp_path), 1 << 60)
    assert not list(tmp_path.iterdir())


def test_a_sample_of_which_nothing_can_be_read_is_refused(tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(ConversionError, match="broken.png"):
        encoding.encode_sample([str(broken)], FORMATS, str(tmp_path), 1 << 20)


def test_the_sample_is_put_beside_the_dataset_where_links_lead_to_it(tmp_path):
    (tmp_path / "disk" / "train").mkdir(parents=True)
    (tmp_path / "train").symlink_to(tmp_path / "disk" / "train")
    assert profiler._beside(str(tmp_path / "train")) == str(tmp_path / "disk")


def test_a_dataset_that_is_a_disk_of_its_own_has_no_place_beside_it(tmp_path, monkeypatch):
    (tmp_path / "train").mkdir()
    monkeypatch.setattr(profiler, "_disk", lambda path: int(path.endswith("train")))
    with pytest.raises(ConversionError, match="--work"):
        profiler._beside(str(tmp_path / "train"))


@pytest.mark.parametrize("tenths", range(11))
def test_mixes_are_spread_evenly(sample, tenths):
    files = mixed(sample, "png", "bmp", tenths)
    assert len(files) == 10
    assert sum("/png/" in path for path in files) == tenths
    assert sum("/png/" in path for path in files[:5]) in (tenths // 2, -(-tenths // 2))
    assert [os.path.basename(path)[:6] for path in files] == [f"{number:06d}" for number in range(10)]


def test_loading_takes_all_from_the_disk_and_decoding_nothing(sample, plugin):
    paths = sample.paths("png")
    assert measure(paths, SETTING, decode=False).hit_ratio == 0
    assert measure(paths, SETTING, load=False).hit_ratio == 1


@pytest.mark.parametrize("arguments", [{}, {"load": False}, {"cache_size": 1 << 40}])
def test_the_reader_has_nothing_to_warn_of(sample, plugin, capfd, arguments):
    measure(sample.paths("png"), SETTING, **arguments)
    assert "[dali_l3/" not in capfd.readouterr().err


def test_the_cache_is_used(sample, plugin):
    paths = sample.paths("png")
    half = sum(memory_bytes(os.path.getsize(path)) for path in paths) // 2
    measured = measure(paths, SETTING, cache_size=half)
    assert 0.2 < measured.hit_ratio < 0.8


def test_every_batch_is_consumed(sample, plugin):
    sizes = []
    paths = sample.paths("bmp")[:8]
    measured = measure(paths, SETTING, load=False, consume=lambda outputs: sizes.append(len(outputs[0])))
    assert len(sizes) >= len(measured.batch_seconds) >= 8
    assert set(sizes) == {4}


def test_throughput_is_of_windows():
    assert Throughput.of([0.5] * 80, 4) == Throughput(8, 8, 8)
    uneven = Throughput.of([0.5] * 40 + [0.25] * 40, 4)
    assert (uneven.low, uneven.mean, uneven.high) == pytest.approx((8, 80 * 4 / 30, 16))


def test_what_other_processes_take_is_seen(monkeypatch):
    """In eight batches of a second each, on four CPUs, which were busy for 20 s, 4 of them with this process."""
    busy, own = iter([100.0, 120.0]), iter([30.0, 34.0])
    monkeypatch.setattr(measuring, "busy_seconds", lambda: next(busy))
    monkeypatch.setattr(time, "process_time", lambda: next(own))
    monkeypatch.setattr(measuring, "_time", lambda batch: 1.0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1, 3, 5, 7})
    found = measuring._collect(SETTING, object)
    assert found.others == 0.5
    assert found.cpu_seconds == 4 / 32


def test_cpus_get_busier(monkeypatch):
    before, own = cpu_load.busy_seconds(), time.process_time()
    while time.process_time() < own + 0.1:
        pass
    assert cpu_load.busy_seconds() - before > 0.05


def test_cpus_that_a_process_may_not_use_do_not_count():
    stat = """\
cpu  3333 333 3333 9999 999 33 333 33 66 6
cpu0 1000 100 1000 5000 500 10 100 10 20 2
cpu1 2000 200 2000 4000 400 20 200 20 40 4
cpu11 7 0 0 0 0 0 0 0 0 0
intr 12345 1 2 3
"""
    assert cpu_load.busy_ticks(stat, {0}) == 2220
    assert cpu_load.busy_ticks(stat, {1}) == 4440
    assert cpu_load.busy_ticks(stat, {0, 1, 11}) == 6667


def test_a_format_alone_is_predicted_no_faster_than_it_was_measured(sample, plugin):
    conditions = Conditions(len(sample.raw_sizes), 0, 2)
    for name in ("png", "l3-fast"):
        found = profiler.measure_format(name, sample, SETTING, conditions)
        alone = predict({name: 1.0}, {name: found.costs}, conditions).throughput
        assert alone == pytest.approx(min(found.predicted, found.both.mean))


def test_what_dali_cannot_decode_is_an_error_in_its_words(tmp_path, plugin):
    broken = write_png(tmp_path / "broken.png")
    broken.write_bytes(broken.read_bytes()[:200])
    paths = [str(write_png(tmp_path / f"{number}.png")) for number in range(3)]
    with pytest.raises(PipelineError, match="^DALI: ") as caught:
        call_isolated(measure_file_reader, [*paths, str(broken)], SETTING)
    assert "no longer valid" not in str(caught.value)
    assert diagnose(paths, [*paths, str(broken)], SETTING, 2).stages[-1].name == "disk"
    broken.write_bytes(b"no image")
    with pytest.raises(PipelineError, match=f"(?s)^DALI: .*{re.escape(str(broken))}: of no known image format"):
        call_isolated(measure, [str(broken)], SETTING)


def test_calls_in_other_processes():
    assert call_isolated(os.getpid) not in (os.getpid(), call_isolated(os.getpid))
    assert call_isolated(int, "11", base=2) == 3
    with pytest.raises(ValueError, match="invalid literal"):
        call_isolated(int, "many")


def _over_many_batches(measure, *arguments, **keywords):
    measuring._WINDOWS = 64  # at least as many, however slow they are: some memory is new at the start
    return measure(*arguments, **keywords)


def _measure_returning_memory(*arguments, **keywords):
    ctypes.CDLL(None).mallopt(-3, 128 << 10)  # M_MMAP_THRESHOLD: what is larger goes back to the system at once
    return measure(*arguments, **keywords)


def test_memory_that_is_returned_to_the_system_is_seen_and_can_be_kept(tmp_path, plugin):
    paths = []
    for number in range(8):
        paths.append(str(tmp_path / f"{number}.bmp"))
        Image.fromarray(noise((600, 700, 3), seed=number)).save(paths[-1])
    returning, keeping = (
        call_isolated(_over_many_batches, function, paths, SETTING, load=False).new_memory
        for function in (_measure_returning_memory, measure_keeping_memory)
    )
    assert returning > 600 * 700 * 3
    assert keeping < 600 * 700 * 3 / 2


def _die():
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_dies_is_an_error():
    with pytest.raises(ConversionError, match="_die died"):
        call_isolated(_die)


def test_evicting_keeps_the_files(sources):
    before = [Path(path).read_bytes() for path in sources]
    evict(sources)
    assert [Path(path).read_bytes() for path in sources] == before


@pytest.mark.parametrize(
    ("both", "hit_ratio", "expected"),
    [
        pytest.param(10.3e-3, 0.0, 0.3e-3, id="what it adds"),
        pytest.param(10.2e-3, 0.5, 0.4e-3, id="what it adds, to half of the images"),
        pytest.param(12.0e-3, 0.0, 0.7e-3, id="no more than loading alone"),
        pytest.param(9.0e-3, 0.0, 0.0, id="not less than nothing"),
        pytest.param(10.2e-3, 0.9, 0.7e-3, id="of few images it cannot be told"),
    ],
)
def test_loading_adds_less_cpu_time_than_it_takes_alone(both, hit_ratio, expected):
    def took(seconds, hit_ratio=0.0):
        return Measurement(Throughput(1.0, 1.0, 1.0), seconds, [1.0], hit_ratio=hit_ratio)

    assert loading_cpu_seconds(took(0.7e-3), took(10e-3), took(both, hit_ratio)) == pytest.approx(expected)
