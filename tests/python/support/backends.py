"""The codec's CPU back ends, for tests that run on each."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import dali_l3
from dali_l3 import L3Error, _core


@contextmanager
def using(backend: str) -> Iterator[None]:
    """Runs the block with one back end."""
    before = dali_l3.backend()
    _core.set_backend(backend)
    try:
        yield
    finally:
        _core.set_backend(before)


def _runs_here(backend: str) -> bool:
    try:
        with using(backend):
            return True
    except L3Error:
        return False


BACKENDS = ("avx512", "avx2", "portable")
RUNNABLE = tuple(backend for backend in BACKENDS if _runs_here(backend))

each_backend = pytest.mark.parametrize(
    "backend",
    [
        pytest.param(backend, marks=pytest.mark.skipif(backend not in RUNNABLE, reason="not for this CPU"))
        for backend in BACKENDS
    ],
)
