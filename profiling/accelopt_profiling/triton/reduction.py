"""``tl.reduce`` and ``tl.associative_scan`` on the interpreter's values, without a Python step per element."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as stock

from accelopt_profiling.triton.arithmetic import Arithmetic, packed_as, wide
from accelopt_profiling.triton.numerics import is_packed


def reduce(builder: Arithmetic, value: Any, axis: Any, combine: Any, keep_dims: bool = False) -> Any:
    """Reduce a tensor, or a tuple of tensors together, along ``axis`` (None: all of it)."""
    axis = axis.value if isinstance(axis, tl.constexpr) else axis
    inputs = value if isinstance(value, tuple) else (value,)
    if builder.counter is not None and builder.counter.enabled:
        for tensor in inputs:
            builder.counter.arithmetic(tensor.handle.data.size, bool(tensor.dtype.is_floating()))
    results = _known_reduction(inputs, axis, combine, keep_dims)
    if results is None:
        results = _tree(inputs, axis, combine, keep_dims)
    return results if isinstance(value, tuple) else results[0]


def _known_reduction(inputs: tuple[Any, ...], axis: int | None, combine: Any, keep_dims: bool) -> Any:
    standard = tl.standard
    data = wide(inputs[0].handle)
    if combine == standard._sum_combine:
        total = data.sum(axis=axis, keepdims=keep_dims, dtype=_sum_type(data))
        return (_tensor(total, inputs[0].dtype),)
    if combine == standard._elementwise_max:
        return (_tensor(_reduce(np.fmax, data, axis, keep_dims), inputs[0].dtype),)
    if combine == standard._elementwise_min:
        return (_tensor(_reduce(np.fmin, data, axis, keep_dims), inputs[0].dtype),)
    if combine in (standard._argmax_combine_tie_break_left, standard._argmin_combine_tie_break_left):
        largest = combine == standard._argmax_combine_tie_break_left
        index = (np.argmax if largest else np.argmin)(data, axis=axis, keepdims=keep_dims)
        best = (np.max if largest else np.min)(data, axis=axis, keepdims=keep_dims)
        return _tensor(best, inputs[0].dtype), _tensor(index, tl.int32)
    return None


def _reduce(ufunc: Any, data: np.ndarray[Any, Any], axis: int | None, keep_dims: bool) -> Any:
    return ufunc.reduce(data, axis=axis, keepdims=keep_dims)


def _sum_type(data: np.ndarray[Any, Any]) -> Any:
    return np.float32 if data.dtype == np.float16 else data.dtype if data.dtype != np.bool_ else np.int32


def _tensor(data: Any, dtype: Any) -> Any:
    array = np.asarray(data)
    if array.shape == ():
        return tl.tensor(packed_as(array.reshape(1), dtype), dtype.scalar)
    return tl.tensor(packed_as(array, dtype), tl.block_type(dtype.scalar, list(array.shape)))


def _rewrap(data: np.ndarray[Any, Any], dtype: Any) -> Any:
    """A tensor on values that are already in the interpreter's own representation."""
    kind = tl.block_type(dtype.scalar, list(data.shape)) if data.shape else dtype.scalar
    return tl.tensor(stock.TensorHandle(data if data.shape else data.reshape(1), dtype.scalar), kind)


def _combine(combine: Any, left: list[Any], right: list[Any], dtypes: list[Any]) -> list[Any]:
    pairs = [_rewrap(d, t) for d, t in zip((*left, *right), (*dtypes, *dtypes), strict=True)]
    made = combine(*pairs)
    made = made if isinstance(made, tuple) else (made,)
    return [
        packed_as(wide(m.handle), t).data.reshape(d.shape) if is_packed(t.scalar.name) or m.dtype != t
        else m.handle.data.reshape(d.shape)
        for m, t, d in zip(made, dtypes, left, strict=True)
    ]  # fmt: skip


def _tree(inputs: tuple[Any, ...], axis: int | None, combine: Any, keep_dims: bool) -> tuple[Any, ...]:
    """Combine neighbours until one is left: the order of operands is kept, associativity is used."""
    dtypes = [tensor.dtype for tensor in inputs]
    rank = inputs[0].handle.data.ndim
    data = [
        t.handle.data.reshape(-1) if axis is None else np.moveaxis(t.handle.data, axis, 0) for t in inputs
    ]
    while data[0].shape[0] > 1:
        even = data[0].shape[0] // 2 * 2
        made = _combine(combine, [d[0:even:2] for d in data], [d[1:even:2] for d in data], dtypes)
        data = [np.concatenate([m, d[even:]]) for m, d in zip(made, data, strict=True)]
    results = []
    for d, dtype in zip(data, dtypes, strict=True):
        value = d[0]
        if keep_dims:
            value = np.reshape(value, (1,) * rank) if axis is None else np.expand_dims(value, axis)
        results.append(_rewrap(np.asarray(value), dtype))
    return tuple(results)


def scan(builder: Arithmetic, value: Any, axis: Any, combine: Any, reverse: bool = False) -> Any:
    """Inclusive scan along ``axis`` by doubling steps; from the end when ``reverse``."""
    axis = axis.value if isinstance(axis, tl.constexpr) else axis
    inputs = value if isinstance(value, tuple) else (value,)
    if builder.counter is not None and builder.counter.enabled:
        for tensor in inputs:
            builder.counter.arithmetic(tensor.handle.data.size, bool(tensor.dtype.is_floating()))
    dtypes = [tensor.dtype for tensor in inputs]
    data = [np.moveaxis(t.handle.data, axis, 0) for t in inputs]
    if reverse:
        data = [d[::-1] for d in data]
    step = 1
    while step < data[0].shape[0]:
        # Whole blocks, because a block's size is a power of two; the first ``step`` results are dropped.
        made = _combine(combine, [np.roll(d, step, axis=0) for d in data], data, dtypes)
        data = [np.concatenate([d[:step], m[step:]]) for m, d in zip(made, data, strict=True)]
        step *= 2
    if reverse:
        data = [d[::-1] for d in data]
    results = tuple(
        _rewrap(np.ascontiguousarray(np.moveaxis(d, 0, axis)), t) for d, t in zip(data, dtypes, strict=True)
    )
    return results if isinstance(value, tuple) else results[0]
