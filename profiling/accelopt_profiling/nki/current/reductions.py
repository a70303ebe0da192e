"""``nki.isa``: over the free dimensions or the partitions: reductions, statistics, scans."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.group_operations import cumulated
from accelopt_profiling.nki.compute.operations import combined, halves, scanned
from accelopt_profiling.nki.current.operands import (
    allocated,
    into,
    matched,
    on_chip,
    operator,
    per_partition,
    real,
    reduction,
    same_size,
    scalar_like,
)  # fmt: skip
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.instruction import GPSIMD, VECTOR
from accelopt_profiling.nki.emulator.machine import current
from accelopt_profiling.nki.frontend.accumulators import accumulate_rows, initial_registers
from accelopt_profiling.nki.frontend.enums import ReduceCmd
from accelopt_profiling.nki.operations.table import operations


def tensor_reduce(dst: Any, op: Any, data: Any, axis: Any, negate: bool, keepdims: bool) -> Any:
    """Reduce along the last free dimensions on VectorE."""
    machine = current()
    tile, target = on_chip(machine, data, "data"), on_chip(machine, dst, "dst")
    rank = len(tile.shape)
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(sorted(a + rank if a < 0 else a for a in given))
    if 0 in axes:
        machine.fault(
            "unsupported", "tensor_reduce reduces free dimensions; partitions are reduced by TensorE."
        )
    if axes != tuple(range(rank - len(axes), rank)):
        machine.fault(
            "out-of-bounds", f"axis {axis} is not the last dimensions of a tile of shape {tile.shape}."
        )
    kept = tile.size // prod(tile.shape[a] for a in axes)
    if target.size != kept or target.shape[0] != tile.shape[0]:
        machine.fault(
            "out-of-bounds", f"The reduction of {tile.shape} over {axes} does not fit dst {target.shape}."
        )
    function = reduction(machine, op)

    def compute(x: Array) -> Any:
        total = function(real(x), axis=axes)
        return -total if negate else total

    return into(machine, dst, "tensor_reduce", (VECTOR,), [tile], compute, cost=tile)


def tensor_partition_reduce(dst: Any, op: Any, data: Any) -> Any:
    """Reduce over partitions on GpSimdE: slow."""
    machine = current()
    tile, target = on_chip(machine, data, "data"), on_chip(machine, dst, "dst")
    if per_partition(machine, target) != (1, prod(tile.shape[1:])):
        machine.fault(
            "out-of-bounds", f"The reduction of {tile.shape} over partitions does not fit dst {target.shape}."
        )
    function = reduction(machine, op)
    return into(
        machine,
        dst,
        "tensor_partition_reduce",
        (GPSIMD,),
        [tile],
        lambda x: function(real(x), axis=0),
        cost=tile,
    )


def tensor_tensor_scan(
    dst: Any, data0: Any, data1: Any, initial: Any, op0: Any, op1: Any, reverse0: bool, reverse1: bool,
) -> Any:  # fmt: skip
    """``r[i] = op1(op0(data0[i], r[i-1]), data1[i])`` along the free dimension on VectorE."""
    machine = current()
    a, b = on_chip(machine, data0, "data0"), on_chip(machine, data1, "data1")
    target = on_chip(machine, dst, "dst")
    same_size(machine, target, a, "data0")
    same_size(machine, target, b, "data1")
    machine.rules.check_not_both_psum(a, b, "tensor_tensor_scan")
    first, second = operator(machine, op0), operator(machine, op1)
    start = scalar_like(machine, initial, a, "initial")

    def compute(x: Array, y: Array, begin: Any) -> Any:
        left, right = (real(v).reshape(v.shape[0], -1) for v in (x, y))
        return scanned(left, right, begin, first, second, reverse0, reverse1)

    return into(machine, dst, "tensor_tensor_scan", (VECTOR,), [a, b, start], compute, cost=a)


def tensor_scalar_cumulative(
    dst: Any, src: Any, op0: Any, op1: Any, imm0: Any, imm1: Any, reduce_cmd: Any,
) -> Any:  # fmt: skip
    """``r[i] = op1(op0(src[i], imm0), r[i-1])`` on VectorE.

    It begins with the neutral value (``reset_reduce``), ``imm1`` (``load_reduce``), or where the last one ended.
    """
    machine = current()
    tile, target = on_chip(machine, src, "src"), on_chip(machine, dst, "dst")
    same_size(machine, target, tile, "src")
    first, second = operator(machine, op0), operator(machine, op1)
    loaded = scalar_like(machine, imm1, tile, "imm1") if reduce_cmd is ReduceCmd.load_reduce else None
    start = initial_registers(machine, VECTOR, op1, reduce_cmd, loaded, takes_initial=True)

    def compute(x: Array, a: Any, begin: Any) -> Any:
        flat = real(x).reshape(x.shape[0], -1)
        return cumulated(np.asarray(first(flat, matched(a, flat)), np.float32), begin, second)

    number = scalar_like(machine, imm0, tile, "imm0")
    result = into(machine, dst, "tensor_tensor_scan", (VECTOR,), [tile, number, start], compute, cost=tile)
    accumulate_rows(machine, VECTOR, result)
    return result


def bn_stats(dst: Any, data: Any) -> Any:
    """Count, mean and centred sum of squares of the even elements, then of the odd ones: six columns."""
    machine = current()
    tile = on_chip(machine, data, "data")
    elements, most = prod(tile.shape[1:]), operations()["nisa.bn_stats"].limits["elements"]
    if elements > most:
        machine.fault("capacity", f"bn_stats takes at most {most} elements per partition, not {elements}.")
    shape = (tile.shape[0], 6)
    if not allocated(dst, shape) and per_partition(machine, on_chip(machine, dst, "dst")) != shape:
        machine.fault("out-of-bounds", f"bn_stats gives six elements per partition; dst is {dst.shape}.")
    return into(machine, dst, "bn_stats", (VECTOR,), [tile], lambda x: halves(real(x)), cost=tile)


def bn_aggr(dst: Any, data: Any) -> Any:
    """Compute mean and variance per partition from one or more results of ``bn_stats``."""
    machine = current()
    tile = on_chip(machine, data, "data")
    if prod(tile.shape[1:]) % 3:
        machine.fault("out-of-bounds", f"bn_aggr reads triples; data has the shape {tile.shape}.")
    allocated(dst, (tile.shape[0], 2))
    return into(machine, dst, "bn_aggr", (VECTOR,), [tile], lambda x: combined(real(x)), cost=tile)
