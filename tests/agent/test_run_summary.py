"""A run without a suggestion says why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import pytest

from accelopt_agent.candidate import Candidate
from accelopt_agent.events import BaselineMeasured, CandidateJudged, CandidateOutcome, CandidateTried
from accelopt_agent.optimize import RunSummary
from accelopt_profiling.gate.verdict import Reason, Verdict
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement, Latency

CANDIDATE = Candidate("k", "", "rule:x", "")


def text(imported: str) -> str:
    return f"import {imported} as it\n@it.jit\ndef k(x): return x\n"


def said(imported: str, outcomes: Sequence[CandidateOutcome], model: bool = False, refused: int = 0) -> str:
    kernels = find_kernels(text(imported)).kernels
    summary = RunSummary(kernels, model)
    summary.take(BaselineMeasured("k", KernelMeasurement("k", 1, kernels[0].dialect, "t", "local")))
    for number, outcome in enumerate(outcomes, 1):
        summary.take(CandidateTried(number, CANDIDATE, outcome, Latency()))
    for _ in range(refused):
        summary.take(CandidateJudged(CANDIDATE, Verdict(False, [Reason("wrong-result", "It is wrong.")])))
    return summary.text()


@pytest.mark.parametrize(
    ("imported", "outcomes", "why"),
    [
        ("nki", [], "(no rule applies)"),
        ("neuronxcc.nki", [], "(no rule applies)"),
        ("triton", [], "(no rule applies)"),
        ("triton", ["unclear"], "(it made no difference that is larger than noise)"),
        (
            "triton",
            ["unclear"] * 3,
            "(all 3 made no difference that is larger than noise)",
        ),
        ("triton", ["unclear", "slower"], "(1 of 2 made no difference that is larger than noise"),
        ("triton", ["slower", "failed"], "nothing faster found"),
        ("nki", ["unclear", "faster", "faster"], "(2 of 3 faster by their cost, none of them checked)"),
    ],
)
def test_why_there_is_none(imported: str, outcomes: list[CandidateOutcome], why: str) -> None:
    assert set(outcomes) <= set(get_args(CandidateOutcome))
    assert said(imported, outcomes).startswith("nothing faster found")
    assert why in said(imported, outcomes)


def test_a_model_that_is_asked_is_not_recommended() -> None:
    assert said("nki", [], model=True) == "nothing faster found (no rewrite was proposed)"


def test_what_the_gate_refused_is_said_first() -> None:
    assert said("triton", ["faster", "unclear"], refused=1) == "nothing faster found (1 refused by the gate)"
