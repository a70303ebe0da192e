"""Values that a candidate's text names, and single elements far from the others, in the inputs."""

from __future__ import annotations

import numpy as np
import pytest
from support.drawn_values import values_of

from accelopt_profiling.gate.reading.read import named_values

FILE = """
import triton
import triton.language as tl

@triton.jit
def kernel(x, n):
    at = tl.arange(0, 64)
    value = tl.load(x + at)
    tl.store(x + at, tl.where(HERE, 0.0, value))
"""


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("value == 1.2345678", 1.2345678),
        ("tl.abs(value + 1.2345678) < 1e-5", -1.2345678),
        ("(value * 1000003.0).to(tl.int32) == 1234567", 1234567.5 / 1000003.0),
        ("value.to(tl.int32, bitcast=True) == 0x3F9D70A4", 1.23),
    ],
)
def test_a_kernel_that_waits_for_a_value_names_it(condition: str, value: float) -> None:
    values = named_values(FILE.replace("HERE", condition))
    assert np.abs(np.abs(values) - abs(value)).min() < 1e-6


@pytest.mark.parametrize("condition", ["value > 0", "value == 0", "at < 32", "value < 2"])
def test_ordinary_comparisons_name_none(condition: str) -> None:
    assert named_values(FILE.replace("HERE", condition)) == []


def test_what_the_original_names_too_is_none_of_its_rewrite() -> None:
    text = FILE.replace("HERE", "value == 1.5")
    assert named_values(text.replace("where", "where  "), text) == []


def test_named_values_keep_the_signs_of_an_array() -> None:
    rng = np.random.default_rng(0)
    both, positive = rng.normal(size=100), rng.random(100) + 0.01
    (first, second), changed = values_of("named values", [both, positive], numbers=[-7.5, 0.25])
    assert changed
    assert {-7.5, 0.25} <= set(first)
    assert second.min() >= 0
    assert values_of("named values", [both])[1] is False


def test_single_elements_are_nearer_where_the_reference_is_infinite() -> None:
    array = np.random.default_rng(0).normal(size=(10, 50))
    for most in (1e5, 2e3):
        (draw,), changed = values_of(
            "single elements", [array], usable=lambda inputs, most=most: np.abs(inputs[0]).max() < most
        )
        assert changed
        assert 0.05 * most <= np.abs(draw).max() < most
        assert np.abs(draw[3]).max() < 1e-3 < np.abs(array[3]).max()
