"""One line of the table of the project's own measurements."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """``what`` was measured, in words the goal it has, the result, and whether it meets the goal.

    ``value`` is in ``unit``; ``detail`` says how it was measured or why it falls short.
    """

    what: str
    goal: str
    value: float
    unit: str
    met: bool
    detail: str = ""
