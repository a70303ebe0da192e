"""Single elements that are drawn once in a million times: far above the others, near zero, or of a value that the
candidate's own text names.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from accelopt_profiling.comparison.elements import OutputComparison
from accelopt_profiling.comparison.leaves import Leaf
from accelopt_profiling.comparison.memory import arrays_of, byte_count
from accelopt_profiling.gate.probes.probe import COUNTED_BYTES, Array, Change, Drawing, ValueProbe, mixed
from accelopt_profiling.gate.probes.range_ends import Unpromised
from accelopt_profiling.gate.probes.rewriting import (
    Rewriting,
    both_signs,
    float_arrays,
    largest_positive,
    largest_shape,
    least_size,
    smallest,
)
from accelopt_profiling.gate.request import Case
from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.problems.call import copied

if TYPE_CHECKING:
    from accelopt_profiling.gate.judge.judged_case import JudgedCase

#: Above what bounds a value is cut at; less where the reference itself is not finite there.
_ABOVE = (10_000.0, 1_000.0, 300.0)
_NEAR_ZERO, _QUIET = 1e-5, 1e-4
#: What float32 rounds off in a few operations on values of about one: 2 sigmoid(2x) - 1 is a tanh up to that.
_LOST_OF_ONE = 2.0**-21
#: One element in so many is changed; of the values that a text names, one is put to at most a quarter of an array.
_ONE_IN, _NAMED_ONE_IN = 97, 4
#: One in so many elements is infinite, in the first part of either axis: elsewhere there are rows and columns without.
_INFINITE_ONE_IN, _CORNER = 8, 4


class SingleElements(Unpromised):
    """Float arrays of both signs (or the largest one, if there is none) with one element in a hundred at ten thousand,
    of its own sign, nearer where the reference is not finite, and another at a hundred thousandth. One row in five,
    without such elements, is a ten thousandth of what it was.
    """

    name = "single elements"
    catches = (
        "Values that are cut at a bound above all that is drawn, or taken for zero below one; rows as well."
    )
    cancelling = "some elements are far larger than the others"

    def excuse(self, case: JudgedCase, mine: Leaf, comparison: OutputComparison) -> Reason | None:
        """Excuse as well what float32 loses of a quiet row where intermediate values are about one."""
        if comparison.fault == "wrong-result" and comparison.max_abs <= _LOST_OF_ONE:
            return Reason("cancellation", self.cancelled(mine, comparison))
        return super().excuse(case, mine, comparison)

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        for size in _ABOVE:
            values, changed = _Single(mixed(case.seed), size, largest_positive(inputs)).of(inputs)
            if not changed or drawing.is_finite(values):
                return values, changed
        return inputs, False


class _Single(Rewriting):
    def __init__(self, seed: int, size: float, positive: tuple[int, ...] | None) -> None:
        super().__init__()
        self.generator, self.size, self.positive = np.random.default_rng(seed), size, positive

    def rule(self, array: Array) -> Array | None:
        if not (array.shape == self.positive or both_signs(array)):
            return None
        flat = array.reshape(-1).copy()
        loud = np.arange(flat.size)
        if array.ndim > 1 and smallest(array) < 0:
            quiet = loud // array.shape[-1] % 5 == 3
            flat[quiet] *= _QUIET
            loud = loud[~quiet]
        places = self.generator.permutation(loud)[: 2 * max(1, flat.size // _ONE_IN)]
        signs = np.where(flat[places] < 0, -1.0, 1.0)
        flat[places[::2]] = self.size * signs[::2]
        flat[places[1::2]] = _NEAR_ZERO * signs[1::2]
        changed: Array = flat.reshape(array.shape)
        return changed


class Infinities(Unpromised):
    """The largest float array of both signs with one element in eight infinite, of its own sign, in the first quarter
    of its last two axes; and as many of the others, one each, as make no more of the results infinite. Where the
    reference is not finite nothing is asked; elsewhere nothing may have spread.
    """

    name = "infinities"
    catches = (
        "Products with zeros in the place of moves, masks and choices: zero times infinity is no number."
    )
    beside_original = True
    finite_alone = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        floats = float_arrays(inputs)
        signed = [a for a in floats if bool((a < 0).any()) and bool((a > 0).any())]
        if not signed:
            return inputs, False
        seed, largest = mixed(case.seed), largest_shape(signed)
        values, changed = _Infinite(seed, largest, _INFINITE_ONE_IN).of(inputs)
        if not changed or byte_count(inputs) > COUNTED_BYTES:
            return values, changed
        finite = _finite_results(drawing, values)
        for shape in {tuple(a.shape) for a in floats} - {largest}:
            further, _ = _Infinite(seed, shape).of(values)
            if finite and _finite_results(drawing, further) >= finite:
                values = further
        return values, changed


def _finite_results(drawing: Drawing, inputs: list[Any]) -> int:
    """Count the elements of the reference's results that are finite. 0 where it does not take ``inputs``."""
    try:
        outputs = drawing.problem.reference([copied(v) for v in inputs])
    except Exception:  # the problem's own code, asked for what it never promised
        return 0
    return sum(int((a == a).sum() - (abs(a) == math.inf).sum()) for _, a in arrays_of(outputs or []))


class _Infinite(Rewriting):
    """One element in ``one_in`` of the corner of the first array of a shape and of both signs is infinite; with 0 a
    single one of the first array of any signs.
    """

    def __init__(self, seed: int, shape: tuple[int, ...], one_in: int = 0) -> None:
        super().__init__()
        self.generator, self.shape = np.random.default_rng(seed), shape
        self.one_in = one_in

    def rule(self, array: Array) -> Array | None:
        if self.changed or array.shape != self.shape or (self.one_in and not both_signs(array)):
            return None
        changed: Array = array.copy()
        first: tuple[Any, ...] = (..., *(slice(0, -(-n // _CORNER)) for n in array.shape[-2:]))
        corner = changed[first]
        flat = self.generator.permutation(corner.size)[: -(-corner.size // (self.one_in or corner.size))]
        places = np.unravel_index(flat, corner.shape)
        corner[places] = np.copysign(np.inf, corner[places])
        return changed


class NamedValues(ValueProbe):
    """Float arrays in which single elements have values that the candidate's text compares with (``reading``): within
    what else the array holds, of the signs that it has.
    """

    name = "named values"
    catches = "Another result for one value, or bit pattern, in a million, that the candidate's text names."
    fits_some = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        return _Named(mixed(case.seed), drawing.numbers).of(inputs) if drawing.numbers else (inputs, False)


class _Named(Rewriting):
    def __init__(self, seed: int, numbers: list[float]) -> None:
        super().__init__()
        self.generator, self.numbers = np.random.default_rng(seed), np.asarray(numbers)

    def rule(self, array: Array) -> Array | None:
        values = self.numbers if smallest(array) < 0 else np.abs(self.numbers)
        if smallest(array) >= 0 and np.nanmax(array) <= 1:  # probabilities
            values = values[values <= 1]
        values = values[np.abs(values) >= least_size(array)] if smallest(array) > 0 else values
        places = self.generator.permutation(array.size)[: min(values.size, array.size // _NAMED_ONE_IN)]
        flat = array.reshape(-1).copy()
        flat[places] = values[: places.size]
        changed: Array = flat.reshape(array.shape)
        return changed if places.size else None
