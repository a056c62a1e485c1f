"""What a conversion is to do: its settings, its samples in their order, and the units that these are cut into."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from ..images.resizing import Resize
from ..images.stored import Palette, ReadOptions
from ..jobs.outcomes import Outcome
from ..jobs.planning import PlanError
from ..version import __version__
from .samples import Sample, Target
from .storage import Storage, find_storage

_VERSION = 1
_CURE = "restore it, or convert to another folder"
_MANIFEST = "manifest.json"
_AMENDED = "amended"

Order = Literal["drawn", "source"]


@dataclass(frozen=True)
class Settings:
    """The options that all runs of a conversion share.

    source: a folder, or tar archives as the readers take them
    shards: bytes that a shard holds at most; None: the output is a folder of files
    order: of samples in shards: as the source has them, or drawn
    seed: of the draw
    format: of what is written: l3, or png, to which L3 files are exported; then, of the following, level and
        keep_suffix alone mean something
    profile: of the L3 files
    effort: of the encoder
    palette, max_pixels, first_page: how images are read
    resize: the bounds of their sizes, and the filter
    keep_suffix: whether a.png becomes a.png.l3, not a.l3
    level: of the compression of PNG files, 0 … 9
    """

    source: str
    shards: int | None = None
    order: Order = "drawn"
    seed: int = 0
    format: Target = "l3"
    profile: str = "fast"
    effort: int = 2
    palette: Palette = "rgb"
    max_pixels: int = ReadOptions.max_pixels
    first_page: bool = False
    resize: Resize | None = None
    keep_suffix: bool = False
    level: int = 6

    def difference(self, other: Settings) -> str:
        """What the other settings have instead: "effort 3, not 2"; empty if they are the same."""
        pairs = [(field.name, getattr(other, field.name), getattr(self, field.name)) for field in fields(self)]
        return ", ".join(f"{name} {theirs}, not {ours}" for name, theirs, ours in pairs if theirs != ours)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Settings:
        resize = content["resize"] and Resize(**content["resize"])
        return cls(**{**content, "resize": resize})


@dataclass(frozen=True)
class Part:
    """Some lines of the file of samples. begin, size: in bytes; count: the lines."""

    begin: int
    size: int
    count: int


@dataclass(frozen=True)
class Manifest:
    """A conversion. Small enough to be sent to where a unit is done; its samples are read from the storage.

    target: the output folder
    settings: the options
    samples_file: the name of the file that lists the samples, which holds the digest of its content
    units: the part of that file for each unit
    passed_over: the part with the outcomes of files that belong to no sample
    folders: the part with the folders of the source, if the output mirrors them
    """

    target: str
    settings: Settings
    samples_file: str
    units: tuple[Part, ...]
    passed_over: Part
    folders: Part

    @property
    def storage(self) -> Storage:
        """That of the target."""
        return find_storage(self.target)

    @property
    def folder(self) -> str:
        """The folder of the manifest and of the records."""
        return conversion_folder(self.target)

    def samples_of(self, unit: int) -> list[Sample]:
        """The samples of a unit, in their order. Raises PlanError if the file is damaged, OSError."""
        try:
            return self._amended(unit)
        except FileNotFoundError:
            return self._samples(self._lines(self.units[unit]), self.samples_file)

    def samples(self) -> list[Sample]:
        """The samples of all units, all but amended ones by a single request. Raises as `samples_of`."""
        count = sum(part.count for part in self.units)
        samples = self._samples(self._lines(Part(0, self.passed_over.begin, count)), self.samples_file)
        begins = [0, *itertools.accumulate(part.count for part in self.units)]
        names = self.storage.sizes(f"{self.folder}/{_AMENDED}")
        for unit in (unit for unit in range(len(self.units)) if unit_file(unit) in names):
            samples[begins[unit] : begins[unit + 1]] = self._amended(unit)
        return samples

    def amend(self, unit: int, samples: Iterable[Sample]) -> None:
        """Takes samples in the place of those of a unit: the same, of which files were replaced. Raises TargetError."""
        text = "".join(f"{sample.to_json()}\n" for sample in samples)
        self.storage.write(f"{self.folder}/{_AMENDED}/{unit_file(unit)}", text.encode("ascii"))

    def _amended(self, unit: int) -> list[Sample]:
        """The samples that a unit has got later. Raises FileNotFoundError if it has those of the beginning."""
        name = f"{_AMENDED}/{unit_file(unit)}"
        lines = self.storage.read(f"{self.folder}/{name}").splitlines()
        if len(lines) != self.units[unit].count:
            raise self._damaged(name)
        return self._samples(lines, name)

    def _samples(self, lines: list[bytes], name: str) -> list[Sample]:
        try:
            return [Sample.from_json(line) for line in lines]
        except (KeyError, TypeError, ValueError) as error:
            raise self._damaged(name) from error

    def outcomes_passed_over(self) -> list[Outcome]:
        """The outcomes of files that belong to no sample. Raises as `samples_of`."""
        try:
            return [Outcome.from_json(line) for line in self._lines(self.passed_over)]
        except (KeyError, TypeError, ValueError) as error:
            raise self._damaged(self.samples_file) from error

    def make_folders(self) -> None:
        """Makes the folders of the output, even empty ones: readers number classes by them. Raises as `samples_of`."""
        paths = [json.loads(line) for line in self._lines(self.folders)]
        self.storage.make_folders(f"{self.target}/{path}" for path in paths)

    def _lines(self, part: Part) -> list[bytes]:
        lines = self.storage.read(f"{self.folder}/{self.samples_file}", part.begin, part.size).splitlines()
        if len(lines) != part.count:
            raise self._damaged(self.samples_file)
        return lines

    def _damaged(self, name: str) -> PlanError:
        return PlanError(f"{self.folder}/{name}: damaged; {_CURE}")

    def create(self) -> bool:
        """Writes the manifest, unless there is one. The file of samples must be there."""
        content = {"version": _VERSION, "dali_l3": __version__, **asdict(self)}
        del content["target"]  # so that the folders can be moved
        return self.storage.create(f"{self.folder}/{_MANIFEST}", json.dumps(content).encode("ascii"))

    @classmethod
    def load(cls, target: str) -> Manifest | None:
        """Reads the manifest of the conversion to the folder `target`; returns None if there is none.

        Raises PlanError if it is damaged or of another version, OSError.
        """
        path = f"{conversion_folder(target)}/{_MANIFEST}"
        try:
            content = json.loads(find_storage(target).read(path))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as error:
            raise PlanError(f"{path}: not JSON: {error}; {_CURE}") from error
        try:
            if content["version"] == _VERSION:
                units = tuple(Part(**part) for part in content["units"])
                settings = Settings.from_json(content["settings"])
                passed_over, folders = Part(**content["passed_over"]), Part(**content["folders"])
                return cls(target, settings, content["samples_file"], units, passed_over, folders)
        except (KeyError, TypeError) as error:
            raise PlanError(f"{path}: not a manifest of a conversion; {_CURE}") from error
        raise PlanError(f"{path}: of version {content['version']}; this version of dali_l3 reads {_VERSION}; {_CURE}")


def conversion_folder(target: str) -> str:
    """The folder beside the output folder `target` that knows how far its conversion is."""
    return target.rstrip("/") + ".conversion"


def unit_file(unit: int) -> str:
    """The name of a file that tells of a unit."""
    return f"{unit:06d}.jsonl"
