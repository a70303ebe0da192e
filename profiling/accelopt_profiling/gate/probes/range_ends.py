"""Inputs that nobody promised: means far from zero, and elements at the ends of what their types hold or functions
bear, where exponentials and narrow sums overflow. A candidate has to get right there what the original does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from accelopt_profiling.comparison.elements import OutputComparison
from accelopt_profiling.comparison.leaves import Leaf
from accelopt_profiling.comparison.outputs import difference
from accelopt_profiling.gate.probes.probe import Array, Change, Drawing, ValueProbe, mixed
from accelopt_profiling.gate.probes.rewriting import (
    Rewriting,
    WholeNumbers,
    both_signs,
    dtype_of,
    float_arrays,
    largest_positive,
    largest_shape,
)
from accelopt_profiling.gate.request import Case
from accelopt_profiling.gate.verdict import Reason

if TYPE_CHECKING:
    from accelopt_profiling.gate.judge.judged_case import JudgedCase

#: Where digits cancel, an error of so many times what is allowed tells one algorithm from another.
_CANCELLED = 4.0
#: The mean of the case "offset", in root mean squares of what was drawn.
_MEAN = 1000.0
#: Work of a reference that takes a mean off before it squares, and of one that squares the differences of arrays.
_CENTRING = ({"norm"}, {"variance"}, {"sum", "power", "sqrt"})
_DISTANCES = ({"norm", "add"}, {"sum", "power", "add"}, {"loss"}, {"distance"})
#: Kinds of the reference's work (``observe.hostwork``) that exponentials are in.
_EXPONENTIALS = frozenset(["exp", "activation", "sigmoid", "tanh", "softmax", "loss", "log"])
#: Kinds that masks of minus infinity are for, and one that makes NaN of them.
_LARGEST = frozenset(["softmax", "loss", "extreme", "index of extreme", "order"])
_PRODUCTS = frozenset(["matmul", "attention", "convolution"])
#: Kernels write -10000 for minus infinity; float16 and bfloat16 hold this exactly.
_BELOW = -(2.0**15)
#: float32's exponential overflows at 88.7, its square at 44.4; smaller ones where the reference itself is infinite.
_FAR = (100.0, 60.0, 30.0)
#: Bits of the integer types whose whole range is a number's; wider ones are places or counts as a rule.
_NARROW = {"int8": (-127, 127), "uint8": (0, 255), "int16": (-32767, 32767)}
#: Integers that were drawn at random are at least so many, of so many kinds.
_MANY, _KINDS = 16, 4
#: The share of integers that are at one end of their range.
_AT_END = 0.875


class Unpromised(ValueProbe):
    """Inputs on which a candidate is excused where the original is wrong too."""

    fits_some = True
    held_by_original = True
    #: Where digits cancel, in words; "" where they do not.
    cancelling: ClassVar[str] = ""

    def excuse(self, case: JudgedCase, mine: Leaf, comparison: OutputComparison) -> Reason | None:
        """Excuse an error that an honest order of sums can make where digits cancel, and what is wrong in the original
        too; not where there is none, and the candidate replaces the reference itself, or stands for itself. What is
        drawn beside an original only is held by that original.
        """
        if self.cancelling and comparison.worst <= _CANCELLED:
            return Reason("cancellation", self.cancelled(mine, comparison))
        replaces = case.replaces and not self.beside_original
        if replaces or self.answers_for_itself(case) or case.original_right():
            return None
        return self.excuse_of_the_original(mine, comparison)

    def answers_for_itself(self, case: JudgedCase) -> bool:
        return case.alone

    def excuse_of_the_original(self, mine: Leaf, comparison: OutputComparison) -> Reason:
        message = f"On {self.name} the original is wrong too; {difference(mine, comparison)}"
        return Reason("range-ends", message)

    def cancelled(self, mine: Leaf, comparison: OutputComparison) -> str:
        return f"{mine.where}: digits cancel where {self.cancelling}: {comparison.detail}."


class Offset(Unpromised):
    """The largest float array, of both signs, with a mean a thousand times its root mean square, where all floats are
    float32 and the reference may take a mean off: the mean of squares less the square of the mean says nothing there.
    Where it may square differences of arrays, all matrices with rows as long as the largest's are moved alike: squares
    less twice a product say nothing of near points far away. A candidate that stands for itself is excused.
    """

    name = "offset"
    catches = (
        "A variance as the mean of squares less the square of the mean, a distance as squares less a product."
    )
    cancelling = "the mean is far larger than the spread"

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        floats = float_arrays(inputs)
        if not floats or any(dtype_of(a) != "float32" for a in floats):
            return inputs, False
        largest = largest_shape(floats)
        alike = [a for a in floats if a.ndim > 1 and tuple(a.shape)[-1:] == largest[-1:]]
        apart = len(alike) > 1 and any(kinds <= drawing.kinds for kinds in _DISTANCES)
        if not apart and not any(kinds <= drawing.kinds for kinds in _CENTRING):
            return inputs, False
        return _Offset(largest, apart).of(inputs)

    def answers_for_itself(self, case: JudgedCase) -> bool:
        return False

    def excuse_of_the_original(self, mine: Leaf, comparison: OutputComparison) -> Reason:
        return Reason("cancellation", self.cancelled(mine, comparison))

    def cause(self, mine: Leaf, comparison: OutputComparison) -> Reason | None:
        return Reason("low-precision", self.cancelled(mine, comparison))


class _Offset(Rewriting):
    """Moves the first array of the shape ``largest``, or with ``apart`` all matrices with rows as long by as much."""

    def __init__(self, largest: tuple[int, ...], apart: bool = False) -> None:
        super().__init__()
        self.largest, self.apart, self.by = largest, apart, 0.0

    def rule(self, array: Array) -> Array | None:
        applies = (
            array.ndim > 1 and array.shape[-1:] == self.largest[-1:]
            if self.apart
            else array.shape == self.largest and not self.by
        )  # fmt: skip
        if not applies or not both_signs(array):
            return None
        self.by = self.by or _MEAN * float(np.sqrt(np.mean(np.square(array[np.isfinite(array)]))))
        moved: Array = array + self.by
        return moved


class FarElements(Unpromised):
    """Float arrays of both signs (or the largest one, if there is none) with two elements in each row at a hundred, one
    with each sign, where the reference may take exponentials; nearer where it is not finite itself.
    """

    name = "far elements"
    catches = "Exponentials that overflow where the original's do not."
    cancelling = "some elements are far larger than the others"

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        if not _EXPONENTIALS & drawing.kinds:
            return inputs, False
        for size in _FAR:
            values, changed = _Far(mixed(case.seed), size, largest_positive(inputs)).of(inputs)
            if not changed or drawing.is_finite(values):
                return values, changed
        return inputs, False


class _Far(Rewriting):
    def __init__(self, seed: int, size: float, positive: tuple[int, ...] | None) -> None:
        super().__init__()
        self.seed, self.size, self.positive = seed, size, positive

    def rule(self, array: Array) -> Array | None:
        if array.ndim < 1 or array.shape[-1] < 2 or not (array.shape == self.positive or both_signs(array)):
            return None
        columns = array.shape[-1]
        places = np.random.default_rng((self.seed, columns)).choice(columns, 2, replace=False)
        moved: Array = array.copy()
        moved[..., places[0]] = self.size
        moved[..., places[1]] = -self.size
        return moved


class Masked(Unpromised):
    """Arrays of both signs with their first row at minus infinity, or its first half where the reference gives NaN for
    a whole one: what is masked out. Where that is NaN too, the second row is one number below what marks of floats are.
    For references that look for the largest, or take exponentials of a difference.
    """

    name = "masked elements"
    catches = (
        "Maxima and running sums that are NaN, or a lane of the padding, where a block or row is masked out."
    )
    beside_original = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        if not _LARGEST & drawing.kinds or _PRODUCTS & drawing.kinds:
            return inputs, False
        for masking in (_Masked(1), _Masked(2), _Below()):
            values, changed = masking.of(inputs)
            if changed and drawing.is_finite(values):
                return values, True
        return inputs, False


class _Masked(Rewriting):
    def __init__(self, part: int) -> None:
        super().__init__()
        self.part = part

    def rule(self, array: Array) -> Array | None:
        if array.ndim < 2 or not both_signs(array):
            return None
        masked: Array = array.copy()
        masked.reshape(-1, array.shape[-1])[0, : array.shape[-1] // self.part] = -np.inf
        return masked


class _Below(Rewriting):
    def rule(self, array: Array) -> Array | None:
        if array.ndim < 2 or array.shape[-2] < 2 or not both_signs(array):
            return None
        moved: Array = array.copy()
        moved[..., 1, :] = _BELOW
        return moved


class IntegerEnds(Unpromised):
    """Arrays of int8, uint8 and int16 that were drawn at random, with most of their elements at an end of the type's
    range (one end in one array, the other in the next). Codes of fewer bits, which fill the range of those, stay within
    it.
    """

    name = "integer ends"
    catches = "Sums and products of narrow integers that overflow."

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        return _Ends(mixed(case.seed)).of(inputs)


class _Ends(WholeNumbers):
    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator, self.upper = np.random.default_rng(seed), True

    def rule(self, array: Array) -> Array | None:
        ends = _NARROW.get(str(array.dtype))
        if ends is None or not _drawn(array):
            return None
        low, high = _range(array, *ends)
        end = high if self.upper or low == 0 else low
        self.upper = not self.upper
        return np.where(self.generator.random(array.shape) < _AT_END, end, array)


def _drawn(array: Array) -> bool:
    """Check whether these are many numbers that repeat in no order."""
    flat = array.reshape(-1)
    if flat.size < _MANY or len(np.unique(flat)) < _KINDS:
        return False
    steps = np.diff(flat.astype(np.int64))
    return bool((steps < 0).any() and (steps > 0).any())


def _range(array: Array, low: int, high: int) -> tuple[int, int]:
    """Return the least and the largest number to use: those of the type, or of the fewer bits that were drawn from."""
    least, most = int(array.min()), int(array.max())
    bits = most.bit_length()
    full = most == (1 << bits) - 1 and least in (0, -most, -most - 1)
    return (least, most) if full else (low, high)
