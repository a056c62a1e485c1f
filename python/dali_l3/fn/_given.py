"""What a wrapper of an operator passes on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any


def given(wrapper: Callable[..., Any], values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The inputs and the arguments that the caller of `wrapper` has given: not None, which keeps DALI's default.

    values: by the names of its parameters; others, such as DALI's autograph adds to ``locals()``, are left out

    Raises:
        ValueError: When an integer does not fit into the 64 bits of DALI's arguments.
    """
    inputs: list[Any] = []
    arguments: dict[str, Any] = {}
    for parameter in inspect.signature(wrapper).parameters.values():
        value = values[parameter.name]
        if value is None:
            continue
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError(f"{parameter.name} is {value}, which does not fit into 64 bits")
        if parameter.kind == inspect.Parameter.POSITIONAL_ONLY:
            inputs.append(value)
        else:
            arguments[parameter.name] = value
    return inputs, arguments
