"""Measure how much of the outputs the kernels computed, from a run in which nothing of what they wrote was left."""

from __future__ import annotations

import numpy as np

from accelopt_profiling.comparison.elements import Array
from accelopt_profiling.comparison.leaves import Leaf
from accelopt_profiling.gate.judge.saved_outputs import SavedOutputs

#: So many values are looked for before all are.
_FEW = 1024


def right_without_kernels(
    answers: SavedOutputs, actual: list[Leaf], masks: dict[int, Array] | None = None
) -> float | None:
    """Return the share of elements (those in ``masks``) that were right though all that kernels wrote was poisoned.

    Zeros, NaN, integers with all bits set and elements of an input that stayed need no kernel; None where no others are
    left, or nobody tried.
    """
    idle = answers.read("idle") if answers.has("idle") else ""
    if isinstance(idle, str) or len(idle) != len(actual):
        return None
    same = total = 0
    for number, (mine, full) in enumerate(zip(idle, actual, strict=True)):
        if mine.shape != full.shape or mine.values.dtype != full.values.dtype:
            continue
        floating = answers.expected[number].floating
        if floating and not answers.compare(mine.values, number, answers.allowed(mine, number)).fault:
            close = np.ones(full.shape, bool)
        else:
            close = mine.values == full.values
        matters = (full.values != 0) | (mine.values != full.values)
        if full.values.dtype.kind == "f":
            matters = matters & ~np.isnan(full.values)  # without kernels everything is NaN
        elif full.values.dtype.kind in "iu":
            matters = matters & (full.values != np.array(-1).astype(full.values.dtype))  # or has all bits set
        mask = (masks or {}).get(number)
        if mask is not None and mask.shape == full.shape:
            matters = matters & mask
        for leaf in answers.inputs:
            if leaf.shape == full.shape and leaf.library != "number":
                matters = matters & (full.values != leaf.values)
        total += int(np.count_nonzero(matters))
        same += int(np.count_nonzero(matters & close))
    return same / total if total else None


def only_moved(answers: SavedOutputs) -> bool:
    """Check whether every finite float that is expected occurs among the inputs or the model's parameters, or is zero
    or one: then moving data is enough. Integers, such as where a maximum lies, are no evidence: whether kernels compute
    is seen by floats.
    """
    pools = [np.array([0.0, 1.0, -1.0])]
    pools += [
        leaf.values.reshape(-1).astype(np.float64)
        for leaf in (*answers.inputs, *answers.parameters())
        if leaf.values.dtype.kind in "fiu"
    ]
    pool = np.concatenate(pools)
    floats = [n for n in answers.native if n.values.dtype.kind == "f"]
    outputs = [
        n.values.reshape(-1).astype(np.float64)
        for n in floats or answers.native
        if n.values.dtype.kind in "fiu"
    ]
    return all(_all_among(values[np.isfinite(values)], pool) for values in outputs)


def _all_among(values: Array, pool: Array) -> bool:
    """Check whether each of ``values`` is in ``pool``: a few of them first, since one that is not there says no."""
    step = values.size // _FEW
    if step > 1:
        few = np.unique(values[::step])
        at = np.minimum(np.searchsorted(few, pool), few.size - 1)
        if np.unique(at[few[at] == pool]).size < few.size:
            return False
    return bool(np.isin(values, pool).all())
