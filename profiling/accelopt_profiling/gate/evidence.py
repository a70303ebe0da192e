"""What a check has found out so far, from the text and from each step."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.gate.reading.finding import StaticFinding
from accelopt_profiling.gate.step_schemas import (
    DrawnCase,
    JudgedCase,
    OriginalResult,
    ReferenceResult,
    RunResult,
)
from accelopt_profiling.gate.verdict import Reason


@dataclass
class Evidence:
    """What was read and what the steps returned. ``running`` is the case the candidate was last seen in, ``saved`` the
    digests of its outputs as they were told when they were written; ``complete`` tells that the judge, the last, has
    answered, ``invalid_problem`` that a step of the problem's own failed.
    """

    reasons: list[Reason] = field(default_factory=list)
    findings: list[StaticFinding] = field(default_factory=list)
    drawn: list[DrawnCase] = field(default_factory=list)
    ran: RunResult | None = None
    original: OriginalResult | None = None
    answered: ReferenceResult | None = None
    judged: list[JudgedCase] = field(default_factory=list)
    running: Any = None
    saved: dict[tuple[int, str], str] = field(default_factory=dict)
    complete: bool = False
    invalid_problem: bool = False
    steps: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CandidateKernels:
    """``kernels`` are the candidate's kernels that host code launches; ``kernel`` the one that was rewritten, "" where
    any will do. ``rewritten`` tells that there is another original to compare with.
    """

    kernels: Collection[str]
    kernel: str = ""
    rewritten: bool = False
