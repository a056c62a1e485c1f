"""Sizes as people write them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dali_l3.sizes import parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("4096", 4096),
        ("4096B", 4096),
        ("1K", 1024),
        ("1KiB", 1024),
        ("1KB", 1000),
        ("3M", 3 << 20),
        ("3MiB", 3 << 20),
        ("3MB", 3_000_000),
        ("60G", 60 << 30),
        ("60GiB", 60 << 30),
        ("60GB", 60_000_000_000),
        ("2T", 2 << 40),
        ("2TiB", 2 << 40),
        ("2TB", 2_000_000_000_000),
        ("1.5 GB", 1_500_000_000),
        ("0.5KiB", 512),
        ("0.3B", 0),
        (" 60 gib ", 60 << 30),
        ("60gIb", 60 << 30),
        ("007", 7),
        (12, 12),
        (0, 0),
    ],
)
def test_sizes(text, size):
    assert parse_size(text) == size
    assert type(parse_size(text)) is int


@given(st.integers(0, 2**63 - 1))
def test_whole_numbers_are_exact(size):
    assert parse_size(size) == parse_size(str(size)) == parse_size(f"{size}B") == size
    assert parse_size(f"{size >> 10}KiB") == size >> 10 << 10


@pytest.mark.parametrize("size", [2**63, "9223372036854775808", "8388608 TiB", "9" * 100, f"{'9' * 400}.5TB"])
def test_sizes_beyond_64_bits(size):
    with pytest.raises(ValueError, match="a size cannot be larger than 9223372036854775807 bytes"):
        parse_size(size)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "GiB",
        "much",
        "-1",
        "+1",
        "1e9",
        "0.5",
        "1,5G",
        ".5G",
        "1.",
        "1 2",
        "1GiBs",
        "1 G B",
        "0x10",
        "inf",
        "nan",
        "60%",
    ],
)
def test_what_is_no_size(text):
    with pytest.raises(ValueError, match="is not a size: write a number of bytes") as error:
        parse_size(text)
    assert repr(text) in str(error.value)


def test_negative_numbers():
    with pytest.raises(ValueError, match="a size cannot be negative: -1"):
        parse_size(-1)


@pytest.mark.parametrize("value", [None, True, 1.5, b"1", [1]])
def test_other_types(value):
    with pytest.raises(TypeError, match=f"not {type(value).__name__}"):
        parse_size(value)


@pytest.mark.parametrize(("text", "size"), [("50%", 500), ("100 %", 1000), ("0%", 0), ("12.5%", 125), ("33.33%", 333)])
def test_parts_of_a_total(text, size):
    assert parse_size(text, lambda: 1000) == size


def test_a_percentage_of_nothing_or_beyond_all_is_no_size():
    with pytest.raises(ValueError, match="'50%' is not a size"):
        parse_size("50%")
    with pytest.raises(ValueError, match="'101%' is not a size.*or a percentage such as '50%'"):
        parse_size("101%", lambda: 1000)


def test_numpy_integers_are_sizes():
    assert parse_size(np.int64(5)) == 5
