"""Datasets that are listed in a table: CSV or Parquet files with named columns."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Sequence
from typing import Any

from .files import open_regular
from .wording import counted


def read_table(
    path: str | os.PathLike[str],
    image: str = "image",
    labels: str | Sequence[str] | None = None,
    companions: str | Sequence[str] = (),
) -> dict[str, Any]:
    """Reads a table of samples, for the readers: ``fn.readers.liquid(file_root=…, **read_table("train.csv", …))``.

    Args:
        path: A CSV file, whose first line names the columns, or, if the name ends in ``.parquet``, a Parquet file, for
            which pyarrow must be installed.
        image: Name of the column with the paths of the images, relative to the reader's `file_root`.
        labels: Name of the column with the labels, or names of several. A column of integers gives integer labels, as
            the readers deliver by default; other numbers, several columns, and lists of numbers in Parquet files give
            float32 vectors. None: the readers number the samples.
        companions: Name of the column with the paths of companions, or names of several. An empty value is a companion
            that is missing.

    Returns:
        The arguments `files` and, as asked for, `labels` or `label_values` and `label_columns`, and `companion_files`.

    Raises:
        OSError: The file cannot be read.
        ValueError: It has no such column, or several, or no rows; it is not UTF-8 text; a row has more values than
            columns; a path is empty; a label is not a number, or labels differ in length. The message names the file,
            the row and the column.
        ModuleNotFoundError: pyarrow is not installed.
    """
    path = os.fspath(path)
    label_names = [labels] if isinstance(labels, str) else list(labels or ())
    companion_names = [companions] if isinstance(companions, str) else list(companions)
    wanted = [image, *label_names, *companion_names]
    columns = _read_parquet(path, wanted) if path.lower().endswith(".parquet") else _read_csv(path, wanted)
    files = [_path(path, row, image, value) for row, value in enumerate(columns[image], 1)]
    if not files:
        raise ValueError(f"{path}: the table has no rows")
    arguments: dict[str, Any] = {"files": files}
    if len(label_names) == 1 and (integers := _integers(columns[label_names[0]])) is not None:
        arguments["labels"] = integers
    elif label_names:
        vectors = _vectors(path, label_names, columns)
        arguments["label_columns"] = len(vectors[0])
        arguments["label_values"] = [number for vector in vectors for number in vector]
    if companion_names:
        rows = zip(*(columns[name] for name in companion_names), strict=True)
        arguments["companion_files"] = [str(value or "") for values in rows for value in values]
    return arguments


def _read_csv(path: str, wanted: list[str]) -> dict[str, list[Any]]:
    with open_regular(path) as binary, io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        try:
            _check_columns(path, wanted, reader.fieldnames or ())
            rows = list(reader)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not a text file in UTF-8: {error}") from error
        except csv.Error as error:
            raise ValueError(f"{path}, line {reader.line_num}: {error}") from error
    for number, row in enumerate(rows, 1):
        if reader.restkey in row:
            raise ValueError(f"{path}, row {number}: more values than columns; quote those that hold a comma")
    return {name: [row[name] for row in rows] for name in wanted}


def _read_parquet(path: str, wanted: list[str]) -> dict[str, list[Any]]:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("pyarrow is not installed, try: pip install pyarrow", name=error.name) from error
    open_regular(path).close()  # else pyarrow would wait for what comes through a FIFO
    try:
        _check_columns(path, wanted, parquet.read_schema(path).names)
        table = parquet.read_table(path, columns=list(dict.fromkeys(wanted)))
    except ArrowInvalid as error:
        raise ValueError(f"{path}: {error}") from error
    return {name: table.column(name).to_pylist() for name in wanted}


def _check_columns(path: str, wanted: Sequence[str], present: Sequence[str]) -> None:
    if not present:
        raise ValueError(f"{path}: the table is empty")
    for name in wanted:
        if name not in present:
            hint = "; commas separate columns" if len(present) == 1 and re.search("[;\t]", present[0]) else ""
            raise ValueError(f"{path}: there is no column {name!r}, only {', '.join(map(repr, present))}{hint}")
        if present.count(name) > 1:
            raise ValueError(f"{path}: there are several columns {name!r}")


def _path(path: str, row: int, column: str, value: Any) -> str:
    if not value:
        raise ValueError(f"{path}, row {row}, column {column!r}: the path is empty")
    return str(value)


def _vectors(path: str, names: list[str], columns: dict[str, list[Any]]) -> list[list[float]]:
    """The numbers of each row."""
    vectors: list[list[float]] = []
    for row, values in enumerate(zip(*(columns[name] for name in names), strict=True), 1):
        vector: list[float] = []
        for name, value in zip(names, values, strict=True):
            items = value if isinstance(value, list) else [value]
            vector += (_number(path, row, name, item) for item in items)
        if not vector or vectors and len(vector) != len(vectors[0]):
            before = f", but row 1 has {len(vectors[0])}" if vectors else ""
            raise ValueError(f"{path}, row {row}: the label has {counted(len(vector), 'number')}{before}")
        vectors.append(vector)
    return vectors


def _number(path: str, row: int, column: str, value: Any) -> float:
    if value is None or value == "":
        raise ValueError(f"{path}, row {row}, column {column!r}: there is no value")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{path}, row {row}, column {column!r}: {value!r} is not a number; give classes numbers first"
        ) from None


def _integers(values: list[Any]) -> list[int] | None:
    """The values as integers that labels can be; None unless all are."""
    try:
        integers = [int(value) for value in values if not isinstance(value, (float, bool))]
    except (TypeError, ValueError):
        return None
    fits = len(integers) == len(values) and all(-(2**31) <= value < 2**31 for value in integers)
    return integers if fits else None
