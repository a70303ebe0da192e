"""Rows of one value, of values about one, and of zeros: what a mean and a variance of each row say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from accelopt_profiling.comparison.leaves import Leaf
from accelopt_profiling.gate.probes.probe import Array, Change, Drawing, ValueProbe, mixed
from accelopt_profiling.gate.probes.rewriting import Rewriting, least_size, smallest
from accelopt_profiling.gate.request import Case
from accelopt_profiling.gate.verdict import Reason

if TYPE_CHECKING:
    from accelopt_profiling.gate.judge.judged_case import JudgedCase

#: The reference's own runs have to agree by this, and what a kernel gives may be off by the other, both relative.
_AGREED, _OFF = 1e-3, 0.5
#: No number below this is asked for: products of it may be flushed to zero.
_LEAST = 1e-30


class Rows(ValueProbe):
    """Each row of the last axis at one constant value, every other row at values about it (off by a quarter at most),
    and one row in seven at zero, the others not near zero (functions that pass through it lose digits there) and all of
    one sign (of mixed signs a sum over rows can cancel by chance, and what is left of it says nothing about how exact a
    kernel is).
    """

    name = "rows"
    catches = "Wrong means and variances, and an epsilon that bounds a scale from below elsewhere than the reference's."

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        return _Rows(mixed(case.seed)).of(inputs)

    def overlooked(self, case: JudgedCase, mine: Leaf, number: int) -> Reason | None:
        answers = case.answers
        expected, native = answers.expected[number], answers.native[number]
        place = lost_of_zero_rows(mine.values, expected.values, native.values, answers.inputs)
        if place is None:
            return None
        value, right = mine.values.reshape(-1)[place], expected.values.reshape(-1)[place]
        message = (
            f"{mine.where}: for row {place}, which holds zeros, it is {value:.4g} instead of {right:.4g}."
        )
        return Reason("wrong-result", message)


class _Rows(Rewriting):
    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = np.random.default_rng(seed)

    def rule(self, array: Array) -> Array | None:
        least, first = least_size(array), array[..., :1]
        sign = -1.0 if first.size and first.reshape(-1)[0] < 0 else 1.0
        value = sign * np.maximum(np.abs(first), least)
        rows: Array = (value * np.ones(array.shape)).reshape(-1, array.shape[-1])
        rows[1::2] *= 1.0 + self.generator.uniform(-0.25, 0.25, size=rows[1::2].shape)
        if smallest(array) <= least:  # no divisors
            rows[3::7] = 0.0
        changed: Array = rows.reshape(array.shape)
        return changed


def lost_of_zero_rows(values: Array, expected: Array, native: Array, inputs: list[Leaf]) -> int | None:
    """Return the place in an output of one value for each row where an input's row is zero and the value is
    of another size than the reference's; None where there is none. An error that bounds a scale from below
    shows only there."""
    if values.dtype.kind != "f" or expected.shape != values.shape or native.shape != values.shape:
        return None
    mine, theirs, own = (a.reshape(-1).astype(np.float64) for a in (values, expected, native))
    for leaf in inputs:
        if not leaf.floating or len(leaf.shape) < 2 or leaf.values[..., 0].size != mine.size:
            continue
        zero = ~leaf.values.reshape(-1, leaf.shape[-1]).any(axis=1)
        size = np.abs(theirs)
        clear = zero & (size > _LEAST) & (np.abs(own - theirs) <= _AGREED * size)
        wrong = clear & ~(np.abs(mine - theirs) <= _OFF * size)
        if wrong.any():
            return int(np.argmax(wrong))
    return None
