"""Whole numbers that say how many of something there are, where it begins, how long it is, or what it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.comparison.memory import arrays_of, byte_count
from accelopt_profiling.gate.probes.numbers import same_results
from accelopt_profiling.gate.probes.probe import COUNTED_BYTES, Array, Change, Drawing, mixed
from accelopt_profiling.gate.probes.range_ends import Unpromised
from accelopt_profiling.gate.probes.rewriting import WholeNumbers, taken
from accelopt_profiling.gate.request import Case

#: What stands for nothing, where the reference makes no difference between the two.
_NOTHING = (-1, -2)
#: How many times as long an axis is that one group takes alone.
_LONGER = 4
#: Of so many places the two in the middle change with each other.
_GROUP = 4
#: Of so many counts one becomes zero, the first of all among them; the last one takes what they lose.
_EMPTY = 3


class OtherCounts(Unpromised):
    """Counts that add up to the size of an axis, and offsets up to it, with every third count zero and the last one
    large; of other vectors of whole numbers from 1 up to the size of an axis, as lengths are, one is zero.
    """

    name = "other counts"
    catches = (
        "Groups without elements, sequences of length zero, and segments longer than any that was drawn."
    )
    beside_original = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        values, changed = _Counts({n for _, a in arrays_of(inputs) for n in a.shape}).of(inputs)
        return (values, True) if changed and drawing.is_finite(values) else (inputs, False)


class OneGroup(Unpromised):
    """Counts that add up to the size of an axis, and offsets up to it, with everything in the last group; that axis is
    four times as long, in every array that has one of its size.
    """

    name = "one group"
    catches = "Groups that hold more than a table, a loop or a tile of the rewrite takes, and more than any drawn one."
    beside_original = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        extents = {n for _, a in arrays_of(inputs) for n in a.shape}
        if _LONGER * byte_count(inputs) > COUNTED_BYTES:
            return inputs, False
        for extent in sorted(extents):
            values, changed = _OneGroup(extent).of(inputs)
            if changed:
                values = [_longer(value, extent) for value in values]
                if drawing.is_finite(values):
                    return values, True
        return inputs, False


class _OneGroup(WholeNumbers):
    """Writes counts that add up to ``total``, and offsets up to it."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self.total = total

    def rule(self, array: Array) -> Array | None:
        groups = _groups(array, {self.total})
        if groups is None:
            return None
        changed: Array = np.zeros_like(array)
        changed[-1] = _LONGER * self.total
        return changed


def _longer(value: Any, extent: int) -> Any:
    """Return an array whose axes of that size are longer, by repetition."""
    for axis, size in enumerate(getattr(value, "shape", ())):
        if size == extent:
            value = taken(value, axis, np.arange(_LONGER * extent) % extent)
    return value


class _Counts(WholeNumbers):
    def __init__(self, extents: set[int]) -> None:
        super().__init__()
        self.extents = extents

    def rule(self, array: Array) -> Array | None:
        groups = _groups(array, self.extents)
        if groups is not None:
            counts = _lopsided(groups)
            return counts if len(counts) == array.size else np.append(0, np.cumsum(counts))
        if array.ndim != 1 or array.size < 2 or array.min() < 1 or array.max() > max(self.extents):
            return None
        changed: Array = array.copy()
        changed[-1] = 0
        return changed


def _groups(array: Array, totals: set[int]) -> Array | None:
    """Return the counts that a vector holds, or that its offsets tell, one fewer, where they add up to one of
    ``totals`` and are not all one.
    """
    if array.ndim != 1 or array.size < 2 or array.min() < 0:
        return None
    steps = np.diff(array)
    offsets = array[0] == 0 and int(array[-1]) in totals and (steps >= 0).all()
    counts = steps if offsets else array
    return counts if int(counts.sum()) in totals and (counts != 1).any() else None


def _lopsided(counts: Array) -> Array:
    changed: Array = counts.copy()
    changed[:-1:_EMPTY] = 0
    changed[-1] += counts.sum() - changed.sum()
    return changed


class OutOfOrder(Unpromised):
    """Whole numbers in no order, as places are, that count upwards within their range instead, but that of every four
    the two in the middle change places: runs of places from a first to a last one, out of order.
    """

    name = "places out of order"
    catches = "Places that are taken to be in order, or a run of them where the first and the last say so."
    beside_original = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        if byte_count(inputs) > COUNTED_BYTES:
            return inputs, False
        values, changed = _Places({n for _, a in arrays_of(inputs) for n in a.shape}).of(inputs)
        return (values, True) if changed and drawing.is_finite(values) else (inputs, False)


class _Places(WholeNumbers):
    def __init__(self, extents: set[int]) -> None:
        super().__init__()
        self.extents = extents

    def rule(self, array: Array) -> Array | None:
        if array.size < _GROUP or array.min() < 0 or (array.ndim == 1 and int(array.sum()) in self.extents):
            return None
        least, span = int(array.min()), int(array.max()) - int(array.min()) + 1
        steps = np.diff(array.reshape(-1).astype(np.int64))
        if span < _GROUP or not ((steps < 0).any() and (steps > 0).any()):
            return None
        places = np.arange(array.size)
        whole = places[: array.size // _GROUP * _GROUP].reshape(-1, _GROUP)
        whole[:, [1, 2]] = whole[:, [2, 1]]
        changed: Array = (least + places % span).reshape(array.shape)
        return changed


class OtherIndices(Unpromised):
    """Arrays of whole numbers: equal ones become others up to it, the first row of a matrix counts upwards, every
    second number after the first two of a vector that repeats itself is the most frequent one. Where there are none, or
    the reference does not take it, every third number behind the first row is -1, if that makes no difference to -2
    there. The rest, and the first number, are those of the case of integers.
    """

    name = "other indices"
    catches = (
        "Whole numbers that are taken as given, or as the first ones are; results kept under a part of them; "
        "marks for nothing."
    )
    beside_original = True
    rearranges = "integers"

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        if byte_count(inputs) > COUNTED_BYTES:
            return inputs, False
        extents = {n for _, a in arrays_of(inputs) for n in a.shape}
        values, changed = _Indices(mixed(case.seed), extents).of(inputs)
        if changed and drawing.is_finite(values):
            return values, True
        values, changed = inputs, False
        for number in range(len(values)):
            one, other = (_with_nothing(values, number, nothing) for nothing in _NOTHING)
            if one and other and drawing.is_finite(one) and same_results(drawing.problem, one, other):
                values, changed = one, True
        return values, changed


def _with_nothing(inputs: list[Any], number: int, nothing: int) -> list[Any] | None:
    """Return ``inputs`` with ``nothing`` as a mark in one of them. None where that holds no places."""
    marked, changed = _Nothing(nothing).of([inputs[number]])
    return [*inputs[:number], *marked, *inputs[number + 1 :]] if changed else None


class _Indices(WholeNumbers):
    def __init__(self, seed: int, extents: set[int]) -> None:
        super().__init__()
        self.generator, self.extents = np.random.default_rng(seed), extents

    def rule(self, array: Array) -> Array | None:
        if array.size < 2 or (array.ndim == 1 and int(array.sum()) in self.extents):
            return None
        changed: Array = array.copy()
        flat = changed.reshape(-1)
        least, most = int(array.min()), int(array.max())
        steps = np.diff(flat.astype(np.int64))
        if least == most:
            flat[1:] = self.generator.integers(min(most, 0), max(most, 0) + 1, flat.size - 1)
        elif array.ndim > 1 and least + array.shape[-1] - 1 <= most:
            flat[: array.shape[-1]] = least + np.arange(array.shape[-1])
        elif array.ndim == 1 and len(np.unique(flat)) < flat.size and (steps < 0).any() and (steps > 0).any():
            numbers, counts = np.unique(flat, return_counts=True)
            flat[2::2] = numbers[np.argmax(counts)]
        else:
            return None
        return changed


class _Nothing(WholeNumbers):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def rule(self, array: Array) -> Array | None:
        if array.size < 2 or array.dtype.kind != "i" or array.min() < 0:
            return None
        changed: Array = array.copy()
        rest = changed[1:] if array.ndim > 1 else changed
        rest.reshape(-1)[1::_EMPTY] = self.number
        return changed
