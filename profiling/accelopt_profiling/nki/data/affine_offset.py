"""Describes how a view moves from one iteration of a loop to the next."""

from __future__ import annotations

from typing import Protocol

from accelopt_profiling.nki.data.block import Block
from accelopt_profiling.nki.data.loop_counter import Slopes


class BlockTable(Protocol):
    """Blocks under one name, by their position in the block dimensions (Beta 1)."""

    def block_at(self, position: tuple[int, ...]) -> Block:
        """Return the block at a position; made if it is not there yet."""


class TileLookup:
    """A look-up in a table of blocks at ``position``, which grows by ``slopes``, on source line ``line``."""

    __slots__ = ("block", "line", "position", "slopes", "table")

    def __init__(
        self,
        table: BlockTable,
        position: tuple[int, ...],
        slopes: tuple[Slopes, ...],
        block: Block,
        line: int,
    ) -> None:
        self.table, self.position, self.slopes, self.block, self.line = table, position, slopes, block, line


class AffineOffset:
    """The slopes of a view's offset, and the look-up that gave its block, if one did."""

    __slots__ = ("lookup", "slopes")

    def __init__(self, slopes: Slopes, lookup: TileLookup | None) -> None:
        self.slopes, self.lookup = slopes, lookup
