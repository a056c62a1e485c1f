"""The choice of a mix: what is worth its space.

A gain within the spread of the measurements is none, and beyond that it may cost more space than it is worth. So the
smallest of the mixes that are fast enough is recommended, and the others that nothing beats are there to choose from.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from .cost_model import Conditions, FormatCosts, Prediction, predict
from .mixing_program import best_shares, fits, to_weights
from .ratio_search import TENTHS

Preference = Literal["speed", "space"]

MARGINS: Mapping[Preference, float] = {"speed": 0.02, "space": 0.1}
"""The part of the highest speed that a recommendation may lack, by what is preferred."""

_SHOWN = 6  # choices, about
_MOST_MIXED = 3  # formats: of more, there are too many mixes


@dataclass(frozen=True)
class Mix:
    """A mix of formats and what the model says about it.

    weights: integers
    bytes: of the dataset, estimated
    spread: of the measurements that the prediction is made from, relatively: half the distance of the quartiles
    """

    weights: Mapping[str, int]
    prediction: Prediction
    bytes: int
    spread: float = 0.0

    def __str__(self) -> str:
        """As `dali-l3 convert --mix` takes it."""
        return ",".join(f"{name}:{weight}" for name, weight in self.weights.items())


@dataclass(frozen=True)
class Choice:
    """What is recommended, and what else there is.

    recommended: the smallest mix that is nearly as fast as the fastest
    margin: the part of the highest speed that it may lack
    front: mixes that no other beats in both speed and space, from the smallest to the fastest, with the recommended
    """

    recommended: Mix
    margin: float
    front: list[Mix]


def choose(
    costs: Mapping[str, FormatCosts],
    conditions: Conditions,
    spreads: Mapping[str, float] | None = None,
    prefer: Preference = "space",
) -> Choice:
    """Chooses among all mixes in tenths, and the one of the linear program.

    spreads: of the measurements of a format, relatively

    Mixes that take more than `conditions.max_bytes` do not count; if all do, the format with the smallest files is
    recommended.
    """
    front = _front([make_mix(weights, costs, conditions, spreads) for weights in _candidates(costs, conditions)])
    fastest = front[-1]

    def margin(mix: Mix) -> float:
        return max(MARGINS[prefer], mix.spread, fastest.spread)

    recommended = next(mix for mix in front if _seconds(fastest) >= (1 - margin(mix)) * _seconds(mix))
    return Choice(recommended, margin(recommended), _thinned(front, recommended))


def make_mix(
    weights: Mapping[str, int],
    costs: Mapping[str, FormatCosts],
    conditions: Conditions,
    spreads: Mapping[str, float] | None = None,
) -> Mix:
    """A mix, and what it reaches."""
    total = sum(weights.values())
    shares = {name: weight / total for name, weight in weights.items()}
    size = conditions.images * sum(share * costs[name].image_bytes for name, share in shares.items())
    spread = sum(share * spreads[name] for name, share in shares.items()) if spreads else 0.0
    return Mix(weights, predict(shares, costs, conditions), round(size), spread)


def _candidates(costs: Mapping[str, FormatCosts], conditions: Conditions) -> Iterator[dict[str, int]]:
    program = to_weights(best_shares(costs, conditions), costs, conditions)
    yield program if len(program) > 1 else dict.fromkeys(program, 1)
    for number in range(1, min(len(costs), _MOST_MIXED) + 1):
        for names in itertools.combinations(costs, number):
            for weights in _compositions(TENTHS, number) if number > 1 else [(1,)]:
                total = sum(weights)
                if fits({name: part / total for name, part in zip(names, weights, strict=True)}, costs, conditions):
                    yield dict(zip(names, weights, strict=True))


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write `total` as a sum of positive integers."""
    for bars in itertools.combinations(range(1, total), parts - 1):
        yield tuple(high - low for low, high in itertools.pairwise((0, *bars, total)))


def _front(mixes: list[Mix]) -> list[Mix]:
    """The mixes that are faster than all that are no larger, from the smallest to the fastest."""
    front: list[Mix] = []
    for mix in sorted(mixes, key=lambda mix: (mix.bytes, _seconds(mix))):
        if not front or _seconds(mix) < _seconds(front[-1]):
            front.append(mix)
    return front


def _thinned(front: list[Mix], recommended: Mix) -> list[Mix]:
    """The smallest, the recommended, the fastest, and what is notably faster than the one before."""
    fastest = front[-1]
    whole = _seconds(front[0]) / _seconds(fastest) if _seconds(fastest) else 1.0
    shown = [front[0]]
    for mix in front[1:]:
        step = max(1 + mix.spread, 1 + shown[-1].spread, whole ** (1 / _SHOWN))
        if mix in (recommended, fastest) or _seconds(shown[-1]) >= step * _seconds(mix):
            shown.append(mix)
    return shown


def _seconds(mix: Mix) -> float:
    """Per image; 0 without a limit."""
    return 1 / mix.prediction.throughput
