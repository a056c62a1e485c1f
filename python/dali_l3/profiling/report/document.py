"""All findings of the profiler, as JSON."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import machine, tables

if TYPE_CHECKING:
    from ..profiler import DatasetProfile


def to_json(profile: DatasetProfile) -> str:
    """`profile` as JSON, in ASCII, with the date, the machine and the command that follows the recommendation, if any.

    Objects have the fields of their dataclasses and their properties, such as a prediction's throughput and its limit.
    Throughput without a limit is null. Times are in seconds, sizes in bytes, speeds in images/s.
    """
    document = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "command": tables.command(profile),
        **_plain(profile),
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """`value` made of what JSON has."""
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value)]
        properties = [name for name, member in vars(type(value)).items() if isinstance(member, property)]
        return {name: _plain(getattr(value, name)) for name in fields + properties}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
