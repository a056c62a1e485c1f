"""A catalogue of sound L3 files that no encoder of today would write, made for the rules of docs/format.md one by one.

Each tells a decoder that knows a rule from one that does not: by its pixels, or by being refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from broken import CONSTANT, GRAY, LABELS
from oracle import writer
from oracle.writer import Channel

DTYPES = (np.uint8, np.uint16)


class Sound(NamedTuple):
    """A file that must decode to `image`, tile checksums checked, and whose metadata is `metadata`."""

    name: str
    data: bytes
    image: np.ndarray
    metadata: dict[str, bytes] = {}


def _bits(dtype: type) -> int:
    return 8 * np.dtype(dtype).itemsize


def _noise(shape: tuple[int, ...], dtype: type, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(np.iinfo(dtype).max, size=shape, dtype=dtype, endpoint=True)


def _extremes(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Values at the ends of the range, next to them and in the middle: sums overflow, averages round."""
    top = np.iinfo(dtype).max
    values = np.array([0, 1, 2, top // 2, top // 2 + 1, top - 1, top], dtype)
    return np.random.default_rng(2).choice(values, size=shape)


def _fast(image: np.ndarray, channels: Sequence[Channel], transform: int = 0, scale: int = 0) -> bytes:
    coded = writer.fast_tile(channels, 8 * image.dtype.itemsize, transform, scale)
    return writer.file_of_tiles(image, writer.FAST, [coded]).to_bytes()


# ----------------------------------------------------------------------------------------------------------- containers


def _containers() -> Iterator[Sound]:
    yield Sound("minor-version-255", writer.raw_file(GRAY, minor=255).to_bytes(), GRAY)
    wide = _noise((3, 67), np.uint8)
    for has_checksums in (False, True):
        entries = {"icc": b"profile", "unheard of": b""}
        file = writer.raw_file(
            wide,
            minor=2,
            extra_header=b"\xee" * 12,
            metadata=writer.metadata_area(entries),
            has_checksums=has_checksums,
            trailer=b"\xff" * 16,
        )
        name = f"longer-header-and-metadata-with{'' if has_checksums else 'out'}-checksums"
        yield Sound(name, file.to_bytes() + b"anything", wide, entries)
    entries = {
        "A": b"",
        "a": b"1",
        "aa": b"12",
        "k" * 255: b"123",
        "\0": b"1234",
        "\x7f\x80\u07ff\u0800": b"12345",
        "\u00e9": b"composed",
        "e\u0301": b"decomposed, which is another key",
        "\ufeff": b"\0",
        "\ud7ff\ue000\uffff": b"",
        "\U00010000\U0010ffff": b"",
    }
    # Padding of ones, which nobody looks at.
    area = b"".join(
        entry[: 8 + len(key.encode()) + len(value)].ljust(len(entry), b"\xff")
        for key, value in entries.items()
        for entry in [writer.metadata_entry(key.encode(), value)]
    )
    yield Sound("metadata-keys", writer.raw_file(GRAY, metadata=area).to_bytes(), GRAY, entries)
    for width, height in ((64, 2), (65, 1), (1, 64), (1, 65)):  # one tile or two
        image = _noise((height, width), np.uint8)
        yield Sound(f"raw-{width}-by-{height}", writer.raw_file(image).to_bytes(), image)


def _padding() -> Iterator[Sound]:
    """Ones in place of the zeros at the ends of tiles."""
    image = np.full((2, 5), 9, np.uint8)
    raw = writer.raw_tile(image[:, :, None])
    paper = writer.paper_tile([writer.paper_body(image, 8)])
    fast = writer.fast_tile([writer.residual_channel(image, 8, index_bits=0, bitmap=True)], 8)
    for name, profile, coded, size in (
        ("raw", writer.RAW, raw, 2 * 5),
        ("paper", writer.PAPER, paper, 2 + 2 * 2),
        ("fast", writer.FAST, fast, 5 + 2),
    ):
        assert len(coded) > size
        assert not any(coded[size:])
        file = writer.file_of_tiles(image, profile, [coded[:size].ljust(len(coded), b"\xff")])
        yield Sound(f"padding-of-ones-{name}", file.to_bytes(), image)


# ---------------------------------------------------------------------------------------------------------------- paper


def _plane_of_paper_residuals(residuals: np.ndarray, bits: int) -> np.ndarray:
    plane = np.zeros(residuals.shape, np.int64)
    for y, row in enumerate(residuals):
        for x, residual in enumerate(row):
            if y > 0:
                above = plane[y - 1]
                left, right = (above[x - 1] if x > 0 else 0), (above[x + 1] if x + 1 < len(row) else 0)
                residual += writer.paper_prediction(int(left), int(above[x]), int(right))
            plane[y, x] = residual % 2**bits
    return plane.astype(f"u{bits // 8}")


# Pixels above, to the left, straight and to the right, that lead to every branch of the prediction, and to its ties.
PAPER_TRIPLES = (
    (0, 3, 9),  # left is 0: equally far from both
    (0, 3, 10),
    (0, 3, 8),
    (0, 5, 0),
    (9, 3, 0),  # right is 0: equally far from both
    (8, 3, 0),
    (10, 3, 0),
    (6, 10, 12),  # left as near as the one above
    (8, 10, 8),  # left as near as right
    (8, 10, 12),  # right as near as left, and the one above nearest
    (1, 3, 6),  # the one above is nearest, and right is taken
    (6, 3, 1),
    (5, 6, 9),
    (9, 5, 5),
    (5, 5, 8),
)


def _paper() -> Iterator[Sound]:
    for dtype in DTYPES:
        bits, kind = _bits(dtype), np.dtype(dtype).name
        row = np.array(PAPER_TRIPLES).ravel() * (25 if bits == 8 else 6000)  # p lies far outside the range at times
        image = np.stack([row, _noise(row.shape, dtype)]).astype(dtype)
        yield Sound(f"paper-prediction-{kind}", writer.paper_file(image).to_bytes(), image)
        for triple in ((7, 3, 0), (7, 12, 30), (200, 90, 10)):  # the last at the right edge: nothing follows it
            edge = np.array([triple, (1, 2, 3)], dtype)
            name = "-".join(map(str, triple))
            yield Sound(f"paper-right-edge-{name}-{kind}", writer.paper_file(edge).to_bytes(), edge)
        column = _extremes((7, 1), dtype)
        yield Sound(f"paper-one-column-{kind}", writer.paper_file(column).to_bytes(), column)

        # Row y has width y; bases are such that sums leave the range.
        rng = np.random.default_rng(3)
        values = np.stack([rng.integers(2**n, size=11) for n in range(bits + 1)])
        values[:, 0] = 2 ** np.arange(bits + 1) - 1
        bases = rng.integers(2 ** (bits - 1), 2**bits, size=bits + 1)
        image = _plane_of_paper_residuals(values + bases[:, None], bits)
        rows = [
            writer.paper_row(v + base, n, int(base), bits)
            for n, (v, base) in enumerate(zip(values, bases, strict=True))
        ]
        body = b"".join(header for header, _ in rows) + b"".join(payload for _, payload in rows)
        file = writer.file_of_tiles(image, writer.PAPER, [writer.paper_tile([body])])
        yield Sound(f"paper-widths-{kind}", file.to_bytes(), image)

    # One row of five samples in 9 bits; the last octet's three values past the edge are ones.
    row = np.array([[1000, 1001, 1002, 1003, 1511]], np.uint16)
    values = np.array([0, 1, 2, 3, 511, 511, 511, 511])
    coded = writer.paper_tile([bytes([9]) + (1000).to_bytes(2, "little") + writer.pack_octet(values, 9)])
    yield Sound("paper-values-past-the-edge-uint16", writer.file_of_tiles(row, writer.PAPER, [coded]).to_bytes(), row)


# ----------------------------------------------------------------------------------------------------------------- fast


def _every_code(dtype: type) -> np.ndarray:
    """An image whose groups, coded with predictor 2, have residuals from the least to the greatest of each code."""
    bits = _bits(dtype)
    units = np.zeros((2 * bits, 8), np.int64)  # a group for each code
    for code in range(2 * bits):
        n, minimum = writer.code_range(code)
        units[code, 3], units[code, 6] = minimum, minimum + 2**n - 1
    rows = units.reshape(2, bits, 2, 4).transpose(0, 2, 1, 3).reshape(4, 4 * bits)  # two row pairs
    plane = np.cumsum(rows, axis=1)
    starts = np.cumsum(rows[:, 0])
    return ((200 + starts[:, None] + plane - rows[:, :1]) % 2**bits).astype(dtype)


def _fast_codes() -> Iterator[Sound]:
    for dtype in DTYPES:
        bits, kind = _bits(dtype), np.dtype(dtype).name
        image = _every_code(dtype)
        yield Sound(f"every-code-{kind}", _fast(image, [writer.residual_channel(image, bits, 2)]), image)
        smooth = (np.indices((5, 37)).sum(axis=0) * 3 + _noise((5, 37), np.uint8) % 4).astype(dtype)
        for index_bits in range(writer.max_index_bits(bits) + 1):
            channel = writer.residual_channel(smooth, bits, index_bits % 5, index_bits, bitmap=index_bits % 2 == 1)
            yield Sound(f"index-bits-{index_bits}-{kind}", _fast(smooth, [channel]), smooth)
        channel = writer.residual_channel(smooth, bits, 3, 2, palette=[5, 7, 7, 5])
        yield Sound(f"palette-of-repeated-codes-{kind}", _fast(smooth, [channel]), smooth)

        # Two units without residuals around one with: absent, though the palette's only code has a minimum of −8.
        half = np.full((2, 64), 9, dtype)
        half[:, 32:] += np.arange(32, dtype=dtype) % 3
        tall = np.vstack([half[:, ::-1][:, ::-1], half[:1]])
        channel = writer.residual_channel(tall, bits, 3, 0, bitmap=True, palette=[7])
        yield Sound(f"absent-units-with-a-palette-that-is-not-0-{kind}", _fast(tall, [channel]), tall)

        # Two groups of each unit are inside, with index 0; the six outside name code 15.
        flat = CONSTANT.astype(dtype)
        palette = writer.palette_bytes([0, 15], bits)
        body = palette + bytes([0b11111100, 0b11111100])
        yield Sound(f"indices-of-groups-outside-{kind}", _fast(flat, [Channel(1 << 3, 9, body)]), flat)

        # One group of code 15 (width 8, minimum −128): 5 4 6 −20, then 1 2 0 −1. Predictor 2 adds sums to the first.
        body = writer.palette_bytes([15], bits) + bytes([133, 132, 134, 108, 129, 130, 128, 127])
        image = np.array([[105, 109, 115, 95], [106, 108, 108, 107]], dtype)
        yield Sound(f"residual-at-the-first-pixel-{kind}", _fast(image, [Channel(2, 100, body)]), image)

        # One row of five samples. Width 1, minimum 0 (code 2): ones in the lower row and right of the edge.
        row = np.array([[9, 10, 10, 10, 10]], dtype)
        body = writer.palette_bytes([2], bits) + bytes([0xF2, 0xFE])
        yield Sound(f"values-past-the-edges-{kind}", _fast(row, [Channel(2, 9, body)]), row)
        for width, height in ((1, 1), (33, 3), (64, 1), (61, 2)):
            image = _noise((height, width), dtype) % 16
            channel = writer.residual_channel(image, bits, 4, 2, bitmap=True)
            yield Sound(f"fast-{width}-by-{height}-{kind}", _fast(image, [channel]), image)


def _fast_channels() -> Iterator[Sound]:
    for dtype in DTYPES:
        bits, kind = _bits(dtype), np.dtype(dtype).name
        image = _extremes((6, 9, 4), dtype)
        for predictors in ((1, 2, 3, 4), (4, 0, 7, 1)):
            channels = [
                writer.label_map_channel(plane, bits)
                if predictor == writer.LABEL_MAP
                else writer.residual_channel(plane, bits, predictor)
                for predictor, plane in zip(predictors, writer.coded_planes(image, 0), strict=True)
            ]
            name = f"predictors-{'-'.join(map(str, predictors))}-of-extremes-{kind}"
            yield Sound(name, _fast(image, channels), image)
        for transform in (1, 2):
            for channel_count in (3, 4):
                image = _extremes((5, 6, channel_count), dtype)
                file = writer.fast_file(image, transform)
                yield Sound(f"transform-{transform}-of-extremes-{kind}-{channel_count}", file.to_bytes(), image)
        for channel_count in (2, 3):
            image = _noise((2, 5, channel_count), dtype)
            yield Sound(f"order-of-{channel_count}-channels-{kind}", writer.fast_file(image).to_bytes(), image)
    for scale in (1, 2, 9, 14, 15):
        shift = 2**scale if scale < 15 else 257
        image = (_noise((4, 5, 4), np.uint16) % (65536 // shift) * shift).astype(np.uint16)
        yield Sound(f"scale-{scale}-with-alpha", writer.fast_file(image, 2, scale).to_bytes(), image)


# ----------------------------------------------------------------------------------------------------------- label maps


def _label_plane(count: int, dtype: type, shape: tuple[int, int] = (12, 22)) -> np.ndarray:
    """A plane of `count` values from all over the range, in runs."""
    rng = np.random.default_rng(count)
    values = np.sort(rng.choice(np.iinfo(dtype).max + 1, count, replace=False)).astype(dtype)
    plane = values[np.minimum(rng.integers(0, max(1, count), size=shape), count - 1)]
    plane[shape[0] // 2 :, ::2] = plane[shape[0] // 2 - 1, ::2]
    free = plane[: shape[0] // 2].size
    plane.ravel()[rng.permutation(free)[: min(count, free)]] = values[: min(count, free)]
    return plane


def _label_maps() -> Iterator[Sound]:
    for counts in ((1, 2, 3, 4), (5, 6, 9, 10), (17, 18, 33, 34), (65, 66, 129, 130)):  # around each rank width
        image = np.stack([_label_plane(count, np.uint8) for count in counts], axis=2)
        channels = [writer.label_map_channel(plane, 8) for plane in writer.coded_planes(image, 0)]
        assert sorted(channel.body[0] + 1 for channel in channels) == list(counts)
        yield Sound(f"label-maps-of-{'-'.join(map(str, counts))}-values", _fast(image, channels), image)
    for dtype in DTYPES:
        image = np.random.default_rng(4).permutation(256).reshape(16, 16).astype(dtype)
        if dtype == np.uint16:
            image *= np.uint16(257)
        image[8:, 3:] = image[7, 3:]
        table = range(256) if dtype == np.uint8 else range(0, 65536, 257)
        channel = writer.label_map_channel(image, _bits(dtype), table)
        yield Sound(f"label-map-of-256-values-{np.dtype(dtype).name}", _fast(image, [channel]), image)
    good = writer.label_map_channel(LABELS, 8)
    assert good.body[-1] == 0b00101  # five ranks of one bit
    fill = replace(good, body=good.body[:-1] + bytes([0b11100101]))
    yield Sound("label-map-with-fill-bits", _fast(LABELS, [fill]), LABELS)
    # *first* is 7, of the values 7 8 9. Unit 0 has group 0, where value 0 is 9, and group 1, where none changes; unit 1
    # is present, without a group.
    image = np.full((3, 5), 7, np.uint8)
    image[:, 0] = 9
    body = bytes([2, 7, 8, 9, 0b11, 0b11, 0, 0b1, 0, 0b1])
    yield Sound("label-map-with-empty-masks", _fast(image, [Channel(7, 7, body)]), image)


# ------------------------------------------------------------------------------------------------------ prototype files


def _with_unused_bits(patch: bytes) -> bytes:
    """Sets the four bits at the end of each row."""
    changed, at = bytearray(patch), 0
    while at < len(patch):
        at += 8 * (patch[at] & 15) + 2
        changed[at - 1] |= 0xF0
    return bytes(changed)


def _prototype_files() -> Iterator[Sound]:
    image = np.zeros((128, 128, 3), np.uint8)
    for channel in range(3):
        for place in range(4):  # patches of one value, but for a few columns of the first two rows
            top, left = place // 2 * 64, place % 2 * 64
            image[top : top + 64, left : left + 64, channel] = 20 * (4 * channel + place) + 9
    image[:2, 60:68] += np.arange(8, dtype=np.uint8)[:, None]
    file = writer.prototype_file(image)
    file.patches = [_with_unused_bits(patch) for patch in file.patches]
    yield Sound("prototype-of-four-patches", file.to_bytes() + b"anything", image)

    rng = np.random.default_rng(5)
    residuals, patch = np.zeros((64, 64), np.int64), b""
    for y in range(64):
        n, base = (y, int(rng.integers(128, 256))) if y <= 8 else (0, 0)
        values = rng.integers(2**n, size=64)
        residuals[y] = values + base
        bits = n | base << 4 | sum(int(value) << (12 + n * x) for x, value in enumerate(values))
        patch += bits.to_bytes(8 * n + 2, "little")
    image = np.full((64, 64, 3), 0, np.uint8)
    image[:, :, 1] = _plane_of_paper_residuals(residuals, 8)
    yield Sound("prototype-widths", writer.PrototypeFile(64, 64, [bytes(128), patch, bytes(128)]).to_bytes(), image)


# ------------------------------------------------------------------------------------------------------ annotated files


def _annotated() -> Iterator[Sound]:
    """The files that docs/format.md shows byte by byte."""
    green = np.array([[10, 12, 14, 16, 18, 20], [11, 13, 15, 17, 19, 22], [10, 12, 14, 16, 18, 21]])
    image = np.stack([green + 50, green, green - 5], axis=2).astype(np.uint8)
    planes = writer.coded_planes(image, 1)
    channels = [
        writer.residual_channel(planes[0], 8, 3, 2, palette=[0, 1, 4, 4]),
        writer.residual_channel(planes[1], 8, 0, 0, palette=[0]),
        writer.residual_channel(planes[2], 8, 0, 0, bitmap=True, palette=[0]),
    ]
    yield Sound("annotated-fast", _fast(image, channels, 1), image)
    file = writer.file_of_tiles(LABELS, writer.FAST, [writer.fast_tile([writer.label_map_channel(LABELS, 8)], 8)])
    yield Sound("annotated-label-map", replace(file, has_checksums=False).to_bytes(), LABELS)


def _catalogue() -> list[Sound]:
    sections = (
        _containers,
        _padding,
        _paper,
        _fast_codes,
        _fast_channels,
        _label_maps,
        _prototype_files,
        _annotated,
    )
    return [case for section in sections for case in section()]


SOUND: list[Sound] = _catalogue()
