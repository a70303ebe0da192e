"""``nki.isa``: moving data, by DMA and between the on-chip memories."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import copy_values, operation_name
from accelopt_profiling.nki.current.grids import in_place_of
from accelopt_profiling.nki.current.operands import engines, into, matched, on_chip, operator, real, same_size
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.instruction import GPSIMD, SCALAR, VECTOR
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.enums import DgeMode, OobMode
from accelopt_profiling.nki.frontend.language import data_type


def dma_copy(dst: Any, src: Any, oob_mode: Any, dge_mode: Any) -> Any:
    """Copy by DMA between or within HBM and SBUF; shapes may differ, element counts may not."""
    machine = current()
    target, source = machine.executor.operand(dst, "dst"), machine.executor.operand(src, "src")
    _check_dma(machine, target, source)
    target, source = in_place_of(target, source), in_place_of(source, target)
    if dge_mode is DgeMode.hwdge and target.dtype != source.dtype:
        machine.fault("unsupported", f"dge_mode.hwdge cannot convert {source.dtype} to {target.dtype}.")
    machine.transfers.transfer(target, [source], copy_values, oob_mode is OobMode.skip)


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
    target, sources = machine.executor.operand(dst, "dst"), [machine.executor.operand(s, "src") for s in srcs]
    _check_dma(machine, target, *sources)

    def total(*values: Array) -> Any:
        result = real(values[0]).reshape(-1)
        for value in values[1:]:
            result = result + real(value).reshape(-1)
        return result

    machine.transfers.transfer(target, sources, total, oob_mode is OobMode.skip)


#: The orders of dimensions that DMA can transpose, by rank.
TRANSPOSES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


def dma_transpose(dst: Any, src: Any, axes: Any, oob_mode: Any) -> Any:
    """Transpose by DMA: (1, 0), (2, 1, 0) or (3, 1, 2, 0) by the rank of ``src``."""
    machine = current()
    target, source = machine.executor.operand(dst, "dst"), machine.executor.operand(src, "src")
    _check_dma(machine, target, source)
    order = TRANSPOSES.get(len(source.shape))
    if order is None or (axes is not None and tuple(axes) != order):
        machine.fault(
            "unsupported", f"dma_transpose of shape {source.shape} with axes {axes}: DMA knows {TRANSPOSES}."
        )
    if tuple(source.shape[a] for a in order) != target.shape:
        wanted = tuple(source.shape[a] for a in order)
        machine.fault(
            "out-of-bounds", f"The transpose of {source.shape} has the shape {wanted}, dst {target.shape}."
        )
    machine.transfers.transfer(
        target, [source], lambda x: x.transpose(order), oob_mode is OobMode.skip, transposes=True
    )


def tensor_copy(dst: Any, src: Any, engine: Any, dtype: Any) -> Any:
    """Copy within SBUF and PSUM. ``dtype`` is left from Beta 1, where it made the result's: it may repeat ``dst``'s."""
    machine = current()
    tile, target = on_chip(machine, src, "src"), on_chip(machine, dst, "dst")
    if dtype is not None:
        if data_type(dtype) != target.dtype:
            machine.fault(
                "unsupported",
                f"tensor_copy takes no dtype: it copies into dst, which is {target.dtype.name}.",
            )
        machine.diagnostics.report(
            "deprecated", "tensor_copy takes no dtype any more; that of dst decides.", "information"
        )
    same_size(machine, target, tile, "src")
    where = engines(machine, engine, (VECTOR, SCALAR), (GPSIMD,))
    return into(machine, dst, "tensor_copy", where, [tile], copy_values, cost=tile)


def tensor_copy_predicated(dst: Any, src: Any, predicate: Any, reverse_pred: bool) -> Any:
    """Copy ``src`` (a tile or a number) where ``predicate`` is not zero; ``dst`` keeps the rest."""
    machine = current()
    target, chosen = on_chip(machine, dst, "dst"), on_chip(machine, predicate, "predicate")
    same_size(machine, target, chosen, "predicate")
    source = src
    if isinstance(src, Tile):
        source = on_chip(machine, src, "src")
        same_size(machine, target, source, "src")

    def compute(p: Array, x: Any, old: Array) -> Any:
        return np.where((matched(p, old) != 0) != reverse_pred, matched(x, old), old)

    return into(
        machine, dst, "tensor_copy_predicated", (VECTOR,), [chosen, source, target], compute, cost=target
    )


def nc_stream_shuffle(dst: Any, src: Any, shuffle_mask: Any) -> Any:
    """Move partitions within each group of 32: partition i takes ``shuffle_mask[i]``; 255 leaves it alone."""
    machine = current()
    tile, target = on_chip(machine, src, "src"), on_chip(machine, dst, "dst")
    mask = [int(m) for m in shuffle_mask]
    if len(mask) != 32 or any(m != 255 and not 0 <= m < 32 for m in mask):
        machine.fault("out-of-bounds", "shuffle_mask holds 32 numbers from 0 to 31, or 255.")
    if prod(tile.shape[1:]) != prod(target.shape[1:]):
        machine.fault(
            "out-of-bounds", f"src {tile.shape} and dst {target.shape} differ in elements per partition."
        )
    if tile.dtype != target.dtype:
        machine.fault(
            "unsupported", f"nc_stream_shuffle keeps the type: src is {tile.dtype}, dst {target.dtype}."
        )
    rows = target.shape[0]
    sources = [(at, at // 32 * 32 + mask[at % 32]) for at in range(rows) if mask[at % 32] != 255]
    beyond = [s for _, s in sources if s >= tile.shape[0]]
    if beyond:
        machine.fault("out-of-bounds", f"shuffle_mask reads partition {beyond[0]}; src has {tile.shape[0]}.")
    kept = len(sources) < rows

    def compute(x: Array, old: Array | None = None) -> Any:
        x = x.reshape(x.shape[0], -1)
        result = np.empty((rows, x.shape[1]), x.dtype) if old is None else old.reshape(rows, -1).copy()
        result[[to for to, _ in sources]] = x[[at for _, at in sources]]
        return result

    return into(
        machine, dst, "nc_stream_shuffle", (VECTOR,), [tile, target] if kept else [tile], compute, cost=tile
    )


def _pattern(machine: Machine, target: Tile, pattern: Any, offset: Any, multiplier: Any) -> Any:
    """``offset + partition * multiplier + sum(step * i)`` for every element of ``target``."""
    pairs = [(int(step), int(num)) for step, num in pattern]
    if prod(num for _, num in pairs) != prod(target.shape[1:]):
        machine.fault(
            "out-of-bounds", f"The pattern {pairs} has not as many elements as a partition of {target.shape}."
        )
    values = np.zeros([num for _, num in pairs], dtype=np.int64)
    for axis, (step, num) in enumerate(pairs):
        values += (np.arange(num) * step).reshape([-1 if axis == d else 1 for d in range(len(pairs))])
    lanes = np.arange(target.shape[0]) * int(multiplier) + int(offset)
    return (lanes[:, None] + values.reshape(1, -1)).reshape(target.shape)


def iota(dst: Any, pattern: Any, offset: Any, channel_multiplier: int) -> Any:
    """Write numbers in a regular pattern, made on GpSimdE."""
    machine = current()
    target = on_chip(machine, dst, "dst")
    values = _pattern(machine, target, pattern, offset, channel_multiplier)
    return into(machine, dst, "iota", (GPSIMD,), [], lambda: values)


def affine_select(
    dst: Any, pattern: Any, channel_multiplier: int, on_true_tile: Any, on_false_value: float, cmp_op: Any,
    offset: Any,
) -> Any:  # fmt: skip
    """``on_true_tile`` where the pattern's number compares with 0 as ``cmp_op`` says, else a number; on GpSimdE."""
    machine = current()
    target, tile = on_chip(machine, dst, "dst"), on_chip(machine, on_true_tile, "on_true_tile")
    same_size(machine, target, tile, "on_true_tile")
    compare = operator(machine, cmp_op)
    numbers = _pattern(machine, target, pattern, offset, channel_multiplier)
    chosen = compare(numbers.astype(np.float32), np.float32(0)) != 0

    def compute(x: Array) -> Any:
        return np.where(chosen, x.reshape(chosen.shape), np.float32(on_false_value))

    return into(machine, dst, "affine_select", (GPSIMD,), [tile], compute, cost=tile)
