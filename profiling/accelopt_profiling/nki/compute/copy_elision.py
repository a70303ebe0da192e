"""Leaves out copies: a step that reads a copy reads the original instead, and a copy that nothing reads is not made.

Most instructions of a kernel move data: loads, transposes through TensorE, copies out of PSUM. Only their values matter
here. A view of a copy is replaced by a view of the original as long as neither has been written since, so the numbers
that are read are bit for bit the same. So are the results, but for the last bits of a product: BLAS rounds by the
layout of the operands too.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import prod

from accelopt_profiling.nki.compute.operations import copy_values, multiply_values, transpose_values
from accelopt_profiling.nki.compute.step import ComputeStep
from accelopt_profiling.nki.data.block import Block
from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.index import Dim
from accelopt_profiling.nki.data.layout import bounding_box
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.data.view import View

#: A copy from HBM whose elements are read more often than this on average is made: a tile in one piece is read faster
#: than rows that lie far apart.
_READS = 2
#: One dimension of a copy: its size, and the steps in elements from one to the next in the copy and in the original.
Part = tuple[int, int, int]


class _Copy:
    """A region of a block that holds the same values as ``original``."""

    __slots__ = ("box", "offset", "original", "parts", "turned")

    def __init__(self, target: View, original: View, parts: tuple[Part, ...]) -> None:
        self.offset, self.original, self.parts = target.offset, original, parts
        self.turned = any(a[2] < b[2] for a, b in pairwise(parts))
        self.box = _box(target)


class _Copies:
    """The copies that blocks hold at one point of the program."""

    def __init__(self, reads: dict[Block, int]) -> None:
        self.reads = reads  # elements, over the whole program
        self.held: dict[Block, list[_Copy]] = {}
        self.lent: dict[Block, set[Block]] = {}  # original -> blocks that hold copies of it

    def original(self, view: View, transposed: bool) -> View | None:
        """Return the view that the values of ``view`` were copied from; with ``transposed`` it may be a
        transpose."""
        for copy in reversed(self.held[view.block]):
            if copy.turned and not transposed:
                continue
            original = _through(view.offset - copy.offset, view.dims, copy.parts)
            if original is not None:
                return View(copy.original.block, copy.original.offset + original[0], original[1], None)
        return None

    def written(self, target: View) -> None:
        """Forget the copies that a write overwrites, and the copies of what it overwrites."""
        block = target.block
        for borrower in self.lent.pop(block, ()):
            self.held.pop(borrower, None)
        copies = self.held.get(block)
        if copies:
            box = _box(target)
            self.held[block] = [copy for copy in copies if not _meet(copy.box, box)]

    def copied(self, target: View, original: View, transposed: bool) -> None:
        """Remember a copy, if views of it can be expressed as views of the original."""
        parts = _parts(target.dims, original.dims, transposed)
        if parts is None or target.block is original.block:
            return
        far = original.block.info.memory is MemorySpace.HBM
        if far and self.reads.get(target.block, 0) > _READS * prod(target.block.shape):
            return
        self.held.setdefault(target.block, []).append(_Copy(target, original, parts))
        if not original.block.info.constant:
            self.lent.setdefault(original.block, set()).add(target.block)


def elide_copies(steps: list[ComputeStep]) -> list[ComputeStep]:
    """Return the steps that remain to be computed at the end of a run; they leave the same values in HBM."""
    copies = _Copies(_reads(steps))
    for step in steps:
        op, target = step.op, step.target
        moves = op is copy_values or op is transpose_values
        for at, item in enumerate(step.inputs):
            if type(item) is View and copies.held.get(item.block) and item.positions is None:
                original = copies.original(item, moves or op is multiply_values)
                if original is not None:
                    step.inputs = [*step.inputs[:at], original, *step.inputs[at + 1 :]]
        if target is None:
            continue
        copies.written(target)
        if moves and _plain(step):
            copies.copied(target, step.inputs[0], op is transpose_values)
    return _needed(steps)


def _reads(steps: list[ComputeStep]) -> dict[Block, int]:
    """Return the number of elements read of each on-chip block."""
    reads: dict[Block, int] = {}
    for step in steps:
        for item in step.inputs:
            if type(item) is View and item.block.info.memory is not MemorySpace.HBM:
                reads[item.block] = reads.get(item.block, 0) + _count(item.dims)
    return reads


@lru_cache(maxsize=8192)
def _count(dims: tuple[Dim, ...]) -> int:
    return prod(n for n, _ in dims)


def _plain(step: ComputeStep) -> bool:
    """True if a move writes exactly the values that it read to an on-chip block."""
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
        and target.block.dtype.metadata == source.block.dtype.metadata
        and target.block.info.memory is not MemorySpace.HBM
    )


def _needed(steps: list[ComputeStep]) -> list[ComputeStep]:
    """Return the steps without moves to on-chip blocks that nothing reads afterwards."""
    read: set[Block] = set()
    rest: list[ComputeStep] = []
    for step in reversed(steps):
        target = step.target
        if (
            (step.op is copy_values or step.op is transpose_values)
            and target is not None
            and not step.keep
            and target.block not in read
            and target.block.info.memory is not MemorySpace.HBM
        ):
            continue
        rest.append(step)
        for item in step.inputs:
            if type(item) is View:
                read.add(item.block)
        if step.adds and target is not None:
            read.add(target.block)
    rest.reverse()
    return rest


def _box(view: View) -> Box:
    if view.positions is not None:
        return tuple((0, n) for n in view.block.shape)
    return bounding_box(view.offset, view.dims, view.block.shape)[0]


def _meet(a: Box, b: Box) -> bool:
    return all(low < end and start < high for (low, high), (start, end) in zip(a, b, strict=True))


@lru_cache(maxsize=8192)
def _parts(target: tuple[Dim, ...], source: tuple[Dim, ...], transposed: bool) -> tuple[Part, ...] | None:
    """Return the dimensions of a copy, from the largest step in the copy to the smallest; None where they do
    not match."""
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
    """Translate a view that begins ``distance`` elements into a copy to an offset and dimensions in the original.

    None where the view leaves the copy, or has no constant steps in the original.
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
    original: list[Dim] = []
    for num, step in dims:
        if num == 1 or step == 0:
            original.append((num, 1 if num == 1 else 0))
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
        original.append((num, step // unit * other))
    return offset, tuple(original)
