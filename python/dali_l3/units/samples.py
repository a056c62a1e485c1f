"""The samples of a source: files that belong together, from a folder or from tar shards."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import unquote_to_bytes

from ..errors import ConversionError
from ..images.signatures import IMAGE_SUFFIXES
from ..jobs.outcomes import Outcome
from ..jobs.planning import PlanError
from .storage import Entry, Storage

_L3 = ".l3"
_EXTENSIONS = {suffix[1:] for suffix in IMAGE_SUFFIXES | {_L3}}
_REPLACED = {"l3": IMAGE_SUFFIXES, "png": frozenset({_L3})}  # suffixes that give way to that of the format
_NUMBER = re.compile(rb"\d{1,18}")
_to_json = json.JSONEncoder(separators=(",", ":")).encode

Target = Literal["l3", "png"]
"""What images become: L3 files or, where L3 files are exported, PNG files. It is the suffix, too."""


@dataclass(frozen=True, slots=True)
class Member:
    """One file of a sample.

    extension: what follows the sample's key and a dot: "jpg", "seg.png"; may be empty for images of a folder
    path: of the file that holds it
    size: in bytes
    version: of the file that holds it, see `storage.Entry`
    offset: where it begins in the archive that holds it; None: it is a file of its own
    is_image: whether it is to be converted; else its bytes stay as they are
    """

    extension: str
    path: str
    size: int
    version: str
    offset: int | None = None
    is_image: bool = True


@dataclass(frozen=True, slots=True)
class Sample:
    """Files that are converted together, or not at all.

    key: their name without extension, as the output has it: "cats/0001"
    members: the image is the first
    label: what a further file, .cls, is going to hold; empty: there is none
    """

    key: str
    members: tuple[Member, ...]
    label: str = ""

    @property
    def size(self) -> int:
        """Bytes of all members."""
        return sum(member.size for member in self.members)

    @property
    def source(self) -> str:
        """How messages call it."""
        first = self.members[0]
        return first.path if first.offset is None else f"{first.path}: {self.key}.{first.extension}"

    def to_json(self) -> str:
        """One line, in ASCII."""
        members = [
            {
                "extension": member.extension,
                "path": member.path,
                "size": member.size,
                "version": member.version,
                "offset": member.offset,
                "is_image": member.is_image,
            }
            for member in self.members
        ]
        return _to_json({"key": self.key, "members": members, "label": self.label})

    @classmethod
    def from_json(cls, line: str | bytes) -> Sample:
        """Raises ValueError, KeyError or TypeError if the line is no sample."""
        content = json.loads(line)
        return cls(content["key"], tuple(Member(**member) for member in content["members"]), content["label"])


Listing = Iterator[Sample | Outcome]
"""Samples in the order of the source, and outcomes for files that belong to none."""


def files_of_folder(storage: Storage, folder: str) -> Listing:
    """Every file as a sample of its own, to be converted to a file of a folder."""
    for entry in storage.files(folder):
        if isinstance(entry, Outcome):
            yield entry
        else:
            stem, _, extension = entry.path.rpartition(".") if _has_suffix(entry.path) else (entry.path, "", "")
            member = Member(extension, os.path.join(folder, entry.path), entry.size, entry.version)
            yield Sample(stem, (member,))


def _has_suffix(path: str) -> bool:
    return len(os.path.splitext(path)[1]) > 1


def samples_of_folder(storage: Storage, folder: str) -> Listing:
    """Images with their companions, and with labels if all images are in folders that stand for classes.

    Files of one folder that share their names up to the first dot make a sample, as in tar shards. If none of them is
    an image by this name alone (0001.jpg), each image is a sample of its own, and dots in its name become underscores,
    for a dot would end the key. A label is the number of the top folder among all of them by name, as for readers.
    """
    classes = {name: str(number) for number, name in enumerate(storage.folders(folder))}
    samples = []
    for directory, entries in _by_directory(storage.files(folder)):
        groups: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            if isinstance(entry, Outcome):
                yield entry
            else:
                groups[os.path.basename(entry.path).partition(".")[0]].append(entry)
        for name, group in groups.items():
            if _is_reserved(os.path.join(directory, name)):
                reason = "a name with underscores that webdataset keeps for itself"
                yield from (Outcome(os.path.join(folder, entry.path), None, "skipped", reason) for entry in group)
                continue
            for found in _samples_of_group(folder, os.path.join(directory, name), group):
                if isinstance(found, Outcome):
                    yield found
                else:
                    samples.append(found)
    is_labelled = all("/" in sample.key for sample in samples)
    for sample in samples:
        has_label = any(member.extension == "cls" for member in sample.members)
        label = classes[sample.key.partition("/")[0]] if is_labelled and not has_label else ""
        yield Sample(sample.key, sample.members, label)


def _by_directory(found: Iterable[Entry | Outcome]) -> Iterator[tuple[str, list[Entry | Outcome]]]:
    """Cuts a listing into those of its folders. The listing goes through one folder after the other."""
    directory = ""
    entries: list[Entry | Outcome] = []
    for entry in found:
        if isinstance(entry, Entry) and os.path.dirname(entry.path) != directory:
            yield directory, entries
            directory, entries = os.path.dirname(entry.path), []
        entries.append(entry)
    yield directory, entries


def _is_reserved(key: str) -> bool:
    """Whether those who read shards pass a sample of that name over, as __meta__ is."""
    return any(len(part) >= 4 and part.startswith("__") and part.endswith("__") for part in key.split("/"))


def _samples_of_group(folder: str, key: str, group: list[Entry]) -> Listing:
    members = []
    for entry in group:
        path = os.path.join(folder, entry.path)
        extension = os.path.basename(path).partition(".")[2]
        if extension:
            members.append(Member(extension, path, entry.size, entry.version))
        else:
            yield Outcome(path, None, "skipped", "no suffix of an image")
    if any("." not in member.extension and is_image(member) for member in members):
        yield _sample(key, members)
        return
    for member in members:
        if is_image(member):
            stem, _, suffix = f"{os.path.basename(key)}.{member.extension}".rpartition(".")
            own_key = os.path.join(os.path.dirname(key), stem.replace(".", "_"))
            yield _sample(own_key, [replace(member, extension=suffix)])
        else:
            yield Outcome(member.path, None, "skipped", "belongs to no image")


def samples_of_archives(storage: Storage, archives: list[str]) -> Listing:
    """The samples of tar shards. If archives share keys, all keys get the names of their archives in front."""
    samples = [sample for archive in archives for sample in _samples_of_archive(storage, archive)]
    owners: dict[str, set[str]] = defaultdict(set)
    for archive, sample in samples:
        owners[sample.key].add(archive)
    if any(len(paths) > 1 for paths in owners.values()):
        common = os.path.commonpath([os.path.dirname(archive) for archive in archives])
        stems = {archive: os.path.relpath(archive, common).removesuffix(".tar") for archive in archives}
        samples = [(path, replace(sample, key=f"{stems[path]}/{sample.key}")) for path, sample in samples]
    for _, sample in samples:
        if ".." in sample.key.split("/"):
            yield Outcome(sample.source, None, "failed", "its name leads out of the folder")
        elif not any(map(is_image, sample.members)):
            yield Outcome(sample.source, None, "skipped", "the sample has no image")
        else:
            yield sample


def _samples_of_archive(storage: Storage, archive: str) -> Iterator[tuple[str, Sample]]:
    numbers: dict[str, int] = defaultdict(int)
    for names, members in _groups_of_archive(storage, archive):
        folder, _, base = names[-1].rpartition("/")
        stem = base.partition(".")[0]
        key = "/".join([part for part in folder.split("/") if part not in ("", ".")] + [stem])
        numbers[key] += 1
        if numbers[key] > 1:
            key += f"-{numbers[key]}"
        yield archive, _sample(key, members)


def members_of_archive(storage: Storage, archive: str) -> Iterator[tuple[str, Member]]:
    """The files of samples in a tar archive, with their names there."""
    for names, members in _groups_of_archive(storage, archive):
        yield from zip(names, members, strict=True)


def _groups_of_archive(storage: Storage, archive: str) -> Iterator[tuple[list[str], list[Member]]]:
    """The names of the files of each sample, and the files."""
    entry = storage.entry(archive)
    first, *lines = storage.index_of(archive).splitlines()
    is_quoted = b"names=percent" in first
    for line in lines:
        names, members = [], []
        words = line.split(b" ")
        if len(words) % 4:
            raise _bad_index(archive, line)
        for _, offset, size, word in zip(*[iter(words)] * 4, strict=True):
            are_numbers = _NUMBER.fullmatch(offset) and _NUMBER.fullmatch(size)
            if not are_numbers or int(offset) + int(size) > entry.size:
                raise _bad_index(archive, line)
            name = os.fsdecode(unquote_to_bytes(word) if is_quoted else word)
            extension = os.path.basename(name).partition(".")[2]
            names.append(name)
            members.append(Member(extension, archive, int(size), entry.version, int(offset)))
        yield names, members


def _bad_index(archive: str, line: bytes) -> ConversionError:
    """The error for an index that was found beside its archive: what is made from that is right."""
    return ConversionError(
        f"{archive}: the index beside it has the line {line[:80]!r}; make it anew with dali-l3 index --overwrite"
    )


def _sample(key: str, members: list[Member]) -> Sample:
    """A sample whose members are told apart: images, which come first, and others.

    An array (.npy) beside an image need not be one.
    """
    if len(members) == 1 and is_image(members[0]):
        return Sample(key, (members[0],))
    has_image = any(is_image(member) and not member.extension.endswith("npy") for member in members)
    told = [
        replace(member, is_image=is_image(member) and not (has_image and member.extension.endswith("npy")))
        for member in members
    ]
    return Sample(key, tuple(sorted(told, key=lambda member: (not member.is_image, "." in member.extension))))


def is_image(member: Member) -> bool:
    """Whether a file is one by its name."""
    return member.extension.rpartition(".")[2].lower() in _EXTENSIONS


def converting_l3_alone(sample: Sample) -> Sample:
    """The sample, of which only files that are L3 by their names are to be converted; other images stay as they are."""
    members = (replace(member, is_image=f".{member.extension}".lower().endswith(_L3)) for member in sample.members)
    return replace(sample, members=tuple(members))


def target_names(sample: Sample, format: Target, keep_suffix: bool) -> list[str]:
    """The names of the files that a sample becomes, in the order of its members; without that of its label.

    format: of what is converted
    keep_suffix: whether a.png becomes a.png.l3, not a.l3
    """
    return [_target_name(sample.key, member, format, keep_suffix) for member in sample.members]


def _target_name(key: str, member: Member, format: Target, keep_suffix: bool) -> str:
    name = f"{key}.{member.extension}" if member.extension else key
    stem, old = os.path.splitext(name)
    if not member.is_image or (format == "l3" and old.lower() == _L3):
        return name
    return (stem if old.lower() in _REPLACED[format] and not keep_suffix else name) + f".{format}"


def check_names(samples: Iterable[Sample], format: Target, keep_suffix: bool) -> None:
    """Raises PlanError if two files would get one name."""
    owners: dict[str, str] = {}
    collisions = []
    for sample in samples:
        for name in target_names(sample, format, keep_suffix) + [f"{sample.key}.cls"] * bool(sample.label):
            if name in owners:
                collisions.append(f"  {owners[name]}, {sample.source} -> {name}")
            owners[name] = sample.source
    if collisions:
        shown = "\n".join(collisions[:20] + [f"  and {len(collisions) - 20} more"] * (len(collisions) > 20))
        raise PlanError(f"several sources would become one file; rename them, or use --keep-suffix:\n{shown}")
