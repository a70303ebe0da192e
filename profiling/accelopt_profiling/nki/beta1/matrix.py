"""``neuronxcc.nki.isa``: products and transposes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.beta1.engines import dtype_or_none
from accelopt_profiling.nki.compute.operations import multiply_double_rows, multiply_values, transpose_values
from accelopt_profiling.nki.compute.step import ComputeStep
from accelopt_profiling.nki.data.instruction import TENSOR, VECTOR
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.enums import NkiEngine


def nc_matmul(
    stationary: Any, moving: Any, *, is_stationary_onezero: bool = False, is_moving_onezero: bool = False,
    is_transpose: bool = False, tile_position: Any = (), tile_size: Any = (), mask: Any = None,
    perf_mode: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """``stationary[K, M].T @ moving[K, N]`` on TensorE into PSUM, in float32.

    With ``is_transpose`` the moving operand is the identity and the result is the stationary one, transposed. In the
    mode ``double_row_gen3`` both have two rows per partition, [K, 2, M] and [K, 2, N], and all are summed.
    """
    machine = current()
    left, right = (
        machine.executor.operand(stationary, "stationary operand"),
        machine.executor.operand(moving, "moving operand"),
    )
    machine.rules.check_operand(left, "nc_matmul")
    machine.rules.check_operand(right, "nc_matmul")
    double = perf_mode == "double_row_gen3"
    if double and (mask is not None or (left.shape[1:2], right.shape[1:2]) != ((2,), (2,))):
        machine.fault(
            "unsupported", f"double_row_gen3 of {left.shape} and {right.shape}: the second size is 2."
        )
    machine.rules.check_matmul(*(t[:, 0] if double else t for t in (left, right)))
    depth, *rest = (2 * left.shape[0], *left.shape[2:]) if double else left.shape
    partitions, *free = (right.shape[0], *right.shape[2:]) if double else right.shape
    rows, columns = prod(rest), prod(free)
    shape = (rows, *free)
    box, where = machine.executor.resolve_mask(mask, shape) if mask is not None else (None, None)
    if where is not None:
        machine.fault("unsupported", "nc_matmul takes masks that cut off whole rows or columns only.")
    moving_box = None
    if box is not None:
        moving_box = ((0, partitions), *box[1:])
        columns = prod(high - low for low, high in box[1:])
    instruction = machine.stream.emit("nc_matmul", (TENSOR,), right)
    instruction.free, instruction.stationary, instruction.partitions = columns, rows, partitions
    instruction.transpose = is_transpose
    instruction.onezero = is_moving_onezero or is_stationary_onezero
    instruction.flops = 2 * depth * rows * columns
    instruction.reads = [left.region(), right.region()]
    step = None
    if box is None or all(low < high for low, high in box):
        a, b = machine.executor.read(left), machine.executor.read(right, moving_box)
        if a is not None and b is not None:
            product = multiply_double_rows if double else multiply_values
            step = ComputeStep(
                transpose_values if is_transpose else product, (a,) if is_transpose else (a, b)
            )
            if box is not None:
                step = ComputeStep(_part(step.function, box), step.inputs)
    left.fresh = right.fresh = False
    dtype = left.dtype if is_transpose else np.dtype(np.float32)
    return machine.executor.finish(instruction, shape, dtype, MemorySpace.PSUM, step, box, None)


def _part(function: Any, box: Any) -> Any:
    """Return a product of which a mask leaves the rows and columns of ``box``; the columns are cut off
    already."""
    (low, high), *free = box

    def compute(*values: Any) -> Any:
        product = function(*values)[low:high]
        return product.reshape([high - low, *(end - start for start, end in free)])

    return compute


def nc_transpose(
    data: Any, *, mask: Any = None, dtype: Any = None, engine: Any = None, **unused: Any
) -> Tile:
    """Swap partition and free dimension: on TensorE into PSUM, or on VectorE.

    Documented is 32x32 for VectorE; the compiler takes 128x128 and makes it of such blocks (a timed kernel on trn2).
    """
    machine = current()
    tile = machine.executor.operand(data)
    machine.rules.check_operand(tile, "nc_transpose")
    rows, columns = tile.shape[0], prod(tile.shape[1:])
    if columns > 128 or rows > 128:
        machine.fault("capacity", f"nc_transpose takes at most 128x128; this tile is {rows}x{columns}.")
    if engine is NkiEngine.vector:
        return machine.executor.run(
            "nc_transpose",
            (VECTOR,),
            [tile],
            transpose_values,
            dtype_or_none(dtype),
            None,
            (columns, rows),
        )
    result = machine.executor.run(
        "nc_matmul",
        (TENSOR,),
        [tile],
        transpose_values,
        dtype_or_none(dtype),
        mask,
        (columns, rows),
        MemorySpace.PSUM,
    )
    assert result.producer is not None
    result.producer.transpose = result.producer.onezero = True
    result.producer.free, result.producer.stationary = rows, columns
    result.producer.flops = 2 * rows * rows * columns
    return result
