"""A plain decoder of L3 files that checks everything docs/format.md tells a decoder to check."""

import struct
from dataclasses import dataclass

import numpy as np

from .crc32c import crc32c

SIGNATURE = b"\x89L3I\r\n\x1a\n"
PROTOTYPE_SIGNATURE = b"LLL."
RAW, PAPER, FAST = 0, 1, 2
TILE = 64
HEADER_SIZE = 48
TRAILER_SIZE = 16
MAX_SIDE = 2**20
MAX_IMAGE_BYTES = 2**31
MAX_METADATA_BYTES = 2**24
LABEL_MAP = 7


class OracleError(ValueError):
    """A file that must be refused.

    `status` is the class of failure: signature, unsupported, limit, truncated, corrupt or checksum.
    """

    def __init__(self, status: str, reason: str):
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.reason = reason


def _require(condition: bool, status: str, reason: str) -> None:
    if not condition:
        raise OracleError(status, reason)


# ------------------------------------------------------------------------------------------------------------ container


@dataclass(frozen=True)
class Header:
    """The checked header of a file; sizes in pixels and bytes."""

    header_size: int
    width: int
    height: int
    channels: int
    bits: int
    profile: int
    flags: int
    metadata_size: int
    payload_size: int
    table_crc: int
    metadata_crc: int

    @property
    def dtype(self) -> np.dtype:
        return np.dtype("<u1" if self.bits == 8 else "<u2")

    @property
    def sample_bytes(self) -> int:
        return self.bits // 8

    @property
    def two_dimensional(self) -> bool:
        return bool(self.flags & 1)

    @property
    def has_checksums(self) -> bool:
        return bool(self.flags & 2)

    @property
    def tile_count(self) -> int:
        return -(-self.width // TILE) * -(-self.height // TILE)

    @property
    def metadata_at(self) -> int:
        checksums = self.tile_count if self.has_checksums else 0
        return self.header_size + 4 * (self.tile_count + 1 + checksums)

    @property
    def payload_at(self) -> int:
        return self.metadata_at + self.metadata_size

    @property
    def file_size(self) -> int:
        return self.payload_at + self.payload_size + TRAILER_SIZE


def _check_size(width: int, height: int, channels: int, bits: int) -> None:
    _require(1 <= width <= MAX_SIDE, "limit", f"width {width}")
    _require(1 <= height <= MAX_SIDE, "limit", f"height {height}")
    _require(1 <= channels <= 4, "limit", f"{channels} channels")
    image_bytes = width * height * channels * (bits // 8)
    _require(image_bytes <= MAX_IMAGE_BYTES, "limit", f"an image of {image_bytes} bytes")


def parse_header(data: bytes) -> Header:
    """Read and check the header of `data`; raise OracleError when it must be refused."""
    if data[:8] != SIGNATURE[: len(data)]:
        raise OracleError("signature", "not an L3 file")
    _require(len(data) >= HEADER_SIZE, "truncated", "the file ends within the header")
    major, _minor, header_size, width, height = struct.unpack_from("<BBHII", data, 8)
    channels, bits, profile, flags, tile_width, tile_height, reserved = struct.unpack_from("<BBBBBBH", data, 20)
    metadata_size, payload_size, table_crc, metadata_crc, header_crc = struct.unpack_from("<IIIII", data, 28)

    _require(major == 1, "unsupported", f"major version {major}")
    _require(header_size >= HEADER_SIZE and header_size % 4 == 0, "corrupt", f"header size {header_size}")
    if len(data) >= header_size:  # else the fields are hints, and a whole file would have been longer
        checked = data[: HEADER_SIZE - 4] + bytes(4) + data[HEADER_SIZE:header_size]
        _require(crc32c(checked) == header_crc, "checksum", "the header's checksum is wrong")

    _require(bits in (8, 16), "unsupported", f"{bits} bits per sample")
    _require(profile in (RAW, PAPER, FAST), "unsupported", f"profile {profile}")
    _require(flags & ~3 == 0, "unsupported", f"flags {flags:#04x}")
    _require(tile_width == 6, "unsupported", f"tile width exponent {tile_width}")
    _require(tile_height == 6, "unsupported", f"tile height exponent {tile_height}")

    _check_size(width, height, channels, bits)
    _require(metadata_size <= MAX_METADATA_BYTES, "limit", f"metadata size {metadata_size}")

    _require(not flags & 1 or channels == 1, "corrupt", f"flags {flags:#04x} with {channels} channels")
    _require(reserved == 0, "corrupt", f"the reserved field is {reserved}")
    _require(metadata_size % 4 == 0, "corrupt", f"metadata size {metadata_size} is not a multiple of 4")
    _require(payload_size % 4 == 0, "corrupt", f"payload size {payload_size} is not a multiple of 4")
    return Header(
        header_size, width, height, channels, bits, profile, flags, metadata_size, payload_size, table_crc, metadata_crc
    )


def _read_container(data: bytes) -> tuple[Header, list[bytes], list[int] | None]:
    """Return the header, the tiles' bytes and their checksums (None when the file has none)."""
    header = parse_header(data)
    _require(len(data) >= header.file_size, "truncated", f"{len(data)} bytes of {header.file_size}")
    tables = data[header.header_size : header.metadata_at]
    _require(crc32c(tables) == header.table_crc, "checksum", "the tables' checksum is wrong")

    words = np.frombuffer(tables, "<u4").astype(np.int64)
    offsets, checksums = words[: header.tile_count + 1], words[header.tile_count + 1 :]
    _require(offsets[0] == 0, "corrupt", "the first offset is not 0")
    _require(offsets[-1] == header.payload_size, "corrupt", "the last offset is not the payload size")
    _require(bool(np.all(np.diff(offsets) > 0)), "corrupt", "offsets do not ascend")
    _require(bool(np.all(offsets % 4 == 0)), "corrupt", "an offset is not a multiple of 4")

    payload = data[header.payload_at : header.payload_at + header.payload_size]
    tiles = [payload[begin:end] for begin, end in zip(offsets[:-1], offsets[1:], strict=True)]
    return header, tiles, checksums.tolist() if header.has_checksums else None


def read_metadata(data: bytes) -> dict[str, bytes]:
    """Return the metadata entries of `data`; raise OracleError when the file or its metadata must be refused."""
    data = bytes(data)
    if data[:4] == PROTOTYPE_SIGNATURE:
        _read_prototype(data)
        return {}
    header, _, _ = _read_container(data)
    area = data[header.metadata_at : header.payload_at]
    _require(crc32c(area) == header.metadata_crc, "checksum", "the metadata's checksum is wrong")

    entries: dict[str, bytes] = {}
    at = 0
    while at < len(area):
        _require(at + 8 <= len(area), "corrupt", "a metadata entry runs past the end of the area")
        key_size, value_size = struct.unpack_from("<II", area, at)
        _require(1 <= key_size <= 255, "corrupt", f"metadata key size {key_size}")
        end = at + 8 + key_size + value_size
        _require(end <= len(area), "corrupt", "a metadata entry runs past the end of the area")
        try:
            key = area[at + 8 : at + 8 + key_size].decode("utf-8")
        except UnicodeDecodeError as error:
            raise OracleError("corrupt", "a metadata key is not UTF-8") from error
        _require(key not in entries, "corrupt", f"metadata key {key!r} repeats")
        entries[key] = area[at + 8 + key_size : end]
        at = -(-end // 4) * 4
    return entries


def decode(data: bytes, verify: bool = False) -> np.ndarray:
    """Decode an L3 file, or a file of the prototype.

    Returns an array of shape (height, width) or (height, width, channels), uint8 or uint16. `verify` asks for the
    tiles' checksums to be checked as well. Raises OracleError when the file must be refused.
    """
    data = bytes(data)
    if data[:4] == PROTOTYPE_SIGNATURE:
        return _decode_prototype(data)
    header, tiles, checksums = _read_container(data)
    decode_tile = {RAW: _decode_raw_tile, PAPER: _decode_paper_tile, FAST: _decode_fast_tile}[header.profile]
    image = np.empty((header.height, header.width, header.channels), header.dtype)
    tiles_across = -(-header.width // TILE)
    for tile, coded in enumerate(tiles):
        top, left = TILE * (tile // tiles_across), TILE * (tile % tiles_across)
        target = image[top : top + TILE, left : left + TILE]
        try:
            if verify and checksums is not None:
                _require(crc32c(coded) == checksums[tile], "checksum", "the checksum is wrong")
            target[...] = decode_tile(coded, target.shape[0], target.shape[1], header)
        except OracleError as error:
            raise OracleError(error.status, f"tile {tile}: {error.reason}") from None
    return image[:, :, 0] if header.two_dimensional else image


# ------------------------------------------------------------------------------------------------------- bytes and bits


class _Reader:
    """Takes bytes from the front of a buffer, within its bounds."""

    def __init__(self, data: bytes):
        self._data = data
        self._at = 0

    def take(self, size: int, what: str) -> np.ndarray:
        """Return the next `size` bytes as uint8."""
        left = len(self._data) - self._at
        _require(size <= left, "corrupt", f"{what}: {size} bytes wanted, {left} left")
        self._at += size
        return np.frombuffer(self._data, np.uint8, size, self._at - size)

    def number(self, size: int, what: str) -> int:
        """Return the next `size` bytes as a little-endian integer."""
        return int.from_bytes(self.take(size, what).tobytes(), "little")

    def finish(self, what: str, padding: int = 0) -> None:
        """Check that no more than `padding` bytes are left."""
        left = len(self._data) - self._at
        _require(left <= padding, "corrupt", f"{what}: {left} bytes left over")


def _unpack_octets(packed: np.ndarray, n: int) -> np.ndarray:
    """Unpack octets of `n`-bit values: uint8 of shape (count, n) to int64 of shape (count, 8)."""
    if n > 8:
        return packed[:, :8] + (_unpack_octets(packed[:, 8:], n - 8) << 8)
    bits = np.unpackbits(packed, axis=1, bitorder="little").reshape(len(packed), 8, n)
    return bits.astype(np.int64) @ (1 << np.arange(n, dtype=np.int64))


def _unpack_flags(packed: np.ndarray) -> np.ndarray:
    """Unpack the bits of uint8 bytes to a boolean vector."""
    return np.unpackbits(packed, bitorder="little").astype(bool)


# -------------------------------------------------------------------------------------------------------- raw and paper


def _decode_raw_tile(coded: bytes, h: int, w: int, header: Header) -> np.ndarray:
    size = h * w * header.channels * header.sample_bytes
    _require(len(coded) == -(-size // 4) * 4, "corrupt", f"a raw tile of {len(coded)} bytes, not {size}")
    return np.frombuffer(coded[:size], header.dtype).reshape(h, w, header.channels)


def _decode_paper_tile(coded: bytes, h: int, w: int, header: Header) -> np.ndarray:
    reader = _Reader(coded)
    sizes = [reader.number(2, "body sizes") for _ in range(header.channels)]
    bodies = [reader.take(size, f"the body of channel {channel}").tobytes() for channel, size in enumerate(sizes)]
    reader.finish("the tile", padding=3)
    return np.stack([_decode_paper_body(body, h, w, header) for body in bodies], axis=2)


def _decode_paper_body(body: bytes, h: int, w: int, header: Header) -> np.ndarray:
    reader = _Reader(body)
    rows = [(reader.number(1, "row width"), reader.number(header.sample_bytes, "row base")) for _ in range(h)]
    _require(max(n for n, _ in rows) <= header.bits, "corrupt", "a row is wider than the samples")
    octets = -(-w // 8)
    residuals = np.empty((h, w), np.int64)
    for y, (n, base) in enumerate(rows):
        packed = reader.take(octets * n, "row payload").reshape(octets, n)
        residuals[y] = base + _unpack_octets(packed, n).ravel()[:w]
    reader.finish("a body")
    return _undo_paper_prediction(residuals, header.bits)


def _undo_paper_prediction(residuals: np.ndarray, bits: int) -> np.ndarray:
    """Add the row-above prediction of `paper` to residuals of shape (h, w); samples as int64."""
    mask = 2**bits - 1
    plane = residuals & mask
    for y in range(1, len(plane)):
        n = plane[y - 1]
        nw = np.append(0, n[:-1])
        ne = np.append(n[1:], 0)
        p = nw + ne - n
        to_nw, to_n, to_ne = abs(p - nw), abs(p - n), abs(p - ne)
        without_nw = np.where(to_n <= to_ne, n, ne)
        without_ne = np.where(to_nw <= to_n, nw, n)
        n_or_ne = np.where(to_nw <= to_ne, n, ne)  # which of the two is nearer is not asked
        among_three = np.where((to_nw <= to_n) & (to_nw <= to_ne), nw, n_or_ne)
        predicted = np.where(nw == 0, without_nw, np.where(ne == 0, without_ne, among_three))
        plane[y] = (plane[y] + predicted) & mask
    return plane


# ----------------------------------------------------------------------------------------------------------------- fast


def _decode_fast_tile(coded: bytes, h: int, w: int, header: Header) -> np.ndarray:
    reader = _Reader(coded)
    byte = reader.number(1, "transform")
    transform, scale = byte & 15, byte >> 4
    _require(transform <= 2, "corrupt", f"colour transform {transform}")
    enough = transform == 0 or header.channels >= 3
    _require(enough, "corrupt", f"colour transform {transform} of {header.channels} channels")
    _require(scale == 0 or header.bits == 16, "corrupt", f"scale {scale} of 8-bit samples")
    heads = [
        (reader.number(1, "mode"), reader.number(header.sample_bytes, "first sample"), reader.number(2, "body size"))
        for _ in range(header.channels)
    ]
    bodies = [reader.take(size, f"coded channel {i}: body").tobytes() for i, (_, _, size) in enumerate(heads)]
    reader.finish("the tile", padding=3)

    planes = []
    for i, ((mode, first, _), body) in enumerate(zip(heads, bodies, strict=True)):
        decode_body = _decode_label_map if mode & 7 == LABEL_MAP else _decode_residual_body
        try:
            planes.append(decode_body(_Reader(body), mode, first, h, w, header.bits))
        except OracleError as error:
            raise OracleError(error.status, f"coded channel {i}: {error.reason}") from None
    samples = np.stack(_undo_colour_transform(planes, transform, header.bits), axis=2)
    return samples * (257 if scale == 15 else 2**scale) % 2**header.bits


def _undo_colour_transform(planes: list[np.ndarray], transform: int, bits: int) -> list[np.ndarray]:
    """Turn planes as coded into planes in the image's order."""
    if len(planes) < 3:
        return planes
    green, red, blue, *alpha = planes
    mask, middle = 2**bits - 1, 2 ** (bits - 1)
    if transform:
        red = (red + green - middle) & mask
        blue = (blue + (green if transform == 1 else (red + green) // 2) - middle) & mask
    return [red, green, blue, *alpha]


def _pixels_inside(h: int, w: int) -> np.ndarray:
    """Say which values lie within the tile: boolean of shape (units, 8 groups, 8 values)."""
    row_pairs, units_across = -(-h // 2), -(-w // 32)
    plane = np.zeros((2 * row_pairs, 32 * units_across), bool)
    plane[:h, :w] = True
    groups = plane.reshape(row_pairs, 2, 8 * units_across, 4).transpose(0, 2, 1, 3)
    return groups.reshape(row_pairs * units_across, 8, 8)


def _units_to_plane(values: np.ndarray, h: int, w: int) -> np.ndarray:
    """Lay values of shape (units, 8 groups, 8 values) out as a plane of shape (h, w)."""
    row_pairs = -(-h // 2)
    groups = values.reshape(row_pairs, -1, 2, 4)
    return groups.transpose(0, 2, 1, 3).reshape(2 * row_pairs, -1)[:h, :w]


def _take_unit_bitmap(reader: _Reader, units: int) -> np.ndarray:
    bits = _unpack_flags(reader.take(-(-units // 8), "unit bitmap"))
    _require(not bits[units:].any(), "corrupt", "the unit bitmap has bits past the last unit")
    return bits[:units]


def _take_palette(reader: _Reader, index_bits: int, bits: int) -> np.ndarray:
    """Return the code of each index."""
    if bits == 8:
        if index_bits == 4:
            return np.arange(16)
        packed = reader.take(max(1, 2**index_bits // 2), "palette")
        codes = np.stack([packed & 15, packed >> 4], axis=1).ravel()
        _require(index_bits > 0 or codes[1] == 0, "corrupt", "the unused half of the palette is not 0")
    else:
        if index_bits == 5:
            return np.arange(32)
        codes = reader.take(2**index_bits, "palette")
        _require(codes.max() < 32, "corrupt", f"palette code {codes.max()}")
    return codes[: 2**index_bits].astype(np.int64)


def _code_minimum(code: np.ndarray) -> np.ndarray:
    n = (code + 1) // 2
    half = np.where(n > 0, 1 << np.maximum(n - 1, 0), 0)
    return np.where((code % 2 == 0) & (n > 0), 1 - half, -half)


def _decode_residual_body(reader: _Reader, mode: int, first: int, h: int, w: int, bits: int) -> np.ndarray:
    predictor, index_bits, has_bitmap = mode & 7, mode >> 3 & 7, mode >> 6 & 1
    _require(mode < 128, "corrupt", "bit 7 of the mode is set")
    _require(predictor <= 4, "corrupt", f"predictor {predictor}")
    _require(index_bits <= (4 if bits == 8 else 5), "corrupt", f"{index_bits} index bits")

    inside = _pixels_inside(h, w)
    units = len(inside)
    palette = _take_palette(reader, index_bits, bits)
    present = _take_unit_bitmap(reader, units) if has_bitmap else np.ones(units, bool)
    present_count = int(present.sum())
    words = reader.take(present_count * index_bits, "index words").reshape(present_count, index_bits)
    codes = palette[_unpack_octets(words, index_bits)]

    group_inside = inside[present].any(axis=2)
    widths = np.where(group_inside, (codes + 1) // 2, 0)
    starts = np.cumsum(widths).reshape(widths.shape) - widths
    payload = reader.take(int(widths.sum()), "payload")
    reader.finish("the body")

    values = np.zeros((present_count, 8, 8), np.int64)
    for n in np.unique(widths[widths > 0]):
        chosen = widths == n
        values[chosen] = _unpack_octets(payload[starts[chosen][:, None] + np.arange(n)], int(n))
    residuals = np.zeros((units, 8, 8), np.int64)
    residuals[present] = values + _code_minimum(codes)[:, :, None]
    return _undo_fast_prediction(_units_to_plane(residuals, h, w), predictor, first, bits)


def _smoothed(row: np.ndarray) -> np.ndarray:
    """Return q(x) for the row that follows `row`."""
    left = np.append(row[:1], row[:-1])
    right = np.append(row[1:], row[-1:])
    return ((left + right + 1) // 2 + row + 1) // 2


def _undo_fast_prediction(residuals: np.ndarray, predictor: int, first: int, bits: int) -> np.ndarray:
    """Reconstruct a plane from residuals of shape (h, w); samples as int64."""
    mask = 2**bits - 1
    plane = np.empty_like(residuals)
    plane[0] = (first + np.cumsum(residuals[0])) & mask
    for y in range(1, len(plane)):
        above = plane[y - 1]
        predicted = {0: above, 1: _smoothed(above), 2: above[0], 3: above, 4: _smoothed(above)}[predictor]
        added = residuals[y] if predictor in (0, 1) else np.cumsum(residuals[y])
        plane[y] = (predicted + added) & mask
    return plane


def _decode_label_map(reader: _Reader, mode: int, first: int, h: int, w: int, bits: int) -> np.ndarray:
    _require(mode == LABEL_MAP, "corrupt", f"a label map of mode {mode:#04x}")
    count = reader.number(1, "value count") + 1
    sample = np.dtype("<u1" if bits == 8 else "<u2")
    table = reader.take(count * sample.itemsize, "value table").view(sample).astype(np.int64)
    _require(bool(np.all(np.diff(table) > 0)), "corrupt", "the value table does not ascend")
    _require(first in table, "corrupt", "the first sample is not in the value table")

    inside = _pixels_inside(h, w)
    present = _take_unit_bitmap(reader, len(inside))
    marked = np.zeros((len(inside), 8), bool)
    marked[present] = _unpack_flags(reader.take(int(present.sum()), "group masks")).reshape(-1, 8)
    _require(not (marked & ~inside.any(axis=2)).any(), "corrupt", "a group mask has bits outside the tile")
    changed = np.zeros((len(inside), 8, 8), bool)
    changed[marked] = _unpack_flags(reader.take(int(marked.sum()), "pixel masks")).reshape(-1, 8)
    _require(not (changed & ~inside).any(), "corrupt", "a pixel mask has bits outside the tile")

    rank_bits = (count - 2).bit_length() if count > 2 else 0  # the smallest m with 2^m >= count - 1
    change_count = int(changed.sum())
    rank_string = _unpack_flags(reader.take(-(-change_count * rank_bits // 8), "ranks"))
    reader.finish("the body")
    rank_string = rank_string[: change_count * rank_bits].reshape(change_count, rank_bits)
    ranks = np.zeros(changed.shape, np.int64)
    ranks[changed] = rank_string @ (1 << np.arange(rank_bits, dtype=np.int64))

    changed, ranks = _units_to_plane(changed, h, w), _units_to_plane(ranks, h, w)
    positions = np.full(w, np.searchsorted(table, first))
    plane = np.empty((h, w), np.int64)
    for y in range(h):
        other = ranks[y] + (ranks[y] >= positions)
        positions = np.where(changed[y], other, positions)
        _require(positions.max() < count, "corrupt", "a rank is past the value table")
        plane[y] = table[positions]
    return plane


# ------------------------------------------------------------------------------------------------------ prototype files


def _read_prototype(data: bytes) -> tuple[int, int, list[bytes]]:
    """Return width, height and patches of a prototype file."""
    _require(len(data) >= 13, "truncated", "the file ends within the header")
    width, height, patch_size = struct.unpack_from("<iiB", data, 4)
    _require(patch_size == TILE, "unsupported", f"patch size {patch_size}")
    whole = width % TILE == 0 and height % TILE == 0
    _require(whole, "unsupported", f"width {width} or height {height} is not a multiple of {TILE}")
    _check_size(width, height, 3, 8)

    count = 3 * (width // TILE) * (height // TILE)
    _require(len(data) >= 13 + 2 * count, "truncated", "the file ends within the patch sizes")
    sizes = np.frombuffer(data, "<u2", count, 13).astype(np.int64)
    ends = 13 + 2 * count + np.cumsum(sizes)
    _require(len(data) >= ends[-1], "truncated", f"{len(data)} bytes of {ends[-1]}")
    return width, height, [data[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def _decode_prototype(data: bytes) -> np.ndarray:
    width, height, patches = _read_prototype(data)
    across, down = width // TILE, height // TILE
    image = np.empty((height, width, 3), np.uint8)
    for i, patch in enumerate(patches):
        channel, place = divmod(i, across * down)
        top, left = TILE * (place // across), TILE * (place % across)
        image[top : top + TILE, left : left + TILE, channel] = _decode_patch(patch)
    return image


def _decode_patch(patch: bytes) -> np.ndarray:
    """Decode one channel of one 64x64 patch of a prototype file."""
    residuals = np.empty((TILE, TILE), np.int64)
    at = 0
    for y in range(TILE):
        _require(at < len(patch), "corrupt", "a patch ends before its last row")
        n = patch[at] & 15
        _require(n <= 8, "corrupt", f"a patch row of width {n}")
        row = int.from_bytes(patch[at : at + 8 * n + 2], "little")
        base = row >> 4 & 255
        residuals[y] = [base + (row >> (12 + n * x) & (2**n - 1)) for x in range(TILE)]
        at += 8 * n + 2
    _require(at == len(patch), "corrupt", f"a patch of {len(patch)} bytes whose rows take {at}")
    return _undo_paper_prediction(residuals, 8)
