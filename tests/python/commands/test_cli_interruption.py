"""Runs that are interrupted, terminated or killed, at any time, and what continues them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import imagecodecs
import numpy as np
import pytest

import dali_l3
from image_files import noise, write_png
from processes import is_running, start, workers_of

SIGNALS = [signal.SIGINT, signal.SIGTERM]
PIXELS = noise((512, 512, 3))


@pytest.fixture
def large_tree(tmp_path):
    """More work than is done before an interruption."""
    source = tmp_path / "large"
    data = imagecodecs.png_encode(PIXELS, level=1)
    (source / "class").mkdir(parents=True)
    for number in range(100):
        (source / "class" / f"{number:03}.png").write_bytes(data)
    return source


def finished(folder):
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.rglob("*.l3")}


def wait_until(condition, process):
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def wait_for_files(process, folder, count):
    wait_until(lambda: len(finished(folder)) >= count, process)


def wait_for_end(pids):
    deadline = time.monotonic() + 10
    while any(map(is_running, pids)):
        assert time.monotonic() < deadline, "workers outlive the process that started them"
        time.sleep(0.01)


def assert_sound(folder):
    """All files are whole, and there are no others."""
    assert set((folder / "class").iterdir()) == finished(folder).keys()
    for path in finished(folder):
        np.testing.assert_array_equal(dali_l3.decode(path.read_bytes(), verify=True), PIXELS)


def assert_is_continued(run, source, target):
    done = finished(target)
    code, _, err = run("convert", source, target)
    assert code == 0
    assert f"{100 - len(done)} converted, {len(done)} kept, 0 failed" in err
    assert {path: state for path, state in finished(target).items() if path in done} == done
    assert_sound(target)


def test_a_killed_run_is_continued(run, large_tree, tmp_path):
    target = tmp_path / "l3"
    process = start("convert", large_tree, target, "--workers", 2)
    wait_for_files(process, target, 5)
    workers = workers_of(process.pid)
    process.kill()
    process.communicate(timeout=30)
    assert workers
    wait_for_end(workers)
    assert 5 <= len(finished(target)) < 100
    assert_is_continued(run, large_tree, target)


def test_a_killed_worker_costs_nothing(large_tree, tmp_path):
    target = tmp_path / "l3"
    process = start("convert", large_tree, target, "--workers", 2)
    wait_for_files(process, target, 5)
    os.kill(workers_of(process.pid)[-1], signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "100 converted, 0 failed" in err
    assert len(finished(target)) == 100
    assert_sound(target)


@pytest.mark.parametrize("number", [*SIGNALS, signal.SIGHUP])
@pytest.mark.parametrize("files", [1, 10])  # after the first file, most workers are still starting
def test_a_signal_lets_the_files_at_hand_be_finished_and_reported(run, large_tree, tmp_path, files, number):
    target, report = tmp_path / "l3", tmp_path / "report"
    process = start("convert", large_tree, target, "--workers", 4, "--report", report)
    wait_for_files(process, target, files)
    if number != signal.SIGTERM:
        os.killpg(process.pid, number)  # as a terminal does it: to the workers too
    else:
        os.kill(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number, err
    assert "interrupted; run it again to continue" in err
    assert "Traceback" not in err
    assert "resource_tracker" not in err
    assert len(finished(target)) < 100
    done = [line for line in map(json.loads, report.read_text().splitlines()) if line["status"] == "done"]
    assert {line["target"] for line in done} == set(map(str, finished(target)))
    assert f"{len(done)} converted, 0 failed" in err
    assert_is_continued(run, large_tree, target)


def test_a_signal_that_ends_the_workers_too(run, large_tree, tmp_path):
    target = tmp_path / "l3"
    process = start("convert", large_tree, target, "--workers", 2)
    wait_for_files(process, target, 5)
    os.killpg(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert "Traceback" not in err
    assert_sound(target)
    assert_is_continued(run, large_tree, target)


@pytest.mark.parametrize("second", SIGNALS)
@pytest.mark.parametrize("first", SIGNALS)
@pytest.mark.parametrize("command", ["convert", "export", "verify"])
def test_a_second_signal_ends_a_run_at_once(run, large_tree, tmp_path, command, first, second):
    """The workers are stopped, so that the files at hand are never finished."""
    source, target, messages = large_tree, tmp_path / "out", tmp_path / "messages"
    if command != "convert":
        source = tmp_path / "l3"
        run("convert", large_tree, source)
    arguments = [command, source, *([target] if command != "verify" else []), "--workers", 2]
    with messages.open("w") as stderr:
        process = start(*arguments, "--report", tmp_path / "report", stderr=stderr)
    try:
        wait_until(lambda: (tmp_path / "report").exists() and (tmp_path / "report").read_text(), process)
        workers = workers_of(process.pid)
        assert workers
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        os.kill(process.pid, first)
        wait_until(lambda: "finishing the files at work" in messages.read_text(), process)
        os.kill(process.pid, second)
        process.wait(timeout=60)
        assert process.returncode == 128 + first
        wait_for_end(workers)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert "interrupted; run it again to continue" in messages.read_text()
    assert "Traceback" not in messages.read_text()
    if command != "verify":
        assert not [path for path in (target / "class").iterdir() if path.name.startswith(".")]
    if command == "convert":
        assert_is_continued(run, source, target)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("module", ["typer", "tifffile"])
def test_a_signal_while_the_program_starts_ends_it_quietly(tmp_path, module, number):
    """Modules that it imports first and last send the signal."""
    write_png(tmp_path / "src" / "a.png")
    (tmp_path / f"{module}.py").write_text(f"import os\nos.kill(os.getpid(), {int(number)})\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    process = start("convert", tmp_path / "src", tmp_path / "dst", env=environment)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 128 + number
    assert not (tmp_path / "dst").exists()


OWN_PROGRAM = """
import os
import signal
import threading
import time
from dali_l3.jobs import workers

import worker_functions
from dali_l3.jobs.outcomes import Task
from dali_l3.jobs.workers import run_tasks

def announce(event, function):
    def announcing(*arguments, **keywords):
        print(event, flush=True)
        return function(*arguments, **keywords)
    return announcing

def interrupting(submit):
    def submit_interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        future = submit(*arguments)
        print("submitted", flush=True)
        return future
    return submit_interrupted

def run():
    tasks = [Task("first"), *map(Task, ["endless"] * 10)]
    for _ in run_tasks(worker_functions.run, tasks, 2):
        print("started", flush=True)

if __name__ == "__main__":
    threading.Thread(target=threading.Event().wait, daemon=True).start()  # one that could receive the signals
    workers.Pool.close = announce("shutting down", workers.Pool.close)
"""


@pytest.fixture
def start_own_program(tmp_path):
    """Starts a program that runs tasks; most of them never end. It is killed after a minute."""
    processes = []

    def start(program):
        script = tmp_path / "program.py"
        script.write_text(OWN_PROGRAM + textwrap.indent(program, "    "))
        path = os.pathsep.join(
            [os.path.join(os.path.dirname(os.path.dirname(__file__)), "support"), os.environ.get("PYTHONPATH", "")]
        )
        process = subprocess.Popen(
            [sys.executable, script],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        killer = threading.Timer(60, os.killpg, (process.pid, signal.SIGKILL))
        killer.start()
        processes.append((process, killer))
        return process

    yield start
    for process, killer in processes:
        killer.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_a_program_of_ones_own_ends_when_it_is_interrupted_twice(start_own_program):
    """With Python's usual KeyboardInterrupt, while the tasks at hand are never finished."""
    process = start_own_program("run()")
    assert process.stdout.readline() == "started\n"
    workers = workers_of(process.pid)
    assert workers
    os.kill(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "shutting down\n"
    os.kill(process.pid, signal.SIGINT)
    process.wait(timeout=60)
    wait_for_end(workers)
    assert process.returncode == -signal.SIGINT, "of an exception that nobody caught"


def test_an_interruption_does_not_cut_a_submission_short(start_own_program):
    """Nor loses it a worker that is being started: the end waits for it."""
    process = start_own_program("workers.Pool._start = interrupting(workers.Pool._start)\nrun()")
    assert process.stdout.readline() == "shutting down\n"
    assert process.stdout.readline() == "submitted\n"


def exit_code_of(program):
    program = "import os, signal\nfrom dali_l3.jobs.interrupting import *\n" + program
    return subprocess.run([sys.executable, "-c", program], timeout=60, stderr=subprocess.DEVNULL).returncode


def test_a_third_signal_ends_the_process_wherever_it_is():
    kill = "    os.kill(os.getpid(), signal.SIGINT)\n"
    assert exit_code_of("with stopping_on_signals():\n" + 2 * kill) == 130
    assert exit_code_of("with stopping_on_signals():\n" + 3 * kill) == -signal.SIGINT


@pytest.mark.parametrize("manager", ["exiting_on_signals", "stopping_on_signals"])
def test_signals_that_are_to_be_ignored_are_ignored(manager):
    """As those of commands that a script starts in the background are."""
    program = f"""
signal.signal(signal.SIGINT, signal.SIG_IGN)
with {manager}():
    os.kill(os.getpid(), signal.SIGINT)
"""
    assert exit_code_of(program) == 0


@pytest.mark.parametrize("manager", ["exiting_on_signals", "stopping_on_signals"])
def test_signals_are_handled_as_before_afterwards(manager):
    program = f"""
before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
try:
    with {manager}():
        os.kill(os.getpid(), signal.SIGTERM)
except Interrupted as interruption:
    assert interruption.code == 143
else:
    raise SystemExit(1)
assert before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
"""
    assert exit_code_of(program) == 0
