"""Names that are both functions on tiles and the ``op`` of an instruction: ``nl.add``, ``nl.exp``, ``nl.max``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import (
    ACTIVATIONS,
    BINARY,
    BITWISE,
    PREDICATES,
    VECTOR_UNARY,
    flipped,
    operation_name,
    predicate,
)
from accelopt_profiling.nki.data.dtypes import as_dtype
from accelopt_profiling.nki.data.instruction import ENGINES, SCALAR, VECTOR
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.instructions.allocation import Allocation
from accelopt_profiling.nki.instructions.operands import MOVABLE
from accelopt_profiling.nki.instructions.reductions import tensor_reduce
from accelopt_profiling.nki.operations.table import Operation


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
    machine = current()
    function = ACTIVATIONS.get(operation.short) or VECTOR_UNARY[operation_name(operation.short)]
    if machine.version:
        tile = machine.operand(x, f"operand of {operation.name}")
        if operation.short == "logical_not" and tile.dtype.kind in "iu":
            function = flipped
    elif not isinstance(x, Tile):
        return function(np.float32(x))
    kind = None if dtype is None else as_dtype(dtype)
    engines = tuple(ENGINES[name] for name in operation.engines)
    return machine.run(operation.opcode, engines, [x], function, kind, mask)


def pairwise(operation: Operation, x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """Compute ``nl.add(x, y)`` and its like: tensor-scalar with a number or one value per partition, else
    tensor-tensor."""
    machine = current()
    if machine.version:
        _check_pair(machine, operation, x, y)
    return binary(machine, operation.short, x, y, dtype, mask)


def _check_pair(machine: Machine, operation: Operation, x: Any, y: Any) -> None:
    """Check two operands of today's dialect: one is a tile at least, two have one shape, bits are of whole numbers.

    A column beside a tile is told of: AWS's known issues forbid what its examples do.
    """
    tiles = [machine.operand(t) for t in (x, y) if isinstance(t, Tile)]
    if not tiles:
        machine.fault("unsupported", f"{operation.name} takes a tile at least, not two numbers.")
    if operation.short in BITWISE:
        numbers = [v for v in (x, y) if not isinstance(v, Tile)]
        if not all(isinstance(v, (int, np.integer)) for v in numbers):
            machine.fault(
                "unsupported", f"{operation.name} works on the bits of whole numbers, not of {numbers[0]!r}."
            )
    if len(tiles) < 2 or tiles[0].shape == tiles[1].shape:
        return
    shapes = f"{tiles[0].shape} and {tiles[1].shape}"
    if tiles[0].shape[0] != tiles[1].shape[0] or not any(map(per_partition, tiles)):
        machine.fault(
            "unsupported",
            f"{operation.name} of {shapes}: both have one shape (known issues of NKI 0.4); nl.broadcast_to makes one.",
        )
    machine.diagnostics.report(
        "contradiction",
        f"{operation.name} of {shapes} is computed with one value for each partition, as AWS's example of nl.abs_max "
        "does; the known issues of NKI 0.4 say that shapes must be the same. nisa.tensor_scalar is sure to work.",
        "information",
    )


def reduction(
    operation: Operation, x: Any, axis: Any, dtype: Any, keepdims: bool = False, mask: Any = None
) -> Tile:
    """Compute ``nl.sum(x, axis)`` and its like: a reduction along free dimensions on VectorE."""
    return reduce(operation.short, x, axis, dtype, mask, keepdims)


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
    if name == "power" and machine.version and not (isinstance(x, Tile) and isinstance(y, Tile)):
        machine.fault(
            "unsupported",
            "nl.power takes two tiles, no number (known issues of NKI 0.4); nl.square multiplies.",
        )
    kind = as_dtype(dtype) if dtype is not None else _common(x, y)
    op, params = (predicate, (name,)) if name in PREDICATES else (BINARY[name], ())
    if isinstance(x, Tile) and isinstance(y, Tile):
        x, y = machine.operand(x), machine.operand(y)
        rows = max(x.shape[0], y.shape[0])
        x, y = (t if t.shape[0] in (rows, 0) else machine.broadcast(t, (rows, *t.shape[1:])) for t in (x, y))
        wide = next((t for t in (x, y) if not per_partition(t)), x)
        if per_partition(x) != per_partition(y):
            opcode, engines = ("divide_scalar", (VECTOR,)) if name == "divide" else ("tensor_scalar", MOVABLE)
        else:
            opcode, engines = "divide" if name == "divide" else "tensor_tensor", (VECTOR,)
    elif name == "divide" and isinstance(y, Tile):
        opcode, engines, wide = "reciprocal", (VECTOR,), machine.operand(y)
    else:
        opcode, engines, wide = "tensor_scalar", MOVABLE, x if isinstance(x, Tile) else y
    return machine.run(opcode, engines, [x, y], op, kind, mask, cost=wide, params=params)


def _common(x: Any, y: Any) -> np.dtype[Any]:
    kinds = [t.dtype for t in (x, y) if isinstance(t, Tile)]
    if len(kinds) == 1 or kinds[0] == kinds[1]:
        return kinds[0]
    return max(kinds, key=lambda k: (k.itemsize, k.kind == "f"))


def reduce(name: str, x: Any, axis: Any, dtype: Any, mask: Any, keepdims: bool, negate: bool = False) -> Tile:
    """Reduce a tile along free dimensions; the result keeps the partition dimension."""
    allocation = Allocation(None if dtype is None else as_dtype(dtype), mask)
    result: Tile = tensor_reduce(allocation, name, x, axis, negate, keepdims)
    return result


def mean(x: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, mask: Any = None) -> Any:
    """Compute ``nl.mean``: a sum in float32, times what one element counts."""
    total = reduce("add", x, axis, np.float32, mask, keepdims)
    return binary(current(), "multiply", total, total.size / x.size, dtype or x.dtype)


def var(x: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, mask: Any = None) -> Any:
    """Compute ``nl.var``: the mean of the squares of what is left of the mean, all in float32."""
    machine = current()
    middle = mean(machine.operand(x), axis, np.float32, True, mask)
    centred = binary(machine, "subtract", x, middle, np.float32, mask)
    squares = machine.run("activation", (SCALAR,), [centred], np.square, None, mask)
    return mean(squares, axis, dtype or x.dtype, keepdims or bool(machine.version), mask)


def rms_norm(
    x: Any, w: Any, axis: Any, n: int, epsilon: float | None = None, dtype: Any = None, compute_dtype: Any = None,
    mask: Any = None,
) -> Any:  # fmt: skip
    """Compute ``x / RMS(x) * w`` with the root mean square of ``n`` values along ``axis``."""
    machine = current()
    kind = np.dtype(np.float32) if compute_dtype is None else as_dtype(compute_dtype)
    squares = machine.run("activation", (SCALAR,), [x], np.square, kind, mask)
    total = binary(machine, "multiply", reduce("add", squares, axis, None, mask, True), 1.0 / n, None, mask)
    mean_square = binary(machine, "add", total, 1e-6 if epsilon is None else epsilon, None, mask)
    root = machine.run("activation", (SCALAR,), [mean_square], ACTIVATIONS["rsqrt"], None, mask)
    return binary(
        machine, "multiply", binary(machine, "multiply", x, root, kind, mask), w, dtype or x.dtype, mask
    )
