"""``nki.isa``: over the free dimensions or the partitions: reductions, statistics, scans."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.group_operations import cumulated
from accelopt_profiling.nki.compute.operations import BITWISE, REDUCTIONS, combined, halves, real, scanned
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.instruction import GPSIMD, VECTOR
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.instructions.accumulators import accumulate_rows, initial_registers
from accelopt_profiling.nki.instructions.allocation import Allocation, allocated, cut
from accelopt_profiling.nki.instructions.enums import ReduceCmd
from accelopt_profiling.nki.instructions.operands import (
    into,
    on_chip,
    operator,
    per_partition,
    reduction,
    same_size,
    scalar_like,
)
from accelopt_profiling.nki.operations.table import operations


def tensor_reduce(dst: Any, op: Any, data: Any, axis: Any, negate: bool, keepdims: bool) -> Any:
    """Reduce along free dimensions on VectorE: with a ``dst`` the last ones, in Beta 1 any, with None all."""
    machine = current()
    tile, target = on_chip(machine, data, "data"), on_chip(machine, dst, "dst")
    name = reduction(machine, op, tile, target)
    if negate and name in BITWISE:
        machine.fault("unsupported", f"A reduction with {name} is not negated; arithmetic ones are.")
    if name == "average":
        machine.fault("unsupported", "Only tensor_partition_reduce averages; add, and multiply by 1 / n.")
    axes = _free_axes(machine, axis, tile)
    rank = len(tile.shape)
    last = axes == tuple(range(rank - len(axes), rank))
    if not last and (machine.version or not isinstance(dst, Allocation)):
        machine.fault(
            "out-of-bounds", f"axis {axis} is not the last dimensions of a tile of shape {tile.shape}."
        )
    if isinstance(dst, Allocation):
        box, (inner,) = cut(machine, dst, tile)
        sizes = [1 if a in axes else n for a, n in enumerate(inner.shape) if keepdims or a not in axes]
        shape = (tile.shape[0], *sizes[1:], *([1] if len(sizes) == 1 else []))
        rows_cut = box is not None and box[0] != (0, tile.shape[0])
        allocated(
            dst, shape, (box[0], *((0, n) for n in shape[1:])) if box is not None and rows_cut else None
        )
        tile = inner
    else:
        kept = tile.size // prod(tile.shape[a] for a in axes)
        if target.size != kept or target.shape[0] != tile.shape[0]:
            machine.fault(
                "out-of-bounds", f"The reduction of {tile.shape} over {axes} does not fit dst {target.shape}."
            )
    return into(machine, dst, "tensor_reduce", (VECTOR,), [tile], reduced, name, axes, negate, cost=tile)


def _free_axes(machine: Machine, axis: Any, tile: Tile) -> tuple[int, ...]:
    """Return the axes of a reduction in order, from 1 on.

    Raises:
        KernelFaultError: one is the partitions, or does not exist.
    """
    rank = len(tile.shape)
    if axis is None:
        return tuple(range(1, rank))
    named = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(sorted(a + rank if a < 0 else a for a in named))
    if 0 in axes:
        machine.fault(
            "unsupported",
            "Reducing over partitions is TensorE's work: multiply by ones, or transpose first; VectorE reduces free "
            "dimensions.",
        )
    if not all(0 < a < rank for a in axes):
        machine.fault("out-of-bounds", f"Axis {axis} does not exist in a tile of {rank} dimensions.")
    return axes


def reduced(name: str, axes: tuple[int, ...], negate: bool, x: Array) -> Array:
    """Return a tile reduced along ``axes``."""
    total = REDUCTIONS[name](x if name in BITWISE else real(x), axis=axes)
    return np.asarray(-total) if negate else total


def tensor_partition_reduce(dst: Any, op: Any, data: Any) -> Any:
    """Reduce over partitions on GpSimdE: slow."""
    machine = current()
    tile, target = on_chip(machine, data, "data"), on_chip(machine, dst, "dst")
    if isinstance(dst, Allocation):
        shape = (1, *tile.shape[1:])
        box, (tile,) = cut(machine, dst, tile)
        allocated(dst, shape, None if box is None else ((0, 1), *box[1:]))
    elif per_partition(machine, target) != (1, prod(tile.shape[1:])):
        machine.fault(
            "out-of-bounds", f"The reduction of {tile.shape} over partitions does not fit dst {target.shape}."
        )
    params = reduction(machine, op, tile, target), (0,), False
    return into(machine, dst, "tensor_partition_reduce", (GPSIMD,), [tile], reduced, *params, cost=tile)


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
    params = operator(machine, op0, bits=False), operator(machine, op1, bits=False), reverse0, reverse1
    start = scalar_like(machine, initial, a, "initial")
    return into(machine, dst, "tensor_tensor_scan", (VECTOR,), [a, b, start], scanned, *params, cost=a)


def tensor_scalar_cumulative(
    dst: Any, src: Any, op0: Any, op1: Any, imm0: Any, imm1: Any, reduce_cmd: Any,
) -> Any:  # fmt: skip
    """``r[i] = op1(op0(src[i], imm0), r[i-1])`` on VectorE.

    It begins with the neutral value (``reset_reduce``), ``imm1`` (``load_reduce``), or where the last one ended.
    """
    machine = current()
    tile, target = on_chip(machine, src, "src"), on_chip(machine, dst, "dst")
    same_size(machine, target, tile, "src")
    params = operator(machine, op0, bits=False), operator(machine, op1, bits=False)
    if reduce_cmd is ReduceCmd.idle:
        machine.fault(
            "unsupported", "tensor_scalar_cumulative takes reset_reduce, reduce or load_reduce, not idle."
        )
    loaded = scalar_like(machine, imm1, tile, "imm1") if reduce_cmd is ReduceCmd.load_reduce else None
    start = initial_registers(machine, VECTOR, op1, reduce_cmd, loaded, takes_initial=True)
    operands = [tile, scalar_like(machine, imm0, tile, "imm0"), start]
    result = into(machine, dst, "tensor_tensor_scan", (VECTOR,), operands, cumulated, *params, cost=tile)
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
    box, (tile,) = cut(machine, dst, tile)
    part = None if box is None else (box[0], (0, 6))
    if not allocated(dst, shape, part) and per_partition(machine, on_chip(machine, dst, "dst")) != shape:
        machine.fault("out-of-bounds", f"bn_stats gives six elements per partition; dst is {dst.shape}.")
    return into(machine, dst, "bn_stats", (VECTOR,), [tile], halves, cost=tile)


def bn_aggr(dst: Any, data: Any) -> Any:
    """Compute mean and variance per partition from one or more results of ``bn_stats``."""
    machine = current()
    tile = on_chip(machine, data, "data")
    rows = tile.shape[0]
    box, (tile,) = cut(machine, dst, tile)
    if prod(tile.shape[1:]) % 3:
        machine.fault("out-of-bounds", f"bn_aggr reads triples; data has the shape {tile.shape}.")
    part = None if box is None else (box[0], (0, 2))
    if not allocated(dst, (rows, 2), part) and per_partition(machine, on_chip(machine, dst, "dst")) != (
        rows,
        2,
    ):
        machine.fault(
            "out-of-bounds", f"bn_aggr gives a mean and a variance per partition; dst is {dst.shape}."
        )
    return into(machine, dst, "bn_aggr", (VECTOR,), [tile], combined, cost=tile)
