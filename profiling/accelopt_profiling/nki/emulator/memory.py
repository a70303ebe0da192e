"""The memory of the emulated core: allocates blocks, takes a kernel's inputs and gives back its outputs."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.measurement import Finding
from accelopt_profiling.nki.compute.deferred import DeferredSteps
from accelopt_profiling.nki.compute.operations import copy_values
from accelopt_profiling.nki.compute.step import ComputeStep
from accelopt_profiling.nki.data.block import Array, Block
from accelopt_profiling.nki.data.coverage import WriteCoverage
from accelopt_profiling.nki.data.dtypes import is_float
from accelopt_profiling.nki.data.instruction import VECTOR, BlockInfo, Trace
from accelopt_profiling.nki.data.layout import contiguous
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.data.view import View
from accelopt_profiling.nki.emulator.diagnostics import Diagnostics
from accelopt_profiling.nki.emulator.hardware_rules import HardwareRules
from accelopt_profiling.nki.emulator.instruction_stream import InstructionStream
from accelopt_profiling.nki.emulator.loop_recorder import LoopRecorder
from accelopt_profiling.nki.emulator.tile import Tile, TileOperations


class DeviceMemory:
    """The blocks of one run. ``full``: values are computed; ``tile_class`` is the dialect's tensor, ``blocks`` the
    number of blocks that were made."""

    def __init__(
        self, owner: TileOperations, full: bool, trace: Trace, rules: HardwareRules, diagnostics: Diagnostics,
        recorder: LoopRecorder, stream: InstructionStream, deferred: DeferredSteps,
    ) -> None:  # fmt: skip
        self.tile_class: type[Tile] = Tile
        self._owner, self._full, self._trace = owner, full, trace
        self._rules, self.diagnostics, self.recorder = rules, diagnostics, recorder
        self._stream, self._deferred = stream, deferred
        self.blocks = 0
        self._shared: list[Tile] = []
        self.next_shared = 0

    def describe_block(
        self, memory: MemorySpace, shape: tuple[int, ...], item: int, name: str, line: int, constant: bool
    ) -> BlockInfo:
        """Return the description of a new block with elements of ``item`` bytes."""
        self.blocks += 1
        return BlockInfo(
            self.blocks, memory, shape=shape, itemsize=item, name=name, line=line, constant=constant
        )

    def allocate(
        self,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        memory: MemorySpace,
        name: str = "",
        fill: Any = None,
        line: int = 0,
        full: bool = False,
    ) -> Tile:
        """Return a new block of ``shape``: unwritten, or filled with ``fill`` (lazily: no values until it is
        read).

        ``full`` tells that an instruction writes all of it right away.

        Raises:
            KernelFaultError: the block does not fit the memory.
        """
        shape = tuple(shape)
        item = dtype.itemsize
        if memory is not MemorySpace.HBM:
            self._rules.check_block(shape, item, memory)
        info = self.describe_block(memory, shape, item, name, line or self.diagnostics.line(), False)
        block = Block(info, dtype, full or fill is not None)
        if self.recorder.loops:
            self.recorder.events.append(block)
        tile = self.tile_class(self._owner, block, 0, block.dims)
        if self._deferred.order is not None and fill is None:  # what is read too early is to be seen
            block.fill = np.nan if is_float(dtype) else 4
        if fill is not None:
            block.fill = fill
            if memory is MemorySpace.SBUF:
                instruction = self._stream.emit("memset", (VECTOR,), tile)
                instruction.writes.append((info, tile.box()))
        return tile

    def allocate_like(self, block: Block) -> Block:
        """Return a new block like one that was made in a recorded iteration, for another iteration."""
        self.blocks += 1
        copy = block.another(self.blocks)
        if self.recorder.loops:
            self.recorder.events.append(copy)
        return copy

    def shared(self, shape: Sequence[int], dtype: np.dtype[Any], name: str) -> Tile:
        """Return an output in HBM; the programs of one launch share it, by order of allocation."""
        self.recorder.forbid_replay()
        if self.next_shared < len(self._shared):
            tile = self._shared[self.next_shared]
        else:
            tile = self.allocate(shape, dtype, MemorySpace.HBM, name)
            tile.block.info.shared = True
            self._shared.append(tile)
        self.next_shared += 1
        return tile

    def begin_program(self, first: bool) -> None:
        """Start the next program of a launch; the ``first`` one makes the shared outputs."""
        self.next_shared = 0
        if first:
            self._shared = []

    def argument(self, array: Array, writable: bool = False) -> Tile:
        """Return an input in HBM: the caller's own array, of which a ``writable`` one gets a copy when it is written.

        It has no values until the steps are computed.
        """
        self.recorder.forbid_replay()
        info = self.describe_block(MemorySpace.HBM, array.shape, array.dtype.itemsize, "", 0, not writable)
        block = Block(info, array.dtype, full=True)
        if writable:
            block.coverage = WriteCoverage(block.shape, True)
        if self._full:
            self._deferred.lend(block, array)
        self._trace.input_bytes += array.nbytes
        return self.tile_class(self._owner, block, 0, block.dims)

    def output(self, tile: Tile) -> Array:
        """Return the values of a returned tensor. Elements that were never written are NaN, which is a
        finding."""
        self._trace.output_bytes += tile.size * tile.dtype.itemsize
        if not tile.block.coverage.holds(tile.box()):
            name = tile.block.info.name or f"tensor of shape {tile.shape}"
            message = f"The returned {name} is not written everywhere."
            finding = Finding("uninitialised-read", tile.block.info.line, "error", message)
            self.diagnostics.findings.append(finding)
            self.poison(tile.block)
        if self._full:
            self._deferred.run(final=True)
        else:
            return np.broadcast_to(np.zeros((), dtype=tile.dtype), tile.shape)
        return tile.array() if tile.covers_block() else tile.array().copy()

    def copy_to_hbm(self, tile: Tile) -> Tile:
        """Return a copy of a tile that outlives the run; no instruction makes it. What was not written is NaN in it."""
        copy = self.allocate(tile.shape, tile.dtype, MemorySpace.HBM, tile.block.info.name, full=True)
        if not tile.block.coverage.full:
            self.poison(tile.block)
        if self._full:
            step = ComputeStep(copy_values, (tile.as_view(),))
            step.target = copy.as_view()
            self._deferred.steps.append(step)
        return copy

    def poison(self, block: Block) -> None:
        """Let the unwritten part of a block hold NaN (4 for integers) from here on, as in the SDK's simulator."""
        if self._full:
            step = ComputeStep(np.asarray, (np.nan if is_float(block.dtype) else 4,))
            step.target = View(block, 0, (), np.flatnonzero(block.coverage.missing()))
            self._deferred.steps.append(step)
        block.coverage.full = True

    def reshape(self, tile: Tile, shape: Sequence[int]) -> Tile:
        """Return the same elements in another shape, without moving them; one size may be -1.

        Raises:
            KernelFaultError: the sizes do not fit, or the tile is a part of its block.
        """
        wanted = [int(n) for n in shape]
        if -1 in wanted:
            wanted[wanted.index(-1)] = tile.size // max(1, -prod(wanted))
        if prod(wanted) != tile.size:
            self.diagnostics.fault(
                "out-of-bounds", f"A tensor of shape {tile.shape} cannot be reshaped to {tuple(wanted)}."
            )
        if not tile.covers_block():
            self.diagnostics.fault(
                "unsupported", "Only a whole tensor can be reshaped; index the result instead."
            )
        return tile.strided(0, contiguous(tuple(wanted)))

    def reinterpret(self, tile: Tile, dtype: np.dtype[Any]) -> Tile:
        """Return the bits of a view as another type.

        Raises:
            KernelFaultError: its last dimension does not lie in one row, or does not divide.
        """
        if dtype == tile.dtype:
            return tile
        item, other = tile.dtype.itemsize, dtype.itemsize
        last = tile.dims[-1] if tile.dims and tile.positions is None else (0, 0)
        if last[0] * item % other or (last[0] > 1 and last[1] != 1) or not last[0]:
            self.diagnostics.fault(
                "unsupported",
                f"There is no view of {tile!r} as {dtype.name}: its last dimension has to lie in one row, without an "
                "index, and to be whole elements of that type.",
            )
        self.recorder.forbid_replay()
        block, info = tile.block, tile.block.info
        for copy in block.copies:
            if copy.dtype == dtype and copy.original.same_place(tile):
                return self.tile_class(self._owner, copy, 0, copy.dims)
        shape = (*tile.shape[:-1], last[0] * item // other)
        if shape != block.shape or item != other:
            info = self.describe_block(info.memory, shape, other, info.name, info.line, info.constant)
        copy = Block(info, dtype)
        copy.original, copy.outdated = tile, True
        block.copies = (*block.copies, copy)
        return self.tile_class(self._owner, copy, 0, copy.dims)
