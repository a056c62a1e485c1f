"""Files changed at random, to find what readers do with damage that nobody thought of."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence

_NUMBERS = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def mutations(files: Sequence[bytes], count: int, seed: int = 0) -> Iterator[bytes]:
    """Yields `count` files, each one of `files` after one to eight changes, most of them near its start."""
    generator = random.Random(seed)
    for number in range(count):
        data = bytearray(files[number % len(files)])
        for _ in range(generator.choice((1, 1, 1, 2, 4, 8))):
            _change(data, generator)
        yield bytes(data)


def _change(data: bytearray, generator: random.Random) -> None:
    near = min(len(data), 200) if generator.random() < 0.6 else len(data)
    at, length = generator.randrange(near + 1), generator.randrange(1, 20)
    kind = generator.choice(("bit", "bit", "byte", "byte", "byte", "delete", "insert", "number", "copy", "end"))
    if kind == "bit":
        data[at : at + 1] = bytes(byte ^ 1 << generator.randrange(8) for byte in data[at : at + 1])
    elif kind == "byte":
        data[at : at + 1] = bytes((generator.choice((0, 1, 127, 128, 254, 255, generator.randrange(256))),))
    elif kind == "delete":
        del data[at : at + length]
    elif kind == "insert":
        data[at:at] = generator.randbytes(length)
    elif kind == "number":
        number = generator.choice((*_NUMBERS, generator.randrange(1 << 16), generator.randrange(1 << 32)))
        data[at : at + 4] = struct.pack(generator.choice("<>") + "I", number)
    elif kind == "copy":
        source = generator.randrange(len(data) + 1)
        data[at : at + length] = data[source : source + length]
    else:
        del data[at:]
