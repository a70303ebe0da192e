"""Whole numbers that say how many of something there are, where it begins, or how long it is."""

from __future__ import annotations

import numpy as np

from accelopt_profiling.comparison.memory import arrays_of
from accelopt_profiling.gate.probes.probe import Array, Change, Drawing
from accelopt_profiling.gate.probes.range_ends import Unpromised
from accelopt_profiling.gate.probes.rewriting import WholeNumbers
from accelopt_profiling.gate.request import Case

#: Of so many counts one becomes zero, the first of all among them; the last one takes what they lose.
_EMPTY = 3


class OtherCounts(Unpromised):
    """Counts that add up to the size of an axis, and offsets up to it, with every third count zero and the last one
    large; of other vectors of whole numbers from 1 up to the size of an axis, as lengths are, one is zero.
    """

    name = "other counts"
    catches = (
        "Groups without elements, sequences of length zero, and segments longer than any that was drawn."
    )
    beside_original = True

    def inputs(self, drawing: Drawing, inputs: list[object], case: Case) -> Change:
        values, changed = _Counts({n for _, a in arrays_of(inputs) for n in a.shape}).of(inputs)
        return (values, True) if changed and drawing.is_finite(values) else (inputs, False)


class _Counts(WholeNumbers):
    def __init__(self, extents: set[int]) -> None:
        super().__init__()
        self.extents = extents

    def rule(self, array: Array) -> Array | None:
        if array.ndim != 1 or array.size < 2 or array.min() < 0:
            return None
        steps = np.diff(array)
        if array[0] == 0 and int(array[-1]) in self.extents and (steps >= 0).all():
            offsets: Array = np.append(0, np.cumsum(_lopsided(steps)))
            return None if (steps == 1).all() else offsets
        if int(array.sum()) in self.extents and (array != 1).any():
            return _lopsided(array)
        if array.min() < 1 or array.max() > max(self.extents):
            return None
        changed: Array = array.copy()
        changed[-1] = 0
        return changed


def _lopsided(counts: Array) -> Array:
    changed: Array = counts.copy()
    changed[:-1:_EMPTY] = 0
    changed[-1] += counts.sum() - changed.sum()
    return changed
