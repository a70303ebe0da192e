"""What always has one sign, or is never zero, where a problem draws it: other signs, and zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.comparison.memory import byte_count
from accelopt_profiling.gate.probes.numbers import SMALL
from accelopt_profiling.gate.probes.probe import COUNTED_BYTES, Array, Change, Drawing, mixed
from accelopt_profiling.gate.probes.range_ends import Unpromised
from accelopt_profiling.gate.probes.rewriting import Rewriting
from accelopt_profiling.gate.request import Case

#: Shares of the elements of arrays that are zero: where they are negated, and else.
_FEW, _HALF = 1 / 16, 0.5
#: Whether there are zeros, and other signs: the first that the reference takes.
_CHANGES = ((True, True), (True, False), (False, True))
#: So many root mean squares further down are arrays that are negated: what they are added to is negative as well.
_DOWN = 8.0


class OtherSigns(Unpromised):
    """Float numbers among the arguments negated, but for what is next to zero, and fractions as large as they were
    small; arrays without negative elements negated and far below. Some elements of these are zero, half of those of
    others, and all of the first slice of each. Where the reference does not take all of it, one argument after another
    changes, as far as it does.
    """

    name = "other signs"
    catches = (
        "Factors, gates and weights taken to be positive or not zero; tests of the first of a batch alone."
    )
    beside_original = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        if byte_count(inputs) > COUNTED_BYTES:
            return inputs, False
        values, changed = _Signs(mixed(case.seed), zeros=True, negates=True).of(inputs)
        if not changed or drawing.is_finite(values):
            return values, changed
        values, changed = inputs, False
        for number in range(len(inputs)):
            for zeros, negates in _CHANGES:
                signs = _Signs(mixed(case.seed), zeros, negates)
                [value], differs = signs.of([values[number]])
                changes = [*values[:number], value, *values[number + 1 :]]
                if differs and drawing.is_finite(changes):
                    values, changed = changes, True
                    break
        return values, changed


class _Signs(Rewriting):
    def __init__(self, seed: int, zeros: bool, negates: bool) -> None:
        super().__init__()
        self.generator, self.zeros, self.negates = np.random.default_rng(seed), zeros, negates

    def value(self, value: Any) -> Any:
        if type(value) is not float or not self.negates or abs(value) < SMALL:
            return super().value(value)
        self.changed = True
        return -value if abs(value) >= 1 else -1 / value

    def rule(self, array: Array) -> Array | None:
        negated = self.negates and not (array < 0).any()
        if not negated and not self.zeros:
            return None
        scale = float(np.sqrt(np.mean(np.square(array[np.isfinite(array)])))) if negated else 0.0
        changed: Array = -array - _DOWN * scale if negated else array.copy()
        if self.zeros:
            count = round((_FEW if negated else _HALF) * array.size)
            changed.flat[self.generator.permutation(array.size)[:count]] = 0.0
            if array.ndim > 1 and array.shape[0] > 1:
                changed[0] = 0.0
        return changed
