"""Replays the iterations of a loop from one that was recorded, without running the kernel's Python for each.

Python runs one iteration with a counter that knows its slope (``data/loop_counter.py``), and what it does is recorded.
The iterations that follow are replayed as long as nothing depended on the counter in another way: the same
instructions and steps, on the memory that the other iteration would touch. Python runs the last of them with a plain
number, and it is compared with the recording; where it differs, or an exception leaves a loop, the whole kernel runs
once more without replay. The instructions keep the program's order, so nothing is assumed about which iterations depend
on each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from accelopt_profiling.nki.compute.step import ComputeStep
from accelopt_profiling.nki.data.affine_offset import TileLookup
from accelopt_profiling.nki.data.block import Block
from accelopt_profiling.nki.data.instruction import BlockInfo, TracedInstruction
from accelopt_profiling.nki.data.loop_counter import LoopCounter, RecordedLoop
from accelopt_profiling.nki.data.view import View
from accelopt_profiling.nki.emulator.block_array import BlockArray
from accelopt_profiling.nki.emulator.loop_recorder import Event, MemoryAccess
from accelopt_profiling.nki.emulator.machine import Machine, running_machine
from accelopt_profiling.nki.replay.iteration_remap import IterationRemap
from accelopt_profiling.nki.replay.loop_body import is_replayable
from accelopt_profiling.nki.replay.replay_check import ReplayCheck

#: How often a loop is recorded before the rest of it is left to Python: first iterations are often special.
_TRIES = 3
#: Fewer iterations than this are left to Python: one is recorded and one is compared.
_FEWEST = 3
#: After so many passes through a loop of which nothing could be replayed, the later ones are left to Python.
_IN_VAIN = 3


def iterations(numbers: range, frame: FrameType) -> Iterable[Any]:
    """Return the counters of the loop that ``frame`` is about to begin over ``numbers``."""
    machine = running_machine()
    if len(numbers) < _FEWEST or machine is None or not machine.recorder.enabled:
        return numbers
    in_vain, loop = machine.recorder.in_vain, (frame.f_code, frame.f_lineno)
    if in_vain.get(loop, 0) >= _IN_VAIN or not is_replayable(frame):
        return numbers
    return _ReplayedRange(machine, numbers, loop)


@dataclass
class _ReplayedRange:
    """The counters of a loop over ``numbers`` whose later iterations are replayed."""

    machine: Machine
    numbers: range
    loop: Hashable

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Any]:
        return _iterations(self.machine, self.numbers, self.loop)


def _iterations(machine: Machine, numbers: range, loop: Hashable) -> Iterator[Any]:
    in_vain = machine.recorder.in_vain
    in_vain[loop] = in_vain.get(loop, 0) + 1
    at = tries = 0
    while at < len(numbers):
        if tries == _TRIES or len(numbers) - at < _FEWEST:
            yield numbers[at]
            at += 1
            continue
        tries += 1
        recorded = RecordedIteration(machine, at, numbers)
        with recorded:
            yield recorded.counter
        last = min(recorded.loop.until, len(numbers)) - 1
        if last - at < _FEWEST - 1:
            at += 1
            continue
        in_vain[loop] = 0
        for ahead in range(1, last - at):
            recorded.replay(ahead)
        again = RecordedIteration(machine, last, numbers)
        with again:
            yield numbers[last]  # what the loop leaves behind holds plain numbers
        if not recorded.agrees_with(again):
            machine.recorder.mismatch()
        at = last + 1


class RecordedIteration:
    """An iteration that Python runs inside a ``with``. Afterwards ``events`` and ``steps`` hold what it did."""

    def __init__(self, machine: Machine, at: int, numbers: range) -> None:
        self._machine = machine
        self.loop = RecordedLoop(at, len(numbers), machine.stream.issued, machine.memory.blocks)
        self.counter = LoopCounter(numbers[at], ((self.loop, numbers.step),))
        self._from = 0, 0
        self.events: list[Event] = []
        self.steps: list[ComputeStep] = []

    def __enter__(self) -> None:
        recorder = self._machine.recorder
        recorder.begin(self.loop)
        self._from = len(recorder.events), len(self._machine.deferred.steps)

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        recorder = self._machine.recorder
        recorder.end(self.loop)
        if kind is not None:  # an exception left the loop: whatever raised it may not know counters
            recorder.mismatched = True
            return
        self.steps = self._machine.deferred.steps[self._from[1] :]
        self.events = _without_unused_blocks(recorder.events[self._from[0] :], self.steps)
        recorder.events[self._from[0] :] = self.events

    def replay(self, ahead: int) -> None:
        """Do what was recorded as the iteration ``ahead`` iterations later does it."""
        machine = self._machine
        remap = IterationRemap(machine.recorder, self.loop, ahead)
        issued: list[tuple[TracedInstruction, TracedInstruction]] = []
        for event in self.events:
            if type(event) is TracedInstruction:
                copy = event.copy()
                machine.stream.issue(copy)
                issued.append((event, copy))
            elif type(event) is MemoryAccess:
                remap.access(event)
            elif type(event) is TileLookup:
                remap.look_up(event)
            elif type(event) is Block:
                remap.blocks[event.info] = machine.memory.allocate_like(event)
            elif type(event) is BlockArray:
                remap.tables[event] = event.another()
        for event, copy in issued:  # only now all look-ups and blocks of the iteration are there
            remap.set_regions(event, copy)
        steps = machine.deferred.steps
        for step in self.steps:
            steps.append(remap.step(step))

    def agrees_with(self, later: RecordedIteration) -> bool:
        """Return True if a later iteration of the same loop did what this recording predicts."""
        check = ReplayCheck(self.loop, later.loop.at - self.loop.at)
        return check.instructions_agree(self._instructions, later._instructions) and check.steps_agree(
            self.steps, later.steps
        )

    @property
    def _instructions(self) -> list[TracedInstruction]:
        return [event for event in self.events if type(event) is TracedInstruction]


def _without_unused_blocks(events: list[Event], steps: list[ComputeStep]) -> list[Event]:
    """Return the events, without blocks that nothing touched: results that were assigned elsewhere at
    once."""
    used: set[BlockInfo] = set()
    for event in events:
        if type(event) is TracedInstruction:
            used.update([info for info, _ in event.reads])
            used.update([info for info, _ in event.writes])
        elif type(event) is MemoryAccess:
            used.add(event.view.block.info)
    for step in steps:
        used.update([item.block.info for item in (*step.inputs, step.target) if type(item) is View])
    return [event for event in events if type(event) is not Block or event.info in used]
