"""`dali-l3 profile` on real images: what it measures, writes, announces and leaves behind."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import types
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dali_l3
from dali_l3.jobs.display import printable
from dali_l3.profiling.cost_model import FormatCosts
from dali_l3.profiling.diagnosis import limiting_stage
from dali_l3.profiling.profiler import measure_format
from image_files import exif, noise, write_png
from profiles import format_profile
from waiting import HANGS, wait_until

pytestmark = pytest.mark.usefixtures("plugin", "one_process")

QUICK = ("--batch-size", 4, "--threads", 2, "--quick", "--cache-size", "100KB")


@pytest.fixture(autouse=True)
def quicker(monkeypatch):
    """Measures less than even --quick does: nothing here depends on how exact it is. Any gain will do."""
    monkeypatch.setattr("dali_l3.cli.profile._QUICK_SECONDS", 0.02)
    monkeypatch.setattr("dali_l3.profiling.profiler.DatasetProfile.least_gain", 0.0)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Two class folders of crops of photographs, some of them gray."""
    from skimage import data

    root = tmp_path_factory.mktemp("data") / "photos"
    names = ["chelsea", "coffee", "rocket", "astronaut", "camera", "chelsea", "coffee", "rocket"]
    for number, name in enumerate(names):
        path = root / f"class {number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        top = 10 * number
        Image.fromarray(getattr(data, name)()[top : top + 96, 64:192]).save(path)
    return root


def listing(folder):
    return sorted(path.relative_to(folder) for path in Path(folder).rglob("*"))


def test_profile_of_a_small_dataset(run, photos, tmp_path):
    """With all there is: every report, the dataset that it recommends, and a sweep of qualities."""
    work, target = tmp_path / "work", tmp_path / "mix"
    work.mkdir()
    found, page = tmp_path / "found.json", tmp_path / "found.html"
    before = {path: path.read_bytes() for path in photos.rglob("*.png")}
    options = ("--formats", "png,bmp,l3-fast", "--work", work, "--json", found, "--html", page, *QUICK)
    code, _, errors = run("profile", photos, *options, "--write", target, "--quality-sweep")
    assert code == 0, errors
    assert "The sample will take at most" in errors
    assert {path: path.read_bytes() for path in photos.rglob("*.png")} == before
    assert not listing(work)
    HTMLParser().feed(page.read_text())

    result = json.loads(found.read_text())
    assert (result["images"], result["sample"]) == (8, 8)
    check_the_measurements(result)
    check_the_qualities(result)
    check_the_dataset_that_was_written(result, photos, target)


def check_the_measurements(result):
    assert set(result["formats"]) == {"png", "bmp", "l3-fast"}
    for name, measured in result["formats"].items():
        assert measured["costs"]["format"] == name
        for stage in ("load", "decode", "both"):
            assert 0 < measured[stage]["low"] <= measured[stage]["mean"] <= measured[stage]["high"]
    assert result["formats"]["bmp"]["costs"]["image_bytes"] > result["formats"]["png"]["costs"]["image_bytes"]
    assert sum(result["recommendation"]["weights"].values()) in (1, 10, 100)
    assert result["recommendation"]["weights"].keys() <= result["formats"].keys()
    assert [stage["name"] for stage in result["diagnosis"]["stages"]] == ["memory", "page cache", "disk"]
    # The larger decodes faster, unless others keep this machine so busy that it is measured otherwise.
    costs = [measured["costs"] for measured in result["formats"].values()]
    pairs = [
        (small, large)
        for small, large in itertools.permutations(costs, 2)
        if small["image_bytes"] < large["image_bytes"] and small["decode_seconds"] > large["decode_seconds"]
    ]
    assert bool(result["search"]) == bool(pairs)
    assert not pairs or result["search"]["search"]["steps"][0]["encoded"] == 5


def check_the_qualities(result):
    sweep = {row["format"]: row for row in result["quality"]}
    assert sweep["jpeg@50"]["image_bytes"] < sweep["jpeg@95"]["image_bytes"]
    assert sweep["jpeg@50"]["psnr"] < sweep["jpeg@95"]["psnr"]
    assert sweep["webp@50"]["ssim"] < sweep["webp@95"]["ssim"] <= 1


def check_the_dataset_that_was_written(result, photos, target):
    written = result["written"]
    assert written["measured"]["mean"] > 0
    assert written["predicted"] == result["recommendation"]["prediction"]["throughput"]
    assert json.loads((target / "dali_l3_mix.json").read_text())["mix"] == result["recommendation"]["weights"]
    images = [path for path in listing(target) if path.suffix in (".bmp", ".l3", ".png")]
    assert len(images) == 8
    for image in images:
        source = np.asarray(Image.open((photos / image).with_suffix(".png")))
        path = target / image
        pixels = dali_l3.decode(path.read_bytes()) if image.suffix == ".l3" else np.asarray(Image.open(path))
        np.testing.assert_array_equal(pixels, source)


def test_a_training_step_takes_part(run, photos, tmp_path):
    found = tmp_path / "found.json"
    code, output, errors = run("profile", photos, "--formats", "bmp", "--step-time", 50, "--json", found, *QUICK)
    assert code == 0, errors
    result = json.loads(found.read_text())
    assert result["advice"] == ("stay" if result["diagnosis"]["limit"] == "step" else "convert")
    assert ("dali-l3 convert" in output) == (result["advice"] == "convert")
    diagnosis = result["diagnosis"]
    speeds = {stage["name"]: stage["throughput"]["mean"] for stage in diagnosis["stages"]}
    assert [*speeds] == ["synthetic", "memory", "page cache", "disk"]
    assert max(speeds.values()) <= 4 / 0.05
    # The step, unless others keep this machine so busy that it is something else.
    assert diagnosis["limit"] == limiting_stage({name: 1 / speed for name, speed in speeds.items()})


@pytest.fixture(scope="module")
def jpegs(photos):
    """The photographs as JPEG files, one of them turned."""
    root = photos.parent / "jpegs"
    for path in sorted(photos.rglob("*.png")):
        target = (root / path.relative_to(photos)).with_suffix(".jpg")
        target.parent.mkdir(parents=True, exist_ok=True)
        turned = b"Exif\0\0" + exif(6 if path.stem == "0" else 1)
        Image.open(path).save(target, quality=90, exif=turned)
    return root


def test_files_as_they_are_are_a_candidate_and_take_no_space(run, jpegs, tmp_path, monkeypatch):
    measured = {}

    def measure(name, sample, *others):
        measured[name] = sample.paths(name)
        return measure_format(name, sample, *others)

    monkeypatch.setattr("dali_l3.profiling.profiler.measure_format", measure)
    found = tmp_path / "found.json"
    code, output, errors = run("profile", jpegs, "--json", found, *QUICK)
    assert code == 0, errors
    result = json.loads(found.read_text())
    assert list(result["formats"]) == list(measured) == ["source", "bmp", "l3-fast", "l3-raw"]
    files = sorted(map(str, jpegs.rglob("*.jpg")))
    assert sorted(measured["source"]) == files
    sizes = [os.path.getsize(path) for path in files]
    assert result["formats"]["source"]["costs"]["image_bytes"] == pytest.approx(sum(sizes) / len(sizes))
    assert result["formats"]["l3-fast"]["costs"]["image_bytes"] > 2 * sum(sizes) / len(sizes)
    as_it_is = [*result["recommendation"]["weights"]] == ["source"]
    assert result["advice"] == ("read" if as_it_is else "convert")
    assert (result["command"] is None) == (result["advice"] != "convert")
    (mix,) = [mix for mix in result["mixes"] if [*mix["weights"]] == ["l3-raw"]] or [result["recommendation"]]
    assert f"{mix['bytes'] / sum(sizes):#.3g}x" in output.split()


def test_a_mix_with_files_as_they_are_is_written_within_its_size(run, jpegs, tmp_path, monkeypatch):
    """Whatever is faster: a budget that leaves room for some larger files."""
    size = sum(path.stat().st_size for path in jpegs.rglob("*.jpg"))
    monkeypatch.setattr("dali_l3.profiling.profiler.measure_format", measured_as({"source": 1.0, "l3-raw": 0.1}))
    found, target = tmp_path / "found.json", tmp_path / "mix"
    options = ("--formats", "source,l3-raw", "--max-size", 4 * size, "--json", found, *QUICK)
    code, _, errors = run("profile", jpegs, *options, "--write", target)
    assert code == 0, errors
    result = json.loads(found.read_text())
    weights = result["recommendation"]["weights"]
    assert weights.keys() == {"source", "l3-raw"}
    assert 2 * size < result["recommendation"]["bytes"] <= 4 * size
    assert f"--mix source:{weights['source']},l3-raw:{weights['l3-raw']}" in result["command"]
    images = {path.relative_to(target): path for path in target.rglob("*.*") if path.suffix in (".jpg", ".l3")}
    assert len(images) == 8
    for name, path in images.items():
        if path.suffix == ".jpg":
            assert path.read_bytes() == (jpegs / name).read_bytes()


def measured_as(speeds):
    """Stands for `measure_format`, where decoding takes so many seconds and nothing else takes any."""

    def measure(name, sample, setting, conditions):
        size = sum(file.size for file in sample.files[name]) / len(sample.files[name])
        return format_profile(FormatCosts(name, size, size, 1e-6, speeds[name]), conditions)

    return measure


def test_nothing_is_written_where_nothing_is_gained(run, jpegs, tmp_path):
    target, found = tmp_path / "mix", tmp_path / "found.json"
    options = ("--formats", "l3-raw", "--max-size", "1KB", "--json", found, *QUICK)
    code, output, errors = run("profile", jpegs, *options, "--write", target)
    assert code == 0, errors
    assert json.loads(found.read_text())["advice"] == "stay"
    assert "No mix takes as little as 1.0 kB: the smallest, l3-raw, takes" in output.replace("\n", " ")
    assert f"Nothing is written to {target}: no conversion is recommended." in errors
    assert not target.exists()


def test_images_can_be_stored_smaller(run, jpegs, tmp_path):
    found, target = tmp_path / "found.json", tmp_path / "mix"
    options = ("--formats", "l3-raw", "--resize-shorter", 48, "--json", found, *QUICK)
    code, output, errors = run("profile", jpegs, *options, "--write", target)
    assert code == 0, errors
    result = json.loads(found.read_text())
    assert "all formats are measured with smaller images: --resize-shorter 48" in output
    assert result["command"].endswith(" --resize-shorter 48")
    assert result["formats"]["l3-raw"]["costs"]["image_bytes"] < 64 * 48 * 3 * 1.1
    assert json.loads((target / "dali_l3_mix.json").read_text())["resize"] == "--resize-shorter 48"
    images = [*target.rglob("*.l3"), *target.rglob("*.bmp")]
    shapes = [
        dali_l3.imread(path).shape if path.suffix == ".l3" else np.asarray(Image.open(path)).shape for path in images
    ]
    assert len(shapes) == 8
    assert {min(shape[:2]) for shape in shapes} == {48}


def test_where_no_file_can_stay_as_it_is_that_is_no_candidate(run, photos, tmp_path):
    source, found = tmp_path / "source", tmp_path / "found.json"
    source.mkdir()
    for path in photos.rglob("*.png"):
        Image.open(path).save(source / f"{path.stem}.tiff")
    code, _, errors = run("profile", source, "--formats", "source,bmp", "--json", found, *QUICK)
    assert code == 0, errors
    assert list(json.loads(found.read_text())["formats"]) == ["bmp"]


def test_a_training_step_of_the_user(run, photos, tmp_path, monkeypatch):
    (tmp_path / "my_training.py").write_text(
        "shapes = []\n\ndef step(outputs):\n    shapes.append(outputs[0].shape())\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    code, _, errors = run("profile", photos, "--formats", "png", "--step", "my_training:step", *QUICK)
    assert code == 0, errors
    shapes = sys.modules["my_training"].shapes
    assert set(shapes[0]) == {(96, 128, 3)}


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("def step(outputs):\n    outputs.no_such_thing", "failing_training.py, line 2"),
        ("step = 5", "not a function"),
        ("def other(outputs): pass", "step"),
        ("1 / 0", "ZeroDivisionError"),
        ("def step(outputs)", "SyntaxError"),
    ],
)
def test_a_training_step_that_fails(run, photos, tmp_path, monkeypatch, program, message):
    (tmp_path / "failing_training.py").write_text(program + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "failing_training", raising=False)
    options = ("--formats", "png", "--work", tmp_path, "--step", "failing_training:step")
    code, _, errors = run("profile", photos, *options, *QUICK)
    assert code == 2
    assert "--step failing_training:step" in errors
    assert message in errors
    assert not list(tmp_path.glob(".dali-l3-profile-*"))


def test_what_is_written_includes_images_that_are_not_measured_and_does_without_bad_ones(run, tmp_path):
    """NPY files are converted, which fn.decoders.image does not decode as they are."""
    source, target, found = tmp_path / "source", tmp_path / "mix", tmp_path / "found.json"
    for number in range(10):
        pixels = noise((40, 60, 3), seed=number)
        if number < 6:
            write_png(source / f"{number}.png", pixels)
        else:
            np.save(source / f"{number}.npy", pixels)
    (source / "3.png").write_bytes((source / "3.png").read_bytes()[:200])
    (source / "lost.png").symlink_to("nowhere")
    code, _, errors = run("profile", source, "--formats", "bmp", "--write", target, "--json", found, *QUICK)
    assert code == 1
    assert f"failed: {source / '3.png'}" in errors
    assert f"failed: {source / 'lost.png'}" in errors
    result = json.loads(found.read_text())
    assert (result["images"], result["sample"]) == (10, 5)
    assert result["written"]["measured"]["mean"] > 0
    assert {path.stem for path in target.glob("*.bmp")} == set("0124") | set("56789")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("photos", "must not be the same or inside one another"),
        ("photos/class 0", "must not be the same or inside one another"),
        (".", "must not be the same or inside one another"),
        ("photos/class 0/0.png", "must be a folder"),
        ("other", "a mix needs a folder of its own"),
    ],
)
def test_targets_that_cannot_be_written_are_refused_before_anything_is_measured(run, photos, target, message):
    write_png(photos.parent / "other" / "0.png")
    code, _, errors = run("profile", photos, "--write", photos.parent / target, *QUICK)
    assert code == 2
    assert message in errors
    assert "The sample will take" not in errors


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ModuleNotFoundError(name="scipy"), "scipy is not installed, try: pip install 'dali-l3[profile]'"),
        (RuntimeError("dali_l3 was built for another DALI"), "built for another DALI"),
    ],
)
def test_what_is_not_installed(run, photos, monkeypatch, error, message):
    def fail(*names):
        raise error

    monkeypatch.setattr("dali_l3.cli.common.importlib", types.SimpleNamespace(import_module=fail))
    code, _, errors = run("profile", photos)
    assert code == 2
    assert message in errors


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_reports_do_not_replace_images(run, photos, option):
    for path, message in ((photos / "class 0" / "0.png", "would replace an image"), (photos, "a folder")):
        code, _, errors = run("profile", photos, option, path, *QUICK)
        assert code == 2
        assert message in errors


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="there is a GPU")
def test_without_a_gpu_the_mixed_decoder_is_refused_before_anything_is_measured(run, photos):
    code, _, errors = run("profile", photos, "--device", "mixed", *QUICK)
    assert code == 2
    assert "no GPU" in errors
    assert "The sample will take" not in errors


def test_images_that_cannot_be_read_are_named_and_left_out(run, photos, tmp_path):
    source = tmp_path / "source"
    for path in photos.rglob("*.png"):
        write_png(source / path.name)
    (source / "0.png").write_bytes((source / "1.png").read_bytes()[:200])
    found = tmp_path / "found.json"
    code, output, errors = run("profile", source, "--formats", "bmp", "--json", found, *QUICK)
    assert code == 0, errors
    assert json.loads(found.read_text())["failures"][0][0] == str(source / "0.png")
    assert str(source / "0.png") in output.replace("\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--formats", "png,gif"], "unknown format 'gif'"),
        (["--formats", "jpeg"], "jpeg@95"),
        (["--device", "gpu"], "cpu or mixed"),
        (["--cache-size", "much"], "--cache-size"),
        (["--max-size", "little"], "--max-size"),
        (["--prefer", "both"], "--prefer both: must be speed or space"),
        (["--resize-longer", "9", "--work", "/nonexistent"], "/nonexistent"),  # so the formats were right
        (["--resize-longer", "9", "--formats", "source,bmp"], "--resize-longer 9: files as they are (source) cannot"),
        (["--step", "nowhere:step"], "nowhere"),
        (["--step", "nowhere"], "module:function"),
        (["--step", "a:b", "--step-time", "1"], "cannot be combined"),
        (["--work", "/nonexistent"], "/nonexistent"),
        (["--json", "/nonexistent/found.json"], "/nonexistent"),
    ],
)
def test_requests_that_make_no_sense(run, photos, arguments, message):
    code, _, errors = run("profile", photos, *arguments, *([] if "--cache-size" in arguments else QUICK))
    assert code in (1, 2)
    assert message in errors.replace("\n", "")


def test_folders_without_images(run, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "notes.txt").write_text("no image")
    for source in (empty, tmp_path / "missing", empty / "notes.txt"):
        code, _, errors = run("profile", source)
        assert code == 2
        assert str(source) in errors.replace("\n", "")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_leaves_nothing_behind(photos, tmp_path, signum):
    command = [sys.executable, "-m", "dali_l3.cli", "profile", str(photos), "--work", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: process.poll() is not None or any(tmp_path.glob(".dali-l3-profile-*/bmp")))
        assert process.poll() is None, process.stderr.read()
        os.kill(process.pid, signum)
        _, errors = process.communicate(timeout=HANGS)
    finally:
        process.kill()
    assert process.returncode == 128 + signum
    assert "Traceback" not in errors
    assert not listing(tmp_path)


def test_findings_are_there_before_the_sample_is_removed(run, photos, tmp_path, monkeypatch):
    """Ctrl-C meanwhile ends the run, but not the removal."""
    found, work = tmp_path / "found.json", tmp_path / "work"
    work.mkdir()

    def remove(folder):
        os.kill(os.getpid(), signal.SIGINT)
        remove_folder(folder)

    remove_folder = shutil.rmtree
    monkeypatch.setattr("dali_l3.profiling.work_folder.shutil.rmtree", remove)
    code, output, _ = run("profile", photos, "--formats", "bmp", "--work", work, "--json", found, *QUICK)
    assert code == 128 + signal.SIGINT
    assert "dali-l3 convert" in output
    assert json.loads(found.read_text())["command"]
    assert not listing(work)


def test_names_that_are_not_utf8(run, photos, tmp_path):
    """Of the dataset's folder, which the sample is beside, of a file that is a candidate, and of the target."""
    source, target = (tmp_path / os.fsdecode(name) for name in (b"\xff/source\xfe", b"mix\xff"))
    source.mkdir(parents=True)
    for number, path in enumerate(photos.rglob("*.png")):
        shutil.copy(path, source / (os.fsdecode(b"%d\xff") % number + ".png"))
    (source / os.fsdecode(b"bad\xff.png")).write_bytes(path.read_bytes()[:200])
    found = tmp_path / "found.json"
    code, _, errors = run("profile", source, "--formats", "source", *QUICK)
    assert code == 0, errors
    # Without the files as they are, which may be fastest, so that there is a mix to write.
    code, output, errors = run("profile", source, "--formats", "bmp", "--json", found, "--write", target, *QUICK)
    assert "source\\xfe' DST" in output
    assert code == 1, errors
    assert f"failed: {printable(str(source))}/bad" in errors
    result = json.loads(found.read_text())
    assert result["failures"][0][0] == str(source / os.fsdecode(b"bad\xff.png"))
    assert result["written"]["measured"]["mean"] > 0
    assert [path.name for path in source.parent.iterdir()] == [source.name]
