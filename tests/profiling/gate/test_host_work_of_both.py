"""Host code of a candidate that does what the original's does is not held against it."""

from __future__ import annotations

import pytest

from accelopt_profiling.gate.evidence import CandidateKernels, Evidence
from accelopt_profiling.gate.step_schemas import ReferenceResult, RunResult
from accelopt_profiling.gate.violations import run_violations
from accelopt_profiling.problems.problem import Tolerance


@pytest.mark.parametrize(
    ("mine", "reference", "runs_itself", "refused"),
    [
        ({"sum": 1200}, {"sum": 600}, True, False),
        ({"matmul": 1200}, {"matmul": 600}, True, False),
        ({"sum": 1200}, {"sum": 600}, False, True),
    ],
    ids=["a sum around the kernels", "a product around the kernels", "the reference is not the original"],
)
def test_what_the_original_leaves_to_host_code_may_stay_there(
    mine: dict[str, int], reference: dict[str, int], runs_itself: bool, refused: bool
) -> None:
    evidence = Evidence(run=RunResult(host_work=mine), reference=ReferenceResult(Tolerance(), work=reference))
    reasons, notes = run_violations(evidence, CandidateKernels(["kernel"], runs_itself=runs_itself), {})
    assert ("framework-compute" in {r.code for r in reasons}) is refused
    assert not notes or refused
