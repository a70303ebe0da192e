"""What a set of timed runs says: the median with an interval that makes no assumption about their distribution."""

from __future__ import annotations

from collections.abc import Sequence

from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known


def median_interval(samples: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """The median and its distribution-free interval from order statistics (binomial with p = 1/2).

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
    """Samples in microseconds as a measured latency."""
    middle, low, high = median_interval(samples_us)
    return Latency(middle, low, high, Known.MEASURED)
