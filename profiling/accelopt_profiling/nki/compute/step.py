"""One deferred computation: what an instruction computes, and where the result goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import BITWISE, copy_values, real
from accelopt_profiling.nki.data.dtypes import is_float, to_integers, to_tfloat32
from accelopt_profiling.nki.data.index import BoolArray
from accelopt_profiling.nki.data.loop_counter import plain
from accelopt_profiling.nki.data.view import View


class ComputeStep:
    """``target = op(*params, *inputs)`` where ``where`` is true; with ``adds`` the result is added to the target.

    ``op`` is a function of a module, ``params`` are plain values: numbers, names of operations, types, shapes. Inputs
    are views, steps whose ``result`` is kept (``keep``), or numbers and arrays.
    """

    __slots__ = ("adds", "inputs", "keep", "op", "params", "result", "target", "where")

    def __init__(self, op: Callable[..., Any], inputs: Sequence[Any], params: tuple[Any, ...] = ()) -> None:
        self.op, self.inputs = op, [plain(item) for item in inputs]
        self.params = tuple([plain(value) for value in params]) if params else params
        self.target: View | None = None
        self.where: BoolArray | None = None
        self.adds = self.keep = False
        self.result: Any = None


def run_step(step: ComputeStep) -> None:
    """Compute a step, and write its result to the target."""
    values = []
    for item in step.inputs:
        if type(item) is View:
            item = item.array()
            if item.dtype.itemsize < 4 and is_float(item.dtype):
                item = item.astype(np.float32)
        elif type(item) is ComputeStep:
            item = item.result
        values.append(item)
    result = step.op(*step.params, *values)
    if step.keep:  # a copy: the target may take the result itself as its memory, and be written again
        step.result = result if step.target is None else np.array(result)
    target = step.target
    if target is not None:
        if target.block.dtype.kind in "iu":
            result = _as_integers(step, result, target)
        elif target.block.dtype.metadata:
            result = to_tfloat32(result)
        _store(target, result, step.where, step.adds and target.block.dtype.kind not in "iu", values)


def _as_integers(step: ComputeStep, result: Any, target: View) -> Any:
    """Return a result as the integers that an engine or a DMA writes, what it is added to included."""
    if step.adds and not (target.block.blank and target.whole and not target.block.fill):
        result = target.array() + np.asarray(result).reshape(target.array().shape)
    result = np.asarray(result)
    if result.dtype == target.block.dtype or any(type(p) is str and p in BITWISE for p in step.params):
        return result
    return to_integers(real(result) if step.op is copy_values else result, target.block.dtype)


def _store(target: View, result: Any, where: BoolArray | None, adds: bool, values: Sequence[Any]) -> None:
    """Write a result to the target: it becomes the block's memory where that is possible, else it is copied."""
    block = target.block
    if not isinstance(result, np.ndarray):
        result = np.asarray(result)
    if adds and not (block.blank and target.whole and not block.fill):
        memory = target.array(writable=True)
        np.add(memory, result.reshape(memory.shape), out=memory, casting="unsafe")
        return
    if target.whole and where is None and result.dtype == block.dtype and result.size == prod(block.shape):
        if not result.flags.c_contiguous:
            result = np.ascontiguousarray(result)
        elif any(isinstance(v, np.ndarray) and np.may_share_memory(result, v) for v in values):
            result = result.copy()
        block.adopt(result.reshape(block.shape))
        return
    shape = target.positions.shape if target.positions is not None else tuple(num for num, _ in target.dims)
    if result.shape != shape:
        result = result.reshape(shape) if result.size == prod(shape) else np.broadcast_to(result, shape)
    if target.positions is not None:
        storage = block.writable()
        storage.reshape(-1)[target.positions] = result
        return
    memory = target.array(writable=True)
    if any(
        isinstance(v, np.ndarray) and v.base is not None and np.may_share_memory(memory, v) for v in values
    ):
        result = result.copy()
    if where is None:
        np.copyto(memory, result, casting="unsafe")
    else:
        np.copyto(memory, result, casting="unsafe", where=where)
