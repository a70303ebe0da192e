"""The rank correlation of two series."""

from __future__ import annotations

import math

import pytest

from nkibench.metrics import spearman


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1, 2, 3, 4], [10, 20, 30, 40], 1.0),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1.0),
        ([1, 2, 3, 4], [1, 2, 4, 3], 0.8),
        ([1, 2, 3], [1, 3, 2], 0.5),
    ],
)
def test_the_rank_correlation_is_that_of_the_order(
    one: list[float], other: list[float], expected: float
) -> None:
    assert spearman(one, other) == pytest.approx(expected)


def test_a_series_that_does_not_vary_has_no_order() -> None:
    assert math.isnan(spearman([1, 2], [5, 5]))
