"""The command line in a process of its own, and the processes that it starts."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys


def start(*arguments, stderr=subprocess.PIPE, **options):
    """Starts the command line, in a process group of its own."""
    command = [sys.executable, "-m", "dali_l3.cli", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True, **options
    )


def workers_of(pid):
    """The worker processes of the process `pid`; not Python's resource tracker."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes()
            if b"spawn_main" in command and int(_status(entry)[1]) == pid:
                found.append(int(entry))
        except OSError:  # it ended
            pass
    return found


def is_running(pid):
    try:
        return _status(pid)[0] != "Z"
    except OSError:
        return False


def _status(pid):
    """The state of a process, the number of its parent, and more."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
