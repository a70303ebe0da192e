"""Numbers among the arguments come with another value, where the reference looks at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch

from accelopt_profiling.gate.probes.numbers import fraction, other, replaced
from accelopt_profiling.problems.problem import Problem

X = np.random.default_rng(2).standard_normal((4, 6)).astype(np.float32)


class Computes:
    """As much of a problem as is asked."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        answer = self.function(*inputs)
        return None if answer is None else [answer]


def run(function: Callable[..., Any], *inputs: Any) -> list[Any]:
    return replaced(cast(Problem, Computes(function)), list(inputs), fraction)


@pytest.mark.parametrize("convert", [np.asarray, torch.from_numpy])
def test_a_number_that_counts_changes(convert: Callable[[Any], Any]) -> None:
    x = convert(X)
    numbers = run(lambda x, a, b: x * a + b, x, 0.5, 1e-3)
    assert numbers[0] is x
    assert numbers[1:] == [0.375, 0.00075]


@pytest.mark.parametrize(
    ("function", "numbers"),
    [(lambda x, a: x, (0.5,)),  # the reference does not look at it
     (lambda x, a: x**a, (2.0,)), (lambda x, a: x[:a], (3,)), (lambda x, a: x if a else -x, (True,)),
     (lambda x, a: {0.5: x}[a], (0.5,)),  # takes no other
     (lambda x, a: None, (0.5,)), (lambda x: x, ())],
)  # fmt: skip
def test_others_stay(function: Callable[..., Any], numbers: tuple[Any, ...]) -> None:
    assert run(function, X, *numbers)[1:] == list(numbers)


def test_what_the_reference_writes_to_is_a_copy() -> None:
    def add(x: Any, a: float) -> Any:
        x += a
        return x

    before = X.copy()
    assert run(add, X, 0.5)[1] == 0.375
    assert np.array_equal(X, before)


@pytest.mark.parametrize(
    ("number", "changed"), [(1.0, 0.75), (0.5, 0.375), (1e-6, 0.05), (0.0, 0.05), (-2.0, -1.5)]
)
def test_whole_numbers_and_what_is_next_to_nothing_change_as_well(number: float, changed: float) -> None:
    problem = cast(Problem, Computes(lambda x, a: x * a))
    assert replaced(problem, [X, number], other)[1] == changed
