"""What a codec says about a file, put as tests/data/broken.json puts it."""

from collections.abc import Callable

QUESTIONS: dict[str, Callable] = {
    "decode": lambda codec, data: codec.decode(data, verify=False),
    "verify": lambda codec, data: codec.decode(data, verify=True),
    "metadata": lambda codec, data: codec.read_metadata(data),
}


def verdicts(codec, data: bytes) -> dict[str, str]:
    """Asks `codec` (dali_l3 or the oracle's decoder) each question; "ok", or the status it refuses the file with."""
    return {question: _verdict(ask, codec, data) for question, ask in QUESTIONS.items()}


def _verdict(ask: Callable, codec, data: bytes) -> str:
    try:
        ask(codec, data)
    except ValueError as error:
        return getattr(error, "status", f"not refused: {error!r}")
    return "ok"
