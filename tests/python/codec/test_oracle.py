"""Tests of the oracle: its decoder against its writer, against tiles worked out by hand, and on broken files."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broken import BROKEN, ODD
from oracle import decoder, writer
from oracle.crc32c import crc32c
from sound import SOUND
from verdicts import QUESTIONS, verdicts

DTYPES = (np.uint8, np.uint16)


def assert_same(decoded: np.ndarray, image: np.ndarray) -> None:
    assert decoded.dtype == image.dtype
    assert decoded.shape == image.shape
    np.testing.assert_array_equal(decoded, image)


def decode_tile(coded: bytes, width: int, height: int, profile: int, channels: int = 1, bits: int = 8) -> np.ndarray:
    """Decode a tile; a single channel as a two-dimensional image."""
    file = writer.L3File(width, height, channels, bits, profile, [coded], two_dimensional=channels == 1)
    return decoder.decode(file.to_bytes())


def make_image(
    rng: np.random.Generator, height: int, width: int, channels: int, dtype: type, kind: str = "noise"
) -> np.ndarray:
    """Make an image of shape (height, width), where channels is 0, or (height, width, channels)."""
    shape = (height, width, channels) if channels else (height, width)
    top = np.iinfo(dtype).max
    if kind == "noise":
        return rng.integers(top, size=shape, dtype=dtype, endpoint=True)
    if kind == "extremes":
        return rng.choice(np.array([0, top], dtype), size=shape)
    if kind == "smooth":
        slope = np.indices(shape).sum(axis=0) * int(rng.integers(1, 9)) + rng.integers(6, size=shape)
        return (slope % (top + 1)).astype(dtype)
    cells = rng.integers(top, size=(height // 8 + 1, width // 8 + 1, *shape[2:]), endpoint=True).astype(dtype)
    return cells.repeat(8, axis=0).repeat(8, axis=1)[:height, :width]  # "blocks"


# ---- Checksum


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"123456789", 0xE3069283),
        (b"", 0),
        (bytes(32), 0x8A9136AA),  # this and the next two: RFC 3720, appendix B.4
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_crc32c(data, expected):
    assert crc32c(data) == expected


# ---- Worked out by hand


def test_raw_file_of_one_pixel_by_hand():
    tables = bytes([0, 0, 0, 0, 4, 0, 0, 0])  # offsets 0 and 4, no tile checksums
    start = bytes(
        [0x89, 0x4C, 0x33, 0x49, 0x0D, 0x0A, 0x1A, 0x0A]  # signature
        + [1, 0, 48, 0]  # version 1.0, header size
        + [1, 0, 0, 0, 1, 0, 0, 0]  # width, height
        + [1, 8, 0, 1, 6, 6, 0, 0]  # channels, bits, profile raw, two-dimensional, tile exponents, reserved
        + [0, 0, 0, 0, 4, 0, 0, 0]  # metadata size, payload size
    )
    start += crc32c(tables).to_bytes(4, "little") + bytes(4)
    header = start + crc32c(start + bytes(4)).to_bytes(4, "little")
    data = header + tables + bytes([200, 0, 0, 0]) + bytes(16)
    image = np.array([[200]], np.uint8)
    assert_same(decoder.decode(data), image)
    assert writer.raw_file(image, has_checksums=False).to_bytes() == data


def test_fast_gray_tile_by_hand():
    # 5 x 3 pixels, predictor 0 (row 0: W, below: N), first sample 10:
    #   10 12 11 11 15            0  2 -1  0  4
    #   10 13 13 12 16   residuals 0  1  2  1  1
    #    9 13 13 12 16           -1  0  0  0  0
    # Two row pairs of one unit each; of a unit, groups 0 (x = 0..3) and 1 (x = 4, the rest outside) touch the tile.
    # Unit 0, group 0: 0 2 -1 0 0 1 2 1 -> width 2, minimum -1: code 4; values 1 3 0 1 1 2 3 2
    #         group 1: 4 0 0 0 1 0 0 0  -> width 3, minimum -3: code 6; values 7 3 3 3 4 3 3 3
    # Unit 1, group 0: -1 and zeros     -> width 1, minimum -1: code 1; values 0 1 1 1 1 1 1 1
    #         group 1: zeros            -> code 0, no payload
    # Palette 0 1 4 6, so two index bits.
    body = bytes(
        [0x10, 0x64]  # palette, low half first
        + [0b1110, 0]  # unit 0: indices 2 and 3
        + [0b0001, 0]  # unit 1: indices 1 and 0
        + [0b01_00_11_01, 0b10_11_10_01]  # unit 0, group 0, value 0 in the lowest bits
        + [0xDF, 0xC6, 0x6D]  # group 1: 0b011_011_011_100_011_011_011_111
        + [0b11111110]  # unit 1, group 0
    )
    head = bytes([0 | 2 << 3, 10, len(body), 0])
    coded = b"\0" + head + body + bytes(3)
    image = np.array([[10, 12, 11, 11, 15], [10, 13, 13, 12, 16], [9, 13, 13, 12, 16]], np.uint8)
    assert_same(decode_tile(coded, 5, 3, writer.FAST), image)
    channel = writer.residual_channel(image, 8, 0, index_bits=2, palette=[0, 1, 4, 6])
    assert writer.fast_tile([channel], 8) == coded


@pytest.mark.parametrize(
    ("predictor", "second_row"),
    [
        # Row 0 is 100 104 110 90 and the residuals below are 1 2 0 255 (-1), their sums 1 3 3 2.
        # q: avg(avg(100, 104), 100) = 101, avg(avg(100, 110), 104) = 105, avg(avg(104, 90), 110) = 104,
        #    avg(avg(110, 90), 90) = 95
        (0, [101, 106, 110, 89]),  # N + e
        (1, [102, 107, 104, 94]),  # q + e
        (2, [101, 103, 103, 102]),  # N(0) + s
        (3, [101, 107, 113, 92]),  # N + s
        (4, [102, 108, 107, 97]),  # q + s
    ],
)
def test_fast_predictors_by_hand(predictor, second_row):
    # One group of code 15 (width 8, minimum -128), so its values are the residuals + 128; row 0: 0 4 6 -20.
    body = bytes([15]) + bytes([128, 132, 134, 108, 129, 130, 128, 127])
    coded = bytes([0, predictor, 100, len(body), 0]) + body + bytes(2)
    image = np.array([[100, 104, 110, 90], second_row], np.uint8)
    assert_same(decode_tile(coded, 4, 2, writer.FAST), image)


@pytest.mark.parametrize(
    ("transform", "green", "red", "blue"),
    [
        (0, 100, 200, 50),
        (1, 100, 228, 78),  # 200 - 100 + 128, 50 - 100 + 128
        (2, 100, 228, 28),  # 50 - (200 + 100) / 2 + 128
    ],
)
def test_colour_transforms_by_hand(transform, green, red, blue):
    # One pixel; each body is the palette byte for code 0, without indices and payload.
    heads = b"".join(bytes([0, first, 1, 0]) for first in (green, red, blue))
    coded = bytes([transform]) + heads + bytes(3)
    image = np.array([[[200, 100, 50]]], np.uint8)
    assert_same(decode_tile(coded, 1, 1, writer.FAST, channels=3), image)


def test_colour_transform_sums_without_overflow():
    # R + G = 131070 does not fit 16 bits: B is stored as 5 - 65535 + 32768 modulo 65536 = 32774.
    heads = b"".join(b"\0" + first.to_bytes(2, "little") + b"\1\0" for first in (65535, 32768, 32774))
    image = np.array([[[65535, 65535, 5]]], np.uint16)
    assert_same(decode_tile(b"\2" + heads + bytes(4), 1, 1, writer.FAST, channels=3, bits=16), image)


@pytest.mark.parametrize(
    ("scale", "pixel"),
    [
        (0, [200, 100, 0x1050]),
        (4, [3200, 1600, 0x0500]),  # 0x1050 * 16 modulo 2^16
        (14, [0, 0, 0]),
        (15, [51400, 25700, 0x6050]),  # 0x1050 * 257 modulo 2^16
    ],
)
def test_scales_by_hand(scale, pixel):
    # One pixel of transform 1: 200 - 100 + 32768, 0x1050 - 100 + 32768.
    heads = b"".join(b"\0" + first.to_bytes(2, "little") + b"\1\0" for first in (100, 32868, 36844))
    coded = bytes([1 | scale << 4]) + heads + bytes(4)
    assert_same(decode_tile(coded, 1, 1, writer.FAST, channels=3, bits=16), np.array([[pixel]], np.uint16))


def test_fast_16_bit_group_by_hand():
    # One group of code 17 (width 9, minimum -256), index bits 0; residuals 0 1 2 3 and -256 -255 254 255 of a row pair.
    # Values 256 257 258 259 0 1 510 511: the low bytes, then the high bits.
    body = bytes([17, 0, 1, 2, 3, 0, 1, 254, 255, 0b11001111])
    coded = bytes([0, 0, 0xE8, 3, len(body), 0]) + body  # first sample 1000
    image = np.array([[1000, 1001, 1003, 1006], [744, 746, 1257, 1261]], np.uint16)
    assert_same(decode_tile(coded, 4, 2, writer.FAST, bits=16), image)


def test_label_map_by_hand():
    # 7 7 7 9   against the row above (row 0: against 7) there differ
    # 7 7 8 9   value 3 (9) and value 6 (8) of the only group of unit 0
    # 7 7 8 7   and value 3 (7) of that of unit 1.
    # Table 7 8 9, so ranks of one bit: 9 is the second of {8, 9}, 8 the first; 7 the first of {7, 8}.
    body = bytes([2, 7, 8, 9, 0b11, 1, 1, 0b01001000, 0b00001000, 0b001])
    coded = bytes([0, 7, 7, len(body), 0]) + body + bytes(1)
    image = np.array([[7, 7, 7, 9], [7, 7, 8, 9], [7, 7, 8, 7]], np.uint8)
    assert_same(decode_tile(coded, 4, 3, writer.FAST), image)
    assert writer.fast_tile([writer.label_map_channel(image, 8)], 8) == coded


def test_paper_tile_by_hand():
    # 5 6 9   row 0 is its own residual: base 5, values 0 1 4 of 3 bits
    # 5 6 8   x = 0: a 0, b 5, c 6, p 1: b is nearer, residual 0
    #         x = 1: a 5, b 6, c 9, p 8: c is nearest, residual -3
    #         x = 2: a 6, b 9, c 0, p -3: a is nearer, residual 2; base -3, values 3 0 5 of 3 bits
    body = bytes([3, 5, 3, 253]) + bytes([0b00_001_000, 0b1, 0]) + bytes([0b01_000_011, 0b1, 0])
    coded = bytes([len(body), 0]) + body
    image = np.array([[5, 6, 9], [5, 6, 8]], np.uint8)
    assert_same(decode_tile(coded, 3, 2, writer.PAPER), image)
    assert writer.paper_tile([writer.paper_body(image, 8)]) == coded


@pytest.mark.parametrize(
    ("a", "b", "c", "predicted"),
    [
        (1, 3, 6, 6),  # p 4: distances 3 1 2; c although b is nearest, for a is nearer neither than b nor than c
        (6, 3, 1, 3),  # p 4: distances 2 1 3; b
        (5, 6, 9, 9),  # p 8: distances 3 2 1; c
        (5, 5, 8, 8),  # p 8: distances 3 3 0; c
        (9, 5, 5, 9),  # p 9: distances 0 4 4; a
        (4, 6, 8, 6),  # p 6: distances 2 0 2; b, as a is no farther than c
        (0, 6, 2, 2),  # p -4: distances 10 and 6 of b and c; c
        (0, 5, 6, 5),  # p 1: distances 4 and 5 of b and c; b
        (6, 9, 0, 6),  # p -3: distances 9 and 12 of a and b; a
        (9, 5, 0, 5),  # p 4: distances 5 and 1 of a and b; b
    ],
)
def test_paper_prediction_by_hand(a, b, c, predicted):
    # Row 0 is a b c with width 4 and base 0; row 1 has residuals 0 throughout, so its middle pixel is the prediction.
    body = bytes([4, 0, 0, 0, a | b << 4, c, 0, 0])
    assert decode_tile(bytes([len(body), 0]) + body + bytes(2), 3, 2, writer.PAPER)[1, 1] == predicted


def test_prototype_file_by_hand():
    # Constant planes: the base of row 0 is the sample, all else is 0. A row without values is 4 + 8 bits and 4 unused.
    patches = [bytes([sample << 4 & 255, sample >> 4]) + bytes(2 * 63) for sample in (200, 100, 50)]
    data = b"LLL." + bytes([64, 0, 0, 0, 64, 0, 0, 0, 64]) + bytes([128, 0] * 3) + b"".join(patches)
    image = np.broadcast_to(np.array([200, 100, 50], np.uint8), (64, 64, 3))
    assert_same(decoder.decode(data), image)
    assert decoder.read_metadata(data) == {}


# ---- Round trips


@settings(max_examples=60)
@given(
    height=st.integers(1, 150),
    width=st.integers(1, 150),
    channels=st.integers(0, 4),
    dtype=st.sampled_from(DTYPES),
    profile=st.sampled_from((writer.RAW, writer.PAPER, writer.FAST)),
    kind=st.sampled_from(("noise", "extremes", "smooth", "blocks")),
    seed=st.integers(0, 2**32 - 1),
)
def test_random_choices_round_trip(height, width, channels, dtype, profile, kind, seed):
    rng = np.random.default_rng(seed)
    image = make_image(rng, height, width, channels, dtype, kind)
    data = writer.random_file(image, rng, profile).to_bytes()
    assert_same(decoder.decode(data, verify=True), image)
    assert all(key.startswith("key ") for key in decoder.read_metadata(data))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("predictor", writer.PREDICTORS)
@pytest.mark.parametrize("bitmap", [False, True])
def test_every_predictor_with_all_index_bits(dtype, predictor, bitmap):
    rng = np.random.default_rng(predictor)
    for index_bits in range(writer.max_index_bits(8 * np.dtype(dtype).itemsize) + 1):
        for height, width in ((1, 1), (2, 4), (3, 5), (1, 33), (64, 4), (63, 61)):
            image = make_image(rng, height, width, 0, dtype, "smooth")
            code = partial(writer.residual_channel, predictor=predictor, index_bits=index_bits, bitmap=bitmap, rng=rng)
            assert_same(decoder.decode(writer.fast_file(image, code_channel=code).to_bytes()), image)


@pytest.mark.parametrize("code", range(32))
def test_every_code_reaches_both_ends_of_its_range(code):
    n, minimum = writer.code_range(code)
    for bits in (8, 16) if code < 16 else (16,):
        ends = [0, minimum, minimum + 2**n - 1, 0]
        image = (1000 + np.cumsum([ends])[None] % 2**bits).astype(f"u{bits // 8}")
        palette = [code]
        channel = writer.residual_channel(image, bits, index_bits=0, palette=palette)
        coded = writer.fast_tile([channel], bits)
        assert_same(decode_tile(coded, 4, 1, writer.FAST, bits=bits), image)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 9, 17, 129, 130, 255, 256])
def test_label_maps_of_every_rank_width(dtype, count):
    rng = np.random.default_rng(count)
    values = np.sort(rng.choice(np.iinfo(dtype).max + 1, count, replace=False)).astype(dtype)
    image = rng.choice(values, size=(63, 45))
    image.ravel()[rng.permutation(image.size)[:count]] = values
    image[:, 5:30] = image[0, 0]
    code = partial(writer.label_map_channel, rng=rng)
    assert_same(decoder.decode(writer.fast_file(image, code_channel=code).to_bytes()), image)


@pytest.mark.parametrize("transform", [0, 1, 2])
@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_transforms_round_trip(transform, channels, dtype):
    rng = np.random.default_rng(transform)
    for kind in ("noise", "extremes"):
        image = make_image(rng, 5, 70, channels, dtype, kind)
        assert_same(decoder.decode(writer.fast_file(image, transform).to_bytes()), image)


@pytest.mark.parametrize("scale", range(16))
def test_scales_round_trip(scale):
    rng = np.random.default_rng(scale)
    for transform in (0, 1, 2):
        image = make_image(rng, 5, 70, 4, np.uint16)
        if scale < 15:
            image &= np.uint16(65536 - 2**scale)
        assert scale in writer.scales_of(image)
        assert_same(decoder.decode(writer.fast_file(image, transform, scale).to_bytes()), image)


def test_prototype_round_trip():
    rng = np.random.default_rng(0)
    for kind in ("noise", "smooth", "blocks"):
        image = make_image(rng, 128, 128, 3, np.uint8, kind)
        assert_same(decoder.decode(writer.prototype_file(image, rng).to_bytes()), image)


def test_metadata_round_trip():
    entries = {"icc": bytes(range(7)), "empty": b"", "größe": b"\0" * 8, "k" * 255: b"x" * 1001}
    image = np.zeros((1, 1), np.uint8)
    data = writer.raw_file(image, metadata=writer.metadata_area(entries)).to_bytes()
    assert decoder.read_metadata(data) == entries
    assert_same(decoder.decode(data), image)


# ---- Bad input


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_broken_file_is_refused(case):
    data = case.build()
    assert verdicts(decoder, data) == case.verdicts
    ask = QUESTIONS["decode" if case.reader == "open" else case.reader]
    with pytest.raises(decoder.OracleError) as caught:
        ask(decoder, data)
    assert (case.message or "").lower() in str(caught.value).lower()


@pytest.mark.parametrize("case", ODD, ids=lambda case: case.name)
def test_odd_file_decodes(case):
    assert_same(decoder.decode(case.build()), case.image)


def test_names_of_files_are_unique():
    assert len({case.name for case in [*BROKEN, *ODD, *SOUND]}) == len(BROKEN) + len(ODD) + len(SOUND)


@pytest.mark.parametrize("profile", [writer.RAW, writer.PAPER, writer.FAST])
def test_every_truncation_is_refused(profile):
    rng = np.random.default_rng(profile)
    data = writer.random_file(make_image(rng, 9, 70, 3, np.uint8, "smooth"), rng, profile).to_bytes()
    for length in range(len(data)):
        with pytest.raises(decoder.OracleError) as caught:
            decoder.decode(data[:length])
        assert caught.value.status == "truncated"


@pytest.mark.parametrize("profile", [writer.RAW, writer.PAPER, writer.FAST])
def test_every_flipped_bit_is_noticed_or_harmless(profile):
    """With verification on, a flipped bit gives an error or the right pixels."""
    image = make_image(np.random.default_rng(0), 3, 9, 3, np.uint8, "smooth")
    make = {writer.RAW: writer.raw_file, writer.PAPER: writer.paper_file, writer.FAST: writer.fast_file}[profile]
    file = make(image, metadata=writer.metadata_area({"k": b"v"}))
    data = file.to_bytes()
    harmless = len(file.metadata) + len(file.trailer)  # decoding looks at neither
    refused = 0
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            assert_same(decoder.decode(bytes(flipped), verify=True), image)
        except decoder.OracleError:
            refused += 1
    assert refused == 8 * (len(data) - harmless)


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_mangled_tiles_give_pixels_or_an_oracle_error(data, seed):
    """Damage behind correct checksums must never end in another exception."""
    rng = np.random.default_rng(seed)
    kind = data.draw(st.sampled_from(("smooth", "blocks")))
    file = writer.random_file(make_image(rng, 17, 37, int(rng.integers(5)), rng.choice(DTYPES), kind), rng)
    coded = bytearray(file.tiles[0])
    for at, value in data.draw(st.lists(st.tuples(st.integers(0, len(coded) - 1), st.integers(0, 255)), max_size=5)):
        coded[at] = value
    file.tiles[0] = bytes(coded)
    try:
        decoded = decoder.decode(file.to_bytes())
    except decoder.OracleError:
        return
    assert decoded.shape[:2] == (17, 37)
