"""Reports of the profiler's findings, for people and for programs.

- `tables`: the report's tables, sentences and command, which the terminal and the HTML report share
- `figures`: its plots, as SVG
- `terminal`, `html`: both of them, and the progress on the way there
- `document`: all that was found, as JSON
"""

from .document import to_json
from .html import render as to_html
from .progress import Progress
from .tables import command
from .terminal import show, show_written

__all__ = ["Progress", "command", "show", "show_written", "to_html", "to_json"]
