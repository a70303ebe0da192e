"""Inputs of another form: slices of wider tensors, as people pass them, and matrices that are not square."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from accelopt_profiling.comparison.elements import OutputComparison
from accelopt_profiling.comparison.leaves import Leaf
from accelopt_profiling.gate.probes.probe import Change, Drawing
from accelopt_profiling.gate.probes.range_ends import Unpromised
from accelopt_profiling.gate.request import Case
from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.problems.problem import Call

#: So many elements of NaN lie between two rows.
_GAP = 16


class RowsApart(Unpromised):
    """Matrices of floats become the left part of wider ones; what lies between their rows is NaN. So do the gradients
    that arrive at the outputs.
    """

    name = "rows apart"
    catches = (
        "Kernels that take rows to follow one another, where the original reads strides or makes a copy."
    )
    beside_original = True

    def call(self, call: Call) -> Call:
        return replace(call, rows_apart=call.backward)

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        values = [_apart(value) for value in inputs]
        changed = any(a is not b for a, b in zip(values, inputs, strict=True))
        return values, changed

    def excuse_of_the_original(self, mine: Leaf, comparison: OutputComparison) -> Reason:
        return Reason("range-ends", "It takes rows to follow one another in memory, as the original does.")


class UnequalAxes(Unpromised):
    """The only matrix among the inputs, where it is square, without the second half of its columns."""

    name = "unequal axes"
    catches = "Kernels that take the columns to be as many as the rows."
    beside_original = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        places = [n for n, value in enumerate(inputs) if len(getattr(value, "shape", ())) > 1]
        matrix = inputs[places[0]] if len(places) == 1 else None
        if matrix is None or matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] < 2:
            return inputs, False
        half = matrix[..., : matrix.shape[-1] // 2]
        half = half.copy() if isinstance(half, np.ndarray) else half.clone().contiguous()
        values = [half if n == places[0] else value for n, value in enumerate(inputs)]
        return (values, True) if drawing.is_finite(values) else (inputs, False)


def _apart(value: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    if value.ndim < 2 or value.numel() <= value.shape[-1] or value.shape[-1] < 2 or not value.is_contiguous():
        return value
    with torch.no_grad():
        wide = torch.full((*value.shape[:-1], value.shape[-1] + _GAP), float("nan"), dtype=value.dtype)
        rows = wide.to(value.device)[..., : value.shape[-1]]
        rows.copy_(value)
    return rows.requires_grad_(value.requires_grad)
