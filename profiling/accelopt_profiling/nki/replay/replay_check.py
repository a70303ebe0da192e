"""Compares an iteration of a loop that Python ran with what the recording of an earlier one predicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accelopt_profiling.nki.compute.step import ComputeStep
from accelopt_profiling.nki.data.affine_offset import AffineOffset
from accelopt_profiling.nki.data.coverage import Box, whole
from accelopt_profiling.nki.data.instruction import BlockInfo, Region, TracedInstruction
from accelopt_profiling.nki.data.layout import bounding_box
from accelopt_profiling.nki.data.loop_counter import RecordedLoop, Slopes
from accelopt_profiling.nki.data.view import LoopRegion, View

_NUMBERS = (int, float, str, bool, type(None))


class ReplayCheck:
    """Compares the recorded iteration of ``loop``, always given first, with the one ``ahead`` iterations later.

    Blocks from before the loop have to be the same; those that an iteration makes for itself count as equal when they
    have the same shape.
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

    def _block(self, a: BlockInfo, b: BlockInfo) -> bool:
        return a is b or (a.ident > self._loop.first_block and a.shape == b.shape)

    def _memory(self, a: View, b: BlockInfo, position: tuple[int, ...] | None) -> bool:
        """Return whether ``b`` is the block that a view is predicted to lie in; ``position`` is where the later
        iteration looked it up in a table, if it did."""
        lookup = None if a.affine_offset is None else a.affine_offset.lookup
        if lookup is None:
            return self._block(a.block.info, b)
        predicted = tuple(p + self._growth(s) for p, s in zip(lookup.position, lookup.slopes, strict=True))
        if position is None:  # by plain numbers, in a table from before the loop
            return lookup.table.block_at(predicted).info is b
        return predicted == position

    def _offset(self, a: View) -> int:
        return a.offset + (self._growth(a.affine_offset.slopes) if a.affine_offset is not None else 0)

    def _box(self, a: View) -> Box:
        if a.positions is not None:
            return whole(a.block.shape)
        return bounding_box(self._offset(a), a.dims, a.block.shape)[0]

    def _view(self, a: View, b: View) -> bool:
        return (
            self._offset(a) == b.offset
            and a.dims == b.dims
            and self._memory(a, b.block.info, _position(b.affine_offset))
        )

    def _item(self, a: Any, b: Any) -> bool:
        if type(a) is View and type(b) is View:
            return self._view(a, b)
        return type(a) is type(b) and (not isinstance(a, _NUMBERS) or a == b or a != a)

    def _region(self, a: Region, b: Region) -> bool:
        if type(a) is not LoopRegion:
            return self._block(a[0], b[0]) and a[1] == b[1]
        position = _position(b.view.affine_offset) if type(b) is LoopRegion else None
        return self._memory(a.view, b[0], position) and self._box(a.view) == b[1]

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
            and a.op is b.op
            and a.params == b.params
            and len(a.inputs) == len(b.inputs)
            and all(map(self._item, a.inputs, b.inputs))
        )


def _position(offset: AffineOffset | None) -> tuple[int, ...] | None:
    return None if offset is None or offset.lookup is None else offset.lookup.position
