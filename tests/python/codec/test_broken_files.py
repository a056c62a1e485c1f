"""The codec on the catalogue of broken files: every back end refuses each with its status, and odd ones decode."""

import numpy as np
import pytest

import dali_l3
from backends import each_backend, using
from broken import BROKEN, ODD, Broken, Odd
from dali_l3 import L3Error
from verdicts import QUESTIONS, verdicts

HEADER_SIZE = 48


def named(cases: list) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


@named(BROKEN)
@each_backend
def test_is_refused(case: Broken, backend: str):
    data, ask = case.build(), QUESTIONS["decode" if case.reader == "open" else case.reader]
    with using(backend):
        assert verdicts(dali_l3, data) == case.verdicts
        with pytest.raises(L3Error) as refused:
            ask(dali_l3, data)
    assert (case.message or "").lower() in str(refused.value).lower()


@named([case for case in BROKEN if case.status in ("signature", "unsupported", "limit")])
def test_is_refused_by_peek(case: Broken):
    """What the header alone gives away is found without the rest of the file."""
    with pytest.raises(L3Error) as refused:
        dali_l3.peek(case.build()[:HEADER_SIZE])
    assert refused.value.status == case.status


def is_found_in_a_tile(case: Broken) -> bool:
    """Whether what is wrong is found only while tiles are decoded, when others may have been written."""
    try:
        dali_l3.read_metadata(case.build())  # validates the header and the tables too
    except L3Error:
        return False
    return True


@named([*filter(is_found_in_a_tile, BROKEN), *ODD])
@each_backend
def test_leaves_its_surroundings_alone(case: Broken | Odd, backend: str):
    """No more than the output is written, whatever tiles claim and however small the image is."""
    data = case.build()
    info = dali_l3.peek(data)
    canvas = np.full((info.height + 80, info.width + 80, *info.shape[2:]), 77, info.dtype)
    inside = canvas[8 : 8 + info.height, 8 : 8 + info.width]
    with using(backend):
        try:
            dali_l3.decode(data, out=inside, verify=isinstance(case, Broken))
        except L3Error:
            assert isinstance(case, Broken)
        else:
            assert isinstance(case, Odd)
            np.testing.assert_array_equal(inside, case.image)
    inside[:] = 77
    assert (canvas == 77).all()


@named(ODD)
@each_backend
def test_odd_file_decodes(case: Odd, backend: str):
    with using(backend):
        decoded = dali_l3.decode(case.build(), verify=False)
    assert decoded.dtype == case.image.dtype
    np.testing.assert_array_equal(decoded, case.image)
