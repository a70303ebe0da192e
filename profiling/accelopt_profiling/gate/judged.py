"""What is asked of the judge, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from accelopt_profiling.comparison.elements import Comparison
from accelopt_profiling.gate.emulation import GateDialect
from accelopt_profiling.gate.verdict import Reason


@dataclass(frozen=True)
class JudgeParams:
    """``distributions`` has one entry per planned case; ``dialect`` decides how strict types are."""

    dialect: GateDialect
    distributions: list[str]


@dataclass(frozen=True)
class JudgedOutput:
    """``own_ratio`` is the worst error over what the gate's own rule allows, whatever the problem says."""

    where: str
    dtype: str
    shape: list[int]
    relative: float
    absolute: float
    comparison: Comparison
    own_ratio: float = 0.0


@dataclass(frozen=True)
class JudgedCase:
    """``reasons`` are why the case fails; ``notes`` do not. ``skipped`` says why it decides nothing. ``digests`` are of
    the candidate's outputs by folder, as they were found here. ``idle`` is the share of the elements that matter which
    were right without any kernel; None where that was not tried. ``original_right`` tells whether the original kernel
    is right at a shape that the gate chose; None where there is no other original. ``given`` tells that all expected
    values occur among the inputs, so that moving data about is enough; None where nobody looked.
    """

    index: int
    reasons: list[Reason] = field(default_factory=list)
    notes: list[Reason] = field(default_factory=list)
    outputs: list[JudgedOutput] = field(default_factory=list)
    skipped: str = ""
    bitwise_repeatable: bool | None = None
    checked: float = 1.0
    digests: dict[str, str] = field(default_factory=dict)
    idle: float | None = None
    original_right: bool | None = None
    given: bool | None = None
