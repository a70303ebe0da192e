"""``neuronxcc.nki.isa``: one function per hardware instruction, by name; each returns the tile it writes."""

from __future__ import annotations

from math import prod
from typing import Any

from accelopt_profiling.nki.beta1.engines import dtype_or_none, two_operands
from accelopt_profiling.nki.compute.operations import REDUCTIONS, combined, halves, operation_name, scanned
from accelopt_profiling.nki.data.instruction import VECTOR
from accelopt_profiling.nki.emulator.machine import current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.operators import reduce


def tensor_reduce(
    op: Any, data: Any, axis: Any, *, dtype: Any = None, negate: bool = False, keepdims: bool = False,
    mask: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """Reduce along free dimensions on VectorE."""
    machine = current()
    name = operation_name(op)
    if name not in REDUCTIONS:
        machine.fault("unsupported", f"tensor_reduce cannot reduce with {name or op!r}.")
    return reduce(machine, name, data, axis, dtype, mask, keepdims, negate)


def bn_stats(data: Any, *, dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    """Count, mean and centred sum of squares per partition, in the six columns of the hardware's layout:
    the statistics of the even elements, then those of the odd ones."""
    machine = current()
    tile = machine.executor.operand(data)
    if prod(tile.shape[1:]) > 512:
        machine.fault(
            "capacity", f"bn_stats takes at most 512 values per partition, not {prod(tile.shape[1:])}."
        )

    return machine.executor.run(
        "bn_stats", (VECTOR,), [tile], halves, dtype_or_none(dtype), mask, (tile.shape[0], 6)
    )


def bn_aggr(data: Any, *, dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    """Compute mean and variance per partition from the columns of ``bn_stats``."""
    machine = current()
    tile = machine.executor.operand(data)
    return machine.executor.run(
        "bn_aggr", (VECTOR,), [tile], combined, dtype_or_none(dtype), mask, (tile.shape[0], 2)
    )


def tensor_tensor_scan(
    data0: Any, data1: Any, initial: Any, op0: Any, op1: Any, reverse0: bool = False, reverse1: bool = False, *,
    dtype: Any = None, mask: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """``r[i] = op1(op0(data0[i], r[i-1]), data1[i])`` along the free dimension on VectorE."""
    machine = current()
    first, second = two_operands(machine, op0), two_operands(machine, op1)

    def compute(a: Any, b: Any, start: Any) -> Any:
        return scanned(a, b, start, first, second, reverse0, reverse1)

    shape = machine.executor.operand(data0).shape
    return machine.executor.run(
        "tensor_tensor_scan", (VECTOR,), [data0, data1, initial], compute, dtype_or_none(dtype), mask, shape
    )
