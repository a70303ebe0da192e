"""``nki.isa``: GpSimdE's instructions that gather by index, and that find where segments begin and end."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.group_operations import GROUP, gathered_runs, segment_bounds
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.instruction import GPSIMD
from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.instructions.allocation import Allocation, allocated
from accelopt_profiling.nki.instructions.operands import into, on_chip, same_size


def nc_n_gather(dst: Any, data: Any, indices: Any) -> Any:
    """``data[p, indices[p, i]]`` within each partition, on GpSimdE."""
    machine = current()
    tile = on_chip(machine, data, "data")
    chosen = on_chip(machine, indices, "indices")
    target = on_chip(machine, dst, "dst")
    same_size(machine, target, chosen, "indices")
    if chosen.shape[0] != tile.shape[0]:
        machine.fault("out-of-bounds", f"data {tile.shape} and indices {chosen.shape} differ in partitions.")
    if isinstance(dst, Allocation):
        if dst.mask is not None:
            machine.fault("unsupported", "A gather with a mask is not emulated.")
        dst.shape, dst.dtype = chosen.shape, dst.dtype or tile.dtype
    return into(machine, dst, "nc_n_gather", (GPSIMD,), [tile, chosen], _gathered, machine.diagnostics.line())


def _gathered(line: int, x: Array, at: Array) -> Array:
    values, rows = x.reshape(x.shape[0], -1), at.reshape(at.shape[0], -1).astype(np.int64)
    if rows.size and (rows.min() < 0 or rows.max() >= values.shape[1]):
        message = f"An index is {rows.max()}; a partition of data has {values.shape[1]} elements."
        raise KernelFaultError("out-of-bounds", message, line)
    return np.take_along_axis(values, rows, axis=1)


def local_gather(
    dst: Any, src_buffer: Any, index: Any, num_elem_per_idx: int, num_valid_indices: int | None,
) -> Any:  # fmt: skip
    """Gather, for each group of 16 partitions, runs of ``num_elem_per_idx`` elements of every partition, on GpSimdE."""
    machine = current()
    tile, chosen = on_chip(machine, src_buffer, "src_buffer"), on_chip(machine, index, "index")
    target, width = on_chip(machine, dst, "dst"), int(num_elem_per_idx)
    every = chosen.size // max(1, -(-chosen.shape[0] // GROUP))
    count = every if num_valid_indices is None else int(num_valid_indices)
    if isinstance(dst, Allocation):
        if dst.mask is not None:
            machine.fault("unsupported", "local_gather with a mask is not emulated.")
        columns = (*chosen.shape[1:], GROUP) if count == every else (count,)
        allocated(dst, (tile.shape[0], *columns, width))
    else:
        _check_local_gather(machine, target, tile, chosen, (count, every, width))
    line = machine.diagnostics.line()
    return into(
        machine,
        dst,
        "local_gather",
        (GPSIMD,),
        [tile, chosen],
        _locally_gathered,
        count,
        width,
        line,
        cost=tile,
    )


def _check_local_gather(
    machine: Machine, target: Tile, tile: Tile, chosen: Tile, counts: tuple[int, int, int]
) -> None:
    """Check what today's page states; ``counts`` are of the indices used, of all in a group, of elements for each."""
    count, every, width = counts
    if tile.shape[0] != chosen.shape[0] or tile.shape[0] % GROUP:
        machine.fault(
            "capacity",
            f"src_buffer and index have the same multiple of {GROUP} partitions, not {tile.shape[0]} and "
            f"{chosen.shape[0]}.",
        )
    if width not in (1, 2, 4, 8, 16, 32):
        machine.fault("unsupported", f"num_elem_per_idx is 1, 2, 4, 8, 16 or 32, not {width}.")
    if target.dtype != tile.dtype or chosen.dtype != np.uint16:
        machine.fault(
            "unsupported",
            f"local_gather keeps the type ({tile.dtype.name} to {target.dtype.name}) and takes uint16 indices, "
            f"not {chosen.dtype.name}.",
        )
    if not 0 < count <= min(every, 4096) or target.size != tile.shape[0] * count * width:
        machine.fault(
            "out-of-bounds",
            f"{count} of {every} indices (at most 4,096), each for {width} elements: dst is {target.shape}.",
        )


def _locally_gathered(count: int, width: int, line: int, x: Array, at: Array) -> Array:
    limit = prod(x.shape[1:])
    if int(at.max()) + width > limit:
        message = f"An index is {at.max()}; a partition of src_buffer has {limit} elements."
        raise KernelFaultError("out-of-bounds", message, line)
    return gathered_runs(x, at, count, width)


def sequence_bounds(dst: Any, segment_ids: Any) -> Any:
    """Find, for each element, where the run of its number begins and ends; ``n`` and -1 where the number is 0."""
    machine = current()
    tile, target = on_chip(machine, segment_ids, "segment_ids"), on_chip(machine, dst, "dst")
    rows = tile.shape[0]
    if not allocated(dst, (rows, 2, tile.size // rows)) and (rows != 1 or target.size != 2 * tile.size):
        machine.fault(
            "out-of-bounds",
            f"sequence_bounds works on one partition and gives two values for each; dst is {target.shape} for "
            f"{tile.shape}.",
        )
    return into(machine, dst, "sequence_bounds", (GPSIMD,), [tile], segment_bounds, cost=tile)
