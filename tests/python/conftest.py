"""Fixtures that several test files share."""

import contextlib
import gc
import os
import signal
import subprocess
import sys

# Else OpenBLAS, for numpy, keeps another CPU busy while a process imports it; many of the processes here do no more.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import hypothesis
import numpy as np
import pytest

from dali_l3 import _native, cli
from dali_l3.jobs import running, workers
from dali_l3.units import planning
from dali_l3.units import running as units_running
from waiting import HANGS

# How long examples take is the machine's affair. They are the same in every run: what fails does so until it is mended.
# `pytest --hypothesis-profile exploring` draws others.
untimed = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("exploring", untimed)
hypothesis.settings.register_profile("steady", untimed, derandomize=True)
hypothesis.settings.load_profile("steady")

# A shell that runs the tests in the background ignores Ctrl-C, and nohup SIGHUP, which the programs that they start
# would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_finish():
    """Spares the collector all that was imported, which would take most of the time of tests that collect garbage."""
    gc.collect()
    gc.freeze()


def smooth_image(shape, dtype, seed=0):
    """A gradient with noise: compressible as photographs are, with every bit of the sample in use."""
    generator = np.random.default_rng(seed)
    height, width = shape[:2]
    peak = np.iinfo(dtype).max
    ramp = np.add.outer(np.linspace(0, peak / 2, height), np.linspace(0, peak / 2, width))
    ramp = ramp.reshape((height, width) + (1,) * (len(shape) - 2))
    noise = generator.normal(0, peak / 64, shape)
    return np.clip(ramp + noise, 0, peak).astype(dtype)


@pytest.fixture
def run_python(tmp_path):
    """Runs a program in a fresh interpreter, in an empty folder, and returns what it printed; fails with its errors."""

    def run(program, env=None):
        result = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=HANGS
        )
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    return run


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the command line in this process; returns (exit code, standard output, standard error)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["dali-l3", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as exit:
            code = exit.code or 0
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return code, captured.out, captured.err

    return run


@pytest.fixture
def one_process(monkeypatch):
    """Has tasks done here, unless they are for several workers: to start one takes longer than small tasks.

    And has this process believe that there is one CPU, so that there are several only where a test asks for them.
    """

    def run_tasks(function, tasks, count=None, initializer=None, stopped=lambda: False, *limits):
        if count is not None and count > 1:
            yield from workers.run_tasks(function, tasks, count, initializer, stopped, *limits)
            return
        for task in tasks:
            if stopped():
                return
            yield function(task)

    class Pool(contextlib.nullcontext):
        def __init__(self, *arguments):
            super().__init__(self)
            self._arguments = arguments[:5]

        def run(self, tasks):
            function, *others = self._arguments
            return run_tasks(function, tasks, *others)

    for module in (running, planning):
        monkeypatch.setattr(module, "run_tasks", run_tasks)
    monkeypatch.setattr(units_running, "Pool", Pool)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})


@pytest.fixture(scope="session")
def plugin():
    """For tests of the DALI operators: skips them where there is no DALI, and fails where only the operators lack."""
    pytest.importorskip("nvidia.dali")
    assert _native.ADAPTER_SOURCE.is_dir(), "DALI is installed, but this package was built without its operators"


@pytest.fixture(scope="module")
def open_bucket():
    """What makes the buckets `s3` and `gs`, as s3fs and gcsfs find them. A module of tests may replace it."""
    from converting_in_buckets import bucket

    return bucket


@pytest.fixture(scope="module")
def s3(open_bucket):
    """A bucket of S3 on this machine."""
    with open_bucket("s3") as made:
        yield made


@pytest.fixture(scope="module")
def gs(open_bucket):
    """A bucket of Google Cloud Storage on this machine."""
    pytest.importorskip("gcsfs", reason="gcsfs is not installed")
    pytest.importorskip("gcp_storage_emulator", reason="gcp-storage-emulator is not installed")
    with open_bucket("gs") as made:
        yield made
