"""The profiler's predictions beside what is reached: mixes of formats on disks of several speeds.

    python benchmarks/profiler.py WORK [FOLDER ...]

measures a sample of a dataset in several formats, as the profiler does, for each speed of the disk, then the mixes that
the profiler's model predicts from that, and writes results/profiler.json with plots beside it. Files come from
reading/files.py, as for liquid.py. Limiting the disk takes root. The protocol is described in docs/benchmarks.md.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import datasets
import matplotlib.pyplot as plt
from common import argument_parser, console, write_results
from reading.groups import disk_of
from reading.limited import run_limited
from reading.mixes import CHOICE_TARGET, ERROR_TARGET, USUAL_ERROR, USUAL_TARGET, Figures, Weights, figures_of
from rich.progress import track
from rich.table import Table
from targets import Target

from dali_l3.profiling import encoding, profiler, sampling
from dali_l3.profiling.measuring import KEEPING_MEMORY, Setting
from dali_l3.profiling.report import figures as report_figures
from reading import files as dataset_files
from reading import mixes as reading_mixes

RATES = {"150 MB/s": 150_000_000, "300 MB/s": 300_000_000, "800 MB/s": 800_000_000, "unthrottled": None}
SEARCHED = "300 MB/s"  # where a mix of PNG and BMP is best
FORMATS = {"png": "PNG", "bmp": "BMP", "l3-fast": "L3 fast", "l3-raw": "L3 raw"}  # with what they are called here
FILES = 128
SHARE_IN_MEMORY = 0.3  # of the bytes of the PNG files
BATCH_SIZE, THREADS, SAMPLE = 16, 2, 64
SWEEP = reading_mixes.sweep("png", "bmp")
OTHERS: list[Weights] = [{"l3-fast": 10}, {"l3-fast": 7, "l3-raw": 3}, {"l3-fast": 5, "png": 5}, {"l3-raw": 10}]


def search_as_the_paper(folder: str, cache_size: int, work: str, setting: Setting) -> Figures:
    """The paper's search and its figure 3 for PNG and BMP, in an environment as it is. Runs with a limited disk."""
    found = profiler.profile(folder, profiler.Options(setting, cache_size, ("png", "bmp"), SAMPLE, work))
    steps = [
        {"ratio": step.ratio, "load": step.load, "decode": step.decode, "throughput": step.throughput}
        for step in found.search.search.steps
    ]
    return {
        "best": found.search.search.best.ratio,
        "program": found.search.program,
        "agrees": found.search.agrees,
        "steps": steps,
        "figure": report_figures.balance(found),
    }


def measure_rate(
    sample: encoding.EncodedSample, paths: dict[str, list[str]], cache_size: int, setting: Setting
) -> Figures:
    """Measures a sample in each format, and mixes of the images that it stands for. Runs with a limited disk."""
    formats, conditions = reading_mixes.measure_formats(FORMATS, sample, FILES, cache_size, setting)
    recommended = [reading_mixes.recommended(formats, names, conditions) for names in (("png", "bmp"), FORMATS)]
    mixes = {}
    for weights in [*SWEEP, *OTHERS, *recommended]:
        if name_of(weights) not in mixes:
            mixes[name_of(weights)] = reading_mixes.measure_mix(weights, paths, formats, conditions, setting)
    fastest_of_sweep = max(mixes[name_of(weights)]["measured"] for weights in SWEEP)
    fastest = max(mix["measured"] for mix in mixes.values())
    return {
        "recommended_png_bmp": name_of(recommended[0]),
        "recommended": name_of(recommended[1]),
        "png_bmp_of_best": mixes[name_of(recommended[0])]["measured"] / fastest_of_sweep,
        "recommended_of_best": mixes[name_of(recommended[1])]["measured"] / fastest,
        "formats": figures_of(formats),
        "mixes": mixes,
    }


def median_of(rounds: list[Figures]) -> Figures:
    """The figures of a speed of the disk from those of its rounds.

    Medians of predictions, measurements and errors, the latter of each round's own. Not all mixes are in all rounds,
    since recommendations differ; what limits a mix is that of the first.
    """
    names = list(dict.fromkeys(name for each in rounds for name in each["mixes"]))
    mixes = {}
    for name in names:
        found = [each["mixes"][name] for each in rounds if name in each["mixes"]]
        mixes[name] = found[0] | {
            figure: statistics.median(mix[figure] for mix in found)
            for figure in ("predicted", "measured", "error", "cpu_share_of_other_processes")
        }
        mixes[name]["rounds"] = [{figure: mix[figure] for figure in ("predicted", "measured")} for mix in found]
    chosen = ("recommended_png_bmp", "recommended")
    reached = ("png_bmp_of_best", "recommended_of_best")
    return (
        {name: list(dict.fromkeys(each[name] for each in rounds)) for name in chosen}
        | {name: statistics.median(each[name] for each in rounds) for name in reached}
        | {"formats": [each["formats"] for each in rounds], "mixes": mixes}
    )


def name_of(weights: Weights) -> str:
    """As PNG:BMP 3:7."""
    return reading_mixes.name_of(weights, FORMATS)


def targets(rates: dict[str, Figures]) -> Iterator[Target]:
    errors = [abs(mix["error"]) for figures in rates.values() for mix in figures["mixes"].values()]
    usual = statistics.fmean(error <= USUAL_ERROR for error in errors)
    yield Target(
        f"part of all {len(errors)} predictions with an error of at most {USUAL_ERROR:.0%}", usual, USUAL_TARGET
    )
    for rate, figures in rates.items():
        mixes = figures["mixes"]
        error = max(abs(mix["error"]) for mix in mixes.values())
        yield Target(f"{rate}: error of {len(mixes)} predictions, largest", error, ERROR_TARGET, at_most=True)
        yield Target(f"{rate}: recommended PNG:BMP / best ratio", figures["png_bmp_of_best"], CHOICE_TARGET)
        yield Target(f"{rate}: recommended mix / best measured", figures["recommended_of_best"], CHOICE_TARGET)


def show(rate: str, figures: Figures) -> None:
    table = Table("", "predicted", "limit", "measured", "error", title=rate)
    for name, mix in figures["mixes"].items():
        table.add_row(name, f"{mix['predicted']:.1f}", mix["limit"], f"{mix['measured']:.1f}", f"{mix['error']:+.0%}")
    console.print(table)


def plot(rates: dict[str, Figures], path: Path) -> None:
    """Predicted and measured images/s along the ratios of PNG and BMP, a panel for each speed of the disk."""
    plt.rcParams["svg.hashsalt"] = path.name  # the same figures make the same file
    figure, panels = plt.subplots(2, 2, figsize=(8, 6), sharex=True, layout="constrained")
    for axes, (rate, figures) in zip(panels.flat, rates.items(), strict=False):
        mixes = [figures["mixes"][name_of(weights)] for weights in SWEEP]
        tenths = range(len(SWEEP))
        axes.plot(tenths, [mix["predicted"] for mix in mixes], label="predicted", color="tab:gray")
        axes.plot(tenths, [mix["measured"] for mix in mixes], "o", label="measured", color="tab:red")
        axes.set(title=f"Disk: {rate}", ylim=(0, None), xticks=tenths)
    for axes in panels[:, 0]:
        axes.set_ylabel("images/s")
    for axes in panels[1]:
        axes.set_xlabel("tenths of PNG, the others BMP")
    panels[0, 0].legend()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argument_parser("Compare the profiler's predictions with measurements.")
    parser.add_argument("work", type=Path, help="folder for the files, which are kept, on the disk to measure")
    parser.add_argument("folders", type=Path, nargs="*", help="folders of PNG photographs (default: scikit-image's)")
    parser.add_argument("--rates", nargs="+", choices=RATES, default=list(RATES), help="speed limits of the disk")
    parser.add_argument("--rounds", type=int, default=3, help="times that all is done")
    parser.add_argument("--seconds", type=float, default=4.0, help="of a measurement, after warming up, at least")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    setting = Setting(BATCH_SIZE, THREADS, seconds=arguments.seconds)
    photos = datasets.load_together(arguments.folders)
    made = dataset_files.make(work, photos, FILES)["PNG"]
    cache_size = int(SHARE_IN_MEMORY * sum(path.stat().st_size for path in made))
    disk = disk_of(work)
    rates = {}
    with contextlib.ExitStack() as stack:
        folder, whole, part = (stack.enter_context(tempfile.TemporaryDirectory(dir=work)) for _ in range(3))
        for path in made:
            os.symlink(path, os.path.join(folder, path.name))
        converted = reading_mixes.encode([str(path) for path in made], FORMATS, whole)
        paths = {name: converted.paths(name) for name in FORMATS}
        sample = reading_mixes.encode(sampling.choose_sample(sampling.list_images(folder), SAMPLE), FORMATS, part)
        rounds: dict[str, list[Figures]] = {rate: [] for rate in arguments.rates}
        for rate in track(arguments.rounds * arguments.rates, "Measures", console=console):
            found = run_limited(disk, RATES[rate], measure_rate, sample, paths, cache_size, setting)
            show(rate, found)
            console.print(f"Recommended: {found['recommended']}; of PNG and BMP {found['recommended_png_bmp']}")
            rounds[rate].append(found)
        for rate, found in rounds.items():
            rates[rate] = median_of(found)
            show(f"{rate}, medians", rates[rate])
        search = run_limited(disk, RATES[SEARCHED], search_as_the_paper, folder, cache_size, str(work), setting)
        console.print(f"PNG and BMP at {SEARCHED}, searched as in the paper: {search['best']}")
    reached = list(targets(rates))
    results = {
        "settings": {
            "batch_size": BATCH_SIZE,
            "threads": THREADS,
            "files": FILES,
            "sample": SAMPLE,
            "share_in_memory": SHARE_IN_MEMORY,
            "rounds": arguments.rounds,
            "seconds": arguments.seconds,
            "environment": KEEPING_MEMORY,
        },
        "cpu_share_of_other_processes": reading_mixes.others_share(rates.values()),
        "rates": rates,
        "search": {"rate": SEARCHED} | {name: value for name, value in search.items() if name != "figure"},
    }
    path = write_results("profiler", results, reached, arguments.out)
    plot(rates, path.with_suffix(".svg"))
    path.with_name("profiler_balance.svg").write_text(search["figure"], encoding="utf-8")


if __name__ == "__main__":
    main()
