"""A reference that writes to its inputs declares outputs: kernels have to leave the same there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.gate_checker import Checker, codes

from accelopt_profiling.comparison.inplace_outputs import Effects, effects_of, with_inplace_outputs

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


#: The reference leaves its arguments alone, while the original writes to one of them what it returns.
PURE = PROBLEM.replace("residual += x\n    return np.maximum(residual, 0)", "return residual + x")
GIVES_BACK = IN_PLACE.replace("return np.maximum(residual, 0)", "return residual")
NEW_SUM = GIVES_BACK.replace("return", "return x +")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("candidate", "original", "code"),
    [
        (GIVES_BACK.replace("residual + x", "x + residual"), GIVES_BACK, ""),
        (GIVES_BACK.replace("residual + x", "x - residual"), GIVES_BACK, "wrong-result"),
        (GIVES_BACK.replace("residual[:] =", "residual ="), GIVES_BACK, "not-written"),
        (GIVES_BACK.replace("return residual", "return residual.copy()"), GIVES_BACK, "inputs-changed"),
        (GIVES_BACK.replace("return", "x[:] = 1\n    return"), GIVES_BACK, "inputs-changed"),
        (GIVES_BACK, GIVES_BACK.replace("residual[:] =", "residual ="), "aliases-input"),
        (GIVES_BACK, NEW_SUM, "aliases-input"),
    ],
)  # fmt: skip
def test_a_candidate_may_write_what_it_returns_where_the_original_does(
    checker: Checker, candidate: str, original: str, code: str
) -> None:
    verdict, _ = checker.numpy(candidate, PURE, original)
    assert verdict.accepted is (not code), verdict.reasons
    if code:
        assert code in codes(verdict)


def adds(inputs: list[Any]) -> list[Any]:
    """As a problem that was recorded: what is called goes before the arguments."""
    _, x, out = inputs
    out += x
    return [x + 1, x[1:]]


def test_written_arguments_are_counted_from_the_end() -> None:
    inputs = ["add", np.ones(3), np.zeros(3)]
    assert effects_of(adds, inputs, inputs[1:]) == Effects([-1], [["1", "0"]])
    assert (inputs[2] == 0).all()
    assert effects_of(adds, inputs, [a + 0 for a in inputs[1:]]) == Effects()
    assert effects_of(adds, inputs, []) == Effects()


def test_what_is_written_is_kept_apart_from_the_arguments() -> None:
    x, out = np.ones(3), np.zeros(3)

    def call() -> list[Any]:
        out[:] = 2
        return [out[1:], x]

    tail, same, output = with_inplace_outputs(call, [x, out], [-1])
    assert tail.tolist() == [2, 2]
    assert output.tolist() == [2, 2, 2]
    assert same is x
    assert not np.shares_memory(tail, out)
    assert not np.shares_memory(output, out)
    assert with_inplace_outputs(lambda: [x], [x, out], [])[0] is x
