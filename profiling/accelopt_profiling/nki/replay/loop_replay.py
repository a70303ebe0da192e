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

from accelopt_profiling.nki.agreement import Agreement
from accelopt_profiling.nki.compute.step import Step
from accelopt_profiling.nki.data.affine_offset import Found
from accelopt_profiling.nki.data.block import Block
from accelopt_profiling.nki.data.instruction import Instruction, Place
from accelopt_profiling.nki.data.loop_counter import Counter, Loop
from accelopt_profiling.nki.data.view import View
from accelopt_profiling.nki.emulator.block_array import BlockArray
from accelopt_profiling.nki.emulator.loop_recorder import Covered, Event
from accelopt_profiling.nki.emulator.machine import Machine, emulating
from accelopt_profiling.nki.replay.iteration_remap import Elsewhere
from accelopt_profiling.nki.replay.loop_body import repeatable

#: How often a loop is noted before the rest of it is left to Python: first iterations are often special.
_TRIES = 3
#: Fewer iterations than this are left to Python: one is noted and one is compared.
_FEWEST = 3


def iterations(numbers: range, frame: FrameType) -> Iterable[Any]:
    """The counters of the loop that ``frame`` is about to begin over ``numbers``."""
    machine = emulating()
    if len(numbers) < _FEWEST or machine is None or not machine.noted.wanted or not repeatable(frame):
        return numbers
    return _iterations(machine, numbers)


def _iterations(machine: Machine, numbers: range) -> Iterator[Any]:
    at = tries = 0
    while at < len(numbers):
        if tries == _TRIES or len(numbers) - at < _FEWEST:
            yield numbers[at]
            at += 1
            continue
        tries += 1
        noted = Iteration(machine, at, numbers)
        with noted:
            yield noted.counter
        last = min(noted.loop.until, len(numbers)) - 1
        if last - at < _FEWEST - 1:
            at += 1
            continue
        for ahead in range(1, last - at):
            noted.repeat(ahead)
        again = Iteration(machine, last, numbers)
        with again:
            yield again.counter
        if not noted.agrees_with(again):
            machine.noted.differs()
        at = last + 1


class Iteration:
    """An iteration that Python runs inside a ``with``; ``events`` and ``steps`` are what it did, once that is over."""

    def __init__(self, machine: Machine, at: int, numbers: range) -> None:
        self.machine = machine
        self.loop = Loop(at, len(numbers), machine.issued)
        self.counter = Counter(numbers[at], ((self.loop, numbers.step),))
        self._from = 0, 0
        self.events: list[Event] = []
        self.steps: list[Step] = []

    def __enter__(self) -> None:
        self.machine.noted.begin(self.loop)
        self._from = len(self.machine.noted.events), len(self.machine.work.steps)

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        noted = self.machine.noted
        noted.end(self.loop)
        if kind is not None:
            return  # the kernel left the loop: nothing is repeated
        self.steps = self.machine.work.steps[self._from[1] :]
        self.events = _used(noted.events[self._from[0] :], self.steps)
        noted.events[self._from[0] :] = self.events

    def repeat(self, ahead: int) -> None:
        """Do what was noted as the iteration ``ahead`` iterations later does it."""
        machine = self.machine
        elsewhere = Elsewhere(machine, self.loop, ahead)
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

    def agrees_with(self, later: Iteration) -> bool:
        """Whether a later iteration of the same loop did what the notes of this one say."""
        agreement = Agreement(self.loop, later.loop.at - self.loop.at)
        return agreement.instructions(self._instructions, later._instructions) and agreement.steps(
            self.steps, later.steps
        )

    @property
    def _instructions(self) -> list[Instruction]:
        return [event for event in self.events if type(event) is Instruction]


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
