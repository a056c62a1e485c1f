"""The plots of a report, as SVG.

Each is one `<svg>` element that stands for itself, or within HTML, where it takes the colour of the text around it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import matplotlib.style
from matplotlib.figure import Figure

from ..cost_model import Prediction, predict
from ..ratio_search import TENTHS
from .tables import mix_name

if TYPE_CHECKING:
    from ..choosing import Mix
    from ..profiler import DatasetProfile, PairSearch

_INK = "#010203"  # stands for the colour of the text around
_MODEL, _MEASURED, _RECOMMENDED, _OTHER = "#3b82c4", "#e0752d", "#2f9e67", "#8d8d8d"
_COLOURS = {"load": "#b5651d", "decode": "#8e63c7", "cpu": "#8d8d8d", "copy": "#c25b8f"}
_NAMES = {"load": "loading", "decode": "decoding", "cpu": "CPUs", "copy": "copying to the GPU"}
_MOST_LOADING = 3  # times the fastest decoding: further right nothing depends on loading
_HEADROOM = 1.5  # above the predictions, for lines of stages that do not limit

_STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": _INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "font.size": 9,
    "grid.alpha": 0.15,
    "grid.color": _INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "none",
    "svg.hashsalt": "dali_l3",  # the same figures make the same file
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


def balance(profile: DatasetProfile) -> str:
    """Loading against decoding along the ratios of the searched pair, as figure 3(a) of the Liquid paper.

    Loading without a limit, since memory holds all, is drawn at the right edge. `profile.search` must be there.
    """
    pair, predictions = _searched(profile), _predictions(profile)
    model = [(each.throughput_of("load"), each.throughput_of("decode")) for each in predictions]
    measured = [(step.load, step.decode) for step in pair.search.steps]
    best = profile.recommendation.prediction
    recommended = [(best.throughput_of("load"), best.throughput_of("decode"))]
    loads, decodes = zip(*model, *measured, *recommended, strict=True)
    edge = min(max(loads), _MOST_LOADING * max(decodes))

    with _style():
        figure = Figure(figsize=(6.5, 4.8), layout="constrained")
        axes = figure.add_subplot(
            xlabel="loading, images/s",
            ylabel="decoding, images/s",
            xlim=(0, 1.1 * edge),
            ylim=(0, 1.15 * max(decodes)),
        )
        axes.axline((0, 0), slope=1, color=_OTHER, linestyle="--", label="loading = decoding")

        def draw(points: Sequence[tuple[float, float]], marker: str, label: str, **style: Any) -> None:
            within = [point for point in points if point[0] <= edge]
            axes.plot(*_columns(within), marker, label=label, **style)
            axes.plot(*_columns([(edge, decode) for load, decode in points if load > edge]), ">", **style)

        shown = [(min(load, edge), decode) for load, decode in model]
        axes.plot(*_columns(shown), color=_MODEL)
        draw(model, "o", "model", color=_MODEL, markersize=4)
        draw(measured, "o", "measured", color=_MEASURED, markersize=8, fillstyle="none")
        title = "best" if profile.advice == "stay" else "recommended"
        draw(recommended, "*", f"{title}: {mix_name(profile.recommendation)}", color=_RECOMMENDED, markersize=13)
        for tenths in (TENTHS, TENTHS // 2, 0):
            axes.annotate(_ratio(tenths), shown[tenths], xytext=(6, 6), textcoords="offset points")
        arrow = {"arrowstyle": "-|>", "mutation_scale": 14, "shrinkA": 0, "shrinkB": 3, "color": _MODEL}
        axes.annotate("", shown[0], xytext=shown[1], arrowprops=arrow)
        axes.set_title(f"{pair.encoded}:{pair.raw}", loc="left")
        figure.legend(loc="outside lower center", ncols=2)
        return _svg(figure, "balance")


def ratios(profile: DatasetProfile) -> str:
    """Throughput of the searched pair at all ratios: the stages' and the least of them, predicted, and as measured.

    `profile.search` must be there.
    """
    pair, predictions = _searched(profile), _predictions(profile)
    throughput = [each.throughput for each in predictions]
    measured = [(TENTHS - step.encoded, step.throughput) for step in pair.search.steps]
    places = [TENTHS - tenths for tenths in range(TENTHS + 1)]
    with _style():
        figure = Figure(figsize=(6.5, 4.0), layout="constrained")
        axes = figure.add_subplot(
            xlabel=f"{pair.encoded}:{pair.raw}",
            ylabel="images/s",
            ylim=(0, _HEADROOM * max(*throughput, *(speed for _, speed in measured))),
        )
        for stage, colour in _COLOURS.items():
            speeds = [each.throughput_of(stage) for each in predictions]
            finite = [(place, speed) for place, speed in zip(places, speeds, strict=True) if speed != float("inf")]
            if finite:
                axes.plot(*_columns(finite), color=colour, linewidth=1, linestyle=":", label=_NAMES[stage])
        axes.plot(places, throughput, color=_MODEL, linewidth=2, label="predicted")
        axes.plot(*_columns(measured), "o", color=_MEASURED, label="measured")
        axes.axvline(TENTHS - pair.program, color=_RECOMMENDED, linewidth=1, label="linear program")
        axes.set_xticks(places, [_ratio(TENTHS - place) for place in places])
        figure.legend(loc="outside lower center", ncols=3)
        return _svg(figure, "ratios")


def choices(profile: DatasetProfile) -> str:
    """Throughput and size of the mixes that nothing beats, and of each format by itself."""
    front, best = profile.choice.front, profile.recommendation

    def places(mixes: Sequence[Mix]) -> tuple[list[float], list[float]]:
        return [mix.bytes / 1e9 for mix in mixes], [mix.prediction.throughput for mix in mixes]

    with _style():
        figure = Figure(figsize=(6.5, 4.0), layout="constrained")
        axes = figure.add_subplot(xlabel="size of the dataset, GB", ylabel="images/s, predicted")
        axes.plot(*places(front), "o-", color=_MODEL, label="nothing beats these")
        singles = [mix for mix in profile.mixes if len(mix.weights) == 1]
        axes.plot(*places(singles), "o", color=_OTHER, markersize=9, fillstyle="none", label="one format")
        for mix in singles:
            place = (mix.bytes / 1e9, mix.prediction.throughput)
            axes.annotate(mix_name(mix), place, xytext=(6, 6), textcoords="offset points")
        title = "best" if profile.advice == "stay" else "recommended"
        axes.plot(*places([best]), "*", color=_RECOMMENDED, markersize=13, label=f"{title}: {mix_name(best)}")
        axes.set_xlim(0, 1.25 * axes.get_xlim()[1])
        axes.set_ylim(0, 1.1 * axes.get_ylim()[1])
        figure.legend(loc="outside lower center", ncols=3)
        return _svg(figure, "choices")


def formats(profile: DatasetProfile) -> str:
    """Predicted and measured throughput of each format, and of the written dataset, if there is one."""
    bars = {name: (found.predicted, found.both) for name, found in profile.formats.items()}
    if profile.written:
        bars["written dataset"] = (profile.written.predicted, profile.written.measured)
    places = range(len(bars))
    predicted, measured = zip(*bars.values(), strict=True)
    means = [each.mean for each in measured]
    errors = [[each.mean - each.low for each in measured], [each.high - each.mean for each in measured]]
    with _style():
        figure = Figure(figsize=(6.5, 1 + 0.5 * len(bars)), layout="constrained")
        axes = figure.add_subplot(xlabel="images/s")
        axes.barh([place - 0.2 for place in places], predicted, 0.4, color=_MODEL, label="predicted")
        axes.barh(
            [place + 0.2 for place in places], means, 0.4, color=_MEASURED, label="measured", xerr=errors, ecolor=_INK
        )
        axes.set_yticks(places, list(bars))
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        figure.legend(loc="outside upper right", ncols=2)
        return _svg(figure, "formats")


def batch_times(profile: DatasetProfile) -> str:
    """The time of every batch, a panel for each stage of the diagnosis, with median and 99th percentile."""
    stages = profile.diagnosis.stages
    with _style():
        figure = Figure(figsize=(6.5, 1.4 * len(stages) + 0.4), layout="constrained")
        for stage, axes in zip(stages, figure.subplots(len(stages), squeeze=False)[:, 0], strict=True):
            axes.plot([seconds * 1e3 for seconds in stage.batch_seconds], color=_MODEL, linewidth=1)
            axes.axhline(stage.batches.p50 * 1e3, color=_OTHER, linestyle="--", linewidth=1, label="p50")
            axes.axhline(stage.batches.p99 * 1e3, color=_MEASURED, linestyle=":", linewidth=1, label="p99")
            axes.set_ylim(0)
            axes.set_ylabel("ms")
            axes.set_title(stage.name, loc="left", fontsize=9)
        axes.set_xlabel("batch")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=2)
        return _svg(figure, "batches")


def _searched(profile: DatasetProfile) -> PairSearch:
    assert profile.search
    return profile.search


def _predictions(profile: DatasetProfile) -> list[Prediction]:
    """What the model says of the searched pair, for each number of tenths in the encoded format."""
    pair = _searched(profile)
    costs = {name: profile.formats[name].costs for name in (pair.encoded, pair.raw)}
    return [
        predict({pair.encoded: tenths / TENTHS, pair.raw: 1 - tenths / TENTHS}, costs, profile.conditions)
        for tenths in range(TENTHS + 1)
    ]


def _ratio(tenths: int) -> str:
    """As encoded:raw."""
    return f"{tenths}:{TENTHS - tenths}"


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _style() -> AbstractContextManager[None]:
    """The look of the figures, whatever the user has made Matplotlib's defaults."""
    return matplotlib.style.context(_STYLE, after_reset=True)


def _svg(figure: Figure, name: str) -> str:
    """The figure as an element, with identifiers that no other figure of the document has."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]  # without declarations, which have no place within HTML
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    return svg.replace(_INK, "currentColor")
