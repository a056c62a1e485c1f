"""Conversion as functions: planning, atomic files, workers, and the round trip of every kind of image."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zlib

import imagecodecs
import numpy as np
import pytest

import dali_l3
import worker_functions
from dali_l3 import files
from dali_l3.conversion import converting
from dali_l3.conversion.converting import TO_L3, conversion_to, convert_file, convert_image
from dali_l3.conversion.exporting import TO_PNG, export_file
from dali_l3.conversion.verifying import verify_file
from dali_l3.errors import ConversionError, TargetError
from dali_l3.images import formats
from dali_l3.images.formats import find_format
from dali_l3.images.reading import count_pages, read_as_stored, read_image
from dali_l3.images.stored import ReadOptions
from dali_l3.jobs import planning, walking
from dali_l3.jobs.outcomes import Outcome, Task
from dali_l3.jobs.planning import PlanError, plan
from dali_l3.jobs.running import run_plan
from dali_l3.jobs.workers import run_tasks
from image_files import exif, noise, png, png_chunk, tiff


def write_png(path, pixels=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(imagecodecs.png_encode(noise((5, 6, 3)) if pixels is None else pixels))
    return str(path)


def write_l3(path, profile="fast"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(dali_l3.encode(noise((5, 6, 3)), profile=profile))
    return str(path)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def plan_names(result, source, target):
    return {os.path.relpath(t.source, source): os.path.relpath(t.target, target) for t in result.tasks}


# ---- One file --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["raw", "paper", "fast"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("shape", [(7, 9), (70, 130, 2), (7, 9, 3), (70, 130, 4)])
def test_png_to_l3_and_back(tmp_path, shape, dtype, profile):
    pixels = noise(shape, dtype)
    source = write_png(tmp_path / "a.png", pixels)
    l3, back = str(tmp_path / "a.l3"), str(tmp_path / "back.png")
    outcome = convert_file(Task(source, l3, f"l3-{profile}"))
    assert (outcome.status, outcome.raw_size) == ("done", pixels.nbytes)
    assert (outcome.source_size, outcome.target_size) == (os.path.getsize(source), os.path.getsize(l3))
    data = (tmp_path / "a.l3").read_bytes()
    assert dali_l3.peek(data).profile == profile
    np.testing.assert_array_equal(dali_l3.decode(data), pixels)
    assert verify_file(Task(l3)).status == "done"
    assert export_file(Task(l3, back)).status == "done"
    exported = imagecodecs.png_decode((tmp_path / "back.png").read_bytes())
    assert exported.dtype == dtype
    np.testing.assert_array_equal(exported, pixels)


def test_colour_profile_and_exif_survive_both_ways(tmp_path):
    profile = bytes(range(256)) * 3
    chunks = png_chunk(b"iCCP", b"x\0\0" + zlib.compress(profile)) + png_chunk(b"eXIf", exif(6))
    pixels = noise((5, 6, 3))
    (tmp_path / "a.png").write_bytes(png(pixels, 8, 2, chunks))
    outcome = convert_file(Task(str(tmp_path / "a.png"), str(tmp_path / "a.l3")))
    assert outcome.notes == ("EXIF orientation 6 applied",)
    assert dali_l3.read_metadata((tmp_path / "a.l3").read_bytes()) == {"icc": profile, "exif": exif(1)}
    assert export_file(Task(str(tmp_path / "a.l3"), str(tmp_path / "b.png"))).status == "done"
    back = read_image((tmp_path / "b.png").read_bytes())
    np.testing.assert_array_equal(back.pixels, np.rot90(pixels, -1))
    assert (back.metadata, back.notes) == ({"icc": profile, "exif": exif(1)}, ())


def test_export_compresses_as_asked(tmp_path):
    (tmp_path / "a.l3").write_bytes(dali_l3.encode(np.zeros((100, 100), np.uint8)))
    sizes = [export_file(Task(str(tmp_path / "a.l3"), str(tmp_path / "a.png")), level).target_size for level in (0, 9)]
    assert sizes[1] < 1000 < 10_000 < sizes[0]


def test_export_neither_turns_pixels_nor_changes_exif_data(tmp_path):
    pixels = noise((5, 6, 3))
    metadata = {"icc": b"profile", "exif": exif(6), "xmp": b"<x tiff:Orientation='6'/>"}
    (tmp_path / "a.l3").write_bytes(dali_l3.encode(pixels, metadata=metadata))
    outcome = export_file(Task(str(tmp_path / "a.l3"), str(tmp_path / "a.png")))
    assert (outcome.status, outcome.notes) == ("done", ())
    data = (tmp_path / "a.png").read_bytes()
    np.testing.assert_array_equal(imagecodecs.png_decode(data), pixels)
    assert png_chunk(b"eXIf", exif(6)) in data
    assert png_chunk(b"iTXt", b"XML:com.adobe.xmp" + bytes(5) + metadata["xmp"]) in data


def test_export_of_a_single_channel_array_and_of_unknown_metadata(tmp_path):
    pixels = noise((5, 6, 1))
    (tmp_path / "a.l3").write_bytes(dali_l3.encode(pixels, metadata={"note": b"x"}))
    outcome = export_file(Task(str(tmp_path / "a.l3"), str(tmp_path / "a.png")))
    assert outcome.notes == ("metadata 'note' has no place in a PNG file and was left out",)
    np.testing.assert_array_equal(imagecodecs.png_decode((tmp_path / "a.png").read_bytes()), pixels[..., 0])


LFS_POINTER = "is a Git LFS pointer, not an image: run 'git lfs pull'"


@pytest.mark.parametrize(
    ("name", "content", "status", "reason"),
    [
        ("notes.txt", b"text", "skipped", "not an image"),
        ("notes.txt", b"", "skipped", "not an image"),
        ("a.png", b"", "failed", "empty file"),
        ("a.png", b"text", "failed", "named like an image, but the content is not one"),
        ("a.gif", b"GIF89a", "failed", "GIF files are not supported: convert to PNG or TIFF first"),
        ("a.png", b"version https://git-lfs.github.com/spec/v1\noid", "failed", LFS_POINTER),
        ("labels.csv", b"version https://git-lfs.github.com/spec/v1\noid", "skipped", "not an image"),
        ("page.html", b"<html>", "skipped", "not an image"),
        ("page.jpg", b"<html>", "failed", "is an HTML page, not an image"),
        ("a", b"\x89L3I\r\n\x1a\n", "skipped", "an L3 file already"),
    ],
)
def test_files_that_are_not_converted(tmp_path, name, content, status, reason):
    (tmp_path / name).write_bytes(content)
    outcome = convert_file(Task(str(tmp_path / name), str(tmp_path / "out.l3")))
    assert (outcome.status, outcome.reason) == (status, reason)
    assert names(tmp_path) == [name]


def test_content_counts_not_the_name(tmp_path):
    write_png(tmp_path / "really.jpg")
    assert convert_file(Task(str(tmp_path / "really.jpg"), str(tmp_path / "a.l3"))).status == "done"


@pytest.mark.parametrize(
    "wrong",
    [
        dali_l3.encode(noise((5, 6, 3), seed=1)),
        dali_l3.encode(noise((5, 6, 3)).astype(np.uint16)),
        dali_l3.encode(noise((5, 6, 3)), metadata={"icc": b"made up"}),
        b"no L3 file",
    ],
    ids=("pixels", "dtype", "metadata", "everything"),
)
def test_an_encoder_that_errs_never_gets_its_file_named(tmp_path, monkeypatch, wrong):
    source = write_png(tmp_path / "a.png")
    monkeypatch.setattr(formats, "encode", lambda *args, **kwargs: wrong)
    outcome = convert_file(Task(source, str(tmp_path / "a.l3")))
    assert outcome.status == "failed"
    assert names(tmp_path) == ["a.png"]


def test_targets_bear_the_dates_of_their_sources(tmp_path):
    source, l3, back = (str(tmp_path / name) for name in ("a.png", "a.l3", "b.png"))
    write_png(tmp_path / "a.png")
    os.utime(source, ns=(5, 1_234_567_890_123_456_789))
    assert convert_file(Task(source, l3)).status == "done"
    assert export_file(Task(l3, back)).status == "done"
    assert os.stat(l3).st_mtime_ns == os.stat(back).st_mtime_ns == 1_234_567_890_123_456_789


def test_a_source_that_changes_while_it_is_read_is_newer_than_its_target(tmp_path, monkeypatch):
    source, target = write_png(tmp_path / "a.png"), tmp_path / "out" / "a.l3"
    target.parent.mkdir()
    touch(source, 1000)

    def read_slowly(data, options):
        touch(source, 1001)
        return read_as_stored(data, options)

    monkeypatch.setattr(converting, "read_as_stored", read_slowly)
    assert convert_file(Task(source, str(target))).status == "done"
    assert len(plan(source, str(target.parent), TO_L3).tasks) == 1


@pytest.mark.parametrize("format", ["l3-fast", "png", "bmp", "tiff", "webp", "jpeg@95", "webp@95"])
def test_the_bytes_of_a_converted_image_are_those_of_the_file(tmp_path, format):
    source = write_png(tmp_path / "a.png")
    assert convert_file(Task(source, str(tmp_path / "b"), format)).format == format
    assert convert_image((tmp_path / "a.png").read_bytes(), format) == (tmp_path / "b").read_bytes()


def test_images_that_cannot_be_converted_say_why(tmp_path):
    write_png(tmp_path / "a.png", noise((5, 6), np.uint16))
    deep = (tmp_path / "a.png").read_bytes()
    with pytest.raises(ConversionError, match=r"not representable in bmp \(16-bit samples\)"):
        convert_image(deep, "bmp")
    with pytest.raises(ConversionError, match="unknown format 'gif'"):
        convert_image(deep, "gif")
    with pytest.raises(ConversionError, match="6 x 5 pixels exceed the limit of 29"):
        convert_image(deep, options=ReadOptions(max_pixels=29))
    with pytest.raises(ConversionError, match="unknown signature"):
        convert_image(b"text")


def test_a_target_that_cannot_be_written_is_a_failure_with_the_systems_reason(tmp_path):
    outcome = convert_file(Task(write_png(tmp_path / "a.png"), str(tmp_path / "missing" / "a.l3")))
    folder = tmp_path / "missing"
    assert (outcome.status, outcome.reason) == ("failed", f"cannot write {folder}/a.l3: there is no folder {folder}")


def test_verify_finds_damage(tmp_path):
    path = tmp_path / "a.l3"
    write_l3(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert verify_file(Task(str(path))).status == "failed"
    path.write_bytes(data[:60])
    assert verify_file(Task(str(path))).status == "failed"


def test_verify_says_when_there_are_no_checksums_to_compare(tmp_path):
    (tmp_path / "a.l3").write_bytes(dali_l3.encode(noise((5, 6)), checksums=False))
    outcome = verify_file(Task(str(tmp_path / "a.l3")))
    assert outcome.status == "done"
    assert "no tile checksums" in outcome.notes[0]


def test_outcome_as_json_survives_any_file_name():
    outcome = Outcome(os.fsdecode(b"a\xff\n.png"), None, "skipped", "no", ("a note",))
    line = outcome.to_json()
    assert "\n" not in line
    assert os.fsencode(json.loads(line)["source"]) == b"a\xff\n.png"


# ---- Planning --------------------------------------------------------------------------------------------------------


def test_a_tree_is_mirrored_empty_folders_included(tmp_path):
    source, target = tmp_path / "src", tmp_path / "dst"
    for name in ("cats/a.png", "cats/b.JPG", "dogs/small/c", "dogs/scan.001"):
        write_png(source / name)
    (source / "empty").mkdir()
    result = plan(str(source), str(target), TO_L3)
    assert plan_names(result, source, target) == {
        "cats/a.png": "cats/a.l3",
        "cats/b.JPG": "cats/b.l3",
        "dogs/small/c": "dogs/small/c.l3",
        "dogs/scan.001": "dogs/scan.001.l3",
    }
    assert not target.exists()
    result.prepare_folders()
    assert names(target) == ["cats", "dogs", "dogs/small", "empty"]


def test_suffixes_can_be_kept(tmp_path):
    write_png(tmp_path / "src" / "a.png")
    write_png(tmp_path / "src" / "a.jpg")
    result = plan(str(tmp_path / "src"), str(tmp_path / "dst"), TO_L3, keep_suffix=True)
    assert sorted(os.path.basename(task.target) for task in result.tasks) == ["a.jpg.l3", "a.png.l3"]


def test_two_images_that_would_become_one_file_stop_everything(tmp_path):
    write_png(tmp_path / "src" / "a.png")
    write_png(tmp_path / "src" / "a.jpg")
    with pytest.raises(PlanError, match=r"(?s)several sources would become one file.*a\.jpg, .*a\.png -> .*a\.l3"):
        plan(str(tmp_path / "src"), str(tmp_path / "dst"), TO_L3)
    assert names(tmp_path) == ["src", "src/a.jpg", "src/a.png"]


def test_a_file_that_is_no_image_is_no_rival(tmp_path):
    write_png(tmp_path / "src" / "a.png")
    (tmp_path / "src" / "a.jpg").write_text("a caption under a strange name")
    assert len(plan(str(tmp_path / "src"), str(tmp_path / "dst"), TO_L3).tasks) == 2


def test_source_and_target_may_not_overlap(tmp_path):
    write_png(tmp_path / "src" / "sub" / "a.png")
    source = str(tmp_path / "src")
    (tmp_path / "link").symlink_to(source)
    for target in (
        source,
        f"{source}/",
        f"{source}/new",
        str(tmp_path),
        str(tmp_path / "link"),
        str(tmp_path / "link" / "x" / "y"),
    ):
        with pytest.raises(PlanError, match="same or inside"):
            plan(source, target, TO_L3)


def test_a_target_folder_that_leads_into_the_source_is_refused(tmp_path):
    write_png(tmp_path / "src" / "sub" / "a.png")
    (tmp_path / "dst").mkdir()
    (tmp_path / "dst" / "sub").symlink_to(tmp_path / "src" / "sub")
    with pytest.raises(PlanError, match="link into the source"):
        plan(str(tmp_path / "src"), str(tmp_path / "dst"), TO_L3)


def test_targets_of_a_single_file(tmp_path):
    source = write_png(tmp_path / "a.png")
    (tmp_path / "folder").mkdir()
    for target, expected in (
        (tmp_path / "folder", tmp_path / "folder" / "a.l3"),
        (f"{tmp_path}/new/", tmp_path / "new" / "a.l3"),
        (tmp_path / "b.l3", tmp_path / "b.l3"),
        (tmp_path / "deep" / "b.L3", tmp_path / "deep" / "b.L3"),
    ):
        assert plan(source, str(target), TO_L3).tasks == [Task(source, str(expected), "l3-fast")]
    with pytest.raises(PlanError, match=r"must end in \.l3"):
        plan(source, str(tmp_path / "b.png"), TO_L3)
    with pytest.raises(PlanError, match="must be a folder"):
        plan(str(tmp_path / "folder"), source, TO_L3)
    with pytest.raises(PlanError, match="no such file"):
        plan(str(tmp_path / "missing.png"), str(tmp_path / "b.l3"), TO_L3)
    l3 = write_l3(tmp_path / "c.l3")
    (tmp_path / "d.l3").symlink_to(l3)
    for same in (l3, str(tmp_path / "d.l3")):
        with pytest.raises(PlanError, match="same file"):
            plan(l3, same, TO_L3)


def touch(path, seconds):
    os.utime(path, (seconds, seconds))


def test_which_existing_targets_are_kept(tmp_path):
    source, target = str(tmp_path / "a.png"), tmp_path / "out" / "a.l3"
    write_png(tmp_path / "a.png")
    touch(source, 1000)

    def status(overwrite=False, profile="fast"):
        result = plan(source, f"{target.parent}/", conversion_to(find_format(f"l3-{profile}")), overwrite)
        return result.outcomes[0].status if result.outcomes else "to do"

    assert status() == "to do"
    write_l3(target)
    touch(target, 1000)
    assert status() == "kept"
    assert status(overwrite=True) == "to do"
    assert status(profile="raw") == "to do"
    touch(target, 999)
    assert status() == "to do", "its source is newer"
    touch(target, 1001)
    assert status() == "to do", "its source is older, so it is another"
    for size, part in ((-20, "pixels"), (10, "header")):
        target.write_bytes(target.read_bytes()[:size])
        touch(target, 1000)
        assert status() == "to do", f"it is truncated within the {part}"
    target.write_bytes(b"something of the user's")
    assert status() == "failed"
    assert status(overwrite=True) == "to do"
    target.unlink()
    os.mkfifo(target)
    assert status() == "failed"
    target.unlink()
    target.symlink_to("nowhere")
    assert status() == "failed"


def test_export_keeps_finished_files_and_spares_others(tmp_path):
    source = write_l3(tmp_path / "a.l3")
    target = tmp_path / "a.png"
    assert export_file(Task(source, str(target))).status == "done"
    assert plan(source, str(tmp_path), TO_PNG).outcomes[0].status == "kept"
    target.write_bytes(target.read_bytes()[:-1])
    os.utime(target, ns=(0, os.stat(source).st_mtime_ns))
    assert len(plan(source, str(tmp_path), TO_PNG).tasks) == 1
    target.write_text("no PNG")
    assert plan(source, str(tmp_path), TO_PNG).outcomes[0].reason == "the target exists and is not a file of format PNG"


@pytest.mark.parametrize("make", [write_png, write_l3, os.mkfifo, os.mkdir, lambda path: path.symlink_to("nowhere")])
def test_whatever_exists_under_the_name_of_a_target_is_only_replaced_if_asked_for(tmp_path, make):
    source, target = write_png(tmp_path / "src" / "a.png"), tmp_path / "a.l3"
    make(target)
    if make is os.mkdir:  # a folder to write to, whatever its name
        assert plan(source, str(target), TO_L3).tasks[0].target == str(target / "a.l3")
        return
    with pytest.raises(PlanError, match="a.l3: exists already; --overwrite replaces it"):
        plan(source, str(target), TO_L3)
    assert plan(source, str(target), TO_L3, overwrite=True).tasks == [Task(source, str(target), "l3-fast")]


# ---- Pages -----------------------------------------------------------------------------------------------------------


def write_stack(path, pages, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tiff(noise((5, 6, 1), seed=seed), pages=pages))
    return str(path)


def split(source, target, **options):
    return plan(str(source), str(target), TO_L3, count_pages=count_pages, **options)


def test_every_page_becomes_a_file_whose_number_has_as_many_digits_as_the_last(tmp_path):
    source, target = tmp_path / "src", tmp_path / "dst"
    for name, pages in (("a/one.tif", 1), ("a/two.tif", 2), ("ten", 10)):
        write_stack(source / name, pages)
    write_png(source / "b.png")
    result = split(source, target)
    assert [(os.path.relpath(task.target, target), task.page) for task in result.tasks] == [
        ("b.l3", None),
        *((f"ten-{number:02}.l3", number - 1) for number in range(1, 11)),
        ("a/one.l3", None),
        ("a/two-1.l3", 0),
        ("a/two-2.l3", 1),
    ]
    assert [task.page for task in plan(str(source), str(target), TO_L3).tasks] == [None] * 4
    kept = [os.path.basename(task.target) for task in split(source / "a", target, keep_suffix=True).tasks]
    assert kept == ["one.tif.l3", "two.tif-1.l3", "two.tif-2.l3"]


def test_a_page_and_an_image_that_would_become_one_file_stop_everything(tmp_path):
    write_stack(tmp_path / "src" / "a.tif", 2)
    write_png(tmp_path / "src" / "a-2.png")
    write_png(tmp_path / "src" / "a.png")  # no rival
    with pytest.raises(
        PlanError, match=r"(?s)several sources would become one file.*/a-2\.png, .*/a\.tif -> .*/a-2\.l3$"
    ):
        split(tmp_path / "src", tmp_path / "dst")
    assert len(split(tmp_path / "src", tmp_path / "dst", keep_suffix=True).tasks) == 4


def test_the_pages_of_a_single_file_need_a_folder(tmp_path):
    source = write_stack(tmp_path / "a.tif", 2)
    with pytest.raises(
        PlanError, match=r"b\.l3 is not a folder: the 2 pages of .*a\.tif need a folder as their target"
    ):
        split(source, tmp_path / "b.l3")
    assert len(split(source, f"{tmp_path}/new/").tasks) == 2
    assert split(write_stack(tmp_path / "c.tif", 1), tmp_path / "d.L3").tasks[0].target == str(tmp_path / "d.L3")


def test_a_stack_whose_pages_cannot_be_counted_is_one_task_that_will_fail(tmp_path):
    (tmp_path / "src").mkdir()
    data = tiff(noise((5, 6, 1)), pages=2)
    (tmp_path / "src" / "a.tif").write_bytes(data[:4] + b"\xff\xff\xff\x7f" + data[8:])
    (task,) = split(tmp_path / "src", tmp_path / "dst").tasks
    assert task.page is None
    assert convert_file(task).status == "failed"


def test_pages_are_kept_written_again_and_spared_as_other_files_are(tmp_path):
    source, target = write_stack(tmp_path / "a.tif", 3), f"{tmp_path}/out/"
    (tmp_path / "out").mkdir()
    for task in split(source, target).tasks:
        outcome = convert_file(task)
        assert (outcome.status, outcome.page) == ("done", task.page)
    (tmp_path / "out" / "a-2.l3").unlink()
    (tmp_path / "out" / "a-3.l3").write_text("something of the user's")
    result = split(source, target)
    assert [(outcome.status, outcome.page) for outcome in result.outcomes] == [("kept", 0), ("failed", 2)]
    assert [task.page for task in result.tasks] == [1]
    assert [task.page for task in split(source, target, overwrite=True).tasks] == [0, 1, 2]


# ---- Walking ---------------------------------------------------------------------------------------------------------


def test_walk_reports_what_it_passes_over(tmp_path):
    for name in ("b/2.png", "b/10.png", "a/1.png", ".hidden/3.png", "a/.DS_Store"):
        write_png(tmp_path / name)
    (tmp_path / "a" / "up").symlink_to("..")
    (tmp_path / "a" / "self").symlink_to("self")
    (tmp_path / "a" / "gone.png").symlink_to("nowhere")
    (tmp_path / "linked").symlink_to("b")
    (tmp_path / "a" / "device.png").symlink_to(os.devnull)
    os.mkfifo(tmp_path / "pipe")
    tree = walking.walk(str(tmp_path))
    assert tree.files == ["a/1.png", "b/10.png", "b/2.png", "linked/10.png", "linked/2.png"]
    assert tree.folders == ["", "a", "b", "linked"]
    passed = {os.path.relpath(outcome.source, tmp_path): (outcome.status, outcome.reason) for outcome in tree.outcomes}
    assert passed.pop("a/self")[0] == "failed"
    assert passed == {
        ".hidden": ("skipped", "hidden"),
        "a/.DS_Store": ("skipped", "hidden"),
        "a/up": ("skipped", "symbolic link to a folder that contains it"),
        "a/gone.png": ("failed", "dangling symbolic link"),
        "a/device.png": ("skipped", "not a regular file"),
        "pipe": ("skipped", "not a regular file"),
    }


def test_walk_reports_folders_that_cannot_be_read(tmp_path, monkeypatch):
    write_png(tmp_path / "locked" / "a.png")
    write_png(tmp_path / "open" / "b.png")
    scandir = os.scandir

    def refuse(path):
        if os.path.basename(path) == "locked":
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(walking.os, "scandir", refuse)
    tree = walking.walk(str(tmp_path))
    assert tree.files == ["open/b.png"]
    assert [(outcome.status, outcome.reason) for outcome in tree.outcomes] == [
        ("failed", "folder cannot be read: Permission denied")
    ]


def test_walk_goes_as_deep_as_the_tree(tmp_path):
    folders = [str(tmp_path)]
    for _ in range(1200):  # beyond Python's recursion limit
        folders.append(folders[-1] + "/d")
        os.mkdir(folders[-1])
    try:
        assert len(walking.walk(str(tmp_path)).folders) == len(folders)
    finally:
        for folder in folders[:0:-1]:
            os.rmdir(folder)


# ---- Files -----------------------------------------------------------------------------------------------------------


def test_write_atomically_replaces_and_follows_the_umask(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    files.write_atomically(str(path), b"new")
    assert path.read_bytes() == b"new"
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("unit", [1, 100, 10_000_000, 1_000_000_000])
def test_dates_are_compared_as_exactly_as_file_systems_keep_them(tmp_path, unit):
    path = tmp_path / "a"
    path.touch()
    mtime = 1_600_000_001_987_654_321
    kept = mtime // unit * unit
    os.utime(path, ns=(0, kept))
    assert files.is_dated(str(path), mtime)
    for difference in (-1, 1):
        os.utime(path, ns=(0, kept + difference * unit))
        assert not files.is_dated(str(path), mtime)


def test_a_file_system_that_refuses_dates_gets_its_files(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "utime", refuse)
    files.write_atomically(str(tmp_path / "a"), b"x", mtime_ns=1)
    assert (tmp_path / "a").read_bytes() == b"x"


def test_a_file_that_reads_back_differently_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", lambda descriptor: os.pwrite(descriptor, b"N", 0))  # as a bad disk would
    with pytest.raises(TargetError, match="reads back differently"):
        files.write_atomically(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_write_that_was_killed_leaves_no_target_and_is_cleared_away(tmp_path):
    program = """
import os, signal, sys
from dali_l3.files import write_atomically
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
write_atomically(sys.argv[1], b"x" * 1000)
"""
    result = subprocess.run([sys.executable, "-c", program, str(tmp_path / "a")])
    assert result.returncode == -9
    (partial,) = names(tmp_path)
    assert partial.startswith(".")
    assert partial.endswith(files.PARTIAL_SUFFIX)
    (tmp_path / f"not-hidden{files.PARTIAL_SUFFIX}").touch()
    assert files.remove_stale_partials(str(tmp_path)) == 1
    assert names(tmp_path) == [f"not-hidden{files.PARTIAL_SUFFIX}"]


def test_a_write_under_way_is_not_cleared_away(tmp_path, monkeypatch):
    removed = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: removed.append(files.remove_stale_partials(str(tmp_path))))
    files.write_atomically(str(tmp_path / "a"), b"x")
    assert removed == [0]
    assert names(tmp_path) == ["a"]


# ---- Workers ---------------------------------------------------------------------------------------------------------


def slow_tasks(folder):
    """They leave files behind; all of them together would take long."""
    return [Task(f"slow {number}", str(folder / str(number))) for number in range(500)]


def run(tasks, workers=2):
    outcomes = list(run_tasks(worker_functions.run, tasks, workers))
    by_source = {outcome.source: outcome for outcome in outcomes}
    assert len(by_source) == len(outcomes), "one for each task"
    return by_source


def test_every_task_has_an_outcome():
    tasks = [Task(f"{number}") for number in range(30)] + [Task("raise"), Task("memory")]
    outcomes = run(tasks)
    assert outcomes.keys() == {task.source for task in tasks}
    assert outcomes["raise"].reason == "unexpected KeyError: 'no such thing'"
    assert outcomes["memory"].reason == "not enough memory"
    assert sum(outcome.status == "done" for outcome in outcomes.values()) == 30


def test_a_worker_that_dies_costs_its_task_alone():
    tasks = [Task(f"{number}") for number in range(12)]
    tasks[5] = Task("crash 5")
    tasks[9] = Task("crash 9")
    outcomes = run(tasks)
    assert outcomes.keys() == {task.source for task in tasks}
    failed = {source: outcome.reason for source, outcome in outcomes.items() if outcome.status != "done"}
    died = "the worker process died (out of memory, or a crash in a library)"
    assert failed == {"crash 5": died, "crash 9": died}


def test_a_worker_that_dies_while_it_writes_leaves_nothing_behind(tmp_path):
    folder = tmp_path / "new"
    work = planning.Plan([Task("half", str(folder / "a.l3")), Task("b", str(folder / "b.l3"))], folders=[str(folder)])
    statuses = {outcome.source: outcome.status for outcome in run_plan(work, worker_functions.run)}
    assert statuses == {"half": "failed", "b": "done"}
    assert names(folder) == ["b.l3"]


def test_nothing_to_do_needs_no_workers():
    assert run([]) == {}


@pytest.mark.parametrize("workers", [1, 3])
def test_an_abandoned_run_drops_what_it_had_not_begun(tmp_path, workers):
    outcomes = run_tasks(worker_functions.run, slow_tasks(tmp_path), workers)
    next(outcomes)
    outcomes.close()
    assert 1 <= len(names(tmp_path)) <= 1 + 2 * workers
    time.sleep(0.2)
    assert len(names(tmp_path)) <= 1 + 2 * workers, "nobody goes on"


@pytest.mark.parametrize("workers", [1, 3])
def test_a_run_that_is_stopped_yields_what_it_had_begun_and_drops_the_rest(tmp_path, workers):
    found = []
    for outcome in run_tasks(worker_functions.run, slow_tasks(tmp_path), workers, stopped=lambda: len(found) >= 5):
        found.append(os.path.basename(outcome.target))
    assert sorted(found) == names(tmp_path)
    assert 5 <= len(found) <= 5 + 2 * workers


def test_a_run_that_is_stopped_tries_nothing_again():
    """Tasks whose worker was killed with the run are neither done nor failed."""
    assert list(run_tasks(worker_functions.run, [Task("crash")], 1, stopped=StoppedAfter(calls=2))) == []


class StoppedAfter:
    """Says no so many times, and then yes."""

    def __init__(self, calls):
        self.calls = calls

    def __call__(self):
        self.calls -= 1
        return self.calls < 0


def test_preview_names_what_would_happen(tmp_path):
    write_png(tmp_path / "src" / "a.png")
    (tmp_path / "src" / "b.txt").write_text("text")
    result = plan(str(tmp_path / "src"), str(tmp_path / "dst"), TO_L3)
    assert [outcome.status for outcome in planning.preview(result.tasks, TO_L3.refuse)] == ["planned", "skipped"]
    assert not (tmp_path / "dst").exists()
