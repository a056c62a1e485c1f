"""`dali-l3 convert` in units: to and from shards, in parts; how far it is, and its report."""

from __future__ import annotations

import os
from collections.abc import Iterator

import typer

from ..files import write_atomically
from ..jobs.display import console, printable
from ..jobs.outcomes import Outcome, Outcomes
from ..jobs.planning import Plan, PlanError, is_inside
from ..jobs.workers import DEFAULT_LIMITS, Limits
from ..units.manifest import Manifest, Settings, conversion_folder
from ..units.planning import open_manifest, preview
from ..units.records import done_units, forget_failures, kept, state_of
from ..units.running import run_locally
from ..units.storage import find_storage
from ..wording import counted
from .common import EXIT_FAILED, check_report, finish
from .parts import WHOLE, Part

_LISTED = 10  # failures; the report has them all
_WORDS = {"done": "converted", "skipped": "skipped", "failed": "failed", "left": "left"}


def convert_in_units(
    target: str,
    settings: Settings,
    part: Part | None = None,
    plan_only: bool = False,
    retry_failed: bool = False,
    workers: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    dry_run: bool = False,
    strict: bool = False,
    report: str | None = None,
) -> None:
    """Does the units of a part that are left, and shows them beside those that were done before."""
    _check_apart(settings.source, target)
    _check_report(report, settings.source, target)
    if dry_run:
        samples, passed_over = preview(settings, target)
        finish(Plan(outcomes=passed_over + samples), _nothing(), "converted", report, strict, dry_run)
        return
    manifest = open_manifest(target, settings, check_source=part is None, workers=workers)
    if plan_only:
        console.print(_planned(manifest))
        return
    part = part or WHOLE
    units = [unit for unit in range(len(manifest.units)) if part.takes(unit)]
    passed_over = manifest.outcomes_passed_over() if part.index == 1 else []
    manifest.make_folders()
    if retry_failed:
        forget_failures(manifest, units)
    count = sum(manifest.units[unit].count for unit in units)
    outcomes = _outcomes(manifest, units, workers, limits)
    finish(Plan(outcomes=passed_over), outcomes, "converted", report, strict, count=count)


def _outcomes(manifest: Manifest, units: list[int], workers: int | None, limits: Limits) -> Outcomes:
    left = dict.fromkeys(units)
    for record in done_units(manifest, units):
        del left[record.unit]
        yield from kept(record)
    for record in run_locally(manifest, left, workers, limits):
        yield from record.outcomes


def _nothing() -> Outcomes:
    yield from ()


def _planned(manifest: Manifest) -> str:
    samples = sum(part.count for part in manifest.units)
    return f"{manifest.folder}: {counted(samples, 'sample')} in {counted(len(manifest.units), 'unit')}"


def _check_apart(source: str, target: str) -> None:
    """Raises PlanError if output would get among the source, or the source is where output goes."""
    if not os.path.isdir(source):
        return
    for folder in (target, conversion_folder(target)):
        if is_inside(folder, source) or is_inside(source, folder):
            raise PlanError(f"{folder}: source and target folder must not be the same or inside one another")


def _check_report(report: str | None, *places: str) -> None:
    """Raises PlanError if the report would be a file that the conversion reads or writes."""
    if not report or report == "-":
        return
    folders = [folder for place in places for folder in (place, conversion_folder(place))]
    if report.endswith((".tar", ".idx")) or any(is_inside(report, folder) for folder in folders):
        raise PlanError(f"{report}: the report must not be named like a shard, nor be where the run reads or writes")


def show_status(target: str) -> None:
    """Says how far the conversion to a folder is. Exits with 1 if anything failed or is left."""
    manifest = _load(target)
    state = state_of(manifest)
    left = state.samples["left"]
    print(f"units: {state.done} of {state.units} done, {state.units - state.done} left")
    print("samples: " + ", ".join(f"{state.samples[status]} {word}" for status, word in _WORDS.items()))
    failures = [outcome for outcome in _all_outcomes(manifest) if outcome.status == "failed"]
    for outcome in failures[:_LISTED]:
        print(f"failed: {printable(outcome.name)}: {printable(outcome.reason)}")
    if len(failures) > _LISTED:
        print("… (--merge-reports lists all)")
    if failures or left:
        raise typer.Exit(EXIT_FAILED)


def merge_reports(target: str, report: str | None) -> None:
    """Writes what became of all samples to a report, whoever did their units. Exits as `show_status`."""
    manifest = _load(target)
    lines = [outcome.to_json() for outcome in _all_outcomes(manifest)]
    if report and report != "-":
        check_report(report)
        write_atomically(report, "".join(f"{line}\n" for line in lines).encode("ascii"))
    else:
        print(*lines, sep="\n")
    state = state_of(manifest)
    console.print(f"{counted(len(lines), 'file')}; {state.units - state.done} of {counted(state.units, 'unit')} left")
    if state.samples["failed"] or state.samples["left"]:
        raise typer.Exit(EXIT_FAILED)


def _all_outcomes(manifest: Manifest) -> Iterator[Outcome]:
    yield from manifest.outcomes_passed_over()
    for record in done_units(manifest):
        yield from record.outcomes


def _load(target: str) -> Manifest:
    manifest = Manifest.load(find_storage(target).absolute(target))
    if manifest is None:
        raise PlanError(f"{target}: no conversion in units was begun: there is no {conversion_folder(target)}")
    return manifest
