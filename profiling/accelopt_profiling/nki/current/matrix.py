"""``nki.isa``: products and transposes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import multiply_double_rows, multiply_values, transpose_values
from accelopt_profiling.nki.current.operands import (
    engines,
    into,
    on_chip,
    per_partition,
)  # fmt: skip
from accelopt_profiling.nki.data.instruction import TENSOR, VECTOR
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile


def nc_matmul(
    dst: Any, stationary: Any, moving: Any, is_stationary_onezero: bool, is_moving_onezero: bool,
    is_transpose: bool, accumulate: bool | None, perf_mode: Any,
) -> Any:  # fmt: skip
    """``dst = stationary[K, M].T @ moving[K, N]`` on TensorE, in float32.

    With ``accumulate=None`` the first product written to a place in PSUM overwrites it and later ones add. In the mode
    ``double_row`` both operands have two rows of float8 in each partition, [K, 2, M] and [K, 2, N], and all are summed.
    """
    machine = current()
    target = on_chip(machine, dst, "dst")
    left = on_chip(machine, stationary, "stationary operand")
    right = on_chip(machine, moving, "moving operand")
    double = _double_rows(machine, perf_mode, left, right)
    if target.block.info.memory is not MemorySpace.PSUM:
        machine.fault("unsupported", "nc_matmul writes to PSUM; allocate dst with buffer=nl.psum.")
    rows_of = (left[:, 0], right[:, 0]) if double else (left, right)
    machine.rules.check_matmul(*rows_of)
    if (left.dtype.itemsize >= 4) != (right.dtype.itemsize >= 4):
        machine.fault(
            "unsupported",
            f"nc_matmul multiplies {left.dtype} with {right.dtype}; either both are float32 or neither.",
        )
    rows, columns = (prod(tile.shape[1:]) for tile in rows_of)
    if per_partition(machine, target) != (rows, columns):
        machine.fault("out-of-bounds", f"The product has the shape ({rows}, {columns}), dst {target.shape}.")
    machine.rules.check_bank(target)
    adds = machine.executor.touched(target) if accumulate is None else bool(accumulate)

    product = multiply_double_rows if double else multiply_values
    result = machine.executor.product(
        target, left, right, transpose_values if is_transpose else product, adds and not is_transpose
    )
    result.transpose = is_transpose
    result.onezero = is_moving_onezero or is_stationary_onezero
    result.stationary, result.free, result.partitions = rows, columns, right.shape[0]
    result.flops = 2 * left.shape[0] * rows * columns * (2 if double else 1)


def _double_rows(machine: Machine, perf_mode: Any, left: Tile, right: Tile) -> bool:
    """Return whether a product takes two rows of each partition at once."""
    mode = getattr(perf_mode, "value", perf_mode) or "none"
    if mode == "none":
        return False
    if mode != "double_row":
        machine.fault("unsupported", f"nc_matmul's perf_mode {mode} is not emulated; leave it out.")
    if machine.limits.generation < 3 or not all(t.dtype.name.startswith("float8") for t in (left, right)):
        machine.fault(
            "unsupported",
            f"double_row takes float8 operands, from trn2 on; these are {left.dtype} and {right.dtype}.",
        )
    if (left.shape[1:2], right.shape[1:2]) != ((2,), (2,)):
        machine.fault("out-of-bounds", f"double_row of {left.shape} and {right.shape}: the second size is 2.")
    return True


def nc_transpose(dst: Any, data: Any, engine: Any) -> Any:
    """Swap partitions and free elements: on TensorE from SBUF to PSUM, or on VectorE for at most 32x32."""
    machine = current()
    target, tile = on_chip(machine, dst, "dst"), on_chip(machine, data, "data")
    rows, columns = per_partition(machine, tile)
    if per_partition(machine, target) != (columns, rows):
        machine.fault(
            "out-of-bounds",
            f"The transpose of {tile.shape} has the shape ({columns}, {rows}), dst {target.shape}.",
        )
    (chosen,) = engines(machine, engine, (_transposer(target, rows, columns),), (TENSOR, VECTOR))
    limit = 32 if chosen == VECTOR else 128
    if max(rows, columns) > limit:
        machine.fault(
            "capacity", f"{chosen} transposes at most {limit}x{limit}; this tile is {rows}x{columns}."
        )
    if chosen == TENSOR and target.block.info.memory is not MemorySpace.PSUM:
        machine.fault(
            "unsupported", "nc_transpose on TensorE writes to PSUM; allocate dst with buffer=nl.psum."
        )
    if chosen == TENSOR and tile.block.info.memory is MemorySpace.PSUM:
        machine.fault("unsupported", "nc_transpose on TensorE reads SBUF; data lies in PSUM.")
    by_product = chosen == TENSOR and machine.limits.generation < 3 and target.dtype == np.float32
    if target.dtype != tile.dtype and not by_product:  # the second generation multiplies with the identity
        machine.fault(
            "unsupported", f"nc_transpose keeps the type: data is {tile.dtype}, dst {target.dtype}."
        )
    opcode = "nc_matmul" if chosen == TENSOR else "nc_transpose"
    result = into(machine, target, opcode, (chosen,), [tile], transpose_values, cost=tile)
    if chosen == TENSOR and result.producer is not None:
        done = result.producer
        done.transpose = done.onezero = True
        done.free, done.stationary, done.flops = rows, columns, 2 * rows * rows * columns


def _transposer(target: Tile, rows: int, columns: int) -> str:
    small = max(rows, columns) <= 32 and target.block.info.memory is not MemorySpace.PSUM
    return VECTOR if small else TENSOR
