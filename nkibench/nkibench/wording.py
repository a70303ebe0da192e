"""Formats the benchmark's numbers."""

from __future__ import annotations


def milliseconds(us: float | None) -> str:
    """Return a latency in ms with four digits, empty when it is not known."""
    return "" if us is None else f"{us / 1000:.4g}"


def of_peak(share: float | None) -> str:
    """Return the percent of peak in words, empty when it is not known."""
    return "" if share is None else f"{share:.1f} %"
