"""Device timings in rounds: repeated while they spread too much, and the round that spreads least is kept."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known


@dataclass(frozen=True)
class Samples:
    """Execution times of ``runs`` runs in ms."""

    mean_ms: float
    min_ms: float
    max_ms: float
    runs: int

    @property
    def spread(self) -> float:
        """(largest - smallest) / smallest, as AccelOpt has it."""
        return (self.max_ms - self.min_ms) / self.min_ms

    @property
    def latency(self) -> Latency:
        """The mean, between the fastest and the slowest run."""
        return Latency(self.mean_ms * 1e3, self.min_ms * 1e3, self.max_ms * 1e3, Known.MEASURED)


def samples_of(ms: Sequence[float]) -> Samples:
    """The samples of single runs; at least one."""
    return Samples(statistics.fmean(ms), min(ms), max(ms), len(ms))


def steadiest(measure: Callable[[], Samples], spread: float, rounds: int) -> Samples:
    """Measure rounds until one spreads by no more than ``spread``, at most ``rounds``; the steadiest of them.

    Every round is measured anew. (AccelOpt's retry looked at old statistics until 2026-06-07.)
    """
    found: list[Samples] = []
    while len(found) < max(1, rounds):
        found.append(measure())
        if found[-1].spread <= spread:
            break
    return min(found, key=lambda s: s.spread)
