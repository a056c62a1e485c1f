"""What a wrapper of an operator passes on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any


def given(wrapper: Callable[..., Any], values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The inputs and the arguments that the caller of `wrapper` has given: not None, which keeps DALI's default.

    values: by the names of its parameters; others, such as DALI's autograph adds to ``locals()``, are left out
    """
    inputs: list[Any] = []
    arguments: dict[str, Any] = {}
    for parameter in inspect.signature(wrapper).parameters.values():
        value = values[parameter.name]
        if value is None:
            continue
        if parameter.kind == inspect.Parameter.POSITIONAL_ONLY:
            inputs.append(value)
        else:
            arguments[parameter.name] = value
    return inputs, arguments
