"""PNG files to arrays.

Chunks, checksums, palettes and transparency are handled here and in `png_chunks`, `png_metadata` and `png_pixels`, so
that nothing damaged is used and all errors are ours; libpng undoes the filters of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from .png_chunks import SIGNATURE, is_critical, is_sound, walk
from .png_metadata import EXIF, ICC, KNOWN_KINDS, XMP, Metadata
from .png_pixels import GRAY, PALETTE, RGB, Header, decode
from .stored import PALETTE_DROPPED, PALETTE_EXPANDED, DamagedImageError, ImageError, ReadOptions, StoredImage, admit

Chunks = Mapping[bytes, memoryview]
Conversion = tuple[int, Callable[[np.ndarray], np.ndarray]]
"""How many channels pixels have, and what makes them of samples, (N, W, C), as they are stored."""


def read(data: bytes, options: ReadOptions) -> StoredImage:
    """All colour types and depths. Palettes and transparent colours become RGB, RGBA or gray and alpha."""
    view = memoryview(data)
    chunks, metadata, notes = _survey(view)
    header = Header.parse(bytes(chunks[b"IHDR"]))
    transparency = chunks.get(b"tRNS")
    if header.colour == PALETTE:
        channels, convert = _palette_conversion(chunks.get(b"PLTE"), transparency, options)
        notes.append(PALETTE_EXPANDED if options.palette == "rgb" else PALETTE_DROPPED)
    elif transparency is not None and header.colour in (GRAY, RGB):
        channels, convert = _transparency_conversion(header, transparency)
    else:
        channels, convert = header.channels, partial(_scale, header.depth)
        if transparency is not None:
            notes.append("tRNS chunk beside an alpha channel ignored")
    admit(header.width, header.height, channels * (2 if header.depth == 16 else 1), options)
    pixels = np.empty((header.height, header.width, channels), np.uint16 if header.depth == 16 else np.uint8)
    if decode(header, _image_data(view), convert, pixels):
        notes.append("bytes after the image data left out")
    return StoredImage(
        pixels if channels > 1 else pixels[:, :, 0],
        metadata.get(ICC, b""),
        metadata.get(EXIF, b""),
        metadata.get(XMP, b""),
        notes=notes,
    )


def decode_into(data: memoryview, out: np.ndarray) -> None:
    """Decodes a PNG in another file into `out`, (H, W) or (H, W, C), uint8 or uint16, which must be what it holds.

    Raises ImageError if it holds something else, a palette or a transparent colour, say, or is damaged.
    """
    if data[: len(SIGNATURE)] != SIGNATURE:
        raise DamagedImageError("damaged PNG file: it does not start as one")
    chunks, _, _ = _survey(data)
    header = Header.parse(bytes(chunks[b"IHDR"]))
    pixels = out.reshape(*out.shape[:2], -1)
    stored = (header.height, header.width, header.channels), header.depth
    if header.colour == PALETTE or b"tRNS" in chunks or stored != (pixels.shape, 8 * out.itemsize):
        raise ImageError("PNG of another kind than the file that holds it")
    decode(header, _image_data(data), lambda samples: samples, pixels)


def _survey(view: memoryview) -> tuple[Chunks, dict[str, bytes], list[str]]:
    """Checks all chunks. Returns the bodies of the first of each known kind, in their order; metadata; and notes."""
    chunks: dict[bytes, memoryview] = {}
    metadata = Metadata()
    damaged: dict[str, None] = {}  # an ordered set
    end, previous = 0, b""
    for position, kind, body in walk(view):
        name = kind.decode() if kind in KNOWN_KINDS else "unknown"
        _check_place(kind, previous, chunks)
        if is_sound(view, position, len(body)):
            if is_critical(kind) and kind not in KNOWN_KINDS:
                raise ImageError(f"PNG with an unknown critical chunk ({kind.decode()})")
            metadata.add(kind, body)
            if kind in KNOWN_KINDS:
                chunks.setdefault(kind, body)
        elif is_critical(kind):
            raise DamagedImageError(f"damaged PNG file: wrong checksum of a chunk ({name})")
        else:
            damaged[f"damaged {name} chunk ignored"] = None
        end, previous = position + 12 + len(body), kind
    _check_order(list(chunks))
    frames = int.from_bytes(chunks.get(b"acTL", b"")[:4], "big")
    if frames > 1:
        raise ImageError(f"animated PNG ({frames} frames)")
    found, left_out = metadata.finish()
    trailing = ["bytes after the end of the PNG file left out"] if end < len(view) else []
    return chunks, found, [*damaged, *left_out, *trailing]


def _check_place(kind: bytes, previous: bytes, chunks: Chunks) -> None:
    """Whether a chunk of this kind may come here: after one of kind `previous`, and after `chunks`."""
    if kind == b"CgBI":
        raise ImageError("Apple's own variant of PNG (CgBI): convert it to standard PNG first")
    if kind != b"IHDR" and not previous:
        raise DamagedImageError("damaged PNG file: no header")
    if kind in (b"IHDR", b"PLTE", b"tRNS") and kind in chunks:
        raise DamagedImageError(f"damaged PNG file: two {kind.decode()} chunks")
    if kind == b"IDAT" and kind in chunks and kind != previous:
        raise DamagedImageError("damaged PNG file: its IDAT chunks are not consecutive")


def _check_order(kinds: list[bytes]) -> None:
    if b"IDAT" not in kinds:
        raise DamagedImageError("damaged PNG file: no image data")
    order = [kind for kind in kinds if kind in (b"PLTE", b"tRNS", b"IDAT")]
    if order != sorted(order, key=(b"PLTE", b"tRNS", b"IDAT").index):
        raise DamagedImageError(f"damaged PNG file: wrong order of its chunks ({b', '.join(order).decode()})")


def _image_data(view: memoryview) -> Iterator[memoryview]:
    """The bodies of the IDAT chunks. (A list of them could take more memory than the file.)"""
    return (body for _, kind, body in walk(view) if kind == b"IDAT")


# ---- Samples to pixels -----------------------------------------------------------------------------------------------


def _palette_conversion(
    palette: memoryview | None, transparency: memoryview | None, options: ReadOptions
) -> Conversion:
    if palette is None:
        raise DamagedImageError("damaged PNG file: no palette")
    if not 3 <= len(palette) <= 768 or len(palette) % 3:
        raise DamagedImageError(f"damaged PNG file: a palette of {len(palette)} bytes")
    colours = np.frombuffer(palette, np.uint8).reshape(-1, 3)
    if transparency is not None:
        if not 1 <= len(transparency) <= len(colours):
            counts = f"{len(transparency)} alpha values for {len(colours)} palette entries"
            raise DamagedImageError(f"damaged PNG file: {counts}")
        alpha = np.full(len(colours), 255, np.uint8)
        alpha[: len(transparency)] = transparency
        colours = np.column_stack([colours, alpha])
    if options.palette == "index":
        return 1, lambda samples: samples
    return colours.shape[1], partial(_look_up, colours)


def _look_up(colours: np.ndarray, samples: np.ndarray) -> np.ndarray:
    needed = int(samples.max()) + 1
    if needed > len(colours):
        raise DamagedImageError(
            f"damaged PNG file: a palette of {len(colours)} entries where the pixels need at least {needed}: "
            "--palette index keeps the numbers"
        )
    pixels: np.ndarray = colours[samples[:, :, 0]]
    return pixels


def _transparency_conversion(header: Header, transparency: memoryview) -> Conversion:
    if len(transparency) != 2 * header.channels:
        raise DamagedImageError(f"damaged PNG file: a transparent colour of {len(transparency)} bytes")
    colour = np.frombuffer(transparency, ">u2") & ((1 << header.depth) - 1)
    return header.channels + 1, partial(_add_alpha, header.depth, colour)


def _scale(depth: int, samples: np.ndarray) -> np.ndarray:
    """Spreads samples of fewer than 8 bits over all that 8 bits hold."""
    return samples * np.uint8(255 // ((1 << depth) - 1)) if depth < 8 else samples


def _add_alpha(depth: int, transparent: np.ndarray, samples: np.ndarray) -> np.ndarray:
    opaque = (samples != transparent).any(axis=2, keepdims=True)
    alpha = opaque * np.array(np.iinfo(samples.dtype).max, samples.dtype)
    return np.concatenate([_scale(depth, samples), alpha], axis=2)
