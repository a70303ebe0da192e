"""Computes speedups with intervals, and decides whether one latency is clearly below another."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from accelopt_agent.suggestions.suggestion import Speedup
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known

_WORSE = (Known.MEASURED, Known.EXECUTED, Known.COMPILED, Known.ESTIMATED, Known.NOT_MEASURED)


@cache
def resolution() -> dict[str, Any]:
    """Load the smallest differences that count, each with its source (``resolution.json``)."""
    loaded: dict[str, Any] = json.loads(
        resources.files(__package__).joinpath("resolution.json").read_text("utf-8")
    )
    return loaded


def speedup(slow: Latency, fast: Latency, target: str) -> Speedup | None:
    """Return ``slow`` over ``fast`` with its interval; None when either is not known. It is known as badly as the worse
    of the two.

    Two estimates of one model share most of their error: both are at their low ends or both at their high ends. What is
    left is the model's error in ranking two versions of one kernel. Otherwise the interval is the quotient of theirs,
    and at least the timer's own repeatability. On targets whose clock moves in steps, one step is added to each side.
    """
    if not slow.us or not fast.us:
        return None
    known = max(slow.known, fast.known, key=_WORSE.index)
    facts = resolution()
    value = slow.us / fast.us
    if slow.known is fast.known is Known.ESTIMATED:
        error = float(facts["estimated_relative"])
        ends = [value]
        if slow.low_us and fast.low_us and slow.high_us and fast.high_us:
            ends += [slow.low_us / fast.low_us, slow.high_us / fast.high_us]
        low, high = min(ends) * (1 - error), max(ends) * (1 + error)
    else:
        error = float(facts["measured_relative"])
        low = min((slow.low_us or slow.us) / (fast.high_us or fast.us), value * (1 - error))
        high = max((slow.high_us or slow.us) / (fast.low_us or fast.us), value * (1 + error))
    step = (
        float(facts["clock_step_us"].get(target, 0.0)) if Known.MEASURED in (slow.known, fast.known) else 0.0
    )
    low = min(low, max(slow.us - step, 0.0) / (fast.us + step))
    high = max(high, (slow.us + step) / max(fast.us - step, fast.us / 2))
    return Speedup(value, low, high, known)


def clearly_faster(slow: Latency, fast: Latency, target: str) -> bool:
    """Return whether the whole interval of the speedup lies above 1."""
    ratio = speedup(slow, fast, target)
    return ratio is not None and ratio.low > 1.0
