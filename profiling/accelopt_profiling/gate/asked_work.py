"""What a problem's reference computes, by kinds of work."""

from __future__ import annotations

from typing import Any

from accelopt_profiling.gate.hostwork import HostWork
from accelopt_profiling.problems.problem import Problem


def count_work(problem: Problem, inputs: list[Any], work: HostWork) -> None:
    """Run the reference on ``inputs``, which it may change, and add what it computes to ``work``. It need not run on
    arrays that count, or not at all; then less is known.
    """
    for marked in (work.marked(inputs), inputs):
        try:
            with work.counting():
                problem.reference(marked)
            return
        except Exception:  # whatever is wrong with it is said where its answers are asked for
            continue
