"""Faults that mutate.py makes are in the present sources."""

from __future__ import annotations

import pytest
from mutate import FAULTS, ROOT, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.path}: {fault.what}")
def test_fault_can_be_made(fault: Fault) -> None:
    text = (ROOT / "csrc/l3" / fault.path).read_text(encoding="utf-8")
    assert fault.made_in(text) != text


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (Fault("file", "gone", "x", "y"), "there 0 times"),
        (Fault("file", "ambiguous", "a", "y"), "there 2 times"),
        (Fault("file", "empty", "b", "b"), "nothing changes"),
    ],
    ids=["gone", "ambiguous", "empty"],
)
def test_unusable_fault(fault: Fault, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        fault.made_in("a b a")
