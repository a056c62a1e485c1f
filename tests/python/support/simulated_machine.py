"""A machine of which all is known, in the place of the one that the profiler would measure."""

from __future__ import annotations

from dataclasses import dataclass

from dali_l3.profiling.cost_model import Conditions, FormatCosts, hit_ratio
from dali_l3.profiling.ratio_search import TENTHS

MB = 1e6


@dataclass(frozen=True)
class Machine:
    """disk: MB/s; memory: MB for the reader; a dataset of `images` images."""

    disk: float
    cpus: int = 2
    memory: float = 0.0
    images: int = 1000

    def costs(self, size: float, decode_ms: float) -> FormatCosts:
        """Of a format whose files have `size` MB and take `decode_ms` of one CPU, on all CPUs at once."""
        decode = decode_ms / 1e3
        return FormatCosts("", size * MB, size * MB, size / self.disk, decode / self.cpus, 0.0, decode)

    @property
    def conditions(self) -> Conditions:
        return Conditions(self.images, int(self.memory * MB), self.cpus)

    def measure(self, encoded: FormatCosts, raw: FormatCosts, tenths: int) -> tuple[float, float]:
        """Images/s of loading and of decoding at a ratio."""
        costs = {"encoded": encoded, "raw": raw}
        shares = {"encoded": tenths / TENTHS, "raw": 1 - tenths / TENTHS}
        load = sum(shares[name] * cost.load_seconds for name, cost in costs.items())
        load *= 1 - hit_ratio(shares, costs, self.conditions)
        decode = sum(shares[name] * cost.decode_seconds for name, cost in costs.items())
        return 1 / load if load else float("inf"), 1 / decode
