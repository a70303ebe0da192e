"""Check that a problem can tell a right kernel from a wrong one: fake results must not pass."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from accelopt_profiling.comparison.elements import Array, compare
from accelopt_profiling.comparison.tolerance import Allowed
from accelopt_profiling.gate.judge.saved_outputs import SavedOutputs, is_finite
from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.problems.problem import Tolerance


def judge_tolerance(answers: SavedOutputs) -> tuple[bool, list[Reason]]:
    """Check whether zeros, a constant or a copy of an input pass under the tolerance that the problem states; with
    notes.

    From then on the gate's own rule holds for this case. Says so too where that rule cannot tell either.
    """
    notes: list[Reason] = []
    fakes = list(_fakes_that_pass(answers))
    stated = answers.stated.relative is not None or answers.stated.absolute is not None
    replaced = bool(fakes) and stated
    if replaced:
        message = f"Under the problem's tolerance {fakes[0]} would pass; the gate's own rule for the dtype was used."
        notes.append(Reason("loose-problem", message))
        answers.stated = Tolerance()
        fakes = list(_fakes_that_pass(answers))
    notes += [
        Reason(
            "loose-problem",
            f"{fake} would pass too: the problem's inputs cannot tell a wrong kernel from a right one.",
        )
        for fake in fakes
    ]
    return replaced, notes


def _fakes_that_pass(answers: SavedOutputs) -> Iterator[str]:
    for number, (theirs, native) in enumerate(zip(answers.expected, answers.native, strict=True)):
        if not theirs.floating or not theirs.values.size or not is_finite(theirs):
            continue
        limit = answers.allowed(native, number)
        mean = theirs.values.mean(dtype=np.float64)
        flat = (("zeros", 0.0), ("its mean", mean))
        fakes: list[tuple[str, Array]] = [(n, np.broadcast_to(np.float64(v), theirs.shape)) for n, v in flat]
        fakes += [
            (f"a copy of {leaf.where.replace('output', 'input')}", leaf.values)
            for leaf in answers.inputs
            if leaf.floating and leaf.shape == theirs.shape
        ]
        for name, values in fakes:
            if _passes(values, theirs.values, native.values, limit):
                yield f"{theirs.where} filled with {name}"


def _passes(values: Array, expected: Array, native: Array, limit: Allowed) -> bool:
    """Check whether ``values`` would be accepted. Most fail in their first part already."""
    for part in (
        (slice(0, max(1, len(values) // 64)), slice(None)) if values.ndim and len(values) > 64 else (...,)
    ):
        if compare(values[part], expected[part], native[part], limit).fault:
            return False
    return True
