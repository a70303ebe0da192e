"""The gate's answer about a candidate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.measurement import Launchability


@dataclass(frozen=True)
class Reason:
    """A reason for a refusal, or a note about a candidate that was accepted. ``code`` is stable. ``line`` (1-based) and
    ``kernel`` are those that the message of a note ends with or is about."""

    code: str
    message: str
    line: int | None = field(default=None, kw_only=True, compare=False)
    kernel: str = field(default="", kw_only=True, compare=False)


@dataclass(frozen=True)
class Refusal(Reason):
    """A reason for a refusal with the name of the probe that found it."""

    probe: str = ""


@dataclass(frozen=True)
class Verdict:
    """The gate's decision.

    ``checks`` lists each check with its outcome and worst error; ``receipt`` is its evidence. ``launchable`` says
    whether the target can launch what it launches for the problem's own inputs.

    ``invalid_problem`` tells that the problem failed, not the candidate: drawing its inputs, its reference, or the
    original. Nothing is known about the candidate then, and ``reasons`` say what is wrong with the problem.
    """

    accepted: bool
    reasons: list[Reason] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    receipt: str | None = None
    invalid_problem: bool = False
    launchable: Launchability = field(default_factory=Launchability)

    @property
    def is_outdated(self) -> bool:
        """True of one by an older gate: it does not say whether the target can launch the candidate, nor why that is
        not known."""
        return self.accepted and self.launchable == Launchability()
