"""Operations that look over a whole row or over the 16 partitions of one core of GpSimdE, as functions of values."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import arithmetic, flat, matched
from accelopt_profiling.nki.data.block import Array

#: The partitions that one core of GpSimdE is connected to.
GROUP = 16


def gathered_runs(x: Array, at: Array, count: int, width: int) -> Array:
    """Return (P, count, width): for each group of partitions, runs of ``width`` elements of every partition.

    A group's first ``count`` indices, in elements, are read down its partitions first.
    """
    flat = x.reshape(x.shape[0], -1)
    result = np.empty((len(flat), count, width), x.dtype)
    for first in range(0, len(flat), GROUP):
        group = at[first : first + GROUP]
        starts = group.reshape(len(group), -1).T.reshape(-1)[:count]
        places = starts.astype(np.int64)[:, None] + np.arange(width)
        result[first : first + GROUP] = flat[first : first + GROUP][:, places]
    return result


def segment_bounds(x: Array) -> Array:
    """Return (P, 2, F): where the run of an element's number begins and ends; F and -1 where the number is 0."""
    flat = x.reshape(x.shape[0], -1)
    count = flat.shape[1]
    result = np.empty((len(flat), 2, count), np.float32)
    for row, ids in enumerate(flat):
        edges = np.flatnonzero(np.diff(ids)) + 1
        begins, ends = np.concatenate(([0], edges)), np.concatenate((edges, [count]))
        run = np.searchsorted(begins, np.arange(count), side="right") - 1
        result[row, 0] = np.where(ids == 0, count, begins[run])
        result[row, 1] = np.where(ids == 0, -1, ends[run])
    return result


def cumulated(first: str, second: str, x: Array, a: Any, begin: Any) -> Array:
    """``r[i] = second(first(x[i], a), r[i-1])`` along the free dimensions; ``begin``: one value, or one a partition."""
    values = flat(x)
    values = np.asarray(arithmetic(first, values, matched(a, values)), np.float32)
    state = np.broadcast_to(np.asarray(begin, np.float32).reshape(-1), (len(values),))
    out = np.empty_like(values)
    for at in range(values.shape[1]):
        state = np.asarray(arithmetic(second, values[:, at], state), np.float32)
        out[:, at] = state
    return out
