"""The structure and the pixels of JPEG data: of files, and of what other files hold (TIFF)."""

from __future__ import annotations

import math
import re
import struct

import imagecodecs
import numpy as np
import simplejpeg

from .stored import ColourError, DamagedImageError, ImageError

APP0, APP1, APP2, APP13, APP14, APP15, COMMENT = 0xE0, 0xE1, 0xE2, 0xED, 0xEE, 0xEF, 0xFE
"""Markers of segments for applications, and of comments."""

JFIF, ADOBE, ICC = b"JFIF\x00", b"Adobe", b"ICC_PROFILE\x00"
"""How segments for applications start: those that say which colours are stored, and those with an ICC profile."""

_SOI, _EOI, _SOS, _DHT, _DNL = 0xD8, 0xD9, 0xDA, 0xC4, 0xDC
_OTHER_TABLES = (0xCC, 0xDB, 0xDD)  # arithmetic coding, quantisation, restart interval
_WITHOUT_BODY = (0x01, *range(0xD0, 0xD8))  # TEM, RST0 … RST7
_PROGRESSIVE = 0xC2
_FRAMES = (0xC0, 0xC1, _PROGRESSIVE)  # the first two: baseline and extended
_OTHER_FRAMES = {
    **dict.fromkeys((0xC3, 0xC7, 0xCB, 0xCF), "lossless JPEG"),
    **dict.fromkeys((0xC5, 0xC6, 0xCD, 0xCE, 0xDE), "hierarchical JPEG"),
    **dict.fromkeys((0xC9, 0xCA), "arithmetic-coded JPEG"),
    0xF7: "JPEG-LS",
}
_NEXT_MARKER = re.compile(rb"\xff([^\x00\xff])")
_END_OF_SCAN = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
_OTHER_THAN_ZERO = re.compile(rb"[^\x00]")

_MAX_SIDE = 65500  # of libjpeg
_MAX_SCANS = 100  # even an empty one takes time for every pixel; encoders write about ten
_MAX_MARKERS = 10_000  # outside of scans; a few hundred are many
_END = b"\xff\xfe\x00\x02\xff\xd9"
"""The end marker after an empty comment: bytes left over are reported when the decoder looks for the second marker."""
_ALL_BITS = 16
_WHOLE_BLOCKS = bytes((0, 63, 0))  # the scan parameters of all but progressive JPEG


def damaged(what: str) -> ImageError:
    return DamagedImageError(f"damaged JPEG file: {what}")


class JpegStream:
    """JPEG data of a kind that can be decoded, from its first marker to the end marker; what follows is ignored.

    width, height: in pixels
    channels: 1 (gray) or 3 (RGB)
    segments: (marker, body) of those for applications, and of comments
    has_more: whether anything other than zeros follows
    """

    def __init__(self, data: bytes):
        """Looks at the structure. Raises ImageError for other kinds of JPEG, and for damage."""
        self.width = self.height = self.channels = 0
        self.has_more = False
        self.segments: list[tuple[int, memoryview]] = []
        self._view = memoryview(data)
        self._pieces: list[bytes | memoryview] = []  # what the decoder is to see
        self._kept_from = 0  # where the piece begins that is not in the list yet
        self._has_stray_bytes = False
        self._progressive = False
        self._scans = 0
        self._samplings: dict[int, tuple[int, int]] = {}  # of each component: horizontal, vertical
        self._lacking_bits: dict[int, list[int]] = {}  # of each component's coefficients, after the scans so far
        self._huffman_tables: set[int] = set()

        self._walk()
        if not self._scans:
            raise damaged("it holds no image")
        if any(bits[0] == _ALL_BITS for bits in self._lacking_bits.values()):
            raise damaged("a colour component is missing")
        if any(_ALL_BITS in bits for bits in self._lacking_bits.values()):
            raise damaged("scans are missing, and with them a part of all pixels")

    @property
    def bytes_per_pixel(self) -> int:
        """Bytes of a pixel, and of its coefficients if the decoder keeps them until the last scan."""
        if self._is_single_scan:
            return self.channels
        horizontal, vertical = (max(factors) for factors in zip(*self._samplings.values(), strict=True))
        samples = sum(h * v for h, v in self._samplings.values()) / (horizontal * vertical)
        return self.channels + int(math.ceil(2 * samples))

    def decode(self, notes: list[str]) -> np.ndarray:
        """The pixels, uint8, (H, W) or (H, W, 3), RGB. Appends to `notes` what was ignored or could not be made sure.

        Raises ImageError if the decoder finds anything wrong.
        """
        if self._has_stray_bytes:
            notes.append("stray bytes between segments ignored")
        if any(any(bits) for bits in self._lacking_bits.values()):
            notes.append("progressive JPEG without its last refinements, decoded without them")
        pixels = _decode(bytearray().join(self._pieces), self.channels, self._is_single_scan, notes)
        return pixels.reshape((self.height, self.width, 3) if self.channels == 3 else (self.height, self.width))

    @property
    def _is_single_scan(self) -> bool:
        return self._scans == 1 and not self._progressive

    def _walk(self) -> None:
        view, position = self._view, 2
        if view[:2] != bytes((0xFF, _SOI)):
            raise damaged("it does not start like one")
        for _ in range(_MAX_MARKERS):
            found = _NEXT_MARKER.search(view, position)
            if not found:
                raise damaged("it ends too early")
            if not self._scans and bytes(view[position : found.start()]).strip(b"\xff"):
                # Readers skip what some cameras leave here. After the first scan it may be another scan, whose marker
                # is damaged; then it stays, and the decoder finds it.
                self._replace(position, found.start())
                self._has_stray_bytes = True
            marker, position = found[1][0], found.end()
            if marker == _EOI:
                self._replace(found.start(), len(view))
                self.has_more = _OTHER_THAN_ZERO.search(view, position) is not None
                return
            if marker in _WITHOUT_BODY:
                continue
            size = int.from_bytes(view[position : position + 2], "big")
            end = position + max(size, 2)
            if end > len(view):
                raise damaged("it ends too early")
            if size < 2:
                raise damaged("a segment has no size")
            self._read_segment(marker, view[position + 2 : end], position + 2)
            if marker == APP2 and view[position + 2 : end][: len(ICC)] == ICC:
                self._replace(found.start(), end)  # TurboJPEG warns of damaged profiles
            position = end
            if marker == _SOS:
                found = _END_OF_SCAN.search(view, position)
                if not found:
                    raise damaged("it ends too early")
                position = found.start()
        raise ImageError(f"JPEG of more than {_MAX_MARKERS} segments is not supported")

    def _replace(self, start: int, end: int, by: bytes = b"") -> None:
        """Lets the decoder see `by` in place of the bytes from `start` to `end`."""
        self._pieces += [piece for piece in (self._view[self._kept_from : start], by) if len(piece)]
        self._kept_from = end

    def _read_segment(self, marker: int, body: memoryview, at: int) -> None:
        if marker in _OTHER_FRAMES:
            raise ImageError(f"{_OTHER_FRAMES[marker]} is not supported: convert to PNG or TIFF first")
        if marker in _FRAMES:
            self._progressive = marker == _PROGRESSIVE
            self._read_frame(body)
        elif marker == _SOS:
            self._read_scan(body, at)
        elif marker == _DHT:
            self._read_huffman_tables(body)
        elif marker == _DNL:
            raise ImageError("JPEG whose height comes after its pixels (DNL) is not supported")
        elif APP0 <= marker <= APP15 or marker == COMMENT:
            self.segments.append((marker, body))
            if marker == APP0 and body[:5] == JFIF and len(body) >= 14 and body[5] != 1:
                self._replace(at + 5, at + 6, b"\x01")  # libjpeg warns of other versions, to no effect
        elif marker not in _OTHER_TABLES:
            raise damaged("it has an unknown marker")

    def _read_frame(self, body: memoryview) -> None:
        if self._samplings:
            raise damaged("it has two frames")
        if len(body) < 6 or len(body) != 6 + 3 * body[5]:
            raise damaged("its frame header is invalid")
        precision, self.height, self.width, self.channels = struct.unpack_from(">BHHB", body)
        if precision != 8:
            raise ImageError(f"{precision}-bit JPEG is not supported: convert to PNG or TIFF first")
        if self.channels == 4:
            raise ColourError("CMYK colours: convert to RGB first, with the right colour profile")
        if self.channels not in (1, 3):
            raise ImageError(f"JPEG of {self.channels} colour components is not supported")
        if self.height == 0:
            raise ImageError("JPEG whose height comes after its pixels (DNL) is not supported")
        if max(self.width, self.height) > _MAX_SIDE:
            raise ImageError(f"JPEG of {self.width} x {self.height} pixels: sides over {_MAX_SIDE} are not supported")
        for component, sampling, _ in struct.iter_unpack("BBB", body[6:]):
            self._samplings[component] = (sampling >> 4, sampling & 15)
            self._lacking_bits[component] = [_ALL_BITS] * 64
        if len(self._samplings) < self.channels or not all(1 <= f <= 4 for fs in self._samplings.values() for f in fs):
            raise damaged("its frame header is invalid")

    def _read_scan(self, body: memoryview, at: int) -> None:
        self._scans += 1
        if self._scans > _MAX_SCANS:
            raise ImageError(f"JPEG of more than {_MAX_SCANS} scans is not supported")
        if not body or len(body) != 4 + 2 * body[0]:
            raise damaged("a scan header is invalid")
        parameters = bytes(body[-3:])
        if not self._progressive and parameters != _WHOLE_BLOCKS:
            # Some baseline encoders leave zeros here. libjpeg warns, and decodes whole blocks.
            self._replace(at + len(body) - 3, at + len(body), _WHOLE_BLOCKS)
            parameters = _WHOLE_BLOCKS
        first, last, bits = parameters
        if first > last or last > 63:
            raise damaged("a scan header is invalid")
        for component, tables in struct.iter_unpack("BB", body[1:-3]):
            if component not in self._samplings:
                raise damaged("a scan header is invalid")
            self._lacking_bits[component][first : last + 1] = [bits & 15] * (last + 1 - first)
            # For a missing table the decoder takes the standard's, which is right only where all are missing (MJPEG).
            used = {tables >> 4} if first == 0 and bits < 16 else set()  # by first coefficients, which are not refined
            used |= {0x10 | tables & 15} if last else set()
            if self._huffman_tables and not used <= self._huffman_tables:
                raise damaged("a Huffman table is missing")

    def _read_huffman_tables(self, body: memoryview) -> None:
        while len(body) >= 17:
            self._huffman_tables.add(body[0])
            body = body[17 + sum(body[1:17]) :]


# ---- Pixels ----------------------------------------------------------------------------------------------------------
# simplejpeg alone of the well-kept libraries tells of libjpeg-turbo's warnings. All of them count as damage: what is
# harmless of what it warns of, JpegStream has taken out of the data. There remain invalid Huffman codes,
# data that ends within a scan or is left over after one, and markers out of place. Data is left over where bits changed
# somewhere before, so that blocks got lost; a few encoders leave some too, and cannot be told from that. (JPEG has no
# checksums: bits that change some coefficients, and nothing else, cannot be noticed by anybody.)


def _decode(data: bytearray, channels: int, is_single_scan: bool, notes: list[str]) -> np.ndarray:
    """The pixels. Raises ImageError for damage. Changes `data`, which is without its end marker."""
    if channels == 3 and not _is_usual(data):
        return _decode_unusual(data, notes)
    pixels = _decode_strictly(data, channels)
    if pixels is None:
        _remove_padding(data)
        pixels = _decode_strictly(data, channels)
    if pixels is None or (is_single_scan and _has_data_left_over(data, channels)):
        raise damaged("errors in its pixel data")
    return pixels


def _decode_strictly(data: bytearray, channels: int, **options: int) -> np.ndarray | None:
    """The pixels; None if libjpeg-turbo fails or warns."""
    data += _END
    try:
        pixels: np.ndarray = simplejpeg.decode_jpeg(data, "GRAY" if channels == 1 else "RGB", strict=True, **options)
        return pixels
    except ValueError:
        return None
    finally:
        del data[-len(_END) :]


def _has_data_left_over(data: bytearray, channels: int) -> bool:
    """Whether the scan that `data` ends with is whole without its last byte: then this one was left over.

    The decoder overlooks up to seven bytes, which it has read ahead. At an eighth of the size it does all that matters.
    """
    _remove_padding(data)
    del data[-1:]
    return _decode_strictly(data, channels, min_height=1, min_width=1) is not None


def _remove_padding(data: bytearray) -> None:
    """Takes fill bytes off the end, and the zeros that webcams put there."""
    _strip(data, b"\xff")
    _strip(data, b"\x00")
    if data.endswith(b"\xff"):
        data.append(0)  # which belongs to it


def _strip(data: bytearray, byte: bytes) -> None:
    """`rstrip` in place."""
    while data:
        tail = data[-4096:]
        kept = len(tail.rstrip(byte))
        del data[len(data) - len(tail) + kept :]
        if kept:
            return


def _is_usual(data: bytearray) -> bool:
    """Whether TurboJPEG, through which simplejpeg decodes, knows the subsampling. Below it libjpeg-turbo knows more."""
    try:
        simplejpeg.decode_jpeg_header(data)
    except ValueError:
        return False
    return True


def _decode_unusual(data: bytearray, notes: list[str]) -> np.ndarray:
    try:
        pixels: np.ndarray = imagecodecs.jpeg8_decode(data + _END)
    except Exception:
        raise damaged("errors in its header or its pixel data") from None
    notes.append("unusual chroma subsampling: the pixel data could not be checked for damage")
    return pixels
