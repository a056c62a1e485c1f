"""The profiler's hidden folder: it goes, whatever comes in between, and what killed runs leave goes later."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest

from dali_l3.errors import ConversionError
from dali_l3.jobs.interrupting import Interrupted, exiting_on_signals
from dali_l3.profiling import work_folder
from dali_l3.profiling.measuring import PipelineError
from waiting import HANGS

HOLD = """
import sys
from dali_l3.profiling.work_folder import work_folder
with work_folder(sys.argv[1]) as folder:
    open(folder + "/file", "w").close()
    print(flush=True)
    sys.stdin.read()
"""


def start_holding(parent):
    """A process that has a folder in `parent` until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline()
    return process


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", ["_create", "_remove", "rmtree"])
def test_a_signal_waits_until_the_folder_is_gone(tmp_path, monkeypatch, signum, moment):
    module = shutil if moment == "rmtree" else work_folder
    function = getattr(module, moment)

    def interrupted(*arguments):
        if moment != "_remove":  # which begins to defer signals by itself
            os.kill(os.getpid(), signum)
        result = function(*arguments)
        os.kill(os.getpid(), signum)
        return result

    monkeypatch.setattr(module, moment, interrupted)
    with pytest.raises(Interrupted) as raised, exiting_on_signals(), work_folder.work_folder(str(tmp_path)) as folder:
        open(os.path.join(folder, "file"), "w").close()
    assert raised.value.code == 128 + signum
    assert not os.listdir(tmp_path)


def test_what_killed_runs_left_goes_and_what_others_use_stays(tmp_path):
    (tmp_path / (work_folder._PREFIX + "a file")).touch()
    (tmp_path / (work_folder._PREFIX + "a link")).symlink_to(tmp_path)
    others = set(os.listdir(tmp_path))
    with start_holding(tmp_path) as killed:
        killed.kill()
        killed.wait(HANGS)
    assert len(os.listdir(tmp_path)) == len(others) + 1
    with start_holding(tmp_path) as living:
        (used,) = set(os.listdir(tmp_path)) - others
        with work_folder.work_folder(str(tmp_path)) as folder:
            assert set(os.listdir(tmp_path)) == others | {used, os.path.basename(folder)}
            assert os.listdir(tmp_path / used) == ["file"]
        living.communicate("", timeout=HANGS)
    assert set(os.listdir(tmp_path)) == others


def test_a_folder_that_another_run_took_for_stale_is_made_again(tmp_path, monkeypatch):
    lock, removed = work_folder.fcntl.flock, []

    def remove_first(descriptor, operation):
        if not removed:
            removed.extend(os.listdir(tmp_path))
            shutil.rmtree(tmp_path / removed[0])
        lock(descriptor, operation)

    monkeypatch.setattr(work_folder.fcntl, "flock", remove_first)
    with work_folder.work_folder(str(tmp_path)) as folder:
        assert os.path.isdir(folder)
        assert removed != [os.path.basename(folder)]
    assert not os.listdir(tmp_path)


def test_folders_without_locks_are_made_and_stay_if_killed(tmp_path, monkeypatch):
    def fail(descriptor, operation):
        raise OSError("no locks")

    monkeypatch.setattr(work_folder.fcntl, "flock", fail)
    with work_folder.work_folder(str(tmp_path)) as first:
        with work_folder.work_folder(str(tmp_path)):
            assert os.path.isdir(first)
        assert os.path.isdir(first)
    assert not os.listdir(tmp_path)


def test_where_nothing_can_be_written(tmp_path):
    with (
        pytest.raises(ConversionError, match="nowhere: No such file or directory; .* --work"),
        work_folder.work_folder(str(tmp_path / "nowhere")),
    ):
        pass


def test_names_that_are_not_utf8_become_links(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    odd = os.fsdecode(b"odd\xff")
    (tmp_path / odd).touch()
    with work_folder.plain_names() as plain:
        assert plain("even") == "even"
        assert os.listdir(tmp_path) == [odd]
        link = plain(odd)
        assert link.encode()
        assert link == plain(odd)
        assert os.readlink(link) == str(tmp_path / odd)
    assert os.listdir(tmp_path) == [odd]


def test_errors_name_files_not_their_links(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    names = [os.fsdecode(b"/data/%d\xff" % number) for number in range(12)]

    def fail():
        with work_folder.plain_names() as plain:
            links = [plain(name) for name in names]
            raise PipelineError(f"{links[11]} and {links[1]}: no images")

    with pytest.raises(PipelineError) as raised:
        fail()
    assert str(raised.value) == f"{names[11]} and {names[1]}: no images"
