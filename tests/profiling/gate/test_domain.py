"""Values that the gate changed need not be values that the problem is made for: probabilities times three are none."""

from __future__ import annotations

import pytest
from support.gate_checker import Checker, codes

PROBLEM = """
import numpy as np

def get_inputs(rows=32, columns=48):
    return [np.random.uniform(0.01, 0.99, size=(rows, columns)).astype(np.float32)]

def reference(p):
    if p.min() < 0 or p.max() > 1:
        raise ValueError("no probabilities")
    return -np.log(p)
"""
KERNEL = """
import numpy as np

def kernel(p):
    return -np.log(p)
"""
STRICT = KERNEL.replace("    return", "    assert p.min() >= 0 and p.max() <= 1\n    return")
NARROW = KERNEL.replace("    return", "    assert p.min() >= 0.009\n    return")


@pytest.mark.slow
@pytest.mark.parametrize(
    "candidate", [KERNEL, STRICT], ids=["takes anything", "takes what the reference takes"]
)
def test_values_that_the_reference_does_not_take_are_left_out(checker: Checker, candidate: str) -> None:
    verdict, _ = checker.numpy(candidate, PROBLEM, KERNEL)
    assert verdict.accepted, verdict.reasons
    outcomes = {check["case"]: (check["outcome"], check["why"]) for check in verdict.checks}
    assert outcomes["large"] == ("left out", "the reference does not take such values")
    assert outcomes["original"] == outcomes["small"] == ("passed", "")


@pytest.mark.slow
def test_values_that_the_reference_takes_the_kernel_has_to_take(checker: Checker) -> None:
    verdict, _ = checker.numpy(NARROW, PROBLEM, KERNEL)
    assert not verdict.accepted
    assert set(codes(verdict)) == {"kernel-raised"}
    assert any("'small'" in reason.message for reason in verdict.reasons)


def test_a_reference_that_raises_on_what_the_problem_draws_is_the_problems_fault(checker: Checker) -> None:
    broken = PROBLEM.replace("p.max() > 1", "p.max() > 0.5")
    verdict, _ = checker.numpy(KERNEL, broken, KERNEL)
    assert codes(verdict) == ["problem-raised"]
