"""Writes times for people: one unit for all ends of an interval, three significant digits."""

from __future__ import annotations


def rounded(value: float) -> str:
    """Return three significant digits, thousands grouped: ``0.0123``, ``4.5``, ``812``, ``1,010``."""
    near = float(f"{value:.3g}")
    return f"{near:,.0f}" if abs(near) >= 100 else f"{near:g}"


def interval(low: float, high: float) -> str:
    """Return ``812-1,010``, or one number where both ends read the same."""
    first, last = rounded(low), rounded(high)
    return first if first == last else f"{first}-{last}"


def unit_of(us: float) -> tuple[float, str]:
    """Return the microseconds in the unit that fits a time of ``us`` microseconds, and the unit's name."""
    return next(((size, name) for size, name in ((1e6, "s"), (1e3, "ms")) if us >= size), (1.0, "us"))


def duration_text(us: float) -> str:
    """Return ``812 us``, ``2.47 ms``, ``1.2 s``."""
    return span_text(us, us)


def span_text(low_us: float, high_us: float) -> str:
    """Return an interval in the unit that fits its upper end: ``812-980 us``, ``1.65-3.08 ms``."""
    size, name = unit_of(high_us)
    return f"{interval(low_us / size, high_us / size)} {name}"
