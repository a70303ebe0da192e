"""What an iteration does to the machine, noted while its Python runs, so that it can be repeated without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, Union

from accelopt_profiling.nki.data.affine_offset import Found
from accelopt_profiling.nki.data.block import Block
from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.instruction import Instruction, Place
from accelopt_profiling.nki.data.loop_counter import Loop, Slopes
from accelopt_profiling.nki.data.view import View

if TYPE_CHECKING:
    from accelopt_profiling.nki.emulator.block_array import BlockArray


class Different(BaseException):
    """An iteration did something else than the notes say; not an error that a kernel should see."""


class Reached(tuple[Place, Box]):
    """The region of a view that another iteration finds elsewhere."""

    view: View

    @classmethod
    def of(cls, view: View) -> Reached:
        region = cls((view.block.place, view.box()))
        region.view = view
        return region


class Covered:
    """A view that was read, or written all over: what counts for the part of its block that holds values."""

    __slots__ = ("view", "writes")

    def __init__(self, view: View, writes: bool) -> None:
        self.view, self.writes = view, writes


#: What a view covers: a block or a look-up, offset, dimensions and slopes; and whether it was written.
_Coverage = tuple[object, bool]
#: A block array, the position in it, and how that grows.
_Lookup = tuple[object, tuple[int, ...], tuple[Slopes, ...]]
#: A block or a block array that was made, a look-up in a block array, an instruction as it is at the end of the
#: iteration, or memory that was covered.
Event = Union[Block, "BlockArray", Found, Instruction, Covered]


class Notes:
    """The loops that are noting an iteration, outermost first, and what happened since the outermost began to."""

    __slots__ = ("_covered", "_found", "differed", "events", "line", "loops", "wanted")

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted  # False: every iteration is run by Python
        self.loops: list[Loop] = []
        self.events: list[Event] = []
        self.line = 0  # the source line of what is repeated, 0 while Python runs
        self.differed = False  # an iteration was not what it was expected to be
        self._found: dict[_Lookup, Found] = {}
        self._covered: set[_Coverage] = set()

    def begin(self, loop: Loop) -> None:
        """Note an iteration of a loop."""
        if not self.loops:
            self.events = []
            self._found, self._covered = {}, set()
        self.loops.append(loop)

    def end(self, loop: Loop) -> None:
        """The iteration is over."""
        self.loops.remove(loop)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What happens inside belongs to no iteration."""
        loops, self.loops = self.loops, []
        try:
            yield
        finally:
            self.loops = loops

    def differs(self) -> NoReturn:
        """An iteration was not what it was expected to be. Raises Different."""
        self.differed = True
        raise Different

    def covered(self, view: View, writes: bool) -> None:
        """Note that a view was read, or written all over; once, since what was written stays so."""
        trail = view.trail
        memory = (
            view.block if trail is None or trail.found is None else trail.found,
            view.offset, view.dims, () if trail is None else trail.slopes,
        )  # fmt: skip
        if view.positions is not None or (memory, writes) not in self._covered:
            self.events.append(Covered(view, writes))
            self._covered.add((memory, writes))
            self._covered.add((memory, False))

    def found(
        self, array: BlockArray, position: tuple[int, ...], slopes: tuple[Slopes, ...], line: int
    ) -> Found:
        """Note a look-up in a block array, once."""
        key = array, position, slopes
        known = self._found.get(key)
        if known is None:
            before, self.line = self.line, line
            try:
                known = Found(array, position, slopes, array.at(position).block, line)
            finally:
                self.line = before
            if self.loops:
                self.events.append(known)
                self._found[key] = known
        return known

    def cannot_be_repeated(self) -> None:
        """Something happened that belongs to this iteration alone."""
        for loop in self.loops:
            loop.holds_for(1)

    def changes(self, instruction: Instruction) -> None:
        """An instruction is changed: one from before the iteration cannot be changed again."""
        for loop in self.loops:
            if instruction.number <= loop.first:
                loop.holds_for(1)
