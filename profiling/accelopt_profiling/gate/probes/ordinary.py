"""Ordinary values: as the problem draws them, scaled, alike within rows, and whole."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from accelopt_profiling.comparison.leaves import Leaf
from accelopt_profiling.gate.probes.probe import Array, Change, Drawing, ValueProbe, mixed
from accelopt_profiling.gate.probes.rewriting import Rewriting, Shuffled, is_float, least_size, smallest
from accelopt_profiling.gate.request import Case
from accelopt_profiling.gate.verdict import Reason

if TYPE_CHECKING:
    from accelopt_profiling.gate.judge.judged_case import JudgedCase

#: The reference's own runs have to agree by this, and what a kernel gives may be off by the other, both relative.
_AGREED, _OFF = 1e-3, 0.5
#: No number below this is asked for: products of it may be flushed to zero.
_NUMBER = 1e-30
#: Kinds of the reference's work that give the places of elements.
_INDICES = frozenset(["index of extreme", "extreme"])
#: So much of an array stays at either end when the rest is moved about.
_KEPT = 0.25


class Original(ValueProbe):
    name = "original"
    catches = "Errors at the shapes and values that the problem states."

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        return inputs, True


class Large(ValueProbe):
    name = "large"
    catches = "Constants in the place of what depends on the values."
    factor = 3.0

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        return _Scaled(self.factor).of(inputs)


class Small(Large):
    name = "small"
    catches = "Terms that were dropped because they are small beside the drawn values, as an epsilon is."
    factor = 0.01


class _Scaled(Rewriting):
    keeps_symmetry = True

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def rule(self, array: Array) -> Array | None:
        return np.multiply(array, self.factor)


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
        clear = zero & (size > _NUMBER) & (np.abs(own - theirs) <= _AGREED * size)
        wrong = clear & ~(np.abs(mine - theirs) <= _OFF * size)
        if wrong.any():
            return int(np.argmax(wrong))
    return None


class Integers(ValueProbe):
    """Numbers from -2..2. From 0..2 where nothing is negative, from 1 on where nothing is near zero."""

    name = "integers"
    catches = "Any error of a sum or a product, however small, since these are exact."
    exact = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        return _Integers(mixed(case.seed if case.alters is None else case.alters)).of(inputs)

    def compares(self, drawing: Drawing) -> bool:
        """Check whether the reference may return the place of one of equal floats."""
        return self.name == "integers" and bool(_INDICES & drawing.kinds)


class SameSums(Integers):
    """The case of integers, with the elements of all but the first float array moved about (of the only one)."""

    name = "same sums"
    catches = "Results kept by a fingerprint of the inputs, which stays the same though what follows the first changes."
    rearranges = "integers"

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        inputs, changed = super().inputs(drawing, inputs, case)
        floats = [n for n, value in enumerate(inputs) if _is_float_array(value)]
        chosen = self.chosen(floats)
        for n in chosen:
            inputs[n] = Shuffled(case.seed + n, _KEPT).value(inputs[n])
        return inputs, changed and bool(chosen)

    def chosen(self, floats: list[int]) -> list[int]:
        return floats[1:] or floats


class SameRest(SameSums):
    """The case of integers, with the elements of the first float array moved about, where there are others."""

    name = "same rest"
    catches = "Results kept by a fingerprint of the inputs, which stays the same though the first changes."

    def chosen(self, floats: list[int]) -> list[int]:
        return floats[:1] if len(floats) > 1 else []


class _Integers(Rewriting):
    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = np.random.default_rng(seed)

    def rule(self, array: Array) -> Array | None:
        least = smallest(array)
        lowest = 1 if least > least_size(array) else -2 if least < 0 else 0
        return np.asarray(self.generator.integers(lowest, 3, size=array.shape), np.float64)


def _is_float_array(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return is_float(str(value.dtype)) and value.size > 1
    torch = sys.modules.get("torch")
    is_tensor = torch is not None and isinstance(value, torch.Tensor)
    return is_tensor and value.is_floating_point() and value.numel() > 1
