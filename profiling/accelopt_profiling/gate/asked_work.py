"""What a problem's reference computes, by kinds of work."""

from __future__ import annotations

from typing import Any

from accelopt_profiling.comparison.inplace_outputs import changed_arguments, passed_through
from accelopt_profiling.gate.hostwork import HostWork
from accelopt_profiling.problems.loading.call import copied
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


def written_by_reference(
    problem: Problem, inputs: list[Any], arguments: list[Any], work: HostWork
) -> list[int]:
    """Positions of the arguments that the reference changes, counted from the end. It is run on a copy, and what it
    computes is added to ``work``.
    """
    if not passed_through(inputs, arguments):
        return []
    copies = [copied(v) for v in inputs]
    count_work(problem, copies, work)
    return changed_arguments(copies, inputs, arguments)
