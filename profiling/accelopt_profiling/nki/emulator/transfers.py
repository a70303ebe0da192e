"""Moves data by DMA between HBM and the chip: loads, stores, and what DMA does on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from accelopt_profiling.nki.compute.operations import copy_values
from accelopt_profiling.nki.compute.step import ComputeStep
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.instruction import DMA, VECTOR, TracedInstruction
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.executor import Executor, narrow
from accelopt_profiling.nki.emulator.tile import Tile


class Transfers:
    """The DMA transfers of one run."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def load(self, source: Tile, dtype: np.dtype[Any] | None, mask: Any) -> Tile:
        """Read HBM into a fresh tile in SBUF: one DMA."""
        tile = self._executor.operand(source, "source of a load")
        if tile.block.info.memory is not MemorySpace.HBM:
            self._executor.diagnostics.report(
                "unsupported", "nl.load reads HBM; this tile is on the chip already: use nl.copy."
            )
        box, where = self._executor.resolve_mask(mask, tile.shape)
        self._executor.check_range(tile, box)
        instruction = self._dma("load", tile, box)
        instruction.reads.append(tile.region())
        step = None
        if box is None or all(low < high for low, high in box):
            view = self._executor.read(tile, box)
            if view is not None:
                if tile.positions is not None and box is not None:
                    inner = tuple(slice(low, high) for low, high in box)
                    step = ComputeStep(part_of, (view,), (inner,))
                else:
                    step = ComputeStep(copy_values, (view,))
        return self._executor.finish(
            instruction, tile.shape, dtype or tile.dtype, MemorySpace.SBUF, step, box, where
        )

    def store(self, target: Tile, value: Any, mask: Any) -> None:
        """Write a tile (or a number) to HBM: one DMA."""
        destination = self._executor.operand(target, "destination of a store")
        if destination.block.info.constant:
            self._executor.fault(
                "unsupported", "A kernel's input cannot be written; store to a tensor in nl.shared_hbm."
            )
        box, where = self._executor.resolve_mask(mask, destination.shape)
        self._executor.check_range(destination, box)
        if not isinstance(value, Tile):
            self._executor.number(value)
            tile = self._executor.fresh_tile(destination.shape, destination.dtype, MemorySpace.SBUF)
            self._executor.fill(tile, value, (VECTOR,))
            value = tile
        source = self._executor.operand(value, "value of a store")
        self._executor.check_fits(source, destination.shape)
        instruction = self._dma("store", destination, box)
        instruction.reads.append(source.region())
        instruction.writes.append(destination.region())
        view = self._executor.read(source, box)
        self._executor.write(
            destination, None if view is None else ComputeStep(copy_values, (view,)), box, where
        )
        value.fresh = False

    def transfer(
        self,
        target: Tile,
        sources: Sequence[Tile],
        op: Callable[..., Any],
        skip: bool,
        params: tuple[Any, ...] = (),
        transposes: bool = False,
    ) -> None:
        """Issue one DMA that writes ``op`` of the sources' values to ``target``, element by element in order.

        ``skip`` leaves out positions beyond a tensor's end; what ``transposes`` moves single elements, but for types of
        two bytes from trn2 on, for which the DMA engines have a mode of their own (trainium2_arch, DMA transpose).
        """
        if target.block.info.constant:
            self._executor.fault(
                "unsupported", "A kernel's input cannot be written; use a tensor in nl.shared_hbm."
            )
        outside = target.block.info.memory is not MemorySpace.HBM and any(
            s.block.info.memory is MemorySpace.HBM for s in sources
        )
        dram = target if target.block.info.memory is MemorySpace.HBM else sources[0]
        instruction = self._dma("load" if outside else "store", dram, None)
        if transposes and (dram.dtype.itemsize != 2 or self._executor.rules.limits.generation < 3):
            instruction.transpose, instruction.descriptors = True, dram.size
        inputs: list[Any] = []
        for tile in (*sources, target):
            index = getattr(tile, "index", None)
            if index is not None:
                instruction.reads.append(index.region())
        for source in sources:
            if source.positions is None:
                self._executor.check_range(source, None)
            instruction.reads.append(source.region())
            inputs.append(self._executor.read(self._inside(source, skip)))
        instruction.writes.append(target.region())
        if op is copy_values and sources[0].size != target.size:  # it repeats its source
            self._executor.check_fits(sources[0], target.shape)
        if not self._executor.full:
            self._executor.write(target, None)
        elif skip:
            self._write_valid(target, sources, ComputeStep(op, inputs, params))
        else:
            self._executor.write(self._inside(target, False), ComputeStep(op, inputs, params))

    def _beyond(self, tile: Tile) -> npt.NDArray[np.bool_] | None:
        """Return a mask of the positions of an indirect view outside the tensor; None where there are
        none."""
        if tile.positions is None:
            return None
        outside = (tile.positions < 0) | (tile.positions >= prod(tile.block.shape))
        return outside if outside.any() else None

    def _inside(self, tile: Tile, skip: bool) -> Tile:
        """Return the view, checked; with ``skip`` positions outside are replaced by the first one."""
        outside = self._beyond(tile)
        if outside is None or tile.positions is None:
            return tile
        if not skip:
            at = int(tile.positions[outside][0])
            self._executor.fault(
                "out-of-bounds", f"An index leads to element {at}; the tensor has {prod(tile.block.shape)}."
            )
        view = tile.strided(tile.offset, tile.dims)
        view.positions = np.where(outside, 0, tile.positions)
        return view

    def _write_valid(self, target: Tile, sources: Sequence[Tile], step: ComputeStep) -> None:
        """Write what neither side's indices put outside."""
        skipped = np.zeros(target.shape, dtype=bool)
        for tile in (target, *sources):
            outside = self._beyond(tile)
            if outside is not None:
                skipped |= outside.reshape(target.shape)
        if target.positions is None or not skipped.any():
            self._executor.write(target, step, where=~skipped if skipped.any() else None)
            return
        view = target.strided(target.offset, target.dims)
        view.positions = target.positions[~skipped]
        self._executor.write(view, ComputeStep(_kept, [~skipped, *step.inputs], (step.op, step.params)))

    def _dma(self, opcode: str, dram: Tile, box: Box | None) -> TracedInstruction:
        moved = dram.within(narrow(box, dram.shape)) if box is not None and dram.positions is None else dram
        instruction = self._executor.stream.emit(opcode, (DMA,), moved)
        instruction.bytes = moved.size * moved.dtype.itemsize
        instruction.descriptors = descriptors(moved)
        if moved.positions is None:
            instruction.pattern = (moved.offset, moved.dims)
            if moved.affine_offset is not None:
                instruction.slopes = moved.affine_offset.slopes
        return instruction


def part_of(part: tuple[slice, ...], x: Array) -> Array:
    return x[part]


def _kept(op: Callable[..., Any], params: tuple[Any, ...], kept: Array, *values: Array) -> Array:
    """Return the elements that are not skipped of what a transfer writes."""
    return np.asarray(op(*params, *values)).reshape(kept.shape)[kept]


def descriptors(dram: Tile) -> int:
    """Return the number of contiguous pieces of HBM that a transfer of the view touches; at least one per
    partition."""
    if (
        dram.positions is not None
    ):  # gathered: neighbours in the last dimension may still be neighbours in memory
        return dram.size - int((np.diff(dram.positions, axis=-1) == 1).sum())
    run = 1
    for num, step in reversed(dram.dims):
        if num > 1:
            if step != run:
                break
            run *= num
    pieces = dram.size // max(1, run)
    return max(pieces, dram.shape[0] if dram.shape else 1)
