"""Mixed datasets: proportions, the draw, and `dali-l3 convert --mix` from run to run."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections import Counter

import imagecodecs
import numpy as np
import pytest
from conftest import smooth_image
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

import dali_l3
from dali_l3.conversion.apportioning import apportion
from dali_l3.conversion.converting import convert_file
from dali_l3.conversion.mix_record import MixRecord
from dali_l3.conversion.mixing import draw, parse_mix, plan_mix, recorded
from dali_l3.errors import ConversionError
from dali_l3.images.formats import find_format
from dali_l3.images.writing import write_image
from image_files import noise, write_png
from processes import start
from waiting import HANGS

pytestmark = pytest.mark.usefixtures("one_process")

RECORD = "dali_l3_mix.json"


# ---- Proportions -----------------------------------------------------------------------------------------------------


def is_share(count, images, weight, whole):
    return images * weight // whole <= count <= math.ceil(images * weight / whole)


@given(st.lists(st.integers(0, 60), max_size=40), st.lists(st.integers(1, 40), min_size=1, max_size=12))
@example([1, 1, 19, 0, 1, 29, 1, 31, 61], [2, 17, 42, 1, 1])  # folder by folder alone, a total comes out too large
@example([54, 1, 1, 3, 1, 0, 1, 2, 1], [1, 1, 1, 1, 1, 1, 42, 33])  # and here one too small
def test_every_folder_and_the_whole_get_floor_or_ceiling_of_their_shares(sizes, weights):
    counts = apportion(sizes, weights, [[0] * len(weights)] * len(sizes))
    assert [sum(row) for row in counts] == sizes
    for size, row in zip(sizes, counts, strict=True):
        assert all(is_share(count, size, weight, sum(weights)) for count, weight in zip(row, weights, strict=True))
    for format, weight in enumerate(weights):
        assert is_share(sum(row[format] for row in counts), sum(sizes), weight, sum(weights))


@given(st.data(), st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_what_is_taken_stays_whatever_it_is(data, weights):
    row = st.lists(st.integers(0, 9), min_size=len(weights), max_size=len(weights))
    taken = data.draw(st.lists(row, max_size=8))
    sizes = [sum(row) + data.draw(st.integers(0, 9)) for row in taken]
    counts = apportion(sizes, weights, taken)
    assert [sum(row) for row in counts] == sizes
    for before, after in zip(taken, counts, strict=True):
        assert all(old <= new for old, new in zip(before, after, strict=True))


def test_what_is_new_makes_up_for_what_is_taken():
    assert apportion([10, 10], [1, 1], [[5, 0], [0, 5]]) == [[5, 5], [5, 5]]
    assert apportion([10], [1, 1], [[8, 0]]) == [[8, 2]]
    # Halves are rounded so that the totals come out right.
    assert apportion([3, 3], [1, 1], [[2, 0], [0, 0]]) == [[2, 1], [1, 2]]


# ---- The draw --------------------------------------------------------------------------------------------------------

MIX = {"l3-fast": 7, "bmp": 3}
IMAGES = [f"{folder}/{number}.png" for folder in ("cats", "dogs", "dogs/small", "") for number in range(15)]


def counts_by_folder(drawn):
    counts = Counter((os.path.dirname(path), name) for path, name in drawn.items())
    return {folder: {name: counts[folder, name] for name in MIX} for folder in map(os.path.dirname, drawn)}


def test_the_draw_holds_the_proportions():
    drawn = draw(IMAGES, MIX, 0, {})
    assert drawn.keys() == set(IMAGES)
    assert Counter(drawn.values()) == {"l3-fast": 42, "bmp": 18}
    for counts in counts_by_folder(drawn).values():
        assert counts in ({"l3-fast": 10, "bmp": 5}, {"l3-fast": 11, "bmp": 4})


def test_the_draw_depends_on_its_arguments_alone(run_python):
    expected = draw(IMAGES, MIX, 0, {})
    assert draw(reversed(IMAGES), dict(reversed(MIX.items())), 0, {}) == expected
    program = f"from dali_l3.conversion.mixing import draw; print(sorted(draw({IMAGES}, {MIX}, 0, {{}}).items()))"
    for seed in ("1", "2"):
        assert run_python(program, {**os.environ, "PYTHONHASHSEED": seed}) == str(sorted(expected.items()))
    # Written down, for a later version shall draw the same.
    bmp = {path for path, name in draw(IMAGES[:15], MIX, 0, {}).items() if name == "bmp"}
    assert bmp == {f"cats/{number}.png" for number in (5, 8, 11, 13, 14)}


def test_seeds_draw_differently():
    """Every image gets every format under some seed, every folder either rounding, and in the right proportion."""
    drawn = [draw(IMAGES, MIX, seed, {}) for seed in range(200)]
    for path in IMAGES:
        assert 30 <= sum(result[path] == "bmp" for result in drawn) <= 90  # 60 expected, standard deviation 6.5
    rounded_up = [counts_by_folder(result)["cats"]["bmp"] == 5 for result in drawn]
    assert 60 <= sum(rounded_up) <= 140


def test_a_name_that_is_not_unicode_can_be_drawn():
    name = os.fsdecode(b"a\xff.png")
    assert draw([name], {"bmp": 1}, 0, {}) == {name: "bmp"}


def test_images_that_come_later_leave_the_others_alone_and_keep_the_proportions():
    before = draw(IMAGES[:45], MIX, 0, {})
    after = draw(IMAGES, MIX, 0, before)
    assert {path: after[path] for path in before} == before
    assert Counter(after.values()) == {"l3-fast": 42, "bmp": 18}


# ---- Names of formats ------------------------------------------------------------------------------------------------


def test_parse_mix():
    text = "l3-fast:7, l3-raw:1,l3-paper:1,png:2,tiff:2,bmp:3,webp:1,webp@80:1,jpeg@95:10,jpeg@100:1"
    assert parse_mix(text) == {
        "l3-fast": 7,
        "l3-raw": 1,
        "l3-paper": 1,
        "png": 2,
        "tiff": 2,
        "bmp": 3,
        "webp": 1,
        "webp@80": 1,
        "jpeg@95": 10,
        "jpeg@100": 1,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a format and its weight"),
        ("bmp", "'bmp' is not a format and its weight"),
        ("bmp:1,", "'' is not a format and its weight"),
        ("bmp:0", "the weight of bmp must be an integer from 1"),
        ("bmp:-1", "the weight of bmp"),
        ("bmp:1.5", "the weight of bmp"),
        ("bmp:" + "9" * 5000, "the weight of bmp"),
        ("bmp:1,png:2,bmp:3", "bmp occurs twice"),
        ("jpeg:1", "jpeg is lossy and needs a quality, such as jpeg@95"),
        ("jpeg@:1", "jpeg@: the quality must be a number from 1 to 100"),
        ("jpeg@0:1", "from 1 to 100"),
        ("jpeg@101:1", "from 1 to 100"),
        ("jpeg@095:1", "from 1 to 100"),
        ("bmp@95:1", "bmp is lossless and takes no quality"),
        ("l3-fast@95:1", "l3-fast is lossless and takes no quality"),
        ("gif:1", r"unknown format 'gif' \(known: l3-fast, .*, jpeg@QUALITY"),
        ("l3:1", "unknown format 'l3'"),
    ],
)
def test_mixes_that_make_no_sense(text, message):
    with pytest.raises(ConversionError, match=message):
        parse_mix(text)


# ---- Runs ------------------------------------------------------------------------------------------------------------


def write_tree(source):
    """Ten cats and five dogs of odd widths, RGB; an empty folder; a file that is no image."""
    for number in range(10):
        write_png(source / "cats" / f"{number}.png", noise((20, 31, 3), seed=number))
    for number in range(5):
        write_png(source / "dogs" / f"{number}.png", noise((21, 33, 3), seed=number))
    (source / "empty").mkdir()
    (source / "dogs" / "notes.txt").write_text("text")
    return source


@pytest.fixture
def tree(tmp_path):
    return write_tree(tmp_path / "src")


@pytest.fixture(scope="module")
def mixed_once(tmp_path_factory):
    """A folder with a tree `src` and its mix `mixed`, all BMP files."""
    folder = tmp_path_factory.mktemp("mixed once")
    process = start("convert", write_tree(folder / "src"), folder / "mixed", "--mix", "bmp:1", "--workers", 1)
    _, errors = process.communicate(timeout=HANGS)
    assert process.returncode == 0, errors
    return folder


@pytest.fixture
def mixed(mixed_once, tmp_path):
    """A copy of it."""
    return shutil.copytree(mixed_once, tmp_path / "copy")


def read_record(folder):
    return json.loads((folder / RECORD).read_text())


def suffixes(folder):
    return Counter(path.suffix for path in folder.rglob("*.*"))


def states(folder):
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.rglob("*.*") if path.name != RECORD}


def assert_one_file_for_each_image(source, target):
    """Every image has the file that the record says, with its pixels, and there is nothing else."""
    record = read_record(target)
    files = {path.relative_to(target) for path in target.rglob("*.*")} - {type(target)(RECORD)}
    expected = set()
    for path in source.rglob("*.png"):
        image = record["images"][str(path.relative_to(source))]
        format = find_format(image["format"])
        file = path.relative_to(source).with_suffix(format.suffix)
        expected.add(file)
        assert image["bytes"] == (target / file).stat().st_size
        if not format.lossy:
            decoded, _ = format.decode((target / file).read_bytes())
            np.testing.assert_array_equal(decoded, imagecodecs.png_decode(path.read_bytes()))
    assert files == expected


def test_a_tree_becomes_a_mix_and_a_record_of_it(run, tree, tmp_path):
    target = tmp_path / "dst"
    code, out, err = run("convert", tree, target, "--mix", "l3-fast:6,bmp:4", "--workers", 2)
    assert (code, out) == (0, "")
    assert "15 converted, 1 skipped, 0 failed" in err
    assert suffixes(target / "cats") == {".l3": 6, ".bmp": 4}
    assert suffixes(target / "dogs") == {".l3": 3, ".bmp": 2}
    assert (target / "empty").is_dir()
    record = read_record(target)
    assert (record["version"], record["mix"], record["seed"]) == (1, {"l3-fast": 6, "bmp": 4}, 0)
    for name, suffix, weight, count in (("l3-fast", ".l3", 6, 9), ("bmp", ".bmp", 4, 6)):
        size = sum(path.stat().st_size for path in target.rglob(f"*{suffix}"))
        assert record["formats"][name] == {
            "weight": weight,
            "drawn": count,
            "not_representable": 0,
            "files": count,
            "bytes": size,
        }
        assert f"{name}: {count} drawn, {count} files, {size / 1e6:.2f} MB\n" in err
    assert_one_file_for_each_image(tree, target)


def test_the_seed_decides_and_one_format_will_do(run, tree, tmp_path):
    def planned(*options):
        code, out, _ = run("convert", tree, tmp_path / "dst", *options, "--dry-run")
        assert code == 0
        return {line.split(" -> ")[1] for line in out.splitlines()}

    drawn = planned("--mix", "l3-raw:1,png:1")
    assert drawn == planned("--mix", "png:1,l3-raw:1", "--seed", 0) != planned("--mix", "png:1,l3-raw:1", "--seed", 1)
    assert Counter(os.path.splitext(path)[1] for path in planned("--mix", "bmp:1")) == {".bmp": 15}
    assert run("convert", tree, tmp_path / "dst", "--mix", "l3-raw:1,png:1")[0] == 0
    assert set(map(str, states(tmp_path / "dst"))) == drawn
    l3 = next((tmp_path / "dst").rglob("*.l3")).read_bytes()
    assert dali_l3.peek(l3).profile == "raw"


def test_effort_applies_to_l3(run, tmp_path):
    pixels = smooth_image((200, 300, 3), np.uint8)
    write_png(tmp_path / "src" / "a.png", pixels)
    sizes = set()
    for effort in (1, 3):
        run("convert", tmp_path / "src", tmp_path / str(effort), "--mix", "l3-fast:1", "--effort", effort)
        data = (tmp_path / str(effort) / "a.l3").read_bytes()
        assert data == dali_l3.encode(pixels, effort=effort)
        sizes.add(len(data))
    assert len(sizes) == 2


def test_running_again_keeps_everything(run, tree, tmp_path):
    target = tmp_path / "dst"
    command = ("convert", tree, target, "--mix", "l3-fast:1,bmp:1,jpeg@90:1")
    run(*command)
    before, record = states(target), (target / RECORD).read_bytes()
    code, _, err = run(*command)
    assert code == 0
    assert "15 kept" in err
    assert states(target) == before
    assert (target / RECORD).read_bytes() == record
    code, _, err = run(*command, "--overwrite")
    assert "15 converted" in err
    assert states(target).keys() == before.keys()
    assert not set(states(target).values()) & set(before.values())
    assert (target / RECORD).read_bytes() == record


def test_a_lost_or_outdated_file_is_written_again_in_its_format(run, tree, tmp_path):
    target = tmp_path / "dst"
    command = ("convert", tree, target, "--mix", "png:1,bmp:1,webp:1")
    run(*command)
    before = states(target)
    next(target.rglob("*.bmp")).unlink()
    outdated = next(target.rglob("*.webp"))
    os.utime(outdated, (1, 1))
    assert "2 converted, 13 kept" in run(*command)[2]
    assert states(target).keys() == before.keys()
    assert_one_file_for_each_image(tree, target)


def test_images_that_come_later_join_the_mix(run, tree, tmp_path):
    target = tmp_path / "dst"
    command = ("convert", tree, target, "--mix", "l3-fast:1,bmp:1")
    run(*command)
    before = states(target)
    for number in range(10, 15):
        write_png(tree / "cats" / f"{number}.png", noise((20, 31, 3), seed=number))
    assert "5 converted, 15 kept" in run(*command)[2]
    after = states(target)
    assert {path: after[path] for path in before} == before
    assert sorted(suffixes(target / "cats").values()) == [7, 8]
    assert sorted(suffixes(target / "dogs").values()) == [2, 3]
    assert_one_file_for_each_image(tree, target)


def test_images_that_leave_are_still_on_record_and_have_their_file(run, tree, tmp_path):
    target = tmp_path / "dst"
    command = ("convert", tree, target, "--mix", "l3-fast:1,bmp:1")
    run(*command)
    record = read_record(target)
    data = (tree / "cats" / "3.png").read_bytes()
    (tree / "cats" / "3.png").unlink()
    run(*command)
    assert read_record(target) == record
    (tree / "cats" / "3.png").write_bytes(data)
    run(*command)
    assert_one_file_for_each_image(tree, target)


KILLED = """
import os, signal, sys
from dali_l3.conversion.converting import convert_file
from dali_l3.conversion.mixing import parse_mix, plan_mix, recorded
work, record = plan_mix(sys.argv[1], sys.argv[2], parse_mix(sys.argv[3]))
work.prepare_folders()
outcomes = (convert_file(task) for task in work.tasks)
for number, outcome in enumerate(recorded(outcomes, record, sys.argv[1], sys.argv[2])):
    if number == 8:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_is_continued_as_it_was_drawn(run, tree, tmp_path):
    target, mix = tmp_path / "dst", "l3-fast:1,bmp:1,jpeg@90:1"
    command = ("convert", tree, target, "--mix", mix)
    run("convert", tree, tmp_path / "whole", "--mix", mix)
    assert subprocess.run([sys.executable, "-c", KILLED, tree, target, mix]).returncode == -9
    before = states(target)
    assert len(before) == 9
    measured = [path for path in before if path.suffix == ".jpg"]
    assert measured, "some of the files are lossy"
    code, _, err = run(*command)
    assert code == 0
    # What lossy files had lost was not on record yet, so that they are made again.
    assert f"{6 + len(measured)} converted, {9 - len(measured)} kept" in err
    after = states(target)
    assert all((after[path] == state) == (path not in measured) for path, state in before.items())
    assert read_record(target) == read_record(tmp_path / "whole")
    assert_one_file_for_each_image(tree, target)


def test_images_that_come_after_a_kill_leave_the_draw_alone(run, tree, tmp_path):
    target, mix = tmp_path / "dst", "l3-fast:1,bmp:1,png:1"
    subprocess.run([sys.executable, "-c", KILLED, tree, target, mix])
    drawn = {path: image["drawn"] for path, image in read_record(target)["images"].items()}
    assert len(drawn) == 15
    for number in range(10, 30):
        write_png(tree / "cats" / f"{number}.png", noise((20, 31, 3), seed=number))
    assert run("convert", tree, target, "--mix", mix)[0] == 0
    images = read_record(target)["images"]
    assert {path: images[path]["drawn"] for path in drawn} == drawn
    assert_one_file_for_each_image(tree, target)


def test_a_run_that_is_abandoned_records_what_it_did(tree, tmp_path):
    target = tmp_path / "dst"
    work, record = plan_mix(str(tree), str(target), {"jpeg@90": 1})
    work.prepare_folders()
    outcomes = recorded((convert_file(task) for task in work.tasks), record, str(tree), str(target))
    for _ in range(3):
        next(outcomes)
    outcomes.close()
    assert sum("psnr" in image for image in read_record(target)["images"].values()) == 3
    again, _ = plan_mix(str(tree), str(target), {"jpeg@90": 1})
    assert [outcome.status for outcome in again.outcomes].count("kept") == 3


def test_a_dry_run_shows_counts_and_writes_nothing(run, tree, tmp_path):
    code, out, err = run("convert", tree, tmp_path / "dst", "--mix", "l3-fast:2,bmp:1", "--dry-run")
    assert code == 0
    assert Counter(os.path.splitext(line)[1] for line in out.splitlines()) == {".l3": 10, ".bmp": 5}
    assert "15 planned, 1 skipped" in err
    assert "l3-fast: 10 drawn\nbmp: 5 drawn\n" in err
    assert not (tmp_path / "dst").exists()
    run("convert", tree, tmp_path / "dst", "--mix", "l3-fast:2,bmp:1")
    assert {line.split(" -> ")[1] for line in out.splitlines()} == set(map(str, states(tmp_path / "dst")))


def test_what_does_not_fit_is_counted_reported_and_kept(run, tree, tmp_path):
    target = tmp_path / "dst"
    write_png(tree / "cats" / "deep.png", noise((9, 7), np.uint16))
    write_png(tree / "dogs" / "clear.png", noise((9, 7, 4)))
    command = ("convert", tree, target, "--mix", "bmp:1", "--report", tmp_path / "report")
    code, _, err = run(*command)
    assert code == 0
    assert f"note: not representable in bmp (16-bit samples): kept as l3-fast: 1 file\n  {tree}/cats/deep.png" in err
    assert "not representable in bmp (RGBA pixels)" in err
    assert "bmp: 17 drawn, 15 files, 0.03 MB; 2 not representable in it" in err
    assert "l3-fast: 0 drawn, 2 files" in err
    record = read_record(target)
    assert record["images"]["cats/deep.png"].items() >= {"drawn": "bmp", "format": "l3-fast"}.items()
    assert record["formats"]["bmp"]["not_representable"] == 2
    assert_one_file_for_each_image(tree, target)
    report = [json.loads(line) for line in (tmp_path / "report").read_text().splitlines()]
    targets = {os.path.relpath(line["source"], tree): (line["target"], line["format"]) for line in report}
    assert targets["cats/deep.png"] == (str(target / "cats" / "deep.l3"), "l3-fast")
    assert targets["cats/0.png"] == (str(target / "cats" / "0.bmp"), "bmp")
    assert "17 kept" in run(*command)[2]
    assert_one_file_for_each_image(tree, target)
    assert read_record(target) == record


def test_a_source_that_its_format_cannot_hold_any_more_has_one_file_all_the_same(run, tree, tmp_path):
    target = tmp_path / "dst"
    command = ("convert", tree, target, "--mix", "bmp:1")
    run(*command)
    write_png(tree / "cats" / "3.png", noise((9, 7), np.uint16))
    os.utime(tree / "cats" / "3.png", (1000, 1000))
    assert "1 converted, 14 kept" in run(*command)[2]
    assert_one_file_for_each_image(tree, target)
    assert "15 kept" in run(*command)[2]


def test_psnr_is_reported_and_recorded(run, tree, tmp_path):
    target = tmp_path / "dst"
    _, _, err = run("convert", tree, target, "--mix", "jpeg@50:2,webp@90:1", "--report", tmp_path / "report")
    record = read_record(target)
    report = [json.loads(line) for line in (tmp_path / "report").read_text().splitlines()]
    for name, count in (("jpeg@50", 10), ("webp@90", 5)):
        psnr = [line["psnr"] for line in report if line["format"] == name]
        assert len(psnr) == count
        totals = record["formats"][name]
        assert (totals["psnr_mean"], totals["psnr_min"]) == (pytest.approx(sum(psnr) / count), min(psnr))
        assert f"PSNR {totals['psnr_mean']:.2f} dB on average, {min(psnr):.2f} dB at worst" in err


def test_a_bad_image_costs_itself_alone(run, tree, tmp_path):
    (tree / "cats" / "5.png").write_bytes((tree / "cats" / "5.png").read_bytes()[:100])
    code, _, err = run("convert", tree, tmp_path / "dst", "--mix", "l3-fast:1,bmp:1")
    assert code == 1
    assert "14 converted, 1 skipped, 1 failed" in err
    record = read_record(tmp_path / "dst")
    assert record["images"]["cats/5.png"].keys() == {"drawn"}
    assert sum(total["files"] for total in record["formats"].values()) == 14
    write_png(tree / "cats" / "5.png", noise((20, 31, 3), seed=5))
    assert run("convert", tree, tmp_path / "dst", "--mix", "l3-fast:1,bmp:1")[0] == 0
    assert_one_file_for_each_image(tree, tmp_path / "dst")


def test_images_that_differ_in_their_suffixes_alone_stop_everything(run, tree, tmp_path):
    """Whatever was drawn for them: both might end as l3-fast."""
    Image.new("RGB", (4, 4)).save(tree / "cats" / "0.jpg")
    for seed in range(4):
        code, _, err = run("convert", tree, tmp_path / "dst", "--mix", "bmp:1,l3-raw:1", "--seed", seed)
        assert code == 2
        assert "several sources would become one file" in err
    assert not (tmp_path / "dst").exists()
    assert run("convert", tree, tmp_path / "dst", "--mix", "bmp:1", "--keep-suffix")[0] == 0
    assert {"0.png.bmp", "0.jpg.bmp"} <= {path.name for path in (tmp_path / "dst" / "cats").iterdir()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("src", "dst", "--mix", "jpeg:1"), "jpeg is lossy and needs a quality"),
        (("src", "dst", "--mix", "bmp:1", "--profile", "fast"), "--profile and --mix cannot be combined"),
        (("src", "dst", "--seed", "1"), "--seed needs --mix"),
        (("src/cats/0.png", "dst", "--mix", "bmp:1"), "src/cats/0.png: a mix needs a folder"),
        (("missing", "dst", "--mix", "bmp:1"), "missing: no such folder"),
        (("src", "src/in", "--mix", "bmp:1"), "must not be the same or inside one another"),
        (("src", "src/cats/0.png", "--mix", "bmp:1"), "src/cats/0.png: the target of a folder must be a folder"),
        (("src", "full", "--mix", "bmp:1"), f"full: holds files, but no {RECORD}"),
        (("src", "mixed", "--mix", "bmp:2"), "mixed was made with --mix bmp:1 --seed 0; continue with these settings"),
        (("src", "mixed", "--mix", "bmp:1", "--seed", "1"), "mixed was made with"),
        (("src", "mixed", "--mix", "bmp:1", "--keep-suffix", "--overwrite"), "mixed was made with"),
        (("src", "mixed"), f"mixed: holds a mix ({RECORD})"),
    ],
)
def test_requests_that_make_no_sense(run, mixed, monkeypatch, arguments, message):
    monkeypatch.chdir(mixed)
    (mixed / "full" / "cats").mkdir(parents=True)
    (mixed / "full" / "cats" / "0.l3").touch()
    before = states(mixed)
    code, _, err = run("convert", *arguments)
    assert code == 2
    assert message in err
    assert states(mixed) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: len(text) // 2], "not JSON"),
        (lambda text: "\xff", "not JSON"),
        (lambda text: "[" * 100_000, "not JSON"),
        (lambda text: "[]", "not a valid record of a mix"),
        (lambda text: '{"version": 1}', "not a valid record of a mix"),
        (lambda text: text.replace('"version": 1', '"version": 2'), "of version 2"),
        (lambda text: text.replace('"drawn": "bmp"', '"drawn": "png"'), "not a valid record of a mix"),
        (lambda text: text.replace('"drawn": "bmp"', '"drawn": ["bmp"]'), "not a valid record of a mix"),
        (lambda text: text.replace('"format": "bmp"', '"format": 5'), "not a valid record of a mix"),
        (lambda text: text.replace('"format": "bmp"', '"format": "gif"'), "unknown format 'gif'"),
        (lambda text: text.replace('"drawn"', '"painted"'), "not a valid record of a mix"),
    ],
)
def test_a_damaged_record_stops_everything(run, mixed, change, message):
    source, target = mixed / "src", mixed / "mixed"
    (target / RECORD).write_text(change((target / RECORD).read_text()), encoding="latin-1")
    before = states(target)
    write_png(source / "cats" / "new.png", noise((9, 7, 3)))
    code, _, err = run("convert", source, target, "--mix", "bmp:1")
    assert code == 2
    assert message in err
    assert states(target) == before


def test_a_copy_whose_record_is_sound_is_continued(run, mixed):
    """As those in the tests above would be, but for what is wrong with them."""
    assert "15 kept" in run("convert", mixed / "src", mixed / "mixed", "--mix", "bmp:1")[2]


def test_a_record_that_cannot_be_written_leaves_the_old_one(tree, tmp_path, monkeypatch):
    record = MixRecord.load(str(tmp_path))
    assert record is None
    _, record = plan_mix(str(tree), str(tmp_path / "dst"), {"bmp": 1})
    (tmp_path / "dst").mkdir()
    record.save(str(tmp_path / "dst"))
    before = (tmp_path / "dst" / RECORD).read_bytes()

    def refuse(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    record.images.clear()
    with pytest.raises(OSError, match="No space left"):
        record.save(str(tmp_path / "dst"))
    assert (tmp_path / "dst" / RECORD).read_bytes() == before
    assert [path.name for path in (tmp_path / "dst").iterdir()] == [RECORD]


# ---- With DALI -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("plugin")
def test_dali_reads_the_mix_and_nothing_else(run, tree, tmp_path):
    """All formats in one batch, gray and odd widths too; a batch is what fn.readers.file finds in the folder."""
    from nvidia.dali import fn, pipeline_def, types

    for number in range(12):
        write_png(tree / "gray" / f"{number}.png", noise((8, 1 + number), seed=number))
    target = tmp_path / "dst"
    mix = "l3-fast:1,l3-raw:1,l3-paper:1,bmp:3,png:1,tiff:1,webp:1"
    assert run("convert", tree, target, "--mix", mix)[0] == 0
    assert len(suffixes(target / "gray")) >= 4
    sources = [path.relative_to(tree) for path in tree.rglob("*.png")]
    filters = ["*.l3", "*.bmp", "*.png", "*.tiff", "*.webp", "*.jpg"]

    @pipeline_def(batch_size=len(sources), num_threads=2, device_id=None, prefetch_queue_depth=1)
    def pipeline():
        encoded, labels = fn.readers.file(name="reader", file_root=str(target), file_filters=filters)
        decoded = fn.decoders.image(encoded, output_type=types.RGB)
        return decoded, fn.get_property(encoded, key="source_info")

    pipe = pipeline()
    pipe.build()
    assert pipe.epoch_size("reader") == len(sources)
    decoded, names = pipe.run()
    found = {os.path.splitext(bytes(np.array(name)).decode())[0]: np.array(decoded[i]) for i, name in enumerate(names)}
    for path in sources:
        expected = imagecodecs.png_decode((tree / path).read_bytes())
        if expected.ndim == 2:
            expected = np.repeat(expected[:, :, None], 3, axis=2)
        np.testing.assert_array_equal(found[str(path.with_suffix(""))], expected, err_msg=str(path))


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 255, 256, 257])
@pytest.mark.parametrize("channels", [1, 3])
def test_dali_reads_bmp_files_of_all_widths(tmp_path, channels, width):
    from nvidia.dali import fn, types

    from pipelines import decode_one

    pixels = noise((3, width, channels))
    write_image(str(tmp_path / "a.bmp"), pixels, {}, find_format("bmp"))
    decoded = decode_one(fn.decoders.image, (tmp_path / "a.bmp").read_bytes(), output_type=types.ANY_DATA)
    np.testing.assert_array_equal(decoded, pixels)
