"""Inputs at the ends of what their types hold or functions bear: where exponentials and narrow sums overflow."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from accelopt_profiling.gate.inputs.distributions import Array, Rewriting
from accelopt_profiling.gate.inputs.lopsided import largest_positive

#: Kinds of the reference's work (``observe.hostwork``) that exponentials are in.
_EXPONENTIALS = frozenset(["exp", "activation", "sigmoid", "tanh", "softmax", "loss", "log"])
#: float32's exponential overflows at 88.7, its square at 44.4; smaller ones where the reference itself is infinite.
_FAR = (100.0, 60.0, 30.0)
#: Bits of the integer types whose whole range is a number's; wider ones are places or counts as a rule.
_NARROW = {"int8": (-127, 127), "uint8": (0, 255), "int16": (-32767, 32767)}
#: Integers that were drawn at random are at least so many, of so many kinds.
_MANY, _KINDS = 16, 4
#: The share of integers that are at one end of their range.
_AT_END = 0.875


def far_elements(
    inputs: list[Any], seed: int, work: Collection[str], usable: Callable[[list[Any]], bool]
) -> tuple[list[Any], bool]:
    """Return the inputs with the float arrays of both signs (or the largest one, if there is none) with two elements
    in each row at a hundred, one with each sign, and whether anything changed. Nothing does unless the reference's
    ``work`` may take exponentials; the elements are nearer where its results are not ``usable``.
    """
    if not _EXPONENTIALS & set(work):
        return inputs, False
    for size in _FAR:
        state = _Far(seed, size, largest_positive(inputs))
        changed = [state.value(v) for v in inputs]
        if not state.changed or usable(changed):
            return changed, state.changed
    return inputs, False


class _Far(Rewriting):
    def __init__(self, seed: int, size: float, positive: tuple[int, ...] | None) -> None:
        super().__init__()
        self.seed, self.size, self.positive = seed, size, positive

    def rule(self, array: Array) -> Array | None:
        finite = array[np.isfinite(array)]
        both = bool((finite < 0).any() and (finite > 0).any())
        if array.ndim < 1 or array.shape[-1] < 2 or not (array.shape == self.positive or both):
            return None
        columns = array.shape[-1]
        places = np.random.default_rng((self.seed, columns)).choice(columns, 2, replace=False)
        moved: Array = array.copy()
        moved[..., places[0]] = self.size
        moved[..., places[1]] = -self.size
        return moved


def end_integers(inputs: list[Any], seed: int) -> tuple[list[Any], bool]:
    """Return the inputs with the arrays of int8, uint8 and int16 that were drawn at random, with most of their
    elements at an end of the type's range (one end in one array, the other in the next), and whether anything
    changed. Codes of fewer bits, which fill the range of those, stay within it.
    """
    state = _Ends(np.random.default_rng(seed))
    return [state.value(v) for v in inputs], state.changed


class _Ends:
    def __init__(self, generator: np.random.Generator) -> None:
        self.generator, self.changed, self.upper = generator, False, True

    def value(self, value: Any) -> Any:
        if type(value) in (list, tuple):
            return type(value)(self.value(v) for v in value)
        torch = sys.modules.get("torch")
        is_tensor = torch is not None and isinstance(value, torch.Tensor)
        name = str(getattr(value, "dtype", "")).removeprefix("torch.")
        if name not in _NARROW or not (is_tensor or isinstance(value, np.ndarray)):
            return value
        array = value.detach().cpu().numpy() if is_tensor else value
        if not _drawn(array):
            return value
        low, high = _range(array, *_NARROW[name])
        end = high if self.upper or low == 0 else low
        self.upper, self.changed = not self.upper, True
        at_end = self.generator.random(array.shape) < _AT_END
        made = np.where(at_end, end, array).astype(array.dtype)
        return torch.from_numpy(made).to(value.device) if torch is not None and is_tensor else made


def _drawn(array: Array) -> bool:
    """Check whether these are many numbers that repeat in no order."""
    flat = array.reshape(-1)
    if flat.size < _MANY or len(np.unique(flat)) < _KINDS:
        return False
    steps = np.diff(flat.astype(np.int64))
    return bool((steps < 0).any() and (steps > 0).any())


def _range(array: Array, low: int, high: int) -> tuple[int, int]:
    """Return the least and the largest number to use: those of the type, or of the fewer bits that were drawn from."""
    least, most = int(array.min()), int(array.max())
    bits = most.bit_length()
    full = most == (1 << bits) - 1 and least in (0, -most, -most - 1)
    return (least, most) if full else (low, high)
