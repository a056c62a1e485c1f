"""The command line as a user meets it: exit codes, messages, reports."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys

import imagecodecs
import numpy as np
import pytest

import dali_l3
from dali_l3.jobs import running
from dali_l3.units import planning
from dali_l3.units import running as units_running
from image_files import noise, write_png
from processes import start


@pytest.fixture
def tree(tmp_path):
    source = tmp_path / "src"
    for number, name in enumerate(("cats/a.png", "cats/b.png", "dogs/c.png")):
        write_png(source / name, noise((20, 30, 3), seed=number))
    return source


def read_report(text):
    return {os.path.basename(record["source"]): record for record in map(json.loads, text.splitlines())}


def test_convert_verify_export_round_trip(run, tree, tmp_path):
    code, out, err = run("convert", tree, tmp_path / "l3", "--workers", 2)
    assert (code, out) == (0, "")
    assert "3 converted, 0 failed" in err
    assert run("verify", tmp_path / "l3")[0] == 0
    assert run("export", tmp_path / "l3", tmp_path / "png")[0] == 0
    for path in tree.rglob("*.png"):
        exported = tmp_path / "png" / path.relative_to(tree)
        np.testing.assert_array_equal(
            imagecodecs.png_decode(exported.read_bytes()), imagecodecs.png_decode(path.read_bytes())
        )


def test_running_again_keeps_what_is_done(run, tree, tmp_path):
    run("convert", tree, tmp_path / "l3")
    before = {path: path.stat().st_ino for path in (tmp_path / "l3").rglob("*.l3")}
    write_png(tree / "dogs" / "new.png")
    code, _, err = run("convert", tree, tmp_path / "l3")
    assert code == 0
    assert "1 converted, 3 kept, 0 failed" in err
    assert {path: path.stat().st_ino for path in before} == before
    assert "4 converted" in run("convert", tree, tmp_path / "l3", "--overwrite")[2]
    assert "4 converted" in run("convert", tree, tmp_path / "l3", "--profile", "raw")[2]


def test_a_source_that_was_replaced_is_converted_again_even_by_an_older_one(run, tree, tmp_path):
    run("convert", tree, tmp_path / "l3")
    other = noise((9, 9, 3))
    write_png(tree / "cats" / "a.png", other)
    os.utime(tree / "cats" / "a.png", (1000, 1000))
    assert "1 converted, 2 kept" in run("convert", tree, tmp_path / "l3")[2]
    np.testing.assert_array_equal(dali_l3.decode((tmp_path / "l3" / "cats" / "a.l3").read_bytes()), other)


def test_a_file_that_exists_is_only_replaced_if_asked_for(run, tree, tmp_path):
    source, l3, back = tree / "cats" / "a.png", tmp_path / "a.l3", tmp_path / "back.png"
    for command, target in ((("convert", source, l3), l3), (("export", l3, back), back)):
        assert run(*command)[0] == 0
        before = target.stat()
        code, _, err = run(*command)
        assert (code, err) == (2, f"dali-l3: {target}: exists already; --overwrite replaces it\n")
        assert target.stat() == before
        assert run(*command, "--overwrite")[0] == 0
        assert target.stat().st_ino != before.st_ino


def test_failures_and_skips_are_reported_and_the_rest_converted(run, tree, tmp_path):
    (tree / "cats" / "bad.png").write_bytes((tree / "cats" / "a.png").read_bytes()[:100])
    (tree / "cats" / "notes.txt").write_text("text")
    (tree / ".hidden").mkdir()
    report = tmp_path / "report.jsonl"
    code, out, err = run("convert", tree, tmp_path / "l3", "--report", report)
    assert (code, out) == (1, "")
    assert f"failed: {tree}/cats/bad.png: truncated PNG file" in err
    assert f"skipped: not an image: 1 file\n  {tree}/cats/notes.txt" in err
    assert "3 converted, 2 skipped, 1 failed" in err
    records = read_report(report.read_text())
    assert {name: record["status"] for name, record in records.items()} == {
        "a.png": "done",
        "b.png": "done",
        "c.png": "done",
        "bad.png": "failed",
        "notes.txt": "skipped",
        ".hidden": "skipped",
    }
    assert records["a.png"]["raw_size"] == 20 * 30 * 3
    assert records["a.png"]["target"] == str(tmp_path / "l3" / "cats" / "a.l3")


def test_strict_counts_skipped_files_as_failure(run, tree, tmp_path):
    (tree / "notes.txt").write_text("text")
    assert run("convert", tree, tmp_path / "l3")[0] == 0
    assert run("convert", tree, tmp_path / "l3", "--strict")[0] == 1


def test_dry_run_lists_and_writes_nothing(run, tree, tmp_path):
    code, out, err = run("convert", tree, tmp_path / "l3", "--dry-run")
    assert code == 0
    assert out.splitlines()[0] == f"{tree}/cats/a.png -> {tmp_path}/l3/cats/a.l3"
    assert len(out.splitlines()) == 3
    assert "3 planned" in err
    assert not (tmp_path / "l3").exists()
    code, out, _ = run("convert", tree, tmp_path / "l3", "--dry-run", "--report", "-")
    assert {record["status"] for record in read_report(out).values()} == {"planned"}


@pytest.mark.parametrize(
    ("name", "content", "reason"), [("a.txt", b"text", "not an image"), ("a.l3", b"LLL.", "an L3 file already")]
)
def test_a_file_asked_for_by_name_is_not_skipped_but_fails(run, tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    code, _, err = run("convert", tmp_path / name, tmp_path / "out" / "a.l3")
    assert code == 1
    assert f"failed: {tmp_path / name}: {reason}" in err
    assert not (tmp_path / "out").exists()


def test_export_skips_other_files_and_names_impostors(run, tmp_path):
    write_png(tmp_path / "src" / "a.png")
    write_png(tmp_path / "src" / "d.l3")
    (tmp_path / "src" / "b.l3").write_text("text")
    (tmp_path / "src" / "c.l3").write_text("version https://git-lfs.github.com/spec/v1\noid")
    code, _, err = run("export", tmp_path / "src", tmp_path / "dst")
    assert code == 1
    assert "b.l3: named like an L3 file, but the content is not one" in err
    assert "c.l3: is a Git LFS pointer, not an image: run 'git lfs pull'" in err
    assert "d.l3: named like an L3 file, but the content is PNG" in err
    assert "skipped: not an L3 file: 1 file" in err


def test_notes_are_shown(run, tmp_path):
    (tmp_path / "a.pgm").write_bytes(b"P5 1 1 100\n\x05")
    code, _, err = run("convert", tmp_path / "a.pgm", tmp_path / "a.l3")
    assert code == 0
    assert f"note: samples scaled from 0 … 100 to 0 … 255: 1 file\n  {tmp_path}/a.pgm" in err


def test_file_names_cannot_drive_the_terminal(run, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "[red]\x1b[2J.png").write_bytes(b"")
    (tmp_path / "src" / os.fsdecode(b"\xff.png")).write_bytes(b"")
    code, _, err = run("convert", tmp_path / "src", tmp_path / "dst")
    assert code == 1
    assert "[red]\\x1b[2J.png: empty file" in err
    assert "\\udcff.png: empty file" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("convert", "src", "src/in"), "must not be the same or inside one another"),
        (("convert", "missing", "dst"), "missing: no such file or folder"),
        (("convert", "src", "dst", "--profile", "dense"), "'raw', 'paper', 'fast'"),
        (("convert", "src", "dst", "--effort", "4"), "--effort"),
        (("convert", "src", "dst", "--workers", "0"), "--workers"),
        (("convert", "src"), "DST"),
        (("convert", "src", "dst", "--palette", "gray"), "'rgb', 'index'"),
        (("convert", "src", "dst", "--pages", "all"), "'first', 'split'"),
        (("convert", "src", "dst", "--pages", "split", "--mix", "bmp:1"), "--pages split and --mix cannot be combined"),
        (("convert", "src", "dst", "--timeout", "-1"), "--timeout"),
        (("info", "src"), "no L3 files in src"),
    ],
)
def test_requests_that_make_no_sense(run, tree, monkeypatch, arguments, message):
    monkeypatch.chdir(tree.parent)
    code, _, err = run(*arguments)
    assert code == 2
    assert message in err
    assert not (tree.parent / "dst").exists()


def test_a_report_that_cannot_be_written_stops_the_run_before_it_starts(run, tree, tmp_path):
    code, _, err = run("convert", tree, tmp_path / "l3", "--report", tmp_path / "missing" / "report")
    assert code == 2
    assert "missing/report: no such folder" in err
    assert not (tmp_path / "l3").exists()


def test_a_report_that_runs_out_of_room_is_named(run, tree, tmp_path):
    code, _, err = run("convert", tree, tmp_path / "l3", "--report", "/dev/full")
    assert code == 1
    assert "dali-l3: /dev/full: No space left on device\n" in err


@pytest.mark.parametrize(
    ("command", "report"),
    [
        (("convert", "src", "l3"), "src/cats/a.png"),
        (("convert", "src", "l3"), "linked.png"),
        (("convert", "src", "l3"), "src/notes.txt"),
        (("convert", "src", "l3"), "l3/cats/a.l3"),
        (("convert", "src", "new"), "new/../new/cats/a.l3"),
        (("convert", "src", "new", "--mix", "bmp:1"), "new/dali_l3_mix.json"),
        (("convert", "src/cats/a.png", "a.l3"), "a.l3"),
        (("export", "l3", "png"), "l3/cats/a.l3"),
        (("verify", "l3"), "l3/cats/a.l3"),
    ],
)
def test_a_report_never_takes_the_place_of_a_file_of_the_run(run, tree, tmp_path, monkeypatch, command, report):
    monkeypatch.chdir(tmp_path)
    (tree / "notes.txt").write_text("text")
    run("convert", "src", "l3")
    (tmp_path / "linked.png").symlink_to(tree / "cats" / "b.png")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}
    code, _, err = run(*command, "--report", report)
    assert code == 2
    assert f"dali-l3: {report}: the report would replace " in err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()} == before


def test_a_dry_run_writes_no_report(run, tree, tmp_path):
    code, _, err = run("convert", tree, tmp_path / "l3", "--dry-run", "--report", tmp_path / "report")
    assert code == 2
    assert "--dry-run writes no report" in err
    assert not (tmp_path / "report").exists()


def test_verify_names_damaged_and_missing_files(run, tmp_path):
    good, bad = tmp_path / "good.l3", tmp_path / "bad.l3"
    good.write_bytes(dali_l3.encode(noise((20, 30, 3))))
    bad.write_bytes(good.read_bytes()[:-100])
    code, _, err = run("verify", good, bad, tmp_path / "missing.l3")
    assert code == 1
    assert f"failed: {bad}: " in err
    assert f"failed: {tmp_path}/missing.l3: No such file or directory" in err
    assert "1 verified, 2 failed" in err


def test_verify_names_what_is_missing_where_nothing_else_is_left(run, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.l3").symlink_to("gone.l3")
    code, _, err = run("verify", tmp_path / "set")
    assert code == 1
    assert f"failed: {tmp_path}/set/a.l3: dangling symbolic link" in err


def test_info(run, tmp_path):
    path = tmp_path / "a.l3"
    path.write_bytes(dali_l3.encode(noise((20, 100, 3), np.uint16), profile="raw", metadata={"icc": b"12345"}))
    code, out, _ = run("info", path)
    assert code == 0
    for part in (
        str(path),
        "100 x 20 pixels of 3 x uint16",
        "dtype=types.UINT16 (the default, UINT8, keeps 8 of the 16 bits)",
        "profile raw",
        "2, with checksums",
        "icc (5 bytes)",
        "of the 12000 bytes of pixels",
    ):
        assert part in out
    code, out, _ = run("info", "--json", path, path)
    first, second = map(json.loads, out.splitlines())
    assert code == 0
    assert first == second
    assert (first["shape"], first["dtype"], first["profile"]) == ([20, 100, 3], "uint16", "raw")
    assert first["dali_dtype"] == "UINT16"
    assert first["metadata"] == {"icc": 5}
    assert (first["file_size"], first["raw_size"]) == (path.stat().st_size, 12000)


def test_info_of_eight_bits_names_the_default(run, tmp_path):
    dali_l3.imwrite(tmp_path / "a.l3", noise((20, 30)))
    assert "dtype=types.UINT8 (the default)\n" in run("info", tmp_path / "a.l3")[1]


def test_info_goes_on_after_a_bad_file(run, tmp_path):
    good = tmp_path / "good.l3"
    good.write_bytes(dali_l3.encode(noise((20, 30))))
    (tmp_path / "empty.l3").touch()
    (tmp_path / "text.l3").write_text("no L3 file at all, but longer than the header of one: " * 3)
    code, out, err = run("info", tmp_path / "empty.l3", tmp_path / "text.l3", tmp_path / "missing", good, "--json")
    assert code == 1
    assert json.loads(out)["file"] == str(good)
    assert len(err.splitlines()) == 3
    assert all(line.startswith(f"dali-l3: {tmp_path}") for line in err.splitlines())


def test_info_shows_all_l3_files_in_folders_and_names_what_fails(run, tmp_path):
    data = dali_l3.encode(noise((20, 30)), metadata={"icc": b"1"})
    for name in ("a.l3", "deep/B.L3", "deep/by its content", ".hidden/c.l3"):
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / name).write_bytes(data)
    (tmp_path / "set" / "notes.txt").write_text("text")
    write_png(tmp_path / "set" / "photo.png")
    code, out, err = run("info", tmp_path / "set", "--json")
    assert (code, err) == (0, "")
    files = [os.path.relpath(json.loads(line)["file"], tmp_path / "set") for line in out.splitlines()]
    assert files == ["a.l3", "deep/B.L3", "deep/by its content"]

    (tmp_path / "set" / "cut.l3").write_bytes(data[:50])
    (tmp_path / "set" / "gone.l3").symlink_to("nowhere")
    code, out, err = run("info", tmp_path / "set")
    assert code == 1
    assert out.count("30 x 20 pixels of 1 x uint8") == out.count("icc (1 byte)\n") == 3
    assert err.splitlines()[0].startswith(f"dali-l3: {tmp_path}/set/cut.l3: truncated")
    assert err.splitlines()[1:] == [f"dali-l3: {tmp_path}/set/gone.l3: dangling symbolic link"]


def test_info_of_a_folder_takes_no_more_memory_for_more_files(run, tmp_path, monkeypatch):
    """It lists a folder at a time, and shows each file before it looks at the next."""
    for number in range(3):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "a.l3").write_bytes(dali_l3.encode(noise((2, 3))))
    events = []
    scandir = os.scandir

    def record(path):
        events.append(os.path.basename(path))
        return scandir(path)

    monkeypatch.setattr("os.scandir", record)
    monkeypatch.setattr("builtins.print", lambda text: events.append(json.loads(text)["file"][-6:]))
    run("info", "--json", tmp_path)
    assert events[1:] == ["0", "0/a.l3", "1", "1/a.l3", "2", "2/a.l3"]


@pytest.mark.parametrize("command", [(), ("convert",), ("export",), ("verify",), ("info",)])
def test_help_teaches(run, command):
    code, out, _ = run(*command, "--help")
    assert code == 0
    assert "dali-l3 " + " ".join(command or ("convert",)) in out


def test_version(run):
    code, output, errors = run("--version")
    assert (code, errors) == (0, "")
    assert output.splitlines()[0].split() == ["dali_l3", dali_l3.__version__]


def test_a_missing_image_library_is_named(tree, tmp_path):
    """In a process of its own: modules that are imported again here would be others than those of other tests."""
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "tifffile.py").write_text("raise ModuleNotFoundError('no tifffile', name='tifffile')")
    path = os.pathsep.join([str(tmp_path / "path"), os.environ.get("PYTHONPATH", "")])
    process = start("convert", tree, tmp_path / "l3", env={**os.environ, "PYTHONPATH": path})
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "tifffile is not installed, try: pip install 'dali-l3[convert]'" in err


# ---- In processes of their own ---------------------------------------------------------------------------------------


def test_works_without_dali_and_never_imports_it(tree, tmp_path):
    """A folder in front of the path holds a nvidia.dali that leaves a trace and fails, in workers too."""
    trace = tmp_path / "imported"
    fake = tmp_path / "path" / "nvidia" / "dali"
    fake.mkdir(parents=True)
    (fake.parent / "__init__.py").touch()
    (fake / "__init__.py").write_text(f"open({str(trace)!r}, 'w')\nraise ImportError('DALI is broken')\n")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "path"), os.environ.get("PYTHONPATH", "")]),
    }
    probe = subprocess.run(
        [sys.executable, "-c", "import nvidia.dali"], env=environment, capture_output=True, text=True
    )
    assert "DALI is broken" in probe.stderr
    trace.unlink()
    l3 = tmp_path / "l3"
    for arguments in (
        ("convert", tree, l3),
        ("verify", l3),
        ("info", l3 / "cats" / "a.l3"),
        ("export", l3, tmp_path / "png"),
    ):
        process = start(*arguments, env=environment)
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert not trace.exists()


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "link"])
@pytest.mark.parametrize("command", ["convert", "export", "verify", "info"])
def test_what_is_no_regular_file_is_named_and_never_waited_for(tmp_path, command, kind):
    path = tmp_path / "a.l3"
    if kind == "socket":
        socket.socket(socket.AF_UNIX).bind(str(path))
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(tmp_path / "fifo")
        path.symlink_to("fifo") if kind == "link" else (tmp_path / "fifo").rename(path)
    process = start(command, path, *([tmp_path / "out" / ""] if command in ("convert", "export") else []))
    try:
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode in (1, 2)
    assert f"{path}: not a regular file" in err
    assert not (tmp_path / "out").exists()


def test_a_closed_standard_output_is_no_error(tmp_path):
    path = tmp_path / "a.l3"
    path.write_bytes(dali_l3.encode(noise((4, 5))))
    command = f"exec {sys.executable} -m dali_l3.cli info {path} >&-"
    process = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True)
    assert (process.returncode, process.stderr) == (0, "")


def test_names_beyond_the_terminals_encoding_are_escaped(tmp_path):
    path = tmp_path / "猫.l3"
    path.write_bytes(dali_l3.encode(noise((4, 5))))
    write_png(tmp_path / "src" / "犬.png")
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    for arguments, shown in (
        (("info", path), "\\u732b.l3"),
        (("verify", tmp_path / "鳥.l3"), "\\u9ce5.l3"),
        (("convert", tmp_path / "src", tmp_path / "dst", "--dry-run"), "\\u72ac.png"),
    ):
        process = start(*arguments, env=environment)
        output = "".join(process.communicate(timeout=60))
        assert shown in output
        assert "Traceback" not in output


@pytest.mark.parametrize(("option", "has_bar"), [("--report=-", True), ("--dry-run", False)])
def test_a_terminal_gets_the_progress_and_standard_output_the_records(tree, tmp_path, option, has_bar):
    terminal, end = os.openpty()
    command = [sys.executable, "-m", "dali_l3.cli", "convert", str(tree), str(tmp_path / "l3"), option]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=end, text=True) as process:
        os.close(end)
        shown = b""
        with contextlib.suppress(OSError):  # the terminal's end is closed
            while part := os.read(terminal, 4096):
                shown += part
        out = process.stdout.read()
    os.close(terminal)
    assert process.returncode == 0
    assert len(out.splitlines()) == 3
    assert (b"ETA" in shown) == has_bar
    assert (b"images/s" in shown) == has_bar


@pytest.mark.parametrize(
    "command", [("convert", "src", "dst"), ("convert", "src", "dst", "--shards", "1MiB"), ("verify", "src")]
)
def test_a_timeout_gets_to_the_workers(run, tree, monkeypatch, command):
    found = []

    def run_tasks(function, tasks, count=None, initializer=None, stopped=None, limits=None, most=0):
        found.append(limits and limits.timeout)
        yield from map(function, tasks)

    class Pool(contextlib.nullcontext):
        def __init__(self, *arguments):
            super().__init__(self)
            self.run = lambda tasks: run_tasks(arguments[0], tasks, *arguments[1:])

    monkeypatch.setattr(running, "run_tasks", run_tasks)
    monkeypatch.setattr(planning, "run_tasks", lambda function, tasks, *others: (function(task) for task in tasks))
    monkeypatch.setattr(units_running, "Pool", Pool)
    monkeypatch.chdir(tree.parent)
    run(*command, "--timeout", 7.5)
    assert found == [7.5]
