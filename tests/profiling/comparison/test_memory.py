"""Whether arguments changed: by their bits, whatever they are."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from accelopt_profiling.comparison.memory import fingerprint, same_bits, same_layout

numbers = arrays.arrays(
    st.sampled_from([np.float32, np.float16, np.int64, np.uint8, np.bool_, np.float64]),
    arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


@given(numbers, st.data())
@settings(max_examples=100, deadline=None)
def test_the_same_bits_are_the_same_fingerprint(array: Any, data: st.DataObject) -> None:
    other = array.copy()
    assert same_bits(array, other)
    if array.size:
        other.reshape(-1).view(np.uint8)[data.draw(st.integers(0, array.nbytes - 1))] ^= 1
        assert not same_bits(array, other)
        assert fingerprint(array) != fingerprint(other)


NAN, ZERO = np.full(4, np.nan, np.float32), np.zeros(4, np.float32)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (NAN, NAN.copy(), True), (ZERO, -ZERO, False), (ZERO, ZERO.reshape(2, 2), False),
        (ZERO, ZERO.view(np.int32), False), (torch.ones(3), torch.ones(3), True),
        (torch.ones(3), np.ones(3, np.float32), False),
        (torch.ones(2, 4).T, torch.ones(4, 2), True), (torch.ones(3).bfloat16(), torch.ones(3).half(), False),
        (np.ones(3, ml_dtypes.bfloat16), np.ones(3, ml_dtypes.bfloat16), True), ([ZERO, 1], [ZERO.copy(), 1], True),
        ([ZERO, 1], [ZERO, 2], False), ([ZERO], [ZERO, ZERO], False),
        (1.0, 1, False), ("a", "a", True), (None, None, True),
    ],
)  # fmt: skip
def test_arguments_of_any_kind(one: Any, other: Any, same: bool) -> None:
    assert same_bits(one, other) is same
    assert (fingerprint(one) == fingerprint(other)) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ([ZERO, 1], [NAN, 2], True), ([ZERO, 1], [NAN], False), ([ZERO], [NAN, 2], False),
        ([ZERO, 1], [1, ZERO], False), ([[ZERO], 1], [ZERO, [1]], False), ([1], [1], False),
    ],
)  # fmt: skip
def test_memory_is_used_again_only_for_arguments_of_the_same_form(
    one: list[Any], other: list[Any], same: bool
) -> None:
    assert same_layout(one, other) is same
