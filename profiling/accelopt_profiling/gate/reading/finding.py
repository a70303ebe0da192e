"""A finding in a candidate's text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StaticFinding:
    """A finding at a 1-based ``line``. One that is ``certain`` has no honest use in a kernel file and refuses the
    candidate; the others are worth knowing. ``code`` is stable (see docs/explanation/gate.md).
    """

    code: str
    line: int
    message: str
    certain: bool = False
