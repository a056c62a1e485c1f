"""Keeps the tables in the documentation equal to the results.

    python benchmarks/tables.py [--check] FILE ...

replaces what stands in the Markdown files between `<!-- table: NAME -->` and `<!-- end -->` by the table of that name,
made from results/. With --check nothing is written, and a difference is an error. Needs the standard library alone.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from gpu import model

RESULTS = Path(__file__).parent / "results"
MARKED = re.compile(r"(?<=<!-- table: )([\w-]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
NAMES = (
    "codec",
    "dali_decode",
    "dali_small",
    "liquid",
    "jpeg",
    "profiler",
    "steadiness",
    "reader_check",
    "reader_arguments",
    "python_api",
    "tar_shards",
    "scale",
    "buckets",
    "cluster",
)  # of the files of results
Row = list[str]


def measured() -> Iterator[str]:
    """The files of results that are there."""
    return (name for name in NAMES if (RESULTS / f"{name}.json").exists())


def load(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def markdown(header: Row, rows: Iterable[Row]) -> str:
    """A table whose first column is text and whose other columns are numbers."""
    lines = [header, ["---"] + ["--:"] * (len(header) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def best_backend(codec: dict[str, Any]) -> str:
    return codec["machine"]["l3_backend"]


def label(system: str, backend: str) -> str | None:
    """The name of a system in tables that show L3 by its best back end alone; None for what they leave out."""
    if not system.startswith("L3"):
        return system
    labels = {f"L3 fast e2 {backend}": "**L3 fast**", f"L3 raw {backend}": "L3 raw", f"L3 paper {backend}": "L3 paper"}
    return labels.get(system)


def codec_by_group(key: str, digits: int) -> str:
    """A figure of every format, by group of images."""
    codec = load("codec")
    groups = codec["groups"]
    names = {system: label(system, best_backend(codec)) for system in next(iter(groups.values()))["systems"]}
    rows = (
        [name, *(f"{group['systems'][system][key]:.{digits}f}" for group in groups.values())]
        for system, name in names.items()
        if name
    )
    return markdown(["", *groups], rows)


def codec_l3() -> str:
    """The back ends and efforts of L3, on FHD photographs."""
    systems = load("codec")["groups"]["fhd"]["systems"]
    rows = (
        [
            name,
            f"{figures['of_png']:.3f}",
            f"{figures['decode_gb_per_s']:.2f}",
            f"{figures['decode_times_libspng']:.1f}",
            f"{figures['encode_gb_per_s']:.3f}",
        ]
        for name, figures in systems.items()
        if name.startswith("L3")
    )
    return markdown(["", "bytes / PNG", "decode GB/s", "times libspng", "encode GB/s"], rows)


def sets() -> str:
    def rows() -> Iterator[Row]:
        for name, figures in load("codec")["sets"].items():
            yield [f"**{name}**", *cells(figures)]
            for kind, kind_figures in figures["kinds"].items():
                yield [f"`{kind}`", *cells(kind_figures)]

    def cells(figures: dict[str, Any]) -> Row:
        return [f"{figures['png_bytes'] / figures['raw_bytes']:.3f}", f"{figures['of_png']:.3f}"]

    return markdown(["", "PNG / raw", "L3 / PNG"], rows())


def set_speeds() -> str:
    """The speed of L3 on 16-bit images, label maps and masks, by back end."""
    rows = [
        [
            f"`{kind}`, {backend}",
            f"{speed['decode_gb_per_s']:.2f}",
            f"{speed['decode_times_libpng']:.1f}",
            f"{speed['decode_nbytes_of_photos']:.2f}",
            f"{speed['decode_size_of_photos']:.2f}",
            f"{speed['encode_gb_per_s']:.2f}",
        ]
        for figures in load("codec")["sets"].values()
        for kind, kind_figures in figures["kinds"].items()
        for backend, speed in kind_figures.get("systems", {}).items()
    ]
    if not rows:
        return "*Not measured yet: codec.json is older than these figures.*\n"
    header = ["decode GB/s", "times libpng", "bytes/s / photographs", "samples/s / photographs", "encode GB/s"]
    return markdown(["", *header], rows)


def dali_decode() -> str:
    def rows() -> Iterator[Row]:
        for size, systems in load("dali_decode")["sizes"].items():
            for name, figures in systems.items():
                yield [
                    f"{size}: {name}",
                    f"{figures['bytes_per_image'] / 1e6:.2f}",
                    f"{figures['images_per_s']:.0f}",
                    f"{figures['times_png']:.1f}",
                    f"{figures['cpu_ms_per_image']:.2f}",
                ]

    return markdown(["", "MB / file", "images/s", "times PNG", "CPU ms / image"], rows())


def dali_small() -> str:
    """Small images against PNG and JPEG."""

    def rows() -> Iterator[Row]:
        for size, systems in load("dali_small")["sizes"].items():
            for name, figures in systems.items():
                yield [
                    f"{size}: {name}",
                    f"{figures['bytes_per_image'] / 1e3:.0f}",
                    f"{figures['images_per_s']:.0f}",
                    f"{figures['cpu_ms_per_image']:.3f}",
                    *(
                        f"{figures[key][kind]:.1f}"
                        for key in ("times_jpeg", "times_png")
                        for kind in ("images_per_s", "cpu")
                    ),
                ]

    header = ["", "kB / file", "images/s", "CPU ms / image", "times JPEG", "by CPU time", "times PNG", "by CPU time"]
    return markdown(header, rows())


def dali_pieces() -> str:
    """The same pixels in small images and with masks: CPU time of a photograph."""

    def rows() -> Iterator[Row]:
        results = load("dali_small")
        for part, ratio in (("pieces", "time_of_whole"), ("masks", "time_of_alone")):
            for name, systems in results[part].items():
                for kind, figures in systems.items():
                    times = figures.get(ratio)
                    yield [
                        f"{name}: {kind}",
                        f"{figures['cpu_ms_per_image']:.2f}",
                        f"{times['cpu']:.2f}" if times else "",
                        f"{times['images_per_s']:.2f}" if times else "",
                    ]

    return markdown(["", "CPU ms / photograph", "times the first, by CPU time", "by the clock"], rows())


def overview() -> str:
    """The formats on FHD photographs, in the order of their speed."""
    systems = load("dali_decode")["sizes"]["FHD"]
    rows = (
        [
            name,
            f"{figures['bytes_per_image'] / 1e6:.2f}",
            f"{figures['images_per_s']:.0f}",
            f"{figures['times_png']:.1f}",
        ]
        for name, figures in sorted(systems.items(), key=lambda item: item[1]["images_per_s"])
    )
    return markdown(["", "MB / file", "images/s", "times PNG"], rows)


def liquid() -> str:
    def rows() -> Iterator[Row]:
        for rate, systems in load("liquid")["rates"].items():
            yield [f"**{rate}**", *[""] * 7]
            for name, figures in systems.items():
                yield [
                    name,
                    f"{figures['images_per_s']:.0f}",
                    f"{figures['times_dali']:.2f}",
                    f"{figures['of_possible']:.2f}" if "of_possible" in figures else "",
                    f"{figures['cpu_ms_per_image']:.1f}",
                    f"{figures['disk_share']:.3f}",
                    f"{figures['batch_ms_p50']:.0f} / {figures['batch_ms_p95']:.0f}",
                    f"{figures['batch_variation']:.2f}",
                ]

    header = [
        "images/s",
        "times DALI",
        "of possible",
        "CPU ms / image",
        "from disk",
        "batch ms, p50 / p95",
        "variation",
    ]
    return markdown(["", *header], rows())


def liquid_datasets() -> str:
    rows = (
        [name, f"{figures['bytes_per_image'] / 1e6:.2f}", f"{figures['decode_images_per_s'] or math.nan:.0f}"]
        for name, figures in load("liquid")["datasets"].items()
    )
    return markdown(["", "MB / file", "decoded images/s"], rows)


def liquid_readers() -> str:
    readers = load("liquid")["reader_alone"]
    rows = (
        [name, *(f"{speeds[name]['images_per_s']:.0f}" for speeds in readers.values())]
        for name in next(iter(readers.values()))
    )
    return markdown(["files/s", *readers], rows)


def jpeg() -> str:
    """The best mixes of each pair, and the one that the profiler recommends, beside other readers."""

    def cell(figures: dict[str, Any], mix: str) -> str:
        return f"{mix.rpartition(' ')[2]}: {figures['mixes'][mix]['times_dali']:.2f}"

    def rows() -> Iterator[Row]:
        for condition, rates in load("jpeg")["conditions"].items():
            for rate, figures in rates.items():
                dali = figures["readers"]["DALI: JPEG"]
                bmp, l3 = (figures["best"][pair] for pair in ("JPEG:BMP", "JPEG:L3"))
                minio = [figures["readers"].get(f"MinIO: {mix}") for mix in ("JPEG", bmp, l3)]
                yield [
                    f"{condition}, {rate}",
                    f"{dali:.0f}",
                    f"{figures['mixes']['JPEG']['times_dali']:.2f}",
                    cell(figures, bmp),
                    cell(figures, l3),
                    ", ".join(cell(figures, mix) for mix in figures["recommended"]["all"]),
                    " / ".join(f"{speed / dali:.2f}" if speed else "" for speed in minio),
                ]

    header = ["DALI, images/s", "JPEG", "best JPEG:BMP", "best JPEG:L3", "recommended", "MinIO: JPEG / the two best"]
    return markdown(["times DALI", *header], rows())


def jpeg_sizes() -> str:
    """What a file takes, and what decoding it costs a CPU."""
    results = load("jpeg")
    rows = []
    for size, sizes in results["image_bytes"].items():
        conditions = [rates for condition, rates in results["conditions"].items() if condition.startswith(size)]
        costs = [formats for rates in conditions for figures in rates.values() for formats in figures["formats"]]
        for name, label in (("source", "JPEG"), ("bmp", "BMP"), ("l3-fast", "L3 fast")):
            cpu_ms = statistics.median(formats[name]["decode_cpu_ms"] for formats in costs)
            rows.append([f"{size}: {label}", f"{sizes[name] / 1e3:.0f}", f"{cpu_ms:.2f}"])
    return markdown(["", "KB / file", "CPU ms / image, decoding"], rows)


def jpeg_costs() -> str:
    """What an image costs along the ratios, whatever else the machine does: bytes from the disk and time of a CPU."""
    mixes = load("jpeg")["conditions"]["500x375, 2 threads"]["unthrottled"]["mixes"]
    sizes = load("jpeg")["image_bytes"]["500x375"]

    def cells(other: str, label: str, tenths: int) -> Row:
        name = {0: label, 10: "JPEG"}.get(tenths, f"JPEG:{label} {tenths}:{10 - tenths}")
        size = (tenths * sizes["source"] + (10 - tenths) * sizes[other]) / 10
        mix = mixes[name]
        return [f"{size * (1 - mix['hit_ratio']) / 1e3:.0f}", f"{mix['cpu_ms_per_image']:.2f}"]

    rows = (
        [f"{tenths}:{10 - tenths}", *cells("bmp", "BMP", tenths), *cells("l3-fast", "L3", tenths)]
        for tenths in range(10, -1, -1)
    )
    header = [f"JPEG:{label}: {what}" for label in ("BMP", "L3") for what in ("KB from disk", "CPU ms")]
    return markdown(["", *header], rows)


def steadiness() -> str:
    rows = (
        [
            f"{reader}: {dataset}",
            f"{figures['images_per_s']:.0f}",
            f"{figures['batch_ms_p50']:.0f} / {figures['batch_ms_p95']:.0f}",
            f"{figures['batch_variation']:.3f}",
            f"{figures['bytes_variation']:.3f}" if figures["bytes_variation"] else "",
        ]
        for dataset, readers in load("steadiness")["datasets"].items()
        for reader, figures in readers.items()
    )
    return markdown(["", "images/s", "batch ms, p50 / p95", "variation", "of bytes from disk"], rows)


def profiler() -> str:
    rates = load("profiler")["rates"]
    names = dict.fromkeys(name for figures in rates.values() for name in figures["mixes"])

    def cell(mix: dict[str, Any] | None) -> str:
        if mix is None:
            return ""
        return f"{mix['predicted']:.0f} / {mix['measured']:.0f} ({mix['error']:+.0%})"

    rows = [[name, *(cell(figures["mixes"].get(name)) for figures in rates.values())] for name in names]
    for label, key in (("recommended", "recommended"), ("of PNG and BMP", "recommended_png_bmp")):
        rows.append([f"**{label}**", *(", ".join(figures[key]) for figures in rates.values())])
    return markdown(["predicted / measured", *rates], rows)


def targets() -> str:
    rows = (
        [
            target["name"],
            f"{target['measured']:.3g}",
            f"{'≤' if target['at_most'] else '≥'} {target['limit']:g}",
            "met" if target["met"] else "**missed**",
        ]
        for name in measured()
        for target in load(name)["targets"]
    )
    return markdown(["", "measured", "wanted", ""], rows)


def machines() -> str:
    """A line for each file of results: when and where they were taken."""

    def listed(value: Any) -> str:
        return " ".join(f"{key}={each}" for key, each in value.items()) if isinstance(value, dict) else str(value)

    def line(name: str) -> str:
        results = load(name)
        machine, others = results["machine"], results.get("cpu_share_of_other_processes")
        packages, libraries, settings = (
            ", ".join(f"{key} {listed(value)}" for key, value in part.items())
            for part in (machine["packages"], machine["imagecodecs"], results["settings"])
        )
        return (
            f"- `{name}.json`, {results['date'][:10]}: {machine['cpu']}, {machine['cpus']} CPUs, {machine['os']}, "
            f"Python {machine['python']}, {packages}; Pillow's zlib {machine['pillow_zlib']}; "
            f"in imagecodecs: {libraries}. Settings: {settings}."
            + (f" Meanwhile other processes took {others:.0%} of the CPUs." if others is not None else "")
            + "\n"
        )

    return "".join(line(name) for name in measured())


def reader_check() -> str:
    """Images per second and CPU time per image of each check, for each format and size."""
    checks = ("none", "headers", "content")
    rows = [
        [
            f"{suffix}, {size}, {figures['bytes_per_image'] / 1e6:.2f} MB, {name}",
            *(f"{figures[name][check]['images_per_s']:.0f}" for check in checks),
            *(f"{figures[name][check]['cpu_ms_per_image']:.2f}" for check in checks),
        ]
        for size, formats in load("reader_check")["sizes"].items()
        for suffix, figures in formats.items()
        for name in figures
        if name != "bytes_per_image"
    ]
    return markdown(["", *(f"{check}: images/s" for check in checks), *(f"{check}: CPU ms" for check in checks)], rows)


def python_threads() -> str:
    """What a second thread gains in decode_batch, and what a second process does."""
    rows = (
        [name, *(f"{speed:.0f}" for speed in figures["images_per_s"].values())]
        + [f"{gain:.2f}" for gain in figures["gain"].values()]
        for name, figures in load("python_api")["decode_batch"].items()
    )
    header = ["images/s", "1 thread", "2 threads", "2 processes", "2 threads / 1", "2 processes / 1 thread"]
    return markdown(header, rows)


def tar_shards() -> str:
    rows = (
        [f"{title}: {name}", f"{figures['samples_per_s']:.0f}", f"{figures['cpu_us_per_sample']:.1f}"]
        for title, systems in load("tar_shards")["systems"].items()
        for name, figures in systems.items()
    )
    return markdown(["", "samples/s", "CPU µs / sample"], rows)


def scale_catalogue() -> str:
    rows = (
        [name, f"{figures['seconds']:.2f}", f"{figures['bytes_together'] / (1 << 20):.0f}"]
        for name, figures in load("scale")["catalogue"].items()
    )
    return markdown(["", "ready, s", "MiB of all processes"], rows)


def scale_folder() -> str:
    rows = (
        [name, f"{figures['seconds']:.2f}", f"{figures['bytes_per_sample']:.0f}"]
        for name, figures in load("scale")["folder"].items()
    )
    return markdown(["", "ready, s", "bytes / sample, with its name"], rows)


def buckets() -> str:
    rows = (
        [f"{threads}: {name}", f"{figures['objects_per_s']:.0f}", f"{figures['megabytes_per_s']:.0f}"]
        + [f"{figures['cpu_ms_per_object']:.2f}"]
        for threads, systems in load("buckets")["systems"].items()
        for name, figures in systems.items()
    )
    return markdown(["", "objects/s", "MB/s", "CPU ms / object"], rows)


def cluster() -> str:
    rows = ([name, f"{figures['images_per_s']:.1f}"] for name, figures in load("cluster")["systems"].items())
    return markdown(["", "images/s"], rows)


def gpu(rows: Callable[[dict[str, Any]], tuple[Row, Iterator[Row]]]) -> str:
    """A table of the GPU decoder's model, from what its kernels were counted to execute."""
    return markdown(*rows(load(model.RESULTS)["sets"]))


TABLES: dict[str, Callable[[], str]] = {
    "overview": overview,
    "sizes": lambda: codec_by_group("of_png", 3),
    "decoding": lambda: codec_by_group("decode_gb_per_s", 2),
    "encoding": lambda: codec_by_group("encode_gb_per_s", 3),
    "l3": codec_l3,
    "sets": sets,
    "set-speeds": set_speeds,
    "dali": dali_decode,
    "dali-small": dali_small,
    "dali-pieces": dali_pieces,
    "liquid": liquid,
    "liquid-datasets": liquid_datasets,
    "liquid-readers": liquid_readers,
    "jpeg": jpeg,
    "jpeg-costs": jpeg_costs,
    "jpeg-sizes": jpeg_sizes,
    "profiler": profiler,
    "steadiness": steadiness,
    "reader-check": reader_check,
    "python-threads": python_threads,
    "tar-shards": tar_shards,
    "scale-catalogue": scale_catalogue,
    "scale-folder": scale_folder,
    "buckets": buckets,
    "cluster": cluster,
    "targets": targets,
    "machines": machines,
    "gpu-counts": lambda: gpu(model.counts_rows),
    "gpu-photographs": lambda: gpu(model.photographs_rows),
    "gpu-sets": lambda: gpu(model.sets_rows),
    "gpu-sources": lambda: gpu(model.sources_rows),
    "gpu-targets": lambda: gpu(model.targets_rows),
}


def table(name: str) -> str:
    """A table, or a note in its place if its results are not there yet."""
    try:
        return TABLES[name]()
    except FileNotFoundError as error:
        return f"*Not measured yet: {Path(error.filename).name} is missing.*\n"


def updated(text: str) -> str:
    """The text with its marked tables made anew."""
    return MARKED.sub(lambda match: f"{match[1]}{match[2]}{table(match[1])}", text)


def update(path: Path, check: bool = False) -> None:
    """Makes a file's tables anew. With `check` it fails instead where one differs."""
    text = path.read_text(encoding="utf-8")
    new = updated(text)
    if new == text:
        return
    if check:
        raise SystemExit(f"{path}: tables differ from the results; run: python benchmarks/tables.py {path}")
    path.write_text(new, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the results' tables into Markdown files.")
    parser.add_argument("files", type=Path, nargs="+", help="Markdown files with marked tables")
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a table differs")
    arguments = parser.parse_args()
    for path in arguments.files:
        update(path, arguments.check)


if __name__ == "__main__":
    main()
