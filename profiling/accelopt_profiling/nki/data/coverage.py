"""Tracks the written part of a block of memory, so that uninitialised reads are found without reading values."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

#: A half-open range per axis.
Box = tuple[tuple[int, int], ...]


@lru_cache(maxsize=4096)
def whole(shape: tuple[int, ...]) -> Box:
    """Return the box of all of a block."""
    return tuple([(0, n) for n in shape])


def is_whole(box: Box, shape: tuple[int, ...]) -> bool:
    """Return whether a box is all of a block."""
    return box == whole(shape) or all(
        low == 0 and high == size for (low, high), size in zip(box, shape, strict=False)
    )


_MANY = 12  # boxes kept before a bitmap takes over


class WriteCoverage:
    """The written part of one block of shape ``shape``: all of it, a few boxes, or a bitmap."""

    __slots__ = ("_bitmap", "_boxes", "_shape", "full")

    def __init__(self, shape: tuple[int, ...], full: bool = False) -> None:
        self._shape = shape
        self._boxes: list[Box] = []
        self._bitmap: npt.NDArray[np.bool_] | None = None
        self.full = full

    @property
    def untouched(self) -> bool:
        return not self.full and not self._boxes and self._bitmap is None

    def write(self, box: Box) -> None:
        """Mark ``box`` as written."""
        if self.full:
            return
        if box == whole(self._shape):
            self.full, self._boxes, self._bitmap = True, [], None
            return
        if self._bitmap is not None:
            self._bitmap[_slices(box)] = True
            return
        merged, boxes = box, self._boxes
        grown = True
        while grown and boxes:
            grown = False
            for other in boxes:
                joined = _join(merged, other)
                if joined is not None:
                    boxes.remove(other)
                    merged, grown = joined, True
                    break
        boxes.append(merged)
        if all(low <= 0 and high >= n for (low, high), n in zip(merged, self._shape, strict=True)):
            self.full, self._boxes = True, []
        elif len(self._boxes) > _MANY:
            self._use_bitmap()

    def write_positions(self, positions: npt.NDArray[np.int64]) -> None:
        """Mark single positions, given as offsets into the flattened block."""
        if not self.full:
            self._use_bitmap().reshape(-1)[positions] = True

    def _use_bitmap(self) -> npt.NDArray[np.bool_]:
        if self._bitmap is None:
            self._bitmap = np.zeros(self._shape, dtype=bool)
            for box in self._boxes:
                self._bitmap[_slices(box)] = True
            self._boxes = []
        return self._bitmap

    def missing(self) -> npt.NDArray[np.bool_]:
        """Return a mask of the block's shape, true where nothing was written; only for blocks that are not
        full."""
        return ~self._use_bitmap()

    def untouched_in(self, box: Box) -> bool:
        """Return True if nothing inside ``box`` has been written."""
        if self.full:
            return False
        if self._bitmap is not None:
            return not self._bitmap[_slices(box)].any()
        return not any(
            all(max(a, c) < min(b, d) for (a, b), (c, d) in zip(box, other, strict=True))
            for other in self._boxes
        )

    def holds_positions(self, positions: npt.NDArray[np.int64]) -> bool:
        """Return True if every one of ``positions``, offsets into the flattened block, has been written."""
        return self.full or bool(self._use_bitmap().reshape(-1)[positions].all())

    def holds(self, box: Box) -> bool:
        """Return True if every position of ``box`` has been written."""
        if self.full or any(low >= high for low, high in box):
            return True
        if self._bitmap is not None:
            return bool(self._bitmap[_slices(box)].all())
        if any(_inside(box, other) for other in self._boxes):
            return True
        if len(self._boxes) < 2:
            return False
        overlap = np.zeros([high - low for low, high in box], dtype=bool)
        for other in self._boxes:
            cut = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, other, strict=True)]
            if all(low < high for low, high in cut):
                start = [low for low, _ in box]
                overlap[tuple(slice(a - s, b - s) for (a, b), s in zip(cut, start, strict=True))] = True
        return bool(overlap.all())


#: The coverage of memory that is written from the start, for blocks of any shape.
WRITTEN = WriteCoverage((), True)


def _slices(box: Box) -> tuple[slice, ...]:
    return tuple(slice(low, high) for low, high in box)


def _inside(inner: Box, outer: Box) -> bool:
    return all(a >= c and b <= d for (a, b), (c, d) in zip(inner, outer, strict=True))


def _join(a: Box, b: Box) -> Box | None:
    """Return one box equal to the union of both, if there is one."""
    if _inside(a, b):
        return b
    if _inside(b, a):
        return a
    differing = [axis for axis, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
    if len(differing) != 1:
        return None
    axis = differing[0]
    (low_a, high_a), (low_b, high_b) = a[axis], b[axis]
    if low_a > high_b or low_b > high_a:
        return None
    return (*a[:axis], (min(low_a, low_b), max(high_a, high_b)), *a[axis + 1 :])
