"""Vary numbers among the arguments: a kernel has to use the number that it is given, not a constant of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.comparison.memory import arrays_of
from accelopt_profiling.problems.loading.call import copied
from accelopt_profiling.problems.problem import Problem

#: What is between 0 and 1 stays so.
_FACTOR = 0.75


def varied(problem: Problem, inputs: list[Any]) -> list[Any]:
    """``inputs`` with every Python float among them at three quarters, whole numbers aside (an exponent of 2.0 says
    what to compute). Nothing changes where the reference does not look at them: there a kernel may take the word of
    either.
    """
    moved = [v * _FACTOR if type(v) is float and not v.is_integer() else v for v in inputs]
    if all(a is b for a, b in zip(moved, inputs, strict=True)):
        return inputs
    try:
        before, after = (problem.reference([copied(v) for v in given]) for given in (inputs, moved))
    except Exception:  # the reference takes no other number
        return inputs
    return inputs if before is None or after is None or _alike(before, after) else moved


def _alike(one: list[Any], other: list[Any]) -> bool:
    pairs = zip(arrays_of(one), arrays_of(other), strict=False)
    return all(np.array_equal(_plain(a), _plain(b), equal_nan=True) for (_, a), (_, b) in pairs)


def _plain(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return array.astype(np.float64) if array.dtype.kind not in "iub" else array
    return array.detach().cpu().double().numpy()
