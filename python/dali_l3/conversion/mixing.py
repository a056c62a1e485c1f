"""Datasets in several formats: draws a format for each image, and plans their conversion."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from ..errors import ConversionError, TargetError
from ..images.formats import SOURCE, check_format, find_format
from ..images.resizing import Resize
from ..images.signatures import sniff_file
from ..images.stored import Palette
from ..jobs.outcomes import Outcomes
from ..jobs.planning import Conversion, Plan, PlanError, plan_tree
from ..jobs.walking import walk
from .apportioning import apportion
from .converting import TO_L3, conversion_to
from .keeping import keeping
from .mix_record import RECORD_NAME, MixedImage, MixRecord, MixSettings
from .sources import refuse_to_convert


def parse_mix(text: str) -> dict[str, int]:
    """Reads names of formats, as `find_format` takes them, or `source`, and their weights from text: "l3-fast:7,bmp:3".

    Raises ConversionError for any other text.
    """
    mix: dict[str, int] = {}
    for part in text.split(","):
        name, separator, weight = part.strip().partition(":")
        if not separator:
            raise ConversionError(f"mix: {part.strip()!r} is not a format and its weight, such as bmp:3")
        check_format(name)
        if not re.fullmatch("[1-9][0-9]{0,8}", weight):
            raise ConversionError(f"mix: the weight of {name} must be an integer from 1 to 999999999, not {weight!r}")
        if name in mix:
            raise ConversionError(f"mix: {name} occurs twice")
        mix[name] = int(weight)
    return mix


def draw(images: Iterable[str], mix: Mapping[str, int], seed: int, drawn: Mapping[str, str]) -> dict[str, str]:
    """Draws a format for each image; equal arguments give equal results, on every machine.

    In each folder, and in all of them, every format gets the floor or the ceiling of its exact share. The draw sorts
    by BLAKE2b hashes of the seed and the path: folders, to share out what rounding leaves, and the images of a folder,
    to deal out its formats.

    images: paths relative to the root, in any order
    mix: formats and weights, in any order
    drawn: the formats of images that were drawn before, and keep them; the others make up the proportions as far as
        they can
    """
    formats = sorted(mix)
    fresh: dict[str, list[str]] = defaultdict(list)
    taken: dict[str, Counter[str]] = defaultdict(Counter)
    result = {}
    for image in images:
        folder = os.path.dirname(image)
        if image in drawn:
            result[image] = drawn[image]
            taken[folder][drawn[image]] += 1
        else:
            fresh[folder].append(image)

    def position(path: str) -> bytes:
        return hashlib.blake2b(b"%d\0%b" % (seed, os.fsencode(path)), digest_size=16).digest()

    folders = sorted(fresh.keys() | taken.keys(), key=position)
    counts = apportion(
        [len(fresh[folder]) + taken[folder].total() for folder in folders],
        [mix[name] for name in formats],
        [[taken[folder][name] for name in formats] for folder in folders],
    )
    for folder, row in zip(folders, counts, strict=True):
        deck = (name for name, count in zip(formats, row, strict=True) for _ in range(count - taken[folder][name]))
        result.update(zip(sorted(fresh[folder], key=position), deck, strict=True))
    return result


def plan_mix(
    source: str,
    target: str,
    mix: Mapping[str, int],
    seed: int = 0,
    overwrite: bool = False,
    keep_suffix: bool = False,
    palette: Palette = "rgb",
    resize: Resize | None = None,
) -> tuple[Plan, MixRecord]:
    """Plans the conversion of the images of the tree `source` to the formats that are drawn for them.

    Works like `planning.plan`. Images that an earlier run recorded in `target` keep their formats. Returns the plan and
    the record, and writes nothing.

    mix: formats and their weights, see `parse_mix`
    palette, resize: as in `ReadOptions`, and the bounds of the images' sizes; the record refuses other choices in later
        runs

    Raises PlanError like `plan`, if `source` is not a folder, if `target` contains other files than those of a mix with
    the same settings, or if files shall stay as they are and yet be resized.
    """
    if not os.path.isdir(source):
        raise PlanError(f"{source}: " + ("a mix needs a folder" if os.path.exists(source) else "no such folder"))
    if resize and SOURCE in mix:
        raise PlanError(f"{resize}: files that stay as they are ({SOURCE} in the mix) cannot be resized")
    settings = MixSettings(dict(mix), seed, keep_suffix, palette, str(resize or ""))
    earlier = MixRecord.load(target)
    if earlier and earlier.settings != settings:
        raise PlanError(
            f"{target} was made with {earlier.settings}; continue with these settings, or choose another folder"
        )
    record = earlier or MixRecord(settings)

    def choose(files: list[str]) -> dict[str, Conversion]:
        if not earlier and walk(target).files:
            raise PlanError(f"{target}: holds files, but no {RECORD_NAME}; a mix needs a folder of its own")
        signatures = {path: signature for path in files if (signature := _signature(os.path.join(source, path)))}
        drawn = draw(signatures, mix, seed, {path: image.drawn for path, image in record.images.items()})
        for path, name in drawn.items():
            record.images.setdefault(path, MixedImage(name))
        return {
            path: _conversion_of(record.images[path], path, signature, SOURCE in mix)
            if (signature := signatures.get(path))
            else TO_L3
            for path in files
        }

    work = plan_tree(source, target, choose, overwrite, keep_suffix)
    for outcome in work.outcomes:
        if outcome.status == "kept":
            record.add(os.path.relpath(outcome.source, source), outcome)
    return work, record


def recorded(outcomes: Outcomes, record: MixRecord, source: str, target: str) -> Outcomes:
    """Passes on the outcomes of a plan from `plan_mix`, and saves the record before the first and at the end.

    Raises OSError if the record cannot be saved.
    """
    os.makedirs(target, exist_ok=True)
    record.save(target)  # a run that is killed leaves what was drawn
    saving: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    try:
        with contextlib.closing(outcomes):
            for outcome in outcomes:
                path = os.path.relpath(outcome.source, source)
                if outcome.status == "done" and path in record.images:  # not so if it became an image after the draw
                    record.add(path, outcome)
                yield outcome
    except TargetError:  # says why the record may not be saved either
        saving = contextlib.suppress(TargetError)
        raise
    finally:
        with saving:
            record.save(target)


def _signature(path: str) -> str | None:
    """The format of an image that can be converted, as `signatures.sniff` names it; None for other files."""
    try:
        signature = sniff_file(path)
        return signature if refuse_to_convert(path, signature) is None else None
    except OSError:  # the attempt to convert it will tell
        return None


def _conversion_of(image: MixedImage, path: str, signature: str, may_stay: bool) -> Conversion:
    """may_stay: whether files that cannot be converted stay as they are"""
    name = image.format or image.drawn
    as_it_is = keeping(os.path.splitext(path)[1], signature, TO_L3)
    if name == SOURCE:
        return as_it_is
    return _conversion_to(name, image.format is not None, as_it_is if may_stay else None)


@functools.cache
def _conversion_to(name: str, is_recorded: bool, otherwise: Conversion | None) -> Conversion:
    format = find_format(name)
    conversion = dataclasses.replace(conversion_to(format), otherwise=otherwise)
    if format.lossy and not is_recorded:  # the file's loss is unknown, for the run that wrote it was killed
        return dataclasses.replace(conversion, is_finished=lambda task: False)
    return conversion
