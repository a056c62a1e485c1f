"""CCITT's codes for bilevel images (ITU-T T.4 and T.6) to bits, strictly.

The decoders of the image libraries make up what is missing: they fill rows that are cut off or wrong with white, and
do not tell. Here every row must have its width, and every code must be one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

RLE, GROUP_3, GROUP_4 = 2, 3, 4
"""Values of Compression."""

_TWO_DIMENSIONAL, UNCOMPRESSED_MODE = 1, 2  # bits of T4Options; T6Options has the second


class DamagedCodes(ValueError):
    """Codes that are none, or do not fill their rows."""


# Codes of runs of 0 … 63 pixels, then of 64, 128, … 1728 pixels, which go before one of the former.
_WHITE = """
00110101 000111 0111 1000 1011 1100 1110 1111 10011 10100 00111 01000 001000 000011 110100 110101 101010 101011
0100111 0001100 0001000 0010111 0000011 0000100 0101000 0101011 0010011 0100100 0011000 00000010 00000011 00011010
00011011 00010010 00010011 00010100 00010101 00010110 00010111 00101000 00101001 00101010 00101011 00101100 00101101
00000100 00000101 00001010 00001011 01010010 01010011 01010100 01010101 00100100 00100101 01011000 01011001 01011010
01011011 01001010 01001011 00110010 00110011 00110100
11011 10010 010111 0110111 00110110 00110111 01100100 01100101 01101000 01100111 011001100 011001101 011010010
011010011 011010100 011010101 011010110 011010111 011011000 011011001 011011010 011011011 010011000 010011001
010011010 011000 010011011
"""
_BLACK = """
0000110111 010 11 10 011 0011 0010 00011 000101 000100 0000100 0000101 0000111 00000100 00000111 000011000 0000010111
0000011000 0000001000 00001100111 00001101000 00001101100 00000110111 00000101000 00000010111 00000011000
000011001010 000011001011 000011001100 000011001101 000001101000 000001101001 000001101010 000001101011 000011010010
000011010011 000011010100 000011010101 000011010110 000011010111 000001101100 000001101101 000011011010 000011011011
000001010100 000001010101 000001010110 000001010111 000001100100 000001100101 000001010010 000001010011 000000100100
000000110111 000000111000 000000100111 000000101000 000001011000 000001011001 000000101011 000000101100 000001011010
000001100110 000001100111
0000001111 000011001000 000011001001 000001011011 000000110011 000000110100 000000110101 0000001101100 0000001101101
0000001001010 0000001001011 0000001001100 0000001001101 0000001110010 0000001110011 0000001110100 0000001110101
0000001110110 0000001110111 0000001010010 0000001010011 0000001010100 0000001010101 0000001011010 0000001011011
0000001100100 0000001100101
"""
# Of runs of 1792, 1856, … 2560 pixels, either colour.
_LONG = """
00000001000 00000001100 00000001101 000000010010 000000010011 000000010100 000000010101 000000010110 000000010111
000000011100 000000011101 000000011110 000000011111
"""
_PASS, _HORIZONTAL = 8, 9  # modes; the others are the distance from b1 to a1, plus 3
_MODES = {"1": 3, "011": 4, "000011": 5, "0000011": 6, "010": 2, "000010": 1, "0000010": 0, "0001": 8, "001": 9}
_RUN_BITS, _MODE_BITS = 13, 7  # of the longest codes
_PART = 1 << 16  # bytes of codes that are prepared together


def _table(codes: dict[str, int], bits: int) -> list[tuple[int, int] | None]:
    """For each number of so many bits the length and the meaning of the code at its start; None where there is none."""
    table: list[tuple[int, int] | None] = [None] * (1 << bits)
    for code, meaning in codes.items():
        first = int(code, 2) << (bits - len(code))
        table[first : first + (1 << (bits - len(code)))] = [(len(code), meaning)] * (1 << (bits - len(code)))
    return table


def _run_table(codes: str) -> list[tuple[int, int] | None]:
    lengths = itertools.chain(range(64), range(64, 2561, 64))
    return _table(dict(zip((codes + _LONG).split(), lengths, strict=True)), _RUN_BITS)


_RUNS = (_run_table(_WHITE), _run_table(_BLACK))
_MODE_TABLE = _table(_MODES, _MODE_BITS)


def decode(data: bytes | memoryview, width: int, rows: int, compression: int, options: int = 0) -> bytes:
    """Decodes `rows` rows of `width` pixels to bits, black is 1, each row padded to bytes.

    options: the value of T4Options or T6Options

    Raises DamagedCodes where rows are missing, codes are invalid or do not fill their row, or more follows than the
    codes that end a strip.
    """
    codes = _Codes(data, width)
    reference: list[int] = []
    packed = []
    for _ in range(rows):
        if compression == GROUP_4:
            row = codes.row_after(reference)
        elif compression == RLE:
            row = codes.row()
            codes.align()
        else:
            codes.skip_end_of_line()
            one_dimensional = not options & _TWO_DIMENSIONAL or codes.bit()
            row = codes.row() if one_dimensional else codes.row_after(reference)
        if codes.position > codes.end:
            raise DamagedCodes
        packed.append(_bits(row, width))
        reference = row
    if not codes.at_end():
        raise DamagedCodes
    return b"".join(packed)


def _bits(changes: list[int], width: int) -> bytes:
    """A row of which the colour changes at these places, from white at first, as bits."""
    runs = np.diff([0, *changes, width])
    return np.packbits(np.repeat(np.arange(len(runs)) & 1 != 0, runs)).tobytes()


class _Codes:
    """The codes of a strip. A row is a list of the places where its colour changes, from white at first."""

    def __init__(self, data: bytes | memoryview, width: int):
        self._data = data
        self._windows: Sequence[int] = ()  # the 24 bits from each byte on, of a part of the data
        self._start = 0  # of that part
        self._width = width
        self.position = 0
        self.end = 8 * len(data)

    def _peek(self, bits: int) -> int:
        """The next bits as a number; zeros follow the end."""
        if self.position > self.end:
            raise DamagedCodes
        place = (self.position >> 3) - self._start
        if place >= len(self._windows):
            self._move(self.position >> 3)
            place = 0
        return self._windows[place] >> (24 - bits - (self.position & 7)) & ((1 << bits) - 1)

    def _move(self, start: int) -> None:
        """On to the part of the data from a byte on. All of it at once would take many times its size."""
        part = bytes(self._data[start : start + _PART + 2]).ljust(_PART + 2, b"\0")
        padded = np.frombuffer(part, np.uint8).astype(np.uint32)
        self._windows = memoryview((padded[:-2] << 16 | padded[1:-1] << 8 | padded[2:]).data)
        self._start = start

    def bit(self) -> int:
        value = self._peek(1)
        self.position += 1
        return value

    def align(self) -> None:
        """On to the next byte."""
        self.position = (self.position + 7) & ~7

    def skip_end_of_line(self) -> None:
        """Over eleven zeros or more and a one, if they are next."""
        if not self._peek(11):
            for step in (16, 1):
                while self.position < self.end and not self._peek(step):
                    self.position += step
            self.position += 1

    def at_end(self) -> bool:
        """Whether nothing follows but padding, or the codes that end lines and strips."""
        return not self._peek(11)

    def _run(self, black: int) -> int:
        total = 0
        while True:
            code = _RUNS[black][self._peek(_RUN_BITS)]
            if code is None:
                raise DamagedCodes
            self.position += code[0]
            total += code[1]
            if code[1] < 64:
                return total

    def row(self) -> list[int]:
        """A row by itself: white and black runs in turn."""
        changes: list[int] = []
        place = black = 0
        while place < self._width:
            place += self._run(black)
            black ^= 1
            _change(changes, place, self._width)
        return changes

    def row_after(self, reference: list[int]) -> list[int]:
        """A row by its differences from the one before it."""
        width = self._width
        above = [*reference, width, width, width]
        changes: list[int] = []
        place = black = i = 0
        start = True  # of the row, where a change of the row above in the first place counts as well
        while place < width:
            while i and above[i - 1] > place:
                i -= 1
            first = place + (not start)
            while ((i ^ black) & 1 or above[i] < first) and above[i] < width:
                i += 1
            code = _MODE_TABLE[self._peek(_MODE_BITS)]
            if code is None:
                raise DamagedCodes
            length, mode = code
            self.position += length
            if mode == _PASS:
                place = above[i + 1]
                if place == width:
                    raise DamagedCodes
            elif mode == _HORIZONTAL:
                for colour in (black, black ^ 1):
                    place += self._run(colour)
                    _change(changes, place, width)
            else:
                place = above[i] + mode - 3
                if place < first:
                    raise DamagedCodes
                _change(changes, place, width)
                black ^= 1
            start = False
        return changes


def _change(changes: list[int], place: int, width: int) -> None:
    """Notes that the colour changes; twice at one place is not at all."""
    if place > width:
        raise DamagedCodes
    if changes and changes[-1] == place:
        changes.pop()
    elif place < width:
        changes.append(place)
