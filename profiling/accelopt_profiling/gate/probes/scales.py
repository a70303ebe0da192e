"""Values as the problem draws them, three times as large, and a hundredth."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.gate.probes.probe import Array, Change, Drawing, ValueProbe
from accelopt_profiling.gate.probes.rewriting import Rewriting
from accelopt_profiling.gate.request import Case


class Original(ValueProbe):
    name = "original"
    catches = "Errors at the shapes and values that the problem states."

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        return inputs, True


class Large(ValueProbe):
    name = "large"
    catches = "Constants in the place of what depends on the values."
    factor = 3.0

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        return _Scaled(self.factor).of(inputs)


class Small(Large):
    name = "small"
    catches = "Terms that were dropped because they are small beside the drawn values, as an epsilon is."
    factor = 0.01


class _Scaled(Rewriting):
    keeps_symmetry = True

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def rule(self, array: Array) -> Array | None:
        return np.multiply(array, self.factor)
