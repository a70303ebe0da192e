"""Whole numbers that floats were rounded to: two honest kernels round a few of them differently, by one."""

from __future__ import annotations

import numpy as np
import pytest
from support.gate_checker import Checker, codes

from accelopt_profiling.comparison.elements import compare_exact

PROBLEM = """
import numpy as np

def get_inputs(rows=128, columns=512):
    return [np.random.normal(size=(rows, columns)).astype(np.float32)]

def reference(x):
    scale = np.abs(x).max(axis=1, keepdims=True) / 32767
    return np.floor(x / np.where(scale > 0, scale, 1) + 0.5).astype(np.int16)
"""
KERNEL = """
import numpy as np

def kernel(x):
    scale = np.abs(x).max(axis=1, keepdims=True) / np.float32(32767)
    return np.floor(x / np.where(scale > 0, scale, np.float32(1)) + np.float32(0.5)).astype(np.int16)
"""


def quantised(old: str, new: str) -> str:
    assert old in KERNEL
    return KERNEL.replace(old, new)


RECIPROCAL = quantised(
    "x / np.where(scale > 0, scale, np.float32(1))", "x * (1 / np.where(scale > 0, scale, np.float32(1)))"
)
WRONG = {
    "cut off": quantised(" + np.float32(0.5)", ""),
    "in half precision": quantised("np.floor(x /", "np.floor(x.astype(np.float16) /"),
    "another scale": quantised("np.float32(32767)", "np.float32(32760)"),
    "off by one everywhere": quantised(".astype(np.int16)", ".astype(np.int16) + np.int16(1)"),
}


@pytest.mark.slow
def test_some_numbers_may_be_rounded_the_other_way(checker: Checker) -> None:
    random = np.random.default_rng(0).normal(size=(128, 512)).astype(np.float32)
    scale = np.abs(random).max(axis=1, keepdims=True) / np.float32(32767)
    one, other = (np.floor(v + np.float32(0.5)) for v in (random / scale, random * (1 / scale)))
    assert (one != other).any(), "this has to be so for the test to tell anything"
    verdict, _ = checker.numpy(RECIPROCAL, PROBLEM, KERNEL)
    assert verdict.accepted, verdict.reasons


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["cut off", *(pytest.param(name, marks=pytest.mark.slow) for name in WRONG if name != "cut off")]
)
def test_another_rounding_is_wrong(checker: Checker, name: str) -> None:
    verdict, _ = checker.numpy(WRONG[name], PROBLEM, KERNEL)
    assert "wrong-result" in codes(verdict), verdict.reasons


def test_as_many_as_in_the_reference_further_off_and_by_one_only() -> None:
    expected = np.arange(10, dtype=np.int8)
    further = expected + np.array([0, 1, -1, 0, 0, 0, 0, 5, 0, 0], np.int8)
    for changes, right in (({0: 1, 4: -1}, True), ({0: 1, 4: 1, 5: 1}, False), ({0: 2}, False), ({}, True)):
        actual = expected.copy()
        for place, by in changes.items():
            actual[place] += by
        assert (compare_exact(actual, expected, further).fault == "") is right
        assert (compare_exact(actual, expected).fault == "") is (not changes)
    assert compare_exact(np.array([127], np.int8), np.array([-128], np.int8), np.array([-127], np.int8)).fault
