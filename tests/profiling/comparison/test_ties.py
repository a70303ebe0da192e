"""Which of equal elements an index names is open, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from accelopt_profiling.comparison.ties import name_equal_elements, names_the_first

ROWS = np.array([[3.0, 1.0, 3.0, 3.0], [0.0, 5.0, 5.0, -1.0]])
ALL = np.array([[0, 2, 3], [1, 2, 0]])


@pytest.mark.parametrize(
    ("actual", "expected", "same"),
    [
        ([2, 2], [0, 1], True), ([1, 2], [0, 1], False), ([3, 2], [0, 1], True), ([4, 2], [0, 1], False),
        ([-1, 2], [0, 1], False), ([[2], [2]], [[0], [1]], True), ([[3, 0, 2], [2, 1, 0]], ALL, True),
        ([[3, 3, 2], [2, 1, 0]], ALL, False), ([[3, 0, 1], [2, 1, 0]], ALL, False), ([[3.0], [2.0]], [[0], [1]], False),
        ([0, 0, 0, 0], [0, 1, 1, 0], False), ([[2, 2, 2, 2]], [[0, 1, 2, 3]], False),
    ],
)  # fmt: skip
def test_indices_name_equal_elements(actual: object, expected: object, same: bool) -> None:
    assert name_equal_elements(np.array(actual), np.array(expected), [ROWS]) is same


def test_along_any_axis_of_any_input() -> None:
    values = np.zeros((2, 5, 3))
    assert name_equal_elements(np.full((2, 3), 4), np.zeros((2, 3), np.int64), [np.arange(4.0), values])
    assert not name_equal_elements(np.full((2, 3), 5), np.zeros((2, 3), np.int64), [values])


def test_the_first_of_equal_elements() -> None:
    values = np.array([[3.0, 1.0, 3.0], [0.0, 2.0, 1.0]])
    assert names_the_first(np.array([0, 1]), [values])
    assert names_the_first(np.array([[0], [1]]), [values])
    assert not names_the_first(np.array([2, 1]), [values])
    assert not names_the_first(np.array([0, 1]), [np.eye(3)[[0, 1]]])  # nothing is equal
    assert not names_the_first(np.array([0.0, 1.0]), [values])
