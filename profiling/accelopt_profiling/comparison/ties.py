"""Compare indices into an input (of its largest elements, of its order), which may name either of equal elements."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from accelopt_profiling.comparison.elements import Array


def name_equal_elements(actual: Array, expected: Array, inputs: Iterable[Array]) -> bool:
    """Check whether both arrays of indices name equal elements of one of ``inputs``, along one of its axes. An index
    for each place along the others, or several, which then have to differ as the expected ones do.
    """
    if actual.shape != expected.shape or {actual.dtype.kind, expected.dtype.kind} - set("iu"):
        return False
    return any(
        _equal_along(actual, expected, values, axis) for values in inputs for axis in range(values.ndim)
    )


def names_the_first(indices: Array, inputs: Iterable[Array]) -> bool:
    """Check whether single indices along one axis of one of ``inputs`` name the first of equal elements everywhere,
    somewhere of several.
    """
    return any(_first_along(indices, values, axis) for values in inputs for axis in range(values.ndim))


def _first_along(indices: Array, values: Array, axis: int) -> bool:
    others = (*values.shape[:axis], *values.shape[axis + 1 :])
    if indices.dtype.kind not in "iu" or indices.size != np.prod(others, dtype=int):
        return False
    if indices.shape != others and indices.shape != (*values.shape[:axis], 1, *values.shape[axis + 1 :]):
        return False
    along = indices.reshape(*values.shape[:axis], 1, *values.shape[axis + 1 :]).astype(np.int64)
    if not _within(along, values.shape[axis]):
        return False
    equal = values == np.take_along_axis(values, along, axis)
    several = bool((np.count_nonzero(equal, axis=axis) > 1).any())
    return several and np.array_equal(np.expand_dims(equal.argmax(axis=axis), axis), along)


def _equal_along(actual: Array, expected: Array, values: Array, axis: int) -> bool:
    others = (*values.shape[:axis], *values.shape[axis + 1 :])
    if actual.shape == others:
        mine, theirs = np.expand_dims(actual, axis), np.expand_dims(expected, axis)
    elif actual.ndim == values.ndim and (*actual.shape[:axis], *actual.shape[axis + 1 :]) == others:
        mine, theirs = actual, expected
    else:
        return False
    size = values.shape[axis]
    if not all(_within(indices, size) and _distinct(indices, axis) for indices in (mine, theirs)):
        return False
    one, other = (np.take_along_axis(values, indices.astype(np.int64), axis) for indices in (mine, theirs))
    return np.array_equal(one, other, equal_nan=True)


def _within(indices: Array, size: int) -> bool:
    return bool(indices.size) and int(indices.min()) >= 0 and int(indices.max()) < size


def _distinct(indices: Array, axis: int) -> bool:
    return bool((np.diff(np.sort(indices, axis=axis), axis=axis) != 0).all())
