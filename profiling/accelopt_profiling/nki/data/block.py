"""Blocks of memory: the values of a tensor or a tile, and the part of them that was written."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from accelopt_profiling.nki.data.coverage import WRITTEN, WriteCoverage
from accelopt_profiling.nki.data.instruction import BlockInfo
from accelopt_profiling.nki.data.layout import contiguous

Array = npt.NDArray[Any]


class Block:
    """Contiguous memory of one shape.

    ``storage`` is allocated by the first write; ``borrowed`` means that it is the caller's own array, copied before a
    write. ``fill`` is the value of unwritten elements, ``blank`` tells that nothing was written, ``holds_product`` that
    a product was. ``copies`` hold its bits as another type; such a copy has an ``original``, the view whose bits it
    holds, and is ``outdated`` when that is written after it was made anew.
    """

    __slots__ = (
        "_bytes",
        "blank",
        "borrowed",
        "copies",
        "coverage",
        "dims",
        "dtype",
        "fill",
        "holds_product",
        "info",
        "original",
        "outdated",
        "shape",
        "storage",
    )

    def __init__(self, info: BlockInfo, dtype: np.dtype[Any], full: bool = False) -> None:
        self.info, self.shape, self.dtype = info, info.shape, dtype
        self.storage: Array | None = None
        self.borrowed, self.blank = False, True
        self.fill: Any = None
        self.coverage = WRITTEN if full else WriteCoverage(self.shape)
        self.dims = contiguous(self.shape)
        self._bytes: Any = None
        self.copies: tuple[Block, ...] = ()
        self.original: Any = None  # a tile
        self.outdated = self.holds_product = False

    def another(self, ident: int) -> Block:
        """Return another block that is made as this one was."""
        other = Block.__new__(Block)
        other.info, other.shape, other.dtype = self.info.another(ident), self.shape, self.dtype
        other.storage, other.borrowed, other.blank, other.fill = None, False, True, self.fill
        other.coverage = WRITTEN if self.coverage is WRITTEN else WriteCoverage(self.shape)
        other.dims, other._bytes = self.dims, None
        other.copies, other.original, other.outdated, other.holds_product = (), None, False, False
        return other

    def writable(self) -> Array:
        """Return the memory, to be written to; allocated if it is not there yet."""
        if self.storage is None:
            if self.fill is None:
                self.storage = np.empty(self.shape, dtype=self.dtype)
            else:
                self.storage = np.full(self.shape, self.fill, dtype=self.dtype)
            self._bytes = None
        elif self.borrowed:
            self.storage, self._bytes = self.storage.copy(), None
        self.borrowed = self.blank = False
        return self.storage

    def adopt(self, storage: Array) -> None:
        """Take an array of the block's shape and type as its memory."""
        self.storage, self._bytes, self.borrowed, self.blank = storage, None, False, False

    def borrow(self, array: Array) -> None:
        """Take a caller's array as its memory, which is not written to."""
        self.storage, self._bytes, self.borrowed, self.blank = np.ascontiguousarray(array), None, True, False

    def release(self) -> None:
        """Give the memory back."""
        self.storage = self._bytes = None

    def bytes(self) -> Any:
        """Return the memory as a buffer that views are cut from."""
        if self._bytes is None:
            assert self.storage is not None
            self._bytes = self.storage.reshape(-1).view(np.uint8)
        return self._bytes
