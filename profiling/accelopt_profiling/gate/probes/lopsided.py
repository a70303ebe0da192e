"""Inputs that lean to one side: about another mean, with rows and elements far from the others.

What normal random data hides: that a mean is taken to be zero, an extreme to have one sign, a maximum not to matter or
to lie in a few columns, tiles far below the maximum to weigh nothing (attention has its sinks), and that indices drawn
by counting are counted anew rather than read.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from accelopt_profiling.comparison.memory import arrays_of, byte_count
from accelopt_profiling.gate.probes.numbers import fraction, replaced
from accelopt_profiling.gate.probes.probe import COUNTED_BYTES, Array, Change, Drawing, ValueProbe, mixed
from accelopt_profiling.gate.probes.range_ends import Unpromised
from accelopt_profiling.gate.probes.rewriting import Rewriting, both_signs, dtype_of, largest_positive
from accelopt_profiling.gate.request import Case

#: Kinds of the reference's work (``observe.hostwork``), of which it has to do all of one set.
_SHIFTED = ({"softmax"}, {"attention"}, {"loss"}, {"exp", "extreme"}, {"order"})
#: Far above where float32's exponential overflows (88.7), and apart: a clamp makes them one.
_SPIKES = np.array([200.0, 190.0])
_PRODUCTS = frozenset(["matmul", "attention", "convolution"])
#: How far from the others two rows are moved in the case "spikes", one down and one up.
_FAR = 1000.0
#: What part of whole numbers that were drawn at random is one and the same in the case "skewed", and how many there
#: have to be.
_CROWDED, _MANY = 0.99, 64
#: A row far above the others, in root mean squares, and how much of its own variation it keeps: all of it is of one
#: sign then, and its variance is still a fiftieth of its mean square, as in the case "rows".
_SINK, _KEPT = 3.5, 0.5
#: The mean at the left end of rows, in root mean squares; it grows to the right, and is one for whole rows.
_LEFT = 0.25
#: One row of so many is a sink, whose score is about so much above the others', each row divided by its root.
_APART, _LIKED = 32, 14.0
#: How much wider than it was drawn an array from 0 to 1 is made around zero.
_CENTRED = 4.0


class Skewed(ValueProbe):
    """Float arrays that have negative elements are negated, and if they have both signs moved up by their root mean
    square, less on the left of rows and more on the right, with the first row of each matrix far above the others
    and its middle row far below. If none has negative elements, so is the largest one, less its mean: a problem
    that draws from 0 to 1 seldom means that, and one that does gives NaN. Indices that count (0, 1, 2, ... along
    the last axis) come in another order, lower triangular masks upside down. Where one array holds whole numbers
    that were drawn at random, nearly all of them are the same one. Scalar fractions become three quarters of what
    they were.
    """

    name = "skewed"
    catches = (
        "A mean taken to be zero, extremes taken to have one sign; scalars, indices, masks that are not read."
    )

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        skewed = _Skewed(mixed(case.seed), largest_positive(inputs), _drawn_integers(inputs))
        values, changed = skewed.of(inputs)
        if drawing.own_reference and byte_count(values) <= COUNTED_BYTES:
            before, values = values, replaced(drawing.problem, values, fraction)
            changed = changed or before is not values
        return values, changed


class Spikes(ValueProbe):
    """Float arrays of both signs (or the largest one, if there is none) get two elements, in the second half of the
    last row but one of each matrix, at 200 and 190: at the same places in arrays of the same width. The first row moves
    a thousand down, and the second, of four or more, a thousand up, where the reference's work has no products of rows
    with rows. For problems of which the reference takes a maximum off, or puts values in order: others may overflow.
    """

    name = "spikes"
    catches = (
        "A missing maximum, where the reference subtracts one; padding or marks that take part in a maximum."
    )
    fits_some = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        if not any(kinds <= drawing.kinds for kinds in _SHIFTED):
            return inputs, False
        far = not _PRODUCTS & drawing.kinds
        return _Spikes(mixed(case.seed), largest_positive(inputs), far).of(inputs)


class LateSinks(Unpromised):
    """Arrays of both signs about a mean of their root mean square, with the last of every 32 rows further up: a key
    that each query likes far better than all others, which together still weigh something.
    """

    name = "late sinks"
    catches = "Tiles of keys that are left out since they lie below a maximum that was met before."
    beside_original = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        if not ("attention" in drawing.kinds or drawing.kinds >= {"softmax", "matmul"}):
            return inputs, False
        return _LateSinks().of(inputs)


class _LateSinks(Rewriting):
    def rule(self, array: Array) -> Array | None:
        if array.ndim < 2 or array.shape[-2] < _APART or not both_signs(array):
            return None
        scale = float(np.sqrt(np.mean(np.square(array[np.isfinite(array)]))))
        moved: Array = array + scale
        moved[..., _APART - 1 :: _APART, :] += _LIKED * scale / np.sqrt(array.shape[-1])
        return moved


def _drawn_integers(inputs: list[Any]) -> tuple[int, ...] | None:
    """Return the shape of the only array of int32 or int64 where there is one, of many numbers that repeat in
    no order: what says how long something is, or where it begins, does not."""
    whole_numbers = [a for _, a in arrays_of(inputs) if dtype_of(a).startswith(("int", "uint"))]
    if len(whole_numbers) != 1 or dtype_of(whole_numbers[0]) not in ("int32", "int64"):
        return None
    flat = np.asarray(
        whole_numbers[0].detach().cpu() if hasattr(whole_numbers[0], "detach") else whole_numbers[0]
    ).reshape(-1)
    steps = np.diff(flat)
    kinds = len(np.unique(flat))
    drawn = flat.size >= _MANY and 2 < kinds < flat.size and bool((steps < 0).any() and (steps > 0).any())
    return tuple(whole_numbers[0].shape) if drawn else None


class _Skewed(Rewriting):
    def __init__(
        self,
        seed: int,
        positive: tuple[int, ...] | None,
        integers: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        self.generator, self.positive, self.integers = np.random.default_rng(seed), positive, integers

    def rule(self, array: Array) -> Array | None:
        finite = np.isfinite(array)
        if array.shape == self.positive:
            self.positive = None
            array = _CENTRED * (array - np.mean(array[finite]))
        if not (array[finite] < 0).any():
            return None
        negated: Array = -array
        if not both_signs(array):
            return negated
        scale = float(np.sqrt(np.mean(np.square(array[finite]))))
        moved = negated + scale * np.linspace(_LEFT, 2 - _LEFT, array.shape[-1])
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
        """Counted indices in another order, a triangular mask upside down. None for anything else."""
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
        if array.ndim < 2 or array.shape[-1] < 4 or not (array.shape == self.positive or both_signs(array)):
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
