"""Translates what a recorded iteration of a loop touched to another iteration: blocks, views, regions and steps."""

from __future__ import annotations

from accelopt_profiling.nki.compute.step import ComputeStep
from accelopt_profiling.nki.data.affine_offset import AffineOffset, BlockTable, TileLookup
from accelopt_profiling.nki.data.block import Block
from accelopt_profiling.nki.data.coverage import whole
from accelopt_profiling.nki.data.instruction import BlockInfo, Region, TracedInstruction
from accelopt_profiling.nki.data.layout import bounding_box
from accelopt_profiling.nki.data.loop_counter import RecordedLoop, Slopes
from accelopt_profiling.nki.data.view import LoopRegion, View
from accelopt_profiling.nki.emulator.loop_recorder import LoopRecorder, MemoryAccess


class IterationRemap:
    """Translates to the iteration ``ahead`` iterations after the recorded one of ``loop``.

    ``blocks`` and ``tables`` are those that this iteration made, by those of the recorded one that they replace.
    """

    def __init__(self, recorder: LoopRecorder, loop: RecordedLoop, ahead: int) -> None:
        self._recorder, self._loop, self._ahead = recorder, loop, ahead
        self._nested = bool(recorder.loops)  # a loop around records this one
        self.blocks: dict[BlockInfo, Block] = {}
        self.tables: dict[BlockTable, BlockTable] = {}
        self._lookups: dict[TileLookup, TileLookup] = {}
        self._steps: dict[ComputeStep, ComputeStep] = {}

    def _grow(self, slopes: Slopes) -> tuple[int, Slopes]:
        """By how much a number has grown since the recorded iteration, and its slopes in other loops."""
        if len(slopes) == 1 and slopes[0][0] is self._loop:
            return slopes[0][1] * self._ahead, ()
        growth, rest = 0, []
        for slope in slopes:
            if slope[0] is self._loop:
                growth = slope[1] * self._ahead
            else:
                rest.append(slope)
        return growth, tuple(rest)

    def look_up(self, event: TileLookup) -> None:
        """Repeat a look-up in a table of blocks."""
        position, slopes = [], []
        for number, growing in zip(event.position, event.slopes, strict=True):
            growth, rest = self._grow(growing) if growing else (0, ())
            position.append(number + growth)
            slopes.append(rest)
        table = self.tables.get(event.table, event.table)
        self._lookups[event] = self._recorder.look_up(table, tuple(position), tuple(slopes), event.line)

    def _view(self, view: View) -> View:
        offset = view.affine_offset
        if offset is None:
            block = self.blocks.get(view.block.info)
            return view if block is None else View(block, view.offset, view.dims, view.positions)
        growth, rest = self._grow(offset.slopes) if offset.slopes else (0, ())
        lookup = offset.lookup
        if lookup is None:
            block = self.blocks.get(view.block.info, view.block)
        else:
            lookup = self._lookups.get(lookup, lookup)
            block = lookup.block
        affine = AffineOffset(rest, lookup) if self._nested and (rest or lookup is not None) else None
        return View(block, view.offset + growth, view.dims, view.positions, affine)

    def _region_of(self, view: View) -> Region:
        view = self._view(view)
        return (view.block.info, view.box()) if view.affine_offset is None else LoopRegion.of(view)

    def _regions(self, recorded: list[Region]) -> list[Region]:
        block_of = self.blocks.get
        return [
            self._region_of(region.view)
            if type(region) is LoopRegion
            else region
            if (block := block_of(region[0])) is None
            else (block.info, region[1])
            for region in recorded
        ]

    def set_regions(self, recorded: TracedInstruction, copy: TracedInstruction) -> None:
        """Let a copy of a recorded instruction read and write what this iteration does."""
        copy.reads, copy.writes = self._regions(recorded.reads), self._regions(recorded.writes)
        if recorded.slopes and recorded.pattern is not None:
            growth, copy.slopes = self._grow(recorded.slopes)
            copy.pattern = (recorded.pattern[0] + growth, *recorded.pattern[1:])

    def access(self, event: MemoryAccess) -> None:
        """Repeat an access to memory.

        Raises:
            ReplayMismatchError: it reads memory that was not written, or writes a part that is no box.
        """
        view = event.view
        if not self._nested and view.affine_offset is None:
            block = self.blocks.get(view.block.info, view.block)
            if block.coverage.full:
                return
            if event.writes and view.whole:
                block.coverage.write(whole(block.shape))
                return
        view = self._view(view)
        coverage = view.block.coverage
        if not coverage.full:
            box, dense = bounding_box(view.offset, view.dims, view.block.shape)
            if event.writes and dense:
                coverage.write(box)
            elif event.writes or view.positions is not None or not coverage.holds(box):
                self._recorder.mismatch()
        if self._nested:
            self._recorder.access(view, event.writes)

    def step(self, recorded: ComputeStep) -> ComputeStep:
        """Return the step of this iteration."""
        inputs = [
            self._view(item)
            if type(item) is View
            else self._steps.get(item, item)
            if type(item) is ComputeStep
            else item
            for item in recorded.inputs
        ]
        step = ComputeStep(recorded.op, inputs, recorded.params)
        if recorded.target is not None:
            step.target = self._view(recorded.target)
        step.where, step.adds, step.keep = recorded.where, recorded.adds, recorded.keep
        if recorded.keep:
            self._steps[recorded] = step
        return step
