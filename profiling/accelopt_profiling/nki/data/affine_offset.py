"""How what an iteration touches is found again in another iteration of a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accelopt_profiling.nki.data.loop_counter import Slopes

if TYPE_CHECKING:
    from accelopt_profiling.nki.data.block import Block
    from accelopt_profiling.nki.emulator.block_array import BlockArray


class Found:
    """A tile of a block array that was looked up: at ``position``, which grows by ``slopes``, on a source line."""

    __slots__ = ("array", "block", "line", "position", "slopes")

    def __init__(
        self,
        array: BlockArray,
        position: tuple[int, ...],
        slopes: tuple[Slopes, ...],
        block: Block,
        line: int,
    ) -> None:
        self.array, self.position, self.slopes, self.block, self.line = array, position, slopes, block, line


class Trail:
    """What a view's offset grows by with loops, and the look-up that gave its block, if one did."""

    __slots__ = ("found", "slopes")

    def __init__(self, slopes: Slopes, found: Found | None) -> None:
        self.slopes, self.found = slopes, found
