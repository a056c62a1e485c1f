"""The search for the best ratio of two formats by measurements (Liquid, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

TENTHS = 10


@dataclass(frozen=True)
class Step:
    """A measured ratio.

    encoded: tenths of the images in the encoded format, the one that takes less loading and more decoding
    load, decode: images/s of loading and of decoding by themselves
    """

    encoded: int
    load: float
    decode: float

    @property
    def throughput(self) -> float:
        """Images/s: the slower of the two sets the pace."""
        return min(self.load, self.decode)

    @property
    def ratio(self) -> str:
        """As encoded:raw."""
        return f"{self.encoded}:{TENTHS - self.encoded}"


@dataclass(frozen=True)
class RatioSearch:
    """The result of the search.

    steps: all that it measured, in this order
    halvings: how many of the steps halved the range; the others compare what was left with its neighbours
    """

    steps: list[Step]
    halvings: int

    @property
    def best(self) -> Step:
        """The fastest; of equally fast ratios, the one with more encoded images, which take less disk space."""
        return _fastest(self.steps)


def search_ratio(measure: Callable[[int], tuple[float, float]]) -> RatioSearch:
    """Finds the ratio at which loading and decoding are equally fast, or as nearly as tenths allow.

    Halves the range from 0:10 to 10:0 (encoded:raw): where loading is the slower side, more images have to be encoded,
    else fewer. (The paper's text discards the other half, by which it would move away from the balance.) Then measures
    the two ratios that are left and the neighbours of the faster, and goes on while a neighbour is faster still. No
    ratio is measured twice. Six measurements are enough where more encoded images make loading faster and decoding
    slower; where they do not, the walk along the neighbours may take all eleven.

    measure: takes tenths of encoded images, returns images/s of loading and of decoding
    """
    steps: dict[int, Step] = {}

    def step(encoded: int) -> Step:
        if encoded not in steps:
            steps[encoded] = Step(encoded, *measure(encoded))
        return steps[encoded]

    low, high = 0, TENTHS
    while high - low > 1:
        middle = step((low + high) // 2)
        if middle.load < middle.decode:
            low = middle.encoded
        else:
            high = middle.encoded
    halvings = len(steps)
    best = _fastest([step(low), step(high)])
    while True:
        for neighbour in (best.encoded - 1, best.encoded + 1):
            if 0 <= neighbour <= TENTHS:
                step(neighbour)
        before, best = best, _fastest(steps.values())
        if best is before:
            return RatioSearch(list(steps.values()), halvings)


def _fastest(steps: Iterable[Step]) -> Step:
    return max(steps, key=lambda step: (step.throughput, step.encoded))
