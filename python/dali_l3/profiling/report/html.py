"""The report as one HTML file that needs no other, and no network."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup

from ...jobs.display import printable
from . import figures, tables

if TYPE_CHECKING:
    from ..profiler import DatasetProfile

_TEMPLATE = "report.html"


def render(profile: DatasetProfile) -> str:
    """The report in HTML, with its plots in it."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(os.path.dirname(__file__)),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(_TEMPLATE).render(
        source=printable(profile.source),
        recommendation=tables.recommendation(profile),
        command=tables.command(profile),
        written=tables.written(profile) if profile.written else None,
        balance=Markup(figures.balance(profile)) if profile.search else None,
        ratios=Markup(figures.ratios(profile)) if profile.search else None,
        choices=Markup(figures.choices(profile)),
        formats=Markup(figures.formats(profile)),
        batch_times=Markup(figures.batch_times(profile)),
        tables=tables.all_tables(profile),
    )
