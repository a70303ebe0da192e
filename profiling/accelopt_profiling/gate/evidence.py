"""The evidence of a check, collected from the text and from each step."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.gate.reading.facts import StaticFinding
from accelopt_profiling.gate.step_schemas import (
    CaseVerdict,
    DeviceRunResult,
    DrawnCase,
    LaunchResult,
    OriginalResult,
    PlanResult,
    ReferenceResult,
    RunResult,
)
from accelopt_profiling.gate.verdict import Refusal


@dataclass
class Evidence:
    """The findings in the candidate's text, the numbers that it compares sizes with (``limits``), and the results of
    the steps. ``running`` is the case that the candidate's process was last in, ``output_digests`` are those of its
    outputs by case and folder, sent when they were written. ``complete`` tells that the judge has answered, ``far``
    what goes wrong at sizes at which offsets pass 32 bits, ``invalid_problem`` that the problem itself failed,
    ``unsettled`` why a case near the limit was not drawn again.
    """

    reasons: list[Refusal] = field(default_factory=list)
    findings: list[StaticFinding] = field(default_factory=list)
    limits: list[int] = field(default_factory=list)
    drawn: list[DrawnCase] = field(default_factory=list)
    run: RunResult | None = None
    device: DeviceRunResult | None = None
    plan: PlanResult | None = None
    original: OriginalResult | None = None
    reference: ReferenceResult | None = None
    verdicts: list[CaseVerdict] = field(default_factory=list)
    launch: LaunchResult | None = None
    far: dict[str, str] = field(default_factory=dict)
    running: Any = None
    output_digests: dict[tuple[int, str], str] = field(default_factory=dict)
    complete: bool = False
    invalid_problem: bool = False
    unsettled: str = ""
    steps: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CandidateKernels:
    """``kernels`` are the candidate's kernels that host code launches.

    ``kernel`` the one that was rewritten, "" where any will do. ``rewritten`` tells that there is another original to
    compare with, ``runs_itself`` that the original is the reference.
    """

    kernels: Collection[str]
    kernel: str = ""
    rewritten: bool = False
    runs_itself: bool = False
