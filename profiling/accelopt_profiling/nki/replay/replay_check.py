"""Compares an iteration that Python ran with what the recording of an earlier one predicts for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accelopt_profiling.nki.compute.step import ComputeStep
from accelopt_profiling.nki.data.instruction import Region, TracedInstruction
from accelopt_profiling.nki.data.loop_counter import RecordedLoop, Slopes
from accelopt_profiling.nki.data.view import LoopRegion, View


class ReplayCheck:
    """Compares the recorded iteration of ``loop``, always given first, with the one ``ahead`` iterations later.

    Blocks that an iteration makes for itself count as equal when they have the same shape.
    """

    def __init__(self, loop: RecordedLoop, ahead: int) -> None:
        self._loop, self._ahead = loop, ahead

    def instructions_agree(
        self, recorded: Sequence[TracedInstruction], later: Sequence[TracedInstruction]
    ) -> bool:
        return len(recorded) == len(later) and all(map(self._instruction, recorded, later))

    def steps_agree(self, recorded: Sequence[ComputeStep], later: Sequence[ComputeStep]) -> bool:
        return len(recorded) == len(later) and all(map(self._step, recorded, later))

    def _growth(self, slopes: Slopes) -> int:
        return sum(step for loop, step in slopes if loop is self._loop) * self._ahead

    def _view(self, a: View, b: View) -> bool:
        offset = a.offset
        if a.affine_offset is not None:
            offset += self._growth(a.affine_offset.slopes)
            if (lookup := a.affine_offset.lookup) is not None:
                position = tuple(
                    p + self._growth(s) for p, s in zip(lookup.position, lookup.slopes, strict=True)
                )
                other = None if b.affine_offset is None else b.affine_offset.lookup
                if other is None or other.position != position:
                    return False
        return offset == b.offset and a.dims == b.dims and a.block.shape == b.block.shape

    def _item(self, a: Any, b: Any) -> bool:
        if type(a) is View and type(b) is View:
            return self._view(a, b)
        return type(a) is type(b) and (not isinstance(a, (int, float, str)) or a == b)

    def _region(self, a: Region, b: Region) -> bool:
        if type(a) is LoopRegion and type(b) is LoopRegion:
            return self._view(a.view, b.view)
        return type(a) is type(b) and a[0].shape == b[0].shape and a[1] == b[1]

    def _instruction(self, a: TracedInstruction, b: TracedInstruction) -> bool:
        return (
            a.cost() == b.cost()
            and self._pattern(a, b)
            and len(a.reads) == len(b.reads)
            and len(a.writes) == len(b.writes)
            and all(map(self._region, (*a.reads, *a.writes), (*b.reads, *b.writes)))
        )

    def _pattern(self, a: TracedInstruction, b: TracedInstruction) -> bool:
        if a.pattern is None or b.pattern is None:
            return a.pattern is b.pattern
        return (a.pattern[0] + self._growth(a.slopes), a.pattern[1]) == b.pattern

    def _step(self, a: ComputeStep, b: ComputeStep) -> bool:
        return (
            self._item(a.target, b.target)
            and a.adds == b.adds
            and len(a.inputs) == len(b.inputs)
            and all(map(self._item, a.inputs, b.inputs))
        )
