"""Inputs that lean to one side: about another mean, with rows and elements far from the others.

What normal random data hides: that a mean is taken to be zero, an extreme to have one sign, a maximum not to matter or
to lie in a few columns, tiles far below the maximum to weigh nothing (attention has its sinks), and that indices drawn
by counting are counted anew rather than read.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection
from typing import Any

import numpy as np

from accelopt_profiling.comparison.memory import arrays_of
from accelopt_profiling.gate.inputs.distributions import Array, Rewriting

#: Kinds of the reference's work (``observe.hostwork``), of which it has to do all of one set.
_SHIFTED = ({"softmax"}, {"attention"}, {"loss"}, {"exp", "extreme"})
#: Far above where float32's exponential overflows (88.7), and apart: a clamp makes them one.
_SPIKES = np.array([200.0, 190.0])
_PRODUCTS = frozenset(["matmul", "attention", "convolution"])
#: How far from the others two rows are moved in the case "spikes", one down and one up.
_FAR = 1000.0
#: The mean of the case "offset", in root mean squares of what was drawn.
_OFFSET = 1000.0
#: Work of a reference that takes a mean off before it squares, and of one that squares the differences of arrays.
_CENTRING = ({"norm"}, {"variance"}, {"sum", "power", "sqrt"})
_DISTANCES = ({"norm", "add"}, {"sum", "power", "add"}, {"loss"}, {"distance"})
#: What part of whole numbers that were drawn at random is one and the same in the case "skewed", and how many there
#: have to be.
_CROWDED, _MANY = 0.99, 64
#: A row far above the others, in root mean squares, and how much of its own variation it keeps: all of it is of one
#: sign then, and its variance is still a fiftieth of its mean square, as in the case "rows".
_SINK, _KEPT = 3.5, 0.5
#: How much wider than it was drawn an array from 0 to 1 is made around zero.
_CENTRED = 4.0


def skewed(inputs: list[Any], seed: int) -> tuple[list[Any], bool]:
    """Return the inputs with the float arrays that have negative elements negated, and if they have both signs moved
    up by their root mean square, with the first row of each matrix far above the others and its middle row far
    below. If none has negative elements, so the largest one, less its mean: a problem that draws from 0 to 1
    seldom means that, and one that does gives NaN. Indices that count (0, 1, 2, ... along the last axis) come in
    another order, lower triangular masks upside down. Where one array holds whole numbers that were drawn at
    random, nearly all of them are the same one.
    """
    state = _Skewed(np.random.default_rng(seed), largest_positive(inputs), _drawn_integers(inputs))
    return [state.value(v) for v in inputs], state.changed


def spikes(inputs: list[Any], seed: int, work: Collection[str]) -> tuple[list[Any], bool]:
    """Return the inputs with the float arrays of both signs (or the largest one, if there is none) with two elements,
    in the second half of the last row but one of each matrix, at 200 and 190: at the same places in arrays of the
    same width; the first row a thousand below where it was drawn, and the second, of four or more, a thousand
    above, where the ``work`` has no products of rows with rows. Nothing changes unless the reference's ``work``
    takes a maximum off.
    """
    if not any(kinds <= set(work) for kinds in _SHIFTED):
        return inputs, False
    state = _Spikes(seed, largest_positive(inputs), far=not _PRODUCTS & set(work))
    return [state.value(v) for v in inputs], state.changed


def offset(inputs: list[Any], work: Collection[str]) -> tuple[list[Any], bool]:
    """Return the largest float array, of both signs, with a mean a thousand times its root mean square, where
    all floats are float32 and the reference's ``work`` may take a mean off: the mean of squares less the
    square of the mean says nothing there. Where it may square differences of arrays, all matrices with rows as long as
    the largest's are moved alike: squares less twice a product say nothing of near points far away."""
    arrays = [a for _, a in arrays_of(inputs)]
    floats = [a for a in arrays if str(a.dtype).removeprefix("torch.").startswith(("float", "bfloat"))]
    single = all(str(a.dtype).removeprefix("torch.") == "float32" for a in floats)
    if not floats or not single:
        return inputs, False
    largest = max((tuple(a.shape) for a in floats), key=math.prod)
    alike = [a for a in floats if a.ndim > 1 and tuple(a.shape)[-1:] == largest[-1:]]
    apart = len(alike) > 1 and any(kinds <= set(work) for kinds in _DISTANCES)
    if not apart and not any(kinds <= set(work) for kinds in _CENTRING):
        return inputs, False
    state = _Offset(largest, apart)
    return [state.value(v) for v in inputs], state.changed


class _Offset(Rewriting):
    """Moves the first array of the shape ``largest``, or with ``apart`` all matrices with rows as long by as much."""

    def __init__(self, largest: tuple[int, ...], apart: bool = False) -> None:
        super().__init__()
        self.largest, self.apart, self.by = largest, apart, 0.0

    def rule(self, array: Array) -> Array | None:
        wanted = (
            array.ndim > 1 and array.shape[-1:] == self.largest[-1:]
            if self.apart
            else array.shape == self.largest and not self.by
        )  # fmt: skip
        if not wanted or not _both_signs(array):
            return None
        self.by = self.by or _OFFSET * float(np.sqrt(np.mean(np.square(array[np.isfinite(array)]))))
        moved: Array = array + self.by
        return moved


def _drawn_integers(inputs: list[Any]) -> tuple[int, ...] | None:
    """Return the shape of the only array of int32 or int64 where there is one, of many numbers that repeat in
    no order: what says how long something is, or where it begins, does not."""
    found = [
        a for _, a in arrays_of(inputs) if str(a.dtype).removeprefix("torch.").startswith(("int", "uint"))
    ]
    if len(found) != 1 or str(found[0].dtype).removeprefix("torch.") not in ("int32", "int64"):
        return None
    flat = np.asarray(found[0].detach().cpu() if hasattr(found[0], "detach") else found[0]).reshape(-1)
    steps = np.diff(flat)
    kinds = len(np.unique(flat))
    drawn = flat.size >= _MANY and 2 < kinds < flat.size and bool((steps < 0).any() and (steps > 0).any())
    return tuple(found[0].shape) if drawn else None


def largest_positive(inputs: list[Any]) -> tuple[int, ...] | None:
    """Return the shape of the largest float array if no float array has a negative element."""
    floats = [
        a for _, a in arrays_of(inputs) if str(a.dtype).removeprefix("torch.").startswith(("float", "bfloat"))
    ]
    if not floats or any(bool(((a < 0) & (a > -math.inf)).any()) for a in floats):
        return None
    return max((tuple(a.shape) for a in floats), key=math.prod)


def _both_signs(array: Array) -> bool:
    finite = array[np.isfinite(array)]
    return bool((finite < 0).any() and (finite > 0).any())


class _Skewed(Rewriting):
    def __init__(
        self,
        generator: np.random.Generator,
        positive: tuple[int, ...] | None,
        integers: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        self.generator, self.positive, self.integers = generator, positive, integers

    def rule(self, array: Array) -> Array | None:
        finite = np.isfinite(array)
        if array.shape == self.positive:
            self.positive = None
            array = _CENTRED * (array - np.mean(array[finite]))
        if not (array[finite] < 0).any():
            return None
        negated: Array = -array
        if not _both_signs(array):
            return negated
        scale = float(np.sqrt(np.mean(np.square(array[finite]))))
        moved = negated + scale
        if array.ndim > 1 and array.shape[-2] > 2:
            moved[..., 0, :] = _SINK * scale + _KEPT * negated[..., 0, :]
            middle = array.shape[-2] // 2
            moved[..., middle, :] = -_SINK * scale + _KEPT * negated[..., middle, :]
        return moved

    def value(self, value: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            if not value.is_floating_point() and not value.is_complex():
                array = self._ordered(value.detach().cpu().numpy())
                return value if array is None else torch.from_numpy(array.copy()).to(value.device)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "iub":
            array = self._ordered(value)
            return value if array is None else np.ascontiguousarray(array)
        return super().value(value)

    def _ordered(self, array: Array) -> Array | None:
        """Counted indices in another order, a triangular mask upside down; None for anything else."""
        if array.ndim < 1 or (array.shape[-1] < 3 and array.shape != self.integers):
            return None
        if array.dtype.kind in "iu" and (array == np.arange(array.shape[-1])).all():
            self.changed = True
            return array[..., self.generator.permutation(array.shape[-1])]
        if array.shape == self.integers and array.dtype.kind in "iu":
            return self._crowded(array)
        square = array.ndim > 1 and array.shape[-2] == array.shape[-1]
        if array.dtype.kind == "b" and square and (array == np.tri(array.shape[-1], dtype=bool)).all():
            self.changed = True
            return array[..., ::-1, :]
        return None

    def _crowded(self, array: Array) -> Array:
        """Nearly all numbers the same one of those that were drawn."""
        self.changed = True
        chosen = self.generator.choice(array[array >= 0] if (array >= 0).any() else array.reshape(-1))
        return np.where(self.generator.random(array.shape) < _CROWDED, chosen, array).astype(array.dtype)


class _Spikes(Rewriting):
    def __init__(self, seed: int, positive: tuple[int, ...] | None, far: bool) -> None:
        super().__init__()
        self.seed, self.positive, self.far = seed, positive, far

    def rule(self, array: Array) -> Array | None:
        if array.ndim < 2 or array.shape[-1] < 4 or not (array.shape == self.positive or _both_signs(array)):
            return None
        columns = array.shape[-1]
        generator = np.random.default_rng((self.seed, columns))
        places = columns // 2 + generator.choice(columns - columns // 2, 2, replace=False)
        spiked: Array = array.copy()
        rows = array.shape[-2]
        spiked[..., max(rows - 2, 0), places] = _SPIKES
        if self.far and rows > 2:
            spiked[..., 0, :] -= _FAR
        if self.far and rows > 3:
            spiked[..., 1, :] += _FAR
        return spiked
