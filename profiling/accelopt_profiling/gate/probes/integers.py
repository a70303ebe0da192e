"""Small whole numbers, on which sums and products are exact in every format, and rearrangements of them that keep what
a fingerprint of the inputs would take: sums, extremes, first and last elements.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from accelopt_profiling.gate.probes.probe import Array, Change, Drawing, ValueProbe, mixed
from accelopt_profiling.gate.probes.rewriting import Rewriting, Shuffled, is_float, least_size, smallest
from accelopt_profiling.gate.request import Case

#: Kinds of the reference's work that give the places of elements.
_INDICES = frozenset(["index of extreme", "extreme"])
#: So much of an array stays at either end when the rest is moved about.
_KEPT = 0.25


class Integers(ValueProbe):
    """Numbers from -2..2; from 0..2 where nothing is negative, from 1 on where nothing is near zero."""

    name = "integers"
    catches = "Any error of a sum or a product, however small, since these are exact."
    exact = True

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        return _Integers(mixed(case.seed if case.alters is None else case.alters)).of(inputs)

    def compares(self, drawing: Drawing) -> bool:
        """Check whether the reference may return the place of one of equal floats."""
        return self.name == "integers" and bool(_INDICES & drawing.kinds)


class SameSums(Integers):
    """The case of integers, with the elements of all but the first float array moved about (of the only one)."""

    name = "same sums"
    catches = "Results kept by a fingerprint of the inputs, which stays the same though what follows the first changes."
    rearranges = "integers"

    def inputs(self, drawing: Drawing, inputs: list[Any], case: Case) -> Change:
        inputs, changed = super().inputs(drawing, inputs, case)
        floats = [n for n, value in enumerate(inputs) if _is_float_array(value)]
        chosen = self.chosen(floats)
        for n in chosen:
            inputs[n] = Shuffled(case.seed + n, _KEPT).value(inputs[n])
        return inputs, changed and bool(chosen)

    def chosen(self, floats: list[int]) -> list[int]:
        return floats[1:] or floats


class SameRest(SameSums):
    """The case of integers, with the elements of the first float array moved about, where there are others."""

    name = "same rest"
    catches = "Results kept by a fingerprint of the inputs, which stays the same though the first changes."

    def chosen(self, floats: list[int]) -> list[int]:
        return floats[:1] if len(floats) > 1 else []


class _Integers(Rewriting):
    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = np.random.default_rng(seed)

    def rule(self, array: Array) -> Array | None:
        least = smallest(array)
        lowest = 1 if least > least_size(array) else -2 if least < 0 else 0
        return np.asarray(self.generator.integers(lowest, 3, size=array.shape), np.float64)


def _is_float_array(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return is_float(str(value.dtype)) and value.size > 1
    torch = sys.modules.get("torch")
    is_tensor = torch is not None and isinstance(value, torch.Tensor)
    return is_tensor and value.is_floating_point() and value.numel() > 1
