"""Compares two latencies of one kernel: the speedup with its interval, and whether the difference counts."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Literal

from accelopt_agent.suggestions.suggestion import Speedup
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known

_WORSE = (Known.MEASURED, Known.EXECUTED, Known.COMPILED, Known.ESTIMATED, Known.NOT_MEASURED)

#: What became of a time. "same": the difference is not larger than noise, or the evidence contradicts itself.
Direction = Literal["faster", "slower", "same"]


@cache
def resolution() -> dict[str, Any]:
    """Load the smallest differences that count, each with its source (``resolution.json``)."""
    loaded: dict[str, Any] = json.loads(Path(__file__).with_name("resolution.json").read_text("utf-8"))
    return loaded


def speedup(slow: Latency, fast: Latency, target: str) -> Speedup | None:
    """Return ``slow`` over ``fast`` with its interval.

    None when either is not known. It is known as badly as the worse of the two.

    Two estimates of one model share its error: both are at their low ends or both at their high ends, so the interval
    is that of the ratios in these scenarios. Otherwise it is the quotient of the two intervals, and at least the
    timer's own repeatability. On targets whose clock moves in steps, one step is added to each side.
    """
    if not slow.us or not fast.us:
        return None
    certainty = max(slow.known, fast.known, key=_WORSE.index)
    facts = resolution()
    value = slow.us / fast.us
    if slow.known is fast.known is Known.ESTIMATED:
        ends = [value]
        if slow.low_us and fast.low_us and slow.high_us and fast.high_us:
            ends += [slow.low_us / fast.low_us, slow.high_us / fast.high_us]
        return Speedup(value, min(ends), max(ends), certainty)
    error = float(facts["measured_relative"])
    low = min((slow.low_us or slow.us) / (fast.high_us or fast.us), value * (1 - error))
    high = max((slow.high_us or slow.us) / (fast.low_us or fast.us), value * (1 + error))
    timed = Known.MEASURED in (slow.known, fast.known)
    step = float(facts["clock_step_us"].get(target, 0.0)) if timed else 0.0
    low = min(low, max(slow.us - step, 0.0) / (fast.us + step))
    high = max(high, (slow.us + step) / max(fast.us - step, fast.us / 2))
    return Speedup(value, low, high, certainty)


def direction(before: Latency, after: Latency, target: str) -> Direction | None:
    """Return what became of a kernel's time.

    None where either is not known. The one rule for all that compares times: the lens, the warning about a regression,
    and what a search offers.

    Estimates differ by at least ``estimated_relative`` at their points, and no scenario of the model says the opposite
    by more than ``scenario_tolerance``. Of measured times, the whole interval of the ratio lies on one side of 1.
    """
    modelled = before.known is after.known is Known.ESTIMATED
    forward, back = speedup(before, after, target), speedup(after, before, target)
    if forward is None or back is None:
        return None
    if _counts(forward, modelled):
        return "faster"
    return "slower" if _counts(back, modelled) else "same"


def clearly_faster(slow: Latency, fast: Latency, target: str) -> bool:
    """Return whether ``fast`` may be offered in the place of ``slow``."""
    return direction(slow, fast, target) == "faster"


def _counts(ratio: Speedup, modelled: bool) -> bool:
    """Return whether a ratio above 1 is more than noise. ``modelled``: it is one of two estimates."""
    if not modelled:
        return ratio.low > 1.0
    facts = resolution()
    least, tolerance = float(facts["estimated_relative"]), float(facts["scenario_tolerance"])
    return ratio.value >= 1 + least and ratio.low >= 1 - tolerance
