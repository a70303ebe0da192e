"""Checks operands, engines and operations of instructions, and lets the result be written to ``dst``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import (
    ACTIVATIONS,
    BINARY,
    BITWISE,
    REDUCTIONS,
    UNARY,
    operation_name,
)
from accelopt_profiling.nki.data.dtypes import MissingTypeError, as_dtype
from accelopt_profiling.nki.data.instruction import GPSIMD, SCALAR, VECTOR
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.instructions.allocation import Allocation
from accelopt_profiling.nki.instructions.enums import NkiEngine
from accelopt_profiling.nki.operations.table import table

#: Engines for tensor-scalar work the developer left to the compiler (``unknown_engine``). GpSimdE could do it too, but
#: published profiles show at most 2.6 % of its time used, so the compiler does not choose it.
MOVABLE = (VECTOR, SCALAR)


def on_chip(machine: Machine, value: Any, what: str) -> Any:
    """Return an operand that must be a tensor in SBUF or PSUM, or a destination that is to be allocated.

    Raises:
        KernelFaultError: it is something else, or lies in HBM.
    """
    if isinstance(value, Allocation):
        return value
    tile = machine.operand(value, what)
    if tile.block.info.memory is MemorySpace.HBM:
        load = "nisa.dma_copy" if machine.version else "nl.load"
        machine.fault("unsupported", f"The {what} lies in HBM; bring it to SBUF with {load} first.")
    if tile.positions is not None and machine.version and tile.addressing != "columns":
        machine.fault("unsupported", f"The {what} is an indirect view; only DMA follows indices.")
    return tile


def data_type(value: Any) -> np.dtype[Any]:
    """Return the dtype that a kernel names.

    Raises:
        KernelFaultError: there is no such type, or the package that holds it is missing.
    """
    try:
        return as_dtype(value)
    except (MissingTypeError, TypeError) as error:
        return current().fault("unsupported", str(error))


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
    if engine.unit not in (*usual, *more):
        machine.fault(
            "unsupported",
            f"This instruction cannot run on {engine.unit}; it runs on {', '.join((*usual, *more))}.",
        )
    return (engine.unit,)


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


def operator(machine: Machine, op: Any, *tiles: Any, unary: bool = False, bits: bool = True) -> str:
    """Return the name of an operation as ``arithmetic`` computes it: with two operands, or ``unary`` with one.

    ``tiles`` are the instruction's, ``bits`` says whether it takes operations on bits, which need integers.

    Raises:
        KernelFaultError: the engines have no such operation, or not of these types or on this core.
    """
    name = operation_name(op)
    if name not in BINARY and name != "bypass" and not (unary and name in UNARY):
        known = sorted((*BINARY, *UNARY)) if unary else sorted(BINARY)
        machine.fault("unsupported", f"The operation {name or op!r} is not one of {', '.join(known)}.")
    if machine.version and name != "bypass":
        _check_documented(machine, name)
    if name in BITWISE:
        _check_bits(machine, name, tiles, bits)
    return name


def _check_documented(machine: Machine, name: str, needs: str = "") -> None:
    """Check an operation against the table of those that today's engines have, here with a property it needs."""
    row = table()["operators"].get(_FULL_NAMES.get(name, name))
    if row is None or needs not in row:
        instead = "; multiply by the reciprocal" if name == "divide" else ""
        machine.fault(
            "unsupported",
            f"Today's engines {'do not reduce with' if needs else 'have no operation'} {name}{instead} (AWS's page "
            "nki.api.shared, Supported Math Operators).",
        )
    if "trn3" in row and machine.limits.generation < 4:
        machine.fault("unsupported", f"The operation {name} needs trn3 (AWS's release notes of NKI 0.4).")


def _check_bits(machine: Machine, name: str, tiles: Sequence[Any], bits: bool) -> None:
    if not bits:
        machine.fault("unsupported", f"This instruction takes arithmetic operations only, not {name}.")
    for tile in tiles:
        if tile.dtype is not None and tile.dtype.kind not in "iub":
            machine.fault(
                "unsupported", f"{name} works on the bits of integers; a tensor here is {tile.dtype}."
            )


#: The two operations that NumPy also has by a short name.
_FULL_NAMES = {"max": "maximum", "min": "minimum"}


def activation_name(machine: Machine, op: Any) -> str:
    """Return the name of the function that ScalarE applies.

    Raises:
        KernelFaultError: it has no such function.
    """
    name = operation_name(op)
    known = table()["activations"] if machine.version else ACTIVATIONS
    if name not in known:
        machine.fault(
            "unsupported", f"ScalarE has no function {name or op!r}; it has {', '.join(sorted(known))}."
        )
    return name


def reduction(machine: Machine, op: Any, *tiles: Any) -> str:
    """Return the name of an operation that reduces ``tiles`` along axes.

    Raises:
        KernelFaultError: there is no such reduction.
    """
    name = operation_name(op)
    if name not in REDUCTIONS:
        machine.fault(
            "unsupported", f"Nothing reduces with {name or op!r}; there are {', '.join(sorted(REDUCTIONS))}."
        )
    if machine.version and name != "average":
        _check_documented(machine, name, "reduces")
    if name in BITWISE:
        _check_bits(machine, name, tiles, True)
    return name


def into(
    machine: Machine, dst: Any, opcode: str, where: tuple[str, ...], operands: Sequence[Any], op: Callable[..., Any],
    *params: Any, cost: Tile | None = None,
) -> Tile:  # fmt: skip
    """Run an instruction whose result lies in ``dst``: ``op`` of ``params`` and the operands' values.

    ``cost`` is the tile that sets the cost, the result by default. Returns the result: that in a tile to be allocated
    is fresh.
    """
    if isinstance(dst, Allocation):
        if cost is not None:
            return machine.run(
                opcode, where, operands, op, dst.dtype, mask=dst.mask, shape=dst.shape, memory=dst.memory, cost=cost,
                params=params, part=dst.part,
            )  # fmt: skip
        assert dst.shape is not None
        assert dst.dtype is not None
        tile = machine.fresh_tile(dst.shape, dst.dtype, dst.memory)
        target = tile if dst.part is None else tile.within(dst.part)
        tile.producer = machine.run_into(target, opcode, where, operands, op, target, params=params).producer
        tile.step, tile.valid = machine.deferred.newest, dst.part
        return tile
    target = on_chip(machine, dst, "dst")
    tiles = [target, *(o for o in operands if isinstance(o, Tile))]
    if where == (GPSIMD,) and any(t.block.info.memory is MemorySpace.PSUM for t in tiles):
        machine.fault("unsupported", f"{opcode} on GpSimdE cannot reach PSUM; copy the tile to SBUF first.")
    return machine.run_into(
        target, opcode, where, operands, op, target if cost is None else cost, params=params
    )
