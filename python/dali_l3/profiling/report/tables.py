"""The tables and sentences of a report, which the terminal and the HTML report share."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.filesize import decimal as size_text

from ...images.formats import is_lossy
from ...jobs.display import printable
from ...wording import counted
from ..ratio_search import TENTHS
from . import machine

if TYPE_CHECKING:
    from ..choosing import Mix
    from ..cost_model import Prediction
    from ..measuring import Throughput
    from ..profiler import DatasetProfile, FormatProfile, PairSearch

_MOST_FAILURES = 10  # listed; the JSON has them all
_DISTURBING = 0.1  # of the machine's CPUs, taken by other processes: speeds are lower then
_LIMITS = {
    "load": "loading",
    "decode": "decoding",
    "cpu": "the CPUs, which loading and decoding share,",
    "copy": "copying to the GPU",
}

Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table.

    columns: headings, the first of names, the others of figures; empty: names and what they stand for
    notes: sentences about it
    """

    title: str
    columns: Row
    rows: Sequence[Row]
    notes: list[str] = field(default_factory=list)


def all_tables(profile: DatasetProfile) -> list[Table]:
    """The tables of a report, except for `written`."""
    tables = [overview(profile), diagnosis(profile), formats(profile)]
    if profile.search:
        tables.append(search(profile.search))
    tables += [mixes(profile), choices(profile)]
    if profile.quality:
        tables.append(quality(profile))
    return tables


def overview(profile: DatasetProfile) -> Table:
    """The dataset and the conditions."""
    setting, conditions, facts = profile.setting, profile.conditions, machine.describe()
    rows = [
        ("dataset", f"{printable(profile.source)}: {counted(profile.images, 'image')}, {size_text(profile.bytes)}"),
        ("sample", counted(profile.sample, "image")),
        ("machine", f"{facts['cpu']}, {counted(conditions.cpus, 'CPU')}, {size_text(facts['memory_bytes'])} of memory"),
        ("memory", f"{size_text(conditions.cache_size)} for the Liquid reader, which reads past the page cache"),
        (
            "pipelines",
            f"DALI {facts['versions']['dali']}, batches of {setting.batch_size}, {counted(setting.threads, 'thread')}, "
            f"decoder on {setting.device}",
        ),
    ]
    if profile.resize:
        rows.append(("resized", f"all formats are measured with smaller images: {profile.resize}"))
    if conditions.copy_seconds:
        rows.append(("GPU", f"{_speed(1 / conditions.copy_seconds)} images/s can be copied to it"))
    notes = [f"{printable(path)}: {printable(reason)}" for path, reason in profile.failures[:_MOST_FAILURES]]
    if len(profile.failures) > _MOST_FAILURES:
        notes.append(f"and {len(profile.failures) - _MOST_FAILURES} more")
    if notes:
        notes.insert(0, f"Images that were chosen for the sample, but cannot be read ({len(profile.failures)}):")
    return Table("Dataset and conditions", (), rows, notes)


def diagnosis(profile: DatasetProfile) -> Table:
    """The diagnosis of the dataset as it is."""
    stages = profile.diagnosis.stages
    rows = [
        (
            stage.name,
            _speed(stage.throughput.mean),
            f"{_speed(stage.throughput.low)}-{_speed(stage.throughput.high)}",
            f"{stage.cpu_seconds * stage.throughput.mean:.1f}",
            *(_number(seconds * 1e3) for seconds in (stage.batches.p50, stage.batches.p95, stage.batches.p99)),
        )
        for stage in stages
    ]
    columns = ("stage", "images/s", "quartiles", "CPUs busy", "p50 ms", "p95 ms", "p99 ms")
    notes = [*(f"{stage.name}: {stage.what}" for stage in stages), *profile.diagnosis.findings]
    return Table("The dataset as it is", columns, rows, notes)


def formats(profile: DatasetProfile) -> Table:
    """The cost of each format."""
    lossy = any(found.psnr is not None for found in profile.formats.values())
    rows = [
        (
            name,
            _number(found.costs.image_bytes / 1e6),
            _spread(found.load),
            _spread(found.decode),
            _spread(found.both),
            _speed(found.predicted),
            *((_decibels(found.psnr),) if lossy else ()),
        )
        for name, found in profile.formats.items()
    ]
    columns = ("format", "MB/file", "load", "decode", "both", "predicted", *(("PSNR dB",) if lossy else ()))
    notes = ["Images/s, with half the distance between the quartiles; both: with a part of the reader's memory."]
    notes += filter(None, (_replaced(name, found) for name, found in profile.formats.items()))
    others = max(found.others for found in profile.formats.values())
    if others > _DISTURBING:
        notes.append(
            f"Other processes took up to {others:.0%} of the CPUs meanwhile: these speeds may be too low, some more "
            "than others. Profile again when the machine is quiet."
        )
    return Table("Formats", columns, rows, notes)


def search(pair: PairSearch) -> Table:
    """The steps of the search for a ratio."""
    rows = []
    for number, step in enumerate(pair.search.steps):
        if number < pair.search.halvings:
            move = f"halved, toward {pair.encoded if step.load < step.decode else pair.raw}"
        else:
            move = "neighbour"
        if step == pair.search.best:
            move += ", fastest"
        rows.append((step.ratio, _speed(step.load), _speed(step.decode), _speed(step.throughput), move))
    program = f"{pair.program:.1f}:{TENTHS - pair.program:.1f}"
    notes = [
        f"The search by measurements finds {pair.search.best.ratio}, the linear program over the costs {program}; "
        + ("they agree." if pair.agrees else "they do not agree: by the model the program's is notably faster.")
    ]
    return Table(
        f"Search for the ratio {pair.encoded}:{pair.raw}", ("ratio", "load", "decode", "images/s", "step"), rows, notes
    )


def mixes(profile: DatasetProfile) -> Table:
    """The predictions for mixes, and what they take on the disk, beside the dataset as it is."""
    rows = [
        (
            mix_name(mix),
            _speed(mix.prediction.throughput),
            mix.prediction.limit,
            f"{mix.prediction.hit_ratio:.0%}",
            size_text(mix.bytes),
            _growth(mix, profile),
            _mark(mix, profile),
        )
        for mix in profile.mixes
    ]
    return Table("Mixes, as predicted", ("mix", "images/s", "limit", "from memory", "dataset", "growth", ""), rows)


def choices(profile: DatasetProfile) -> Table:
    """Mixes that no other beats in both speed and space."""
    front, margin = profile.choice.front, profile.choice.margin
    fastest = front[-1].prediction
    rows = [
        (
            mix_name(mix),
            _speed(mix.prediction.throughput),
            f"{_part(mix.prediction, fastest):.0%}",
            size_text(mix.bytes),
            _growth(mix, profile),
            _mark(mix, profile),
        )
        for mix in front
    ]
    notes = ["No mix is both faster and smaller than one of these; there are more between them."]
    if profile.advice != "stay":
        notes.append(f"The recommended one is the smallest within {margin:.0%} of the fastest.")
    return Table("Choices", ("mix", "images/s", "of fastest", "dataset", "growth", ""), rows, notes)


def _mark(mix: Mix, profile: DatasetProfile) -> str:
    return "recommended" if mix == profile.recommendation and profile.advice != "stay" else ""


def _part(prediction: Prediction, fastest: Prediction) -> float:
    """Of the fastest's speed."""
    return prediction.throughput / fastest.throughput if prediction.throughput < fastest.throughput else 1.0


def quality(profile: DatasetProfile) -> Table:
    """The gains and losses of lossy formats."""
    rows = [
        (
            each.format,
            _number(each.image_bytes / 1e6),
            f"{each.image_bytes / each.pixel_bytes:.3f}",
            f"{each.image_bytes / each.lossless_bytes:.3f}" if each.lossless_bytes else "",
            _spread(each.decode),
            _decibels(each.psnr),
            _decibels(each.least_psnr),
            f"{each.ssim:.4f}" if each.ssim is not None else "",
        )
        for each in profile.quality
    ]
    columns = ("format", "MB/file", "of pixels", "of lossless", "decode", "PSNR dB", "least", "SSIM")
    notes = [
        f"{each.format} cannot hold all images of the sample: the figures are of {each.images}."
        for each in profile.quality
        if each.images < profile.sample
    ]
    return Table("Lossy formats", columns, rows, notes)


def written(profile: DatasetProfile) -> Table:
    """The dataset that was written, predicted and measured. `profile.written` must be there."""
    found = profile.written
    assert found
    rows = [
        ("dataset", f"{printable(found.folder)}: {found.mix}, {size_text(found.bytes)}"),
        ("predicted", f"{_speed(found.predicted)} images/s"),
        (
            "measured",
            f"{_speed(found.measured.mean)} images/s "
            f"(quartiles {_speed(found.measured.low)}-{_speed(found.measured.high)}), "
            f"{found.measured.mean / found.predicted:.2f} of the prediction",
        ),
        ("from memory", f"{found.hit_ratio:.0%}"),
    ]
    return Table("The dataset as written", (), rows)


def recommendation(profile: DatasetProfile) -> list[str]:
    """The recommendation and its gain, in sentences."""
    mix, prediction = profile.recommendation, profile.recommendation.prediction
    now = profile.diagnosis.now.mean
    cache = size_text(profile.conditions.cache_size)
    if profile.advice == "stay":
        return [_reason_to_stay(profile)]
    converts = profile.advice == "convert"
    store = f"Store {_shares(mix.weights)}, and read them" if converts else "Read the files as they are"
    sentences = [
        f"{store} with fn.readers.liquid and {cache} of memory: {_speed(prediction.throughput)} images/s are "
        f"predicted, {profile.gain:.1f} times today's {_speed(now)}.",
        f"Then {_LIMITS[prediction.limit]} will set the pace, and {prediction.hit_ratio:.0%} of each batch will come "
        "from memory.",
    ]
    if converts and profile.resize:
        sentences.append(f"Images become smaller on the way ({profile.resize}), and lose detail by it.")
    if converts:
        sentences.append(
            f"The dataset will take about {size_text(mix.bytes)}, {_growth(mix, profile)} the "
            f"{size_text(profile.bytes)} that it takes now."
        )
        fastest = profile.choice.front[-1]
        if fastest != mix:
            speed, size = _speed(fastest.prediction.throughput), size_text(fastest.bytes)
            sentences.append(f"The fastest mix, {mix_name(fastest)}, would reach {speed} images/s and take {size}.")
    first = profile.diagnosis.stages[0]
    if first.name == "synthetic" and first.throughput.mean < prediction.throughput:
        most = first.throughput.mean
        sentences.append(f"The training step takes {_speed(most)} images/s at most, {most / now:.1f} times today's.")
    for name in mix.weights:
        if is_lossy(name):
            psnr = profile.formats[name].psnr
            sentences.append(f"{name} loses detail" + (f": its PSNR is {psnr:.1f} dB." if psnr is not None else "."))
    return sentences


def _reason_to_stay(profile: DatasetProfile) -> str:
    mix, most, now = profile.recommendation, profile.conditions.max_bytes, profile.diagnosis.now.mean
    if profile.diagnosis.limit == "step":
        return f"The training step limits, at {_speed(now)} images/s: storing the dataset otherwise gains nothing."
    if most is not None and mix.bytes > most:
        smallest = f"the smallest, {mix_name(mix)}, takes {size_text(mix.bytes)}"
        return f"No mix takes as little as {size_text(most)}: {smallest}."
    return (
        f"The dataset may stay as it is: the best mix, {mix_name(mix)}, would reach "
        f"{_speed(mix.prediction.throughput)} images/s, {profile.gain:.1f} times today's {_speed(now)}, "
        f"and take {_growth(mix, profile)} the space."
    )


def command(profile: DatasetProfile, target: str = "DST") -> str | None:
    """The command that follows the recommendation, if a conversion is recommended."""
    if profile.advice != "convert":
        return None
    source, target = map(_shell_word, (profile.source, target))
    resize = f" {profile.resize}" if profile.resize else ""
    return f"dali-l3 convert {source} {target} --mix {profile.recommendation}{resize}"


def _shell_word(path: str) -> str:
    """The path, quoted for a shell, without characters that a terminal would act upon."""
    if path.isprintable():
        return shlex.quote(path)
    parts = (
        char if char.isprintable() and char not in "\\'" else "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))
        for char in path
    )
    return f"$'{''.join(parts)}'"


def mix_name(mix: Mix) -> str:
    """As `dali-l3 convert --mix` takes it, or the format's name if there is only one."""
    return next(iter(mix.weights)) if len(mix.weights) == 1 else str(mix)


def _shares(weights: Mapping[str, int]) -> str:
    (name, weight), *others = weights.items()
    if not others:
        return f"all images as {name}"
    parts = [f"{weight} of {sum(weights.values())} images as {name}", *(f"{more} as {other}" for other, more in others)]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _growth(mix: Mix, profile: DatasetProfile) -> str:
    """The size of the dataset, in times of what it takes as it is."""
    return f"{_number(mix.bytes / profile.bytes)}x"


def _replaced(name: str, found: FormatProfile) -> str | None:
    if not found.replaced:
        return None
    return f"{name} cannot hold all images of the sample: l3-fast took the place of {found.replaced}."


def _speed(images_per_second: float) -> str:
    return "no limit" if images_per_second == float("inf") else _number(images_per_second)


def _spread(throughput: Throughput) -> str:
    return f"{_speed(throughput.mean)} ({throughput.spread:.0%})"


def _number(value: float) -> str:
    """Three significant digits, or more before the point."""
    return f"{value:.0f}" if value >= 99.95 else f"{value:#.3g}"


def _decibels(psnr: float | None) -> str:
    return f"{psnr:.1f}" if psnr is not None else ""
