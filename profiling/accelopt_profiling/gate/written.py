"""Arguments that are outputs too: a reference that writes to its inputs declares that a kernel has to."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from accelopt_profiling.gate.memory import copied, fingerprint, overlapping
from accelopt_profiling.problems.problem import Problem, ProblemError


def written_by_reference(problem: Problem, inputs: list[Any]) -> list[int]:
    """Numbers of the inputs that the reference changes; it is run on a copy of them."""
    copies = [copied(v) for v in inputs]
    before = [fingerprint(v) for v in copies]
    with contextlib.suppress(Exception):  # whatever is wrong with it is said where its answers are asked for
        problem.reference(copies)
    return [n for n, v in enumerate(copies) if fingerprint(v) != before[n]]


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
