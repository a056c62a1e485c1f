"""Plots of what benchmarks/liquid.py measures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

Systems = dict[str, dict[str, Any]]


def throughput(rates: dict[str, Systems], path: Path) -> None:
    """Bars of images per second relative to DALI on PNG: a panel for each speed of the disk."""
    plt.rcParams["svg.hashsalt"] = path.name  # the same figures make the same file
    heights = [len(systems) for systems in rates.values()]
    size = (7.5, 0.3 * sum(heights) + 0.9 * len(rates))
    figure, panels = plt.subplots(len(rates), figsize=size, height_ratios=heights, layout="constrained", squeeze=False)
    for axes, (rate, systems) in zip(panels[:, 0], rates.items(), strict=True):
        colours = ["tab:red" if "L3" in name else "tab:gray" for name in systems]
        bars = axes.barh(list(systems), [figures["times_dali"] for figures in systems.values()], color=colours)
        axes.bar_label(bars, fmt="%.2f", padding=3)
        axes.invert_yaxis()
        axes.margins(x=0.1)
        axes.set_title(rate, loc="left")
    panels[-1, 0].set_xlabel("images/s, relative to DALI on PNG")
    figure.savefig(path, metadata={"Date": None})


def batches(systems: Systems, path: Path) -> None:
    """Time and bytes from disk of every batch of the first run, a line for each system."""
    plt.rcParams["svg.hashsalt"] = path.name
    figure, (times, sizes) = plt.subplots(2, figsize=(7.5, 5), sharex=True, layout="constrained")
    for name, figures in systems.items():
        count = len(figures["batches_ms"]) // figures["runs"]
        times.plot(figures["batches_ms"][:count], label=name)
        sizes.plot([size / 1e6 for size in figures["batches_disk_bytes"][:count]], label=name)
    times.set(ylabel="ms per batch", ylim=(0, None))
    sizes.set(ylabel="MB from disk per batch", xlabel="batch", ylim=(0, None))
    times.legend()
    figure.savefig(path, metadata={"Date": None})
