"""The program `dali-l3`.

- `app`: the program as a whole
- `convert`, `export`, `verify`, `info`, `profile`, `index`: a command each
- `in_files`, `in_units`, `parts`: conversion file by file and in units, and shares of the work
- `common`: options that several commands have, and how they end

Imports no DALI, and image libraries only in the commands that need them.
"""

from __future__ import annotations

from ..jobs.interrupting import exiting_on_signals


def main() -> None:
    """Runs the command line and exits."""
    with exiting_on_signals():
        from .app import run  # here, for it takes long enough to be interrupted

        run()
