"""``nki.isa``: moving data by DMA."""

from __future__ import annotations

from typing import Any

from accelopt_profiling.nki.compute.operations import arithmetic, copy_values, operation_name, real
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.instructions.allocation import Allocation
from accelopt_profiling.nki.instructions.enums import DgeMode, OobMode
from accelopt_profiling.nki.instructions.operands import operator


def dma_copy(
    dst: Any, src: Any, oob_mode: Any, dge_mode: Any, mask: Any = None, dst_rmw_op: Any = None,
) -> None:  # fmt: skip
    """Copy by DMA between or within HBM and SBUF; shapes may differ, element counts may not.

    Beta 1 repeats a source that is smaller, leaves out what a mask says, and combines with what ``dst`` holds.
    """
    machine = current()
    target, source = machine.operand(dst, "dst"), machine.operand(src, "src")
    if machine.version:
        _check_dma(machine, target, source)
        target, source = _in_order_of(target, source), _in_order_of(source, target)
    if dge_mode is DgeMode.hwdge and machine.limits.generation < 3:
        machine.fault("unsupported", "dge_mode.hwdge needs trn2; leave it to the compiler.")
    if dge_mode is DgeMode.hwdge and target.dtype != source.dtype:
        machine.fault("unsupported", f"dge_mode.hwdge cannot convert {source.dtype} to {target.dtype}.")
    if mask is not None:
        _copy_masked(machine, target, source, mask, dst_rmw_op)
    elif dst_rmw_op is not None:
        params = (operator(machine, dst_rmw_op),)
        machine.transfers.transfer(target, [source, target], arithmetic, oob_mode is OobMode.skip, params)
    else:
        machine.transfers.transfer(target, [source], copy_values, oob_mode is OobMode.skip)


def _copy_masked(machine: Machine, target: Tile, source: Tile, mask: Any, combination: Any) -> None:
    if combination is not None or source.positions is not None or target.positions is not None:
        machine.fault("unsupported", "dma_copy by indices with a mask is not emulated.")
    if source.block.info.memory is not MemorySpace.HBM:
        machine.transfers.store(target, source, mask)
        return
    loaded = machine.transfers.load(source, target.dtype, mask)
    if target.block.info.memory is MemorySpace.HBM:
        machine.transfers.store(target, loaded, mask)
    else:
        machine.assign(target, loaded)


def _in_order_of(view: Tile, other: Tile) -> Tile:
    """Return ``view`` with its elements in the order of ``other``, whose rows of tiles lie in the partitions.

    Raises:
        KernelFaultError: they are not the same elements.
    """
    rows = getattr(other, "tile_rows", 1)
    if rows == 1 or getattr(view, "tile_rows", 1) == rows:
        return view
    partitions, columns = other.shape[0], other.size // (other.shape[0] * rows)
    if view.positions is not None or view.shape != (rows * partitions, columns):
        current().fault(
            "out-of-bounds",
            f"{rows} rows of tiles hold {(rows * partitions, columns)} elements, the other side {view.shape}.",
        )
    (_, step), (_, along) = view.dims
    return view.strided(view.offset, ((partitions, step), (rows, partitions * step), (columns, along)))


def _check_dma(machine: Machine, target: Tile, *sources: Tile) -> None:
    for source in sources:
        if target.size != source.size:
            machine.fault(
                "out-of-bounds",
                f"src has {source.size} elements (shape {source.shape}), dst has {target.size} (shape {target.shape}).",
            )
    for tile, what in ((target, "dst"), *((s, "src") for s in sources)):
        if tile.block.info.memory is MemorySpace.PSUM:
            machine.fault(
                "unsupported",
                f"DMA does not reach PSUM, where {what} lies; go through SBUF with nisa.tensor_copy.",
            )


def dma_compute(dst: Any, srcs: Any, reduce_op: Any, scales: Any, oob_mode: Any) -> Any:
    """Add several tensors up by DMA, in float32."""
    machine = current()
    if operation_name(reduce_op) != "add":
        machine.fault("unsupported", f"DMA engines add only, not {operation_name(reduce_op)!r}.")
    if not isinstance(srcs, (tuple, list)) or not 1 <= len(srcs) <= 16:
        machine.fault("unsupported", "dma_compute takes a list of 1 to 16 tensors.")
    factors = list(scales) if isinstance(scales, (tuple, list)) else [1.0] * len(srcs)
    if any(isinstance(f, (int, float)) and f != 1.0 for f in factors):
        machine.fault("unsupported", "dma_compute's scales must be 1.0.")
    target, sources = machine.operand(dst, "dst"), [machine.operand(s, "src") for s in srcs]
    _check_dma(machine, target, *sources)

    machine.transfers.transfer(target, sources, _total, oob_mode is OobMode.skip)


def _total(*values: Array) -> Any:
    result = real(values[0]).reshape(-1)
    for value in values[1:]:
        result = result + real(value).reshape(-1)
    return result


#: The orders of dimensions that DMA can transpose, by rank.
TRANSPOSES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


def dma_transpose(dst: Any, src: Any, axes: Any, oob_mode: Any) -> Tile:
    """Transpose by DMA: (1, 0), (2, 1, 0) or (3, 1, 2, 0) by the rank of ``src``."""
    machine = current()
    source = machine.operand(src, "src")
    order = TRANSPOSES.get(len(source.shape))
    if order is None or (axes is not None and tuple(axes) != order):
        machine.fault(
            "unsupported", f"dma_transpose of shape {source.shape} with axes {axes}: DMA knows {TRANSPOSES}."
        )
    shape = tuple(source.shape[a] for a in order)
    if isinstance(dst, Allocation):
        if dst.mask is not None or source.out_of_range:
            machine.fault("unsupported", "dma_transpose with a mask is not emulated.")
        dst = machine.fresh_tile(shape, dst.dtype or source.dtype, MemorySpace.SBUF)
        dst.fresh = False  # a DMA has written it: an assignment copies
    target = machine.operand(dst, "dst")
    _check_dma(machine, target, source)
    if shape != target.shape:
        machine.fault(
            "out-of-bounds", f"The transpose of {source.shape} has the shape {shape}, dst {target.shape}."
        )
    machine.transfers.transfer(
        target, [source], _transposed, oob_mode is OobMode.skip, (order,), transposes=True
    )
    return target


def _transposed(order: tuple[int, ...], x: Array) -> Any:
    return x.transpose(order)
