"""Other values of the numbers among the arguments: a factor, a slope, what is added under a root."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accelopt_profiling.comparison.memory import arrays_of, byte_count
from accelopt_profiling.gate.probes.probe import COUNTED_BYTES, Array, Change, Drawing
from accelopt_profiling.gate.probes.range_ends import Unpromised
from accelopt_profiling.gate.probes.rewriting import WholeNumbers
from accelopt_profiling.gate.request import Case
from accelopt_profiling.problems.call import copied
from accelopt_profiling.problems.problem import Problem

#: What is between 0 and 1 stays so.
_FACTOR = 0.75
#: A number below this is there to keep a root or a quotient from zero; so large it shows.
SMALL, _SHOWS = 0.01, 0.05


def fraction(value: Any) -> Any:
    """Return three quarters of a fraction. Whole numbers stay (an exponent of 2.0 says what to compute)."""
    return value * _FACTOR if type(value) is float and not value.is_integer() else value


def other(value: Any) -> Any:
    """Return another value of a number, whole or not, and one that shows of what is next to nothing."""
    if type(value) is not float:
        return value
    return _SHOWS if abs(value) < SMALL else value * _FACTOR


def turned(value: Any) -> Any:
    """Return the other choice of a flag, and another value of a number."""
    return not value if type(value) is bool else other(value)


def unnamed(value: Any) -> Any:
    """Return nothing in the place of a choice by its name. Else the other choice of a flag or number."""
    return None if type(value) is str else turned(value)


class OtherNumbers(Unpromised):
    """Flags among the arguments turned, choices by name left open (None), and float numbers at three quarters, whole
    ones too; what is below a hundredth at 0.05. Where the reference gives no numbers then, or does not look at them,
    there is no such case.
    """

    name = "other numbers"
    catches = "Flags, choices, factors that the problem gives as one, what is added under a root, written in or kept."

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        if not drawing.own_reference or byte_count(inputs) > COUNTED_BYTES:
            return inputs, False
        for change in (unnamed, turned, other):
            values = replaced(drawing.problem, inputs, change)
            if values is not inputs and drawing.is_finite(values):
                return values, True
        return inputs, False


class OtherIntegers(Unpromised):
    """Whole numbers among the arguments, each one more, where the reference takes them and looks at them. Larger ones
    would make loops of programs that a check cannot interpret; see ``UnevenSizes`` for those that size nothing. Where
    it does not, those that arrays of whole numbers hold as well, as marks, are another number there, in both.
    """

    name = "other integers"
    catches = "Seeds, places and counts among the arguments that are written into a kernel."
    beside_original = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        if byte_count(inputs) > COUNTED_BYTES:
            return inputs, False
        values = replaced(drawing.problem, inputs, following)
        if values is not inputs and drawing.is_finite(values):
            return values, True
        for mark in [v for v in inputs if type(v) is int]:
            values, changed = _Marked(mark).of(inputs)
            if changed and drawing.is_finite(values):
                return values, True
        return inputs, False


class _Marked(WholeNumbers):
    """Another number that an array holds in the place of ``mark``, in that array and among the arguments."""

    def __init__(self, mark: int) -> None:
        super().__init__()
        self.mark = mark
        self.number: int | None = None

    def of(self, inputs: list[Any]) -> Change:
        values, changed = super().of(inputs)
        return [self.number if type(v) is int and v == self.mark else v for v in values], changed

    def rule(self, array: Array) -> Array | None:
        others = array[array != self.mark]
        if others.size in (0, array.size):
            return None
        self.number = int(others.reshape(-1)[-1]) if self.number is None else self.number
        changed: Array = np.where(array == self.mark, self.number, array)
        return changed


def following(value: Any) -> Any:
    """Return the next whole number."""
    return value + 1 if type(value) is int else value


def replaced(problem: Problem, inputs: list[Any], change: Callable[[Any], Any]) -> list[Any]:
    """Return ``inputs`` with every argument changed.

    They are the same object where nothing changes, or the reference does not look at them: there a kernel may take the
    word of either.
    """
    values = [change(v) for v in inputs]
    if all(a is b or (type(a) is float and a == b) for a, b in zip(values, inputs, strict=True)):
        return inputs
    return inputs if same_results(problem, inputs, values) is not False else values


def same_results(problem: Problem, one: list[Any], other: list[Any]) -> bool | None:
    """Check whether the reference gives the same for both.

    None where it takes one of them not, or gives nothing.
    """
    try:
        before, after = (problem.reference([copied(v) for v in arguments]) for arguments in (one, other))
    except Exception:  # the reference takes no other number
        return None
    return None if before is None or after is None else _alike(before, after)


def _alike(one: list[Any], other: list[Any]) -> bool:
    pairs = zip(arrays_of(one), arrays_of(other), strict=False)
    return all(np.array_equal(_plain(a), _plain(b), equal_nan=True) for (_, a), (_, b) in pairs)


def _plain(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return array.astype(np.float64) if array.dtype.kind not in "iub" else array
    return array.detach().cpu().double().numpy()
