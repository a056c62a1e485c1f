"""Statistics of the readers."""

from __future__ import annotations

import ctypes
import json
from typing import Any

from . import _plugin
from ._arguments import type_error


def reader_stats(pipeline: Any, name: str | None = None) -> dict[str, Any]:
    """Returns statistics of a reader of this package.

    Args:
        pipeline: A `nvidia.dali.Pipeline`; it is built if it is not built yet. Or a reader of DALI's dynamic mode that
            has delivered something.
        name: The ``name`` of the reader in the pipeline; None for a reader of dynamic mode.

    Returns:
        ``epochs``: one dictionary for each epoch delivered, with ``epoch``, ``samples``, ``files_read`` and
        ``bytes_read`` (from disk), ``formats`` (for each format its ``hits``, from memory, and ``misses``, from disk),
        ``bad_samples`` (replaced by others), ``current_bytes`` and ``next_bytes`` (held in memory for this epoch and
        for the next, after the last batch), ``wait_seconds`` (time spent waiting for files that were not in memory yet)
        and ``batch``, the number of its last batch. ``batches``: the same for each batch; one that crosses the border
        of epochs has an item for each epoch. Both lists keep their last 4096 items. ``hit_ratio``: the part of the
        samples that comes from memory from the second epoch on; ``cache_bytes_planned``: the most bytes that the plan
        keeps in the first three epochs. ``cache_bytes_used`` and ``cache_bytes_peak``: memory within ``cache_size``;
        ``other_bytes_used`` and ``other_bytes_peak``: of files beyond that, which are read ahead, in use by the
        pipeline, or kept because ``cache_size`` had no room when they were read; ``idle_bytes``: memory that is free
        and kept for files to come. ``storage``: what buckets have been asked for, to list the dataset and since, as
        ``requests``, ``retries`` (of these, those that had failed before) and ``bytes``. ``rest_batches``: how many
        batches, from the first after the pipeline was built, hold the rest of an epoch that was begun with other shards
        (``on_mismatch="redistribute"``).

        Batches are counted when the pipeline takes them, which is before the program gets them.

    Raises:
        ValueError: The pipeline has no reader of that name, or the reader is not from this package.
        TypeError: `pipeline` is neither, or there is no name, but `pipeline` is a pipeline.
        RuntimeError: The pipeline cannot be built, or dynamic mode has captured the reader in a pipeline of its own.
    """
    if not hasattr(pipeline, "reader_meta" if name is not None else "get_metadata"):
        if hasattr(pipeline, "reader_meta"):
            raise TypeError("name must be the name of a reader in the pipeline")
        raise type_error("pipeline", pipeline, "a pipeline, or a reader of dynamic mode without a name")
    library = ctypes.CDLL(str(_plugin.load()))
    library.dali_l3_reader_statistics.restype = ctypes.c_char_p
    if name is not None and name not in (readers := pipeline.reader_meta()):
        raise ValueError(f"the pipeline has no reader {name!r}; it has {', '.join(map(repr, readers)) or 'no readers'}")
    library.dali_l3_forget_reader()
    if name is None:
        pipeline.get_metadata()
    else:
        pipeline.reader_meta(name)
    text = library.dali_l3_reader_statistics()
    if text is None:
        raise ValueError(f"{name or pipeline!r} is not a reader of dali_l3")
    statistics: dict[str, Any] = json.loads(text)
    return statistics
