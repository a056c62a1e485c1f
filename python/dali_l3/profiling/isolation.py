"""Calls in fresh processes.

A pipeline in training has a process of its own. What earlier pipelines leave behind in a process, such as memory that
the C library keeps, can make later ones twice as fast: BMP files, whose decoder takes fresh memory for each image, do.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any, ParamSpec, TypeVar, cast

from ..errors import ConversionError

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def call_isolated(
    function: Callable[_Parameters, _Result], *arguments: _Parameters.args, **keywords: _Parameters.kwargs
) -> _Result:
    """Calls a function in a process of its own, forked from one that has imported DALI and done nothing else.

    The function, its arguments and its result must be picklable. The process ends with the call, also when that is
    interrupted.

    Raises:
        ConversionError: The process died.
        Exception: What the function raises.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nvidia.dali.fn", f"{__package__}.measuring"])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, function, arguments, keywords), daemon=True)
    process.start()
    sender.close()  # so that the process's end is the end of the pipe
    try:
        succeeded, result = receiver.recv()
    except EOFError:
        raise ConversionError(
            f"the process that ran {function.__name__} died (out of memory?): try a smaller sample or batch"
        ) from None
    finally:
        process.kill()
        process.join()
        receiver.close()
    if not succeeded:
        raise cast(Exception, result)
    return cast(_Result, result)


def _answer(
    sender: Connection, function: Callable[..., Any], arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> None:
    for number in (signal.SIGINT, signal.SIGHUP):  # which a terminal sends to all; the caller acts on them
        signal.signal(number, signal.SIG_IGN)
    try:
        answer = (True, function(*arguments, **keywords))
    except Exception as error:
        answer = (False, error)
    sender.send(answer)
