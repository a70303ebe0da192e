"""Leave out moves: what reads a copy reads the original, and a copy that nothing reads is not made.

Most instructions of a kernel move data: loads, transposes through TensorE, copies out of PSUM. Here only the values
count. Each view of a copy is written as a view of what was copied, for as long as neither has been written since;
the numbers read are the same, so the results are too, bit for bit.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import prod

from accelopt_profiling.nki.compute.step import Step
from accelopt_profiling.nki.data.block import Block
from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.index import Dim
from accelopt_profiling.nki.data.instruction import Memory
from accelopt_profiling.nki.data.layout import bounding_box
from accelopt_profiling.nki.data.view import View
from accelopt_profiling.nki.movement import multiplied, same, turned

#: A copy of HBM that is read more often than this is made: a tile in one piece is read faster than rows far apart.
_READS = 2
#: One dimension of a copy: its size, and the steps in elements from one to the next in the copy and in the original.
Part = tuple[int, int, int]


class _Copy:
    """A region of a block that holds what ``original`` holds."""

    __slots__ = ("box", "offset", "original", "parts", "turned")

    def __init__(self, target: View, original: View, parts: tuple[Part, ...]) -> None:
        self.offset, self.original, self.parts = target.offset, original, parts
        self.turned = any(a[2] < b[2] for a, b in pairwise(parts))
        self.box = _box(target)


class _Copies:
    """Which blocks hold copies of what, at one point of the program."""

    def __init__(self, reads: dict[Block, int]) -> None:
        self.reads = reads  # elements, over the whole program
        self.held: dict[Block, list[_Copy]] = {}
        self.lent: dict[Block, set[Block]] = {}  # original -> blocks that hold copies of it

    def original(self, view: View, transposed: bool) -> View | None:
        """Where the values of ``view`` were copied from; ``transposed`` tells whether a transpose will do, too."""
        for copy in reversed(self.held[view.block]):
            if copy.turned and not transposed:
                continue
            found = _through(view.offset - copy.offset, view.dims, copy.parts)
            if found is not None:
                return View(copy.original.block, copy.original.offset + found[0], found[1], None)
        return None

    def written(self, target: View) -> None:
        """Forget what a write ends: copies in its place, and copies of what was there."""
        block = target.block
        for borrower in self.lent.pop(block, ()):
            self.held.pop(borrower, None)
        copies = self.held.get(block)
        if copies:
            box = _box(target)
            self.held[block] = [copy for copy in copies if not _meet(copy.box, box)]

    def copied(self, target: View, original: View, transposed: bool) -> None:
        """Note a copy, if views of it can be written as views of the original."""
        parts = _parts(target.dims, original.dims, transposed)
        if parts is None or target.block is original.block:
            return
        far = original.block.place.memory is Memory.HBM
        if far and self.reads.get(target.block, 0) > _READS * prod(target.block.shape):
            return
        self.held.setdefault(target.block, []).append(_Copy(target, original, parts))
        if not original.block.place.constant:
            self.lent.setdefault(original.block, set()).add(target.block)


def forwarded(steps: list[Step]) -> list[Step]:
    """The steps that are left to do at the end of a run; what they leave in HBM is the same.

    Nothing changes where a step does what its inputs and target do not tell.
    """
    if any(step.target is None and not step.keep for step in steps):
        return steps
    copies = _Copies(_reads(steps))
    for step in steps:
        function, target = step.function, step.target
        moves = function is same or function is turned
        for at, item in enumerate(step.inputs):
            if type(item) is View and copies.held.get(item.block) and item.positions is None:
                found = copies.original(item, moves or function is multiplied)
                if found is not None:
                    step.inputs = [*step.inputs[:at], found, *step.inputs[at + 1 :]]
        if target is None:
            continue
        copies.written(target)
        if moves and _plain(step):
            copies.copied(target, step.inputs[0], function is turned)
    return _needed(steps)


def _reads(steps: list[Step]) -> dict[Block, int]:
    """How many elements of each block on the chip are read."""
    reads: dict[Block, int] = {}
    for step in steps:
        for item in step.inputs:
            if type(item) is View and item.block.place.memory is not Memory.HBM:
                reads[item.block] = reads.get(item.block, 0) + _count(item.dims)
    return reads


@lru_cache(maxsize=8192)
def _count(dims: tuple[Dim, ...]) -> int:
    return prod(n for n, _ in dims)


def _plain(step: Step) -> bool:
    """Whether a move leaves exactly what it read, in a place on the chip."""
    target, source = step.target, step.inputs[0]
    return (
        type(source) is View
        and target is not None
        and source.positions is None
        and target.positions is None
        and step.where is None
        and not step.adds
        and not step.keep
        and target.block.dtype == source.block.dtype
        and target.block.place.memory is not Memory.HBM
    )


def _needed(steps: list[Step]) -> list[Step]:
    """The steps without moves to blocks that nothing reads afterwards."""
    read: set[Block] = set()
    kept: list[Step] = []
    for step in reversed(steps):
        target = step.target
        if (
            (step.function is same or step.function is turned)
            and target is not None
            and not step.keep
            and target.block not in read
            and target.block.place.memory is not Memory.HBM
        ):
            continue
        kept.append(step)
        for item in step.inputs:
            if type(item) is View:
                read.add(item.block)
        if step.adds and target is not None:
            read.add(target.block)
    kept.reverse()
    return kept


def _box(view: View) -> Box:
    if view.positions is not None:
        return tuple((0, n) for n in view.block.shape)
    return bounding_box(view.offset, view.dims, view.block.shape)[0]


def _meet(a: Box, b: Box) -> bool:
    return all(low < end and start < high for (low, high), (start, end) in zip(a, b, strict=True))


@lru_cache(maxsize=8192)
def _parts(target: tuple[Dim, ...], source: tuple[Dim, ...], transposed: bool) -> tuple[Part, ...] | None:
    """The dimensions of a copy from the largest step in the copy to the smallest; None where they do not match."""
    to, of = [d for d in target if d[0] != 1], [d for d in source if d[0] != 1]
    if transposed:
        if len(source) != 2 or len(target) != 2:
            return None
        to, of = list(target), [source[1], source[0]]
    if [n for n, _ in to] != [n for n, _ in of]:
        return None
    pairs = sorted(((n, a, b) for (n, a), (_, b) in zip(to, of, strict=True) if n != 1), key=lambda p: -p[1])
    merged: list[Part] = []
    for n, a, b in reversed(pairs):
        if a <= 0 or b < 0:
            return None
        if merged:
            inner, step, other = merged[0]
            if a < inner * step:
                return None
            if a == inner * step and b == inner * other:
                merged[0] = (n * inner, step, other)
                continue
        merged.insert(0, (n, a, b))
    return tuple(merged)


@lru_cache(maxsize=32768)
def _through(
    distance: int, dims: tuple[Dim, ...], parts: tuple[Part, ...]
) -> tuple[int, tuple[Dim, ...]] | None:
    """A view that begins ``distance`` elements into a copy, as offset and dimensions in the original.

    None where it is not within the copy, or has no constant steps there.
    """
    if distance < 0:
        return None
    at: list[int] = []
    offset = 0
    for num, step, other in parts:
        position, distance = divmod(distance, step)
        if position >= num:
            return None
        at.append(position)
        offset += position * other
    if distance:
        return None
    found: list[Dim] = []
    for num, step in dims:
        if num == 1 or step == 0:
            found.append((num, 1 if num == 1 else 0))
            continue
        axis = next((i for i, part in enumerate(parts) if step >= part[1]), -1)
        if axis < 0:
            return None
        size, unit, other = parts[axis]
        if step % unit:
            return None
        at[axis] += (num - 1) * (step // unit)
        if at[axis] >= size:
            return None
        found.append((num, step // unit * other))
    return offset, tuple(found)
