"""Choose the case of a problem that its cost is stated for: the commonest, or else the largest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accelopt_profiling.comparison.memory import byte_count
from accelopt_profiling.problems.problem import Problem

#: So many cases of a problem are drawn to find the largest.
MOST_DRAWN = 16


@dataclass(frozen=True)
class ProblemCase:
    """One case: its keyword arguments for ``inputs`` (None: the main case), and how it was chosen, in words."""

    shape: Mapping[str, Any] | None = None
    chosen: str = ""


def profiled_case(problem: Problem, seed: int) -> ProblemCase:
    """Return the case that occurred most often where the problem tells (``counts``), else the one with most bytes.

    A problem whose main case was chosen already says so in words (``headline``). ``problem.counts`` has a number per
    case: the main one, then each of ``shapes``. Cases that cannot be drawn are left out. Sizes are found by drawing, so
    this is called where draws cost nothing.
    """
    headline = str(getattr(problem, "headline", ""))
    if headline:
        return ProblemCase(chosen=headline)
    cases: list[Mapping[str, Any] | None] = [None, *problem.shapes]
    if len(cases) == 1:
        return ProblemCase()
    counts = list(getattr(problem, "counts", []))
    if len(counts) == len(cases) and any(counts):
        number = max(range(len(cases)), key=lambda n: counts[n])
        return ProblemCase(cases[number], f"the commonest of {len(cases)} cases ({counts[number]} calls)")
    sizes = {n: _bytes(problem, seed, case) for n, case in enumerate(cases[:MOST_DRAWN])}
    number = max(sizes, key=lambda n: sizes[n])
    return ProblemCase(cases[number], f"the largest of {len(sizes)} cases")


def _bytes(problem: Problem, seed: int, case: Mapping[str, Any] | None) -> int:
    try:
        return byte_count(problem.inputs(seed, case) if case else problem.inputs(seed))
    except Exception:  # the profile of the main case will say what is wrong with it
        return 0 if case is None else -1
