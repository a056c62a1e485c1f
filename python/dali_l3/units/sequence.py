"""Puts results into order, which workers deliver as they are ready."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from ..files import target_errors
from ..jobs.outcomes import Outcome

_HELD = 1 << 28  # bytes that wait in memory for their turn; more of them wait in a temporary file


def in_order(results: Iterable[Outcome], place_of: Callable[[Outcome], int], held: int = _HELD) -> Iterator[Outcome]:
    """Yields results by their places, which are 0, 1, 2, …; each as soon as those before it were there.

    If results before them are missing, further ones are never yielded.
    Raises TargetError, which names the folder for temporary files, if one cannot be written.
    """
    waiting: dict[int, Outcome | tuple[int, int]] = {}  # or where it lies in the file
    in_memory = turn = 0
    with _Spill() as spill:
        for result in results:
            place, size = place_of(result), result.target_size
            if place != turn and in_memory + size > held:
                waiting[place] = spill.put(result)
            else:
                waiting[place] = result
                in_memory += size
            while turn in waiting:
                item = waiting.pop(turn)
                if isinstance(item, tuple):
                    yield spill.take(*item)
                else:
                    in_memory -= item.target_size
                    yield item
                turn += 1


class _Spill:
    """Results in a temporary file without a name, of which nothing is left, however the process ends."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None

    def __enter__(self) -> _Spill:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file:
            self._file.close()

    def put(self, result: Outcome) -> tuple[int, int]:
        with target_errors(tempfile.gettempdir()):
            if not self._file:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115
            data = pickle.dumps(result)
            begin = self._file.seek(0, 2)
            self._file.write(data)
            self._file.flush()
            return begin, len(data)

    def take(self, begin: int, size: int) -> Outcome:
        assert self._file
        self._file.seek(begin)
        result: Outcome = pickle.loads(self._file.read(size))
        return result
