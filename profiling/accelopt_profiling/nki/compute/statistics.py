"""Values of VectorE instructions over the free dimensions: means and variances, and running results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accelopt_profiling.nki.data.block import Array


def halves(x: Array) -> Array:
    """Count, mean and centred sum of squares per partition, in the six columns of ``bn_stats``: the statistics of
    the even elements, then those of the odd ones."""
    x = x.reshape(x.shape[0], -1)
    columns: list[Array] = []
    for half in (x[:, 0::2], x[:, 1::2]):
        mean = half.mean(axis=1) if half.shape[1] else np.zeros(len(x), x.dtype)
        spread = ((half - mean[:, None]) ** 2).sum(axis=1)
        columns += [np.full(len(x), half.shape[1], x.dtype), mean, spread]
    return np.stack(columns, axis=1)


def combined(x: Array) -> Array:
    """Return mean and variance per partition from the columns of ``halves``."""
    parts = x.reshape(x.shape[0], -1, 3)
    count, mean, spread = parts[:, :, 0], parts[:, :, 1], parts[:, :, 2]
    total = count.sum(axis=1)
    centre = (count * mean).sum(axis=1) / total
    square = (spread + count * (mean - centre[:, None]) ** 2).sum(axis=1)
    return np.stack([centre, square / total], axis=1)


def scanned(
    a: Array, b: Array, start: Any, first: Callable[..., Array], second: Callable[..., Array], reverse0: bool,
    reverse1: bool,
) -> Array:  # fmt: skip
    """``r[i] = second(first(a[i], r[i-1]), b[i])`` along the free dimension of (P, F); ``start``: one or P values."""
    # one column after another; transposed so that each step reads contiguous memory
    left, right = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    out = np.empty_like(left)
    state: Array = np.broadcast_to(np.asarray(start, dtype=left.dtype).reshape(-1), left.shape[1:])
    for i in range(len(left)):
        state = first(state, left[i]) if reverse0 else first(left[i], state)
        state = second(right[i], state) if reverse1 else second(state, right[i])
        out[i] = state
    return np.ascontiguousarray(out.T)
