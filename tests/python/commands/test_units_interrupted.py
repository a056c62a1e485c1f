"""Conversions in units that are killed, interrupted, out of space, or done by two runs at once."""

from __future__ import annotations

import itertools
import json
import os
import signal

import pytest

import killing
from dali_l3 import files
from dali_l3.units import running
from dali_l3.units.manifest import Manifest
from dali_l3.units.records import Record
from killing import SHARDS, assert_holds, contents, write_source
from processes import start, workers_of
from waiting import HANGS, wait_until

OPTIONS = ("--shards", SHARDS)


@pytest.fixture
def pixels(tmp_path):
    return write_source(tmp_path / "in")


@pytest.fixture
def whole(run, one_process, pixels, tmp_path):
    """What an undisturbed run writes."""
    run("convert", tmp_path / "in", tmp_path / "whole", *OPTIONS)
    assert_holds(tmp_path / "whole", pixels)
    return contents(tmp_path / "whole")


def records(folder):
    return sorted(folder.glob("records/*.jsonl"))


@pytest.mark.parametrize(("kills", "options"), [(3, OPTIONS), (2, ("--part", "1/1"))])
def test_kills_at_random_moments(tmp_path, kills, options):
    assert killing.kill_conversions(tmp_path, kills, 1, options) >= 1


def test_a_kill_costs_no_more_than_the_unit_at_hand(run, whole, tmp_path):
    target, folder = tmp_path / "out", tmp_path / "out.conversion"
    process = start("convert", tmp_path / "in", target, *OPTIONS, "--workers", 1)
    wait_until(lambda: len(records(folder)) >= 2)
    process.kill()
    process.communicate()
    done = {path: path.stat().st_mtime_ns for path in [*records(folder), *target.glob("*.tar")]}
    count = len(records(folder))
    code, _, err = run("convert", tmp_path / "in", target, *OPTIONS)
    assert code == 1
    assert contents(target) == whole
    kept = [path for path, date in done.items() if path.stat().st_mtime_ns == date]
    assert len(kept) >= 2 * count
    samples = sum(len(path.read_text().splitlines()) - 1 for path in records(folder)[:count])
    assert f"{samples} kept" in err or f"{samples - 1} kept" in err  # one of all failed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_leave_the_unit_at_hand(run, whole, tmp_path, number):
    target, folder = tmp_path / "out", tmp_path / "out.conversion"
    process = start("convert", tmp_path / "in", target, *OPTIONS, "--workers", 1, "--report", tmp_path / "report")
    wait_until(lambda: len(records(folder)) >= 2)
    process.send_signal(number)
    _, err = process.communicate(timeout=HANGS)
    assert process.returncode == 128 + number, err
    assert "interrupted; run it again to continue" in err
    assert "Traceback" not in err
    assert not [*tmp_path.rglob("*.l3-partial")]
    units = len(json.loads((folder / "manifest.json").read_text())["units"])
    assert 2 <= len(records(folder)) < units
    reported = (tmp_path / "report").read_text().splitlines()
    assert reported == [line for path in records(folder) for line in path.read_text().splitlines()[1:]]
    run("convert", tmp_path / "in", target, *OPTIONS)
    assert contents(target) == whole


def test_a_worker_that_dies_costs_nothing(whole, tmp_path):
    target, folder = tmp_path / "out", tmp_path / "out.conversion"
    process = start("convert", tmp_path / "in", target, *OPTIONS, "--workers", 1)
    wait_until(lambda: records(folder))
    for pid in workers_of(process.pid):
        os.kill(pid, signal.SIGKILL)
    _, err = process.communicate(timeout=HANGS)
    assert (process.returncode, "39 converted, 1 failed" in err) == (1, True), err
    assert contents(target) == whole


def test_two_runs_at_once(whole, tmp_path):
    target = tmp_path / "out"
    processes = [start("convert", tmp_path / "in", target, *OPTIONS, "--workers", 1) for _ in range(2)]
    for process in processes:
        _, err = process.communicate(timeout=HANGS)
        assert (process.returncode, " 1 failed" in err) == (1, True), err
    assert contents(target) == whole


def test_one_unit_done_twice(run, one_process, whole, tmp_path):
    target = tmp_path / "out"
    run("convert", tmp_path / "in", target, *OPTIONS, "--plan")
    manifest = Manifest.load(str(target))
    first = [running.run_unit(manifest, unit) for unit in range(len(manifest.units))]
    assert contents(target) == whole
    for unit in reversed(range(len(manifest.units))):
        assert running.run_unit(manifest, unit) == first[unit]
        assert Record.load(manifest, unit) == first[unit]
    assert contents(target) == whole


def test_a_unit_that_is_stopped_leaves_nothing(run, one_process, pixels, tmp_path):
    run("convert", tmp_path / "in", tmp_path / "out", *OPTIONS, "--plan")
    manifest = Manifest.load(str(tmp_path / "out"))
    calls = iter([False, True])
    assert running.run_unit(manifest, 0, stopped=lambda: next(calls)) is None
    assert contents(tmp_path / "out") == {}
    assert not records(tmp_path / "out.conversion")


def fill_disk(monkeypatch, room):
    """After `room` files, there is no room for what is written to further ones."""
    create, numbers = files._create_partial, itertools.count()

    def create_partial(folder):
        path, descriptor = create(folder)
        if next(numbers) < room:
            return path, descriptor
        os.close(descriptor)
        os.unlink(path)
        os.symlink("/dev/full", path)
        return path, os.open(path, os.O_RDWR)

    monkeypatch.setattr(files, "_create_partial", create_partial)


@pytest.mark.parametrize("room", range(8))
@pytest.mark.parametrize("options", [OPTIONS, ("--part", "1/1")])
def test_a_disk_that_is_full(run, one_process, pixels, tmp_path, monkeypatch, room, options):
    """Some files are written; then there is no room. Later there is."""
    run("convert", tmp_path / "in", tmp_path / "whole", *options)
    with monkeypatch.context() as patch:
        fill_disk(patch, room)
        code, _, err = run("convert", tmp_path / "in", tmp_path / "out", *options)
    assert code == 1
    assert "No space left on device" in err
    assert room < 2 or "free some space and run it again" in err  # the first two are the manifest
    assert not [*tmp_path.rglob("*.l3-partial")]
    run("convert", tmp_path / "in", tmp_path / "out", *options)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
