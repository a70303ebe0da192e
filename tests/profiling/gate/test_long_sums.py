"""Sums in too few bits fail on inputs made for long sums, by more than any honest sum is off."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.drawn_values import values_of

from accelopt_profiling.comparison.elements import compare
from accelopt_profiling.comparison.tolerance import allowed
from accelopt_profiling.gate.probes.long_sums import LongColumns, LongRows
from accelopt_profiling.problems.problem import Tolerance

LOW = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


def blocked_sum(rows: Any, dtype: Any, width: int, lanes: bool) -> Any:
    """Sums along the last axis by blocks of ``width``: each lane in ``dtype``, or each block's sum added in it."""
    blocks = rows.astype(np.float32).reshape(len(rows), -1, width)
    terms = blocks if lanes else blocks.sum(axis=2, keepdims=True)
    total = np.zeros(terms.shape[::2], dtype)
    for n in range(terms.shape[1]):
        total = (total.astype(np.float32) + terms[:, n]).astype(dtype)
    return total.astype(np.float32).sum(axis=1)


@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.parametrize("width", [1, 16, 32, 64])
@pytest.mark.parametrize("name", LOW)
def test_a_long_sum_in_few_bits_is_far_off(name: str, width: int, lanes: bool) -> None:
    ((rows,), changed) = values_of("long rows", [np.ones((8, 1024), LOW[name])])
    assert changed
    expected = rows.astype(np.float64).sum(axis=1)
    assert LongRows().is_exact(expected, blocked_sum(rows, np.float32, width, lanes))
    for output in ("float32", name):
        limit = allowed([name, output], Tolerance())
        total = blocked_sum(rows, np.float32, width, lanes).astype(LOW.get(output, np.float32))
        assert not compare(total.astype(np.float32), expected, None, limit).fault
        assert compare(blocked_sum(rows, LOW[name], width, lanes), expected, None, limit).row > 1.4


def test_a_compensated_sum_in_few_bits_is_right() -> None:
    dtype = ml_dtypes.bfloat16
    ((rows,), _) = values_of("long rows", [np.ones((8, 512), dtype)])
    total, lost = np.zeros(8, dtype), np.zeros(8, dtype)
    for column in rows.T:  # Kahan's sum: what an addition lost is taken from the next term
        term = column - lost
        added = total + term
        total, lost = added, (added - total) - term
    result = total.astype(np.float32) - lost.astype(np.float32)
    expected = rows.astype(np.float64).sum(axis=1)
    assert not compare(result, expected, None, allowed(["bfloat16", "float32"], Tolerance())).fault


def test_only_inputs_with_fewer_bits_than_float32_are_changed() -> None:
    full = [np.ones((4, 64), np.float32), np.arange(4)]
    for name in (LongRows.name, LongColumns.name):
        assert values_of(name, full) == (full, False)
        assert not values_of(name, [np.ones((4, 8), np.float16).T[:, :2]])[1]
    half = [np.ones((64, 4), np.float16), np.full(3, 2, np.float32), np.arange(4), 0.5]
    (changed, ones, index, number), any_changed = values_of("long columns", half)
    assert any_changed
    assert changed.dtype == np.float16
    assert (changed[0] == 1).all()
    assert (changed[1:] < 1e-3).all()
    assert (ones == 1).all()
    assert index is half[2]
    assert number == 0.5


def test_what_was_divided_is_no_exact_sum() -> None:
    thirds = np.full((4, 4), np.float32(1 / 3))
    assert not LongRows().is_exact(thirds, thirds)
    assert not LongRows().is_exact(np.ones(4), np.ones(4) + 1e-7)
    assert LongRows().is_exact(np.zeros(4), np.zeros(4))


def finite(inputs: list[Any]) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.isfinite(inputs[0] * inputs[-1]).all())


@pytest.mark.parametrize(("shape", "products"), [((64, 512), False), ((5, 48, 80), False), ((40, 33), True)])
def test_partial_sums_pass_what_half_precision_holds(shape: tuple[int, ...], products: bool) -> None:
    drawn = np.ones(shape, np.float16)
    (sums, *ones), changed = values_of(
        "half range", [drawn, *([] if products else [drawn[0]])], usable=finite
    )
    assert changed
    assert all((a == 1).all() for a in ones)
    wide = sums.astype(np.float32)
    assert np.abs(wide.sum(axis=-1)).max() == np.abs(wide.sum(axis=-2)).max() == 0
    assert (wide**2).sum(axis=-1).min() > 65504
    if not products:
        assert np.abs(np.cumsum(wide, axis=-1)).max(axis=-1).min() >= 2 * 65504


def test_only_half_precision_has_such_a_range() -> None:
    assert not values_of("half range", [np.ones((8, 64), np.float32)], usable=finite)[1]
    assert not values_of("half range", [np.ones((8, 64), np.float16)], usable=lambda inputs: False)[1]
