"""Images per second of a JPEG dataset of which a part is stored as BMP or L3: along all ratios, beside DALI and MinIO.

    python benchmarks/jpeg.py WORK [FOLDER ...]

makes JPEG files from the PNG photographs in the folders (those of scikit-image by default), converts them as the
profiler does, in WORK, which is to be on a disk, and writes results/jpeg.json with a plot beside it: figure 6 of the
Liquid paper in kind. Limiting the disk takes root. The protocol is described in docs/benchmarks.md.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import datasets
import matplotlib.pyplot as plt
from common import argument_parser, console, write_results
from reading.groups import disk_of
from reading.limited import run_limited
from reading.mixes import (
    CHOICE_TARGET,
    ERROR_TARGET,
    USUAL_ERROR,
    USUAL_TARGET,
    Figures,
    encode,
    figures_of,
    measure_formats,
    measure_mix,
    mixed,
    name_of,
    others_share,
    recommended,
    sweep,
)
from rich.progress import track
from rich.table import Table
from targets import Target

from dali_l3.profiling.encoding import EncodedSample
from dali_l3.profiling.isolation import call_isolated
from dali_l3.profiling.measuring import KEEPING_MEMORY, Setting, measure, measure_file_reader
from dali_l3.profiling.sampling import choose_sample, list_images

RATES = {"300 MB/s": 300_000_000, "800 MB/s": 800_000_000, "unthrottled": None}
NAMES = {"source": "JPEG", "bmp": "BMP", "l3-fast": "L3"}  # of formats, with what they are called here
PAIRS = {"JPEG:BMP": ("source", "bmp"), "JPEG:L3": ("source", "l3-fast")}
JPEG = "JPEG"  # the dataset as it is
FILES = {"500x375": 1600, "1920x1080": 160}
SAMPLE = {"500x375": 128, "1920x1080": 64}  # images that the profiler measures
SHARE_IN_MEMORY = 0.3  # of the bytes of the JPEG files, as in the paper
BATCH_SIZE = 16
THREADS = (2, 1)

TARGETED = "500x375, 2 threads"
GAIN_TARGETS = {"unthrottled": 2.5, "300 MB/s": 1.4}  # of the best JPEG:L3 over JPEG alone, both with Liquid, at least
LOSS_TARGET = 1.0  # of the recommended mix over JPEG alone, anywhere, at least


@dataclass(frozen=True)
class Files:
    """A dataset: the images in every format, and a sample of them."""

    paths: dict[str, list[str]]
    sample: EncodedSample
    cache_size: int


# ---- measuring -------------------------------------------------------------------------------------------------------


def make_files(folder: Path, photos: datasets.Images, size: str, count: int) -> Files:
    """JPEG files of this size in the folder, and the same images as BMP and L3, made of their pixels."""
    jpegs = datasets.write_jpegs(folder / "jpeg", photos, datasets.JPEG_SIZES[size], count)
    converted = folder / "converted"
    converted.mkdir()
    images = encode([str(path) for path in jpegs], NAMES, str(converted))
    os.sync()  # what is not on the disk yet would be written while it is measured
    numbers = {str(path): number for number, path in enumerate(jpegs)}
    chosen = [numbers[path] for path in choose_sample(list_images(str(folder / "jpeg")), SAMPLE[size])]
    files = {name: [encoded[number] for number in chosen] for name, encoded in images.files.items()}
    sample = EncodedSample(files, [images.raw_sizes[number] for number in chosen], [])
    cache_size = int(SHARE_IN_MEMORY * sum(path.stat().st_size for path in jpegs))
    return Files({name: images.paths(name) for name in NAMES}, sample, cache_size)


def measure_condition(files: Files, threads: int, seconds: float) -> Figures:
    """All mixes, what the profiler recommends, and other readers. Runs with a limited disk.

    DALI's reader has the files in the page cache. MinIO reads the JPEG files, and the best mix of each pair.
    """
    setting = Setting(BATCH_SIZE, threads, seconds=seconds)
    images = len(files.paths["source"])
    formats, conditions = measure_formats(NAMES, files.sample, images, files.cache_size, setting)
    chosen = {label: recommended(formats, names, conditions) for label, names in {**PAIRS, "all": tuple(NAMES)}.items()}
    mixes: dict[str, Figures] = {}
    for weights in (*(mix for pair in PAIRS.values() for mix in sweep(*pair)), *chosen.values()):
        name = name_of(weights, NAMES)
        if name not in mixes:
            mixes[name] = measure_mix(weights, files.paths, formats, conditions, setting)
    readers = {"DALI: JPEG": call_isolated(measure_file_reader, files.paths["source"], setting)}
    for weights in ({"source": 1}, *(best_of(pair, mixes)["weights"] for pair in PAIRS.values())):
        readers[f"MinIO: {name_of(weights, NAMES)}"] = call_isolated(
            measure, mixed(files.paths, weights), setting, cache_size=files.cache_size, policy="minio"
        )
    return {
        "mixes": mixes,
        "recommended": {label: name_of(weights, NAMES) for label, weights in chosen.items()},
        "readers": {name: measured.throughput.mean for name, measured in readers.items()},
        "formats": figures_of(formats),
    }


def best_of(pair: tuple[str, str], mixes: Mapping[str, Figures]) -> Figures:
    """The mix of the sweep over a pair of formats that was measured to be the fastest."""
    return max((mixes[name_of(weights, NAMES)] for weights in sweep(*pair)), key=lambda mix: mix["measured"])


def median_of(rounds: list[Figures]) -> Figures:
    """The figures of a condition from those of its rounds: medians, of ratios too, which are those of a round."""
    mixes = {}
    for name in dict.fromkeys(name for each in rounds for name in each["mixes"]):
        found = [(each["mixes"][name], each) for each in rounds if name in each["mixes"]]
        mixes[name] = found[0][0] | {
            figure: statistics.median(mix[figure] for mix, _ in found)
            for figure in ("predicted", "measured", "error", "cpu_ms_per_image", "cpu_share_of_other_processes")
        }
        mixes[name]["times_jpeg"] = statistics.median(
            mix["measured"] / each["mixes"][JPEG]["measured"] for mix, each in found
        )
        mixes[name]["times_dali"] = statistics.median(
            mix["measured"] / each["readers"]["DALI: JPEG"] for mix, each in found
        )
        mixes[name]["rounds"] = [{figure: mix[figure] for figure in ("predicted", "measured")} for mix, _ in found]
    labels = rounds[0]["recommended"]
    return {
        "mixes": mixes,
        "best": {label: name_of(best_of(pair, mixes)["weights"], NAMES) for label, pair in PAIRS.items()},
        "recommended": {label: list(dict.fromkeys(each["recommended"][label] for each in rounds)) for label in labels},
        "recommended_times_jpeg": statistics.median(
            each["mixes"][each["recommended"]["all"]]["measured"] / each["mixes"][JPEG]["measured"] for each in rounds
        ),
        "recommended_of_best": statistics.median(
            each["mixes"][each["recommended"]["all"]]["measured"]
            / max(mix["measured"] for mix in each["mixes"].values())
            for each in rounds
        ),
        "readers": {
            name: statistics.median(each["readers"][name] for each in rounds if name in each["readers"])
            for name in dict.fromkeys(name for each in rounds for name in each["readers"])
        },
        "formats": [each["formats"] for each in rounds],
    }


# ---- reporting -------------------------------------------------------------------------------------------------------


def targets(conditions: Mapping[str, Mapping[str, Figures]]) -> Iterator[Target]:
    """conditions: by size and threads, by speed of the disk"""
    for rate, figures in conditions.get(TARGETED, {}).items():
        if rate in GAIN_TARGETS:
            best = figures["best"]["JPEG:L3"]
            gain = figures["mixes"][best]["times_jpeg"]
            yield Target(f"{TARGETED}, {rate}: images/s, {best} / JPEG", gain, GAIN_TARGETS[rate])
    all_figures = [figures for rates in conditions.values() for figures in rates.values()]
    least = min(figures["recommended_times_jpeg"] for figures in all_figures)
    yield Target("recommended mix / JPEG, lowest", least, LOSS_TARGET)
    yield Target(
        "recommended mix / best measured, lowest",
        min(figures["recommended_of_best"] for figures in all_figures),
        CHOICE_TARGET,
    )
    errors = [abs(mix["error"]) for figures in all_figures for mix in figures["mixes"].values()]
    usual = statistics.fmean(error <= USUAL_ERROR for error in errors)
    yield Target(f"part of {len(errors)} predictions within {USUAL_ERROR:.0%}", usual, USUAL_TARGET)
    yield Target(f"error of {len(errors)} predictions, largest", max(errors), ERROR_TARGET, at_most=True)


def show(condition: str, figures: Figures) -> None:
    table = Table("", "predicted", "measured", "error", "x JPEG", "x DALI", title=condition)
    for name, mix in figures["mixes"].items():
        table.add_row(
            name,
            f"{mix['predicted']:.0f}",
            f"{mix['measured']:.0f}",
            f"{mix['error']:+.0%}",
            f"{mix['times_jpeg']:.2f}",
            f"{mix['times_dali']:.2f}",
        )
    console.print(table)
    console.print(f"Recommended: {figures['recommended']}. Other readers: {figures['readers']}")


def plot(conditions: Mapping[str, Mapping[str, Figures]], path: Path) -> None:
    """Images/s of the mixes relative to DALI's reader on the JPEG files: a panel for each condition."""
    plt.rcParams["svg.hashsalt"] = path.name  # the same figures make the same file
    columns = max(map(len, conditions.values()))
    shape = {"figsize": (3.2 * columns, 2.4 * len(conditions)), "sharex": True, "squeeze": False}
    figure, panels = plt.subplots(len(conditions), columns, layout="constrained", **shape)
    for row, (condition, rates) in zip(panels, conditions.items(), strict=True):
        for axes, (rate, figures) in zip(row, rates.items(), strict=False):
            dali = figures["readers"]["DALI: JPEG"]
            for (label, pair), colour in zip(PAIRS.items(), ("tab:gray", "tab:red"), strict=True):
                mixes = [figures["mixes"][name_of(weights, NAMES)] for weights in sweep(*pair)]
                axes.plot([mix["times_dali"] for mix in mixes], "o-", ms=3, label=label, color=colour)
                axes.plot([mix["predicted"] / dali for mix in mixes], ":", color=colour)
            for name, speed in figures["readers"].items():
                reader, _, mix = name.partition(": ")
                if reader == "MinIO":
                    weights = figures["mixes"][mix]["weights"]
                    tenths = 10 * weights.get("source", 0) / sum(weights.values())
                    axes.plot(tenths, speed / dali, "kx", label="MinIO" if mix == JPEG else None)
            axes.axhline(1, color="black", lw=0.8)
            axes.set(title=f"{condition}, {rate}", ylim=(0, None), xticks=range(11))
            axes.title.set_fontsize("small")
    for axes in panels[-1]:
        axes.set_xlabel("tenths of JPEG")
    for axes in panels[:, 0]:
        axes.set_ylabel("times DALI")
    panels[0, 0].legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argument_parser("Compare mixes of JPEG with BMP and L3.")
    parser.add_argument("work", type=Path, help="folder for the files, which are removed, on the disk to measure")
    parser.add_argument("folders", type=Path, nargs="*", help="folders of PNG photographs (default: scikit-image's)")
    parser.add_argument("--sizes", nargs="+", choices=FILES, default=list(FILES), help="sizes of the images")
    parser.add_argument("--rates", nargs="+", choices=RATES, default=list(RATES), help="speed limits of the disk")
    parser.add_argument("--threads", nargs="+", type=int, default=list(THREADS), help="threads of the pipelines")
    parser.add_argument("--rounds", type=int, default=3, help="times that all is done")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a measurement, after warming up, at least")
    parser.add_argument("--keep", type=Path, help="results of an earlier run, whose other conditions are kept")
    parser.add_argument("--part", type=float, default=1.0, help="of the files: less to try it out")
    arguments = parser.parse_args()
    photos = datasets.load_together(arguments.folders)
    arguments.work.mkdir(parents=True, exist_ok=True)
    disk = disk_of(arguments.work) if any(RATES[rate] for rate in arguments.rates) else ""
    with tempfile.TemporaryDirectory(dir=arguments.work.resolve()) as folder:
        counts = {size: round(arguments.part * FILES[size]) for size in arguments.sizes}
        files = {size: make_files(Path(folder, size), photos, size, count) for size, count in counts.items()}
        cells = list(itertools.product(arguments.sizes, arguments.threads, arguments.rates))
        rounds: dict[tuple[str, int, str], list[Figures]] = {cell: [] for cell in cells}
        for cell in track(arguments.rounds * cells, "Measures", console=console):
            size, threads, rate = cell
            console.print(f"{size}, {threads} threads, {rate}")
            found = run_limited(disk, RATES[rate], measure_condition, files[size], threads, arguments.seconds)
            rounds[cell].append(found)
        sizes = {
            size: {name: statistics.fmean(map(os.path.getsize, paths)) for name, paths in made.paths.items()}
            for size, made in files.items()
        }
    earlier = json.loads(arguments.keep.read_text()) if arguments.keep else {}
    conditions: dict[str, dict[str, Figures]] = earlier.get("conditions", {})
    for (size, threads, rate), found in rounds.items():
        condition = f"{size}, {threads} thread{'s' if threads > 1 else ''}"
        conditions.setdefault(condition, {})[rate] = median_of(found) | {"rounds": len(found)}
        show(f"{condition}, {rate}", conditions[condition][rate])
    reached = list(targets(conditions))
    results = {
        "settings": {
            "batch_size": BATCH_SIZE,
            "files": earlier.get("settings", {}).get("files", {}) | counts,
            "share_in_memory": SHARE_IN_MEMORY,
            "quality": datasets.JPEG_QUALITY,
            "seconds": arguments.seconds,
            "environment": KEEPING_MEMORY,
        },
        "cpu_share_of_other_processes": others_share(each for found in rounds.values() for each in found),
        "image_bytes": earlier.get("image_bytes", {}) | sizes,
        "conditions": conditions,
    }
    path = write_results("jpeg", results, reached, arguments.out)
    plot(conditions, path.with_suffix(".svg"))


if __name__ == "__main__":
    main()
