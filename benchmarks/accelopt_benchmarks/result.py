"""Defines the result type of all measurements of the project: a value, its goal, and whether it is met."""

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
