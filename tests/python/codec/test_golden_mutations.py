"""The golden files decide every rule of docs/format.md: at least one of them notices a decoder that has one wrong."""

import json
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from oracle import decoder
from rule_mutations import Mutation, changed_classes, removed_checks, written_mutations
from verdicts import QUESTIONS

DATA = Path(__file__).parents[2] / "data"
MUTATIONS = [*written_mutations(), *removed_checks(), *changed_classes()]


class Known(NamedTuple):
    """A golden file and what the oracle answers about it: what the JSON files say, as test_golden.py checks."""

    data: bytes
    answers: list[Any]

    def is_noticed_in(self, mutant: Any) -> bool:
        return any(answer(ask, mutant, self.data) != known for ask, known in zip(QUESTIONS, self.answers, strict=True))


def answer(question: str, codec: Any, data: bytes) -> Any:
    """Pixels with shape and type, metadata, or the status of the refusal."""
    try:
        result = QUESTIONS[question](codec, data)
    except Exception as error:  # a decoder that has a rule wrong may well stumble
        return getattr(error, "status", repr(error))
    return (result.shape, result.dtype, result.tobytes()) if isinstance(result, np.ndarray) else result


@pytest.fixture(scope="module")
def files() -> list[Known]:
    """All golden files, sound and broken, small ones first."""
    contents = [
        (DATA / folder / name).read_bytes()
        for folder in ("golden", "broken")
        for name in json.loads((DATA / f"{folder}.json").read_text(encoding="utf-8"))
    ]
    return [Known(data, [answer(ask, decoder, data) for ask in QUESTIONS]) for data in sorted(contents, key=len)]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.rule)
def test_is_noticed(mutation: Mutation, files: list[Known]):
    mutant = mutation.module()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        noticing = next((file for file in files if file.is_noticed_in(mutant)), None)
    assert noticing, "no golden file notices"
    files.remove(noticing)  # and asked first about the next mutation, which is likely of the same kind
    files.insert(0, noticing)


def test_mutations_differ():
    assert len({mutation.source for mutation in MUTATIONS}) == len(MUTATIONS)
