"""What a question to a role says besides the version itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Briefing:
    """``problem`` describes the problem (``problem_text.py``), ``experience`` what the memory knows of like kernels,
    ``attack`` the line of attack of this question; all in Markdown. ``wishes`` is the person's instruction,
    ``unusable`` what became of earlier plans and answers that could not be used, one line each."""

    problem: str = ""
    experience: str = ""
    attack: str = ""
    wishes: str = ""
    unusable: tuple[str, ...] = ()
