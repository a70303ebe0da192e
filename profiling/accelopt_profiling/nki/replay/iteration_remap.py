"""What another iteration of a loop reaches, from what a noted one did: its blocks, views, regions and steps."""

from __future__ import annotations

from accelopt_profiling.nki.compute.step import Step
from accelopt_profiling.nki.data.affine_offset import Found, Trail
from accelopt_profiling.nki.data.block import Block
from accelopt_profiling.nki.data.instruction import Instruction, Place, Region
from accelopt_profiling.nki.data.layout import bounding_box
from accelopt_profiling.nki.data.loop_counter import Loop, Slopes
from accelopt_profiling.nki.data.view import View
from accelopt_profiling.nki.emulator.block_array import BlockArray
from accelopt_profiling.nki.emulator.loop_recorder import Covered, Reached
from accelopt_profiling.nki.emulator.machine import Machine


class Elsewhere:
    """Where the iteration ``ahead`` iterations after the noted one of ``loop`` finds what that one touched.

    ``blocks`` and ``arrays`` are its own, by those of the noted one that they take the place of.
    """

    def __init__(self, machine: Machine, loop: Loop, ahead: int) -> None:
        self.machine, self.loop, self.ahead = machine, loop, ahead
        self.outer = bool(machine.noted.loops)  # whether a loop around is noting this
        self.blocks: dict[Place, Block] = {}
        self.arrays: dict[BlockArray, BlockArray] = {}
        self.found: dict[Found, Found] = {}
        self.steps: dict[Step, Step] = {}

    def grown(self, slopes: Slopes) -> tuple[int, Slopes]:
        """By how much a number has grown, and how it grows with other loops."""
        if len(slopes) == 1 and slopes[0][0] is self.loop:
            return slopes[0][1] * self.ahead, ()
        growth, left = 0, []
        for slope in slopes:
            if slope[0] is self.loop:
                growth = slope[1] * self.ahead
            else:
                left.append(slope)
        return growth, tuple(left)

    def find(self, event: Found) -> None:
        position, slopes = [], []
        for number, growing in zip(event.position, event.slopes, strict=True):
            growth, left = self.grown(growing) if growing else (0, ())
            position.append(number + growth)
            slopes.append(left)
        array = self.arrays.get(event.array, event.array)
        self.found[event] = self.machine.noted.found(array, tuple(position), tuple(slopes), event.line)

    def view(self, view: View) -> View:
        trail = view.trail
        if trail is None:
            block = self.blocks.get(view.block.place)
            return view if block is None else View(block, view.offset, view.dims, view.positions)
        growth, left = self.grown(trail.slopes) if trail.slopes else (0, ())
        found = trail.found
        if found is None:
            block = self.blocks.get(view.block.place, view.block)
        else:
            found = self.found.get(found, found)
            block = found.block
        kept = Trail(left, found) if self.outer and (left or found is not None) else None
        return View(block, view.offset + growth, view.dims, view.positions, kept)

    def region(self, region: Region) -> Region:
        if type(region) is Reached:
            view = self.view(region.view)
            return (view.block.place, view.box()) if view.trail is None else Reached.of(view)
        block = self.blocks.get(region[0])
        return region if block is None else (block.place, region[1])

    def reach(self, noted: Instruction, made: Instruction) -> None:
        made.reads = [self.region(region) for region in noted.reads]
        made.writes = [self.region(region) for region in noted.writes]
        if noted.slopes and noted.pattern is not None:
            growth, made.slopes = self.grown(noted.slopes)
            made.pattern = (noted.pattern[0] + growth, *noted.pattern[1:])

    def cover(self, event: Covered) -> None:
        view = self.view(event.view)
        coverage = view.block.coverage
        if not coverage.full:
            box, dense = bounding_box(view.offset, view.dims, view.block.shape)
            if event.writes and dense:
                coverage.write(box)
            elif event.writes or view.positions is not None or not coverage.holds(box):
                self.machine.noted.differs()
        if self.outer:
            self.machine.noted.covered(view, event.writes)

    def step(self, noted: Step) -> Step:
        inputs = [
            self.view(item)
            if type(item) is View
            else self.steps.get(item, item)
            if type(item) is Step
            else item
            for item in noted.inputs
        ]
        made = Step(noted.function, inputs)
        if noted.target is not None:
            made.target = self.view(noted.target)
        made.where, made.adds, made.keep = noted.where, noted.adds, noted.keep
        if noted.keep:
            self.steps[noted] = made
        return made
