"""Inputs outside of what a problem draws, where the original holds a rewrite: signs, zeros, marks, layouts, types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support.drawn_values import values_of
from support.gate_checker import Checker, codes

from accelopt_profiling.gate.probes.numbers import unnamed

GENERATOR = np.random.default_rng(5)
NORMAL = GENERATOR.standard_normal((6, 20)).astype(np.float32)
POSITIVE = GENERATOR.random((6, 64)).astype(np.float32)


def test_half_of_an_array_and_its_first_slice_are_zero() -> None:
    (values,), changed = values_of("other signs", [NORMAL])
    zero = values == 0
    assert changed
    assert zero[0].all()
    assert 0.3 < zero[1:].mean() < 0.7
    assert np.array_equal(values[~zero], NORMAL[~zero])


def test_what_is_never_negative_is_far_below_zero_and_seldom_zero() -> None:
    (values,), _ = values_of("other signs", [POSITIVE])
    assert 0 < (values[1:] == 0).mean() < 0.2
    assert (values[values != 0] < -1).all()


@pytest.mark.parametrize(("number", "changed"), [(2.5, -2.5), (0.125, -8.0), (-0.5, 2.0), (1e-6, 1e-6)])
def test_numbers_change_their_sign_but_for_those_next_to_nothing(number: float, changed: float) -> None:
    assert values_of("other signs", [NORMAL, number])[0][1] == changed


def test_one_argument_after_another_changes_where_not_all_may() -> None:
    def takes(inputs: list[Any]) -> bool:
        return inputs[1] > 0 and bool((inputs[0] >= 0).all())  # no root of a negative number

    (values, factor), changed = values_of("other signs", [POSITIVE, 0.5], usable=takes)
    assert changed
    assert (values == 0).any()
    assert factor == 0.5
    assert values_of("other signs", [POSITIVE, 0.5], usable=lambda inputs: False)[1] is False


@pytest.mark.parametrize(
    ("numbers", "changed"),
    [
        ([[4, 9, 2], [7, 3, 8]], [[2, 3, 4], [7, 3, 8]]),  # the first row counts
        ([5, 0, 7, 0, 3, 9], [5, 0, 0, 0, 0, 9]),  # what is frequent is more so
    ],
)
def test_whole_numbers_are_others_behind_the_first(numbers: Any, changed: Any) -> None:
    (values,), _ = values_of("other indices", [np.array(numbers)])
    assert values.tolist() == changed


def test_equal_whole_numbers_are_no_longer_equal() -> None:
    (values,), _ = values_of("other indices", [np.full((8, 3), 8, np.int32)])
    assert values[0, 0] == 8
    assert len(np.unique(values)) > 2
    assert values.min() >= 0
    assert values.max() <= 8


def test_counts_and_what_is_in_order_stay() -> None:
    rows = np.ones((20, 3), np.float32)
    assert values_of("other indices", [rows, np.array([5, 5, 5, 5])])[1] is False
    assert values_of("other indices", [np.arange(9)])[1] is False


def test_a_mark_is_another_number_of_its_array() -> None:
    def takes(inputs: list[Any]) -> bool:
        return bool((inputs[0] >= 0).all())

    (target, mark), changed = values_of("other integers", [np.array([3, -100, 2]), -100], usable=takes)
    assert changed
    assert (target.tolist(), mark) == ([3, 2, 2], 2)


def test_a_choice_by_name_is_left_open() -> None:
    assert [unnamed(v) for v in ("silu", True, 0.5, 3)] == [None, False, 0.375, 3]


def test_the_largest_tensor_lies_the_other_way_in_memory() -> None:
    x, w = torch.randn(4, 40), torch.randn(40)
    (values, other), changed = values_of(
        "exchanged axes", [x, w], usable=lambda inputs: inputs[0].shape == x.shape
    )
    assert changed
    assert other is w
    assert torch.equal(values, x)
    assert values.stride() == (1, 4)
    (short, _), _ = values_of("exchanged axes", [x, w])
    assert torch.equal(short, x[:, :16])
    assert short.stride() == (1, 4)
    assert values_of("exchanged axes", [w])[1] is False


def test_arrays_of_one_shape_lose_half_of_their_columns() -> None:
    x, cos, sin = np.ones((6, 20)), np.ones((6, 8)), np.ones((6, 8))
    (first, *halves), changed = values_of("unequal axes", [x, cos, sin])
    assert changed
    assert first is x
    assert [half.shape for half in halves] == [(6, 4), (6, 4)]


@pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor])
def test_one_array_alone_is_cut_or_longer(convert: Callable[[Any], Any]) -> None:
    queries, keys, ends = convert(np.ones((2, 12, 4))), convert(np.ones((1, 12, 4))), convert(np.arange(7))

    def lengths(*shapes: tuple[int, ...]) -> list[list[tuple[int, ...]]]:
        """Return the shapes of each case, where the reference takes arrays of any of these shapes alone."""
        results = [
            values_of(
                "one length", [queries, keys, ends], own_reference=True, number=number,
                usable=lambda inputs: not shapes or any(tuple(a.shape) in shapes for a in inputs),
            )
            for number in range(3)
        ]  # fmt: skip
        return [[tuple(a.shape) for a in values] for values, changed in results if changed]

    whole = [tuple(a.shape) for a in (queries, keys, ends)]
    assert lengths((2, 6, 4), (11,)) == [[(2, 6, 4), *whole[1:]], [*whole[:2], (11,)]]
    assert len(lengths()) == 3
    (*_, longer), _ = values_of(
        "one length", [queries, keys, ends], own_reference=True, usable=lambda inputs: len(inputs[2]) > 7
    )
    assert longer.tolist() == [0, 1, 2, 3, 4, 5, 6, 6, 6, 6, 6]
    assert values_of("one length", [queries, keys, ends])[1] is False


def test_one_key_of_many_is_far_above_the_others() -> None:
    queries, keys = GENERATOR.standard_normal((2, 64, 32))
    (queries, keys), changed = values_of("late sinks", [queries, keys], work={"softmax", "matmul"})
    assert changed
    scores = queries @ keys.T / np.sqrt(32)
    others = np.delete(scores, [31, 63], axis=1)
    assert (scores[:, 31] - others.max(axis=1)).mean() > 4
    weights = np.exp(scores - scores[:, 31:32])
    assert np.delete(weights, [31, 63], axis=1).sum(axis=1).mean() > 1e-4
    assert values_of("late sinks", [queries - 9, keys], work={"softmax"})[1] is False


TAKES = """
import numpy as np

def kernel(x, y):
    CHECK
    return x.sum(axis=1) + SUM
"""
PAIR = """
import numpy as np

def get_inputs(m=6, n=24):
    return [np.random.normal(size=(m, n)).astype(np.float32), np.random.normal(size=n).astype(np.float32)]

def reference(x, y):
    return x.sum(axis=1) + y.sum()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "total", "refused"),
    [
        ("pass", "y.sum()", False),
        ("assert len(y) == x.shape[1]", "y.sum()", False),
        ("pass", "y.mean() * x.shape[1]", True),
    ],
    ids=["its own length", "raises", "another one's"],
)
def test_a_length_is_not_taken_from_another_array(
    checker: Checker, lines: str, total: str, refused: bool
) -> None:
    original = TAKES.replace("CHECK", "pass").replace("SUM", "np.sum(y)")
    candidate = TAKES.replace("CHECK", lines).replace("SUM", total)
    verdict, _ = checker.numpy(candidate, PAIR, original)
    assert (not verdict.accepted) is refused, verdict.reasons
    notes = [note.message for note in verdict.reasons if note.code == "not-general"]
    assert ("assert" not in lines) or any("one length" in message for message in notes), verdict.reasons


def test_tensors_of_float32_come_in_16_bits_with_sums_that_these_lose() -> None:
    x, w = torch.randn(48, 32), torch.randn(32)
    (values, others), changed = values_of("narrow types", [x, w])
    assert changed
    assert (values.dtype, others.dtype) == (torch.bfloat16, torch.bfloat16)
    for sums in (values[:, 1:].T, values[1:]):  # along columns, and along rows
        total = torch.zeros((), dtype=torch.bfloat16)
        for term in sums[0]:
            total = total + term
        assert float(total) == 1 < float(sums[0].float().sum())
    assert values_of("narrow types", [x.half(), w])[1] is False
    assert values_of("narrow types", [NORMAL])[1] is False


LAYER = """
import torch

KEPT = {}

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        kept = BUFFER
        kept.copy_(x)
        ctx.kept = kept
        return x * x

    @staticmethod
    def backward(ctx, arriving):
        return 2 * ctx.kept * arriving

def kernel(x):
    return Square.apply(x)
"""
PROBLEM = """
import torch
backward = True

def get_inputs(m=6, n=20):
    return [torch.randn(m, n)]

def reference(x):
    return x * x
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("buffer", "refused"),
    [("torch.empty_like(x)", False), ("KEPT.setdefault(x.shape, torch.empty_like(x))", True)],
    ids=["of its own", "kept by shape"],
)
def test_what_gradients_need_is_not_overwritten_by_the_next_call(
    checker: Checker, buffer: str, refused: bool
) -> None:
    original = LAYER.replace("BUFFER", "torch.empty_like(x)")
    verdict, _ = checker.numpy(LAYER.replace("BUFFER", buffer), PROBLEM, original)
    assert ("output-reused" in codes(verdict)) is refused
