"""Size, decoding and encoding speed of L3 against other lossless formats, on one core.

    python benchmarks/codec.py [FOLDER ...]

takes the PNG photographs in the folders (those of scikit-image by default) and writes results/codec.json and a plot
beside it. The protocol is described in docs/benchmarks.md.
"""

from __future__ import annotations

import ctypes
import io
import multiprocessing
import os
import resource
import statistics
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import imagecodecs
import matplotlib.pyplot as plt
import numpy as np
from common import OthersLoad, argument_parser, console, interleave, median_ratio, png, settings_of, write_results
from datasets import Images
from PIL import Image
from rich.table import Table
from targets import Target

import dali_l3
from dali_l3 import _core

Figures = dict[str, Any]

BASELINE = "PNG (Pillow)"
LIBPNG = "PNG (libpng)"
LIBSPNG = "PNG (libspng)"
MEMCPY = "memcpy"
FHD = (1080, 1920, 3)

SIZE_TARGETS = {
    "kodak": 0.82,
    "fhd": 0.80,
    "uhd": 0.83,
    "graphics": 0.93,
    "16-bit gray": 0.9,
    "16-bit RGB": 0.9,
    "label maps": 1.03,
    "binary masks": 1.0,
}  # of PNG's bytes, at most
DECODE_TARGETS = {"avx512": 35, "avx2": 25, "portable": 3}  # times libspng's speed, at least; the best back end first
# Of the speed on photographs, by set: whether bytes or samples are compared, and by back end at least how many times.
SET_DECODE_TARGETS = {
    "16-bit gray": ("nbytes", {"avx512": 1.0, "avx2": 0.9}),
    "16-bit RGB": ("nbytes", {"avx512": 1.0, "avx2": 0.9}),
    "label maps": ("size", {"avx512": 0.6, "avx2": 0.6}),
    "binary masks": ("size", {"avx512": 1.0, "avx2": 1.0}),
}
# Times libpng's speed, at least.
SET_PNG_TARGETS = {
    "16-bit gray": {"avx512": 35, "avx2": 25},
    "16-bit RGB": {"avx512": 35, "avx2": 25},
    "label maps": {"avx512": 15, "avx2": 15},
    "binary masks": {"avx512": 15, "avx2": 15},
}
RAW_DECODE_TARGET = 0.7  # of memcpy's speed, at least
ENCODE_TARGET = 1.0  # GB/s, at least, at effort 1, whose files are larger than the default's …
QUICK_SIZE_LIMIT = 1.01  # … by this much at most
SLOWEST_TARGETS = dict.fromkeys(("kodak", "fhd", "uhd"), 0.8)  # of the median speed, decoding, at least: photographs
SET_ENCODE_TARGET = 0.5  # GB/s, at least, at the default effort, for the sets of `datasets.SETS`
CHECKSUM_LIMIT = 1.1  # of the time without: up to here the checksums are verified by default
MEMORY_TILES = 8  # what "a few tiles" means


# ---- systems ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class System:
    """A lossless way to store images.

    encode: uint8 array of shape (H, W, 3) to the bytes of a file
    decode: the bytes of a file to pixels: into the second argument, an array that has been written to before, or, where
        not `into`, in memory that the codec allocates
    decodes: the system whose files `decode` is timed on, where these are not its own
    """

    encode: Callable[[np.ndarray], bytes]
    decode: Callable[[bytes, np.ndarray], object]
    into: bool = True
    decodes: str | None = None


def l3_name(profile: str, backend: str, effort: int = 2, verify: bool | None = None) -> str:
    effort_name = f" e{effort}" if profile == "fast" else ""
    verify_name = {None: "", True: " verified", False: " unverified"}[verify]
    return f"L3 {profile}{effort_name} {backend}{verify_name}"


def _l3(profile: str, backend: str, effort: int = 2, verify: bool | None = None) -> System:
    def encode(image: np.ndarray) -> bytes:
        _core.set_backend(backend)
        return dali_l3.encode(image, profile, effort)

    def decode(data: bytes, out: np.ndarray) -> None:
        _core.set_backend(backend)
        dali_l3.decode(data, out=out, verify=verify)

    return System(encode, decode)


def _usable_backends() -> list[str]:
    """The back ends that this CPU runs, the default first."""
    usable = []
    for name in DECODE_TARGETS:
        try:
            _core.set_backend(name)
            usable.append(name)
        except dali_l3.L3Error:
            console.print(f"This CPU cannot run the back end {name}: left out.")
    _core.set_backend(usable[0])
    return usable


BACKENDS = _usable_backends()
DEFAULT = l3_name("fast", BACKENDS[0])


def _webp(method: int) -> System:
    return System(
        lambda image: imagecodecs.webp_encode(image, lossless=True, method=method, numthreads=1),
        lambda data, out: imagecodecs.webp_decode(data, out=out),
    )


def _zstd_of_differences() -> System:
    """zstd behind the simplest filter: differences from the pixel to the left."""
    return System(
        lambda image: imagecodecs.zstd_encode(imagecodecs.delta_encode(image, axis=1), level=3),
        lambda data, out: imagecodecs.delta_decode(
            np.frombuffer(imagecodecs.zstd_decode(data), np.uint8).reshape(out.shape), axis=1, out=out
        ),
    )


def systems() -> dict[str, System]:
    """All systems by name. Every one is held to one thread."""
    result = {
        MEMCPY: System(
            lambda image: image.tobytes(),
            lambda data, out: np.copyto(out, np.frombuffer(data, np.uint8).reshape(out.shape)),
        ),
        BASELINE: System(png, lambda data, out: Image.open(io.BytesIO(data)).load(), into=False),
        LIBPNG: System(
            lambda image: imagecodecs.png_encode(image, level=6),
            lambda data, out: imagecodecs.png_decode(data, out=out),
            decodes=BASELINE,
        ),
        LIBSPNG: System(
            lambda image: imagecodecs.spng_encode(image, level=6),
            lambda data, out: imagecodecs.spng_decode(data, out=out),
            decodes=BASELINE,
        ),
        "QOI": System(imagecodecs.qoi_encode, lambda data, out: imagecodecs.qoi_decode(data, out=out)),
        "WebP m0": _webp(0),
        "WebP m4": _webp(4),
        "JPEG XL e1": System(
            lambda image: imagecodecs.jpegxl_encode(image, lossless=True, effort=1, numthreads=1),
            lambda data, out: imagecodecs.jpegxl_decode(data, numthreads=1, out=out),
        ),
        "HTJ2K": System(
            lambda image: imagecodecs.htj2k_encode(image, reversible=True),
            lambda data, out: imagecodecs.htj2k_decode(data, out=out),
        ),
        "zstd": System(
            lambda image: imagecodecs.zstd_encode(image, level=3),
            lambda data, out: imagecodecs.zstd_decode(data, out=out.reshape(-1)),
        ),
        "zstd of differences": _zstd_of_differences(),
    }
    for backend in BACKENDS:
        for profile, effort, verify in (
            ("raw", 2, None),
            ("raw", 2, True),
            ("paper", 2, None),
            ("fast", 1, None),
            ("fast", 2, None),
            ("fast", 2, False),
            ("fast", 3, None),
        ):
            result[l3_name(profile, backend, effort, verify)] = _l3(profile, backend, effort, verify)
    return result


# ---- measuring -------------------------------------------------------------------------------------------------------


def measure(image: np.ndarray, entrants: dict[str, System], rounds: int, encode_rounds: int) -> dict[str, Figures]:
    """For each system the size of the image's file, and the median seconds that decoding and encoding take."""
    files = {name: system.encode(image) for name, system in entrants.items()}
    out = np.zeros_like(image)

    def decoder(name: str, system: System) -> Callable[[], object]:
        data = files[system.decodes or name]
        if system.into:
            out.fill(0)
            system.decode(data, out)
            if not np.array_equal(out, image):
                raise SystemExit(f"{name} does not decode to the same pixels")
        return lambda: system.decode(data, out)

    decoding = interleave({name: decoder(name, system) for name, system in entrants.items()}, rounds, warm=True)
    encoders = {name: lambda system=system: system.encode(image) for name, system in entrants.items()}
    encoding = interleave(encoders, encode_rounds, warm=False)
    return {
        name: {
            "bytes": len(files[name]),
            "decode_seconds": statistics.median(decoding[name]),
            "encode_seconds": statistics.median(encoding[name]),
        }
        for name in entrants
    }


def measure_group(images: Images, entrants: dict[str, System], rounds: int, encode_rounds: int) -> Figures:
    """The figures of a group of images for each system, and those of the single images that they are taken from."""
    measured = []
    for name, image in images.items():
        console.print(f"  {name} {image.shape}")
        measured.append(measure(image, entrants, rounds, encode_rounds))
    columns = {
        system: {key: [figures[system][key] for figures in measured] for key in measured[0][system]}
        for system in entrants
    }
    raw = [image.nbytes for image in images.values()]
    png_bytes, spng_seconds = sum(columns[BASELINE]["bytes"]), columns[LIBSPNG]["decode_seconds"]
    summary = {
        system: {
            "bytes": sum(column["bytes"]),
            "of_png": sum(column["bytes"]) / png_bytes,
            "decode_gb_per_s": median_ratio(raw, column["decode_seconds"]) / 1e9,
            "decode_times_libspng": median_ratio(spng_seconds, column["decode_seconds"]),
            "encode_gb_per_s": median_ratio(raw, column["encode_seconds"]) / 1e9,
            "decode_slowest_of_median": slowest_of_median(raw, column["decode_seconds"]),
        }
        for system, column in columns.items()
    }
    return {"images": list(images), "raw_bytes": sum(raw), "systems": summary, "per_image": columns}


def slowest_of_median(raw_bytes: list[int], seconds: list[float]) -> float:
    """The speed on the image that takes longest for its size, as a share of the median speed."""
    speeds = [size / time for size, time in zip(raw_bytes, seconds, strict=True)]
    return min(speeds) / statistics.median(speeds)


def measure_sets(photos: Images, rounds: int, encode_rounds: int) -> Figures:
    """Bytes of PNG and L3 and speeds for the sets of `datasets.SETS`, by the function that made them.

    That of decoding is given as a multiple of libpng's on the same image and of L3's, in turns with it, on the
    photograph that the image was made from: in bytes and in samples.
    """
    backends = {backend: _l3("fast", backend) for backend in BACKENDS}
    entrants = {LIBPNG: System(png, lambda data, out: imagecodecs.png_decode(data, out=out)), **backends}
    results = {}
    for name, makers in datasets.SETS.items():
        kinds = {}
        for make in makers:
            console.print(f"  {make.__name__}")
            images, measured = [], []
            for photo in photos.values():
                of_photo = {_of_photo(backend): _always(photo, system) for backend, system in backends.items()}
                images.append(make(photo))
                measured.append(measure(images[-1], entrants | of_photo, rounds, encode_rounds))
            kinds[make.__name__] = {
                "raw_bytes": sum(image.nbytes for image in images),
                "png_bytes": sum(figures[LIBPNG]["bytes"] for figures in measured),
                "l3_bytes": sum(figures[BACKENDS[0]]["bytes"] for figures in measured),
                "systems": {backend: _speed_beside_photos(backend, images, measured, photos) for backend in BACKENDS},
            }
        total = {key: sum(kind[key] for kind in kinds.values()) for key in ("raw_bytes", "png_bytes", "l3_bytes")}
        for figures in (total, *kinds.values()):
            figures["of_png"] = figures["l3_bytes"] / figures["png_bytes"]
        results[name] = total | {"images": len(photos) * len(makers), "kinds": kinds}
    return results


def _of_photo(backend: str) -> str:
    return f"the photograph, {backend}"


def _always(photo: np.ndarray, system: System) -> System:
    """Decodes a photograph, whatever the image is that others decode in turns with it."""
    data, out = system.encode(photo), np.zeros_like(photo)
    return System(lambda image: data, lambda data, _: system.decode(data, out), into=False)


def _speed_beside_photos(
    backend: str, images: list[np.ndarray], measured: list[dict[str, Figures]], photos: Images
) -> Figures:
    def seconds(name: str, key: str = "decode_seconds") -> list[float]:
        return [figures[name][key] for figures in measured]

    def rates(unit: str, arrays: Iterable[np.ndarray], times: list[float]) -> list[float]:
        return [getattr(array, unit) / time for array, time in zip(arrays, times, strict=True)]

    times, photo_times = seconds(backend), seconds(_of_photo(backend))
    return {
        "decode_gb_per_s": statistics.median(rates("nbytes", images, times)) / 1e9,
        "encode_gb_per_s": statistics.median(rates("nbytes", images, seconds(backend, "encode_seconds"))) / 1e9,
        "decode_times_libpng": median_ratio(seconds(LIBPNG), times),
        **{
            f"decode_{unit}_of_photos": median_ratio(
                rates(unit, images, times), rates(unit, photos.values(), photo_times)
            )
            for unit in ("nbytes", "size")
        },
    }


def _touched_while_decoding(data: bytes) -> int:
    """Bytes of memory that this process touches for the first time while it decodes an image into an array in use.

    Counted in page faults, which bounds the extra memory from above.
    """
    set_thp_disable = 41  # with huge pages a fault might stand for 2 MiB
    ctypes.CDLL(None).prctl(set_thp_disable, 1, 0, 0, 0)
    one_tile = dali_l3.encode(np.zeros((64, 64, 3), np.uint8))
    dali_l3.decode(one_tile, out=np.empty((64, 64, 3), np.uint8))  # the codec's own code and constants
    info = dali_l3.peek(data)
    out = np.ones(info.shape, info.dtype)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    dali_l3.decode(data, out=out)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) * resource.getpagesize()


def measure_memory(image: np.ndarray) -> int:
    """Bytes of extra memory that decoding takes, at most, in a fresh process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_touched_while_decoding, dali_l3.encode(image)).result()


# ---- reporting -------------------------------------------------------------------------------------------------------


def targets(groups: Figures, fhd: Figures | None, sets: Figures, memory: dict[str, int]) -> Iterator[Target]:
    sizes = {name: group["systems"][DEFAULT]["of_png"] for name, group in groups.items()}
    sizes |= {name: figures["of_png"] for name, figures in sets.items()}
    for name, limit in SIZE_TARGETS.items():
        if name in sizes:
            yield Target(f"{name}: bytes / PNG", sizes[name], limit, at_most=True)
    for name, least in SLOWEST_TARGETS.items():
        for backend in BACKENDS if name in groups else ():
            share = groups[name]["systems"][l3_name("fast", backend)]["decode_slowest_of_median"]
            yield Target(f"{name}: decode, {backend}, slowest image / median", share, least)
    for name, (unit, least) in SET_DECODE_TARGETS.items():
        for kind, figures in sets.get(name, {}).get("kinds", {}).items():
            for backend in filter(least.get, BACKENDS):
                speed = figures["systems"][backend]
                ratio = speed[f"decode_{unit}_of_photos"]
                what = "samples/s" if unit == "size" else "GB/s"
                yield Target(f"{kind}: decode, {backend}, {what} / photographs'", ratio, least[backend])
                times = speed["decode_times_libpng"]
                yield Target(f"{kind}: decode, {backend} / libpng", times, SET_PNG_TARGETS[name][backend])
    if fhd:
        figures = fhd["systems"]
        for backend in BACKENDS:
            speed = figures[l3_name("fast", backend)]["decode_times_libspng"]
            yield Target(f"FHD: decode, {backend} / libspng", speed, DECODE_TARGETS[backend])

        def time_ratio(system: str, other: str) -> float:
            return median_ratio(fhd["per_image"][system]["decode_seconds"], fhd["per_image"][other]["decode_seconds"])

        yield Target("FHD: decode, raw / memcpy", time_ratio(MEMCPY, l3_name("raw", BACKENDS[0])), RAW_DECODE_TARGET)
        cost = time_ratio(DEFAULT, l3_name("fast", BACKENDS[0], verify=False))
        yield Target("FHD: time with checksums verified / without", cost, CHECKSUM_LIMIT, at_most=True)
        quick = figures[l3_name("fast", BACKENDS[0], effort=1)]
        yield Target("FHD: encode at effort 1, GB/s", quick["encode_gb_per_s"], ENCODE_TARGET)
        growth = quick["bytes"] / figures[DEFAULT]["bytes"]
        yield Target("FHD: bytes at effort 1 / effort 2", growth, QUICK_SIZE_LIMIT, at_most=True)
    for group in sets.values():
        for kind, figures in group.get("kinds", {}).items():
            speed = figures["systems"][BACKENDS[0]]["encode_gb_per_s"]
            yield Target(f"{kind}: encode, GB/s", speed, SET_ENCODE_TARGET)
    tile = 64 * 64 * 3
    yield Target("extra memory, tiles", max(memory.values()) / tile, MEMORY_TILES, at_most=True)


def show(name: str, group: Figures) -> None:
    title = f"{name}, {len(group['images'])} images"
    table = Table("", "bytes / PNG", "decode GB/s", "x libspng", "encode GB/s", title=title)
    for system, figures in group["systems"].items():
        table.add_row(
            system,
            f"{figures['of_png']:.3f}",
            f"{figures['decode_gb_per_s']:.2f}",
            f"{figures['decode_times_libspng']:.1f}",
            f"{figures['encode_gb_per_s']:.3f}",
        )
    console.print(table)


def plot(name: str, group: Figures, path: Path) -> None:
    """Decoding speed over size, a point for each format."""
    crowding = {LIBPNG, "WebP m0"}  # beside PNG (libspng) and WebP m4
    shown = {system: system for system in group["systems"] if not system.startswith("L3") and system not in crowding}
    shown |= {l3_name(profile, BACKENDS[0]): f"L3 {profile}" for profile in ("raw", "paper", "fast")}
    plt.rcParams["svg.hashsalt"] = path.name  # the same figures make the same file
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for system, label in shown.items():
        figures = group["systems"][system]
        point = figures["of_png"], figures["decode_gb_per_s"]
        axes.scatter(*point, color="tab:red" if label.startswith("L3") else "tab:gray", zorder=2)
        axes.annotate(label, point, xytext=(6, -12 if label == "HTJ2K" else 4), textcoords="offset points")
    axes.set(
        title=f"{name}: one core, {len(group['images'])} images",
        xlabel="bytes / PNG level 6 (less is better)",
        ylabel="decoding, GB/s of pixels",
        yscale="log",
    )
    axes.margins(x=0.12)
    axes.grid(which="both", alpha=0.3)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argument_parser("Compare L3 with other lossless formats, on one core.")
    parser.add_argument("folders", type=Path, nargs="*", help="folders of PNG photographs (default: scikit-image's)")
    parser.add_argument("--rounds", type=int, default=9, help="timed decodings of each image by each system")
    parser.add_argument("--encode-rounds", type=int, default=3, help="timed encodings of each image by each system")
    parser.add_argument("--limit", type=int, help="use only the first LIMIT images of each folder")
    arguments = parser.parse_args()

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    others = OthersLoad()
    photos = datasets.load(arguments.folders)
    if not arguments.folders:
        photos["scikit-image at 1920x1080"] = {
            name: datasets.enlarge(photo, *FHD[:2]) for name, photo in photos["scikit-image"].items()
        }
    photos = {name: dict(list(group.items())[: arguments.limit]) for name, group in photos.items()}

    groups = {}
    for name, images in photos.items():
        console.print(f"{name}: sizes and speed")
        groups[name] = measure_group(images, systems(), arguments.rounds, arguments.encode_rounds)
        show(name, groups[name])
    console.print("16-bit images, label maps and masks: sizes and speed")
    # Computer graphics and copies at another size are no material for sets that stand for photographs.
    sources = {name: group for name, group in photos.items() if name in ("kodak", "fhd")} or photos
    sets = measure_sets(
        {f"{folder} {name}": photo for folder, group in sources.items() for name, photo in group.items()},
        arguments.rounds,
        arguments.encode_rounds,
    )
    _core.set_backend(BACKENDS[0])  # the default again: it is used for what follows, and recorded
    memory = {name: measure_memory(max(images.values(), key=np.size)) for name, images in photos.items()}

    fhd_name = next((name for name in photos if all(photo.shape == FHD for photo in photos[name].values())), None)
    reached = list(targets(groups, groups.get(fhd_name), sets, memory))
    results = {
        "settings": settings_of(arguments, "rounds", "encode_rounds"),
        "cpu_share_of_other_processes": others.share(),
        "groups": groups,
        "sets": sets,
        "extra_memory_bytes": memory,
    }
    path = write_results("codec", results, reached, arguments.out)
    plotted = fhd_name or next(iter(groups))
    plot(plotted, groups[plotted], path.with_suffix(".svg"))


if __name__ == "__main__":
    main()
