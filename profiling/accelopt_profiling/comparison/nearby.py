"""How far the reference's results lie apart for inputs that differ by a few roundings."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from accelopt_profiling.comparison.tolerance import Allowed

Array = np.ndarray[Any, Any]
_CHUNK = 1 << 22  # elements looked at together


def moved(value: Any, by: float, generator: np.random.Generator) -> Any:
    """Return float64 arrays and tensors with each element off by up to ``by`` of its size."""
    if type(value) in (list, tuple):
        return type(value)(moved(v, by, generator) for v in value)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor) and value.is_floating_point():
        factors = torch.from_numpy(1.0 + by * generator.uniform(-1, 1, tuple(value.shape)))
        return value * factors.to(value.device)
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return value * (1.0 + by * generator.uniform(-1, 1, value.shape))
    return value


def floats(value: Any) -> Array | None:
    """Return an array or tensor of floats as float64, in the same memory if it is that; None for anything else."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        array: Array = value.detach().double().cpu().numpy()
        return array if value.is_floating_point() else None
    if isinstance(value, np.ndarray) and str(value.dtype).startswith(("float", "bfloat")):
        return value.astype(np.float64, copy=False)
    return None


def moves_rows(value: Any, expected: Any, limit: Allowed) -> bool:
    """Check whether a row (last axis) of ``value`` is further from the expected one than the tolerance."""
    if not getattr(expected, "shape", ()) or getattr(value, "shape", None) != expected.shape:
        return False
    columns = max(expected.shape[-1], 1)
    for mine, theirs in zip(_pieces(value, columns), _pieces(expected, columns), strict=True):
        if mine is None or theirs is None:
            return False
        with np.errstate(invalid="ignore", over="ignore"):
            bound = limit.relative * np.linalg.norm(theirs, axis=1) + limit.absolute * math.sqrt(columns)
            if (np.linalg.norm(mine - theirs, axis=1) > bound).any():
                return True
    return False


def farther(one: Array | None, other: Array | None, expected: Array | None) -> Array | None:
    """Return for each element the value of the two that lies farther from the expected one; ``one`` where the three do
    not fit."""
    if one is None or other is None or expected is None or not one.shape == other.shape == expected.shape:
        return one
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(other - expected) > np.abs(one - expected), other, one)


def _pieces(value: Any, columns: int) -> Iterator[Array | None]:
    rows = value.reshape(-1, columns)
    step = max(1, _CHUNK // columns)
    for start in range(0, rows.shape[0], step):
        yield floats(rows[start : start + step])
