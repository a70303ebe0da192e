"""Write drawn arrays anew, still fair to ask of a kernel.

Only float arrays with more than one element change; numbers, flags and indices stay. A triangular matrix keeps its
zeros, ascending rows their order, and NaN and infinities stay where they are.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from accelopt_profiling.comparison.memory import arrays_of, empty_alike
from accelopt_profiling.gate.probes.probe import Array, Change

#: An array is bounded away from zero, as divisors are, where nothing in it is below so many root mean squares.
_LEAST = 0.1
#: Rows of this length are in order by chance once in a few thousand million times.
_SORTED = 13


class Writing(ABC):
    """Arrays and tensors among inputs written anew by a rule, in their own dtype. ``changed`` tells whether any was."""

    def __init__(self) -> None:
        self.changed = False

    def of(self, inputs: list[Any]) -> Change:
        """Return ``inputs`` written anew, and whether anything changed.

        Lists and tuples are changed inside.
        """
        return [self.value(value) for value in inputs], self.changed

    @abstractmethod
    def rule(self, array: Array) -> Array | None:
        """Return what takes the place of ``array``; None leaves it alone."""

    def value(self, value: Any) -> Any:
        if type(value) in (list, tuple):
            return type(value)(self.value(v) for v in value)
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            return self._tensor(torch, value)
        return self._array(value) if isinstance(value, np.ndarray) else value

    @abstractmethod
    def _tensor(self, torch: Any, tensor: Any) -> Any:
        """Return what takes the place of a tensor."""

    @abstractmethod
    def _array(self, array: Array) -> Array:
        """Return what takes the place of a NumPy array."""


class Rewriting(Writing):
    """Floats written anew, in their own layout, by a rule on float64 arrays. NaN and infinities stay in any case."""

    #: Whether the rule leaves symmetric matrices symmetric and definite.
    keeps_symmetry = False

    def _array(self, array: Array) -> Array:
        if not is_float(str(array.dtype)) or array.size <= 1:
            return array
        changed = self._floats(array.astype(np.float64))
        return array if changed is None else changed.astype(array.dtype)

    def _tensor(self, torch: Any, tensor: Any) -> Any:
        if not tensor.is_floating_point() or tensor.numel() <= 1:
            return tensor
        changed = self._floats(tensor.detach().to("cpu", torch.float64).numpy())
        if changed is None:
            return tensor
        with torch.no_grad():
            result = empty_alike(tensor)
            result.copy_(torch.from_numpy(np.ascontiguousarray(changed)))
        return result.requires_grad_(tensor.requires_grad)

    def _floats(self, array: Array) -> Array | None:
        """Return the changed array, or None where the distribution leaves it alone."""
        if _symmetric(array) and not self.keeps_symmetry:
            return None
        with np.errstate(all="ignore"):
            changed = self.rule(array)
        if changed is None:
            return None
        self.changed = True
        result: Array = np.where(
            np.isfinite(array) & np.logical_not(_outside_triangle(array)), changed, array
        )
        return np.sort(result, axis=-1) if _ascending(array) else result


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
    """Where triangular matrices are zero by construction, which a kernel may use.

    (A mask of ones, or the identity, is a triangle too, but one that says nothing: there it is the values that must not
    be taken for granted.)
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


class WholeNumbers(Writing):
    """Whole numbers written anew by a rule on arrays of their own dtype."""

    def _array(self, array: Array) -> Array:
        changed = self.rule(array) if array.dtype.kind in "iu" else None
        self.changed = self.changed or changed is not None
        return array if changed is None else np.ascontiguousarray(changed, array.dtype)

    def _tensor(self, torch: Any, tensor: Any) -> Any:
        if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
            return tensor
        array = tensor.detach().cpu().numpy()
        changed = self._array(array)
        return tensor if changed is array else torch.from_numpy(changed).to(tensor.device)


class Shuffled(Rewriting):
    """All elements moved about, except for ``kept`` at the start and as many at the end, a share of them."""

    def __init__(self, seed: int, share: float = 0.0) -> None:
        super().__init__()
        self.generator, self.kept = np.random.default_rng(seed), share

    def rule(self, array: Array) -> Array | None:
        flat = array.reshape(-1).copy()
        ends = int(flat.size * self.kept)
        inner = slice(ends, flat.size - ends)
        flat[inner] = self.generator.permutation(flat[inner])
        shuffled: Array = flat.reshape(array.shape)
        return shuffled


def taken(array: Any, axis: int, places: Array) -> Any:
    """Return a copy of an array, or a tensor, of these ``places`` along an axis."""
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array.take(places, axis))
    torch = sys.modules["torch"]
    chosen = array.detach().index_select(axis, torch.from_numpy(places).to(array.device))
    return chosen.requires_grad_(array.requires_grad)


def least_size(array: Array) -> float:
    """Return the size that the elements of an array have at least where it is bounded away from zero."""
    finite = array[np.isfinite(array)]
    return _LEAST * float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0


def smallest(array: Array) -> float:
    """Return the smallest number in an array; 0 where it holds none."""
    finite = array[np.isfinite(array)]
    return float(finite.min()) if finite.size else 0.0


def both_signs(array: Array) -> bool:
    finite = array[np.isfinite(array)]
    return bool((finite < 0).any() and (finite > 0).any())


def dtype_of(array: Any) -> str:
    """Return the plain name of an array's or a tensor's dtype."""
    return str(array.dtype).removeprefix("torch.")


def float_arrays(inputs: list[Any]) -> list[Any]:
    """Return the arrays and tensors of floats among ``inputs``, those in lists and tuples too."""
    return [a for _, a in arrays_of(inputs) if is_float(dtype_of(a))]


def largest_shape(arrays: list[Any]) -> tuple[int, ...]:
    return max((tuple(a.shape) for a in arrays), key=math.prod)


def largest_positive(inputs: list[Any]) -> tuple[int, ...] | None:
    """Return the shape of the largest float array if no float array has a negative element."""
    floats = float_arrays(inputs)
    if not floats or any(bool(((a < 0) & (a > -math.inf)).any()) for a in floats):
        return None
    return largest_shape(floats)


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))
