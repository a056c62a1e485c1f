"""Catalogues of datasets, which readers start from at once: made, selected from, described, compared, exported."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .errors import ConversionError, StorageError
from .files import open_regular, target_errors, writing
from .sizes import parse_size
from .units import objects
from .units.storage import find_storage, is_in_bucket
from .wording import counted

SUFFIX = ".l3cat"
"""What the names of catalogues end with."""

_ROWS = 1 << 16  # of an export, at a time
_THREADS = 8  # that look at files
_THREADS_FOR_BUCKETS = 16  # each waits for its answer
_RULE = re.compile(r"\s*(label|format|size)\s*(not\s+in|in|<=|>=|<|>)\s*(.+?)\s*", re.IGNORECASE)
_LISTING = ("file_root", "file_list", "file_filters", "label_columns")  # arguments that name files
_STORED = {  # arguments of an origin
    "catalogue": str,
    "companions": list,
    "ext": list,
    "file_filters": list,
    "file_list": str,
    "label_columns": int,
    "label_ext": str,
    "label_field": str,
    "missing_companions": list,
    "missing_component_behavior": str,
    "paths": list,
    "skip_bad": bool,
}
_COMPARISONS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


@dataclass(frozen=True)
class Source:
    """What a catalogue is made from: a folder, a list, shards or another catalogue.

    arguments: those of the readers that say which samples there are
    """

    kind: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Selection:
    """Which samples of a catalogue a part has: those of all rules, and of one of the other three at most.

    rules: such as "label in 1,2,7", "label not in 3", "format in L3,PNG", "size <= 1MB"
    names: a text file with a name on each line
    part: begin and end, from 0 to 1, of an order that is drawn by `seed` and holds the labels in proportion
    """

    rules: Sequence[str] = ()
    names: str | None = None
    part: tuple[float, float] | None = None
    seed: int = 0
    described: dict[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if (len(self.rules) > 0) + (self.names is not None) + (self.part is not None) > 1:
            raise ConversionError("--select, --names and --fraction exclude each other: make a part of a part")
        if not -(2**63) <= self.seed < 2**63:
            raise ConversionError(f"the seed {self.seed} is no integer of 64 bits")
        chosen = {"select": list(self.rules), "names": self.names, "fraction": self.part, "seed": self.seed}
        object.__setattr__(self, "described", {name: value for name, value in chosen.items() if value})

    def __bool__(self) -> bool:
        return bool(self.rules or self.names or self.part)


def is_catalogue(path: str) -> bool:
    """Whether a path is that of a catalogue, by its name."""
    return path.lower().endswith(SUFFIX)


def write(
    source: Source,
    path: str,
    selection: Selection = Selection(),
    root: str | None = None,
    threads: int | None = None,
) -> tuple[int, list[str]]:
    """Writes a catalogue, which appears when it is whole.

    root: where its readers find the files, if not where they are now; such as a bucket that they are copied to
    threads: that look at files

    Returns how many samples it has, and what its maker may not expect of the dataset, a line each.

    Raises ConversionError if the dataset cannot be listed or the selection does not suit it, or OSError.
    """
    _check_place(path)  # first, since to list a dataset may take long
    arguments, origin = dict(source.arguments), {"kind": source.kind, "arguments": _stored(source, path)}
    if selection:
        if source.kind != "catalogue":
            raise ConversionError("--select, --names and --fraction choose from a catalogue: make that first")
        origin["selection"] = selection.described
        arguments |= _subset(arguments["catalogue"], selection)
    places = [arguments.get("file_root"), arguments.get("file_list"), *arguments.get("paths", ())]
    threads = _threads(threads, *filter(None, places))
    with _errors():
        samples, problems = _core.write_catalogue(path, arguments, json.dumps(origin), root, threads, objects)
    return samples, problems


def facts(path: str) -> dict[str, Any]:
    """What a catalogue holds, ready for JSON: its checksums are compared.

    Raises ConversionError if it is damaged or none, or OSError.
    """
    with _errors():
        catalogue = _core.Catalogue(path)
        catalogue.check()
        known = catalogue.facts()
        labels = catalogue.labels() if known["has_labels"] and not known["label_columns"] else np.zeros(0, np.int32)
        formats = np.bincount(catalogue.formats(), minlength=len(_core.FORMATS))
        sizes = [int(catalogue.sizes(component).sum()) for component in range(1 + known["companions"])]
    return {
        "file": path,
        "samples": known["samples"],
        "root": known["root"] or os.curdir,
        "archives": len(known["archives"]),
        "companions": known["companions"],
        "labels": _kind_of_labels(known),
        "classes": len(np.unique(labels)),
        "formats": {name: int(count) for name, count in zip(_core.FORMATS, formats, strict=True) if count},
        "bytes": sizes,
        "file_size": os.path.getsize(path),
        "origin": _origin(known),
    }


def describe(known: dict[str, Any]) -> str:
    """The facts as lines of text."""
    formats = ", ".join(f"{count} {name}" for name, count in known["formats"].items())
    classes = f"{known['labels']}, {counted(known['classes'], 'class', 'classes')}"
    return "\n".join(
        (
            known["file"],
            f"  samples    {known['samples']}: {formats}",
            f"  files      {known['root']}" + (f", {counted(known['archives'], 'archive')}" * bool(known["archives"])),
            f"  labels     {classes if known['classes'] else known['labels']}",
            f"  companions {known['companions'] or 'none'}",
            f"  size       {counted(sum(known['bytes']), 'byte')} of files",
            f"  made from  {_described_origin(known['origin'])}",
        )
    )


def compare(path: str, threads: int | None = None) -> list[str]:
    """What has changed since a catalogue was made, a line each: files that are missing or have another size or format,
    and files that it does not have.

    threads: that look at files

    Raises ConversionError if it is damaged or none, StorageError if the storage of the files does not answer, or
    OSError.
    """
    with _errors():
        catalogue = _core.Catalogue(path)
        catalogue.check()
        known = catalogue.facts()
        threads = _threads(threads, known["root"])
        problems = catalogue.compare(threads, objects)
    try:
        problems += [f"{name}: is not in the catalogue" for name in _new(catalogue, known, path, threads)]
    except StorageError:
        raise
    except (RuntimeError, OSError) as error:
        problems.append(f"what it was made from cannot be listed: {error}")
    return problems


def export(path: str, target: str) -> int:
    """Writes a catalogue as a Parquet table, which appears when it is whole; returns the number of its rows.

    Its columns: ``name``, ``size`` (bytes), ``format``, ``label`` (int32, or a list of float32) if there are labels,
    ``offset`` in archives, and of each companion, from 1 on, ``companion_1``, ``companion_1_size``, …

    Raises ConversionError if the catalogue is damaged, or a name is not UTF-8; ModuleNotFoundError without pyarrow;
    OSError.
    """
    import pyarrow
    from pyarrow import parquet

    with _errors():
        catalogue = _core.Catalogue(path)
        catalogue.check()
    with target_errors(target), writing(target) as file:
        writer = None
        for columns in _batches(catalogue):
            try:
                table = pyarrow.table(columns)
            except UnicodeEncodeError as error:
                raise ConversionError(f"{path}: {error.object!a} is not UTF-8, which Parquet needs") from error
            writer = writer or parquet.ParquetWriter(file, table.schema)
            writer.write_table(table)
        if writer:
            writer.close()
    return len(catalogue)


def _batches(catalogue: _core.Catalogue) -> Iterator[dict[str, Any]]:
    known = catalogue.facts()
    numbers: dict[str, NDArray[Any]] = {"size": catalogue.sizes()}
    formats = catalogue.formats()
    if known["archives"]:
        numbers["offset"] = catalogue.offsets()
    if known["has_labels"]:
        numbers["label"] = catalogue.label_values() if known["label_columns"] else catalogue.labels()
    companions = range(1, 1 + known["companions"])
    sizes = {c: catalogue.sizes(c) for c in companions}
    for begin in range(0, len(catalogue), _ROWS):
        rows = slice(begin, begin + _ROWS)
        columns: dict[str, Any] = {"name": catalogue.names(begin, begin + _ROWS)}
        columns["format"] = [_core.FORMATS[number] for number in formats[rows]]
        for name, values in numbers.items():
            columns[name] = values[rows] if values.ndim == 1 else list(values[rows])
        for c in companions:
            columns[f"companion_{c}"] = catalogue.names(begin, begin + _ROWS, c)
            columns[f"companion_{c}_size"] = sizes[c][rows]
        yield columns


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """Turns what the core says about files, and about the number of threads, into ConversionError."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        raise ConversionError(str(error)) from error


def _check_place(path: str) -> None:
    """Raises ConversionError if no catalogue can be at a path."""
    if is_in_bucket(path):
        raise ConversionError(f"{path}: catalogues are mapped into memory: write it to a folder of this machine")
    folder = os.path.dirname(path) or os.curdir
    if not os.path.isdir(folder):
        raise ConversionError(f"{path}: there is no folder {folder}")


def _threads(wanted: int | None, *places: str) -> int:
    """How many threads look at files. Raises ConversionError if what reaches the bucket of a place is missing."""
    remote = [place for place in places if is_in_bucket(place)]
    for place in remote:
        find_storage(place)
    return wanted or (_THREADS_FOR_BUCKETS if remote else _THREADS)


def _kind_of_labels(known: dict[str, Any]) -> str:
    if not known["has_labels"]:
        return "none"
    return f"vectors of {counted(known['label_columns'], 'number')}" if known["label_columns"] else "integers"


def _stored(source: Source, path: str) -> dict[str, Any]:
    """The arguments as the catalogue at `path` stores them: a folder is its root, and archives are found from there."""
    arguments = {name: value for name, value in source.arguments.items() if name != "file_root"}
    if "file_list" in arguments:
        arguments["file_list"] = os.path.basename(arguments["file_list"])
    if "paths" in arguments:
        arguments["paths"] = [_seen_from(os.path.dirname(path), archive) for archive in arguments["paths"]]
    return arguments


def _seen_from(folder: str, path: str) -> str:
    """A path as a catalogue's root is stored: from its folder on, if both have a folder in common."""
    if is_in_bucket(path):
        return path
    path, folder = os.path.abspath(path), os.path.abspath(folder)
    if os.path.commonpath((path, folder)) == os.sep:
        return path
    relative = os.path.relpath(path, folder)
    if not relative.startswith(os.pardir):
        return relative
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return os.path.relpath(real, os.path.realpath(folder))  # else ".." might lead elsewhere


def _origin(known: dict[str, Any]) -> dict[str, Any]:
    """What `write` has stored, or nothing if somebody else has made the catalogue."""
    try:
        origin = json.loads(known["origin"])
    except (ValueError, RecursionError):
        return {}
    return origin if _is_origin(origin) else {}


def _is_origin(stored: Any) -> bool:
    """Whether this may be what `write` has stored."""
    if not isinstance(stored, dict):
        return False
    arguments, selection = stored.get("arguments"), stored.get("selection", {})
    return (
        isinstance(arguments, dict)
        and isinstance(selection, dict)
        and all(type(value) is _STORED.get(name) for name, value in arguments.items())
        and all(isinstance(item, str) for value in arguments.values() if isinstance(value, list) for item in value)
    )


def _described_origin(origin: dict[str, Any]) -> str:
    if not origin:
        return "unknown"
    chosen = {**origin["arguments"], **origin.get("selection", {})}
    kind = origin.get("kind")
    of_kind = kind if kind == "shards" else f"a {kind}"
    return ", ".join([of_kind, *(f"{name} {value}" for name, value in chosen.items())])


def _new(catalogue: _core.Catalogue, known: dict[str, Any], path: str, threads: int) -> list[str]:
    """The names of files of the source that a catalogue does not have; of archives, their paths."""
    origin = _origin(known)
    arguments = dict(origin.get("arguments", {}))
    if "paths" in arguments:
        listed = {os.path.abspath(os.path.join(known["root"], archive)) for archive in known["archives"]}
        folder = os.path.dirname(os.path.realpath(path) if os.path.islink(path) else path)
        paths = [archive if is_in_bucket(archive) else os.path.join(folder, archive) for archive in arguments["paths"]]
        return [archive for archive in _core.expand_paths(paths, objects) if os.path.abspath(archive) not in listed]
    if "file_list" in arguments:
        arguments["file_list"] = os.path.join(known["root"], arguments["file_list"])
    elif origin.get("kind") == "folder":
        arguments["file_root"] = known["root"] or os.curdir
    else:
        return []
    if not arguments.get("skip_bad"):  # which needs what is looked at, too
        arguments = {name: value for name, value in arguments.items() if name in _LISTING}
    return catalogue.new_files(arguments, threads, objects)


def _subset(path: str, selection: Selection) -> dict[str, Any]:
    """The arguments of a listing for a selection from the catalogue at `path`."""
    if selection.part:
        return {"subset_range": list(selection.part), "subset_seed": selection.seed}
    if selection.names:
        with open_regular(selection.names) as file:
            names = file.read().decode(errors="surrogateescape").split("\n")
        return {"subset_files": [name.strip() for name in names if name.strip()]}
    with _errors():
        catalogue = _core.Catalogue(path)
        chosen = np.ones(len(catalogue), bool)
        for rule in selection.rules:
            chosen &= _chosen(catalogue, rule)
    if not chosen.any():
        raise ConversionError(f"no sample of {path} is chosen by {' and '.join(selection.rules)}")
    return {"subset_indices": np.flatnonzero(chosen).tolist()}


def _chosen(catalogue: _core.Catalogue, rule: str) -> NDArray[np.bool_]:
    """Which samples a rule chooses. Raises ConversionError if it is none."""
    match = _RULE.fullmatch(rule)
    if not match:
        raise ConversionError(
            f"{rule!r} is no rule: write 'label in 1,2,7', 'label not in 3', 'format in L3,PNG' or 'size <= 1MB'"
        )
    name, operation, text = match[1].lower(), " ".join(match[2].lower().split()), match[3]
    if (name == "size") != (operation in _COMPARISONS):
        raise ConversionError(
            f"{rule!r} is no rule: label and format are in a list, and size is compared by <, <=, >, >="
        )
    if name == "size":
        try:
            return np.asarray(_COMPARISONS[operation](catalogue.sizes(), parse_size(text)), bool)
        except ValueError as error:
            raise ConversionError(f"{rule!r}: {error}") from error
    words = [word.strip() for word in text.split(",")]
    values = catalogue.formats() if name == "format" else _labels(catalogue)
    wanted = _format_numbers(rule, words) if name == "format" else _integers(rule, words)
    return np.isin(values, wanted, invert=operation == "not in")


def _labels(catalogue: _core.Catalogue) -> NDArray[np.int32]:
    known = catalogue.facts()
    if not known["has_labels"] or known["label_columns"]:
        raise ConversionError("the labels of this catalogue are no integers to select by")
    return catalogue.labels()


def _integers(rule: str, words: list[str]) -> list[int]:
    try:
        return [int(word) for word in words]
    except ValueError as error:
        raise ConversionError(f"{rule!r}: labels are integers, with commas between them") from error


def _format_numbers(rule: str, words: list[str]) -> list[int]:
    numbers = {name.lower(): number for number, name in enumerate(_core.FORMATS)}
    unknown = [word for word in words if word.lower() not in numbers]
    if unknown:
        raise ConversionError(f"{rule!r}: there is no format {unknown[0]}; formats are {', '.join(_core.FORMATS)}")
    return [numbers[word.lower()] for word in words]
