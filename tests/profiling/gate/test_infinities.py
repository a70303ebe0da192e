"""Infinities stay where the reference leaves them: a product with zero spreads them as NaN."""

from __future__ import annotations

import numpy as np
import pytest
from support.drawn_values import values_of
from support.gate_checker import Checker, codes

NORMAL = np.random.default_rng(5).standard_normal((3, 8, 20)).astype(np.float32)


def test_they_stand_in_a_corner_of_the_largest_array_with_the_signs_of_what_was_there() -> None:
    (largest, small), changed = values_of("infinities", [NORMAL, NORMAL[0]])
    assert changed
    assert small is not largest
    assert np.isfinite(small).all()
    places = np.isinf(largest)
    assert places.sum() == 4  # one in eight of 3 x 2 x 5
    assert not places[:, 2:].any()
    assert not places[..., 5:].any()
    assert np.array_equal(np.sign(largest), np.sign(NORMAL))
    assert np.array_equal(largest[~places], NORMAL[~places])


def test_arrays_of_one_sign_stay() -> None:
    assert values_of("infinities", [np.abs(NORMAL)])[1] is False


PROBLEM = """
import numpy as np

def get_inputs(m=64, n=48):
    return [np.random.normal(size=(m, n)).astype(np.float32)]

def reference(x):
    return np.maximum(x, 0) @ np.ones((x.shape[1], 3), x.dtype)
"""
KERNEL = """
import numpy as np

def kernel(x):
    return POSITIVE @ np.ones((x.shape[1], 3), x.dtype)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("positive", "expected"),
    [("x * (x > 0)", ["not-finite"]), ("np.where(x > 0, x, np.float32(0))", [])],
    ids=["a product", "a choice"],
)
def test_what_has_spread_is_refused(checker: Checker, positive: str, expected: list[str]) -> None:
    original = KERNEL.replace("POSITIVE", "np.maximum(x, 0)")
    verdict, _ = checker.numpy(KERNEL.replace("POSITIVE", positive), PROBLEM, original)
    assert codes(verdict) == expected


@pytest.mark.slow
def test_what_the_original_spreads_too_is_excused(checker: Checker) -> None:
    original, candidate = (KERNEL.replace("POSITIVE", p) for p in ("(x > 0) * x", "x * (x > 0)"))
    verdict, _ = checker.numpy(candidate, PROBLEM, original)
    assert verdict.accepted
