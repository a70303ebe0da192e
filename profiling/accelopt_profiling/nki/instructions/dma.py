"""``nki.isa``: moving data by DMA."""

from __future__ import annotations

from typing import Any

from accelopt_profiling.nki.compute.operations import arithmetic, copy_values, operation_name, real
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.instructions.allocation import Allocation
from accelopt_profiling.nki.instructions.enums import DgeMode, NkiEngine, OobMode
from accelopt_profiling.nki.instructions.operands import operator


def dma_copy(
    dst: Any, src: Any, oob_mode: Any, dge_mode: Any, engine: Any = None, mask: Any = None, dst_rmw_op: Any = None,
) -> None:  # fmt: skip
    """Copy by DMA between or within HBM and SBUF; shapes may differ, element counts may not.

    Beta 1 repeats a source that is smaller, leaves out what a mask says, and combines with what ``dst`` holds.
    """
    machine = current()
    target, source = machine.operand(dst, "dst"), machine.operand(src, "src")
    if machine.version:
        _check_dma(machine, target, source)
        _check_descriptors(machine, dge_mode, engine, target, source)
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


def _check_descriptors(machine: Machine, dge_mode: Any, engine: Any, *tiles: Tile) -> None:
    """Check who makes the descriptors of a copy: an engine is named for the hardware's, indices take software's."""
    has_engine = engine is not None and engine is not NkiEngine.unknown
    if has_engine and (dge_mode is not DgeMode.hwdge or engine not in (NkiEngine.sync, NkiEngine.scalar)):
        machine.fault(
            "unsupported",
            "dma_copy's engine is sync or scalar, and names who makes dge_mode.hwdge's descriptors.",
        )
    for tile in tiles:
        if not by_vector(tile):
            continue
        if dge_mode in (DgeMode.hwdge, DgeMode.none):
            machine.fault(
                "unsupported", f"dma_copy gathers and scatters by dge_mode.swdge, not {dge_mode.name}."
            )
        if machine.limits.generation < 3:
            machine.fault("unsupported", "dma_copy gathers and scatters from trn2 on (AWS's DGE reference).")
        if tile.block.info.memory is not MemorySpace.HBM:
            machine.fault("unsupported", "A vector_offset indexes a tensor in HBM.")
        index = tile.index
        assert index is not None
        if index.block.info.memory is not MemorySpace.SBUF or index.size != index.shape[0]:
            machine.fault(
                "unsupported",
                f"A vector_offset is a column in SBUF, an index for each partition; this is {index}.",
            )


def by_vector(tile: Tile) -> bool:
    """Return whether a view has an address for each partition, by a ``vector_offset``."""
    return tile.addressing == "vector"


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


def dma_compute(dst: Any, srcs: Any, reduce_op: Any, scales: Any, unique_indices: bool, oob_mode: Any) -> Any:
    """Add several tensors up by DMA, in float32."""
    machine = current()
    if operation_name(reduce_op) != "add":
        machine.fault("unsupported", f"DMA engines add only, not {operation_name(reduce_op)!r}.")
    if not isinstance(srcs, (tuple, list)) or not 1 <= len(srcs) <= 16:
        machine.fault("unsupported", "dma_compute takes a list of 1 to 16 tensors.")
    factors = list(scales) if isinstance(scales, (tuple, list)) else [1.0] * len(srcs)
    if len(factors) != len(srcs):
        machine.fault("unsupported", f"dma_compute has {len(srcs)} tensors and {len(factors)} scales.")
    if any(isinstance(f, (int, float)) and f != 1.0 for f in factors):
        machine.fault("unsupported", "dma_compute's scales must be 1.0.")
    target, sources = machine.operand(dst, "dst"), [machine.operand(s, "src") for s in srcs]
    _check_dma(machine, target, *sources)
    if any(by_vector(t) for t in (target, *sources)):
        if not unique_indices or len(sources) != 2:
            machine.fault(
                "unsupported", "dma_compute by indices takes two tensors, and indices that are unique."
            )
    elif oob_mode is OobMode.skip:
        machine.fault("unsupported", "oob_mode.skip leaves out indices; no tensor here has any.")

    machine.transfers.transfer(target, sources, _total, oob_mode is OobMode.skip)


def _total(*values: Array) -> Any:
    result = real(values[0]).reshape(-1)
    for value in values[1:]:
        result = result + real(value).reshape(-1)
    return result


#: The orders of dimensions that DMA can transpose, by rank.
TRANSPOSES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


def dma_transpose(dst: Any, src: Any, axes: Any, dge_mode: Any, oob_mode: Any) -> Tile:
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
    if machine.version:
        problem = (_indirect_problem if by_vector(source) else _direct_problem)(machine, source, dge_mode)
        if oob_mode is OobMode.skip and not source.addressing:
            problem = "oob_mode.skip leaves out indices; src has none"
        if problem:
            machine.fault("unsupported", f"{problem} (AWS's page of nisa.dma_transpose).")
    if shape != target.shape:
        machine.fault(
            "out-of-bounds", f"The transpose of {source.shape} has the shape {shape}, dst {target.shape}."
        )
    machine.transfers.transfer(
        target, [source], _transposed, oob_mode is OobMode.skip, (order,), transposes=True
    )
    return target


def _direct_problem(machine: Machine, source: Tile, dge_mode: Any) -> str:
    """Return what forbids a transpose without indices, "" if nothing does; AWS's DGE reference allows more modes."""
    number = source.addressing == "number"
    if dge_mode is DgeMode.swdge and not number:
        return "The descriptors of a transpose without indices are dge_mode.unknown or hwdge"
    if dge_mode in (DgeMode.none, DgeMode.swdge):
        machine.diagnostics.report(
            "contradiction",
            f"dma_transpose by dge_mode.{dge_mode.name}: AWS's DGE reference has it, its page of nisa.dma_transpose "
            "only unknown and hwdge.",
            "information",
        )
    if dge_mode is not DgeMode.hwdge:
        return ""
    rows, *_, last = shape = source.shape
    if machine.limits.generation < 3:
        return "dge_mode.hwdge needs trn2"
    if rows not in ((16,) if len(shape) == 2 else (1, 2, 4, 8, 16)) or (
        len(shape) > 2 and rows * shape[-2] % 16
    ):
        return f"dge_mode.hwdge transposes 16 rows; src has the shape {shape}"
    if last > 128 or source.dtype.itemsize != 2:
        return (
            f"dge_mode.hwdge transposes up to 128 columns of 2 bytes; src is {shape} of {source.dtype.name}"
        )
    return ""


def _indirect_problem(machine: Machine, source: Tile, dge_mode: Any) -> str:
    """Return what forbids a transpose of rows that indices choose, "" if nothing does."""
    index, shape = source.index, source.shape
    assert index is not None
    lanes, columns = index.shape[0], index.size // index.shape[0]
    if machine.limits.generation < 3:
        return "Gathering by dma_transpose needs trn2"
    if dge_mode not in (DgeMode.unknown, DgeMode.swdge):
        return "The descriptors of a transpose by indices are dge_mode.unknown or swdge"
    if (
        index.block.info.memory is not MemorySpace.SBUF
        or index.dtype.name != "uint32"
        or len(index.shape) != 2
    ):
        return "Indices are a two-dimensional tensor of uint32 in SBUF"
    if source.block.info.memory is not MemorySpace.HBM or source.dtype.itemsize != 2 or shape[-1] > 128:
        return f"What is gathered lies in HBM, in rows of up to 128 elements of 2 bytes; src is {source}"
    if lanes % 16 or not 16 <= lanes <= 128 or (columns > 1 and lanes != 128):
        return f"Indices lie in 16, 32, ... or 128 partitions, in more than one column in 128; here {index.shape}"
    if shape[0] % 16 or shape[0] > lanes * columns:
        return f"src has a multiple of 16 rows, as many as there are indices at most; here {shape[0]}"
    if len(shape) == 4 and 1 not in shape[1:3]:
        return f"A src of four dimensions has one element in the second or third; here {shape}"
    return ""


def _transposed(order: tuple[int, ...], x: Array) -> Any:
    return x.transpose(order)
