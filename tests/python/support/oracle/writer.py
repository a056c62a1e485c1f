"""A writer of L3 files that follows explicit or random choices, so that decoders meet files no encoder would choose.

Tiles are built bottom-up: `residual_body` or `label_map_body`, then `fast_tile`, `paper_tile` or `raw_tile`,
then `L3File`. Every derived field of an `L3File` (sizes, offsets, checksums) can be forged before `to_bytes`; those
left at None follow from the rest, so that a forged field is met behind correct checksums.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .crc32c import crc32c

RAW, PAPER, FAST = range(3)
PREDICTORS = (0, 1, 2, 3, 4)
LABEL_MAP = 7


# ----------------------------------------------------------------------------------------------------------- containers


@dataclass
class L3File:
    """The parts of an L3 file. Fields at None are derived from the others."""

    width: int
    height: int
    channels: int
    bits: int
    profile: int
    tiles: list[bytes]
    two_dimensional: bool = False
    has_checksums: bool = True
    metadata: bytes = b""
    signature: bytes = b"\x89L3I\r\n\x1a\n"
    major: int = 1
    minor: int = 0
    extra_header: bytes = b""
    trailer: bytes = bytes(16)
    tile_exponents: tuple[int, int] = (6, 6)
    reserved: int = 0
    header_size: int | None = None
    flags: int | None = None
    metadata_size: int | None = None
    payload_size: int | None = None
    offsets: Sequence[int] | None = None
    checksums: Sequence[int] | None = None
    table_crc: int | None = None
    metadata_crc: int | None = None
    header_crc: int | None = None

    def to_bytes(self) -> bytes:
        """Assemble the file."""
        payload = b"".join(self.tiles)
        offsets = _or(self.offsets, np.cumsum([0] + [len(coded) for coded in self.tiles]).tolist())
        checksums = _or(self.checksums, [crc32c(coded) for coded in self.tiles]) if self.has_checksums else []
        tables = np.array([*offsets, *checksums], "<u4").tobytes()
        start = self.signature + struct.pack(
            "<BBHIIBBBBBBHIIII",
            self.major,
            self.minor,
            _or(self.header_size, 48 + len(self.extra_header)),
            self.width,
            self.height,
            self.channels,
            self.bits,
            self.profile,
            _or(self.flags, self.two_dimensional + 2 * self.has_checksums),
            *self.tile_exponents,
            self.reserved,
            _or(self.metadata_size, len(self.metadata)),
            _or(self.payload_size, len(payload)),
            _or(self.table_crc, crc32c(tables)),
            _or(self.metadata_crc, crc32c(self.metadata)),
        )
        header_crc = _or(self.header_crc, crc32c(start + bytes(4) + self.extra_header))
        header = start + struct.pack("<I", header_crc) + self.extra_header
        return header + tables + self.metadata + payload + self.trailer


def _or(forged, derived):
    return derived if forged is None else forged


def metadata_entry(key: bytes, value: bytes, key_size: int | None = None, value_size: int | None = None) -> bytes:
    """Build one metadata entry; the sizes can be forged."""
    entry = struct.pack("<II", _or(key_size, len(key)), _or(value_size, len(value))) + key + value
    return padded(entry)


def metadata_area(entries: Mapping[str, bytes]) -> bytes:
    """Build a metadata area."""
    return b"".join(metadata_entry(key.encode(), value) for key, value in entries.items())


def padded(coded: bytes) -> bytes:
    """Pad with zero bytes to a multiple of 4."""
    return coded + bytes(-len(coded) % 4)


def as_pixels(image: np.ndarray) -> np.ndarray:
    """View an image of shape (H, W) or (H, W, C) as (H, W, C)."""
    return image[:, :, None] if image.ndim == 2 else image


def file_of_tiles(image: np.ndarray, profile: int, tiles: list[bytes], **fields) -> L3File:
    """Describe a file that holds `image`, uint8 or uint16, as the given coded tiles."""
    height, width, channels = as_pixels(image).shape
    return L3File(width, height, channels, 8 * image.dtype.itemsize, profile, tiles, image.ndim == 2, **fields)


def tiles_of(image: np.ndarray) -> list[np.ndarray]:
    """Cut an image into its tiles, each of shape (h, w, C), in file order."""
    pixels = as_pixels(image)
    rows, columns = range(0, pixels.shape[0], 64), range(0, pixels.shape[1], 64)
    return [pixels[top : top + 64, left : left + 64] for top in rows for left in columns]


# --------------------------------------------------------------------------------------------------------------- octets


def pack_octet(values: Iterable[int], n: int) -> bytes:
    """Pack eight values of `n` bits into `n` bytes."""
    values = [int(value) for value in values]
    if n > 8:
        return bytes(value & 255 for value in values) + pack_octet([value >> 8 for value in values], n - 8)
    return sum(value << (n * k) for k, value in enumerate(values)).to_bytes(n, "little")


def pack_flags(flags: Iterable[bool]) -> bytes:
    """Pack booleans as a bit string, rounded up to bytes."""
    return np.packbits(np.asarray(list(flags), bool), bitorder="little").tobytes()


# -------------------------------------------------------------------------------------------------------- raw and paper


def raw_tile(tile: np.ndarray) -> bytes:
    """Build the bytes of a `raw` tile of shape (h, w, C)."""
    return padded(tile.astype(tile.dtype.newbyteorder("<")).tobytes())


def raw_file(image: np.ndarray, **fields) -> L3File:
    """Describe `image` with profile `raw`."""
    return file_of_tiles(image, RAW, [raw_tile(tile) for tile in tiles_of(image)], **fields)


def paper_residuals(plane: np.ndarray, bits: int) -> np.ndarray:
    """Return the residuals of profile `paper` of a plane of shape (h, w), 0 … 2^bits − 1, as int64."""
    residuals = plane.astype(np.int64)
    for y, above in enumerate(plane[:-1].tolist(), start=1):
        residuals[y] -= [*map(paper_prediction, [0, *above[:-1]], above, [*above[1:], 0])]
    return residuals & (2**bits - 1)


def paper_prediction(a: int, b: int, c: int) -> int:
    """Return what `paper` predicts from the pixels above: to the left, straight and to the right."""
    to_a, to_b, to_c = (abs(a + c - b - value) for value in (a, b, c))
    if a == 0:
        return b if to_b <= to_c else c
    if c == 0:
        return a if to_a <= to_b else b
    if to_a <= min(to_b, to_c):
        return a
    return b if to_a <= to_c else c


def smallest_arc(values: np.ndarray, bits: int) -> tuple[int, int]:
    """Return start and length of the shortest interval modulo 2^bits that holds all values (its end included)."""
    ordered = np.unique(values)
    gaps = np.append(ordered[1:], ordered[0] + 2**bits) - ordered
    widest = int(np.argmax(gaps))
    return int(ordered[(widest + 1) % len(ordered)]), 2**bits - int(gaps[widest])


def paper_body(plane: np.ndarray, bits: int, rng: np.random.Generator | None = None) -> bytes:
    """Build a `paper` body of a plane of shape (h, w): smallest widths, or random widths and bases that do."""
    headers, payloads = b"", b""
    for row in paper_residuals(plane, bits):
        base, length = smallest_arc(row, bits)
        n = length.bit_length()
        if rng is not None:
            n = int(rng.integers(n, bits + 1))
            base = (base - int(rng.integers(2**n - length))) % 2**bits
        row_header, row_payload = paper_row(row, n, base, bits)
        headers += row_header
        payloads += row_payload
    return headers + payloads


def paper_row(residuals: np.ndarray, n: int, base: int, bits: int) -> tuple[bytes, bytes]:
    """Build header and payload of a `paper` row."""
    values = np.zeros(-(-len(residuals) // 8) * 8, np.int64)
    values[: len(residuals)] = (residuals - base) % 2**bits
    payload = b"".join(pack_octet(octet, n) for octet in values.reshape(-1, 8))
    return bytes([n]) + base.to_bytes(bits // 8, "little"), payload


def paper_tile(bodies: Sequence[bytes], sizes: Sequence[int] | None = None) -> bytes:
    """Join the bodies of a tile's channels to a `paper` tile; the sizes can be forged."""
    sizes = _or(sizes, [len(body) for body in bodies])
    return padded(struct.pack(f"<{len(sizes)}H", *sizes) + b"".join(bodies))


def paper_file(image: np.ndarray, rng: np.random.Generator | None = None, **fields) -> L3File:
    """Describe `image` with profile `paper`, rows as in `paper_body`."""
    bits = 8 * image.dtype.itemsize
    tiles = [
        paper_tile([paper_body(tile[:, :, channel], bits, rng) for channel in range(tile.shape[2])])
        for tile in tiles_of(image)
    ]
    return file_of_tiles(image, PAPER, tiles, **fields)


# ----------------------------------------------------------------------------------------------------------------- fast


@dataclass
class Channel:
    """A coded channel of a `fast` tile. `size`, at None, is that of the body."""

    mode: int
    first: int
    body: bytes
    size: int | None = None


def fast_tile(channels: Sequence[Channel], bits: int, transform: int = 0, scale: int = 0) -> bytes:
    """Join coded channels (in the coding order) to a `fast` tile."""
    heads = b"".join(
        bytes([channel.mode])
        + channel.first.to_bytes(bits // 8, "little")
        + _or(channel.size, len(channel.body)).to_bytes(2, "little")
        for channel in channels
    )
    return padded(bytes([transform | scale << 4]) + heads + b"".join(channel.body for channel in channels))


def scales_of(tile: np.ndarray) -> list[int]:
    """Return the scales that a tile can be coded with."""
    if tile.dtype.itemsize == 1:
        return [0]
    return [*(shift for shift in range(15) if not (tile % 2**shift).any()), 15]


def unscaled(tile: np.ndarray, scale: int, rng: np.random.Generator | None = None) -> np.ndarray:
    """Return samples that `scale` turns into those of a tile; with `rng` the bits that a shift drops are random."""
    if scale == 0:
        return tile
    if scale == 15:
        return tile * np.uint16(65281)  # 257 * 65281 is 1 modulo 2^16
    dropped = 0 if rng is None else rng.integers(2**scale, size=tile.shape) << (16 - scale)
    return (tile >> scale | dropped).astype(tile.dtype)


def coded_planes(tile: np.ndarray, transform: int) -> list[np.ndarray]:
    """Return the planes of an unscaled tile of shape (h, w, C) as coded: transformed, in the coding order."""
    planes = [tile[:, :, channel].astype(np.int64) for channel in range(tile.shape[2])]
    if len(planes) < 3:
        return planes
    red, green, blue, *alpha = planes
    middle, modulus = 2 ** (8 * tile.dtype.itemsize - 1), 2 ** (8 * tile.dtype.itemsize)
    if transform == 1:
        red, blue = (red - green + middle) % modulus, (blue - green + middle) % modulus
    elif transform == 2:
        red, blue = (red - green + middle) % modulus, (blue - ((red + green) >> 1) + middle) % modulus
    return [green, red, blue, *alpha]


def fast_residuals(plane: np.ndarray, predictor: int, bits: int) -> np.ndarray:
    """Return the residuals of a plane of shape (h, w) under predictors 0 … 4, as int64 in 0 … 2^bits − 1."""
    plane = plane.astype(np.int64)
    predicted = np.zeros_like(plane)
    predicted[0, 0] = plane[0, 0]
    predicted[0, 1:] = plane[0, :-1]
    above = np.pad(plane[:-1], ((0, 0), (1, 1)), mode="edge")
    north_west, north, north_east = above[:, :-2], above[:, 1:-1], above[:, 2:]
    smoothed = (((north_west + north_east + 1) >> 1) + north + 1) >> 1
    if predictor in (0, 1):
        predicted[1:] = north if predictor == 0 else smoothed
    else:  # W plus the step that the reference row makes from x − 1 to x
        reference = {2: np.zeros_like(north), 3: north, 4: smoothed}[predictor]
        predicted[1:, 0] = north[:, 0] if predictor == 2 else reference[:, 0]
        predicted[1:, 1:] = plane[1:, :-1] + np.diff(reference, axis=1)
    return (plane - predicted) % 2**bits


def to_units(plane: np.ndarray) -> np.ndarray:
    """Arrange a plane of shape (h, w), zero outside the tile, as (units, 8 groups, 8 values)."""
    h, w = plane.shape
    units = []
    for top in range(0, h, 2):
        for left in range(0, w, 32):
            unit = np.zeros((2, 32), plane.dtype)
            part = plane[top : top + 2, left : left + 32]
            unit[: part.shape[0], : part.shape[1]] = part
            units.append([unit[:, 4 * g : 4 * g + 4].ravel() for g in range(8)])
    return np.array(units)


def groups_inside(h: int, w: int) -> np.ndarray:
    """Say which groups touch a tile of h by w pixels: boolean of shape (units, 8)."""
    return to_units(np.ones((h, w), bool)).any(axis=2)


def code_range(code: int) -> tuple[int, int]:
    """Return the width and the minimum of a code."""
    n = (code + 1) // 2
    if n == 0:
        return 0, 0
    return n, -(2 ** (n - 1)) + (code % 2 == 0)


def fitting_codes(groups: np.ndarray, bits: int) -> np.ndarray:
    """Say which codes can express which groups: boolean of shape (*groups, codes) for groups of shape (*groups, 8)."""
    fits = []
    for code in range(16 if bits == 8 else 32):
        n, minimum = code_range(code)
        fits.append((((groups - minimum) % 2**bits) < 2**n).all(axis=-1))
    return np.stack(fits, axis=-1)


def max_index_bits(bits: int) -> int:
    """Return the number of index bits at which the palette is absent."""
    return 4 if bits == 8 else 5


def palette_bytes(palette: Sequence[int], bits: int) -> bytes:
    """Pack a palette of 2^b codes."""
    if bits == 16:
        return bytes(palette)
    codes = [*palette, 0] if len(palette) == 1 else palette
    return bytes(low | high << 4 for low, high in zip(codes[::2], codes[1::2], strict=True))


def residual_body(
    plane: np.ndarray,
    bits: int,
    predictor: int,
    index_bits: int,
    bitmap: bool = False,
    palette: Sequence[int] | None = None,
    rng: np.random.Generator | None = None,
) -> bytes:
    """Build the body of a plane of shape (h, w) coded with predictors 0 … 4.

    The palette, of 2^index_bits codes, must have one that expresses every group; at None it is chosen. With `rng`,
    palette, indices and presence of empty units are random among what is valid; without, the smallest.
    """
    units = to_units(fast_residuals(plane, predictor, bits))
    inside = groups_inside(*plane.shape)
    fits = fitting_codes(units, bits)
    if index_bits == max_index_bits(bits):
        codes, body = np.arange(2**index_bits), b""
    else:
        codes = np.array(_or(palette, _choose_palette(fits, index_bits, rng)))
        body = palette_bytes(codes.tolist(), bits)
    present = np.ones(len(units), bool)
    if bitmap:
        present = units.any(axis=(1, 2))
        if rng is not None:
            present |= rng.random(len(units)) < 0.3
        body += pack_flags(present)

    fits = fits[:, :, codes]  # by index
    assert fits.any(axis=2).all(), "the palette has no code for some group"
    preference = np.broadcast_to(-codes, fits.shape) if rng is None else rng.random(fits.shape)
    indices = np.where(fits, preference, -np.inf).argmax(axis=2)
    indices[~inside] = 0
    body += b"".join(pack_octet(word, index_bits) for word in indices[present])
    for unit in np.flatnonzero(present):
        for group in np.flatnonzero(inside[unit]):
            n, minimum = code_range(int(codes[indices[unit, group]]))
            body += pack_octet((units[unit, group] - minimum) % 2**bits, n)
    return body


def _choose_palette(fits: np.ndarray, index_bits: int, rng: np.random.Generator | None) -> list[int]:
    """Choose 2^index_bits codes of which one expresses every group, `fits` being as from `fitting_codes`."""
    everything = np.flatnonzero(fits.all(axis=(0, 1)))
    size = 2**index_bits
    if rng is not None:
        palette = [int(rng.choice(everything)), *rng.integers(fits.shape[2], size=size - 1).tolist()]
        return rng.permutation(palette).tolist()
    wanted = np.bincount(fits.argmax(axis=2).ravel(), minlength=fits.shape[2])
    frequent = [int(code) for code in np.argsort(-wanted, kind="stable")[: size - 1]]
    return sorted([*frequent, int(everything[0])])


def residual_channel(
    plane: np.ndarray,
    bits: int,
    predictor: int = 0,
    index_bits: int | None = None,
    bitmap: bool = False,
    palette: Sequence[int] | None = None,
    rng: np.random.Generator | None = None,
) -> Channel:
    """Code a plane with predictors 0 … 4; `index_bits` at None is the most. See `residual_body`."""
    index_bits = _or(index_bits, max_index_bits(bits))
    body = residual_body(plane, bits, predictor, index_bits, bitmap, palette, rng)
    return Channel(predictor | index_bits << 3 | bitmap << 6, int(plane[0, 0]), body)


def label_map_body(
    plane: np.ndarray, bits: int, extra_values: Iterable[int] = (), rng: np.random.Generator | None = None
) -> bytes:
    """Build the label map of a plane of shape (h, w).

    `extra_values` join the table though no pixel has them. With `rng` some units without a change are present.
    """
    plane = plane.astype(np.int64)
    table = sorted({*plane.ravel().tolist(), *extra_values})
    assert len(table) <= 256, "too many values for a label map"
    position = {value: i for i, value in enumerate(table)}
    above = np.vstack([np.full((1, plane.shape[1]), plane[0, 0]), plane[:-1]])
    changed, values, norths = to_units(plane != above), to_units(plane), to_units(above)
    present = changed.any(axis=(1, 2))
    if rng is not None:
        present |= rng.random(len(present)) < 0.3

    marked = changed.any(axis=2)
    rank_bits = next(m for m in range(9) if 2**m >= len(table) - 1)
    rank_string, rank_count = 0, 0
    for value, north in zip(values[changed], norths[changed], strict=True):
        rank = position[int(value)] - (value > north)
        rank_string |= int(rank) << (rank_bits * rank_count)
        rank_count += 1
    return (
        bytes([len(table) - 1])
        + b"".join(value.to_bytes(bits // 8, "little") for value in table)
        + pack_flags(present)
        + pack_flags(marked[present].ravel())
        + pack_flags(changed[marked].ravel())
        + rank_string.to_bytes(-(-rank_bits * rank_count // 8), "little")
    )


def label_map_channel(
    plane: np.ndarray, bits: int, extra_values: Iterable[int] = (), rng: np.random.Generator | None = None
) -> Channel:
    """Code a plane as a label map. See `label_map_body`."""
    return Channel(LABEL_MAP, int(plane[0, 0]), label_map_body(plane, bits, extra_values, rng))


def fast_file(image: np.ndarray, transform: int = 0, scale: int = 0, code_channel=residual_channel, **fields) -> L3File:
    """Describe `image` with profile `fast`, each coded plane through `code_channel(plane, bits)`."""
    bits = 8 * image.dtype.itemsize
    tiles = []
    for tile in tiles_of(image):
        channels = [code_channel(plane, bits) for plane in coded_planes(unscaled(tile, scale), transform)]
        tiles.append(fast_tile(channels, bits, transform, scale))
    return file_of_tiles(image, FAST, tiles, **fields)


# ------------------------------------------------------------------------------------------------------- random choices


def random_channel(plane: np.ndarray, bits: int, rng: np.random.Generator) -> Channel:
    """Code a plane of a `fast` tile by random choices."""
    values = np.unique(plane)
    if len(values) <= 256 and rng.random() < 0.25:
        room = 256 - len(values)
        extra = rng.integers(2**bits, size=rng.integers(min(room, 5) + 1)).tolist()
        return label_map_channel(plane, bits, extra, rng)
    index_bits = int(rng.integers(max_index_bits(bits) + 1))
    return residual_channel(plane, bits, int(rng.choice(PREDICTORS)), index_bits, bool(rng.integers(2)), rng=rng)


def random_file(image: np.ndarray, rng: np.random.Generator, profile: int | None = None) -> L3File:
    """Describe `image` by random choices, in a random profile unless one is given."""
    profile = int(rng.integers(3)) if profile is None else profile
    entries = {f"key {i}": rng.bytes(rng.integers(9)) for i in range(rng.integers(3))}
    fields = {"metadata": metadata_area(entries), "has_checksums": bool(rng.integers(2))}
    if rng.random() < 0.3:
        fields |= {"minor": int(rng.integers(1, 256)), "extra_header": rng.bytes(4 * rng.integers(1, 5))}
    if profile == RAW:
        return raw_file(image, **fields)
    if profile == PAPER:
        return paper_file(image, rng, **fields)
    bits = 8 * image.dtype.itemsize
    tiles = []
    for tile in tiles_of(image):
        transform = int(rng.integers(3)) if tile.shape[2] >= 3 else 0
        scale = int(rng.choice(scales_of(tile)))
        channels = [random_channel(plane, bits, rng) for plane in coded_planes(unscaled(tile, scale, rng), transform)]
        tiles.append(fast_tile(channels, bits, transform, scale))
    return file_of_tiles(image, FAST, tiles, **fields)


# ------------------------------------------------------------------------------------------------------ prototype files


@dataclass
class PrototypeFile:
    """The parts of a file of the published prototype. `sizes`, at None, are those of the patches."""

    width: int
    height: int
    patches: list[bytes] = field(default_factory=list)
    patch_size: int = 64
    sizes: Sequence[int] | None = None

    def to_bytes(self) -> bytes:
        """Assemble the file."""
        sizes = _or(self.sizes, [len(patch) for patch in self.patches])
        header = b"LLL." + struct.pack("<iiB", self.width, self.height, self.patch_size)
        return header + struct.pack(f"<{len(sizes)}H", *sizes) + b"".join(self.patches)


def prototype_patch(plane: np.ndarray, rng: np.random.Generator | None = None) -> bytes:
    """Build the patch of a plane of shape (64, 64), uint8, rows as in `paper_body`."""
    patch = b""
    for row in paper_residuals(plane, 8):
        base, length = smallest_arc(row, 8)
        n = length.bit_length()
        if rng is not None:
            n = int(rng.integers(n, 9))
            base = (base - int(rng.integers(2**n - length))) % 256
        bits = n | base << 4
        for x, value in enumerate(((row - base) % 256).tolist()):
            bits |= value << (12 + n * x)
        patch += bits.to_bytes(8 * n + 2, "little")
    return patch


def prototype_file(image: np.ndarray, rng: np.random.Generator | None = None) -> PrototypeFile:
    """Describe an RGB uint8 image, its sides multiples of 64, as a prototype file."""
    tiles = tiles_of(image)
    patches = [prototype_patch(tile[:, :, channel], rng) for channel in range(3) for tile in tiles]
    return PrototypeFile(image.shape[1], image.shape[0], patches)
