"""The record of a mixed dataset: a JSON file beside the images that names the format of each."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from ..files import open_regular, write_atomically
from ..jobs.outcomes import Outcome
from ..jobs.planning import PlanError
from ..version import __version__
from ..wording import counted

RECORD_NAME = "dali_l3_mix.json"

_VERSION = 1
_CURE = "restore it, or convert to another folder"
_ENTRY_TYPES: dict[str, type | tuple[type, ...]] = {"drawn": str, "format": str, "bytes": int, "psnr": (int, float)}


@dataclass(frozen=True)
class MixSettings:
    """The settings that all runs of a mix share.

    mix: names of formats and their weights
    seed: of the draw
    keep_suffix: whether a.png becomes a.png.bmp, not a.bmp
    palette: what to keep of images with a palette, "rgb" or "index"
    resize: the bounds of the images' sizes, as options of the command line
    """

    mix: dict[str, int]
    seed: int = 0
    keep_suffix: bool = False
    palette: str = "rgb"
    resize: str = ""

    def __str__(self) -> str:
        mix = ",".join(f"{name}:{weight}" for name, weight in self.mix.items())
        text = f"--mix {mix} --seed {self.seed}" + " --keep-suffix" * self.keep_suffix
        text += f" --palette {self.palette}" * (self.palette != "rgb")
        return text + f" {self.resize}" * bool(self.resize)


@dataclass
class MixedImage:
    """One image of a mixed dataset.

    drawn: name of the format that was drawn for it
    format: name of the format of its file, which differs from `drawn` if that cannot hold the image; None until the
        file is written
    bytes: size of its file
    psnr: in dB, if a lossy format changed the pixels
    """

    drawn: str
    format: str | None = None
    bytes: int | None = None
    psnr: float | None = None


@dataclass
class MixRecord:
    """images: by the paths of their sources, relative to the root; those that have left the source since, too."""

    settings: MixSettings
    images: dict[str, MixedImage] = field(default_factory=dict)

    def add(self, path: str, outcome: Outcome) -> None:
        """Records the file that the image at `path` became, in this run ("done") or an earlier one ("kept")."""
        image = self.images[path]
        image.format = outcome.format
        if outcome.status == "done":
            image.bytes, image.psnr = outcome.target_size, outcome.psnr
        elif outcome.target:
            image.bytes = os.path.getsize(outcome.target)

    def totals(self) -> dict[str, dict[str, float]]:
        """Totals by name of format.

        weight: in the mix; 0 for l3-fast if it is not in it and yet had to be used
        drawn: images that it was drawn for
        not_representable: those of them that it cannot hold
        files, bytes: what there is in this format
        psnr_mean, psnr_min: in dB, over the files whose pixels it changed, if there are any
        """
        used = {image.format for image in self.images.values() if image.format}
        return {name: self._totals_of(name) for name in (*self.settings.mix, *sorted(used - self.settings.mix.keys()))}

    def _totals_of(self, name: str) -> dict[str, float]:
        drawn = [image for image in self.images.values() if image.drawn == name]
        files = [image for image in self.images.values() if image.format == name]
        totals: dict[str, float] = {
            "weight": self.settings.mix.get(name, 0),
            "drawn": len(drawn),
            "not_representable": sum(image.format not in (None, name) for image in drawn),
            "files": len(files),
            "bytes": sum(image.bytes or 0 for image in files),
        }
        psnr = [image.psnr for image in files if image.psnr is not None]
        if psnr:
            totals |= {"psnr_mean": statistics.fmean(psnr), "psnr_min": min(psnr)}
        return totals

    def describe(self) -> Iterator[str]:
        """A line for each format."""
        for name, total in self.totals().items():
            line = f"{name}: {total['drawn']} drawn"
            if total["files"]:
                line += f", {counted(int(total['files']), 'file')}, {total['bytes'] / 1e6:.2f} MB"
            if "psnr_mean" in total:
                line += f", PSNR {total['psnr_mean']:.2f} dB on average, {total['psnr_min']:.2f} dB at worst"
            if total["not_representable"]:
                line += f"; {total['not_representable']} not representable in it"
            yield line

    def save(self, folder: str) -> None:
        """Writes the record of the dataset in `folder`. Raises OSError."""
        content = {
            "version": _VERSION,
            "dali_l3": __version__,
            **asdict(self.settings),
            "formats": self.totals(),
            "images": {path: _image_to_json(image) for path, image in sorted(self.images.items())},
        }
        write_atomically(os.path.join(folder, RECORD_NAME), json.dumps(content, indent=1).encode("ascii"))

    @classmethod
    def load(cls, folder: str) -> MixRecord | None:
        """Reads the record of the dataset in `folder`; returns None if there is none.

        Raises PlanError if it is damaged or of another version, OSError.
        """
        path = os.path.join(folder, RECORD_NAME)
        try:
            with open_regular(path) as file:
                content = json.loads(file.read())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, RecursionError) as error:
            raise PlanError(f"{path}: not JSON: {error}; {_CURE}") from error
        try:
            if content["version"] == _VERSION:
                return cls._from_json(content)
        except (AttributeError, KeyError, TypeError) as error:
            raise PlanError(f"{path}: not a valid record of a mix; {_CURE}") from error
        raise PlanError(f"{path}: of version {content['version']}; this version of dali_l3 reads {_VERSION}; {_CURE}")

    @classmethod
    def _from_json(cls, content: dict[str, Any]) -> MixRecord:
        mix = dict(content["mix"].items())
        images = {path: _image_from_json(entry, mix) for path, entry in content["images"].items()}
        # Records of versions without an option do not have it.
        later = {key: content[key] for key in ("palette", "resize") if key in content}
        return cls(MixSettings(mix, content["seed"], content["keep_suffix"], **later), images)


def _image_to_json(image: MixedImage) -> dict[str, str | int | float]:
    return {key: value for key, value in vars(image).items() if value is not None}


def _image_from_json(entry: dict[str, Any], mix: dict[str, int]) -> MixedImage:
    for key, value in entry.items():
        if not isinstance(value, _ENTRY_TYPES[key]):
            raise TypeError(f"{key}: {value!r}")
    image = MixedImage(**entry)
    if image.drawn not in mix:
        raise KeyError(image.drawn)
    return image


def refuse_mixed(folder: str) -> None:
    """Raises PlanError if `folder` holds a mixed dataset, in which other conversions would make duplicates."""
    if os.path.exists(os.path.join(folder, RECORD_NAME)):
        raise PlanError(f"{folder}: holds a mix ({RECORD_NAME}); continue it with --mix, or choose another folder")
