"""`dali-l3 verify` and its quarantine: what is damaged, what is not, and that nothing is ever lost."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil

import numpy as np
import pytest
from PIL import Image

import dali_l3
from dali_l3 import files
from dali_l3.conversion import quarantine as quarantining
from dali_l3.conversion.quarantine import Quarantine
from dali_l3.conversion.verifying import plan_verification, verify_file
from dali_l3.images.stored import ReadOptions
from dali_l3.jobs.outcomes import Task
from dali_l3.jobs.planning import PlanError
from image_files import noise, png, saved, tiff_stack
from processes import start


def l3(**options):
    return dali_l3.encode(noise((20, 30, 3)), **options)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def changed(data, position):
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


PNG = png(noise((5, 6, 3)), 8, 2)
SOUND = {
    "a.l3": l3(),
    "a.png": PNG,
    "a.bmp": saved(Image.fromarray(noise((5, 6, 3))), format="BMP"),
    "a.tif": tiff_stack(3),
    "a.ppm": b"P6 1 2 255\n" + bytes(6),
    "a.npy": npy(noise((5, 6))),
    "an image by its content": PNG,
}
DAMAGED = {  # and what the reason says of it
    "cut.l3": (l3()[:-30], "truncated"),
    "changed.l3": (changed(l3(), 1000), "checksum"),
    "cut.png": (PNG[:-40], "damaged"),
    "changed.png": (changed(PNG, len(PNG) // 2), "damaged"),
    "text.png": (b"text", "named like an image, but the content is not one"),
    "text.l3": (b"text", "named like an image, but the content is not one"),
    "empty.jpg": (b"", "empty file"),
    "loop.tif": (tiff_stack(1)[:-4] + tiff_stack(1)[4:8], "damaged TIFF file: its pages form a loop"),
}
NOT_PROVEN = {
    "float.npy": (npy(np.zeros((5, 6), np.float32)), "cannot be converted: NPY of float32 samples"),
    "a.gif": (b"GIF89a" + bytes(20), "GIF files are not supported"),
    "notes.txt": (b"text", "not an image"),
}


def write(folder, contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content[0] if isinstance(content, tuple) else content)


def snapshot(folder):
    """The files of a tree, hidden ones too, with what they hold or where they lead."""
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def verify(*paths, quarantine=None):
    """As the command does it, but in this process; returns the outcomes by the files' names."""
    paths, quarantine = list(map(str, paths)), quarantine and str(quarantine)
    work = plan_verification(paths, quarantine)
    outcomes = (outcome for outcome in [*work.outcomes, *map(verify_file, work.tasks)])
    if quarantine:
        work.prepare_folders()
        outcomes = Quarantine(quarantine, paths).receive(outcomes)
    return {os.path.basename(outcome.source): outcome for outcome in outcomes}


# ---- The command -----------------------------------------------------------------------------------------------------


def test_sound_damaged_and_other_files_are_told_apart_and_the_damaged_ones_moved(run, tmp_path):
    source, bad, report = tmp_path / "src", tmp_path / "bad", tmp_path / "report"
    write(source / "class", SOUND | DAMAGED | NOT_PROVEN)
    code, _, err = run("verify", source, "--quarantine", bad, "--report", report, "--workers", 1)
    assert code == 1
    records = {os.path.basename(record["source"]): record for record in map(json.loads, report.open())}
    assert {name for name, record in records.items() if record["status"] == "done"} == SOUND.keys()
    for name, (_, reason) in DAMAGED.items():
        record, place = records[name], f"{bad}/class/{name}"
        assert (record["status"], record["damaged"], record["target"]) == ("failed", True, place)
        assert reason in record["reason"]
        assert record["reason"].endswith(f"; moved to {place}")
        assert f"failed: {source}/class/{name}: {record['reason']}\n" in err
    for name, (_, reason) in NOT_PROVEN.items():
        assert records[name]["status"] == "skipped"
        assert records[name]["reason"].startswith(reason)
        assert "damaged" not in records[name]
    assert f"{len(SOUND)} verified, {len(NOT_PROVEN)} skipped, {len(DAMAGED)} failed" in err
    assert snapshot(bad) == {f"class/{name}": content for name, (content, _) in DAMAGED.items()}
    assert snapshot(source).keys() == {f"class/{name}" for name in SOUND | NOT_PROVEN}
    assert run("verify", source, "--workers", 1)[0] == 0
    assert run("verify", source, "--workers", 1, "--strict")[0] == 1


def test_nothing_to_verify_is_an_error(run, tmp_path):
    write(tmp_path / "texts", {"notes.txt": b"text"})
    (tmp_path / "none").mkdir()
    for folder in ("texts", "none"):
        code, _, err = run("verify", tmp_path / folder, "--workers", 1)
        assert code == 2
        assert f"dali-l3: nothing to verify in {tmp_path / folder}\n" in err


def test_what_is_no_image_fails_if_it_was_asked_for_by_name(run, tmp_path):
    write(tmp_path, {"notes.txt": b"text", "a.gif": NOT_PROVEN["a.gif"]})
    code, _, err = run("verify", tmp_path / "notes.txt", tmp_path / "a.gif", "--quarantine", tmp_path / "bad")
    assert code == 1
    assert f"failed: {tmp_path}/notes.txt: not an image\n" in err
    assert f"failed: {tmp_path}/a.gif: GIF files are not supported: convert to PNG or TIFF first\n" in err
    assert snapshot(tmp_path).keys() == {"notes.txt", "a.gif"}


def test_too_large_images_fail_but_are_not_damaged(run, tmp_path):
    write(tmp_path / "src", {"a.png": PNG, "a.l3": l3()})
    code, _, err = run("verify", tmp_path / "src", "--max-pixels", 29, "--quarantine", tmp_path / "bad", "--workers", 1)
    assert code == 1
    assert "a.png: 6 x 5 pixels exceed the limit of 29 pixels\n" in err
    assert "a.l3: 30 x 20 pixels exceed the limit of 29 pixels\n" in err
    assert snapshot(tmp_path / "bad") == {}


@pytest.mark.parametrize(
    ("quarantine", "message"),
    [
        ("file", "file: the quarantine must be a folder"),
        ("src", "src: the quarantine must not contain what is verified (src/deep)"),
        ("src/deep", "src/deep: the quarantine must not contain what is verified (src/deep)"),
        ("link", "link: the quarantine must not contain what is verified (src/deep)"),
    ],
)
def test_quarantines_that_make_no_sense(run, tmp_path, monkeypatch, quarantine, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "src" / "deep", {"a.png": PNG[:-40]})
    write(tmp_path, {"file": b"text"})
    (tmp_path / "link").symlink_to("src")
    before = snapshot(tmp_path)
    code, _, err = run("verify", "src/deep", "--quarantine", quarantine)
    assert (code, err) == (2, f"dali-l3: {message}\n")
    assert snapshot(tmp_path) == before


def test_without_the_packages_that_read_images_l3_files_are_verified(tmp_path):
    write(tmp_path / "src", {"a.l3": l3(), "a.png": PNG})
    write(tmp_path / "path", {"imagecodecs.py": b"raise ModuleNotFoundError('no imagecodecs', name='imagecodecs')"})
    path = os.pathsep.join([str(tmp_path / "path"), os.environ.get("PYTHONPATH", "")])
    process = start("verify", tmp_path / "src", "--workers", 1, env={**os.environ, "PYTHONPATH": path})
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "skipped: imagecodecs is not installed, try: pip install 'dali-l3[convert]': 1 file\n" in err
    assert "1 verified, 1 skipped, 0 failed" in err


# ---- One file --------------------------------------------------------------------------------------------------------


def outcome_of(tmp_path, name, content):
    write(tmp_path, {name: content})
    return verify_file(Task(str(tmp_path / name)))


def test_every_page_is_decoded(tmp_path):
    outcome = outcome_of(tmp_path, "a.tif", tiff_stack(3))
    assert (outcome.status, outcome.raw_size) == ("done", 3 * 5 * 6)
    assert outcome_of(tmp_path, "a.tif", tiff_stack(3, lost=[2])).damaged


def test_damaged_images_are_told_from_what_could_not_be_read(tmp_path, monkeypatch):
    assert outcome_of(tmp_path, "a.png", PNG[:-40]).damaged

    def refuse(*arguments):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("dali_l3.conversion.verifying.open_regular", refuse)
    outcome = outcome_of(tmp_path, "a.png", PNG[:-40])
    assert (outcome.status, outcome.reason, outcome.damaged) == ("failed", "Permission denied", False)


def test_an_l3_file_of_another_version_is_not_called_damaged(tmp_path):
    data = bytearray(l3())
    data[8] = 2  # the major version, which is looked at first: the checksum of the header may be another thing there
    outcome = outcome_of(tmp_path, "a.l3", bytes(data))
    assert (outcome.status, outcome.damaged) == ("failed", False)


def test_the_limit_of_pixels_holds_for_every_format(tmp_path):
    write(tmp_path, {"a.png": PNG})
    outcome = verify_file(Task(str(tmp_path / "a.png")), options=ReadOptions(max_pixels=29))
    assert (outcome.status, outcome.damaged) == ("failed", False)


# ---- The quarantine --------------------------------------------------------------------------------------------------

BAD = PNG[:-40]


def test_names_that_are_taken_get_a_number(tmp_path):
    for root in ("x", "y", "z"):
        write(tmp_path / root / "cats", {"a.png": BAD + root.encode()})
    write(tmp_path / "bad" / "cats", {"a-1.png": b"mine"})
    verify(tmp_path / "x", tmp_path / "y", f"{tmp_path}/z/", quarantine=tmp_path / "bad")
    assert snapshot(tmp_path) == {
        "bad/cats/a.png": BAD + b"x",
        "bad/cats/a-1.png": b"mine",
        "bad/cats/a-2.png": BAD + b"y",
        "bad/cats/a-3.png": BAD + b"z",
    }


def test_files_asked_for_by_name_go_to_the_top(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "x" / "y", {"a.png": BAD})
    write(tmp_path, {"b.png": BAD})
    verify("x/y/a.png", "b.png", quarantine="bad")
    assert snapshot(tmp_path) == {"bad/a.png": BAD, "bad/b.png": BAD}


def test_the_paths_below_nested_and_relative_folders_are_mirrored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "x" / "y", {"a.png": BAD})
    assert verify(".", quarantine="x/bad")["a.png"].target == "x/bad/x/y/a.png"
    write(tmp_path / "x" / "y", {"a.png": BAD})
    assert verify("./x", quarantine="bad")["a.png"].target == "bad/y/a.png"


def test_a_quarantine_inside_the_tree_is_not_verified_itself(tmp_path):
    write(tmp_path / "bad", {"old.png": BAD})
    write(tmp_path, {"a.png": PNG, "b.png": BAD})
    outcomes = verify(tmp_path, quarantine=tmp_path / "bad")
    assert outcomes.keys() == {"a.png", "b.png"}
    assert snapshot(tmp_path) == {"a.png": PNG, "bad/old.png": BAD, "bad/b.png": BAD}


def test_links_are_moved_and_what_they_lead_to_is_not(tmp_path):
    write(tmp_path / "elsewhere", {"1.png": BAD, "2.png": BAD})
    write(tmp_path / "src", {})
    (tmp_path / "src" / "relative.png").symlink_to("../elsewhere/1.png")
    (tmp_path / "src" / "absolute.png").symlink_to(tmp_path / "elsewhere" / "1.png")
    (tmp_path / "src" / "folder").symlink_to("../elsewhere")
    outcomes = verify(tmp_path / "src", quarantine=tmp_path / "deep" / "bad")
    assert outcomes["2.png"].reason.endswith("; not moved: it lies behind a symbolic link to a folder")
    assert outcomes["2.png"].target is None
    assert outcomes["relative.png"].reason.endswith(f"; moved to {tmp_path}/deep/bad/relative.png")
    assert snapshot(tmp_path / "elsewhere") == {"1.png": BAD, "2.png": BAD}
    assert os.listdir(tmp_path / "src") == ["folder"]
    for name in ("relative.png", "absolute.png"):
        assert (tmp_path / "deep" / "bad" / name).resolve() == tmp_path / "elsewhere" / "1.png"


def test_a_link_to_a_folder_may_be_verified_itself(tmp_path):
    write(tmp_path / "real" / "cats", {"a.png": BAD})
    (tmp_path / "link").symlink_to("real")
    verify(tmp_path / "link", quarantine=tmp_path / "bad")
    assert snapshot(tmp_path / "bad") == {"cats/a.png": BAD}
    assert snapshot(tmp_path / "real") == {}


class TestAcrossFileSystems:
    @pytest.fixture(autouse=True)
    def _elsewhere(self, monkeypatch):
        """Makes the quarantine's file system look like another one."""

        def refuse(source, target):
            raise OSError(errno.EXDEV, "Invalid cross-device link", source, None, target)

        monkeypatch.setattr(quarantining.os, "rename", refuse)

    def test_files_are_copied_first(self, tmp_path):
        write(tmp_path / "src" / "cats", {"a.png": BAD})
        os.chmod(tmp_path / "src" / "cats" / "a.png", 0o640)
        os.utime(tmp_path / "src" / "cats" / "a.png", ns=(0, 1_234_567_890_123_456_789))
        verify(tmp_path / "src", quarantine=tmp_path / "bad")
        assert snapshot(tmp_path) == {"bad/cats/a.png": BAD}
        status = (tmp_path / "bad" / "cats" / "a.png").stat()
        assert (status.st_mode & 0o777, status.st_mtime_ns) == (0o640, 1_234_567_890_123_456_789)

    @pytest.mark.parametrize("step", ["write", "flush", "remove"])
    def test_a_file_that_cannot_be_moved_stays_and_leaves_nothing_behind(self, tmp_path, monkeypatch, step):
        write(tmp_path / "src", {"a.png": BAD, "b.png": BAD})
        unlink, source = os.unlink, str(tmp_path / "src" / "a.png")

        def refuse(*arguments):
            raise OSError(errno.ENOSPC, "No space left on device")

        def refuse_source(path):
            refuse() if path == source else unlink(path)

        with monkeypatch.context() as patch:
            if step == "write":
                patch.setattr(quarantining, "write_atomically", refuse)
            elif step == "flush":
                patch.setattr(files.os, "fsync", refuse)
            else:
                patch.setattr(quarantining.os, "unlink", refuse_source)
            outcomes = verify(tmp_path / "src", quarantine=tmp_path / "bad")
        assert outcomes["a.png"].reason.endswith("; not moved: No space left on device")
        assert outcomes["a.png"].target is None
        assert (tmp_path / "src" / "a.png").read_bytes() == BAD
        left = snapshot(tmp_path / "bad")
        assert left == ({"b.png": BAD} if step == "remove" else {})

    def test_what_a_killed_run_left_is_cleared_away(self, tmp_path):
        write(tmp_path / "src" / "cats", {"a.png": BAD})
        write(tmp_path / "bad" / "cats", {f".0{files.PARTIAL_SUFFIX}": b"half"})
        verify(tmp_path / "src", quarantine=tmp_path / "bad")
        assert snapshot(tmp_path / "bad") == {"cats/a.png": BAD}


def test_a_move_that_only_seems_to_have_failed_loses_nothing(tmp_path, monkeypatch):
    """Over a network the answer to a request may be lost, and the second one then finds nothing to do."""
    rename = os.rename

    def rename_twice(source, target):
        rename(source, target)
        rename(source, target)

    monkeypatch.setattr(quarantining.os, "rename", rename_twice)
    write(tmp_path / "src", {"a.png": BAD})
    verify(tmp_path / "src", quarantine=tmp_path / "bad")
    assert snapshot(tmp_path) == {"bad/a.png": BAD}


def test_a_quarantine_that_cannot_take_a_file_leaves_it(tmp_path):
    write(tmp_path / "src" / "cats", {"a.png": BAD})
    write(tmp_path / "bad", {"cats": b"a file, where a folder is wanted"})
    before = snapshot(tmp_path)
    outcome = verify(tmp_path / "src", quarantine=tmp_path / "bad")["a.png"]
    assert outcome.reason.endswith("; not moved: File exists")
    assert snapshot(tmp_path) == before


def test_a_file_that_is_gone_is_not_moved(tmp_path):
    write(tmp_path / "src", {"a.png": BAD})
    outcome = verify_file(Task(str(tmp_path / "src" / "a.png")))
    shutil.rmtree(tmp_path / "src")
    (outcome,) = Quarantine(str(tmp_path / "bad"), [str(tmp_path / "src")]).receive(o for o in [outcome])
    assert outcome.reason.endswith("; not moved: No such file or directory")


def test_a_quarantine_of_a_folder_in_it_is_refused(tmp_path):
    with pytest.raises(PlanError, match="must not contain what is verified"):
        Quarantine(str(tmp_path), [str(tmp_path / "a.png")])
