"""Inputs at the ends of what their types hold or functions bear."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.drawn_values import values_of
from support.gate_checker import Checker

from accelopt_profiling.gate import cases
from accelopt_profiling.gate.budget import GateBudget
from accelopt_profiling.gate.request import CaseOptions

RNG = np.random.default_rng(3)
NORMAL = RNG.standard_normal((6, 20)).astype(np.float32)


def test_two_elements_of_each_row_are_where_exponentials_overflow() -> None:
    [moved], changed = values_of("far elements", [NORMAL], work={"activation"})
    assert changed
    assert sorted(moved.max(axis=1)) == [100.0] * 6
    assert sorted(moved.min(axis=1)) == [-100.0] * 6
    assert (moved != NORMAL).sum() == 12
    assert values_of("far elements", [NORMAL], work={"matmul"})[1] is False


def test_elements_are_nearer_where_the_reference_is_infinite() -> None:
    def usable(inputs: list[Any]) -> bool:
        return bool(inputs[0].max() < 50)

    [moved], changed = values_of("far elements", [NORMAL], work={"exp"}, usable=usable)
    assert changed
    assert moved.max() == 30.0
    assert values_of("far elements", [NORMAL], work={"exp"}, usable=lambda _: False)[1] is False


@pytest.mark.parametrize(
    ("dtype", "low", "high", "ends"),
    [
        ("int8", -20, 21, (127, -127)),
        ("uint8", 0, 200, (255, 255)),
        ("uint8", 0, 16, (15, 15)),  # four bits: a packed code stays one
        ("int8", -8, 8, (7, -8)),
        ("int16", -300, 300, (32767, -32767)),
    ],
)
@pytest.mark.parametrize("convert", [np.asarray, torch.from_numpy])
def test_narrow_integers_go_to_an_end_of_their_range(
    convert: Any, dtype: str, low: int, high: int, ends: tuple[int, int]
) -> None:
    drawn = [convert(RNG.integers(low, high, (40, 30)).astype(dtype)) for _ in range(2)]
    moved, changed = values_of("integer ends", [*drawn, 3])
    assert changed
    assert moved[2] == 3
    for array, before, end in zip(moved, drawn, ends, strict=False):
        assert array.dtype == before.dtype
        assert np.mean(np.asarray(array) == end) > 0.8


@pytest.mark.parametrize("array", [np.arange(40, dtype=np.int8), np.ones(40, np.int8), np.arange(9)])
def test_what_counts_or_does_not_vary_stays(array: Any) -> None:
    assert values_of("integer ends", [array])[1] is False


def test_arrays_whose_distances_are_taken_move_alike() -> None:
    weight = RNG.standard_normal(20).astype(np.float32)
    (one, other, same), changed = values_of(
        "offset", [NORMAL, -NORMAL[:4], weight], work={"sum", "power", "add"}
    )
    assert changed
    assert one.mean() > 500
    assert (one - NORMAL).mean() == pytest.approx((other + NORMAL[:4]).mean(), abs=1e-3)
    assert np.array_equal(same, weight)
    assert values_of("offset", [NORMAL], work={"sum", "power", "add"})[1] is False


SOFTMAX_PROBLEM = """
import numpy as np

tolerance = 2e-5

def get_inputs(m=512, k=64, n=2048):
    return [np.random.normal(size=shape).astype(np.float32) for shape in ((m, k), (k, n))]

def reference(x, y):
    z = x @ y
    powers = np.exp(z - z.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
"""
#: A product summed one term at a time, as a kernel does whose terms cancel at far elements.
SOFTMAX = """
import numpy as np

def kernel(x, y):
    z = np.zeros((len(x), y.shape[1]), np.float32)
    for k in range(len(y)):
        z += x[:, k, None] * y[k]
    powers = np.exp(z - z.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
"""


@pytest.mark.slow
def test_terms_that_cancel_at_far_elements_are_not_held_against_an_order_of_sums(
    checker: Checker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cases, "_seed", lambda: 0)
    options = CaseOptions(["original", "far elements"], budget=GateBudget(repeats=0), seeds=1)
    verdict, _ = checker.numpy(SOFTMAX, SOFTMAX_PROBLEM, SOFTMAX, options)
    assert verdict.accepted, verdict.reasons
    overflowing = SOFTMAX.replace("z - z.max(axis=1, keepdims=True)", "z")
    verdict, _ = checker.numpy(overflowing, SOFTMAX_PROBLEM, overflowing, options)
    assert not verdict.accepted
