"""Names that are both functions on tiles and the ``op`` of an instruction: ``nl.add``, ``nl.exp``, ``nl.max``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import (
    ACTIVATIONS,
    BINARY,
    PREDICATES,
    REDUCTIONS,
    VECTOR_UNARY,
    copy_values,
    operation_name,
)
from accelopt_profiling.nki.data.dtypes import as_dtype
from accelopt_profiling.nki.data.instruction import ENGINES, SCALAR, VECTOR
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.operations.table import Operation

#: Engines for tensor-scalar work the developer left to the compiler (``unknown_engine``). GpSimdE could do it too, but
#: published profiles show at most 2.6 % of its time used, so the compiler does not choose it.
MOVABLE = (VECTOR, SCALAR)


class NlToken:
    """A name of ``nl`` that kernels pass as the ``op`` of an instruction."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return f"nl.{self.__name__}"


class NlOperation(NlToken):
    """A name of ``nl`` that also computes when it is called on tiles."""

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        super().__init__(name)
        self._call = call

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._call(*arguments, **named)


def unary(operation: Operation, x: Any, dtype: Any, mask: Any = None) -> Any:
    """Compute ``nl.exp(x)`` and its like: one instruction."""
    function = ACTIVATIONS.get(operation.short) or VECTOR_UNARY[operation_name(operation.short)]
    if not isinstance(x, Tile):
        return function(np.float32(x))
    kind = None if dtype is None else as_dtype(dtype)
    engines = tuple(ENGINES[name] for name in operation.engines)
    return current().executor.run(operation.opcode, engines, [x], function, kind, mask)


def pairwise(operation: Operation, x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """Compute ``nl.add(x, y)`` and its like: tensor-scalar with a number or one value per partition, else
    tensor-tensor."""
    return binary(current(), operation.short, x, y, dtype, mask)


def reduction(operation: Operation, x: Any, axis: Any, dtype: Any, keepdims: bool, mask: Any = None) -> Tile:
    """Compute ``nl.sum(x, axis)`` and its like: a reduction along free dimensions on VectorE."""
    return reduce(current(), operation_name(operation.short), x, axis, dtype, mask, keepdims)


def per_partition(value: Any) -> bool:
    """Return True if ``value`` is a number or holds one number per partition."""
    if isinstance(value, Tile):
        return all(n == 1 for n in value.shape[1:]) and len(value.shape) > 0
    return True


def binary(machine: Machine, name: str, x: Any, y: Any, dtype: Any = None, mask: Any = None) -> Any:
    """Return one element-wise instruction with two operands; partitions are broadcast where a row meets a
    tile."""
    if not isinstance(x, Tile) and not isinstance(y, Tile):
        return BINARY[name](np.asarray(x), np.asarray(y))
    kind = as_dtype(dtype) if dtype is not None else _common(x, y)
    function = _predicate(BINARY[name]) if name in PREDICATES else BINARY[name]
    if isinstance(x, Tile) and isinstance(y, Tile):
        x, y = machine.executor.operand(x), machine.executor.operand(y)
        rows = max(x.shape[0], y.shape[0])
        x, y = (t if t.shape[0] in (rows, 0) else machine.broadcast(t, (rows, *t.shape[1:])) for t in (x, y))
        wide = next((t for t in (x, y) if not per_partition(t)), x)
        if per_partition(x) != per_partition(y):
            if name == "divide":
                return machine.executor.run(
                    "divide_scalar", (VECTOR,), [x, y], function, kind, mask, cost=wide
                )
            return machine.executor.run("tensor_scalar", MOVABLE, [x, y], function, kind, mask, cost=wide)
        opcode = "divide" if name == "divide" else "tensor_tensor"
        return machine.executor.run(opcode, (VECTOR,), [x, y], function, kind, mask, cost=wide)
    if name == "divide" and isinstance(y, Tile):
        return machine.executor.run(
            "reciprocal", (VECTOR,), [x, y], function, kind, mask, cost=machine.executor.operand(y)
        )
    return machine.executor.run(
        "tensor_scalar", MOVABLE, [x, y], function, kind, mask, cost=x if isinstance(x, Tile) else y
    )


def _predicate(function: Any) -> Any:
    return lambda *operands: function(*operands).astype(np.float32)


def _common(x: Any, y: Any) -> np.dtype[Any]:
    kinds = [t.dtype for t in (x, y) if isinstance(t, Tile)]
    if len(kinds) == 1 or kinds[0] == kinds[1]:
        return kinds[0]
    return max(kinds, key=lambda k: (k.itemsize, k.kind == "f"))


def reduce(
    machine: Machine, name: str, x: Any, axis: Any, dtype: Any, mask: Any, keepdims: bool, negate: bool = False,
    opcode: str = "tensor_reduce",
) -> Tile:  # fmt: skip
    """Reduce a tile along free dimensions; the result keeps the partition dimension."""
    tile = machine.executor.operand(x)
    rank = len(tile.shape)
    axes = (
        tuple(range(1, rank)) if axis is None else tuple(axis) if isinstance(axis, (list, tuple)) else (axis,)
    )
    axes = tuple(a + rank if a < 0 else a for a in axes)
    if 0 in axes:
        machine.fault(
            "unsupported", "Reducing over partitions is TensorE's work: multiply by ones, or transpose first."
        )
    if not all(0 < a < rank for a in axes):
        machine.fault("out-of-bounds", f"Axis {axis} does not exist in a tile of {rank} dimensions.")
    if mask is not None:
        resolved, where = machine.executor.resolve_mask(mask, tile.shape)
        if resolved is not None:
            if where is not None:
                machine.fault(
                    "unsupported", "A reduction takes masks that cut off whole rows or columns only."
                )
            if resolved[0] != (0, tile.shape[0]):
                rows = resolved[0]
                part = reduce(
                    machine, name, tile.within(resolved), axis, dtype, None, keepdims, negate, opcode
                )
                result = machine.executor.fresh_tile(
                    (tile.shape[0], *part.shape[1:]), part.dtype, MemorySpace.SBUF
                )
                assert part.producer is not None
                box = (rows, *((0, n) for n in part.shape[1:]))
                step = machine.executor.defer(copy_values, part)
                machine.executor.write(result, step, box)
                result.step = step
                result.valid, result.producer = box, part.producer
                part.producer.writes[-1] = result.region()
                return result
            tile = tile.within(resolved)
    kept = [1 if a in axes else n for a, n in enumerate(tile.shape)]
    shape = kept if keepdims else [n for a, n in enumerate(tile.shape) if a not in axes] or [tile.shape[0]]
    function = REDUCTIONS[name]

    def compute(values: Any) -> Any:
        total = function(values, axis=axes, keepdims=keepdims)
        return (-total if negate else total).reshape(shape if len(shape) > 1 else (*shape, 1))

    full = tuple(shape) if len(shape) > 1 else (*shape, 1)
    return machine.executor.run(
        opcode, (VECTOR,), [tile], compute, None if dtype is None else as_dtype(dtype), None, full
    )
