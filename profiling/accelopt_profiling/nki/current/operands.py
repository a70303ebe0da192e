"""Helps instructions with a ``dst``: checks operands and engines, and lets the result be written to ``dst``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import (
    ACTIVATIONS,
    BINARY,
    PREDICATES,
    REDUCTIONS,
    copy_values,
    operation_name,
    transpose_values,
)
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.instruction import GPSIMD
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.allocation import Allocation
from accelopt_profiling.nki.frontend.enums import NkiEngine

#: Operations that treat values as bits: integers stay integers.
BITWISE = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "invert"})


def on_chip(machine: Machine, value: Any, what: str) -> Any:
    """Return an operand that must be a tensor in SBUF or PSUM, or a destination that is to be allocated.

    Raises:
        KernelFaultError: it is something else, or lies in HBM.
    """
    if isinstance(value, Allocation):
        return value
    tile = machine.executor.operand(value, what)
    if tile.block.info.memory is MemorySpace.HBM:
        machine.fault("unsupported", f"The {what} lies in HBM; bring it to SBUF with nisa.dma_copy first.")
    if tile.positions is not None:
        machine.fault("unsupported", f"The {what} is an indirect view; only DMA follows indices.")
    return tile


def engines(
    machine: Machine, engine: Any, usual: tuple[str, ...], more: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return the engines an instruction may run on: the one asked for, or those the compiler would choose
    from.

    Raises:
        KernelFaultError: the engine asked for has no such instruction.
    """
    if engine is None or engine is NkiEngine.unknown:
        return usual
    if not isinstance(engine, NkiEngine):
        machine.fault("unsupported", f"The engine is named by a member of nisa.engine, not by {engine!r}.")
    if engine.value not in (*usual, *more):
        machine.fault(
            "unsupported",
            f"This instruction cannot run on {engine.value}; it runs on {', '.join((*usual, *more))}.",
        )
    return (engine.value,)


def per_partition(machine: Machine, tile: Tile) -> tuple[int, int]:
    """Return the number of partitions, and of elements in each."""
    return tile.shape[0], prod(tile.shape[1:])


def same_size(machine: Machine, dst: Tile | Allocation, source: Tile, what: str) -> None:
    """Check that both have as many partitions and as many elements per partition.

    Raises:
        KernelFaultError: they differ.
    """
    if not isinstance(dst, Allocation) and per_partition(machine, dst) != per_partition(machine, source):
        machine.fault(
            "out-of-bounds",
            f"dst has the shape {dst.shape} and {what} {source.shape}: partitions and elements in each must agree.",
        )


def allocated(dst: Any, shape: tuple[int, ...]) -> bool:
    """Return whether ``dst`` is to be allocated; it gets the ``shape`` then."""
    if isinstance(dst, Allocation):
        dst.shape = shape
    return isinstance(dst, Allocation)


def scalar_like(machine: Machine, value: Any, data: Tile, what: str) -> Any:
    """Return a number, or a tensor with one element per partition of ``data``.

    Raises:
        KernelFaultError: it is neither.
    """
    if isinstance(value, Tile):
        tile = on_chip(machine, value, what)
        if per_partition(machine, tile) != (data.shape[0], 1):
            machine.fault(
                "out-of-bounds",
                f"The {what} has the shape {tile.shape}; it is a number, or one element for each partition.",
            )
        return tile
    if value is None:
        machine.fault("unsupported", f"The {what} is missing.")
    return value


def matched(value: Any, data: Array) -> Any:
    """Return an operand in the shape of ``data``: same elements regrouped, one value per partition, or a
    number."""
    if not isinstance(value, np.ndarray):
        return np.float32(value) if data.dtype.kind == "f" else value
    if value.shape == data.shape:
        return value
    if value.size == data.size:
        return value.reshape(data.shape)
    if value.size == data.shape[0]:
        return value.reshape(data.shape[0], *[1] * (data.ndim - 1))
    return value


def real(value: Any) -> Any:
    """Return the operand as arithmetic instructions see it: in float32."""
    if isinstance(value, np.ndarray) and value.dtype != np.float32:
        return value.astype(np.float32)
    return value


def operator(machine: Machine, op: Any) -> Callable[..., Any]:
    """Return the function of an operation with two operands; arithmetic is done in float32, bits stay bits.

    Raises:
        KernelFaultError: the engines have no such operation.
    """
    name = operation_name(op)
    if name == "bypass":
        return lambda x, _: x
    function = BINARY.get(name)
    if function is None:
        return machine.fault(
            "unsupported", f"The operation {name or op!r} is not one of {', '.join(sorted(BINARY))}."
        )
    if name in BITWISE:
        return function
    if name in PREDICATES:
        return lambda a, b: function(real(a), real(b)).astype(np.float32)
    return lambda a, b: function(real(a), real(b))


def activation_function(machine: Machine, op: Any) -> Callable[[Array], Array]:
    """Return the function that ScalarE applies.

    Raises:
        KernelFaultError: it has no such function.
    """
    name = operation_name(op)
    if name not in ACTIVATIONS:
        machine.fault(
            "unsupported", f"ScalarE has no function {name or op!r}; it has {', '.join(sorted(ACTIVATIONS))}."
        )
    return ACTIVATIONS[name]


def reduction(machine: Machine, op: Any) -> Callable[..., Array]:
    """Return the function that reduces along axes with an operation.

    Raises:
        KernelFaultError: there is no such reduction.
    """
    name = operation_name(op)
    if name not in REDUCTIONS:
        machine.fault(
            "unsupported", f"Nothing reduces with {name or op!r}; there are {', '.join(sorted(REDUCTIONS))}."
        )
    return REDUCTIONS[name]


def into(
    machine: Machine, dst: Any, opcode: str, where: tuple[str, ...], operands: Sequence[Any],
    function: Callable[..., Array], cost: Tile | None = None, more: Sequence[Tile] = (),
) -> Tile:  # fmt: skip
    """Run an instruction whose result lies in ``dst``: ``function`` of the operands' values, in ``dst``'s shape.

    ``more`` are further tensors it touches, for the rule that GpSimdE has no way to PSUM. Returns the result, fresh.
    """
    if isinstance(dst, Allocation):
        return machine.executor.run(
            opcode, where, operands, function, dst.dtype, dst.mask, dst.shape, cost=cost
        )
    target = on_chip(machine, dst, "dst")
    tiles = [target, *more, *(o for o in operands if isinstance(o, Tile))]
    if where == (GPSIMD,) and any(t.block.info.memory is MemorySpace.PSUM for t in tiles):
        machine.fault("unsupported", f"{opcode} on GpSimdE cannot reach PSUM; copy the tile to SBUF first.")
    shape = target.shape

    def compute(*values: Any) -> Array:
        result: Array = np.asarray(function(*values)).reshape(shape)
        if any(isinstance(v, np.ndarray) and np.may_share_memory(result, v) for v in values):
            result = result.copy()
        return result

    moves = function is copy_values or function is transpose_values
    result = machine.executor.run(
        opcode,
        where,
        operands,
        function if moves else compute,
        target.dtype,
        None,
        shape,
        cost=target if cost is None else cost,
    )
    for tile in tiles:
        index = getattr(tile, "index", None)
        if index is not None and result.producer is not None:
            result.producer.reads.append(index.region())
    if not repeats(target) or not machine.executor.full:
        machine.assignment.settle(target, result)
        return result
    assert (
        result.producer is not None
    )  # several results lie in one place: the instruction itself has them all
    result.producer.writes[:] = [target.region()]
    machine.executor.write(target, machine.executor.defer(np.copy, result))
    return result


def repeats(tile: Tile) -> bool:
    """Return True if elements of a tile lie in the same place, by a step of 0."""
    return any(step == 0 and num > 1 for num, step in tile.dims)
