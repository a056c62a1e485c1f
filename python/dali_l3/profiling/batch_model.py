"""The model of batches: how long they take to load and to decode, and how long both wait for each other.

Averages do not tell it. A batch ends with its last thread, which may have begun a slow image when the others had
nothing left to do. And the reader is only a few batches ahead, so that it waits if some take long to decode, and
decoding waits if some take long to load. So this draws batches and follows them through the pipeline.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_IMAGES = 24576  # to draw, about
_LEAST, _MOST = 100, 8000  # batches
_AHEAD = 3  # batches: two are loaded while one is decoded, csrc/loader/engine.h


@dataclass(frozen=True)
class Batches:
    """How a pipeline decodes batches.

    size: images
    threads: that decode them, an image each; 1 where a batch takes the sum of its images, as on a GPU
    pixels: sizes of images that stand for the dataset, in any unit; decoding takes time in proportion
    """

    size: int
    threads: int
    pixels: tuple[float, ...] = (1.0,)


def simulate(
    shares: Mapping[str, float],
    load: Mapping[str, float],
    decode: Mapping[str, float],
    turns: Mapping[str, int],
    batches: Batches,
) -> tuple[float, float]:
    """The seconds per image of decoding by itself, and of loading and decoding side by side.

    shares: of the formats in the images, summing to 1
    load, decode: seconds per image by format, as measured with batches of this format alone
    turns: of formats whose images are handed out before (lower) or after those of others; the largest of a turn first
    """
    places, pixels = _draw(batches)
    formats = np.searchsorted(np.cumsum([*shares.values()])[:-1], places, side="right")
    turn = np.array([turns[name] for name in shares])[formats]
    order = np.argsort(turn * (pixels.max() + 1) - pixels, axis=1, kind="stable")
    seconds = pixels * np.array([decode[name] for name in shares])[formats]
    decoding = makespans(np.take_along_axis(seconds, order, axis=1), batches.threads)
    loading = np.array([load[name] for name in shares])[formats].sum(axis=1)
    return float(decoding.mean()) / batches.size, steady_seconds(loading, decoding) / batches.size


def makespans(seconds: NDArray[np.float64], threads: int) -> NDArray[np.float64]:
    """The time of each batch, (N,), from those of its images, (N, batch size): a thread that is done takes the next."""
    busy = np.zeros((len(seconds), min(threads, seconds.shape[1])))
    rows = np.arange(len(seconds))
    for image in seconds.T:
        busy[rows, busy.argmin(axis=1)] += image
    result: NDArray[np.float64] = busy.max(axis=1)
    return result


def steady_seconds(loading: Sequence[float] | NDArray[Any], decoding: Sequence[float] | NDArray[Any]) -> float:
    """The average time from batch to batch, from those of loading and of decoding each.

    Batches are loaded one after the other, and decoded likewise. At most three are loaded and not yet decoded. The
    first tenth, with which the pipeline fills, does not count.
    """
    loaded = 0.0
    decoded = [0.0] * _AHEAD  # when each batch was
    for load, decode in zip(map(float, loading), map(float, decoding), strict=True):
        loaded = max(loaded, decoded[-_AHEAD]) + load
        decoded.append(max(loaded, decoded[-1]) + decode)
    ends = decoded[_AHEAD:]
    skipped = len(ends) // 10
    return (ends[-1] - ends[skipped]) / (len(ends) - 1 - skipped)


@functools.cache
def _draw(batches: Batches) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Batches of images, (N, batch size): places from 0 to 1 that stand for formats, and sizes relative to the average.

    The readers give every batch the same share of each format, as near as whole images allow: so the places are evenly
    spaced, from a start that differs from batch to batch. The draws are always the same, so that mixes that differ
    little have speeds that differ little. Sizes are such that batches of one format take as long as they were measured.
    """
    count = min(max(_IMAGES // batches.size, _LEAST), _MOST)
    random = np.random.default_rng(0)
    starts = (random.permutation(count) + 0.5) / count
    places = random.permuted((np.arange(batches.size) + starts[:, None]) / batches.size, axis=1)
    pixels = np.resize(np.asarray(batches.pixels, dtype=float), places.size)
    pixels = random.permutation(pixels).reshape(places.shape)
    alone = makespans(-np.sort(-pixels, axis=1), batches.threads).mean()
    return places, pixels * (batches.size / alone)
