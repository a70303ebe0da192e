"""``tl.reduce`` and ``tl.associative_scan`` on the interpreter's values, without a Python step per element.

Values of many programs (see ``lockstep``) have one axis in front; ``front`` is the number of such axes, 0 or 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl

from accelopt_profiling.triton.interpreter.arithmetic import packed_as, wide
from accelopt_profiling.triton.interpreter.lockstep import LockstepBuilder, LockstepError, Varying, varies
from accelopt_profiling.triton.interpreter.numerics import is_packed
from accelopt_profiling.triton_adapter.interpreter import (
    COMBINE_ARGMAX,
    COMBINE_ARGMIN,
    COMBINE_MAX,
    COMBINE_MIN,
    COMBINE_SUM,
    TensorHandle,
)

Array = np.ndarray[Any, Any]


def reduce(builder: LockstepBuilder, value: Any, axis: Any, combine: Any, keep_dims: bool = False) -> Any:
    """Reduce a tensor, or a tuple of tensors together, along ``axis`` (None: all of it)."""
    inputs, axis = _counted(builder, value, axis)
    front = int(varies(tensor.handle for tensor in inputs))
    if front and axis is None and keep_dims:
        raise LockstepError("a reduction of everything that keeps its axes")
    data = [builder.every(t.handle) if front else t.handle.data for t in inputs]
    if front and axis is None:
        data, axis = [d.reshape(len(d), -1) for d in data], 0
    where = axis + front if axis is not None and axis >= 0 else axis
    results = _known_reduction(inputs, data, axis=where, combine=combine, keep_dims=keep_dims, front=front)
    if results is None:
        results = _tree(inputs, data, axis=where, combine=combine, keep_dims=keep_dims, front=front)
    return results if isinstance(value, tuple) else results[0]


def shape_of(value: Any) -> list[int]:
    """Return the shape of a tensor, or of a tuple of tensors of one shape."""
    return [int(n) for n in (value[0] if isinstance(value, tuple) else value).shape]


def reduced_shape(value: Any, axis: Any, keep_dims: bool) -> list[int]:
    """Return the shape of what ``reduce`` makes of a tensor, or of a tuple of them."""
    shape = shape_of(value)
    axis = axis.value if isinstance(axis, tl.constexpr) else axis
    if keep_dims:
        return [1] * len(shape) if axis is None else [*shape[:axis], 1, *shape[axis:][1:]]
    return [] if axis is None else [n for at, n in enumerate(shape) if at != axis % len(shape)]


def _counted(builder: LockstepBuilder, value: Any, axis: Any) -> tuple[tuple[Any, ...], int | None]:
    inputs = value if isinstance(value, tuple) else (value,)
    builder.meter.spend(sum(tensor.handle.data.size for tensor in inputs))
    if builder.counter is not None and builder.counter.enabled:
        for tensor in inputs:
            builder.counter.arithmetic(tensor.handle.data.size, tensor.dtype.scalar)
    return inputs, axis.value if isinstance(axis, tl.constexpr) else axis


def _known_reduction(
    inputs: tuple[Any, ...], every: list[Array], axis: int | None, combine: Any, keep_dims: bool, front: int
) -> Any:
    dtype = inputs[0].dtype
    data = wide(TensorHandle(every[0], dtype.scalar))
    if combine == COMBINE_SUM:
        total = data.sum(axis=axis, keepdims=keep_dims, dtype=_sum_type(data))
        return (_tensor(total, dtype, front),)
    if combine == COMBINE_MAX:
        return (_tensor(_reduce(np.fmax, data, axis, keep_dims), dtype, front),)
    if combine == COMBINE_MIN:
        return (_tensor(_reduce(np.fmin, data, axis, keep_dims), dtype, front),)
    if combine in (COMBINE_ARGMAX, COMBINE_ARGMIN):
        largest = combine == COMBINE_ARGMAX
        index = (np.argmax if largest else np.argmin)(data, axis=axis, keepdims=keep_dims)
        best = (np.max if largest else np.min)(data, axis=axis, keepdims=keep_dims)
        return _tensor(best, dtype, front), _tensor(index, tl.int32, front)
    return None


def _reduce(ufunc: Any, data: Array, axis: int | None, keep_dims: bool) -> Any:
    return ufunc.reduce(data, axis=axis, keepdims=keep_dims)


def _sum_type(data: Array) -> Any:
    return np.float32 if data.dtype == np.float16 else data.dtype if data.dtype != np.bool_ else np.int32


def _tensor(data: Any, dtype: Any, front: int) -> Any:
    values = np.asarray(data)
    return _rewrap(packed_as(values, dtype).data.reshape(values.shape), dtype, front)


def _rewrap(data: Array, dtype: Any, front: int) -> Any:
    """Return a tensor on values that are already in the interpreter's own representation."""
    shape = data.shape[front:]
    kind = tl.block_type(dtype.scalar, list(shape)) if shape else dtype.scalar
    handle = Varying if front else TensorHandle
    return tl.tensor(handle(data if shape else data.reshape(*data.shape, 1), dtype.scalar), kind)


def _combine(
    combine: Any, left: list[Array], right: list[Array], dtypes: list[Any], front: int
) -> list[Array]:
    pairs = [_rewrap(d, t, front) for d, t in zip((*left, *right), (*dtypes, *dtypes), strict=True)]
    results = combine(*pairs)
    results = results if isinstance(results, tuple) else (results,)
    return [
        packed_as(wide(m.handle), t).data.reshape(d.shape) if is_packed(t.scalar.name) or m.dtype != t
        else m.handle.data.reshape(d.shape)
        for m, t, d in zip(results, dtypes, left, strict=True)
    ]  # fmt: skip


def _along(data: Array, front: int, start: int | None, stop: int | None, step: int | None = None) -> Array:
    part = slice(start, stop, step)
    return data[:, part] if front else data[part]


def _tree(
    inputs: tuple[Any, ...], every: list[Array], axis: int | None, combine: Any, keep_dims: bool, front: int
) -> tuple[Any, ...]:
    """Combine neighbours until one is left: the order of operands is kept, associativity is used."""
    dtypes = [tensor.dtype for tensor in inputs]
    rank = every[0].ndim
    data = [d.reshape(-1) if axis is None else np.moveaxis(d, axis, front) for d in every]
    while (count := data[0].shape[front]) > 1:
        even = count // 2 * 2
        left = [_along(d, front, start=0, stop=even, step=2) for d in data]
        right = [_along(d, front, start=1, stop=even, step=2) for d in data]
        parts = _combine(combine, left, right=right, dtypes=dtypes, front=front)
        data = [
            np.concatenate([m, _along(d, front, even, None)], axis=front)
            for m, d in zip(parts, data, strict=True)
        ]
    results = []
    for d, dtype in zip(data, dtypes, strict=True):
        value = d[:, 0] if front else d[0]
        if keep_dims:
            value = np.reshape(value, (1,) * rank) if axis is None else np.expand_dims(value, axis)
        results.append(_rewrap(np.asarray(value), dtype, front))
    return tuple(results)


def scan(builder: LockstepBuilder, value: Any, axis: Any, combine: Any, reverse: bool = False) -> Any:
    """Compute the inclusive scan along ``axis`` by doubling steps. From the end when ``reverse``."""
    inputs, axis = _counted(builder, value, axis)
    front = int(varies(tensor.handle for tensor in inputs))
    where = axis + front if axis >= 0 else axis
    dtypes = [tensor.dtype for tensor in inputs]
    every = [builder.every(t.handle) if front else t.handle.data for t in inputs]
    data = [np.moveaxis(d, where, front) for d in every]
    if reverse:
        data = [np.flip(d, front) for d in data]
    step = 1
    while step < data[0].shape[front]:
        # Whole blocks, because a block's size is a power of two; the first ``step`` results are dropped.
        parts = _combine(
            combine, [np.roll(d, step, axis=front) for d in data], right=data, dtypes=dtypes, front=front
        )
        data = [
            np.concatenate([_along(d, front, None, step), _along(m, front, step, None)], axis=front)
            for m, d in zip(parts, data, strict=True)
        ]
        step *= 2
    if reverse:
        data = [np.flip(d, front) for d in data]
    results = tuple(
        _rewrap(np.ascontiguousarray(np.moveaxis(d, front, where)), t, front)
        for d, t in zip(data, dtypes, strict=True)
    )
    return results if isinstance(value, tuple) else results[0]
