"""Spearman's rank correlation: whether two series put the same things in the same order."""

from __future__ import annotations

import math
from collections.abc import Sequence


def spearman(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the rank correlation of two series, -1 to 1 (ties share their mean rank); NaN where one does not vary."""
    first, second = _ranks(left), _ranks(right)
    mean = sum(first) / len(first)
    above = sum((a - mean) * (b - mean) for a, b in zip(first, second, strict=True))
    spread = math.sqrt(sum((a - mean) ** 2 for a in first) * sum((b - mean) ** 2 for b in second))
    return above / spread if spread else math.nan


def _ranks(values: Sequence[float]) -> list[float]:
    return [sum(v < value for v in values) + sum(v == value for v in values) / 2 for value in values]
