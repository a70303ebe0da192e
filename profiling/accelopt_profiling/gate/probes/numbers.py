"""Other values of the numbers among the arguments: a factor, a slope, what is added under a root."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accelopt_profiling.comparison.memory import arrays_of, byte_count
from accelopt_profiling.gate.probes.probe import COUNTED_BYTES, Change, Drawing
from accelopt_profiling.gate.probes.range_ends import Unpromised
from accelopt_profiling.gate.request import Case
from accelopt_profiling.problems.loading.call import copied
from accelopt_profiling.problems.problem import Problem

#: What is between 0 and 1 stays so.
_FACTOR = 0.75
#: A number below this is there to keep a root or a quotient from zero; so large it shows.
_SMALL, _SHOWS = 0.01, 0.05


def fraction(value: Any) -> Any:
    """Return three quarters of a fraction; whole numbers stay (an exponent of 2.0 says what to compute)."""
    return value * _FACTOR if type(value) is float and not value.is_integer() else value


def other(value: Any) -> Any:
    """Return another value of a number, whole or not, and one that shows of what is next to nothing."""
    if type(value) is not float:
        return value
    return _SHOWS if abs(value) < _SMALL else value * _FACTOR


def turned(value: Any) -> Any:
    """Return the other choice of a flag, and another value of a number."""
    return not value if type(value) is bool else other(value)


class OtherNumbers(Unpromised):
    """Flags among the arguments turned, and float numbers at three quarters, whole ones too; what is below a hundredth
    at 0.05. Where the reference gives no numbers then, or does not look at them, there is no such case.
    """

    name = "other numbers"
    catches = (
        "Flags, factors that the problem gives as one, and what is added under a root, written into a kernel."
    )

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        if not drawing.own_reference or byte_count(inputs) > COUNTED_BYTES:
            return inputs, False
        for change in (turned, other):
            values = replaced(drawing.problem, inputs, change)
            if values is not inputs and drawing.is_finite(values):
                return values, True
        return inputs, False


class OtherIntegers(Unpromised):
    """Whole numbers among the arguments, each one more, where the reference takes them and looks at them. Larger ones
    would make loops of programs that a check cannot interpret; see ``UnevenSizes`` for those that size nothing.
    """

    name = "other integers"
    catches = "Seeds, places and counts among the arguments that are written into a kernel."
    beside_original = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        if byte_count(inputs) > COUNTED_BYTES:
            return inputs, False
        values = replaced(drawing.problem, inputs, following)
        return (values, True) if values is not inputs and drawing.is_finite(values) else (inputs, False)


def following(value: Any) -> Any:
    """Return the next whole number."""
    return value + 1 if type(value) is int else value


def replaced(problem: Problem, inputs: list[Any], change: Callable[[Any], Any]) -> list[Any]:
    """Return ``inputs`` with every argument changed. They are the same object where nothing changes, or
    the reference does not look at them: there a kernel may take the word of either."""
    values = [change(v) for v in inputs]
    if all(a is b or (type(a) is float and a == b) for a, b in zip(values, inputs, strict=True)):
        return inputs
    try:
        before, after = (problem.reference([copied(v) for v in arguments]) for arguments in (inputs, values))
    except Exception:  # the reference takes no other number
        return inputs
    return inputs if before is None or after is None or _alike(before, after) else values


def _alike(one: list[Any], other: list[Any]) -> bool:
    pairs = zip(arrays_of(one), arrays_of(other), strict=False)
    return all(np.array_equal(_plain(a), _plain(b), equal_nan=True) for (_, a), (_, b) in pairs)


def _plain(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return array.astype(np.float64) if array.dtype.kind not in "iub" else array
    return array.detach().cpu().double().numpy()
