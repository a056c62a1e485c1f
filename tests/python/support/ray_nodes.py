"""A Ray cluster of two nodes with a CPU each, on this machine, which nothing leaves."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psutil

_NODE = {"num_cpus": 1, "object_store_memory": 80 << 20}
_ADDRESS = "127.0.0.2"  # of the second node, so that programs connect to the first


@contextmanager
def two_nodes(cores: Sequence[int] | None = None) -> Iterator[tuple[Any, Any]]:
    """Yields the cluster, with its `address`, and the second node, which `cluster.remove_node` kills.

    cores: that each of them is kept to
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    allowed = os.sched_getaffinity(0)
    cluster = Cluster()
    try:
        for number in range(2):
            if cores:  # which all processes of the node inherit
                os.sched_setaffinity(0, {cores[number]})
            place = {"node_ip_address": _ADDRESS} if number else {"include_dashboard": False}
            node = cluster.add_node(**_NODE, **place)
            os.sched_setaffinity(0, allowed)
        yield cluster, node
    finally:
        os.sched_setaffinity(0, allowed)
        cluster.shutdown()


def is_at_work(node: Any) -> bool:
    """Whether a task of the node has started a worker process."""
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    with suppress(psutil.Error):  # some end meanwhile
        return any("spawn_main" in " ".join(process.cmdline()) for process in raylet.children(recursive=True))
    return False
