"""LZW data to bytes. The codes are checked here, before imagecodecs decodes them.

Its decoder follows codes that no table has yet to wherever they lead, cuts off what does not fit, and makes up the bits
that a last code lacks.
"""

from __future__ import annotations

import imagecodecs
import numpy as np

_CLEAR, _END, _LITERALS = 256, 257, 256
_STEADY = 4096 - 257  # codes after a CLEAR from which on all are of 12 bits, and may have any value
_FIRST_PIECE, _PIECE = 64, 4096  # codes that are looked at together


class DamagedCodes(ValueError):
    """Codes that make no sense, or are too few or too many."""


def decode(data: memoryview, out: np.ndarray) -> None:
    """Fills `out`, uint8, one dimension. Raises an error of any kind where the data is not exactly that."""
    codes = _Codes(data)
    end, width, has_end_code = codes.find_end(2 * len(out) + 16)
    if not has_end_code:
        data = memoryview(codes.ended_at(end, width))
    decoded = imagecodecs.lzw_decode(data, out=len(out) + 1)
    if len(decoded) != len(out):
        raise DamagedCodes
    out[:] = np.frombuffer(decoded, np.uint8)


def _code_lengths(early: int) -> tuple[np.ndarray, np.ndarray]:
    """Of the codes after a CLEAR: bits of each, and where each starts."""
    entries = np.arange(257, 257 + _STEADY + _PIECE)
    widths = 9 + np.searchsorted(np.array([512, 1024, 2048]) - early, entries, "right")
    return widths, np.concatenate([[0], np.cumsum(widths)])


_LARGEST = np.concatenate([[_LITERALS - 1], np.arange(258, 257 + _STEADY + _PIECE)])
"""Of the codes after a CLEAR: the largest value of each. It may be the next entry of the table, but for the first."""
_MSB_FIRST, _LSB_FIRST = _code_lengths(early=1), _code_lengths(early=0)


class _Codes:
    """The codes of a strip or tile, as TIFF has them, or in the order of bits that old writers used."""

    def __init__(self, data: memoryview):
        if len(data) < 2:
            raise DamagedCodes
        self._data = data
        self._is_msb_first = not (data[0] == 0 and data[1] & 1)
        padded = data if len(data) >= 4 else bytes(data).ljust(4, b"\0")
        order = ">" if self._is_msb_first else "<"
        self._words = np.ndarray((len(padded) - 3,), order + "u4", padded, 0, (1,))  # one from each byte on
        self._widths, self._starts = _MSB_FIRST if self._is_msb_first else _LSB_FIRST

    def find_end(self, most: int) -> tuple[int, int, bool]:
        """Where the codes end, in bits; how wide a code would be there; and whether there is one that says so.

        Raises DamagedCodes for a code that has no meaning in its place, and for more than `most` codes.
        """
        if self._read(np.array([0]), np.array([9])) != _CLEAR:
            raise DamagedCodes
        position = index = 0  # in bits; in codes since the last CLEAR
        while most > 0:
            count = _PIECE if index else _FIRST_PIECE
            widths = self._widths[index : index + count]
            places = position + self._starts[index : index + count + 1] - self._starts[index]
            whole = int(np.searchsorted(places[1:], 8 * len(self._data), "right"))
            codes = self._read(places[:whole], widths[:whole])
            marks = np.flatnonzero((codes == _CLEAR) | (codes == _END))
            stop = int(marks[0]) if marks.size else whole
            if (codes[:stop] > _LARGEST[index : index + stop]).any():
                raise DamagedCodes
            most -= stop + 1
            if stop < whole and codes[stop] == _CLEAR:
                position, index = int(places[stop + 1]), 0
            elif stop < count:
                return int(places[stop]), int(widths[stop]), stop < whole
            else:
                position, index = int(places[count]), min(index + count, _STEADY)
        raise DamagedCodes

    def ended_at(self, place: int, width: int) -> bytes:
        """The data up to a place, in bits, and the code for the end."""
        kept, bits = divmod(place, 8)
        rest = self._data[kept] if bits else 0
        if self._is_msb_first:
            tail = (rest >> (8 - bits) << width | _END) << (24 - bits - width)
        else:
            tail = rest & ((1 << bits) - 1) | _END << bits
        return bytes(self._data[:kept]) + tail.to_bytes(3, "big" if self._is_msb_first else "little")

    def _read(self, places: np.ndarray, widths: np.ndarray) -> np.ndarray:
        """The codes at these places, which lie within the data."""
        at = np.minimum(places >> 3, len(self._words) - 1)
        words, bits = self._words[at].astype(np.int64), places - 8 * at
        shifted = words >> (32 - bits - widths if self._is_msb_first else bits)
        codes: np.ndarray = shifted & ((1 << widths) - 1)
        return codes
