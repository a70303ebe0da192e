"""Inputs that lean to one side: what changes, what must not, and for which problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from support.drawn_values import values_of

RNG = np.random.default_rng(7)
NORMAL = RNG.standard_normal((16, 48)).astype(np.float32)
SOFTMAX = {"softmax": 100}
finite = arrays.arrays(
    np.float32, arrays.array_shapes(max_dims=3, max_side=9), elements=st.floats(-8, 8, width=32)
)


def test_rows_far_above_and_far_below_are_of_one_sign() -> None:
    [moved], changed = values_of("skewed", [NORMAL], 1)
    assert changed
    assert moved.dtype == NORMAL.dtype
    assert (moved[0] > 0).all()
    assert (moved[8] < 0).all()
    assert moved[1:8].mean() == pytest.approx(1, abs=0.2)
    assert (np.diff(moved[3] + NORMAL[3]) > 0).all()  # negated, about a mean that grows to the right


def test_arrays_of_one_sign_keep_their_kind_beside_others() -> None:
    [positive, negative], changed = values_of("skewed", [np.abs(NORMAL), -np.abs(NORMAL)], 1)
    assert changed
    assert np.array_equal(positive, np.abs(NORMAL))
    assert np.array_equal(negative, np.abs(NORMAL))


@pytest.mark.parametrize("convert", [np.asarray, torch.from_numpy])
def test_where_nothing_is_negative_the_largest_array_becomes_so(convert: Any) -> None:
    drawn, weight, ones = np.abs(NORMAL), np.abs(NORMAL[0]), np.ones(3, np.float32)
    inputs = [convert(a) for a in (weight, drawn, ones)]
    (same, moved, still), changed = values_of("skewed", inputs, 1)
    assert changed
    assert (np.asarray(moved) < 0).any()
    assert (np.asarray(moved) > 0).any()
    assert np.array_equal(same, weight)
    assert np.array_equal(still, ones)
    assert values_of("skewed", [convert(ones)], 1)[1] is False
    (one, spiked), _ = values_of("spikes", inputs[:2], 1, SOFTMAX)
    assert np.array_equal(one, weight)
    assert sorted(np.asarray(spiked)[-2])[-2:] == [190, 200]


@pytest.mark.parametrize("make", [np.arange, torch.arange])
def test_counted_indices_come_in_another_order(make: Any) -> None:
    counted, held = make(9), make(3, 12)
    [moved, same], changed = values_of("skewed", [counted, held], 1)
    assert changed
    assert type(moved) is type(counted)
    assert moved.dtype == counted.dtype
    assert sorted(int(i) for i in moved) == list(range(9))
    assert not bool((moved == counted).all())
    assert same is held


@pytest.mark.parametrize("mask", [np.tri(5, dtype=bool), torch.tril(torch.ones(5, 5, dtype=torch.bool))])
def test_triangular_masks_leave_each_row_something(mask: Any) -> None:
    [moved, other], changed = values_of("skewed", [mask, ~mask], 1)
    assert changed
    assert not bool((moved == mask).all())
    assert bool(moved.any(-1).all())
    assert bool((other == ~mask).all())


def test_spikes_meet_where_arrays_are_multiplied() -> None:
    (one, other, narrow), changed = values_of("spikes", [NORMAL, NORMAL[:4], NORMAL[:, :12]], 3, SOFTMAX)
    assert changed
    places = np.flatnonzero(one[-2] != NORMAL[-2])
    assert len(places) == 2
    assert (places >= 24).all()
    assert set(one[-2, places]) == {190, 200}
    assert (other[-2, places] == one[-2, places]).all()
    assert (one != NORMAL)[2:].sum() == (narrow != NORMAL[:, :12])[2:].sum() == 2


@pytest.mark.parametrize(
    ("work", "spiked"),
    [(["softmax"], True), (["attention"], True), (["exp", "extreme", "sum"], True), (["exp", "sum"], False),
     (["matmul", "extreme"], False), (["tanh"], False), ([], False)],
)  # fmt: skip
def test_only_problems_that_take_a_maximum_off_get_spikes(work: list[str], spiked: bool) -> None:
    assert values_of("spikes", [NORMAL], 3, work)[1] is spiked


@given(array=finite)
@settings(max_examples=40, deadline=None)
def test_nothing_else_changes(array: Any) -> None:
    masked = np.where(array > 4, -np.inf, array).astype(np.float32)
    for changed in (
        values_of("skewed", [array, 1e-5, masked], 5)[0],
        values_of("spikes", [array, 1e-5, masked], 5, SOFTMAX)[0],
    ):
        assert changed[0].shape == array.shape
        assert changed[0].dtype == array.dtype
        assert changed[1] == 1e-5
        assert np.array_equal(np.isinf(changed[2]), np.isinf(masked))


def test_rows_far_from_the_others_unless_they_are_multiplied() -> None:
    (shifted,), _ = values_of("spikes", [NORMAL], 3, SOFTMAX)
    assert shifted[0].max() < -900
    assert shifted[1].min() > 900
    (still,), _ = values_of("spikes", [NORMAL], 3, {"attention"})
    assert np.array_equal(still[:-2], NORMAL[:-2])


@pytest.mark.parametrize(
    ("work", "dtype", "moved"),
    [({"norm"}, np.float32, True), ({"sum", "power", "sqrt"}, np.float32, True), ({"sum"}, np.float32, False),
     ({"variance"}, np.float16, False)],
)  # fmt: skip
def test_a_mean_far_from_zero(work: set[str], dtype: Any, moved: bool) -> None:
    (offset, weight), changed = values_of(
        "offset", [NORMAL.astype(dtype), NORMAL[0].astype(dtype)], work=work
    )
    assert changed is moved
    assert np.array_equal(weight, NORMAL[0].astype(dtype))
    assert bool(offset.mean() > 900) is moved


@pytest.mark.parametrize("convert", [np.asarray, torch.from_numpy])
def test_whole_numbers_that_were_drawn_are_crowded(convert: Any) -> None:
    drawn = RNG.integers(0, 40, 3000)
    (skewed,), changed = values_of("skewed", [convert(drawn)], 1)
    assert changed
    assert np.bincount(np.asarray(skewed)).max() > 0.97 * drawn.size
    assert set(np.asarray(skewed).tolist()) <= set(drawn.tolist())
    for other in (np.sort(drawn), RNG.permutation(3000), drawn[:30], drawn.astype(np.int8)):
        assert values_of("skewed", [convert(other)], 1)[1] is False
    assert values_of("skewed", [convert(drawn), convert(drawn)], 1)[1] is False
