"""``neuronxcc.nki.isa``: instructions that today's dialect has with a ``dst``, in the form that returns the tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accelopt_profiling.nki.beta1.engines import dtype_or_none
from accelopt_profiling.nki.compute.group_operations import GROUP, gathered_runs, segment_bounds
from accelopt_profiling.nki.current import gathers, moves, reductions, select
from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.instruction import GPSIMD, VECTOR
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.enums import OobMode


def _returned(
    machine: Machine,
    instruction: Callable[[Tile], None],
    shape: Sequence[int],
    dtype: np.dtype[Any],
    box: Box | None = None,
) -> Tile:
    """Return the tile that ``instruction`` writes when it is given its destination: all of it, or the part ``box``."""
    tile = machine.executor.fresh_tile(shape, dtype, MemorySpace.SBUF)
    instruction(tile if box is None else tile.within(box))
    newest = machine.stream.newest
    assert newest is not None
    tile.producer = newest
    tile.step = machine.deferred.steps[-1] if machine.deferred.steps else None
    tile.valid = box
    tile.fresh = True
    return tile


def _inside(machine: Machine, mask: Any, *tiles: Tile) -> tuple[Box | None, list[Tile]]:
    """Return the box of a mask over the first tile, and the tiles cut down to it: the others by partitions alone.

    Raises:
        KernelFaultError: the mask is not a box.
    """
    box, where = machine.executor.resolve_mask(mask, tiles[0].shape)
    if where is not None:
        machine.fault("unsupported", "This instruction takes masks that cut off whole rows or columns only.")
    if box is None:
        return None, list(tiles)
    others = [t.within((box[0], *((0, n) for n in t.shape[1:]))) for t in tiles[1:]]
    return box, [tiles[0].within(box), *others]


def _eight_columns(
    machine: Machine, function: Any, searched: Any, others: list[Any], dtype: Any, mask: Any
) -> Tile:
    data, *rest = [machine.executor.operand(t) for t in (searched, *others)]
    box, (data, *rest) = _inside(machine, mask, data, *rest)
    kind = dtype_or_none(dtype) or data.dtype
    part = None if box is None else (box[0], (0, 8))
    rows = machine.executor.operand(searched).shape[0]
    return _returned(machine, lambda dst: function(dst, data, *rest), (rows, 8), kind, part)


def max8(*, src: Any, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Find the eight largest values of each partition, largest first."""
    return _eight_columns(current(), select.max8, src, [], dtype, mask)


def nc_find_index8(*, data: Any, vals: Any, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Find the position of the first occurrence of each of eight values in its partition of ``data``."""
    return _eight_columns(current(), select.nc_find_index8, data, [vals], dtype or np.uint32, mask)


def nc_match_replace8(
    *, data: Any, vals: Any, imm: Any, dst_idx: Any = None, mask: Any = None, dtype: Any = None, **unused: Any
) -> Tile:
    """``data`` with the first occurrence of each of eight values replaced by ``imm``; their places in ``dst_idx``."""
    machine = current()
    tile, wanted = machine.executor.operand(data), machine.executor.operand(vals)
    shape, kind = tile.shape, dtype_or_none(dtype) or tile.dtype
    box, (tile, wanted) = _inside(machine, mask, tile, wanted)
    places = None if dst_idx is None else machine.executor.operand(dst_idx)
    if box is not None and places is not None:
        places = places.within((box[0], *((0, n) for n in places.shape[1:])))
    number = float(imm)
    return _returned(
        machine, lambda dst: select.nc_match_replace8(dst, tile, wanted, number, places), shape, kind, box
    )


def tensor_partition_reduce(
    op: Any, data: Any, *, mask: Any = None, dtype: Any = None, **unused: Any
) -> Tile:
    """Reduce over partitions on GpSimdE: slow."""
    machine = current()
    tile = machine.executor.operand(data)
    box, (inner,) = _inside(machine, mask, tile)
    part = None if box is None else ((0, 1), *box[1:])
    return _returned(
        machine,
        lambda dst: reductions.tensor_partition_reduce(dst, op, inner),
        (1, *tile.shape[1:]), dtype_or_none(dtype) or tile.dtype, part,
    )  # fmt: skip


def gather_flattened(data: Any, indices: Any, *, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """``data[p, indices[p, i]]`` within each partition, on GpSimdE."""
    machine = current()
    tile, chosen = machine.executor.operand(data), machine.executor.operand(indices)
    if mask is not None:
        machine.fault("unsupported", "gather_flattened with a mask is not emulated.")
    return _returned(
        machine,
        lambda dst: gathers.nc_n_gather(dst, tile, chosen),
        chosen.shape, dtype_or_none(dtype) or tile.dtype,
    )  # fmt: skip


def dma_transpose(src: Any, *, axes: Any = None, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Transpose by DMA into SBUF: (1, 0), (2, 1, 0) or (3, 1, 2, 0) by the rank of ``src``."""
    machine = current()
    tile = machine.executor.operand(src)
    if mask is not None or tile.out_of_range:
        machine.fault("unsupported", "dma_transpose with a mask is not emulated.")
    order = moves.TRANSPOSES.get(len(tile.shape), ())
    shape = [tile.shape[a] for a in order] or tile.shape
    result = _returned(
        machine,
        lambda dst: moves.dma_transpose(dst, tile, axes, OobMode.error),
        shape, dtype_or_none(dtype) or tile.dtype,
    )  # fmt: skip
    result.fresh = False  # a DMA has written it: an assignment copies
    return result


def dropout(data: Any, prob: Any, *, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Return ``data``: which values a core's random numbers drop is not known, so all are kept, as a finding says."""
    machine = current()
    message = "nisa.dropout's random numbers are not emulated: all values are kept here."
    machine.diagnostics.report("unsupported", message, "information")
    return machine.executor.run(
        "tensor_scalar", (VECTOR,), [data, prob], lambda x, p: x, dtype_or_none(dtype), mask,
        machine.executor.operand(data).shape,
    )  # fmt: skip


def local_gather(
    src_buffer: Any, index: Any, num_elem_per_idx: int = 1, num_valid_indices: int | None = None, *,
    mask: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """Gather, for each group of 16 partitions, runs of ``num_elem_per_idx`` elements of every partition.

    A group's indices, counted in elements, are read down its partitions first; the result has the shape of ``index``,
    16 of them per column, and the run.
    """
    machine = current()
    tile, chosen = machine.executor.operand(src_buffer), machine.executor.operand(index)
    if mask is not None:
        machine.fault("unsupported", "local_gather with a mask is not emulated.")
    rows, width = tile.shape[0], int(num_elem_per_idx)
    every = chosen.size // max(1, -(-chosen.shape[0] // GROUP))
    count = every if not num_valid_indices else int(num_valid_indices)
    shape = (rows, *chosen.shape[1:], GROUP, width) if count == every else (rows, count, width)

    def compute(x: Any, at: Any) -> Any:
        return gathered_runs(x, at, count, width).reshape(shape)

    return machine.executor.run(
        "local_gather", (GPSIMD,), [tile, chosen], compute, tile.dtype, None, shape, cost=tile
    )


def sequence_bounds(*, segment_ids: Any, dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    """Find, for each element, where the run of its number begins and ends; ``n`` and -1 where the number is 0."""
    machine = current()
    tile = machine.executor.operand(segment_ids)
    rows, count = tile.shape[0], tile.size // tile.shape[0]

    return machine.executor.run(
        "sequence_bounds", (GPSIMD,), [tile], segment_bounds, dtype_or_none(dtype) or tile.dtype, mask, (rows, 2, count)
    )  # fmt: skip
