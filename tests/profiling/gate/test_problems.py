"""What the gate says of problems: whose fault is what, what a problem cannot tell apart, and what it leaves out."""

# ruff: noqa: E501 - tables of sources, one case a line

from __future__ import annotations

import pytest
from support.gate_checker import ORIGINAL, PROBLEM, Checker, codes

from accelopt_profiling.gate.budget import GateBudget
from accelopt_profiling.gate.request import CaseOptions
from accelopt_profiling.jobs import Limits

IN_FILE = ORIGINAL + PROBLEM


@pytest.mark.slow
def test_a_problem_in_the_kernel_file_comes_from_the_original(checker: Checker) -> None:
    weakened = IN_FILE.replace("* w\n    return out", "* w * 0\n    return out").replace(
        "+ 1e-6) * w", "+ 1e-6) * w * 0"
    )
    verdict, _ = checker.numpy(weakened, PROBLEM, IN_FILE, in_kernel_file=True)
    assert codes(verdict)[0] == "wrong-result"
    shortcut = IN_FILE.replace("return out", "return reference(x, w)", 1)
    verdict, _ = checker.numpy(shortcut, PROBLEM, IN_FILE, in_kernel_file=True)
    assert codes(verdict) == ["kernel-raised"]
    verdict, _ = checker.numpy(IN_FILE, PROBLEM, IN_FILE, in_kernel_file=True)
    assert verdict.accepted


PROBLEMS = {
    "raises": (PROBLEM.replace("return x / np", "return x / 0 / nonsense"), "problem-raised", "nonsense"),
    "returns nothing": (PROBLEM.replace("return x / np", "x / np"), "problem-empty", "reference"),
    "draws nothing": (PROBLEM.replace("return [np", "[np"), "problem-empty", "get_inputs"),
    "wants a package": ("import surely_not_installed\n" + PROBLEM, "missing-package", "surely_not_installed"),
    "has a bad tolerance": ("tolerance = 'tight'\n" + PROBLEM, "problem-invalid", "tolerance"),
    "has bad shapes": (PROBLEM.replace("shapes = [", "shapes = [7, "), "problem-invalid", "shapes"),
    "passes an object": (PROBLEM.replace("np.random.normal(size=(columns,)).astype(np.float32)", "object()"), "problem-invalid", "object"),
    "never ends": (PROBLEM + "\nwhile True: pass\n", "problem-timeout", "longer than"),
    "ends the process": (PROBLEM + "\nraise SystemExit(1)\n", "problem-raised", "exit"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_broken_problem_is_not_the_candidates_fault(checker: Checker, name: str) -> None:
    text, code, message = PROBLEMS[name]
    seconds = 2.0 if code == "problem-timeout" else 60.0
    options = CaseOptions(budget=GateBudget(problem_seconds=seconds, all_cases=1))
    verdict, _ = checker.numpy(ORIGINAL, text, ORIGINAL, options, Limits(seconds=seconds))
    assert not verdict.accepted
    assert [r.code for r in verdict.reasons] == [code], verdict.reasons
    assert message in verdict.reasons[0].message


@pytest.mark.slow
def test_inputs_that_ignore_the_seed_are_shuffled(checker: Checker) -> None:
    fixed = PROBLEM.replace("    return [np", "    np.random.seed(0)\n    return [np", 1)
    verdict, _ = checker.numpy(ORIGINAL, fixed, ORIGINAL)
    assert verdict.accepted
    assert codes(verdict) == ["fixed-inputs"]
    learnt = ORIGINAL.replace(
        "    return out", "    np.random.seed(0)\n    if np.array_equal(x, np.random.normal(size=x.shape).astype(np.float32)):\n"
        "        return out\n    return out * 2 if x.std() < 1.5 and x.std() > 0.5 else out",
    )  # fmt: skip
    verdict, _ = checker.numpy(learnt, fixed, ORIGINAL, CaseOptions(reading=False))
    assert "wrong-result" in codes(verdict)


@pytest.mark.slow
def test_a_problem_that_tells_nothing_apart_is_reported(checker: Checker) -> None:
    loose = PROBLEM + "\ntolerance = {'relative': 2.0}\n"
    verdict, _ = checker.numpy(ORIGINAL, loose, ORIGINAL)
    assert verdict.accepted
    assert "loose-problem" in codes(verdict)


def test_a_distribution_on_which_the_reference_overflows_decides_nothing(checker: Checker) -> None:
    problem = """
import numpy as np
def get_inputs():
    return [(200 + np.random.normal(size=(16, 32))).astype(np.float32)]
def reference(x):
    return np.exp(x - np.float32(150))
"""
    kernel = "import numpy as np\ndef kernel(x):\n    return np.exp(x - np.float32(150))\n"
    verdict, _ = checker.numpy(kernel, problem, kernel)
    skipped = {
        check["distribution"]: check["why"] for check in verdict.checks if check["outcome"] == "skipped"
    }
    assert verdict.accepted, verdict.reasons
    assert skipped["large"].startswith("the reference itself is not finite")


@pytest.mark.slow
def test_infinities_and_nan_must_be_where_the_reference_has_them(checker: Checker) -> None:
    problem = """
import numpy as np
def get_inputs():
    return [np.random.normal(size=(16, 32)).astype(np.float32)]
def reference(x):
    with np.errstate(all="ignore"):
        return np.log(x)
"""
    kernel = (
        "import numpy as np\ndef kernel(x):\n    with np.errstate(all='ignore'):\n        return np.log(x)\n"
    )
    assert checker.numpy(kernel, problem, kernel)[0].accepted
    verdict, _ = checker.numpy(kernel.replace("np.log(x)", "np.nan_to_num(np.log(x))"), problem, kernel)
    assert codes(verdict)[0] == "missed-not-finite"


@pytest.mark.parametrize(
    "options",
    [CaseOptions(budget=GateBudget(input_bytes=20_000)), CaseOptions(budget=GateBudget(result_bytes=20_000))],
)
def test_large_inputs_and_results_leave_cases_out_and_say_so(checker: Checker, options: CaseOptions) -> None:
    verdict, _ = checker.numpy(ORIGINAL, PROBLEM, ORIGINAL, options)
    assert verdict.accepted
    assert set(codes(verdict)) == {"case-left-out"}
    assert verdict.checks[0]["outcome"] == "passed"
