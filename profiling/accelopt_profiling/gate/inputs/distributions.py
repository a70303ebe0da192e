"""Change drawn inputs into other distributions that are still fair to ask of a kernel.

Only float arrays with more than one element change; numbers, flags and indices stay. An array that was drawn
without a negative value keeps none, a triangular matrix its zeros, and NaN and infinities stay where they are.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from accelopt_profiling.comparison.memory import arrays_of
from accelopt_profiling.problems.loading.call import copied
from accelopt_profiling.problems.problem import Problem

Array = np.ndarray[Any, Any]


def change(distribution: str, inputs: list[Any], seed: int) -> tuple[list[Any], bool]:
    """Return the inputs in ``distribution``, and whether anything changed. Lists and tuples are changed
    inside.

    "large" is three times the original, "small" a hundredth, "rows" gives each row of the last axis one constant value,
    every other row values about it (off by a quarter at most), and one row in seven zeros, the others not near zero
    (functions that pass through it lose digits there) and all of one sign (of mixed signs a sum over rows can cancel by
    chance, and what is left of it says nothing about how exact a kernel is), "integers" draws from -2..2 (0..2 where
    nothing is negative), on which sums and products are exact in every format, "shuffled" moves the elements about, and
    so does "moved", except for the first and last quarter.
    """
    state = _Redistribution(distribution, np.random.default_rng(seed))
    return [state.value(v) for v in inputs], state.changed


#: The least value of a row in the case "rows", in root mean squares of the array; and of an array that is bounded away
#: from zero, as divisors are, which gets no zeros.
_LEAST = 0.1
#: Rows of this length are in order by chance once in a few thousand million times.
_SORTED = 13


class Rewriting(ABC):
    """Arrays and tensors of floats written anew, in their own dtype and layout, by a rule on float64 arrays.
    ``changed`` tells whether the rule changed any.
    """

    #: Whether the rule leaves symmetric matrices symmetric and definite.
    keeps_symmetry = False

    def __init__(self) -> None:
        self.changed = False

    @abstractmethod
    def rule(self, array: Array) -> Array | None:
        """Return what takes the place of ``array``; None leaves it alone. NaN and infinities stay in any case."""

    def value(self, value: Any) -> Any:
        if type(value) in (list, tuple):
            return type(value)(self.value(v) for v in value)
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            return self._tensor(torch, value)
        if isinstance(value, np.ndarray) and _is_float(str(value.dtype)) and value.size > 1:
            changed = self._array(value.astype(np.float64))
            return value if changed is None else changed.astype(value.dtype)
        return value

    def _tensor(self, torch: Any, value: Any) -> Any:
        if not value.is_floating_point() or value.numel() <= 1:
            return value
        array = value.detach().to("cpu", torch.float64).numpy()
        changed = self._array(array)
        if changed is None:
            return value
        with torch.no_grad():
            result = torch.empty_like(value)
            result.copy_(torch.from_numpy(np.ascontiguousarray(changed)))
        return result.requires_grad_(value.requires_grad)

    def _array(self, array: Array) -> Array | None:
        """Return the changed array, or None where the distribution leaves it alone."""
        if _symmetric(array) and not self.keeps_symmetry:
            return None
        with np.errstate(all="ignore"):
            changed = self.rule(array)
        if changed is None:
            return None
        self.changed = True
        kept: Array = np.where(np.isfinite(array) & np.logical_not(_outside_triangle(array)), changed, array)
        return np.sort(kept, axis=-1) if _ascending(array) else kept


def _symmetric(array: Array) -> bool:
    """Check whether an array holds symmetric matrices that are no masks: solvers may take them to be definite."""
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.shape[-1] < 3:
        return False
    turned = np.swapaxes(array, -1, -2)
    return (
        bool(np.allclose(array, turned, rtol=1e-5, atol=1e-6 * np.abs(array).max(initial=0.0)))
        and len(np.unique(array)) > 3
    )


def _outside_triangle(array: Array) -> Array | bool:
    """Where triangular matrices are zero by construction, which a kernel may use. (A mask of ones, or the identity, is
    a triangle too, but one that says nothing: there it is the values that must not be taken for granted.)
    """
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.shape[-1] < 3:
        return False
    below = np.tri(array.shape[-1], k=-1, dtype=bool)
    for outside in (below, below.T):
        if not array[..., outside].any():
            return outside if len(np.unique(array)) > 3 else False
    return False


def _ascending(array: Array) -> bool:
    """Check whether each row grows from its first to its last element, as the bounds that a kernel searches do; not by
    chance, and not because all are the same.
    """
    if array.ndim < 1 or array.shape[-1] < _SORTED or not array.size:
        return False
    return bool((array[..., 1:] >= array[..., :-1]).all() and (array[..., -1] > array[..., 0]).all())


class _Redistribution(Rewriting):
    def __init__(self, distribution: str, generator: np.random.Generator) -> None:
        super().__init__()
        self.distribution, self.generator = distribution, generator
        self.keeps_symmetry = distribution in ("large", "small")

    def rule(self, array: Array) -> Array | None:
        finite = array[np.isfinite(array)]
        smallest = float(finite.min()) if finite.size else 0.0
        least = _LEAST * float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0
        bounded = smallest > least
        factor = {"large": 3.0, "small": 0.01}.get(self.distribution)
        if factor is not None:
            scaled: Array = array * factor
            return scaled
        if self.distribution == "rows":
            first = array[..., :1]
            sign = -1.0 if first.size and first.reshape(-1)[0] < 0 else 1.0
            value = sign * np.maximum(np.abs(first), least)
            changed: Array = (value * np.ones(array.shape)).reshape(-1, array.shape[-1])
            changed[1::2] *= 1.0 + self.generator.uniform(-0.25, 0.25, size=changed[1::2].shape)
            changed = changed.reshape(array.shape)
            if not bounded:
                changed.reshape(-1, changed.shape[-1])[3::7] = 0.0
            return changed
        if self.distribution == "integers":
            lowest = 1 if bounded else -2 if smallest < 0 else 0
            return np.asarray(self.generator.integers(lowest, 3, size=array.shape), np.float64)
        if self.distribution == "shuffled":
            shuffled: Array = self.generator.permutation(array.reshape(-1)).reshape(array.shape)
            return shuffled
        if self.distribution == "moved":
            moved: Array = array.reshape(-1).copy()
            inner = slice(moved.size // 4, moved.size - moved.size // 4)
            moved[inner] = self.generator.permutation(moved[inner])
            again: Array = moved.reshape(array.shape)
            return again
        return array


def altered(distribution: str, inputs: list[Any], seed: int) -> tuple[list[Any], bool]:
    """Return ``inputs`` with the elements of all but the first float array moved about ("same sums"; of the only one
    where there is but one), or of the first alone ("same rest"), and whether anything changed."""
    floats = [n for n, value in enumerate(inputs) if _is_float_array(value)]
    first, rest = floats[:1], floats[1:]
    if distribution == "same rest" and not rest:
        return inputs, False
    chosen = first if distribution == "same rest" or not rest else rest
    found = list(inputs)
    for n in chosen:
        [found[n]], _ = change("moved", [inputs[n]], seed + n)
    return found, bool(chosen)


def _is_float_array(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return _is_float(str(value.dtype)) and value.size > 1
    torch = sys.modules.get("torch")
    return (
        torch is not None
        and isinstance(value, torch.Tensor)
        and value.is_floating_point()
        and value.numel() > 1
    )


def _is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


#: What is between 0 and 1 stays so.
_FACTOR = 0.75


def varied(problem: Problem, inputs: list[Any]) -> list[Any]:
    """Return ``inputs`` with every Python float among them at three quarters, whole numbers aside (an exponent of 2.0
    says what to compute). Nothing changes where the reference does not look at them: there a kernel may take the
    word of either."""
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
