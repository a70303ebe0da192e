"""A reference that writes to its inputs declares outputs: kernels have to leave the same there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gate_checking import Checker, codes, running_checker


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
