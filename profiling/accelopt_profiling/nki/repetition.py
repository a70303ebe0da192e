"""Repeat the iterations of a loop from what one of them did, without running the kernel's Python for each.

One iteration is run and noted, with counters that know how they grow (``counter.py``). Those that follow, as far as
nothing in it depended on more than that, are made from the notes: the same instructions and steps on what the other
iteration would reach. The last of them is run by Python again and compared with what the notes say; if it is not the
same, the whole kernel is run once more, by Python alone. The order of all instructions is that of the program, so
nothing is assumed about which iterations depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

from accelopt_profiling.nki.block import Block
from accelopt_profiling.nki.block_array import BlockArray
from accelopt_profiling.nki.counter import Counter, Loop, Slopes
from accelopt_profiling.nki.instruction import Instruction, Place, Region
from accelopt_profiling.nki.layout import bounding_box
from accelopt_profiling.nki.machine import Machine, _current
from accelopt_profiling.nki.notes import Covered, Event, Reached
from accelopt_profiling.nki.repeatable import repeatable
from accelopt_profiling.nki.trail import Found, Trail
from accelopt_profiling.nki.view import View
from accelopt_profiling.nki.work import Step

#: How often a loop is noted before the rest of it is left to Python: first iterations are often special.
_TRIES = 3
#: Fewer iterations than this are left to Python: one is noted and one is compared.
_FEWEST = 3


class Different(BaseException):
    """An iteration did something else than the notes say; not an error that a kernel should see."""


def iterations(numbers: range, frame: FrameType) -> Iterable[Any]:
    """The counters of the loop that ``frame`` is about to begin over ``numbers``."""
    if len(numbers) < _FEWEST or not _current or not _current[-1].noted.wanted or not repeatable(frame):
        return numbers
    return _iterations(_current[-1], numbers)


def _iterations(machine: Machine, numbers: range) -> Iterator[Any]:
    at = tries = 0
    while at < len(numbers):
        if tries == _TRIES or len(numbers) - at < _FEWEST:
            yield numbers[at]
            at += 1
            continue
        tries += 1
        noted = _Iteration(machine, at, numbers)
        yield noted.counter
        noted.end()
        last = min(noted.loop.until, len(numbers)) - 1
        if last - at < _FEWEST - 1:
            at += 1
            continue
        for ahead in range(1, last - at):
            noted.repeat(ahead)
        again = _Iteration(machine, last, numbers)
        yield again.counter
        again.end()
        if not _same(noted, again):
            machine.noted.differed = True
            raise Different
        at = last + 1


class _Iteration:
    """An iteration that Python runs, and what it does."""

    def __init__(self, machine: Machine, at: int, numbers: range) -> None:
        self.machine = machine
        self.loop = Loop(at, len(numbers), machine.issued)
        self.counter = Counter(numbers[at], ((self.loop, numbers.step),))
        machine.noted.begin(self.loop)
        self._from = len(machine.noted.events), len(machine.work.steps)
        self.events: list[Event] = []
        self.steps: list[Step] = []

    def end(self) -> None:
        noted = self.machine.noted
        noted.end(self.loop)
        self.steps = self.machine.work.steps[self._from[1] :]
        self.events = _used(noted.events[self._from[0] :], self.steps)
        noted.events[self._from[0] :] = self.events

    def repeat(self, ahead: int) -> None:
        """Do what was noted as the iteration ``ahead`` iterations later does it."""
        machine = self.machine
        elsewhere = _Elsewhere(machine, self.loop, ahead)
        issued: list[tuple[Instruction, Instruction]] = []
        for event in self.events:
            if type(event) is Instruction:
                made = event.copy()
                machine.issue(made)
                issued.append((event, made))
            elif type(event) is Covered:
                elsewhere.cover(event)
            elif type(event) is Found:
                elsewhere.find(event)
            elif type(event) is Block:
                elsewhere.blocks[event.place] = machine.another(event)
            elif type(event) is BlockArray:
                elsewhere.arrays[event] = event.another()
        for event, made in issued:  # what was looked up or made for them later is there now
            elsewhere.reach(event, made)
        steps = machine.work.steps
        for step in self.steps:
            steps.append(elsewhere.step(step))


class _Elsewhere:
    """Where the iteration ``ahead`` iterations after a noted one finds what that one touched."""

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
                self.machine.noted.differed = True
                raise Different
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


def _used(events: list[Event], steps: list[Step]) -> list[Event]:
    """The events, without blocks that nothing was written to after all: results that went elsewhere at once."""
    used: set[Place] = set()
    for event in events:
        if type(event) is Instruction:
            used.update([place for place, _ in event.reads])
            used.update([place for place, _ in event.writes])
        elif type(event) is Covered:
            used.add(event.view.block.place)
    for step in steps:
        used.update([item.block.place for item in (*step.inputs, step.target) if type(item) is View])
    return [event for event in events if type(event) is not Block or event.place in used]


def _same(noted: _Iteration, again: _Iteration) -> bool:
    """Whether an iteration that Python ran did what the notes of an earlier one say: its instructions and steps."""
    ahead, loop = again.loop.at - noted.loop.at, noted.loop

    def grown(slopes: Slopes) -> int:
        return sum(step for at, step in slopes if at is loop) * ahead

    def same_view(a: View, b: View) -> bool:
        offset = a.offset
        if a.trail is not None:
            offset += grown(a.trail.slopes)
            if (found := a.trail.found) is not None:
                position = tuple(p + grown(s) for p, s in zip(found.position, found.slopes, strict=True))
                if b.trail is None or b.trail.found is None or b.trail.found.position != position:
                    return False
        return offset == b.offset and a.dims == b.dims and a.block.shape == b.block.shape

    def same_item(a: Any, b: Any) -> bool:
        if type(a) is View and type(b) is View:
            return same_view(a, b)
        return type(a) is type(b) and (not isinstance(a, (int, float, str)) or a == b)

    def same_region(a: Region, b: Region) -> bool:
        if type(a) is Reached and type(b) is Reached:
            return same_view(a.view, b.view)
        return type(a) is type(b) and a[0].shape == b[0].shape and a[1] == b[1]

    def same_instruction(a: Instruction, b: Instruction) -> bool:
        return (
            (a.opcode, a.engines, a.line, a.partitions, a.free, a.bytes, a.flops)
            == (b.opcode, b.engines, b.line, b.partitions, b.free, b.bytes, b.flops)
            and len(a.reads) == len(b.reads)
            and len(a.writes) == len(b.writes)
            and all(map(same_region, (*a.reads, *a.writes), (*b.reads, *b.writes)))
        )

    def same_step(a: Step, b: Step) -> bool:
        return (
            same_item(a.target, b.target)
            and a.adds == b.adds
            and len(a.inputs) == len(b.inputs)
            and all(map(same_item, a.inputs, b.inputs))
        )

    instructions = [[e for e in each.events if type(e) is Instruction] for each in (noted, again)]
    return (
        len(instructions[0]) == len(instructions[1])
        and len(noted.steps) == len(again.steps)
        and all(map(same_instruction, *instructions))
        and all(map(same_step, noted.steps, again.steps))
    )
