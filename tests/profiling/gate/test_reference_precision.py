"""The precision of a reference that returns less than float64 is observed, not guessed from the dtype it returns."""

from __future__ import annotations

import pytest
from support.gate_checker import Checker

from accelopt_profiling.gate.request import CaseOptions

KERNEL = """
import numpy as np

def kernel(x, y):
    return x @ y + np.float32(1)
"""
PROBLEM = """
import numpy as np

def get_inputs():
    return [np.random.normal(size=(24, 24)).astype(np.float32) for _ in range(2)]

def reference(x, y):
    return {answer}
"""
FEW = CaseOptions(distributions=["original"], shapes=0)
NARROW = "The reference computes in float32 even when its inputs are float64; its values are no more exact."

#: What the reference returns, the precision that a receipt states, and the note beside the verdict.
ANSWERS = {
    "whatever its inputs are": ("x @ y + 1", "float64", []),
    "cast at the end": ("(x @ y + 1).astype(np.float32)", "float64, rounded to float32", []),
    "cast to float64 and back": (
        "(np.asarray(x, np.float64) @ np.asarray(y, np.float64) + 1).astype(np.float32)",
        "float64, rounded to float32", [],
    ),
    "cast at the start": ("x.astype(np.float32) @ y.astype(np.float32) + 1", "float32", [NARROW]),
    "cast to plain arrays at the start": (
        "np.asarray(x, np.float32) @ np.asarray(y, dtype=np.float32) + 1", "float32", [NARROW]
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("how", ANSWERS)
def test_the_precision_of_a_numpy_reference(how: str, checker: Checker) -> None:
    answer, precision, notes = ANSWERS[how]
    verdict, _ = checker.numpy(KERNEL, PROBLEM.replace("{answer}", answer), KERNEL, FEW)
    assert verdict.accepted, verdict.reasons
    assert verdict.checks[0]["reference_precision"] == precision
    assert [reason.message for reason in verdict.reasons if reason.code == "not-float64"] == notes


TORCH_KERNEL = """
import torch

def kernel(x, y):
    return x @ y + 1
"""
TORCH_PROBLEM = """
import torch

def get_inputs():
    return [torch.randn(24, 24) for _ in range(2)]

def reference(x, y):
    return {answer}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "precision", "notes"),
    [
        ("(x @ y + 1).float()", "float64, rounded to float32", []),
        ("x.float() @ y.float() + 1", "float32", [NARROW]),
    ],
)
def test_the_precision_of_a_torch_reference(
    answer: str, precision: str, notes: list[str], checker: Checker
) -> None:
    verdict, _ = checker.numpy(TORCH_KERNEL, TORCH_PROBLEM.replace("{answer}", answer), TORCH_KERNEL, FEW)
    assert verdict.accepted, verdict.reasons
    assert verdict.checks[0]["reference_precision"] == precision
    assert [reason.message for reason in verdict.reasons if reason.code == "not-float64"] == notes
