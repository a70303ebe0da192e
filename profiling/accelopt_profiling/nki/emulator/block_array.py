"""Beta 1's block dimensions: many tiles under one name."""

from __future__ import annotations

from operator import index as as_int
from typing import Any

import numpy as np

from accelopt_profiling.nki.data.affine_offset import AffineOffset
from accelopt_profiling.nki.data.block import Block
from accelopt_profiling.nki.data.index import Affine
from accelopt_profiling.nki.data.loop_counter import LoopCounter, Slopes, only_now, stays_inside
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.diagnostics import Diagnostics
from accelopt_profiling.nki.emulator.loop_recorder import LoopRecorder
from accelopt_profiling.nki.emulator.memory import DeviceMemory
from accelopt_profiling.nki.emulator.tile import Tile


class BlockArray:
    """Many tiles under one name: ``(B.., par_dim(P), F..)``. Each tile is a block of its own, made when first used.

    A part of one (``a[1]`` where there are two block dimensions) begins at ``prefix`` of its ``root``, whose ``blocks``
    it shares. ``recorded``: made in an iteration that is recorded, so that all look-ups in it are.
    """

    __slots__ = (
        "_device",
        "_diagnostics",
        "_fill",
        "_recorder",
        "blocks",
        "dtype",
        "line",
        "memory",
        "name",
        "prefix",
        "recorded",
        "root",
        "shape",
        "tile_shape",
    )

    def __init__(
        self, device: DeviceMemory, recorder: LoopRecorder, diagnostics: Diagnostics, shape: tuple[int, ...],
        rank: int, dtype: np.dtype[Any], memory: MemorySpace, name: str, line: int, fill: Any,
        prefix: tuple[int, ...] = (), root: BlockArray | None = None,
    ) -> None:  # fmt: skip
        self._device, self._recorder, self._diagnostics = device, recorder, diagnostics
        self.shape = shape
        self.dtype = dtype
        self.memory = memory
        self.name = name
        self.line = line
        self.tile_shape = shape[rank:]
        self._fill, self.prefix = fill, prefix
        self.root = self if root is None else root
        self.blocks: dict[tuple[int, ...], Tile] = {} if root is None else root.blocks
        self.recorded: bool = bool(recorder.loops) if root is None else root.recorded
        if root is None and self.recorded:
            recorder.events.append(self)

    def another(self) -> BlockArray:
        """Return a new array like this one, for another iteration."""
        rank = len(self.shape) - len(self.tile_shape)
        return BlockArray(
            self._device,
            self._recorder,
            diagnostics=self._diagnostics,
            shape=self.shape,
            rank=rank,
            dtype=self.dtype,
            memory=self.memory,
            name=self.name,
            line=self.line,
            fill=self._fill,
        )

    def at(self, position: tuple[int, ...]) -> Tile:
        """Return the tile at a position in all block dimensions; made if it is not there yet."""
        tile = self.blocks.get(position)
        if tile is None:
            with self._recorder.paused():  # made once, whichever iteration is the first
                tile = self.blocks[position] = self._device.allocate(
                    self.tile_shape, self.dtype, self.memory, self.name, self._fill, self.line
                )
        return tile

    def block_at(self, position: tuple[int, ...]) -> Block:
        """Return the block of the tile at a position."""
        return self.at(position).block

    def look_up(self, position: tuple[int, ...], slopes: tuple[Slopes, ...], line: int) -> Tile:
        """Return the tile at a position, for an iteration that is recorded."""
        lookup = self._recorder.look_up(self, position, slopes, line)
        tile = self.at(position)
        view = tile.strided(tile.offset, tile.dims)
        view.affine_offset = AffineOffset((), lookup)
        return view

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def buffer(self) -> MemorySpace:
        return self.memory

    def _split(self, key: Any) -> tuple[Any, tuple[Any, ...]]:
        entries = key if isinstance(key, tuple) else (key,)
        missing = len(self.shape) - len(self.tile_shape)
        known = self._known(entries[:missing])
        if known is not None:
            return known, entries[missing:]
        if entries and entries[0] is Ellipsis and missing == 1 and self.shape[0] == 1:
            entries = (0, *entries)
        leading: list[int] = []
        growing: list[Slopes] = []
        for axis, entry in enumerate(entries[:missing]):
            position, slopes = (entry, ()) if type(entry) is int else _block_position(entry)
            if position is None:
                self._diagnostics.fault(
                    "unsupported",
                    f"Block dimension {axis} of {self.name or 'this tensor'} must be indexed with an integer.",
                )
            elif not 0 <= position < self.shape[axis]:
                self._diagnostics.fault(
                    "out-of-bounds",
                    f"Index {position} is outside block dimension {axis} of size {self.shape[axis]}.",
                )
            leading.append(position)
            growing.append(slopes)
            if slopes:
                stays_inside(position, position, self.shape[axis], slopes)
        where = (*self.prefix, *leading)
        if len(leading) < missing:
            for slopes in growing:
                only_now(slopes)
            rank = missing - len(leading)
            rest = BlockArray(
                self._device,
                self._recorder,
                diagnostics=self._diagnostics,
                shape=self.shape[len(leading) :],
                rank=rank,
                dtype=self.dtype,
                memory=self.memory,
                name=self.name,
                line=self.line,
                fill=self._fill,
                prefix=where,
                root=self.root,
            )
            return rest, ()
        if self.recorded or any(growing):
            slopes_of = (*(((),) * len(self.prefix)), *growing)
            return self.root.look_up(where, slopes_of, self._diagnostics.line()), entries[missing:]
        return self.at(where), entries[missing:]

    def _known(self, leading: tuple[Any, ...]) -> Tile | None:
        """Return the tile that was made for these plain integers before."""
        if self.recorded:
            return None
        for entry in leading:
            if type(entry) is not int:
                return None
        return self.blocks.get(self.prefix + leading if self.prefix else leading)

    def __getitem__(self, key: Any) -> Any:
        target, rest = self._split(key)
        return target[rest] if isinstance(target, Tile) and rest else target

    def __setitem__(self, key: Any, value: Any) -> None:
        target, rest = self._split(key)
        if not isinstance(target, Tile):
            self._diagnostics.fault(
                "unsupported", "Assign to one tile at a time: index every block dimension."
            )
        target[rest if rest else Ellipsis] = value


def _block_position(entry: Any) -> tuple[int | None, Slopes]:
    """Return a position in a block dimension, and how it grows with loops."""
    if isinstance(entry, LoopCounter):
        return entry.value, entry.slopes
    if isinstance(entry, Affine):
        return (entry.offset, entry.slopes) if all(num == 1 for num, _ in entry.dims) else (None, ())
    if isinstance(entry, slice):
        start = entry.start or 0
        return (as_int(start), ()) if entry.stop is not None and entry.stop - start == 1 else (None, ())
    try:
        return as_int(entry), ()
    except TypeError:
        return None, ()
