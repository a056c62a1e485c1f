"""JPEG files to arrays."""

from __future__ import annotations

import struct

from .exif import PREFIX
from .jpeg_stream import ADOBE, APP0, APP1, APP2, APP13, APP14, COMMENT, ICC, JFIF, JpegStream
from .stored import ColourError, ReadOptions, StoredImage, admit

_XMP, _EXTENDED_XMP = b"http://ns.adobe.com/xap/1.0/\x00", b"http://ns.adobe.com/xmp/extension/\x00"
_PICTURES = b"MPF\x00"
_NUMBER_OF_PICTURES = 0xB001  # a tag

SECOND_EXIF = "second EXIF data"
"""What notes call it."""


def read(data: bytes, options: ReadOptions) -> StoredImage:
    """Gray or RGB as libjpeg-turbo decodes it (slow integer DCT, fancy upsampling); of several pictures the first.

    Raises ImageError also where libjpeg-turbo would only warn, and return pixels that are wrong.
    """
    stream = JpegStream(data)
    _check_colours(stream)
    admit(stream.width, stream.height, stream.bytes_per_pixel, options)
    notes: list[str] = []
    image = StoredImage(stream.decode(notes), notes=notes)
    _add_metadata(image, stream)
    return image


def _check_colours(stream: JpegStream) -> None:
    """Refuses what libjpeg would guess to be YCbCr."""
    starts = [(marker, bytes(body[:12])) for marker, body in stream.segments]
    if stream.channels == 1 or any(marker == APP0 and start.startswith(JFIF) for marker, start in starts):
        return
    for marker, start in starts:
        if marker == APP14 and start.startswith(ADOBE) and len(start) == 12 and start[11] > 1:
            raise ColourError(f"JPEG with an unknown colour transform ({start[11]})")


def _add_metadata(image: StoredImage, stream: JpegStream) -> None:
    """Sets icc, exif and xmp, and notes what is left out."""
    icc_parts: list[bytes] = []
    notes: dict[str, None] = {}  # each once
    has_more = stream.has_more
    for marker, view in stream.segments:
        body = bytes(view)
        if marker == APP1 and body.startswith(PREFIX) and not image.exif:
            image.exif = body[len(PREFIX) :]
        elif marker == APP1 and body.startswith(_XMP) and not image.xmp:
            image.xmp = body[len(_XMP) :]
        elif marker == APP2 and body.startswith(ICC):
            icc_parts.append(body[len(ICC) :])
        elif marker == APP2 and body.startswith(_PICTURES):
            number = _number_of_pictures(body[len(_PICTURES) :])
            if number > 1:
                notes[f"the first of {number} pictures in the file was taken"] = None
                has_more = False
        elif not (marker == APP0 and body.startswith(JFIF)) and not (marker == APP14 and body.startswith(ADOBE)):
            notes[f"{_describe(marker, body)} left out"] = None
    if icc_parts:
        image.icc = _join_icc(icc_parts)
        if not image.icc:
            notes["damaged ICC profile left out"] = None
    if has_more:
        notes["bytes after the end of the JPEG file left out"] = None
    image.notes += notes


def _describe(marker: int, body: bytes) -> str:
    if marker == COMMENT:
        return "comments"
    if marker == APP13:
        return "Photoshop resources"
    if marker == APP1 and body.startswith(PREFIX):
        return SECOND_EXIF
    if marker == APP1 and body.startswith(_XMP):
        return "second XMP data"
    if marker == APP1 and body.startswith(_EXTENDED_XMP):
        return "extended XMP data"
    return f"application data APP{marker - APP0}"


def _join_icc(parts: list[bytes]) -> bytes:
    """The profile from its parts (number, count, data), in whatever order; nothing if one is missing or there twice."""
    parts = sorted(parts)
    whole = [bytes((number, len(parts))) for number in range(1, len(parts) + 1)] if len(parts) < 256 else []
    return b"".join(part[2:] for part in parts) if [part[:2] for part in parts] == whole else b""


def _number_of_pictures(index: bytes) -> int:
    """Out of the index of a multi-picture file, which is a TIFF structure; 1 if it cannot be read."""
    order = {b"II*\x00": "<", b"MM\x00*": ">"}.get(index[:4])
    try:
        (directory,) = struct.unpack_from(f"{order}I", index, 4)
        (entries,) = struct.unpack_from(f"{order}H", index, directory)
        for position in range(directory + 2, directory + 2 + 12 * entries, 12):
            tag, _, _, value = struct.unpack_from(f"{order}HHII", index, position)
            if tag == _NUMBER_OF_PICTURES:
                return int(value)
    except struct.error:  # no byte order, or an offset points outside the index
        pass
    return 1
