"""`dali-l3 convert` and `export` in units: to and from shards, in parts; how far they are, and their report."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Generator

import typer

from ..files import target_errors, writing
from ..jobs.display import console, printable
from ..jobs.outcomes import Outcomes
from ..jobs.planning import Plan, PlanError, is_inside
from ..jobs.workers import DEFAULT_LIMITS, Limits
from ..sizes import parse_size
from ..units.manifest import Manifest, Order, Settings, conversion_folder
from ..units.on_ray import run_on_ray
from ..units.planning import open_manifest, preview
from ..units.records import Record, Survey, done_units, forget_failures, kept
from ..units.running import run_locally
from ..units.storage import find_storage, is_in_bucket, names_archives
from ..wording import counted
from .cluster import check_workers
from .common import EXIT_FAILED, check_report, finish, refuse_options
from .parts import WHOLE, Part

_LISTED = 10  # failures; the report has them all
_LEAST_SHARD = 10240  # bytes: what tar writes for an empty archive
_VERBS = {"l3": "converted", "png": "exported"}


def is_needed(source: str, target: str, is_asked_for: object) -> bool:
    """Whether the work is done in units: if an option asks for that, and for what are not files of this machine."""
    return bool(is_asked_for) or is_in_bucket(source) or is_in_bucket(target) or names_archives(source)


def refuse_beside_units(options: dict[str, object]) -> None:
    """Raises PlanError for an option of work file by file that is given."""
    for option, is_given in options.items():
        if is_given:
            raise PlanError(f"{option} cannot be combined with --shards, --part, --ray, buckets or tar shards")


def refuse_without_units(order: object, retry_failed: bool) -> None:
    """Raises PlanError for an option of work in units that is given where the work is done file by file."""
    if order or retry_failed:
        raise PlanError("--order needs --shards" if order else "--retry-failed needs --shards, --part or --ray")


def settings_of(source: str, shards: str | None, order: Order | None, seed: int | None) -> Settings:
    """What these options say, the others being those of `Settings`. Raises PlanError if they make no sense."""
    if not shards and (order or seed is not None):
        raise PlanError("--order and --seed are for --shards")
    if order == "source" and seed is not None:
        raise PlanError("--seed does not go with --order source, which draws nothing")
    path = find_storage(source).absolute(source)
    return Settings(path, _shard_size(shards) if shards else None, order or "drawn", seed or 0)


def _shard_size(text: str) -> int:
    try:
        size = parse_size(text)
    except ValueError as error:
        raise PlanError(f"--shards: {error}") from error
    if size < _LEAST_SHARD:
        raise PlanError(f"--shards {text}: a shard takes at least {_LEAST_SHARD} bytes, and should hold many samples")
    return size


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
    ray: str | None = None,
) -> None:
    """Does the units of a part that are left, and shows them beside those that were done before.

    ray: the address of a cluster; None: on this machine
    """
    of_runs = {"--part": part, "--ray": ray, "--retry-failed": retry_failed}
    of_outcomes = {"--dry-run": dry_run, "--report": report, "--strict": strict}
    for option, is_given in {**of_runs, **of_outcomes}.items():
        if plan_only and is_given:
            raise PlanError(f"{option} does not go with --plan, which writes no images")
        if dry_run and is_given and option in of_runs:
            raise PlanError(f"{option} does not go with --dry-run, which lists all that there is to do")
    check_workers(ray, workers)
    target, verb = find_storage(target).absolute(target), _VERBS[settings.format]
    _check_apart(settings.source, target)
    _check_report(report, settings.source, target)
    if dry_run:
        samples, passed_over = preview(settings, target)
        finish(Plan(outcomes=passed_over + samples), _nothing(), verb, report, strict, dry_run)
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
    run = functools.partial(run_on_ray, address=ray) if ray else functools.partial(run_locally, workers=workers)
    outcomes = _outcomes(manifest, units, functools.partial(run, limits=limits))
    finish(Plan(outcomes=passed_over), outcomes, verb, report, strict, count=count)


def _outcomes(manifest: Manifest, units: list[int], run: Callable[..., Generator[Record, None, None]]) -> Outcomes:
    left = dict.fromkeys(units)
    for record in done_units(manifest, units):
        del left[record.unit]
        yield from kept(record)
    with contextlib.closing(run(manifest, left)) as records:
        for record in records:
            yield from record.outcomes


def _nothing() -> Outcomes:
    yield from ()


def _planned(manifest: Manifest) -> str:
    samples = sum(part.count for part in manifest.units)
    return f"{manifest.folder}: {counted(samples, 'sample')} in {counted(len(manifest.units), 'unit')}"


def _check_apart(source: str, target: str) -> None:
    """Raises PlanError if output would get among the source, or the source is where output goes."""
    if is_in_bucket(target) and "/" not in target.partition("://")[2]:
        raise PlanError(f"{target}: name a folder in the bucket, beside which there is room for {target}.conversion")
    if find_storage(source) is not find_storage(target):
        return
    if not is_in_bucket(source) and not os.path.isdir(source):
        return
    inside = _is_below if is_in_bucket(source) else is_inside
    for folder in (target, conversion_folder(target)):
        if inside(folder, source) or inside(source, folder):
            raise PlanError(f"{folder}: source and target folder must not be the same or inside one another")


def _is_below(path: str, folder: str) -> bool:
    """Whether an object is the folder, or in it."""
    return f"{path}/".startswith(f"{folder}/")


def _check_report(report: str | None, *places: str) -> None:
    """Raises PlanError if the report would be a file that the conversion reads or writes."""
    if not report or report == "-":
        return
    folders = [folder for place in places for folder in (place, conversion_folder(place))]
    if report.endswith((".tar", ".idx")) or any(is_inside(report, folder) for folder in folders):
        raise PlanError(f"{report}: the report must not be named like a shard, nor be where the run reads or writes")


def tell(
    context: typer.Context, folder: str, target: str | None, status: bool, merge_reports: bool, report: str | None
) -> None:
    """Does what `--status DST` or `--merge-reports DST` asks for. Raises PlanError for options that mean nothing then.

    folder, target: the arguments of the command, of which there should be one
    """
    if target is not None or (status and merge_reports):
        raise PlanError("--status and --merge-reports take the target folder alone: --status DST")
    if status:
        refuse_options(context, "--status", "status")
        _show_status(folder)
    else:
        refuse_options(context, "--merge-reports", "merge_reports", "report")
        _merge_reports(folder, report)


def _show_status(target: str) -> None:
    """Says how far the conversion to a folder is. Exits with 1 if anything failed or is left."""
    manifest = _load(target)
    survey = Survey(manifest)
    words = {"done": _VERBS[manifest.settings.format], "skipped": "skipped", "failed": "failed", "left": "left"}
    failures = [outcome for outcome in survey if outcome.status == "failed"]
    print(f"units: {survey.done} of {survey.units} done, {survey.units - survey.done} left")
    print("samples: " + ", ".join(f"{survey.samples[status]} {word}" for status, word in words.items()))
    for outcome in failures[:_LISTED]:
        print(f"failed: {printable(outcome.name)}: {printable(outcome.reason)}")
    if len(failures) > _LISTED:
        print("… (--merge-reports lists all)")
    _exit_unless_complete(survey)


def _merge_reports(target: str, report: str | None) -> None:
    """Writes what became of all samples to a report, whoever did their units. Exits as `_show_status`."""
    manifest = _load(target)
    _check_report(report, manifest.settings.source, manifest.target)
    path = os.path.realpath(report) if report and report != "-" else None  # a file takes its place, not that of a link
    if path and report:
        check_report(path)
        if os.path.exists(report) and not os.path.isfile(report):
            raise PlanError(f"{report}: not a regular file; '--report -' is standard output")
    survey, count = Survey(manifest), 0
    with writing(path) if path else contextlib.nullcontext() as file:
        for outcome in survey:
            if path and file:
                with target_errors(path):
                    file.write(f"{outcome.to_json()}\n".encode("ascii"))
            else:
                print(outcome.to_json())
            count += 1
    console.print(f"{counted(count, 'file')}; {survey.units - survey.done} of {counted(survey.units, 'unit')} left")
    _exit_unless_complete(survey)


def _exit_unless_complete(survey: Survey) -> None:
    if survey.samples["failed"] or survey.samples["left"]:
        raise typer.Exit(EXIT_FAILED)


def _load(target: str) -> Manifest:
    manifest = Manifest.load(find_storage(target).absolute(target))
    if manifest is None:
        raise PlanError(f"{target}: no conversion in units was begun: there is no {conversion_folder(target)}")
    return manifest
