"""One line of the table of the project's own measurements."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GoalResult:
    """``what`` was measured, in words the goal it has, the result, and whether it meets the goal.

    ``value`` is in ``unit``; it and ``met`` are None where nothing was measured. ``detail`` says how it was measured,
    why it falls short, or what is needed to measure it.
    """

    what: str
    goal: str
    value: float | None
    unit: str
    met: bool | None
    detail: str = ""


def not_measured(what: str, goal: str, why: str) -> GoalResult:
    return GoalResult(what, goal, None, "", None, why)
