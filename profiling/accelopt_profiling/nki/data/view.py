"""A view of a block: the position, shape and strides of the values that an instruction reads or writes."""

from __future__ import annotations

import numpy as np

from accelopt_profiling.nki.data.affine_offset import AffineOffset
from accelopt_profiling.nki.data.block import Array, Block
from accelopt_profiling.nki.data.coverage import Box, whole
from accelopt_profiling.nki.data.index import Dim, IntArray
from accelopt_profiling.nki.data.instruction import BlockInfo
from accelopt_profiling.nki.data.layout import bounding_box


class View:
    """A tile as it was when an instruction used it; ``affine_offset`` says how it shifts with loops that are recorded.

    ``dims`` are (number, step in elements) from ``offset`` on; ``positions`` replaces them for a gathered view.
    """

    __slots__ = ("affine_offset", "block", "dims", "offset", "positions", "whole")

    def __init__(
        self,
        block: Block,
        offset: int,
        dims: tuple[Dim, ...],
        positions: IntArray | None,
        affine_offset: AffineOffset | None = None,
    ) -> None:
        self.block, self.offset, self.dims, self.positions = block, offset, dims, positions
        self.affine_offset = affine_offset
        self.whole = not offset and dims == block.dims and positions is None

    def box(self) -> Box:
        """Return the box of the block that the view touches."""
        if self.positions is not None:
            return whole(self.block.shape)
        return bounding_box(self.offset, self.dims, self.block.shape)[0]

    def array(self, writable: bool = False) -> Array:
        """Return the values. The array shares the block's memory, except for a gathered view."""
        block = self.block
        storage = block.writable() if writable or block.storage is None else block.storage
        if self.whole:
            return storage
        if self.positions is not None:
            return storage.reshape(-1)[self.positions]
        if not self.dims:
            return storage.reshape(-1)[self.offset : self.offset + 1].reshape(())
        item = storage.dtype.itemsize
        view: Array = np.ndarray(
            [num for num, _ in self.dims], storage.dtype, block.bytes(), self.offset * item,
            [step * item for _, step in self.dims],
        )  # fmt: skip
        return view


class LoopRegion(tuple[BlockInfo, Box]):
    """The region of a view that lies elsewhere in another iteration of a loop."""

    view: View

    @classmethod
    def of(cls, view: View) -> LoopRegion:
        region = cls((view.block.info, view.box()))
        region.view = view
        return region
