"""``nki.isa``: products and transposes."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import multiply_double_rows, multiply_values, transpose_values
from accelopt_profiling.nki.compute.step import ComputeStep
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.instruction import TENSOR, VECTOR
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.instructions.allocation import Allocation, allocated, cut, mask_box
from accelopt_profiling.nki.instructions.operands import engines, into, on_chip, per_partition


def nc_matmul(
    dst: Any, stationary: Any, moving: Any, is_stationary_onezero: bool, is_moving_onezero: bool,
    is_transpose: bool, accumulate: bool | None, perf_mode: Any, tile_position: Any = (), tile_size: Any = (),
) -> Tile:  # fmt: skip
    """``dst = stationary[K, M].T @ moving[K, N]`` on TensorE, in float32.

    With ``accumulate=None`` the first product written to a place in PSUM overwrites it and later ones add. In the mode
    ``double_row`` both operands have two rows of float8 in each partition, [K, 2, M] and [K, 2, N], and all are summed.
    With ``tile_position`` and ``tile_size`` a product uses a part of the array, which is checked and not timed.
    With ``is_transpose`` the moving operand is the identity and the result is the stationary one, transposed.
    """
    machine = current()
    target = on_chip(machine, dst, "dst")
    left = on_chip(machine, stationary, "stationary operand")
    right = on_chip(machine, moving, "moving operand")
    left, right = (_in_tensor_groups(machine, t, is_transpose, bool(tile_position)) for t in (left, right))
    double = _double_rows(machine, perf_mode, left, right)
    rows_of = (left[:, 0], right[:, 0]) if double else (left, right)
    machine.rules.check_matmul(*rows_of, itemsize=4 if isinstance(dst, Allocation) else target.dtype.itemsize)
    rows, columns = (prod(tile.shape[1:]) for tile in rows_of)
    if tile_position or tile_size:
        check_tiling(machine, tile_position, tile_size, (left.shape[0], rows))
        if double and tile_size[1] < 128:
            machine.fault("unsupported", "double_row does not go together with tiles of columns.")
    op = transpose_values if is_transpose else multiply_double_rows if double else multiply_values
    if isinstance(dst, Allocation):
        result = _allocated_product(machine, dst, left, right, (rows, *rows_of[1].shape[1:]), op)
        if result.valid is not None:
            columns = prod(high - low for low, high in result.valid[1:])
    else:
        _check_product(machine, target, left, right, (rows, columns), is_transpose)
        adds = machine.touched(target) if accumulate is None else bool(accumulate)
        check_accumulation(machine, target, accumulate, adds)
        if adds and accumulate is None:
            _begin_at_zero(machine, target)
        operands, beside = ([left], [right]) if is_transpose else ([left, right], [])
        result = machine.run_into(
            target, "nc_matmul", (TENSOR,), operands, op, right, adds and not is_transpose, beside=beside
        )
        target.block.holds_product = True
    instruction = result.producer
    assert instruction is not None
    instruction.transpose = is_transpose
    instruction.onezero = is_moving_onezero or is_stationary_onezero
    instruction.stationary, instruction.free, instruction.partitions = rows, columns, right.shape[0]
    instruction.flops = 2 * left.shape[0] * rows * columns * (2 if double else 1)
    return result


def _in_tensor_groups(machine: Machine, tile: Tile, transposes: bool, tiled: bool) -> Tile:
    """Return an operand of columns by index with the offsets of groups of 32 partitions, which are TensorE's."""
    regrouped = getattr(tile, "regrouped", None)
    if regrouped is None:
        return tile
    if transposes or tiled or tile.dtype.itemsize > 2:
        machine.fault(
            "unsupported",
            "TensorE takes columns by index of types of 16 or 8 bits, of the whole array, to multiply.",
        )
    inner: Tile = regrouped(32)
    return inner


def check_tiling(machine: Machine, position: Any, size: Any, stationary: tuple[int, int]) -> None:
    """Check that a stationary operand lies in its part of TensorE's array: halves, or quarters from trn2."""
    if len(position or ()) != 2 or len(size or ()) != 2:
        machine.fault(
            "unsupported", "tile_position and tile_size are given together, each for rows and columns."
        )
    least = 64 if machine.limits.generation < 3 else 32
    for start, length, extent, axis in zip(position, size, stationary, ("row", "column"), strict=True):
        if not least <= length <= 128 or start % length or start + length > 128:
            machine.fault(
                "unsupported",
                f"A {axis} tile of {length} from {start}: its size is {least} to 128, its start a multiple of that.",
            )
        if extent > length:
            machine.fault(
                "capacity", f"The stationary operand has {extent} {axis}s; its {axis} tile has {length}."
            )


def check_accumulation(machine: Machine, target: Tile, accumulate: bool | None, adds: bool) -> None:
    """Check that a product is added to products: what else PSUM holds, trn1 and trn2 do not add to."""
    if not adds:
        return
    if accumulate and not machine.touched(target):
        machine.fault(
            "uninitialised-read",
            "nc_matmul accumulates on what no product has written, which is undefined; begin with accumulate=False.",
        )
    if machine.version and machine.limits.generation < 4 and not target.block.holds_product:
        message = (
            "nc_matmul adds to what another instruction has written to PSUM, which is undefined before trn3"
        )
        if accumulate:
            machine.fault("unsupported", f"{message}; begin with accumulate=False.")
        machine.diagnostics.report("beyond-range", f"{message}; leave PSUM unwritten before.", "warning")


def _begin_at_zero(machine: Machine, target: Tile) -> None:
    """Let a product that covers an earlier one in part add there and overwrite the rest, which is set to zero."""
    coverage = target.block.coverage
    if target.positions is not None or coverage.holds(target.box()):
        return
    inside = np.zeros(target.block.shape, bool)
    inside[tuple(slice(low, high) for low, high in target.box())] = True
    rest = target.strided(target.offset, target.dims)
    rest.positions = np.flatnonzero(inside & coverage.missing())
    machine.write(rest, ComputeStep(np.asarray, [np.float32(0)]) if machine.full else None)


def _check_product(
    machine: Machine, target: Tile, left: Tile, right: Tile, shape: tuple[int, int], transposes: bool
) -> None:
    if target.block.info.memory is not MemorySpace.PSUM:
        machine.fault("unsupported", "nc_matmul writes to PSUM; allocate dst with buffer=nl.psum.")
    kinds = ("float32",) if machine.limits.generation < 4 else ("float32", "bfloat16")
    if not transposes and target.dtype.name not in kinds:
        machine.fault(
            "unsupported", f"nc_matmul writes {' or '.join(kinds)} on this core; dst is {target.dtype}."
        )
    if machine.limits.generation < 4 and "float8_e4m3fn" in (left.dtype.name, right.dtype.name):
        machine.fault("unsupported", "nc_matmul takes float8_e4m3fn from trn3 on; before, float8_e4m3.")
    if {t.dtype.name for t in (left, right)} == {"float8_e4m3", "float8_e4m3fn"}:
        machine.fault(
            "unsupported", "nc_matmul mixes float8_e4m3 and float8_e4m3fn; both operands have one of them."
        )
    if (left.dtype.itemsize >= 4) != (right.dtype.itemsize >= 4):
        machine.fault(
            "unsupported",
            f"nc_matmul multiplies {left.dtype} with {right.dtype}; either both are float32 or neither.",
        )
    if per_partition(machine, target) != shape:
        machine.fault("out-of-bounds", f"The product has the shape {shape}, dst {target.shape}.")
    machine.rules.check_bank(target)


def _allocated_product(
    machine: Machine,
    dst: Allocation,
    left: Tile,
    right: Tile,
    shape: tuple[int, ...],
    op: Callable[..., Array],
) -> Tile:
    """Return a new tile in PSUM with the product, or the transpose of ``left``, inside of the mask."""
    box = mask_box(machine, dst.mask, shape)
    instruction = machine.stream.emit("nc_matmul", (TENSOR,), right)
    instruction.reads = [left.region(), right.region()]
    inputs = [
        machine.read(left),
        machine.read(right, None if box is None else ((0, right.shape[0]), *box[1:])),
    ]
    left.fresh = right.fresh = False
    dtype = np.dtype(np.float32)
    if op is transpose_values:
        inputs, dtype = inputs[:1], left.dtype
    step = None
    if machine.full and (box is None or all(low < high for low, high in box)):
        step = ComputeStep(op, inputs) if box is None else ComputeStep(_part, inputs, (op, box))
    return machine.finish(instruction, shape, dtype, MemorySpace.PSUM, step, box, None)


def _part(op: Callable[..., Array], box: Box, *values: Array) -> Array:
    """Return a product of which a mask leaves the rows and columns of ``box``; the columns are cut off already."""
    (low, high), *free = box
    return op(*values)[low:high].reshape([high - low, *(end - start for start, end in free)])


def _double_rows(machine: Machine, perf_mode: Any, left: Tile, right: Tile) -> bool:
    """Return whether a product takes two rows of each partition at once; Beta 1 has "double_row_gen3", of any type."""
    mode = getattr(perf_mode, "value", perf_mode) or "none"
    if mode == "none":
        return False
    if mode not in ("double_row", "double_row_gen3"):
        machine.fault("unsupported", f"nc_matmul's perf_mode {mode} is not emulated; leave it out.")
    float8 = all(t.dtype.name.startswith("float8") for t in (left, right))
    if mode == "double_row" and (machine.limits.generation < 3 or not float8):
        machine.fault(
            "unsupported",
            f"double_row takes float8 operands, from trn2 on; these are {left.dtype} and {right.dtype}.",
        )
    if (left.shape[1:2], right.shape[1:2]) != ((2,), (2,)):
        machine.fault("out-of-bounds", f"double_row of {left.shape} and {right.shape}: the second size is 2.")
    return True


def nc_transpose(dst: Any, data: Any, engine: Any) -> Tile:
    """Swap partitions and free elements: on TensorE from SBUF to PSUM, or on VectorE.

    Documented is 32x32 for VectorE; Beta 1's compiler takes 128x128 and makes it of such blocks (timed on trn2).
    """
    machine = current()
    target, tile = on_chip(machine, dst, "dst"), on_chip(machine, data, "data")
    rows, columns = per_partition(machine, tile)
    usual = TENSOR if isinstance(dst, Allocation) else _transposer(target, rows, columns)
    (chosen,) = engines(machine, engine, (usual,), (TENSOR, VECTOR))
    limit = 32 if chosen == VECTOR and not isinstance(dst, Allocation) else 128
    if max(rows, columns) > limit:
        machine.fault(
            "capacity", f"{chosen} transposes at most {limit}x{limit}; this tile is {rows}x{columns}."
        )
    if isinstance(dst, Allocation):
        box, (tile,) = cut(machine, dst, tile)
        part = None if box is None else ((0, prod(high - low for low, high in box[1:])), box[0])
        allocated(dst, (columns, rows), part)
        dst.memory = MemorySpace.PSUM if chosen == TENSOR else MemorySpace.SBUF
    else:
        _check_transpose(machine, target, tile, chosen)
    opcode = "nc_matmul" if chosen == TENSOR else "nc_transpose"
    result = into(machine, dst, opcode, (chosen,), [tile], transpose_values, cost=tile)
    instruction = result.producer
    if chosen == TENSOR and instruction is not None:
        instruction.transpose = instruction.onezero = True
        instruction.free, instruction.stationary, instruction.flops = rows, columns, 2 * rows * rows * columns
    return result


def _check_transpose(machine: Machine, target: Tile, tile: Tile, chosen: str) -> None:
    rows, columns = per_partition(machine, tile)
    if per_partition(machine, target) != (columns, rows):
        machine.fault(
            "out-of-bounds",
            f"The transpose of {tile.shape} has the shape ({columns}, {rows}), dst {target.shape}.",
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


def _transposer(target: Tile, rows: int, columns: int) -> str:
    small = max(rows, columns) <= 32 and target.block.info.memory is not MemorySpace.PSUM
    return VECTOR if small else TENSOR
