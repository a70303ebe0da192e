"""A reference that writes to its inputs declares outputs: kernels have to leave the same there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest
from support.gate_checker import Checker, codes, running_checker

from accelopt_profiling.comparison.inplace_outputs import with_inplace_outputs
from accelopt_profiling.gate.inputs.draw import written_by_reference
from accelopt_profiling.gate.observe.hostwork import HostWork
from accelopt_profiling.problems.problem import Problem


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with running_checker() as running:
        yield running


PROBLEM = """
import numpy as np


def get_inputs(rows=20, columns=30):
    return [np.random.normal(size=(rows, columns)).astype(np.float32) for _ in range(2)]


def reference(x, residual):
    residual += x
    return np.maximum(residual, 0)
"""
IN_PLACE = """
import numpy as np


def kernel(x, residual):
    residual[:] = residual + x
    return np.maximum(residual, 0)
"""
POSITIVE = "np.maximum(residual, 0)"
NOTHING = PROBLEM.replace("return np.max", "np.max")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "candidate", "code"),
    [
        (PROBLEM, IN_PLACE, ""),
        (PROBLEM, IN_PLACE.replace("residual[:] =", "residual ="), "wrong-result"),
        (PROBLEM, IN_PLACE.replace("return", "x[:] = 1\n    return"), "inputs-changed"),
        (PROBLEM.replace(POSITIVE, "residual"), IN_PLACE.replace(POSITIVE, "residual"), ""),
        (NOTHING, IN_PLACE.replace("return np.max", "np.max"), ""),
        (NOTHING, IN_PLACE.replace("return np.max", "np.max").replace("+ x", "- x"), "wrong-result"),
    ],
)  # fmt: skip
def test_written_arguments(checker: Checker, problem: str, candidate: str, code: str) -> None:
    verdict, _ = checker.numpy(candidate, problem, IN_PLACE)
    assert verdict.accepted is (not code), verdict.reasons
    if code:
        assert code in codes(verdict)


class Adds:
    """As a problem that was recorded: what is called goes before the arguments."""

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        _, x, out = inputs
        out += x
        return None


def test_written_arguments_are_counted_from_the_end() -> None:
    inputs = ["add", np.ones(3), np.zeros(3)]
    problem, work = cast(Problem, Adds()), HostWork()
    assert written_by_reference(problem, inputs, inputs[1:], work) == [-1]
    assert (inputs[2] == 0).all()
    assert written_by_reference(problem, inputs, [a + 0 for a in inputs[1:]], work) == []
    assert written_by_reference(problem, inputs, [], work) == []


def test_what_is_written_is_kept_apart_from_the_arguments() -> None:
    x, out = np.ones(3), np.zeros(3)

    def call() -> list[Any]:
        out[:] = 2
        return [out[1:], x]

    tail, same, kept = with_inplace_outputs(call, [x, out], [-1])
    assert tail.tolist() == [2, 2]
    assert kept.tolist() == [2, 2, 2]
    assert same is x
    assert not np.shares_memory(tail, out)
    assert not np.shares_memory(kept, out)
    assert with_inplace_outputs(lambda: [x], [x, out], [])[0] is x
