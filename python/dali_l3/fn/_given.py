"""What a wrapper of an operator passes on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from .._arguments import integer


def given(wrapper: Callable[..., Any], values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The inputs and the arguments that the caller of `wrapper` has given: not None, which keeps DALI's default.

    values: by the names of its parameters; others, such as DALI's autograph adds to ``locals()``, are left out

    Raises:
        TypeError: When a parameter for integers has another value, of which DALI would drop what is behind the point.
        ValueError: When an integer does not fit into the 64 bits of DALI's arguments.
    """
    inputs: list[Any] = []
    arguments: dict[str, Any] = {}
    for parameter in inspect.signature(wrapper).parameters.values():
        value = values[parameter.name]
        if value is None:
            continue
        if parameter.annotation == "int | None":
            value = _whole(parameter.name, value)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError(f"{parameter.name} is {value}, which does not fit into 64 bits")
        if parameter.kind == inspect.Parameter.POSITIONAL_ONLY:
            inputs.append(value)
        else:
            arguments[parameter.name] = value
    return inputs, arguments


def _whole(name: str, value: Any) -> int:
    return int(value) if isinstance(value, float) and value.is_integer() else integer(name, value)
