"""``nki.isa``: GpSimdE's instructions that gather by index, and that find where segments begin and end."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.group_operations import GROUP, gathered_runs, segment_bounds
from accelopt_profiling.nki.current.operands import into, on_chip, same_size
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.instruction import GPSIMD
from accelopt_profiling.nki.emulator.diagnostics import KernelFaultError
from accelopt_profiling.nki.emulator.machine import current


def nc_n_gather(dst: Any, data: Any, indices: Any) -> Any:
    """``data[p, indices[p, i]]`` within each partition, on GpSimdE."""
    machine = current()
    tile = on_chip(machine, data, "data")
    chosen = on_chip(machine, indices, "indices")
    target = on_chip(machine, dst, "dst")
    same_size(machine, target, chosen, "indices")
    limit, line = prod(tile.shape[1:]), machine.diagnostics.line()

    def compute(x: Array, at: Array) -> Any:
        rows = at.reshape(at.shape[0], -1).astype(np.int64)
        if rows.size and (rows.min() < 0 or rows.max() >= limit):
            message = f"An index is {rows.max()}; a partition of data has {limit} elements."
            raise KernelFaultError("out-of-bounds", message, line)
        return np.take_along_axis(x.reshape(x.shape[0], -1), rows, axis=1)

    return into(machine, dst, "nc_n_gather", (GPSIMD,), [tile, chosen], compute, cost=target)


def local_gather(
    dst: Any, src_buffer: Any, index: Any, num_elem_per_idx: int, num_valid_indices: int | None,
) -> Any:  # fmt: skip
    """Gather, for each group of 16 partitions, runs of ``num_elem_per_idx`` elements of every partition, on GpSimdE."""
    machine = current()
    tile, chosen = on_chip(machine, src_buffer, "src_buffer"), on_chip(machine, index, "index")
    target = on_chip(machine, dst, "dst")
    if tile.shape[0] != chosen.shape[0] or tile.shape[0] % GROUP:
        machine.fault(
            "capacity",
            f"src_buffer and index have the same multiple of {GROUP} partitions, not {tile.shape[0]} and "
            f"{chosen.shape[0]}.",
        )
    if num_elem_per_idx not in (1, 2, 4, 8, 16, 32):
        machine.fault("unsupported", f"num_elem_per_idx is 1, 2, 4, 8, 16 or 32, not {num_elem_per_idx}.")
    if target.dtype != tile.dtype or chosen.dtype != np.uint16:
        machine.fault(
            "unsupported",
            f"local_gather keeps the type ({tile.dtype.name} to {target.dtype.name}) and takes uint16 indices, "
            f"not {chosen.dtype.name}.",
        )
    every = chosen.size // (chosen.shape[0] // GROUP)
    count = every if num_valid_indices is None else num_valid_indices
    limit, line = prod(tile.shape[1:]), machine.diagnostics.line()
    if not 0 < count <= min(every, 4096) or target.size != tile.shape[0] * count * num_elem_per_idx:
        machine.fault(
            "out-of-bounds",
            f"{count} of {every} indices (at most 4,096), each for {num_elem_per_idx} elements: dst is {target.shape}.",
        )

    def compute(x: Array, at: Array) -> Any:
        if int(at.max()) + num_elem_per_idx > limit:
            message = f"An index is {at.max()}; a partition of src_buffer has {limit} elements."
            raise KernelFaultError("out-of-bounds", message, line)
        return gathered_runs(x, at, count, num_elem_per_idx)

    return into(machine, dst, "local_gather", (GPSIMD,), [tile, chosen], compute, cost=tile)


def sequence_bounds(dst: Any, segment_ids: Any) -> Any:
    """Find, for each element, where the run of its number begins and ends; ``n`` and -1 where the number is 0."""
    machine = current()
    tile, target = on_chip(machine, segment_ids, "segment_ids"), on_chip(machine, dst, "dst")
    if tile.shape[0] != 1 or target.size != 2 * tile.size:
        machine.fault(
            "out-of-bounds",
            f"sequence_bounds works on one partition and gives two values for each; dst is {target.shape} for "
            f"{tile.shape}.",
        )
    return into(machine, dst, "sequence_bounds", (GPSIMD,), [tile], segment_bounds, cost=tile)
