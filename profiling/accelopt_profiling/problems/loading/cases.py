"""Choose the case of a problem that its cost is stated for: the commonest, or else the largest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accelopt_profiling.comparison.memory import byte_count
from accelopt_profiling.problems.problem import Problem

#: So many cases of a problem are drawn to find the largest.
MOST_DRAWN = 16
_LAUNCHING = " that launches a kernel"


@dataclass(frozen=True)
class ProblemCase:
    """One case: its keyword arguments for ``inputs`` (None: the main case), and how it was chosen, in words."""

    shape: Mapping[str, Any] | None = None
    chosen: str = ""


def profiled_cases(problem: Problem, seed: int) -> list[ProblemCase]:
    """Return the cases in the order in which one is to be profiled: the one that occurred most often first where the
    problem tells (``counts``), else the one with most bytes. A later one counts where those before launch nothing.

    A problem whose main case was chosen already says so in words (``headline``). ``problem.counts`` has a number per
    case: the main one, then each of ``shapes``. Cases that cannot be drawn are left out. Sizes are found by drawing, so
    this is called where draws cost nothing.
    """
    if problem.headline:
        return [ProblemCase(chosen=problem.headline)]
    cases: list[Mapping[str, Any] | None] = [None, *problem.shapes]
    if len(cases) == 1:
        return [ProblemCase()]
    counts = problem.counts
    if len(counts) == len(cases) and any(counts):
        order = sorted(range(len(cases)), key=lambda n: -counts[n])
        return [
            ProblemCase(
                cases[n],
                f"the commonest of {len(cases)} cases{_LAUNCHING * (n != order[0])} ({counts[n]} calls)",
            )
            for n in order
        ]
    sizes = {n: _bytes(problem, seed, case) for n, case in enumerate(cases[:MOST_DRAWN])}
    order = sorted(sizes, key=lambda n: -sizes[n])
    return [
        ProblemCase(cases[n], f"the largest of {len(sizes)} cases{_LAUNCHING * (n != order[0])}")
        for n in order
    ]


def _bytes(problem: Problem, seed: int, case: Mapping[str, Any] | None) -> int:
    try:
        return byte_count(problem.inputs(seed, case) if case else problem.inputs(seed))
    except Exception:  # the profile of the main case will say what is wrong with it
        return 0 if case is None else -1
