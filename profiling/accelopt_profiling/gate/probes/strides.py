"""Inputs of another form: slices of wider tensors, as people pass them, and matrices that are not square."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.comparison.elements import OutputComparison
from accelopt_profiling.comparison.leaves import Leaf
from accelopt_profiling.gate.probes.probe import Change, Drawing
from accelopt_profiling.gate.probes.range_ends import Unpromised
from accelopt_profiling.gate.probes.rewriting import float_arrays
from accelopt_profiling.gate.request import Case
from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.problems.problem import Call

#: Rows so short are read as they are.
_SHORT = 16
#: So many elements of NaN lie between two rows.
_GAP = 16


class RowsApart(Unpromised):
    """Matrices of floats become the left part of wider ones.

    What lies between their rows is NaN. So do the gradients that arrive at the outputs.
    """

    name = "rows apart"
    catches = (
        "Kernels that take rows to follow one another, where the original reads strides or makes a copy."
    )
    beside_original = True

    def call(self, call: Call) -> Call:
        return replace(call, rows_apart=call.backward)

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        values = [self._apart(value) for value in inputs]
        changed = any(a is not b for a, b in zip(values, inputs, strict=True))
        return values, changed

    def excuse_of_the_original(self, mine: Leaf, comparison: OutputComparison) -> Reason:
        return Reason("range-ends", "It takes rows to follow one another in memory, as the original does.")

    def _apart(self, value: Any) -> Any:
        return _left_part(value, [0] * (getattr(value, "ndim", 1) - 1) + [_GAP])


class MatricesApart(RowsApart):
    """Of each stack of matrices of floats the rows of a matrix stay together, and a row of NaN follows each."""

    name = "matrices apart"
    catches = (
        "Kernels that take the matrices of a batch to follow one another, where the original reads strides."
    )

    def call(self, call: Call) -> Call:
        return call

    def _apart(self, value: Any) -> Any:
        axes = getattr(value, "ndim", 1)
        return _left_part(value, [0, *[1] * (axes - 2), 0]) if axes > 2 else value


class ExchangedAxes(Unpromised):
    """The largest tensor with its last two axes exchanged in memory, as the transpose of another one has them; only
    the left of it, where the reference takes that: kernels copy what is long.
    """

    name = "exchanged axes"
    catches = "Kernels that take the last axis to lie side by side, where the original reads strides or makes a copy."
    beside_original = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        torch = sys.modules.get("torch")
        tensors = [] if torch is None else [n for n, v in enumerate(inputs) if isinstance(v, torch.Tensor)]
        largest = max(tensors, key=lambda n: inputs[n].numel(), default=None)
        if torch is None or largest is None or min(inputs[largest].shape[-2:], default=0) < 2:
            return inputs, False
        if inputs[largest].ndim < 2 or not inputs[largest].is_contiguous():
            return inputs, False
        for width in (_SHORT, None):
            turned = inputs[largest].detach()[..., :width].transpose(-1, -2).contiguous().transpose(-1, -2)
            turned.requires_grad_(inputs[largest].requires_grad)
            values = [turned if n == largest else value for n, value in enumerate(inputs)]
            if drawing.is_finite(values):
                return values, True
        return inputs, False

    def excuse_of_the_original(self, mine: Leaf, comparison: OutputComparison) -> Reason:
        return Reason("range-ends", "It takes rows to lie side by side in memory, as the original does.")


class UnequalAxes(Unpromised):
    """The only matrix among the inputs, where it is square, without the second half of its columns; else so two arrays
    or more of one shape, which are not the largest, as the reference takes that.
    """

    name = "unequal axes"
    catches = "Kernels that take the columns to be as many as the rows, or as those of another array."
    beside_original = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        places = [n for n, value in enumerate(inputs) if len(getattr(value, "shape", ())) > 1]
        matrix = inputs[places[0]] if len(places) == 1 else None
        if matrix is None or matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] < 2:
            return self._of_groups(drawing, inputs)
        values = [_halved(value) if n == places[0] else value for n, value in enumerate(inputs)]
        return (values, True) if drawing.is_finite(values) else (inputs, False)

    def _of_groups(self, drawing: Drawing, inputs: list[Any]) -> Change:
        shapes = Counter(tuple(a.shape) for a in float_arrays(inputs) if len(a.shape) > 1)
        largest = max(shapes, key=prod, default=())
        for shape in [s for s, count in shapes.items() if count > 1 and s != largest and s[-1] > 1]:
            values = [_halved(v) if tuple(getattr(v, "shape", ())) == shape else v for v in inputs]
            if drawing.is_finite(values):
                return values, True
        return inputs, False


def _halved(matrix: Any) -> Any:
    """Return a matrix without the second half of its columns."""
    half = matrix[..., : matrix.shape[-1] // 2]
    return half.copy() if isinstance(half, np.ndarray) else half.clone().contiguous()


def _left_part(value: Any, gaps: list[int]) -> Any:
    """Return a tensor of floats as the first part of one that is longer by ``gaps``, along each axis."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    if value.ndim < 2 or value.numel() <= value.shape[-1] or value.shape[-1] < 2 or not value.is_contiguous():
        return value
    with torch.no_grad():
        extents = [n + gap for n, gap in zip(value.shape, gaps, strict=True)]
        wide = torch.full(extents, float("nan"), dtype=value.dtype)
        rows = wide.to(value.device)[tuple(map(slice, value.shape))]
        rows.copy_(value)
    return rows.requires_grad_(value.requires_grad)
