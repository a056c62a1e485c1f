"""Metadata in the chunks of PNG files."""

from __future__ import annotations

import re
import struct
import zlib

from .exif import PREFIX, XMP_PREFIX
from .stored import MAX_METADATA

ICC, EXIF, XMP = "ICC profile", "EXIF data", "XMP data"

_CHUNKS = {b"iCCP": ICC, b"eXIf": EXIF}
_RAW = b"Raw profile type "  # ImageMagick's: a name, a size, and two hexadecimal digits for each byte
_RAW_PROFILE = re.compile(rb"(?:[!-~]+\s+)?(\d{1,9})\s")
_TEXTS = {
    b"XML:com.adobe.xmp": XMP,
    _RAW + b"icc": ICC,
    _RAW + b"icm": ICC,
    _RAW + b"exif": EXIF,
    _RAW + b"APP1": EXIF,  # or XMP
    _RAW + b"xmp": XMP,
}
"""Keywords of texts that are metadata. Where several hold the same, the first here counts, and a chunk before all."""

_TEXT_KINDS = (b"tEXt", b"zTXt", b"iTXt")
_LEFT_OUT_TEXTS = {_RAW + b"iptc": "IPTC data", _RAW + b"8bim": "Photoshop resources"}
_GAMMA, _CHROMATICITIES = "gamma (gAMA)", "chromaticities (cHRM)"
_LEFT_OUT = {
    b"gAMA": _GAMMA,
    b"cHRM": _CHROMATICITIES,
    b"cICP": "colour space (cICP)",
    b"mDCV": "mastering display (mDCV)",
    b"mDCv": "mastering display (mDCV)",
    b"cLLI": "light levels (cLLI)",
    b"cLLi": "light levels (cLLI)",
    b"pCAL": "calibration of samples (pCAL)",
    b"sCAL": "physical scale (sCAL)",
    b"sTER": "stereo layout (sTER)",
}
_SRGB = {
    b"gAMA": struct.pack(">I", 45455),
    b"cHRM": struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000),
    b"cICP": bytes((1, 13, 0, 1)),
}
"""What says no more than that colours are as everybody expects."""
_NOT_MISSED = frozenset(
    (b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"acTL", b"fcTL", b"sRGB", b"sBIT", b"bKGD", b"hIST", b"sPLT")
    + (b"pHYs", b"oFFs", b"tIME")
)
"""What is read elsewhere; and hints for display, resolution and time, which go without a note."""

KNOWN_KINDS = frozenset((*_CHUNKS, *_TEXT_KINDS, *_LEFT_OUT, *_NOT_MISSED))


class Metadata:
    """The metadata of a file, collected chunk by chunk.

    Nothing is inflated beyond the limit of the L3 format; of several equal chunks or keywords the first counts.
    """

    def __init__(self) -> None:
        self._blocks: dict[bytes, tuple[str, bytes]] = {}  # by kind of chunk or keyword
        self._notes: dict[str, None] = {}  # an ordered set
        self._is_srgb = False

    def add(self, kind: bytes, body: memoryview) -> None:
        """To be called with every sound chunk."""
        keyword = bytes(body[:80]).partition(b"\0")[0] if kind in _TEXT_KINDS else b""
        if kind in _CHUNKS:
            self._keep(kind, _CHUNKS[kind], kind, body)
        elif keyword in _TEXTS:
            self._keep(keyword, _TEXTS[keyword], kind, body)
        elif kind in _TEXT_KINDS:
            self._leave_out(_LEFT_OUT_TEXTS.get(keyword, "texts"))
        elif kind in _LEFT_OUT:
            if bytes(body) != _SRGB.get(kind):
                self._leave_out(_LEFT_OUT[kind])
        elif kind not in _NOT_MISSED:
            self._leave_out("chunks of unknown kinds")
        self._is_srgb |= kind == b"sRGB"

    def finish(self) -> tuple[dict[str, bytes], list[str]]:
        """Returns ICC profile, EXIF and XMP data as far as there are any, and notes on what was left out."""
        found: dict[str, bytes] = {}
        for source in (*_CHUNKS, *_TEXTS):
            name, value = self._blocks.get(source, ("", b""))
            if value and found.setdefault(name, value) != value:
                self._leave_out(f"second {name}")
        if ICC in found or self._is_srgb:
            for superseded in (_GAMMA, _CHROMATICITIES):
                self._notes.pop(f"{superseded} left out", None)
        return found, list(self._notes)

    def _leave_out(self, what: str) -> None:
        self._notes[f"{what} left out"] = None

    def _keep(self, source: bytes, name: str, kind: bytes, body: memoryview) -> None:
        if source in self._blocks:
            self._leave_out(f"second {name}")
            return
        self._blocks[source] = name, b""
        try:
            if len(body) > 2 * MAX_METADATA:
                raise _TooLarge
            value = bytes(body) if kind == b"eXIf" else _text(kind, body)
            if source.startswith(_RAW):
                value = _raw_profile(value).removeprefix(PREFIX)
        except _TooLarge:
            self._notes[f"{name} left out: it exceeds the format's limit"] = None
            return
        except ValueError:
            self._leave_out(f"damaged {name}")
            return
        if source == _RAW + b"APP1" and value.startswith(XMP_PREFIX):
            name, value = XMP, value.removeprefix(XMP_PREFIX)
        self._blocks[source] = name, value


class _TooLarge(Exception):
    """Metadata beyond the limit of the L3 format."""


def _text(kind: bytes, body: memoryview) -> bytes:
    """The text in a tEXt, zTXt or iTXt chunk, the profile in an iCCP chunk. Raises ValueError if it is damaged."""
    _, rest = _split(bytes(body))
    if kind == b"tEXt":
        return rest
    is_compressed, method = True, rest[:1]
    if kind == b"iTXt":
        is_compressed, method = rest[:1] == b"\1", rest[1:2]
        _, rest = _split(rest[2:])  # the language; the keyword in it follows
        _, rest = _split(rest)
    else:
        rest = rest[1:]
    if not is_compressed:
        return rest
    if method != b"\0":
        raise ValueError("unknown method of compression")
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(rest, MAX_METADATA)
    except zlib.error as error:
        raise ValueError("not a zlib stream") from error
    if not inflater.eof:
        raise _TooLarge if len(text) == MAX_METADATA else ValueError("truncated")
    return text


def _split(data: bytes) -> tuple[bytes, bytes]:
    first, separator, rest = data.partition(b"\0")
    if not separator:
        raise ValueError("no end of a string")
    return first, rest


def _raw_profile(text: bytes) -> bytes:
    """The bytes that ImageMagick wrote as digits. Raises ValueError if they are damaged."""
    text = text.lstrip()
    header = _RAW_PROFILE.match(text)
    profile = bytes.fromhex(text[header.end() :].decode("ascii")) if header else b""
    if not header or len(profile) != int(header[1]):
        raise ValueError("damaged digits")
    return profile
