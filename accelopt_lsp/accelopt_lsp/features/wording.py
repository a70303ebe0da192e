"""Put numbers into words for titles, hints and tables. How a number is known is part of the words, always."""

from __future__ import annotations

from accelopt_agent.suggestions.suggestion import Speedup, Suggestion
from accelopt_profiling.measurement import KernelMeasurement, Latency
from accelopt_profiling.quantity import Known, Quantity

#: The heading of the last part of an explanation. What stands before it is enough for a message.
CHANGE_HEADING = "## The change"

#: The word in front of a time, by how it is known.
_PREFIX = {
    Known.MEASURED: "measured",
    Known.ESTIMATED: "est.",
    Known.EXECUTED: "executed",
    Known.COMPILED: "compiled",
}


def number(value: float) -> str:
    """A count in full, ``114,688``; anything else to three significant digits."""
    return f"{int(value):,}" if value == int(value) else rounded(value)


def rounded(value: float) -> str:
    """Three significant digits, thousands grouped: ``0.0123``, ``4.5``, ``812``, ``1,010``."""
    near = float(f"{value:.3g}")
    return f"{near:,.0f}" if abs(near) >= 100 else f"{near:g}"


def interval(low: float, high: float) -> str:
    """``812-1,010``, or one number where both ends read the same."""
    first, last = rounded(low), rounded(high)
    return first if first == last else f"{first}-{last}"


def duration(latency: Latency) -> str:
    """``est. 812-1,010 us``, ``measured 3.2 us``, ``est. 12.4-13 ms``, ``not measured``."""
    if latency.us is None:
        return "not measured"
    return f"{_PREFIX[latency.known]} {bare_duration(latency)}"


def bare_duration(latency: Latency) -> str:
    """The time without how it is known: only for places that say that beside it."""
    if latency.us is None:
        return "not measured"
    low, high = latency.low_us, latency.high_us
    if latency.known is not Known.ESTIMATED or low is None or high is None:
        low = high = latency.us
    scale, unit = (1e-3, "ms") if high >= 1e4 else (1.0, "us")
    return f"{interval(low * scale, high * scale)} {unit}"


def quantity(value: Quantity) -> str:
    """A quantity in a table cell, without how it is known: that has a column of its own."""
    if value.value is None:
        return "-"
    if value.unit == "B":
        return _bytes(value.value)
    unit = f" {value.unit}" if value.unit else ""
    if value.known is Known.ESTIMATED and value.low is not None and value.high is not None:
        return f"{interval(value.low, value.high)}{unit}"
    return f"{number(value.value)}{unit}"


def _bytes(value: float) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale:
            return f"{rounded(value / scale)} {unit}"
    return f"{number(value)} B"


def percent(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def speedup(value: Speedup) -> str:
    """``1.8x est. (1.6-2.1)`` or ``1.8x measured (1.79-1.82)``."""
    how = _PREFIX.get(value.known, str(value.known))
    return f"{value.value:.2f}x {how} ({value.low:.2f}-{value.high:.2f})"


def origin(suggestion: Suggestion) -> str:
    """Who wrote a suggestion: ``rule hoist-load``, ``memory 3f2a``, ``written by the model NAME``."""
    kind, _, name = suggestion.origin.partition(":")
    return f"written by the model {name}" if kind == "model" else f"{kind} {name}"


def version_name(suggestion: Suggestion) -> str:
    """What a view of a suggestion is called: ``silu: 1.80x est. (1.60-2.10), rule hoist-load``."""
    return f"{suggestion.kernel}: {speedup(suggestion.speedup)}, {origin(suggestion)}"


def headline(result: KernelMeasurement) -> str:
    """``est. 812-1,010 us on trn1 · 41 % of peak · VectorE bound``."""
    if result.latency.us is None:
        return f"not measured on {result.target}"
    parts = [f"{duration(result.latency)} on {result.target}"]
    if result.percent_of_peak is not None:
        parts.append(f"{percent(result.percent_of_peak)} % of peak")
    if result.bound:
        parts.append(f"{result.bound} bound")
    return " · ".join(parts)


def profiled_at(result: KernelMeasurement) -> str:
    """What a cost is stated for: ``x 4096x1024 fp16, BLOCK=128, num_warps=4``."""
    return ", ".join(part for part in (result.case, result.configuration) if part)
