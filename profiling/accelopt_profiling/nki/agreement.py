"""Whether an iteration that Python ran did what the notes of an earlier one say of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accelopt_profiling.nki.compute.step import Step
from accelopt_profiling.nki.data.instruction import Instruction, Region
from accelopt_profiling.nki.data.loop_counter import Loop, Slopes
from accelopt_profiling.nki.data.view import View
from accelopt_profiling.nki.emulator.loop_recorder import Reached


class Agreement:
    """Compares what the noted iteration of ``loop`` did, always given first, with what the one ``ahead`` iterations
    later did. Blocks that an iteration makes for itself count as equal when they have the same shape.
    """

    def __init__(self, loop: Loop, ahead: int) -> None:
        self._loop, self._ahead = loop, ahead

    def instructions(self, noted: Sequence[Instruction], later: Sequence[Instruction]) -> bool:
        return len(noted) == len(later) and all(map(self._instruction, noted, later))

    def steps(self, noted: Sequence[Step], later: Sequence[Step]) -> bool:
        return len(noted) == len(later) and all(map(self._step, noted, later))

    def _grown(self, slopes: Slopes) -> int:
        return sum(step for loop, step in slopes if loop is self._loop) * self._ahead

    def _view(self, a: View, b: View) -> bool:
        offset = a.offset
        if a.trail is not None:
            offset += self._grown(a.trail.slopes)
            if (found := a.trail.found) is not None:
                position = tuple(
                    p + self._grown(s) for p, s in zip(found.position, found.slopes, strict=True)
                )
                if b.trail is None or b.trail.found is None or b.trail.found.position != position:
                    return False
        return offset == b.offset and a.dims == b.dims and a.block.shape == b.block.shape

    def _item(self, a: Any, b: Any) -> bool:
        if type(a) is View and type(b) is View:
            return self._view(a, b)
        return type(a) is type(b) and (not isinstance(a, (int, float, str)) or a == b)

    def _region(self, a: Region, b: Region) -> bool:
        if type(a) is Reached and type(b) is Reached:
            return self._view(a.view, b.view)
        return type(a) is type(b) and a[0].shape == b[0].shape and a[1] == b[1]

    def _instruction(self, a: Instruction, b: Instruction) -> bool:
        return (
            a.cost() == b.cost()
            and self._pattern(a, b)
            and len(a.reads) == len(b.reads)
            and len(a.writes) == len(b.writes)
            and all(map(self._region, (*a.reads, *a.writes), (*b.reads, *b.writes)))
        )

    def _pattern(self, a: Instruction, b: Instruction) -> bool:
        if a.pattern is None or b.pattern is None:
            return a.pattern is b.pattern
        return (a.pattern[0] + self._grown(a.slopes), a.pattern[1]) == b.pattern

    def _step(self, a: Step, b: Step) -> bool:
        return (
            self._item(a.target, b.target)
            and a.adds == b.adds
            and len(a.inputs) == len(b.inputs)
            and all(map(self._item, a.inputs, b.inputs))
        )
