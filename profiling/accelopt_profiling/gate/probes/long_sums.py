"""Inputs on which a sum that is kept in too few bits stands still.

One array holds a one at the start of each row (or column) and then many terms so small that a sum of the array's own
dtype rounds them away one by one, though together they are a fifth of the result. A sum in float32 keeps them all, and
is exact. Random data does not show the difference: there the roundings cancel.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from accelopt_profiling.comparison.elements import OutputComparison
from accelopt_profiling.comparison.leaves import Leaf
from accelopt_profiling.comparison.memory import arrays_of
from accelopt_profiling.comparison.tolerance import coarsest
from accelopt_profiling.gate.probes.probe import Array, Change, Drawing, ValueProbe
from accelopt_profiling.gate.probes.range_ends import Unpromised
from accelopt_profiling.gate.probes.rewriting import Rewriting, dtype_of, float_arrays, largest_shape
from accelopt_profiling.gate.request import Case
from accelopt_profiling.gate.verdict import Reason

if TYPE_CHECKING:
    from accelopt_profiling.gate.judge.judged_case import JudgedCase

#: Significant bits of the float dtypes below float32 (IEEE 754; bfloat16; OCP 8-bit floating point 1.0).
_BITS = {
    "float16": 11, "bfloat16": 8, "float8_e4m3fn": 4, "float8_e4m3fnuz": 4, "float8_e5m2": 3, "float8_e5m2fnuz": 3,
}  # fmt: skip
#: One large term for so many: the small ones are then a fifth of the sum.
_TERMS = 64
#: Rows shorter than this add up too little to show anything.
_SHORTEST = 16
#: Sums by blocks of unknown width add many terms at once: the small terms of a row are halved from row to row, over
#: so many rows, so that some row's blocks are just small enough to be lost.
_RUNGS = 4
#: What rounding to bfloat16 leaves an original off by, relative; what a sum in it is off by.
_ROUNDED, _LOST = 2.0**-8, 2.0**-7
#: Half of a row adds up to this, four times what float16 holds, and float32 holds its sums exactly beside a one.
_HALF_SUM = 2.0**18
#: The largest and the smallest power of two that such rows are made of: all their squares pass float16's range.
_LARGEST, _SMALLEST = 2.0**15, 2.0**6
#: A sum of such terms has fewer significant bits than this; what was divided or taken to a power has 24.
_SPARE = 20


class LongRows(ValueProbe):
    """The largest float array as above, and all other float arrays one.

    Not where all floats have the bits of float32, which the tolerance holds to that.

    The small terms are 3 * 2**-(b + 2), for a dtype of b bits: exact in it, and less than half of what its sums
    resolve next to one.
    """

    name = "long rows"
    catches = "Sums along rows in too few bits, where inputs are narrower than float32."
    fits_some = True
    exact = True
    axis = -1

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        floats = float_arrays(inputs)
        bits = _BITS.get(_coarsest(inputs))
        if bits is None:
            return inputs, False
        largest = largest_shape(floats)
        if len(largest) < -self.axis or largest[self.axis] < _SHORTEST:
            return inputs, False
        return _LongSums(largest, self.axis, 3.0 * 2.0 ** -(bits + 2)).of(inputs)

    def is_exact(self, expected: Array, native: Array) -> bool:
        """Check whether a result is a sum that float32 holds with bits to spare, as the reference found too: then an
        honest kernel finds the same.
        """
        if expected.shape != native.shape or not np.array_equal(expected, native):
            return False
        fraction, _ = np.frexp(expected.astype(np.float64))
        return bool((np.ldexp(fraction, _SPARE) % 1 == 0).all())

    def cause(self, mine: Leaf, comparison: OutputComparison) -> Reason | None:
        if comparison.fault != "wrong-result":
            return None
        message = f"{mine.where}: small terms are lost in long sums: {comparison.detail}."
        return Reason("low-precision", message)


class LongColumns(LongRows):
    name = "long columns"
    catches = "Sums along columns in too few bits, where inputs are narrower than float32."
    axis = -2


class NarrowTypes(LongRows, Unpromised):
    """Tensors of float32 in bfloat16, if there are no others: the largest with ones in its first row and column and
    small terms elsewhere, as above, all others one.
    """

    name = "narrow types"
    catches = "Sums and states in the type of the inputs, where the problem draws float32 and the original keeps that."
    beside_original = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        torch, floats = sys.modules.get("torch"), float_arrays(inputs)
        if torch is None or any(getattr(a, "dtype", None) != torch.float32 for a in floats):
            return inputs, False
        largest = largest_shape(floats) if floats else ()
        if len(largest) < 2 or max(largest[-2:]) < _SHORTEST:
            return inputs, False
        small = 3.0 * 2.0 ** -(_BITS["bfloat16"] + 2)
        values, _ = _LongSums(largest, -1, small, crossed=True).of(inputs)
        values = [_narrow(value, torch) for value in values]
        return (values, True) if drawing.is_finite(values) else (inputs, False)

    def overlooked(self, case: JudgedCase, mine: Leaf, number: int) -> Reason | None:
        """Return what is far off where the original is not: the reference's own sums may be narrow as well."""
        leaves = case.answers.read("original") if case.answers.has("original") else ""
        if isinstance(leaves, str) or len(leaves) <= number or not mine.floating:
            return None
        expected = case.answers.expected[number].values.astype(np.float64)
        values, theirs = (leaf.values.astype(np.float64) for leaf in (mine, leaves[number]))
        if not values.size or values.shape != expected.shape or theirs.shape != expected.shape:
            return None
        size = np.maximum(np.abs(expected), np.sqrt(np.mean(np.square(expected))))
        off, original = (float(np.max(np.abs(v - expected) / size)) for v in (values, theirs))
        if off <= _LOST or original > _ROUNDED:
            return None
        beside = f"it is off by {off:.2g}, the original by {original:.2g}"
        message = f"{mine.where}: small terms are lost in long sums: {beside}."
        return Reason("low-precision", message)


def _narrow(value: Any, torch: Any) -> Any:
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return value.detach().to(torch.bfloat16).requires_grad_(value.requires_grad)


class HalfRange(ValueProbe):
    """The first half of each row and column of the largest array in float16 at a power of two, and the second half at
    its negative, all other floats one: sums and products with ones pass 65504 on the way and end near zero. The power
    is the largest at which the reference's results are finite.
    """

    name = "half range"
    catches = "Squares and partial sums in float16 that pass what it holds, though the results do not."
    fits_some = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        if _coarsest(inputs) != "float16":
            return inputs, False
        largest = largest_shape(float_arrays(inputs))
        if not largest or largest[-1] < _SHORTEST:
            return inputs, False
        terms = min((n for n in largest[-2:] if n >= _SHORTEST), default=_SHORTEST)
        size = min(_LARGEST, 2.0 ** np.ceil(np.log2(_HALF_SUM / (terms // 2))))
        while size >= _SMALLEST:
            values, changed = _HalfRange(largest, size).of(inputs)
            if drawing.is_finite(values):
                return values, changed
            size /= 4.0
        return inputs, False


def _coarsest(inputs: list[Any]) -> str:
    return coarsest([dtype_of(a) for _, a in arrays_of(inputs)]) or ""


class _HalfRange(Rewriting):
    def __init__(self, largest: tuple[int, ...], size: float) -> None:
        super().__init__()
        self.largest, self.size = largest, size
        self.placed = False

    def rule(self, array: Array) -> Array | None:
        if self.placed or array.shape != self.largest:
            return np.ones(array.shape)
        self.placed = True
        values = self.size * np.ones(array.shape)
        for axis in range(max(array.ndim - 2, 0), array.ndim):
            signs = np.where(np.arange(array.shape[axis]) < array.shape[axis] // 2, 1.0, -1.0)
            if array.shape[axis] % 2:
                signs[-1] = 0.0
            if array.shape[axis] >= _SHORTEST:
                values = values * signs.reshape([-1 if n == axis else 1 for n in range(array.ndim)])
        return values


class _LongSums(Rewriting):
    def __init__(self, largest: tuple[int, ...], axis: int, small: float, crossed: bool = False) -> None:
        super().__init__()
        self.largest, self.axis, self.small, self.crossed = largest, axis, small, crossed
        self.placed = False

    def rule(self, array: Array) -> Array | None:
        ones = np.ones(array.shape)
        if self.placed or array.shape != self.largest:
            return ones
        self.placed = True
        rows = np.moveaxis(ones, self.axis, -1)  # a view: writing to it fills ``ones``
        rungs = 2.0 ** -(np.arange(rows.size // rows.shape[-1]) % _RUNGS)
        rows[..., max(1, rows.shape[-1] // _TERMS) :] = self.small * rungs.reshape(*rows.shape[:-1], 1)
        if self.crossed:
            ones[..., 0, :] = 1.0
        return ones
