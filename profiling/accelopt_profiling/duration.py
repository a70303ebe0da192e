"""Writes times for people: one unit for all ends of an interval, and the digits that are known."""

from __future__ import annotations


def rounded(value: float) -> str:
    """Return three significant digits, thousands grouped: ``0.0123``, ``4.5``, ``812``, ``1,010``."""
    near = float(f"{value:.3g}")
    return f"{near:,.0f}" if abs(near) >= 100 else f"{near:g}"


def interval(low: float, high: float) -> str:
    """Return ``812-1,010``, or one number where both ends read the same."""
    first, last = rounded(low), rounded(high)
    return first if first == last else f"{first}-{last}"


def known_interval(low: float, high: float) -> str:
    """Return an estimate's interval, with as many digits as it leaves known: ``22-190`` of 22.5 to 188.

    Two digits, or three where rounding to two would move the ends by a tenth of the interval.
    """
    ends = [float(f"{end:.2g}") for end in (low, high)]
    moved = abs(ends[0] - low) + abs(ends[1] - high)
    return interval(*ends) if moved <= 0.1 * (high - low) else interval(low, high)


def unit_of(us: float) -> tuple[float, str]:
    """Return the microseconds in the unit that fits a time of ``us`` microseconds, and the unit's name."""
    return next(((size, name) for size, name in ((1e6, "s"), (1e3, "ms")) if us >= size), (1.0, "us"))


def duration_text(us: float) -> str:
    """Return ``812 us``, ``2.47 ms``, ``1.2 s``."""
    size, name = unit_of(us)
    return f"{rounded(us / size)} {name}"
