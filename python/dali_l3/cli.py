"""The program `dali-l3`."""

from __future__ import annotations

from .jobs.interrupting import exiting_on_signals


def main() -> None:
    """Runs the command line and exits."""
    with exiting_on_signals():
        from .commands import run  # here, for it takes long enough to be interrupted

        run()


if __name__ == "__main__":
    main()
