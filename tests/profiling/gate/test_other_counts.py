"""Counts, offsets and lengths come with zeros among them and one that is large; other whole numbers stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support.drawn_values import values_of

ROWS = np.ones((20, 3), np.float32)


@pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("numbers", "changed"),
    [
        ([6, 5, 5, 4], [0, 5, 5, 10]),  # counts
        ([0, 6, 11, 16, 20], [0, 0, 5, 10, 20]),  # offsets
        ([7, 20], [7, 0]),  # lengths
        ([12, 8], [0, 20]),
    ],
)
def test_some_are_empty_and_one_is_large(
    convert: Callable[[Any], Any], kind: type, numbers: list[int], changed: list[int]
) -> None:
    inputs = [convert(ROWS), convert(np.asarray(numbers, kind))]
    (rows, counts), is_changed = values_of("other counts", inputs)
    assert is_changed
    assert rows is inputs[0]
    assert (type(counts), counts.dtype) == (type(inputs[1]), inputs[1].dtype)
    assert counts.tolist() == changed


@pytest.mark.parametrize(
    "numbers",
    [
        np.arange(21),  # each of one row
        np.arange(20),
        np.array([3, 900, 7]),  # beyond every axis
        np.array([[6, 5], [5, 4]]),
        np.array([-1, 5, 8]),
        np.array([6.0, 14.0]),
        np.array([20]),
    ],
    ids=str,
)
def test_other_numbers_stay(numbers: Any) -> None:
    assert values_of("other counts", [ROWS, numbers])[1] is False


@pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize(
    ("numbers", "changed"), [([6, 5, 5, 4], [0, 0, 0, 80]), ([0, 6, 11, 20], [0, 0, 0, 80])]
)
def test_one_group_takes_an_axis_that_is_longer(
    convert: Callable[[Any], Any], numbers: list[int], changed: list[int]
) -> None:
    (rows, counts), is_changed = values_of("one group", [convert(ROWS), convert(np.asarray(numbers))])
    assert is_changed
    assert tuple(rows.shape) == (80, 3)
    assert counts.tolist() == changed
    for lengths in ([3, 900, 7], list(range(21)), [7, 20]):
        assert values_of("one group", [convert(ROWS), convert(np.asarray(lengths))])[1] is False


def test_places_count_upwards_but_for_two_of_four() -> None:
    drawn = np.array([9, 2, 5, 2, 7, 3, 8, 4, 6, 2])
    (places,), changed = values_of("places out of order", [drawn])
    assert changed
    assert places.tolist() == [2, 4, 3, 5, 6, 8, 7, 9, 2, 3]
    for other in (np.sort(drawn), drawn - 3, drawn % 3, drawn.astype(float)):
        assert values_of("places out of order", [other])[1] is False
    assert values_of("places out of order", [np.ones((48, 2)), drawn])[1] is False  # they are counts


def test_what_the_reference_does_not_take_is_left_out() -> None:
    assert values_of("other counts", [ROWS, np.array([7, 20])], usable=lambda inputs: False)[1] is False
