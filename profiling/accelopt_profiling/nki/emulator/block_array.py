"""Beta 1's block dimensions: many tiles under one name."""

from __future__ import annotations

from operator import index as as_int
from typing import Any, NamedTuple

import numpy as np

from accelopt_profiling.nki.data.affine_offset import AffineOffset
from accelopt_profiling.nki.data.block import Block
from accelopt_profiling.nki.data.index import Affine
from accelopt_profiling.nki.data.loop_counter import LoopCounter, Slopes, only_now, stays_inside
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.memory import DeviceMemory
from accelopt_profiling.nki.emulator.tile import Tile


class TileKind(NamedTuple):
    """What all tiles of an array are, as they are allocated."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    memory: MemorySpace
    name: str
    fill: Any
    line: int


class BlockArray:
    """Many tiles under one name: ``(B.., par_dim(P), F..)``. Each tile is a block of its own, made when first used.

    A part of one (``a[1]`` where there are two block dimensions) begins at ``prefix`` of its ``root``, whose ``blocks``
    it shares. ``recorded``: made in an iteration that is recorded, so that all look-ups in it are.
    """

    __slots__ = ("_device", "blocks", "kind", "prefix", "recorded", "root", "sizes")

    def __init__(
        self, device: DeviceMemory, sizes: tuple[int, ...], kind: TileKind, prefix: tuple[int, ...] = (),
        root: BlockArray | None = None,
    ) -> None:  # fmt: skip
        """``sizes`` are those of the block dimensions."""
        self._device, self.sizes, self.kind, self.prefix = device, sizes, kind, prefix
        self.root = self if root is None else root
        self.blocks: dict[tuple[int, ...], Tile] = {} if root is None else root.blocks
        self.recorded: bool = bool(device.recorder.loops) if root is None else root.recorded
        if root is None and self.recorded:
            device.recorder.events.append(self)

    def another(self) -> BlockArray:
        """Return a new array like this one, for another iteration."""
        return BlockArray(self._device, self.sizes, self.kind)

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.sizes, *self.kind.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.kind.dtype

    def at(self, position: tuple[int, ...]) -> Tile:
        """Return the tile at a position in all block dimensions; made if it is not there yet."""
        tile = self.blocks.get(position)
        if tile is None:
            with self._device.recorder.paused():  # made once, whichever iteration is the first
                tile = self.blocks[position] = self._device.allocate(*self.kind)
        return tile

    def block_at(self, position: tuple[int, ...]) -> Block:
        """Return the block of the tile at a position."""
        return self.at(position).block

    def look_up(self, position: tuple[int, ...], slopes: tuple[Slopes, ...], line: int) -> Tile:
        """Return the tile at a position, for an iteration that is recorded."""
        lookup = self._device.recorder.look_up(self, position, slopes, line)
        tile = self.at(position)
        view = tile.strided(tile.offset, tile.dims)
        view.affine_offset = AffineOffset((), lookup)
        return view

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def buffer(self) -> MemorySpace:
        return self.kind.memory

    def _split(self, key: Any) -> tuple[Any, tuple[Any, ...]]:
        entries = key if isinstance(key, tuple) else (key,)
        missing, diagnostics = len(self.sizes), self._device.diagnostics
        known = self._known(entries[:missing])
        if known is not None:
            return known, entries[missing:]
        if entries and entries[0] is Ellipsis and self.sizes == (1,):
            entries = (0, *entries)
        leading: list[int] = []
        growing: list[Slopes] = []
        for axis, entry in enumerate(entries[:missing]):
            position, slopes = (entry, ()) if type(entry) is int else _block_position(entry)
            if position is None:
                diagnostics.fault(
                    "unsupported",
                    f"Block dimension {axis} of {self.kind.name or 'this tensor'} must be indexed with an integer.",
                )
            elif not 0 <= position < self.sizes[axis]:
                diagnostics.fault(
                    "out-of-bounds",
                    f"Index {position} is outside block dimension {axis} of size {self.sizes[axis]}.",
                )
            leading.append(position)
            growing.append(slopes)
            if slopes:
                stays_inside(position, position, self.sizes[axis], slopes)
        where = (*self.prefix, *leading)
        if len(leading) < missing:
            for slopes in growing:
                only_now(slopes)
            return BlockArray(self._device, self.sizes[len(leading) :], self.kind, where, self.root), ()
        if self.recorded or any(growing):
            slopes_of = (*(((),) * len(self.prefix)), *growing)
            return self.root.look_up(where, slopes_of, diagnostics.line()), entries[missing:]
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
            self._device.diagnostics.fault(
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
