"""The command `dali-l3 info`."""

from __future__ import annotations

import itertools
import json
import mmap
import os
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from .. import catalogues
from ..codec import peek, read_metadata
from ..errors import ConversionError, L3Error
from ..files import open_regular
from ..images.signatures import sniff_file
from ..jobs.display import printable
from ..jobs.outcomes import Outcome, Task, failure
from ..jobs.planning import PlanError
from ..jobs.walking import scan
from ..wording import counted
from .common import EXIT_FAILED, complain


def info(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="L3 files, folders with L3 files, or catalogues.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON per file.")] = False,
) -> None:
    """Show what L3 files, and catalogues of datasets, contain.

    Reads headers and metadata but does not decode pixels; use verify for that. Exits with 1 if any file cannot be read.

    Examples:

    \b
    dali-l3 info photo.l3
    dali-l3 info --json train-l3/ | jq .width
    dali-l3 info train.l3cat
    """
    shown = failed = False
    for item in itertools.chain.from_iterable(map(_facts_below, paths)):
        if isinstance(item, Outcome):
            failed = True
            complain(f"{item.source}: {item.reason}")
        else:
            shown = True
            print(json.dumps(item) if as_json else _describe(item))
    if failed:
        raise typer.Exit(EXIT_FAILED)
    if not shown:
        raise PlanError(f"no L3 files in {', '.join(paths)}")


def _facts_below(path: str) -> Iterator[dict[str, Any] | Outcome]:
    """The facts about the file `path`, or about each L3 file in that folder; failures in place of those without."""
    if not os.path.isdir(path):
        yield _facts(path)
        return
    for found in scan(path):
        if isinstance(found, Outcome):
            if found.status == "failed":
                yield found
        elif not found.is_folder:
            file = os.path.join(path, found.path)
            if _is_l3(file):
                yield _facts(file)


def _is_l3(path: str) -> bool:
    """Whether a file in a folder is an L3 file, by its name or its content."""
    if path.lower().endswith(".l3"):
        return True
    try:
        return sniff_file(path) == "L3"
    except OSError:
        return False


def _facts(path: str) -> dict[str, Any] | Outcome:
    """What `info` shows, ready for JSON, or a failure."""
    try:
        return catalogues.facts(path) if catalogues.is_catalogue(path) else _inspect(path)
    except (OSError, L3Error, ConversionError) as error:
        return failure(Task(path), error)


def _inspect(path: str) -> dict[str, Any]:
    """The facts about an L3 file. Raises OSError, L3Error."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        # Mapped, so that nothing is read but the header, the tables and the metadata. An empty file cannot be.
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    facts = peek(data)
    metadata = read_metadata(data)
    raw_size = facts.width * facts.height * facts.channels * facts.dtype.itemsize
    return {
        "file": path,
        "width": facts.width,
        "height": facts.height,
        "channels": facts.channels,
        "dtype": facts.dtype.name,
        "dali_dtype": facts.dtype.name.upper(),
        "shape": list(facts.shape),
        "profile": facts.profile,
        "version": facts.version,
        "prototype": facts.prototype,
        "tiles": facts.tiles,
        "has_checksums": facts.has_checksums,
        "metadata": {key: len(value) for key, value in metadata.items()},
        "payload_size": facts.payload_size,
        "file_size": size,
        "raw_size": raw_size,
    }


def _describe(facts: dict[str, Any]) -> str:
    """The facts as lines of text."""
    if "samples" in facts:
        return "\n".join(map(printable, catalogues.describe(facts).split("\n")))
    format_name = (
        "published prototype" if facts["prototype"] else f"version {facts['version']}, profile {facts['profile']}"
    )
    metadata = ", ".join(f"{printable(key)} ({counted(size, 'byte')})" for key, size in facts["metadata"].items())
    file_size, raw_size = counted(facts["file_size"], "byte"), counted(facts["raw_size"], "byte")
    ratio = facts["file_size"] / facts["raw_size"]
    return "\n".join(
        (
            printable(facts["file"]),
            f"  image      {facts['width']} x {facts['height']} pixels of {facts['channels']} x {facts['dtype']}",
            f"  in DALI    {_in_dali(facts)}",
            f"  format     {format_name}",
            f"  tiles      {facts['tiles']}, {'with' if facts['has_checksums'] else 'without'} checksums",
            f"  metadata   {metadata or 'none'}",
            f"  size       {file_size}, {ratio:.3f} of the {raw_size} of pixels",
        )
    )


def _in_dali(facts: dict[str, Any]) -> str:
    """What to tell DALI's decoders, so that they keep all bits."""
    default = "the default" if facts["dali_dtype"] == "UINT8" else "the default, UINT8, keeps 8 of the 16 bits"
    return f"dtype=types.{facts['dali_dtype']} ({default})"
