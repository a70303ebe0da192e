"""``neuronxcc.nki.isa``: copies, DMA, and tiles made from nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.nki.beta1.engines import dtype_or_none, engines_for, two_operands
from accelopt_profiling.nki.compute.operations import copy_values
from accelopt_profiling.nki.data.dtypes import as_dtype
from accelopt_profiling.nki.data.index import Mask
from accelopt_profiling.nki.data.instruction import GPSIMD, VECTOR
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.enums import OobMode


def memset(
    shape: Any, value: Any, dtype: Any, *, mask: Any = None, engine: Any = None, **unused: Any
) -> Tile:
    """Return a tile filled with a number."""
    machine = current()
    sizes = tuple(int(n) for n in shape)
    tile = machine.executor.fresh_tile(sizes, as_dtype(dtype), MemorySpace.SBUF)
    tile.step = machine.executor.defer(np.asarray, machine.executor.number(value))
    machine.executor.write(tile, tile.step)
    tile.producer = machine.stream.emit("memset", engines_for(machine, engine, (VECTOR,)), tile)
    tile.producer.writes.append(tile.region())
    return tile


def iota(expr: Any, dtype: Any, *, mask: Any = None, **unused: Any) -> Tile:
    """Return the values of an index expression, computed on GpSimdE."""
    machine = current()
    values = np.asarray(expr)
    tile = machine.executor.fresh_tile(values.shape, as_dtype(dtype), MemorySpace.SBUF)
    tile.step = machine.executor.defer(np.asarray, values)
    machine.executor.write(tile, tile.step)
    tile.producer = machine.stream.emit("iota", (GPSIMD,), tile)
    tile.producer.writes.append(tile.region())
    return tile


def affine_select(
    pred: Any, on_true_tile: Any, on_false_value: Any, *, dtype: Any = None, mask: Any = None, **unused: Any
) -> Tile:
    """``on_true_tile`` where the predicate on indices holds, else a number; on GpSimdE."""
    machine = current()
    tile = machine.executor.operand(on_true_tile)
    chosen = _truth(pred, tile.shape)
    return machine.executor.run(
        "affine_select",
        (GPSIMD,),
        [tile],
        lambda x: np.where(chosen, x, x.dtype.type(on_false_value)),
        dtype_or_none(dtype),
        mask,
    )


def _truth(pred: Any, shape: tuple[int, ...]) -> Any:
    mask = Mask.of(pred)
    if mask is None:
        return np.ones(shape, dtype=bool)
    box, inside = mask.resolve(shape)
    chosen = np.zeros(shape, dtype=bool)
    area = tuple(slice(low, high) for low, high in box)
    chosen[area] = True if inside is None else inside
    return chosen


def dma_copy(
    *,
    dst: Any,
    src: Any,
    mask: Any = None,
    dst_rmw_op: Any = None,
    oob_mode: Any = OobMode.error,
    dge_mode: Any = None,
    **unused: Any,
) -> None:
    """Move data between HBM and SBUF, or within one of them; with ``dst_rmw_op`` it is combined with what is there."""
    machine = current()
    source, target = machine.executor.operand(src), machine.executor.operand(dst)
    if mask is None or dst_rmw_op is not None or source.positions is not None or target.positions is not None:
        if mask is not None:
            machine.fault("unsupported", "dma_copy by indices with a mask is not emulated.")
        sources, function = [source], copy_values
        if dst_rmw_op is not None:
            sources, function = [source, target], two_operands(machine, dst_rmw_op)
        machine.transfers.transfer(target, sources, function, oob_mode is OobMode.skip)
        return
    if source.block.info.memory is MemorySpace.HBM:
        loaded = machine.transfers.load(source, target.dtype, mask)
        if target.block.info.memory is MemorySpace.HBM:
            machine.transfers.store(target, loaded, mask)
        else:
            machine.assign(target, loaded)
    else:
        machine.transfers.store(target, source, mask)
