"""The golden files in tests/data: whatever becomes of the codec, these keep their pixels or their errors."""

import hashlib
import json
from itertools import product
from pathlib import Path

import pytest

import dali_l3
from backends import each_backend, using
from oracle import decoder
from verdicts import verdicts

DATA = Path(__file__).parents[2] / "data"
GOLDEN = json.loads((DATA / "golden.json").read_text(encoding="utf-8"))
BROKEN = json.loads((DATA / "broken.json").read_text(encoding="utf-8"))

golden_file = pytest.mark.parametrize("name", GOLDEN)
broken_file = pytest.mark.parametrize("name", BROKEN)


def assert_is(image, expected):
    """Compares an image with what golden.json says about it."""
    assert list(image.shape) == expected["shape"]
    assert str(image.dtype) == expected["dtype"]
    assert hashlib.sha256(image.tobytes()).hexdigest() == expected["sha256"]


@golden_file
@each_backend
def test_pixels(name, backend):
    data = (DATA / "golden" / name).read_bytes()
    with using(backend):
        assert_is(dali_l3.decode(data, verify=True), GOLDEN[name])
        assert_is(dali_l3.decode(data, verify=False), GOLDEN[name])


@golden_file
def test_pixels_by_the_oracle(name):
    assert_is(decoder.decode((DATA / "golden" / name).read_bytes(), verify=True), GOLDEN[name])


@golden_file
def test_metadata(name):
    data = (DATA / "golden" / name).read_bytes()
    expected = {key: bytes.fromhex(value) for key, value in GOLDEN[name]["metadata"].items()}
    assert dali_l3.read_metadata(data) == expected
    assert decoder.read_metadata(data) == expected


@broken_file
@each_backend
def test_verdicts(name, backend):
    with using(backend):
        assert verdicts(dali_l3, (DATA / "broken" / name).read_bytes()) == BROKEN[name]


@broken_file
def test_verdicts_by_the_oracle(name):
    assert verdicts(decoder, (DATA / "broken" / name).read_bytes()) == BROKEN[name]


@pytest.mark.parametrize(("folder", "expectations"), [("golden", GOLDEN), ("broken", BROKEN)])
def test_every_file_has_its_expectation(folder, expectations):
    assert {path.name for path in (DATA / folder).iterdir()} == set(expectations)


def test_files_cover_the_format():
    """Every profile, depth and number of channels, files with and without checksums, and the prototype."""
    infos = [dali_l3.peek((DATA / "golden" / name).read_bytes()) for name in GOLDEN]
    kinds = {(info.profile, str(info.dtype), info.channels) for info in infos if not info.prototype}
    assert kinds == set(product(("raw", "paper", "fast"), ("uint8", "uint16"), (1, 2, 3, 4)))
    assert {info.has_checksums for info in infos if not info.prototype} == {True, False}
    assert any(info.prototype for info in infos)
    assert any(len(info.shape) == 2 for info in infos)
    assert {status for entry in BROKEN.values() for status in entry.values()} == {
        "ok", "signature", "truncated", "unsupported", "limit", "checksum", "corrupt",
    }  # fmt: skip
