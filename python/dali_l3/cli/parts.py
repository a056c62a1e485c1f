"""`--part I/N`: one of several runs that share the work, and need not know of each other."""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import dataclass
from typing import Annotated

import typer

from ..jobs.outcomes import Outcome, Task
from ..jobs.planning import Plan, PlanError

PartOption = Annotated[
    str | None,
    typer.Option(
        "--part",
        metavar="I/N",
        help="Do the I-th of N parts of the work, 1/N to N/N; run them in any order, anywhere.",
    ),
]


@dataclass(frozen=True)
class Part:
    """index: of the part, 1 … count"""

    index: int
    count: int

    def takes(self, number: int) -> bool:
        """Whether what has this number is in the part."""
        return number % self.count == self.index - 1

    def of(self, work: Plan) -> Plan:
        """The files that are in the part, by their names: whatever is done already, each is in the same part."""
        tasks = [task for task in work.tasks if self._has(task)]
        outcomes = [outcome for outcome in work.outcomes if self._has(outcome)]
        return Plan(tasks, outcomes, work.folders)

    def _has(self, item: Task | Outcome) -> bool:
        return self.takes(zlib.crc32(os.fsencode(item.source)))


WHOLE = Part(1, 1)


def parse_part(text: str | None) -> Part:
    """Reads "3/16"; None is the whole. Raises PlanError for any other text."""
    if text is None:
        return WHOLE
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if match and 1 <= int(match[1]) <= int(match[2]):
        return Part(int(match[1]), int(match[2]))
    raise PlanError(f"--part {text}: write the number of the part and how many there are, such as 1/16 … 16/16")
