"""Data between HBM and the chip: loads, stores, and what DMA does on the way."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from accelopt_profiling.nki.compute.step import Step
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.instruction import DMA, VECTOR, Instruction, Memory
from accelopt_profiling.nki.emulator import limits as rules
from accelopt_profiling.nki.emulator.executor import Executor, narrow
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.movement import same


class Transfers(Executor, ABC):
    """A chip that moves data by DMA."""

    def load(self, source: Tile, dtype: np.dtype[Any] | None, mask: Any) -> Tile:
        """Read HBM into a fresh tile in SBUF: one DMA."""
        tile = self.operand(source, "source of a load")
        if tile.block.place.memory is not Memory.HBM:
            self.tell("unsupported", "nl.load reads HBM; this tile is on the chip already: use nl.copy.")
        box, where = self._mask(mask, tile.shape)
        self._check_range(tile, box)
        instruction = self._dma("load", tile, box)
        instruction.reads.append(tile.region())
        step = None
        if box is None or all(low < high for low, high in box):
            view = self.seen(tile, box)
            if view is not None:
                if tile.positions is not None and box is not None:
                    inner = tuple(slice(low, high) for low, high in box)
                    step = Step(lambda x: x[inner], (view,))
                else:
                    step = Step(same, (view,))
        return self._finish(instruction, tile.shape, dtype or tile.dtype, Memory.SBUF, step, box, where)

    def store(self, target: Tile, value: Any, mask: Any) -> None:
        """Write a tile (or a number) to HBM: one DMA."""
        destination = self.operand(target, "destination of a store")
        if destination.block.place.constant:
            self.fault(
                "unsupported", "A kernel's input cannot be written; store to a tensor in nl.shared_hbm."
            )
        box, where = self._mask(mask, destination.shape)
        self._check_range(destination, box)
        if not isinstance(value, Tile):
            value = self.run(
                "memset", (VECTOR,), [destination], lambda _: np.asarray(value), destination.dtype
            )
        source = self.operand(value, "value of a store")
        self._fit(source, destination.shape)
        instruction = self._dma("store", destination, box)
        instruction.reads.append(source.region())
        instruction.writes.append(destination.region())
        view = self.seen(source, box)
        self.write(destination, None if view is None else Step(same, (view,)), box, where)
        value.fresh = False

    def transfer(
        self,
        target: Tile,
        sources: Sequence[Tile],
        function: Callable[..., Array],
        skip: bool,
        element: bool = False,
    ) -> None:
        """One DMA that writes ``function`` of the sources' values to ``target``, element by element in order.

        ``skip`` leaves out positions beyond a tensor's end; ``element`` moves single elements, as a transpose does.
        """
        if target.block.place.constant:
            self.fault("unsupported", "A kernel's input cannot be written; use a tensor in nl.shared_hbm.")
        outside = target.block.place.memory is not Memory.HBM and any(
            s.block.place.memory is Memory.HBM for s in sources
        )
        dram = target if target.block.place.memory is Memory.HBM else sources[0]
        instruction = self._dma("load" if outside else "store", dram, None)
        if element:
            instruction.descriptors = dram.size
        inputs: list[Any] = []
        for tile in (*sources, target):
            index = getattr(tile, "index", None)
            if index is not None:
                instruction.reads.append(index.region())
        for source in sources:
            self._check_range(source, None)
            instruction.reads.append(source.region())
            inputs.append(self.seen(self._inside(source, skip)))
        instruction.writes.append(target.region())
        if not self.full:
            self.write(target, None)
            return
        shape = target.shape

        def compute(*arrays: Array) -> Array:
            return np.asarray(function(*arrays)).reshape(shape)

        if function is same and not skip:
            self.write(self._inside(target, False), Step(same, inputs))
        elif skip:
            self._write_valid(target, sources, compute, inputs)
        else:
            self.write(self._inside(target, False), Step(compute, inputs))

    def _beyond(self, tile: Tile) -> npt.NDArray[np.bool_] | None:
        """Which positions of an indirect view lie outside the tensor."""
        if tile.positions is None:
            return None
        outside = (tile.positions < 0) | (tile.positions >= prod(tile.block.shape))
        return outside if outside.any() else None

    def _inside(self, tile: Tile, skip: bool) -> Tile:
        """The view, checked; with ``skip`` positions outside are replaced by the first one."""
        outside = self._beyond(tile)
        if outside is None or tile.positions is None:
            return tile
        if not skip:
            at = int(tile.positions[outside][0])
            self.fault(
                "out-of-bounds", f"An index leads to element {at}; the tensor has {prod(tile.block.shape)}."
            )
        view = tile.strided(tile.offset, tile.dims)
        view.positions = np.where(outside, 0, tile.positions)
        return view

    def _write_valid(
        self, target: Tile, sources: Sequence[Tile], compute: Callable[..., Array], inputs: list[Any]
    ) -> None:
        """Write what neither side's indices put outside."""
        skipped = np.zeros(target.shape, dtype=bool)
        for tile in (target, *sources):
            outside = self._beyond(tile)
            if outside is not None:
                skipped |= outside.reshape(target.shape)
        if not skipped.any():
            self.write(target, Step(compute, inputs))
        elif target.positions is None:
            self.write(target, Step(compute, inputs), where=~skipped)
        else:
            view = target.strided(target.offset, target.dims)
            view.positions = target.positions[~skipped]
            self.write(view, Step(lambda *arrays: compute(*arrays)[~skipped], inputs))

    def _dma(self, opcode: str, dram: Tile, box: Box | None) -> Instruction:
        moved = dram.within(narrow(box, dram.shape)) if box is not None and dram.positions is None else dram
        instruction = self.emit(opcode, (DMA,), moved)
        instruction.bytes = moved.size * moved.dtype.itemsize
        instruction.descriptors = rules.descriptors(moved)
        if moved.positions is None:
            instruction.pattern = (moved.offset, moved.dims)
            if moved.trail is not None:
                instruction.slopes = moved.trail.slopes
        return instruction

    def _fit(self, source: Tile, shape: tuple[int, ...]) -> None:
        if source.shape == shape:
            return
        try:
            fits = np.broadcast_shapes(source.shape, shape) == shape
        except ValueError:
            fits = source.size == prod(shape) and [n for n in source.shape if n > 1] == [
                n for n in shape if n > 1
            ]
        if not fits:
            self.fault(
                "out-of-bounds", f"A value of shape {source.shape} is written to a place of shape {shape}."
            )
