"""Find values that host code gives to kernels and computed in a way that nobody counted.

What leaves an array by a buffer, by DLPack or element by element is plain Python's, and work on it is not
seen. Its result is: values that follow the data, and that neither the caller gave nor any operation that was counted
can have made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accelopt_profiling.comparison.memory import arrays_of

Numbers = npt.NDArray[np.float64]

#: Of each array, so many elements spread over it are looked at. In more data than this they are not looked for.
_PROBES, _MOST = 4096, 1 << 21
#: An array was computed if more than this share of the elements was not given: the others may be.
_COMPUTED = 0.5


@dataclass(frozen=True)
class _Sample:
    """Elements of an array of ``size``; ``rounded`` rounds numbers to its type."""

    size: int
    values: Numbers
    rounded: Callable[[Numbers], Numbers]


class Provenance:
    """What each of two calls on other data of the same shapes was given, and what it gave to kernels."""

    def __init__(self) -> None:
        self._calls: list[list[_Sample]] = []
        self._given: list[list[Numbers]] = []

    def begin(self) -> None:
        """Begin a call."""
        self._calls.append([])
        self._given.append([])

    def forget(self) -> None:
        """Forget the last call, which failed."""
        self._calls.pop()
        self._given.pop()

    def give(self, values: Any) -> None:
        """Note what the call was given: its arguments, parameters of its model."""
        self._given[-1] += [n for _, array in arrays_of(values) if (n := numbers_of(array)) is not None]

    def launch(self, array: Any) -> None:
        """Note what a launch is given, before it."""
        if (sample := _sample(array)) is not None:
            self._calls[-1].append(sample)

    def computed(self) -> int:
        """Return the size of the largest array that follows the data and that the call was not given."""
        if len(self._calls) < 2:
            return 0
        pairs = zip(*self._calls[-2:], strict=False)
        return max((b.size for a, b in pairs if _differ(a, b) and _is_foreign(b, self._given[-1])), default=0)


def foreign(values: Any, arguments: list[Numbers]) -> int:
    """Return the size of the largest array of floats inside ``values`` with numbers of none of the ``arguments``."""
    samples = [_sample(array) for _, array in arrays_of(values)]
    return max((s.size for s in samples if s is not None and _is_foreign(s, arguments)), default=0)


def _sample(array: Any) -> _Sample | None:
    numbers = numbers_of(array)
    if numbers is None:
        return None
    return _Sample(numbers.size, numbers[:: max(1, numbers.size // _PROBES)].copy(), _rounding(array))


def _is_foreign(sample: _Sample, arguments: list[Numbers]) -> bool:
    values = np.abs(sample.values[np.isfinite(sample.values) & (sample.values != 0)])
    if not values.size or not arguments or sum(g.size for g in arguments) > _MOST:
        return False
    magnitudes = np.abs(sample.rounded(np.concatenate(arguments)))
    return bool((~np.isin(values, magnitudes)).mean() > _COMPUTED)


def _differ(one: _Sample, other: _Sample) -> bool:
    return one.size == other.size and not np.array_equal(one.values, other.values, equal_nan=True)


def numbers_of(array: Any) -> Numbers | None:
    """Return a copy of the elements of an array of floats. None of any other."""
    if isinstance(array, np.ndarray):
        plain = np.ndarray.view(array, np.ndarray)
        floats = plain.dtype.kind in "fV" and plain.dtype.names is None
        return plain.astype(np.float64).reshape(-1) if floats else None
    if not array.is_floating_point():
        return None
    return np.array(array.detach().double().cpu().reshape(-1).numpy())


def _rounding(array: Any) -> Callable[[Numbers], Numbers]:
    dtype = array.dtype
    if isinstance(array, np.ndarray):
        return lambda numbers: numbers.astype(dtype).astype(np.float64)
    torch = sys.modules["torch"]
    return lambda numbers: torch.from_numpy(numbers).to(dtype).double().numpy()
