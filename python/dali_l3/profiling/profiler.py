"""Profiles a dataset on this machine: the best formats, their ratio, and the gain.

After the offline profiler of Liquid (Baek et al., APSys 2023, section 4.1).
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..errors import ConversionError
from ..images.formats import SOURCE, check_format
from ..images.resizing import Resize
from ..jobs.workers import usable_cpus
from . import DEFAULT_FORMATS, encoding
from .batch_model import Batches
from .choosing import Choice, Mix, Preference, choose, make_mix
from .cost_model import Conditions, FormatCosts, hit_ratio, predict
from .decoding_order import turn_of
from .diagnosis import Diagnosis, diagnose
from .encoding import EncodedSample
from .isolation import call_isolated
from .measuring import (
    Consume,
    Measurement,
    Setting,
    Throughput,
    first_in_memory,
    measure,
    measure_copy,
    memory_bytes,
    require_gpu,
)
from .mixing_program import best_shares
from .quality import Quality, sweep
from .ratio_search import TENTHS, RatioSearch, search_ratio
from .sampling import Dataset, choose_sample, list_images
from .work_folder import plain_names, work_folder

_COLD = 4  # times the sample: images that are read once, from the disk, to see what DALI's reader makes of them
NOTABLE_GAIN = 1.1  # of the recommendation: less is not worth a conversion
_FEW_MISSES = 0.2  # of the images
_AGREEMENT = 0.05  # by how much the search's and the program's throughput may differ, relatively


@dataclass(frozen=True)
class Options:
    """The options of the profiler.

    formats: candidates, names as `images.formats.check_format` takes them; `source` is the files as they are, and is
        left out if none of the sample can stay as it is
    setting: settings of the pipelines
    cache_size: bytes of memory for the Liquid reader
    sample: number of images to measure with, at least a batch
    work: an existing folder on the disk to measure, for the encoded sample, which is removed at the end; None: the
        folder that contains the dataset
    copies: whether decoded images are copied to the GPU
    quality: lossy formats to sweep, names with their qualities
    max_size: bytes that the dataset may take at the recommended ratio
    prefer: whether the recommendation may lack more speed ("space") or less ("speed") for smaller files
    resize: the bounds of the images' sizes, if they are to be stored smaller; not possible with `source`
    """

    setting: Setting
    cache_size: int
    formats: Sequence[str] = DEFAULT_FORMATS
    sample: int = 128
    work: str | None = None
    copies: bool = False
    quality: Sequence[str] = ()
    max_size: int | None = None
    prefer: Preference = "space"
    resize: Resize | None = None


@dataclass(frozen=True)
class FormatProfile:
    """A candidate format.

    costs: of an image
    load, decode: images/s of reading from the disk, past the page cache, and of decoding from memory, by themselves
    both: images/s of the Liquid reader and the decoder together, with the sample's part of cache_size
    predicted: images/s that the model gives for `both`, from all costs but the extra seconds, which are the difference
    psnr: in dB, of pixels that the format changes, on average
    replaced: how many images of the sample it cannot hold: l3-fast took their place
    others: the largest part of the CPUs that other processes took during one of the measurements
    """

    costs: FormatCosts
    load: Throughput
    decode: Throughput
    both: Throughput
    predicted: float
    psnr: float | None = None
    replaced: int = 0
    others: float = 0.0


@dataclass(frozen=True)
class PairSearch:
    """The paper's search for one pair of formats, beside the linear program for the same pair.

    encoded, raw: the formats
    search: its steps; images/s of loading with the cache's hits taken into account
    program: tenths of encoded images, not rounded, that the program finds
    agrees: whether by the model the search's ratio reaches the program's throughput, within 5%
    """

    encoded: str
    raw: str
    search: RatioSearch
    program: float
    agrees: bool


@dataclass(frozen=True)
class WrittenDataset:
    """The dataset at the recommended ratio. predicted, measured: images/s end to end with the Liquid reader."""

    folder: str
    mix: str
    bytes: int
    predicted: float
    measured: Throughput
    hit_ratio: float


@dataclass
class DatasetProfile:
    """The findings about a dataset.

    source: the dataset; images, bytes: what it holds; sample: the number of images that were measured
    conditions, setting: see there
    formats: by name
    diagnosis: of the dataset as it is
    choice: the recommended mix, and others that nothing beats
    mixes: the recommendation, and each format by itself, the fastest first
    search: of the best pair; None if no two formats are of opposite cost, the larger one decoding faster
    gain: predicted images/s of the recommendation, limited by the training step, relative to the dataset as it is with
        DALI's file reader (`diagnosis.now`)
    quality: of lossy formats, if asked for
    written: the converted dataset, if it was written
    failures: paths and reasons, of images of the sample that cannot be read
    resize: the bounds of the images' sizes, if they are to be stored smaller
    """

    source: str
    images: int
    bytes: int
    sample: int
    conditions: Conditions
    setting: Setting
    formats: dict[str, FormatProfile]
    diagnosis: Diagnosis
    choice: Choice
    mixes: list[Mix]
    search: PairSearch | None
    gain: float
    quality: list[Quality] = field(default_factory=list)
    written: WrittenDataset | None = None
    failures: list[tuple[str, str]] = field(default_factory=list)
    resize: Resize | None = None

    @property
    def recommendation(self) -> Mix:
        """The recommended mix."""
        return self.choice.recommended

    @property
    def least_gain(self) -> float:
        """The least gain, as a ratio, that is worth a conversion and is no noise."""
        return max(NOTABLE_GAIN, 1 + self.recommendation.spread, 1 + self.diagnosis.now.spread)

    @property
    def advice(self) -> Literal["convert", "read", "stay"]:
        """Whether to convert the dataset as recommended, read it as it is with the Liquid reader, or leave it alone.

        The last if it would gain nothing, as where the training step limits, or if no mix is as small as it has to be.
        """
        mix, most = self.recommendation, self.conditions.max_bytes
        is_too_large = most is not None and mix.bytes > most
        if self.diagnosis.limit == "step" or self.gain < self.least_gain or is_too_large:
            return "stay"
        return "read" if mix.weights.keys() == {SOURCE} else "convert"


ProgressCallback = Callable[[str, int, int], None]
"""Called with what is being done, how many steps of it are done, and of how many."""


def _silent(what: str, done: int, total: int) -> None:
    pass


def profile(
    source: str,
    options: Options,
    step: Consume | None = None,
    announce: Callable[[int, str], None] = lambda size, folder: None,
    progress: ProgressCallback = _silent,
) -> DatasetProfile:
    """As `profiling`, at once."""
    with profiling(source, options, step, announce, progress) as found:
        return found


@contextlib.contextmanager
def profiling(
    source: str,
    options: Options,
    step: Consume | None = None,
    announce: Callable[[int, str], None] = lambda size, folder: None,
    progress: ProgressCallback = _silent,
) -> Iterator[DatasetProfile]:
    """Profiles the tree of images `source`, and yields what it finds. Removes the sample after that.

    step: the training step, called with the outputs of every batch of the diagnosis
    announce: called once before anything is written, with the most bytes of disk space that it takes, and the folder

    Raises:
        ConversionError: There are no images, none can be read, DALI cannot decode one, a format is unknown, a pipeline
            needs a GPU and there is none, or the sample cannot be written, for example because the disk is full.
        OSError
    """
    for name in (*options.formats, *options.quality):
        check_format(name)
    if options.resize and SOURCE in options.formats:
        raise ConversionError(f"{options.resize}: files as they are ({SOURCE}) cannot be resized; name other formats")
    progress("listing the images", 0, 1)
    dataset = list_images(source)
    if options.setting.device == "mixed" or options.copies:
        call_isolated(require_gpu)
    parent = options.work or _beside(source)
    with work_folder(parent) as folder, plain_names() as plain:

        def tell(size: int) -> None:
            announce(size, parent)

        yield _profile(source, dataset, options, step, plain(folder), plain, tell, progress)


def _profile(
    source: str,
    dataset: Dataset,
    options: Options,
    step: Consume | None,
    folder: str,
    plain: Callable[[str], str],
    announce: Callable[[int], None],
    progress: ProgressCallback,
) -> DatasetProfile:
    """`profile`, with an empty folder for the sample."""
    setting = options.setting
    chosen = {plain(path): path for path in choose_sample(dataset, max(options.sample, setting.batch_size))}
    sample = _encode([*chosen], options, folder, announce, progress)
    names = [name for name in options.formats if name != SOURCE or sample.replaced(name) < len(sample.raw_sizes)]
    names = names or list(options.formats)
    unreadable = {outcome.source for outcome in sample.failures}
    readable = [path for path in chosen if path not in unreadable]
    more = [*map(plain, choose_sample(dataset, _COLD * len(chosen)))] if not unreadable else readable
    tick = _names(progress, "diagnosing", 3 + bool(step))
    in_memory = dataset.bytes <= options.cache_size
    diagnosis = diagnose(readable, more, setting, usable_cpus(), in_memory, step, tick)
    copying = 0.0
    if options.copies:
        copying = 1 / call_isolated(measure_copy, sample.paths(names[0]), setting).throughput.mean
    threads = setting.threads if setting.device == "cpu" else 1  # the GPU decodes a batch as one
    batches = Batches(setting.batch_size, threads, tuple(sample.raw_sizes))
    conditions = Conditions(dataset.images, options.cache_size, usable_cpus(), copying, options.max_size, batches)
    formats = {}
    for number, name in enumerate(names):
        progress(f"measuring {name}", number, len(names))
        formats[name] = measure_format(name, sample, setting, conditions)
    costs = {name: found.costs for name, found in formats.items()}
    search = _search_best_pair(sample, costs, setting, conditions, progress)
    quality = sweep(options.quality, sample, setting, progress)
    spreads = {name: found.both.spread for name, found in formats.items()}
    choice = choose(costs, conditions, spreads, options.prefer)
    most = diagnosis.stages[0].throughput.mean if step else float("inf")
    return DatasetProfile(
        source=source,
        images=dataset.images,
        bytes=dataset.bytes,
        sample=len(sample.raw_sizes),
        conditions=conditions,
        setting=setting,
        formats=formats,
        diagnosis=diagnosis,
        choice=choice,
        mixes=compare(choice, costs, conditions),
        search=search,
        gain=min(choice.recommended.prediction.throughput, most) / diagnosis.now.mean,
        quality=quality,
        failures=[(chosen[outcome.source], outcome.reason) for outcome in sample.failures],
        resize=options.resize,
    )


def _beside(source: str) -> str:
    """The folder that holds `source`, where links lead to it. Raises ConversionError if it is on another disk."""
    source = os.path.realpath(source)
    folder = os.path.dirname(source)
    if _disk(folder) != _disk(source):
        raise ConversionError(
            f"{folder} is on another disk than {source}: name a folder on the disk of the dataset with --work"
        )
    return folder


def _disk(path: str) -> int:
    return os.stat(path).st_dev


def _encode(
    chosen: Sequence[str],
    options: Options,
    folder: str,
    announce: Callable[[int], None],
    progress: ProgressCallback,
) -> EncodedSample:
    formats = list(dict.fromkeys((*options.formats, *options.quality)))
    tick = _ticks(progress, "reading the sample", len(chosen))
    announced = encoding.announce(chosen, formats, tick, options.resize)
    announce(announced)
    tick = _ticks(progress, "encoding the sample", len(chosen))
    return encoding.encode_sample(chosen, formats, folder, announced, tick, options.resize)


def measure_format(name: str, sample: EncodedSample, setting: Setting, conditions: Conditions) -> FormatProfile:
    """Measures a format of the sample: loading, decoding, and both together. What the model needs is of these."""
    paths = sample.paths(name)
    sizes = [file.size for file in sample.files[name]]
    # As many images as the sample has, with their part of the cache.
    alike = dataclasses.replace(
        conditions, images=len(paths), cache_size=conditions.cache_size * len(paths) // conditions.images
    )
    load = call_isolated(measure, paths, setting, decode=False)
    decode = call_isolated(measure, first_in_memory(paths, setting.batch_size), setting, load=False)
    both = call_isolated(measure, paths, setting, cache_size=alike.cache_size)
    costs = FormatCosts(
        name,
        statistics.fmean(sizes),
        statistics.fmean(map(memory_bytes, sizes)),
        1 / load.throughput.mean,
        1 / decode.throughput.mean,
        loading_cpu_seconds(load, decode, both),
        decode.cpu_seconds,
        turn_of(paths),
    )
    predicted = predict({name: 1.0}, {name: costs}, alike).throughput
    extra = max(1 / both.throughput.mean - 1 / predicted, 0.0)
    psnr = [file.psnr for file in sample.files[name] if file.psnr is not None]
    return FormatProfile(
        dataclasses.replace(costs, extra_seconds=extra),
        load.throughput,
        decode.throughput,
        both.throughput,
        predicted,
        statistics.fmean(psnr) if psnr else None,
        sample.replaced(name),
        max(measured.others for measured in (load, decode, both)),
    )


def loading_cpu_seconds(load: Measurement, decode: Measurement, both: Measurement) -> float:
    """The CPU time that loading an image adds to decoding it.

    It is less than a pipeline takes that only loads: batches cost some in every pipeline. Where almost all comes from
    memory, it cannot be told from the decoder's, and matters little.
    """
    misses = 1 - both.hit_ratio
    if misses < _FEW_MISSES:
        return load.cpu_seconds
    return min(max((both.cpu_seconds - decode.cpu_seconds) / misses, 0.0), load.cpu_seconds)


def compare(choice: Choice, costs: Mapping[str, FormatCosts], conditions: Conditions) -> list[Mix]:
    """The recommended mix, and each format by itself, the fastest first."""
    best = choice.recommended
    singles = [make_mix({name: 1}, costs, conditions) for name in costs]
    mixes = [mix for mix in singles if mix.weights.keys() != best.weights.keys()] + [best]
    return sorted(mixes, key=lambda mix: -mix.prediction.throughput)


def _search_best_pair(
    sample: EncodedSample,
    costs: Mapping[str, FormatCosts],
    setting: Setting,
    conditions: Conditions,
    progress: ProgressCallback,
) -> PairSearch | None:
    """The paper's search, for the pair of formats whose best mix the model gives the highest throughput.

    Only pairs with something to balance count: the format with the larger files decodes faster.
    """

    def model(shares: Mapping[str, float]) -> float:
        return predict(shares, costs, conditions).throughput

    def pair_shares(pair: tuple[str, str]) -> dict[str, float]:
        return best_shares({name: costs[name] for name in pair}, conditions)

    by_size = sorted(costs, key=lambda name: costs[name].image_bytes)
    pairs = [
        (encoded, raw)
        for encoded, raw in itertools.combinations(by_size, 2)
        if costs[encoded].decode_seconds > costs[raw].decode_seconds
    ]
    if not pairs:
        return None
    encoded, raw = max(pairs, key=lambda pair: model(pair_shares(pair)))
    tick = _ticks(progress, f"searching the ratio of {encoded} and {raw}", TENTHS + 1)

    def measure_ratio(tenths: int) -> tuple[float, float]:
        shares = {encoded: tenths / TENTHS, raw: 1 - tenths / TENTHS}
        paths = mixed(sample, encoded, raw, tenths)
        load = call_isolated(measure, paths, setting, decode=False).throughput.mean
        in_memory = first_in_memory(paths, setting.batch_size)
        decode = call_isolated(measure, in_memory, setting, load=False).throughput.mean
        tick()
        misses = 1 - hit_ratio(shares, costs, conditions)
        return load / misses if misses else float("inf"), decode

    search = search_ratio(measure_ratio)
    best = pair_shares((encoded, raw))
    found = search.best.encoded / TENTHS
    reached = model({encoded: found, raw: 1 - found})
    return PairSearch(encoded, raw, search, TENTHS * best.get(encoded, 0.0), reached >= (1 - _AGREEMENT) * model(best))


def mixed(sample: EncodedSample, encoded: str, raw: str, tenths: int) -> list[str]:
    """The sample's files, spread evenly: so many of ten in format `encoded`, the others in `raw`."""
    pairs = zip(sample.paths(encoded), sample.paths(raw), strict=True)
    return [pair[0] if number * tenths % TENTHS < tenths else pair[1] for number, pair in enumerate(pairs)]


def _ticks(progress: ProgressCallback, what: str, total: int) -> Callable[[], None]:
    done = itertools.count(1)
    progress(what, 0, total)
    return lambda: progress(what, next(done), total)


def _names(progress: ProgressCallback, what: str, total: int) -> Callable[[str], None]:
    done = itertools.count()
    return lambda name: progress(f"{what}: {name}", next(done), total)
