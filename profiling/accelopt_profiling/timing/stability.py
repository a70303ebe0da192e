"""When a device is warm: the last runs are no longer faster than those before them, and vary little."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

WINDOW = 8
DRIFT = 0.02
LEAST_DRIFT_US = 0.2  # the resolution of device events is about half a microsecond


def settled(samples_us: Sequence[float], window: int = WINDOW, drift: float = DRIFT) -> bool:
    """Whether the medians of the last two windows of runs agree within ``drift`` (a share), so that warm-up may end.

    Compilation, autotuning, clocks that rise and caches that fill all show as a fall of the time; one slow run between
    is noise, which medians pass over.
    """
    if len(samples_us) < 2 * window:
        return False
    before, after = median(samples_us[-2 * window : -window]), median(samples_us[-window:])
    return abs(after - before) <= max(drift * before, LEAST_DRIFT_US)
