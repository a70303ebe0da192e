"""Where values lie, as an instruction used them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from accelopt_profiling.nki.data.affine_offset import Trail
from accelopt_profiling.nki.data.block import Array, Block
from accelopt_profiling.nki.data.coverage import Box, whole
from accelopt_profiling.nki.data.index import Dim, IntArray
from accelopt_profiling.nki.data.layout import bounding_box

if TYPE_CHECKING:
    from accelopt_profiling.nki.emulator.tile import Tile


class View:
    """Where values lie: a tile as it was when an instruction used it."""

    __slots__ = ("block", "dims", "offset", "positions", "trail", "whole")

    def __init__(
        self,
        block: Block,
        offset: int,
        dims: tuple[Dim, ...],
        positions: IntArray | None,
        trail: Trail | None = None,
    ) -> None:
        self.block, self.offset, self.dims, self.positions, self.trail = block, offset, dims, positions, trail
        self.whole = not offset and dims == block.dims and positions is None

    @staticmethod
    def of(tile: Tile) -> View:
        return View(tile.block, tile.offset, tile.dims, tile.positions, tile.trail)

    def box(self) -> Box:
        """The box of the block that the view touches."""
        if self.positions is not None:
            return whole(self.block.shape)
        return bounding_box(self.offset, self.dims, self.block.shape)[0]

    def array(self, writable: bool = False) -> Array:
        """The values; the block's own memory except for a gathered view."""
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
