"""Records what one iteration of a loop does to the emulator, so that other iterations can be replayed from it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from accelopt_profiling.nki.data.affine_offset import AffineOffset, BlockTable, TileLookup
from accelopt_profiling.nki.data.block import Block
from accelopt_profiling.nki.data.instruction import BlockInfo, TracedInstruction
from accelopt_profiling.nki.data.loop_counter import RecordedLoop, Slopes
from accelopt_profiling.nki.data.view import View
from accelopt_profiling.nki.emulator.diagnostics import Diagnostics


class ReplayMismatchError(BaseException):
    """An iteration did not do what was recorded. A BaseException, so that kernels do not catch it as an error."""


class MemoryAccess:
    """A view that was read, or written completely: it changes or needs the written part of its block."""

    __slots__ = ("view", "writes")

    def __init__(self, view: View, writes: bool) -> None:
        self.view, self.writes = view, writes


#: The memory of a view (a block or a look-up, offset, dimensions, slopes), and whether it was written.
_AccessKey = tuple[object, bool]
#: A table of blocks, the position in it, and how the position grows.
_LookupKey = tuple[object, tuple[int, ...], tuple[Slopes, ...]]
#: A block or a table of blocks that was made, a look-up in a table, an instruction as it is at the end of the
#: iteration, or an access to memory.
Event = Block | BlockTable | TileLookup | TracedInstruction | MemoryAccess


class LoopRecorder:
    """The loops of which an iteration is being recorded, outermost first, and the events since the outermost began.

    ``enabled`` is False where every iteration is to be run by Python; ``used`` tells that one was recorded,
    ``mismatched`` that a replay went wrong. ``in_vain`` counts by loop the latest passes of which nothing was replayed.
    """

    __slots__ = (
        "_accesses", "_diagnostics", "_lookups", "enabled", "events", "in_vain", "loops", "mismatched", "used",
    )  # fmt: skip

    def __init__(self, diagnostics: Diagnostics, enabled: bool) -> None:
        self._diagnostics = diagnostics
        self.enabled = enabled
        self.loops: list[RecordedLoop] = []
        self.events: list[Event] = []
        self.mismatched = self.used = False
        self.in_vain: dict[Hashable, int] = {}
        self._lookups: dict[_LookupKey, TileLookup] = {}
        self._accesses: set[_AccessKey] = set()

    def begin(self, loop: RecordedLoop) -> None:
        """Start recording an iteration of a loop."""
        self.used = True
        if not self.loops:
            self.events = []
            self._lookups, self._accesses = {}, set()
        self.loops.append(loop)

    def end(self, loop: RecordedLoop) -> None:
        """Stop recording an iteration of a loop."""
        self.loops.remove(loop)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Record nothing while the context is open: what happens inside belongs to no iteration."""
        loops, self.loops = self.loops, []
        try:
            yield
        finally:
            self.loops = loops

    def mismatch(self) -> NoReturn:
        """Give up replaying in this run.

        Raises:
            ReplayMismatchError: always.
        """
        self.mismatched = True
        raise ReplayMismatchError

    def access(self, view: View, writes: bool) -> None:
        """Record that a view was read, or written completely; once, since written memory stays written."""
        offset = view.affine_offset
        memory = (
            view.block if offset is None or offset.lookup is None else offset.lookup,
            view.offset, view.dims, () if offset is None else offset.slopes,
        )  # fmt: skip
        if view.positions is not None or (memory, writes) not in self._accesses:
            self.events.append(MemoryAccess(view, writes))
            self._accesses.add((memory, writes))
            self._accesses.add((memory, False))

    def look_up(
        self, table: BlockTable, position: tuple[int, ...], slopes: tuple[Slopes, ...], line: int
    ) -> TileLookup:
        """Look a block up in a table, and record that, once. A block made for it belongs to source line ``line``."""
        key = table, position, slopes
        lookup = self._lookups.get(key)
        if lookup is None:
            before, self._diagnostics.replayed_line = self._diagnostics.replayed_line, line
            try:
                lookup = TileLookup(table, position, slopes, table.block_at(position), line)
            finally:
                self._diagnostics.replayed_line = before
            if self.loops:
                self.events.append(lookup)
                self._lookups[key] = lookup
        return lookup

    def forbid_replay(self) -> None:
        """Note that something happened that belongs to the present iteration alone: no other is replayed from it."""
        for loop in self.loops:
            loop.holds_for(1)

    def asked_if_touched(self, block: BlockInfo, offset: AffineOffset | None, touched: bool) -> None:
        """Note that it was asked whether a part of a block was written: what was stays so in later iterations, in the
        same place, and a block that an iteration makes for itself is the same for each."""
        for loop in self.loops:
            moves = offset is not None and (
                offset.lookup is not None or any(growing is loop for growing, _ in offset.slopes)
            )
            if moves or (not touched and block.ident <= loop.first_block):
                loop.holds_for(1)

    def forbid_replay_of_change(self, instruction: TracedInstruction) -> None:
        """Note that an instruction is changed: one that was issued before the iteration cannot be changed again."""
        for loop in self.loops:
            if instruction.number <= loop.first:
                loop.holds_for(1)
