"""Arguments that are outputs too: a reference that writes to its inputs declares that a kernel has to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accelopt_profiling.gate.asked_work import count_work
from accelopt_profiling.gate.hostwork import HostWork
from accelopt_profiling.gate.memory import overlapping, same_bits
from accelopt_profiling.problems.loading.call import copied
from accelopt_profiling.problems.problem import Problem, ProblemError


def written_by_reference(
    problem: Problem, inputs: list[Any], arguments: list[Any], work: HostWork
) -> list[int]:
    """Which arguments the reference changes, counted from the end (-1 is the last): a problem may put something before
    its arguments to make inputs of them. It is run on a copy, and what it computes added to ``work``. None where
    arguments are made anew from inputs.
    """
    if not arguments or any(a is not b for a, b in zip(reversed(arguments), reversed(inputs), strict=False)):
        return []
    copies = [copied(v) for v in inputs]
    count_work(problem, copies, work)
    return [n for n in range(-len(arguments), 0) if not same_bits(copies[n], inputs[n])]


def with_written(call: Callable[[], list[Any] | None], arguments: list[Any], written: list[int]) -> list[Any]:
    """What ``call`` returns, followed by what it left in the arguments ``written``. Such a call may return nothing, or
    one of these arguments: the result then holds a copy, since the next call is given the same memory.

    Raises:
        ProblemError: as ``call`` does.
    """
    try:
        outputs = call() or []
    except ProblemError as error:
        if error.code != "problem-empty" or not written:
            raise
        outputs = []
    if not written:
        return outputs
    changed = [arguments[n] for n in written]
    return [copied(v) if overlapping(changed, [v]) else v for v in outputs] + [copied(v) for v in changed]
