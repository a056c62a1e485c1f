"""Faults that mutate.py makes are in the present sources."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import mutate
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


def test_names_differ() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_results_are_of_the_sources_they_were_run_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mutate, "RESULTS", tmp_path / "faults.json")
    noticed, missed, new = FAULTS[:3]
    results = mutate.Results()
    results.add(noticed, "a check")
    results.add(missed, "")
    again = mutate.Results()
    assert [again.noticed(fault) for fault in (noticed, missed, new)] == ["a check", "", None]
    assert again.summary().startswith(
        f"2 of {len(FAULTS)} faults have been run on these sources: 1 noticed, 0 harmless"
    )

    monkeypatch.setattr(mutate, "hash_of_sources", lambda: "others")
    assert mutate.Results().noticed(noticed) is None


def test_a_program_that_does_not_end(tmp_path: Path) -> None:
    assert mutate.run([sys.executable, "-c", "while True: pass"], seconds=1) == f"ends with {-signal.SIGKILL}"
