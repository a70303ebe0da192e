"""``nki.isa``: products and transposes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import multiply_values, transpose_values
from accelopt_profiling.nki.current.enums import MatmulPerfMode, NkiEngine
from accelopt_profiling.nki.current.operands import (
    engines,
    into,
    on_chip,
    per_partition,
)  # fmt: skip
from accelopt_profiling.nki.data.instruction import TENSOR, VECTOR
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import current
from accelopt_profiling.nki.emulator.tile import Tile


def nc_matmul(
    dst: Any, stationary: Any, moving: Any, is_stationary_onezero: bool = False, is_moving_onezero: bool = False,
    is_transpose: bool = False, accumulate: bool | None = None, tile_position: Any = (), tile_size: Any = (),
    perf_mode: Any = MatmulPerfMode.none, name: str | None = None,
) -> None:  # fmt: skip
    """``dst = stationary[K, M].T @ moving[K, N]`` on TensorE, in float32.

    With ``accumulate=None`` the first product written to a place in PSUM overwrites it and later ones add.
    """
    machine = current()
    target = on_chip(machine, dst, "dst")
    left = on_chip(machine, stationary, "stationary operand")
    right = on_chip(machine, moving, "moving operand")
    if perf_mode not in (MatmulPerfMode.none, "none", None):
        machine.fault("unsupported", f"nc_matmul's perf_mode {perf_mode} is not emulated; leave it out.")
    if target.block.info.memory is not MemorySpace.PSUM:
        machine.fault("unsupported", "nc_matmul writes to PSUM; allocate dst with buffer=nl.psum.")
    machine.rules.check_matmul(left, right)
    if (left.dtype.itemsize >= 4) != (right.dtype.itemsize >= 4):
        machine.fault(
            "unsupported",
            f"nc_matmul multiplies {left.dtype} with {right.dtype}; either both are float32 or neither.",
        )
    rows, columns = prod(left.shape[1:]), prod(right.shape[1:])
    if per_partition(machine, target) != (rows, columns):
        machine.fault("out-of-bounds", f"The product has the shape ({rows}, {columns}), dst {target.shape}.")
    machine.rules.check_bank(target)
    adds = not target.block.coverage.untouched_in(target.box()) if accumulate is None else bool(accumulate)

    result = machine.executor.product(
        target, left, right, transpose_values if is_transpose else multiply_values, adds and not is_transpose
    )
    result.transpose = is_transpose
    result.onezero = is_moving_onezero or is_stationary_onezero
    result.stationary, result.free, result.partitions = rows, columns, right.shape[0]
    result.flops = 2 * left.shape[0] * rows * columns


def nc_transpose(dst: Any, data: Any, engine: Any = NkiEngine.unknown, name: str | None = None) -> None:
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
