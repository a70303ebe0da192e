"""Lengths of one array alone: fewer queries than keys, several tokens at once, rows behind the last offset."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from accelopt_profiling.comparison.memory import byte_count
from accelopt_profiling.gate.probes.probe import COUNTED_BYTES, Change, Drawing
from accelopt_profiling.gate.probes.range_ends import Unpromised
from accelopt_profiling.gate.probes.rewriting import dtype_of, taken
from accelopt_profiling.gate.probes.sizes import doubled_axes
from accelopt_profiling.gate.request import Case

#: An axis that is cut keeps at least so many elements: one would be repeated.
_KEPT = 2


class OneLength(Unpromised):
    """One array alone with another length, as the reference takes that: an axis that is as long as one of another array
    without its second half; one that is not, nor a size that is doubled anyway, longer by half and one, by what the
    array begins with, or whole numbers by the last. A candidate may raise there.
    """

    name = "one length"
    catches = "Lengths that are taken to be those of another array, or as few as were drawn."
    beside_original = may_raise = True
    most = 3

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        if byte_count(inputs) > COUNTED_BYTES or not drawing.own_reference:
            return inputs, False
        tried = _with_one_length(inputs, set(doubled_axes(drawing).values()))
        values = next(islice((v for v in tried if drawing.is_finite(v)), case.number, None), None)
        return (inputs, False) if values is None else (values, True)


def _with_one_length(inputs: list[Any], doubled: set[int]) -> Iterator[list[Any]]:
    """Yield ``inputs`` with one axis of one array cut or lengthened, one after another."""
    shapes = {n: tuple(value.shape) for n, value in enumerate(inputs) if _is_whole(value)}
    for number, shape in shapes.items():
        others = {extent for n, other in shapes.items() if n != number for extent in other}
        for axis, extent in enumerate(shape):
            length = extent // 2 if extent in others else extent + extent // 2 + 1
            if (extent in others and length >= _KEPT) or (extent not in others and extent not in doubled):
                changed = _of_length(inputs[number], axis, length)
                yield [*inputs[:number], changed, *inputs[number + 1 :]]


def _is_whole(value: Any) -> bool:
    """Check whether this is an array that lies together in memory."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return bool(value.numel() and value.is_contiguous())
    return isinstance(value, np.ndarray) and value.size > 0


def _of_length(array: Any, axis: int, length: int) -> Any:
    """Return a copy of an array that is as long as that along one axis."""
    whole_numbers = dtype_of(array).startswith(("int", "uint"))
    places, extent = np.arange(length), array.shape[axis]
    return taken(array, axis, np.minimum(places, extent - 1) if whole_numbers else places % extent)
