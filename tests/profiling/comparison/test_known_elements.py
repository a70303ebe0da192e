"""Outputs of which only some elements were computed: the others neither help nor harm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accelopt_profiling.comparison import elements as comparing
from accelopt_profiling.comparison.elements import compare
from accelopt_profiling.comparison.tolerance import Allowed

LIMIT = Allowed(1e-3, 1e-6)


@given(st.integers(0, 1 << 32), st.integers(1, 9), st.integers(1, 9), st.floats(0, 1), st.booleans())
@settings(max_examples=100, deadline=None)
def test_unknown_elements_count_as_right(
    seed: int, rows: int, columns: int, share: float, broken: bool
) -> None:
    random = np.random.default_rng(seed)
    expected = random.standard_normal((rows, columns))
    valid = random.uniform(size=expected.shape) < share
    actual = np.where(valid, expected * (1 + 1e-4 * random.standard_normal(expected.shape)), np.nan)
    if broken and valid.any():
        actual[tuple(np.argwhere(valid)[-1])] += 1.0
    plain = [np.where(valid, array, 0) for array in (actual, expected)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparing, "_CHUNK", 12)  # several pieces
        comparison = compare(actual, expected, expected, LIMIT, valid=valid)
        reference = compare(plain[0], plain[1], plain[1], LIMIT)
    assert (comparison.fault, comparison.relative, comparison.row, comparison.element, comparison.max_abs) == (
        reference.fault, reference.relative, reference.row, reference.element, reference.max_abs
    )  # fmt: skip
    if comparison.fault:
        assert comparison.location == reference.location


def test_where_nothing_is_known_nothing_is_found() -> None:
    nothing: Any = np.full((4, 3), np.nan)
    comparison = compare(nothing, np.ones((4, 3)), None, LIMIT, valid=np.zeros((4, 3), bool))
    assert (comparison.fault, comparison.found, comparison.expected) == ("", None, None)
