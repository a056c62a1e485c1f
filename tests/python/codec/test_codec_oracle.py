"""The codec against the oracle: each decodes what the other writes, on every back end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dali_l3
from backends import RUNNABLE, using
from dali_l3 import L3Error
from oracle import decoder, writer

DTYPES = (np.uint8, np.uint16)
PROFILES = ("raw", "paper", "fast")
KINDS = ("noise", "extremes", "slope", "shifted", "repeated", "labels", "steps")
many_examples = settings(max_examples=120)


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual, expected)


@st.composite
def images(draw: st.DrawFn) -> np.ndarray:
    """Images of any shape and dtype, up to four tiles, whose values are alike in one of several ways."""
    height, width = draw(st.integers(1, 100)), draw(st.integers(1, 100))
    shape = (height, width, *draw(st.sampled_from([(), (1,), (2,), (3,), (4,)])))
    dtype, kind = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(KINDS))
    rng, top = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), np.iinfo(dtype).max
    if kind == "noise":
        return rng.integers(top, size=shape, dtype=dtype, endpoint=True)
    if kind == "extremes":
        return rng.choice(np.array([0, top], dtype), size=shape)
    if kind in ("slope", "shifted", "repeated"):
        values = np.indices(shape).sum(axis=0) * rng.integers(1, 9) + rng.integers(1 + rng.integers(40), size=shape)
        if kind == "shifted":
            values <<= rng.integers(16)
        elif kind == "repeated":
            values = values % 256 * (top // 255)  # the bytes of a sample are equal
        return (values % (top + 1)).astype(dtype)
    if kind == "labels":
        cells = rng.integers(top, size=(height // 9 + 1, width // 9 + 1, *shape[2:]), endpoint=True).astype(dtype)
        return cells.repeat(9, axis=0).repeat(9, axis=1)[:height, :width]
    # "steps": long runs between a few values, now and then interrupted
    values = rng.choice(rng.integers(top, size=3, endpoint=True).astype(dtype), size=shape, p=(0.9, 0.09, 0.01))
    return np.ascontiguousarray(values)


@pytest.mark.parametrize("profile", PROFILES)
@many_examples
@given(image=images(), effort=st.integers(1, 3), checksums=st.booleans())
def test_the_oracle_decodes_what_the_codec_writes(profile, image, effort, checksums):
    files = set()
    for backend in RUNNABLE:
        with using(backend):
            data = dali_l3.encode(image, profile=profile, effort=effort, checksums=checksums)
            assert_same(dali_l3.decode(data, verify=True), image)
        files.add(data)
    assert len(files) == 1, "the back ends write the same"
    assert_same(decoder.decode(data, verify=True), image)
    assert dali_l3.peek(data).file_size == len(data)


@many_examples
@given(image=images(), seed=st.integers(0, 2**32 - 1))
def test_the_codec_decodes_what_the_oracle_writes(image, seed):
    data = writer.random_file(image, np.random.default_rng(seed)).to_bytes()
    for backend in RUNNABLE:
        with using(backend):
            assert_same(dali_l3.decode(data, verify=True), image)
    assert dali_l3.read_metadata(data) == decoder.read_metadata(data)


@pytest.mark.parametrize("seed", range(5))
def test_prototype_files(seed):
    rng = np.random.default_rng(seed)
    image = (np.indices((64, 128, 3)).sum(axis=0) * (seed + 1) + rng.integers(9, size=(64, 128, 3))).astype(np.uint8)
    data = writer.prototype_file(image, rng).to_bytes()
    assert_same(dali_l3.decode(data), image)
    assert_same(dali_l3.decode(data, roi=(3, 60, 61, 9)), image[3:64, 60:69])


@many_examples
@given(image=images(), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_mangled_files_get_the_same_verdict(image, seed, data):
    """Damage behind correct checksums: codec and oracle refuse with one status, or decode to the same pixels."""
    file = writer.random_file(image, np.random.default_rng(seed))
    tile = data.draw(st.integers(0, len(file.tiles) - 1))
    coded = bytearray(file.tiles[tile])
    for at, value in data.draw(st.lists(st.tuples(st.integers(0, len(coded) - 1), st.integers(0, 255)), max_size=4)):
        coded[at] = value
    file.tiles[tile] = bytes(coded)
    mangled = file.to_bytes()
    try:
        expected = decoder.decode(mangled)
    except decoder.OracleError as error:
        expected = error.status
    for backend in RUNNABLE:
        with using(backend):
            try:
                verdict = dali_l3.decode(mangled)
            except L3Error as error:
                verdict = error.status
            if isinstance(expected, str):
                assert str(verdict) == expected
            else:
                assert_same(verdict, expected)
