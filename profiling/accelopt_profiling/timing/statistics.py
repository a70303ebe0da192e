"""Summarise timed runs: medians with intervals that assume nothing about their distribution, and comparisons."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known

#: The least change that counts, as a share, and for times so short that the timer's steps show, in microseconds.
LEAST_CHANGE = 0.01
LEAST_CHANGE_US = 0.5

Answer = Literal["faster", "slower", "within noise"]


@dataclass(frozen=True)
class TimeComparison:
    """``ratio`` is B's time over A's: 2 means that A takes half the time. ``low`` and ``high`` bound its median (95 %).

    ``answer`` says of A: "faster", "slower", or "within noise".
    """

    ratio: float
    low: float
    high: float
    answer: Answer
    pairs: int


def interleaved(names: Sequence[str], rounds: int, generator: random.Random) -> list[str]:
    """Return every name once in each round, in random order: what drifts (clocks, temperature) meets all
    alike."""
    order: list[str] = []
    for _ in range(rounds):
        order += generator.sample(list(names), len(names))
    return order


def compare(
    a_us: Sequence[float],
    b_us: Sequence[float],
    least_change: float = LEAST_CHANGE,
    least_change_us: float = LEAST_CHANGE_US,
) -> TimeComparison:
    """Compare the times of the same rounds: ``a_us[i]`` and ``b_us[i]`` were taken one right after the other.

    The ratios of the pairs are one sample; the interval of their median makes no assumption about distributions.
    A change counts when that interval leaves 1 and the median change is larger than ``least_change`` and
    ``least_change_us``.

    Raises:
        ValueError: no pairs, different numbers of runs, or a time that is not positive.
    """
    if len(a_us) != len(b_us):
        raise ValueError(f"{len(a_us)} runs of A, {len(b_us)} of B: they must come in pairs")
    if any(not time > 0 for time in (*a_us, *b_us)):
        raise ValueError("a time is not positive")
    ratio, low, high = median_interval([b / a for a, b in zip(a_us, b_us, strict=True)])
    change_us, _, _ = median_interval([b - a for a, b in zip(a_us, b_us, strict=True)])
    counts = abs(change_us) > least_change_us and abs(ratio - 1) > least_change
    answer: Answer = "within noise"
    if counts and low > 1:
        answer = "faster"
    elif counts and high < 1:
        answer = "slower"
    return TimeComparison(ratio, low, high=high, answer=answer, pairs=len(a_us))


def median_interval(samples: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """Return the median and its distribution-free interval from order statistics (binomial with p = 1/2).

    Few samples give the whole range: five are the least for which it means 93 %.

    Raises:
        ValueError: there are no samples.
    """
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    n = len(ordered)
    middle = ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2
    # of the 2**n ways in which samples fall on either side of the median; integers, as no float holds 2**1024
    ways, below, rank = 1, 0, 0
    while rank < n // 2:
        below += ways
        if 2 * below / 2**n > 1 - confidence:
            break
        ways = ways * (n - rank) // (rank + 1)
        rank += 1
    low = max(0, rank - 1)
    return middle, ordered[low], ordered[n - 1 - low]


def latency(samples_us: Sequence[float]) -> Latency:
    """Return samples in microseconds as a measured latency."""
    middle, low, high = median_interval(samples_us)
    return Latency(middle, low, high, Known.MEASURED)
