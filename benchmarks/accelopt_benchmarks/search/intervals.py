"""Means and quotients of means with their 95 % confidence intervals (percentile bootstrap, Efron 1979)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

DRAWS = 2000


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % confidence interval."""

    mean: float
    low: float
    high: float


def mean_of(values: Sequence[float], random: Random, draws: int = DRAWS) -> Interval:
    """The mean over ``values``, at least one."""
    mean = sum(values) / len(values)
    means = sorted(sum(random.choices(values, k=len(values))) / len(values) for _ in range(draws))
    return Interval(mean, means[int(0.025 * draws)], means[int(0.975 * draws) - 1])


def ratio_of(over: Sequence[float], under: Sequence[float], random: Random, draws: int = DRAWS) -> Interval:
    """The quotient of two means of paired values."""
    pairs = list(zip(over, under, strict=True))

    def quotient(chosen: Sequence[tuple[float, float]]) -> float:
        return sum(a for a, _ in chosen) / max(1e-12, sum(b for _, b in chosen))

    drawn = sorted(quotient(random.choices(pairs, k=len(pairs))) for _ in range(draws))
    return Interval(quotient(pairs), drawn[int(0.025 * draws)], drawn[int(0.975 * draws) - 1])
