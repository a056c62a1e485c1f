"""WebP files to arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator

import imagecodecs
import numpy as np

from .stored import DamagedImageError, ImageError, ReadOptions, StoredImage, admit

_LOSSY, _LOSSLESS, _ALPHA, _EXTENDED, _ANIMATION, _FRAME = b"VP8 ", b"VP8L", b"ALPH", b"VP8X", b"ANIM", b"ANMF"
_ANIMATION_FLAG, _ALPHA_FLAG = 0x02, 0x10  # of extended files, which announce so what they hold
_ANNOUNCED = {  # what has a flag, and where it goes
    _ALPHA: (_ALPHA_FLAG, "", "alpha channel"),
    b"ICCP": (0x20, "icc", "ICC profile"),
    b"EXIF": (0x08, "exif", "EXIF data"),
    b"XMP ": (0x04, "xmp", "XMP data"),
}
_OTHER_THAN_ZERO = re.compile(rb"[^\x00]")

_MAX_CHUNKS = 10_000  # a dozen are many, where there is no animation

Chunk = tuple[bytes, memoryview]  # name and body


def read(data: bytes, options: ReadOptions) -> StoredImage:
    """RGB or RGBA, uint8, as libwebp decodes it; colours under transparent pixels are kept."""
    end = 8 + _number(data[4:8])
    if end > len(data):
        raise _damaged("it ends too early")
    file = memoryview(data)[:end]
    chunks = list(_chunks(file[12:]))
    flags, canvas = 0, None
    if chunks and chunks[0][0] == _EXTENDED:
        flags, canvas = _extended_header(chunks.pop(0)[1])
    if flags & _ANIMATION_FLAG:
        chunks = _only_frame(chunks, canvas or (0, 0))
    size, bytes_per_pixel = _picture(chunks, flags)
    if canvas not in (None, size):
        raise _damaged("a picture of {} x {} pixels on a canvas of {} x {}".format(*size, *canvas))
    admit(*size, bytes_per_pixel, options)
    image = StoredImage(_decode(file, size))
    _add_metadata(image, chunks, flags)
    if _OTHER_THAN_ZERO.search(data, end):
        image.notes.append("bytes after the end of the WebP file left out")
    return image


def _damaged(what: str) -> ImageError:
    return DamagedImageError(f"damaged WebP file: {what}")


def _number(field: bytes | memoryview) -> int:
    return int.from_bytes(field, "little")


def _chunks(view: memoryview) -> Iterator[Chunk]:
    """Raises ImageError for one that goes beyond the end."""
    position = 0
    for _ in range(_MAX_CHUNKS):
        if position + 8 > len(view):
            return
        size = _number(view[position + 4 : position + 8])
        body = view[position + 8 : position + 8 + size]
        if len(body) < size:
            raise _damaged("a chunk goes beyond its end")
        yield bytes(view[position : position + 4]), body
        position += 8 + size + size % 2
    raise ImageError(f"WebP of more than {_MAX_CHUNKS} chunks is not supported")


def _extended_header(body: memoryview) -> tuple[int, tuple[int, int]]:
    """Returns flags, and width and height of the canvas."""
    if len(body) < 10:
        raise _damaged("its header is too short")
    return body[0], (1 + _number(body[4:7]), 1 + _number(body[7:10]))


def _only_frame(chunks: list[Chunk], canvas: tuple[int, int]) -> list[Chunk]:
    """The chunks with those of the frame in its place, if there is but one, and it fills the canvas."""
    frames = [body for name, body in chunks if name == _FRAME]
    if not frames:
        raise _damaged("it holds no image")
    if len(frames) > 1:
        raise ImageError(f"animated WebP ({len(frames)} frames)")
    header, content = frames[0][:16], frames[0][16:]
    place = [_number(header[at : at + 3]) for at in (0, 3, 6, 9)]
    if place != [0, 0, canvas[0] - 1, canvas[1] - 1]:
        raise ImageError("animated WebP (1 frame, which does not fill its canvas)")
    return [*_chunks(content), *(chunk for chunk in chunks if chunk[0] not in (_ANIMATION, _FRAME))]


def _picture(chunks: list[Chunk], flags: int) -> tuple[tuple[int, int], int]:
    """Width and height of the compressed picture, by its own header, and bytes per pixel that decoding takes."""
    name, body = next((chunk for chunk in chunks if chunk[0] in (_LOSSY, _LOSSLESS)), (b"", b""))
    if not name:
        raise _damaged("it holds no image")
    if name == _LOSSLESS and body[:1] == b"\x2f" and len(body) >= 5:
        bits = _number(body[1:5])
        return (1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)), 8  # libwebp keeps all pixels, of 4 bytes, beside ours
    if name == _LOSSY and body[3:6] == b"\x9d\x01\x2a" and len(body) >= 10:
        size = _number(body[6:8]) & 0x3FFF, _number(body[8:10]) & 0x3FFF
        return size, 5 if flags & _ALPHA_FLAG else 3  # it keeps the alpha channel
    raise _damaged("the header of its picture is invalid")


def _decode(file: memoryview, size: tuple[int, int]) -> np.ndarray:
    try:
        pixels: np.ndarray = imagecodecs.webp_decode(file)
    except MemoryError:
        raise
    except Exception:
        raise _damaged("errors in its pixel data") from None
    if pixels.shape[1::-1] != size:
        raise _damaged("its picture has another size than it says")
    return pixels


def _add_metadata(image: StoredImage, chunks: list[Chunk], flags: int) -> None:
    """Sets icc, exif and xmp, and notes what is left out: also by libwebp, what the flags do not announce."""
    notes: dict[str, None] = {}  # an ordered set
    for name, body in chunks:
        if name in (_LOSSY, _LOSSLESS):
            continue
        flag, key, what = _ANNOUNCED.get(name, (0, "", ""))
        if not flag:
            notes["chunks of unknown kinds left out"] = None
        elif not flags & flag:
            notes[f"{what} left out, which the header does not announce"] = None
        elif key and getattr(image, key):
            notes[f"second {what} left out"] = None
        elif key:
            setattr(image, key, bytes(body))
    image.notes += notes
