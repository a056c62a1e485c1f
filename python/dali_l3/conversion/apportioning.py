"""Divides the images of folders among formats, so that every folder and the whole tree hold the proportions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence


def apportion(sizes: Sequence[int], weights: Sequence[int], taken: Sequence[Sequence[int]]) -> list[list[int]]:
    """Divides folders of images among formats in the proportions of `weights`.

    Every count, and every format's total over all folders, is the floor or the ceiling of its exact share: the
    controlled rounding of a table, which always exists. If `taken` rules this out, counts are as close to it as
    moving single images between formats can bring them.

    sizes: images in each folder
    weights: one for each format, positive
    taken: for each folder, the number of images that each format already has, in all at most the folder's size

    Returns a count for each folder and format. A folder's counts sum to its size, and none is below what is taken.
    """
    whole = sum(weights)
    table = [
        _Folder([size * weight for weight in weights], whole, counts, size)
        for size, counts in zip(sizes, taken, strict=True)
    ]
    behind = [0] * len(weights)
    for folder in table:
        folder.fill(behind)
    _balance(table, [sum(sizes) * weight for weight in weights], whole)
    return [folder.counts for folder in table]


class _Folder:
    """The counts of a folder, and their bounds. `shares` are the exact counts, in units of 1 / `whole`."""

    def __init__(self, shares: list[int], whole: int, taken: Sequence[int], size: int) -> None:
        self.shares, self.whole, self.size = shares, whole, size
        self.upper = [max(_ceil(share, whole), count) for share, count in zip(shares, taken, strict=True)]
        self.lower = [max(share // whole, count) for share, count in zip(shares, taken, strict=True)]
        if sum(self.lower) > size:
            self.lower = list(taken)
        self.counts = list(self.lower)

    def fill(self, behind: list[int]) -> None:
        """Gives the images beyond the lower bounds to the formats that are furthest behind.

        behind: what each format lacks of its share in the folders so far, in units of 1 / `whole`; updated.
        """
        for format, share in enumerate(self.shares):
            behind[format] += share - self.whole * self.counts[format]
        for _ in range(self.size - sum(self.counts)):
            open_formats = [format for format, count in enumerate(self.counts) if count < self.upper[format]]
            format = max(open_formats, key=behind.__getitem__)
            self.counts[format] += 1
            behind[format] -= self.whole


def _balance(table: list[_Folder], shares: list[int], whole: int) -> None:
    """Moves single images between formats, within the folders' bounds, until the totals are right too.

    Filling folder by folder seldom leaves anything to do here, but sometimes it does, from five formats on or so.
    """

    def having(condition: Callable[[int, int], bool]) -> set[int]:
        """The formats whose total and share meet the condition."""
        totals = (sum(folder.counts[format] for folder in table) for format in range(len(shares)))
        return {format for format, pair in enumerate(zip(totals, shares, strict=True)) if condition(*pair)}

    while True:
        moves = _moves(
            table,
            having(lambda total, share: total > _ceil(share, whole)),
            having(lambda total, share: total < _ceil(share, whole)),
        ) or _moves(
            table,
            having(lambda total, share: total > share // whole),
            having(lambda total, share: total < share // whole),
        )
        if not moves:
            return
        for folder, giver, taker in moves:
            folder.counts[giver] -= 1
            folder.counts[taker] += 1


def _moves(table: list[_Folder], givers: set[int], takers: set[int]) -> list[tuple[_Folder, int, int]]:
    """The fewest moves that take an image from one of `givers` and give one to one of `takers`; none if impossible.

    A move (folder, giver, taker) changes the format of one image. They form a path in the graph of formats.
    """
    if not givers or not takers:
        return []
    reached: dict[int, tuple[_Folder, int] | None] = dict.fromkeys(givers)
    queue = deque(givers)
    while queue:
        giver = queue.popleft()
        for folder in table:
            if folder.counts[giver] == folder.lower[giver]:
                continue
            for taker, count in enumerate(folder.counts):
                if taker in reached or count == folder.upper[taker]:
                    continue
                reached[taker] = (folder, giver)
                queue.append(taker)
                if taker in takers:
                    return _path(reached, taker)
    return []


def _path(reached: dict[int, tuple[_Folder, int] | None], taker: int) -> list[tuple[_Folder, int, int]]:
    moves = []
    while step := reached[taker]:
        folder, giver = step
        moves.append((folder, giver, taker))
        taker = giver
    return moves


def _ceil(share: int, whole: int) -> int:
    return -(-share // whole)
