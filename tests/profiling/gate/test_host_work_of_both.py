"""Host code of a candidate that does what the original's does is not held against it."""

from __future__ import annotations

import pytest

from accelopt_profiling.gate.evidence import CandidateKernels, Evidence
from accelopt_profiling.gate.probes.conduct import HostComputing
from accelopt_profiling.gate.probes.probe import AnsweredCheck
from accelopt_profiling.gate.step_schemas import OriginalResult, ReferenceResult, RunResult
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
    evidence = Evidence(reference=ReferenceResult(Tolerance(), work=reference))
    subject = CandidateKernels(["kernel"], runs_itself=runs_itself)
    check = AnsweredCheck(evidence, subject, RunResult(host_work=mine), {})
    assert [r.code for r in HostComputing().of_run(check)] == ["framework-compute"] * refused
    assert refused or not list(HostComputing().notes(check))


@pytest.mark.parametrize(("mine", "refused"), [({"sum": 900}, False), ({"sum": 2400}, True)])
def test_a_rewrite_may_finish_on_the_host_what_its_original_finishes_there(
    mine: dict[str, int], refused: bool
) -> None:
    """Sums over programs of gradients, say, which are all that a reference of sums computes."""
    evidence = Evidence(
        reference=ReferenceResult(Tolerance(), work={"sum": 600}), original=OriginalResult({"sum": 1000})
    )
    subject = CandidateKernels(["kernel"], rewritten=True)
    check = AnsweredCheck(evidence, subject, RunResult(host_work=mine), {})
    assert [r.code for r in HostComputing().of_run(check)] == ["framework-compute"] * refused
