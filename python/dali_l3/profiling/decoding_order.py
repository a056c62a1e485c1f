"""The order in which `fn.decoders.image` hands out the images of a batch to threads of the CPU.

nvImageCodec sorts them: by the chroma subsampling that the parser of their format reports, those without any first, and
within the same by size, the largest first. Threads take them one by one. (Its `ImageGenericDecoder::sortSamples`, of
version 0.9.) The parser of L3 files makes them come last.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable

from ..images.signatures import sniff_file

_TURNS = {"JPEG": 1, "L3": 2}
"""By signature. JPEG files count as subsampled: those that are not come first, too."""


def turn_of(paths: Iterable[str]) -> int:
    """When it is the turn of image files, those with lower numbers first: that of most of them."""
    turns = collections.Counter(_TURNS.get(sniff_file(path) or "", 0) for path in paths)
    return max(turns, key=lambda turn: turns[turn], default=0)
