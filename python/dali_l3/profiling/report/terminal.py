"""The report on a terminal, or in a file or pipe in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as Grid
from rich.text import Text

from . import tables
from .tables import Table

if TYPE_CHECKING:
    from ..profiler import DatasetProfile

_ENDLESS = 10_000  # columns


def show(profile: DatasetProfile, console: Console) -> None:
    """Prints the report, and what was written, if anything was."""
    for table in tables.all_tables(profile):
        _print_table(table, console)
    _print_title("Recommendation", console)
    for sentence in tables.recommendation(profile):
        _print(sentence, console)
    if command := tables.command(profile):
        _print(f"  {command}", console, wrap=False)  # to be copied
    if profile.written:
        show_written(profile, console)


def show_written(profile: DatasetProfile, console: Console) -> None:
    """Prints how the dataset that was written compares with the prediction. `profile.written` must be there."""
    _print_table(tables.written(profile), console)


def _print_table(table: Table, console: Console) -> None:
    """Prints a table; where it is wider than the terminal, a list. Pipes and files have no width."""
    _print_title(table.title, console)
    if not table.columns:
        for name, value in table.rows:
            _print(f"{name}: {value}", console)
    else:
        grid = _grid(table, console)
        width = Measurement.get(console, console.options.update(max_width=_ENDLESS), grid).maximum
        if width <= console.width or not console.is_terminal:
            grid.width = width
            console.print(grid, crop=False, soft_wrap=False)
        else:
            _print_list(table, console)
    for note in table.notes:
        _print(note, console)


def _grid(table: Table, console: Console) -> Grid:
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for number, heading in enumerate(table.columns):
        grid.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for row in table.rows:
        grid.add_row(*(_text(cell, console) for cell in row))
    return grid


def _print_list(table: Table, console: Console) -> None:
    for name, *figures in table.rows:
        _print(name, console)
        for heading, figure in zip(table.columns[1:], figures, strict=True):
            if figure:
                _print(f"  {heading}: {figure}" if heading else f"  {figure}", console)


def _print_title(title: str, console: Console) -> None:
    console.print()
    console.print(_text(title, console, style="bold"))


def _print(text: str, console: Console, wrap: bool = True) -> None:
    console.print(_text(text, console), soft_wrap=not wrap)


def _text(text: str, console: Console, style: str = "") -> Text:
    """`text` as it stands, without markup, and with characters escaped that the console cannot show."""
    return Text(text.encode(console.encoding, "backslashreplace").decode(console.encoding), style)
