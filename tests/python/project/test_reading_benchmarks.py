"""What the benchmarks of reading compute and run with, and the JPEG benchmark at a small size."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dali_l3.profiling.measuring import KEEPING_MEMORY
from waiting import HANGS

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"

pytest.importorskip("imagecodecs", reason="the benchmarks use it")
pytest.importorskip("skimage", reason="the benchmarks take their photographs from scikit-image")
pytest.importorskip("matplotlib", reason="the benchmarks draw charts")


def import_benchmarks(*names):
    """Modules of the benchmarks, whose package `reading` is not the module of that name among the tests'."""
    others = {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] == "reading"}
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        sys.path.remove(str(BENCHMARKS))
        for name in [*sys.modules]:
            if name.partition(".")[0] == "reading":
                del sys.modules[name]
        sys.modules.update(others)


common, datasets, jpeg, steadiness, tables, mixes, pacing = import_benchmarks(
    "common", "datasets", "jpeg", "steadiness", "tables", "reading.mixes", "reading.pacing"
)


@pytest.fixture(scope="module")
def photos():
    everything = datasets.bundled_photos()
    return {name: everything[name] for name in ("astronaut", "rocket")}


def test_the_load_of_others_is_without_that_of_children():
    """While a child runs, and after it."""
    program = "import time\nwhile time.process_time() < 0.5: pass\nprint()\ninput()"
    before = common.tree_cpu_seconds()
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        child.stdout.readline()
        assert common.tree_cpu_seconds() - before > 0.4
        child.communicate("\n")
    assert common.tree_cpu_seconds() - before > 0.4


def test_the_load_of_others_is_a_share_of_the_cpus_that_may_be_used(monkeypatch):
    """Of two CPUs in ten seconds, which were busy for 16 s, 6 of them with this process and its children."""
    moments = iter([(1000, 100, 20), (1010, 116, 26)])
    monkeypatch.setattr(common.OthersLoad, "_now", staticmethod(lambda: next(moments)))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 5})
    others = common.OthersLoad()
    assert others.share() == 0.5


def test_jpeg_sets_are_distinct_images_of_their_size(photos, tmp_path):
    paths = datasets.write_jpegs(tmp_path / "one", photos, (60, 80), 6)
    images = [Image.open(path) for path in paths]
    assert [(image.format, image.size, image.mode) for image in images] == [("JPEG", (80, 60), "RGB")] * 6
    assert len({np.asarray(image).tobytes() for image in images}) == 6
    expected = tmp_path / "expected.jpg"
    Image.fromarray(datasets.scaled_view(photos["astronaut"], (60, 80), 2)).save(expected, quality=90)
    assert paths[2].read_bytes() == expected.read_bytes()
    again = datasets.write_jpegs(tmp_path / "two", photos, (60, 80), 6)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]


def test_views_are_scaled_down_but_never_up(photos):
    photo = np.zeros((300, 400, 3), np.uint8)
    photo[::2] = 255  # which averaging over areas makes gray, and copying does not
    assert set(np.unique(datasets.scaled_view(photo, (300, 400), 0))) == {0, 255}
    assert set(np.unique(datasets.scaled_view(photo, (600, 800), 0))) == {0, 255}
    grays = [len(np.unique(datasets.scaled_view(photo, (75, 100), number))) for number in range(8)]
    assert max(grays) > 2


def test_a_mix_holds_every_image_once_in_its_proportions():
    paths = {name: [f"{number}.{name}" for number in range(40)] for name in ("png", "bmp")}
    found = mixes.mixed(paths, {"png": 3, "bmp": 7})
    assert [path.split(".")[0] for path in found] == [str(number) for number in range(40)]
    for start in range(0, 40, 10):
        assert sum(path.endswith("png") for path in found[start : start + 10]) == 3
    assert mixes.mixed(paths, {"bmp": 1}) == paths["bmp"]
    assert mixes.name_of({"png": 3, "bmp": 7}, {"png": "PNG", "bmp": "BMP"}) == "PNG:BMP 3:7"
    assert mixes.sweep("a", "b")[:2] == [{"b": 10}, {"a": 1, "b": 9}]
    assert len(mixes.sweep("a", "b")) == 11


@pytest.mark.skipif(not shutil.which("cc"), reason="the pacer takes a C compiler")
def test_the_pacer_lets_no_more_bytes_pass_than_its_disk_would(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(200_000))
    program = (
        "import os, sys, threading\n"
        "def read():\n"
        "    descriptor = os.open(sys.argv[1], os.O_RDONLY)\n"
        "    assert all(len(os.pread(descriptor, 200_000, 0)) == 200_000 for _ in range(5))\n"
        "    assert len(os.pread(descriptor, 100, 199_950)) == 50\n"
        "threads = [threading.Thread(target=read) for _ in range(2)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
    )
    environment = os.environ | pacing.paced(4_000_000, tmp_path)
    start = time.monotonic()
    subprocess.run([sys.executable, "-c", program, file], env=environment, check=True, timeout=HANGS)
    assert time.monotonic() - start >= 0.5  # for two megabytes, by two threads


def condition(measured, recommended, dali):
    found = {
        name: {"weights": weights, "predicted": 100.0, "limit": "load", "measured": speed, "error": 100 / speed - 1}
        | {"cpu_ms_per_image": 1.0, "cpu_share_of_other_processes": 0.0}
        for name, (weights, speed) in measured.items()
    }
    readers = {"DALI: JPEG": dali}
    return {"mixes": found, "recommended": {"all": recommended}, "readers": readers, "formats": {}}


def test_ratios_are_those_of_each_round(monkeypatch):
    """A machine that is twice as fast in one round changes no ratio."""
    monkeypatch.setattr(jpeg, "PAIRS", {"JPEG:L3": ("source", "l3-fast")})
    monkeypatch.setattr(jpeg, "sweep", lambda *pair: [{"source": 10}, {"source": 5, "l3-fast": 5}])
    speeds = {"JPEG": ({"source": 10}, 100.0), "JPEG:L3 5:5": ({"source": 5, "l3-fast": 5}, 250.0)}
    doubled = {name: (weights, 2 * speed) for name, (weights, speed) in speeds.items()}
    rounds = [condition(each, "JPEG:L3 5:5", dali) for each, dali in ((speeds, 50.0), (doubled, 100.0))]
    found = jpeg.median_of(rounds)
    assert found["mixes"]["JPEG:L3 5:5"]["times_jpeg"] == 2.5
    assert found["mixes"]["JPEG:L3 5:5"]["times_dali"] == 5
    assert found["best"] == {"JPEG:L3": "JPEG:L3 5:5"}
    assert (found["recommended_times_jpeg"], found["recommended_of_best"]) == (2.5, 1)
    targets = {target.name: target for target in jpeg.targets({"500x375, 2 threads": {"unthrottled": found}})}
    assert targets["500x375, 2 threads, unthrottled: images/s, JPEG:L3 5:5 / JPEG"].met
    found["mixes"]["JPEG:L3 5:5"]["times_jpeg"] = 2.4
    targets = {target.name: target for target in jpeg.targets({"500x375, 2 threads": {"unthrottled": found}})}
    assert not targets["500x375, 2 threads, unthrottled: images/s, JPEG:L3 5:5 / JPEG"].met


def test_jpeg_benchmark(photos, tmp_path, plugin, monkeypatch):
    for name in KEEPING_MEMORY:  # which it sets for good
        monkeypatch.setenv(name, "0")
    monkeypatch.setattr(jpeg, "sweep", lambda *pair: [{pair[0]: 10}, {pair[0]: 5, pair[1]: 5}])
    files = jpeg.make_files(tmp_path / "files", photos, "500x375", 32)
    assert [len(paths) for paths in files.paths.values()] == [32, 32, 32]
    sizes = [sum(map(os.path.getsize, paths)) for paths in files.paths.values()]
    assert sizes[0] < sizes[2] < sizes[1]
    figures = jpeg.median_of([jpeg.measure_condition(files, 2, 0.001)])
    assert {"JPEG", "JPEG:BMP 5:5", "JPEG:L3 5:5"} <= figures["mixes"].keys()
    assert figures["mixes"]["JPEG"]["times_jpeg"] == 1
    assert {"DALI: JPEG", "MinIO: JPEG"} <= figures["readers"].keys()
    assert {name: format["turn"] for name, format in figures["formats"][0].items()} == {
        "source": 1,
        "bmp": 0,
        "l3-fast": 2,
    }
    jpeg.plot({"500x375, 2 threads": {"unthrottled": figures}}, tmp_path / "jpeg.svg")
    assert (tmp_path / "jpeg.svg").exists()
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    assert tables.table("jpeg") == "*Not measured yet: jpeg.json is missing.*\n"
    results = {"conditions": {"500x375, 2 threads": {"unthrottled": figures}}}
    results["image_bytes"] = {"500x375": {"source": 50_000, "bmp": 562_554, "l3-fast": 200_000}}
    (tmp_path / "jpeg.json").write_text(json.dumps(results))
    assert "| 500x375, 2 threads, unthrottled |" in tables.table("jpeg")
    assert "| 500x375: L3 fast | 200 |" in tables.table("jpeg-sizes")


def test_what_an_image_costs_along_the_ratios(tmp_path, monkeypatch):
    """Of JPEG files that take 50 KB and 0.8 ms, and L3 files of 200 KB and 0.2 ms; 60 KB an image fit into memory."""
    found = {}
    for tenths in range(11):
        for label, size, cpu_ms in (("BMP", 560, 0.5), ("L3", 200, 0.2)):
            name = {0: label, 10: "JPEG"}.get(tenths, f"JPEG:{label} {tenths}:{10 - tenths}")
            found[name] = {
                "hit_ratio": min(60 / (5 * tenths + (10 - tenths) * size / 10), 1),
                "cpu_ms_per_image": 0.08 * tenths + (10 - tenths) * cpu_ms / 10,
            }
    results = {"conditions": {"500x375, 2 threads": {"unthrottled": {"mixes": found}}}}
    results["image_bytes"] = {"500x375": {"source": 50_000, "bmp": 560_000, "l3-fast": 200_000}}
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    (tmp_path / "jpeg.json").write_text(json.dumps(results))
    lines = tables.table("jpeg-costs").splitlines()[2:]
    assert lines[0] == "| 10:0 | 0 | 0.80 | 0 | 0.80 |"
    assert lines[5] == "| 5:5 | 245 | 0.65 | 65 | 0.50 |"
    assert lines[10] == "| 0:10 | 500 | 0.50 | 140 | 0.20 |"


def test_steadiness_compares_times_and_bytes():
    def runs(times, sizes):
        return [{"images_per_s": [100.0], "batch_seconds": times, "batch_planned_bytes": sizes, "hit_ratio": 0.3}] * 2

    even, uneven = steadiness.summary(runs([0.9, 1.1], [9, 11])), steadiness.summary(runs([0.5, 1.5], [8, 12]))
    assert even["batch_variation"] == pytest.approx(0.1)
    assert steadiness.summary(runs([1.0, 1.0], None))["bytes_variation"] is None
    readers = {steadiness.LIQUID: even, steadiness.MINIO: uneven}
    times, sizes = steadiness.targets({"PNG": readers})
    assert (times.measured, times.met) == (pytest.approx(0.2), True)
    assert (sizes.measured, sizes.met) == (pytest.approx(0.5), True)
    assert not any(target.met for target in steadiness.targets({"PNG": readers | {steadiness.MINIO: even}}))
