"""Run single instructions: read operands, compute, keep the result; masks and ranges are checked here."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.step import Step
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.coverage import WRITTEN, Box
from accelopt_profiling.nki.data.index import BoolArray, Mask
from accelopt_profiling.nki.data.instruction import Instruction, Memory
from accelopt_profiling.nki.data.layout import bounding_box
from accelopt_profiling.nki.data.view import View
from accelopt_profiling.nki.emulator import limits as rules
from accelopt_profiling.nki.emulator.block_array import BlockArray
from accelopt_profiling.nki.emulator.memory import Chip
from accelopt_profiling.nki.emulator.tile import Tile


class Executor(Chip, ABC):
    """A chip that runs instructions on tiles."""

    # Values

    def seen(self, tile: Tile, box: Box | None = None) -> View | None:
        """What an instruction reads; None in trace mode. Unwritten memory is told and reads as NaN."""
        if box is not None and tile.positions is None:
            tile = tile.within(narrow(box, tile.shape))
        self.known(tile)
        return View.of(tile) if self.full else None

    def known(self, tile: Tile) -> None:
        """Tell, once for a block, if not all of a tile that is read was written."""
        coverage = tile.block.coverage
        if self.noted.loops and coverage is not WRITTEN:
            self.noted.covered(View.of(tile), False)
        if not coverage.full:
            written = (
                coverage.holds(tile.box())
                if tile.positions is None
                else coverage.holds_positions(tile.positions)
            )
            if not written:
                self.noted.cannot_be_repeated()
                message = f"{_describe(tile)} is read here before all of it was written."
                self.tell("uninitialised-read", message)
                if self.full:
                    self._poison(tile.block)
                coverage.full = True  # told once; the poison is in place

    def later(self, function: Callable[..., Any], *operands: Any) -> Step | None:
        """A computation on what ``operands`` (tiles, or plain values) hold now; None in trace mode."""
        inputs = [self.seen(o) if isinstance(o, Tile) else o for o in operands]
        return Step(function, inputs) if self.full else None

    def values(self, tile: Tile) -> Array | None:
        """The values of a tile now, for what the kernel's own Python needs to know; None in trace mode."""
        view = self.seen(tile)
        self.noted.cannot_be_repeated()
        if view is None:
            return None
        self.work.do()
        return np.array(view.array())

    def index_values(self, tile: Tile) -> Array | None:
        """The values of a tensor of indices, now; None in trace mode."""
        return self.values(tile)

    def write(
        self, tile: Tile, made: Step | None, box: Box | None = None, where: BoolArray | None = None
    ) -> None:
        """Write what a step makes (broadcast) to a view, inside ``box`` and where ``where`` says so."""
        block = tile.block
        if tile.positions is not None:
            self.noted.cannot_be_repeated()
            block.coverage.write_positions(tile.positions)
        else:
            if box is not None:
                tile = tile.within(narrow(box, tile.shape))
            if 0 in tile.shape:
                return
            touched, dense = bounding_box(tile.offset, tile.dims, block.shape)
            if self.noted.loops and block.coverage is not WRITTEN:
                if dense and where is None:
                    self.noted.covered(View.of(tile), True)
                else:
                    self.noted.cannot_be_repeated()
            if dense and where is None:
                block.coverage.write(touched)
            elif not block.coverage.full:
                flat = tile.addresses()
                block.coverage.write_positions(
                    flat if where is None else flat[np.broadcast_to(where, tile.shape)]
                )
        if made is not None:
            made.target, made.where = View.of(tile), where
            self.work.steps.append(made)

    # Instructions

    def fresh(
        self, shape: Sequence[int], dtype: np.dtype[Any], memory: Memory, line: int = 0, full: bool = False
    ) -> Tile:
        """A tile for the result of an instruction that has no other home yet; ``full``: which writes all of it."""
        shape = tuple(shape)
        if len(shape) < 2:
            shape = (*shape, 1) if shape else (1, 1)
        tile = self.allocate(shape, dtype, memory, line=line, full=full)
        tile.fresh = True
        return tile

    def run(
        self, opcode: str, engines: tuple[str, ...], operands: Sequence[Any], function: Callable[..., Any],
        dtype: np.dtype[Any] | None = None, mask: Any = None, shape: Sequence[int] | None = None,
        memory: Memory = Memory.SBUF, cost: Tile | None = None,
    ) -> Tile:  # fmt: skip
        """Run an instruction: read ``operands`` (tiles or numbers), apply ``function``, return a fresh tile.

        ``shape`` defaults to the operands' broadcast shape; ``cost`` names the operand that sets the cost (the
        first by default). Tiles are computed in float32 and rounded to ``dtype``.
        """
        tiles = [self.operand(o) if isinstance(o, (Tile, BlockArray)) else o for o in operands]
        real = [t for t in tiles if isinstance(t, Tile)]
        first = real[0] if cost is None else cost
        for tile in real:
            if tile.block.place.memory is Memory.HBM:
                rules.check_operand(self, tile, opcode)
        result_shape = tuple(shape) if shape is not None else self.broadcast_shape(real)
        box, where = self._mask(mask, result_shape) if mask is not None else (None, None)
        instruction = self.emit(opcode, engines, first)
        read_box = box if shape is None else None
        inputs: list[Any] = []
        for tile in tiles:
            if isinstance(tile, Tile):
                if tile.out_of_range:
                    self._check_range(tile, read_box)
                instruction.reads.append(tile.region())
                instruction.psum_inputs += tile.block.place.memory is Memory.PSUM
                inputs.append(self.seen(tile, read_box))
                tile.fresh = False
            else:
                inputs.append(tile)
        kind = dtype or first.dtype
        step = None
        if self.full and (box is None or all(low < high for low, high in box)):
            step = Step(function, inputs)
        return self._finish(instruction, result_shape, kind, memory, step, box, where)

    def _finish(
        self, instruction: Instruction, shape: tuple[int, ...], dtype: np.dtype[Any], memory: Memory,
        step: Step | None, box: Box | None, where: BoolArray | None,
    ) -> Tile:  # fmt: skip
        whole = box is None and where is None
        tile = self.fresh(shape, dtype, memory, instruction.line, whole)
        if whole:
            if step is not None:
                step.target = View.of(tile)
                self.work.steps.append(step)
        else:
            self.write(tile, step, box, where)
            tile.valid, tile.where = box, where
        tile.step = step
        instruction.writes.append(tile.region())
        tile.producer = instruction
        return tile

    def _mask(self, mask: Any, shape: tuple[int, ...]) -> tuple[Box | None, BoolArray | None]:
        resolved = Mask.of(mask)
        if resolved is None:
            return None, None
        box, where = resolved.resolve(shape)
        if where is None and all(low == 0 and high == n for (low, high), n in zip(box, shape, strict=True)):
            return None, None
        return box, where

    def _check_range(self, tile: Tile, box: Box | None) -> None:
        for size, index in tile.out_of_range:
            low, high = index.low, index.high
            if box is not None:
                inner = narrow(box, tile.shape)[len(tile.shape) - len(index.dims) :]
                if any(a >= b for a, b in inner):
                    continue
                clipped = index[tuple(slice(a, b) for a, b in inner)]
                low, high = clipped.low, clipped.high
            if low < 0 or high >= size:
                message = (
                    f"The index covers {low} to {high}; the dimension has size {size} (0 to {size - 1})."
                )
                self.fault("out-of-bounds", message)

    def broadcast_shape(self, tiles: Sequence[Tile]) -> tuple[int, ...]:
        """The shape of an element-wise result.

        Raises:
            KernelFault: the shapes do not fit each other.
        """
        try:
            if len(tiles) == 1:
                return tiles[0].shape
            return _broadcast(*[t.shape for t in tiles])
        except ValueError:
            shapes = " and ".join(str(t.shape) for t in tiles)
            return self.fault("out-of-bounds", f"The shapes {shapes} do not fit each other.")


#: ``np.broadcast_shapes``, for the few shapes that a kernel has.
_broadcast = lru_cache(maxsize=1024)(np.broadcast_shapes)


def narrow(box: Box, shape: tuple[int, ...]) -> Box:
    """``box`` for an operand of ``shape`` that may be broadcast: its dimensions of size 1 stay whole."""
    aligned = box[len(box) - len(shape) :] if len(shape) <= len(box) else box
    return tuple(
        (0, 1) if n == 1 and high > low else (low, high)
        for (low, high), n in zip(aligned, shape, strict=True)
    )


def _describe(tile: Tile) -> str:
    place = tile.block.place
    made = f" (made on line {place.line})" if place.line else ""
    return f"{place.name or 'A tile'}{made} in {place.memory.value}"
