"""Targets of the benchmarks. Needs the standard library only: one of them runs on machines that have nothing else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A figure that was measured and the one that it should reach."""

    name: str
    measured: float
    limit: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.measured <= self.limit if self.at_most else self.measured >= self.limit

    @property
    def wanted(self) -> str:
        """Such as ">= 0.8"."""
        return f"{'<=' if self.at_most else '>='} {self.limit:g}"
