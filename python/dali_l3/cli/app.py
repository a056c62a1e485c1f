"""The commands put together."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from ..config import show_config
from ..errors import ConversionError
from .cluster import with_addresses
from .common import EXIT_FAILED, EXIT_USAGE, complain, reason
from .convert import convert
from .export import export
from .index import index
from .info import info
from .profile import profile
from .verify import verify

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def dali_l3(
    version: Annotated[bool, typer.Option("--version", help="Show versions and the configuration, and exit.")] = False,
) -> None:
    """Convert image files to L3, a lossless format that decodes fast, and verify, inspect and profile them.

    Start with: dali-l3 convert photos/ photos-l3/
    """
    if version:
        show_config()
        raise typer.Exit()


for command in (convert, export, verify, info, profile, index):
    app.command(no_args_is_help=True)(command)


def run() -> None:
    """Runs the command line and exits."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # it may be closed, or a test's
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files may hold what the terminal's encoding lacks
    try:
        app(with_addresses(sys.argv[1:]))
    except ConversionError as error:
        complain(str(error))
        sys.exit(EXIT_USAGE)
    except OSError as error:
        complain(f"{error.filename}: {reason(error)}" if error.filename else reason(error))
        sys.exit(EXIT_FAILED)
