"""``nl.tiles`` and ``nl.blocks``: a tensor seen in coordinates of tiles or of blocks of tiles (since NKI 0.7).

A grid is a view: making and indexing it moves nothing. AWS's pages say how coordinates, boundaries and shapes behave;
not what shape ``data`` has where several rows of tiles lie on the chip. There it is the partitions, and behind them one
row of tiles after another; a DMA between that and HBM moves each element to its own place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import index as as_int
from typing import Any

import numpy as np

from accelopt_profiling.nki.current.tensor import NkiTensor
from accelopt_profiling.nki.data.index import Dim
from accelopt_profiling.nki.data.loop_counter import plain
from accelopt_profiling.nki.data.memory_space import Buffer, MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.handle import Handle, handing, represents
from accelopt_profiling.nki.instructions.operands import data_type


@dataclass(frozen=True)
class Axis:
    """What a grid selects of one dimension of its tensor, in elements: ``size`` from ``start`` on, ``step`` of them for
    each coordinate. ``taken``: an integer has chosen one; ``tiled``: not a leading dimension without tiles.
    """

    start: int
    size: int
    step: int
    tiled: bool = True
    taken: bool = False

    @property
    def count(self) -> int:
        return -(-self.size // self.step)


@dataclass(frozen=True)
class Grid:
    """The tensor, what is selected of each of its dimensions, and the sizes of tiles and (in tiles) of blocks.

    ``row`` is the number of elements in a row of tiles where the rows lie behind one another in the partitions, as
    ``alloc_tiles`` lays them out on the chip; 0 where the tensor's dimensions are the grid's.
    """

    source: NkiTensor
    axes: tuple[Axis, ...]
    tile_shape: tuple[int, ...]
    row: int = 0

    @property
    def _kept(self) -> list[Axis]:
        return [a for a in self.axes if a.tiled or not a.taken]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of coordinates along each dimension that no integer has chosen yet."""
        return tuple(a.count for a in self.axes if not a.taken)

    @property
    def element_shape(self) -> tuple[int, ...]:
        """The number of selected elements of each dimension; boundaries count what there is."""
        return tuple(a.size for a in self._kept)

    @property
    def index_step_elements(self) -> tuple[int, ...]:
        """The number of elements from one coordinate to the next."""
        return tuple(a.step for a in self.axes if not a.taken)

    @property
    def is_remainder(self) -> bool:
        """Whether the selection ends in a tile or block that the boundary cuts."""
        return any(a.size % a.step for a in self.axes)

    @property
    def dtype(self) -> Any:
        return self.source.dtype

    @property
    def buffer(self) -> Any:
        return self.source.buffer

    def __getitem__(self, key: Any) -> Grid:
        machine = current()
        keys = list(key) if isinstance(key, tuple) else [key]
        at = [n for n, a in enumerate(self.axes) if not a.taken]
        if Ellipsis in keys:
            place = keys.index(Ellipsis)
            keys[place : place + 1] = [slice(None)] * (len(at) - len(keys) + 1)
        if len(keys) > len(at):
            machine.fault("out-of-bounds", f"{len(keys)} coordinates for a grid of shape {self.shape}.")
        axes = list(self.axes)
        for n, entry in zip(at, keys, strict=False):
            axes[n] = _chosen(machine, axes[n], entry)
        return replace(self, axes=tuple(axes))

    @property
    def is_data_representable(self) -> bool:
        """Whether ``data`` is one access pattern."""
        return self._dims() is not None

    @property
    def data(self) -> Tile:
        """The selected elements as an instruction's operand."""
        dims = self._dims()
        if dims is None:
            return current().fault(
                "unsupported",
                f"The selection of {self.element_shape} elements is not one access pattern; index it.",
            )
        if self.row:
            first, column = self.axes[0].start // self.tile_shape[0], self.axes[1].start
            view = self.source.strided(self.source.offset + first * self.row + column, dims)
        else:
            offset = sum(a.start * step for a, (_, step) in zip(self.axes, self.source.dims, strict=True))
            view = self.source.strided(self.source.offset + offset, dims)
        assert isinstance(view, NkiTensor)
        view.tile_rows = self._rows
        return view

    @property
    def _rows(self) -> int:
        """The number of rows of tiles that lie behind one another in the partitions."""
        return -(-self.axes[0].size // self.tile_shape[0]) if self.row else 1

    def _dims(self) -> tuple[Dim, ...] | None:
        steps = [step for _, step in self.source.dims]
        if not self.row:
            return tuple((a.size, s) for a, s in zip(self.axes, steps, strict=True) if a.tiled or not a.taken)
        partitions, columns, rows = self.axes[0].size, self.axes[1].size, self._rows
        if rows == 1:
            return ((partitions, steps[0]), (columns, 1))
        if partitions % self.tile_shape[0]:
            return None  # the last row of tiles has fewer partitions
        if columns == self.row:
            return ((self.tile_shape[0], steps[0]), (rows * columns, 1))
        return ((self.tile_shape[0], steps[0]), (rows, self.row), (columns, 1))


class TileGrid(Grid):
    """A grid whose coordinates count tiles."""


@dataclass(frozen=True)
class BlockGrid(Grid):
    """A grid whose coordinates count blocks of ``block_shape`` tiles."""

    block_shape: tuple[int, ...] = ()


def _chosen(machine: Machine, axis: Axis, entry: Any) -> Axis:
    """Return what is left of an axis when ``entry``, a number or a slice of coordinates, has chosen."""
    if isinstance(entry, slice):
        entry = slice(plain(entry.start), plain(entry.stop), plain(entry.step))
        first, last, step = entry.indices(axis.count)
        if step != 1 or last <= first:
            machine.fault(
                "out-of-bounds", f"The slice {entry} of {axis.count} coordinates is empty or has steps."
            )
        start, single = first, False
    else:
        entry = plain(entry)
        if not isinstance(entry, (int, np.integer)):
            machine.fault("unsupported", f"A coordinate is a number or a slice, not {type(entry).__name__}.")
        start, single = as_int(entry), True
        if not -axis.count <= start < axis.count:
            machine.fault("out-of-bounds", f"Coordinate {start} does not exist; there are {axis.count}.")
        start %= axis.count
        last = start + 1
    size = min(axis.size, last * axis.step) - start * axis.step
    return replace(axis, start=axis.start + start * axis.step, size=size, taken=single)


def _sizes(machine: Machine, shape: Any, what: str, least: int = 1) -> tuple[int, ...]:
    if not isinstance(shape, tuple) or any(type(n) is not int for n in shape):
        machine.fault("unsupported", f"The {what} is a tuple of Python's whole numbers, not {shape!r}.")
    if len(shape) < least or any(n < 1 for n in shape):
        machine.fault(
            "out-of-bounds", f"The {what} has at least {least} sizes, all positive; this is {shape}."
        )
    return shape


def _tiled(machine: Machine, source: Any, tile_shape: Any) -> TileGrid:
    """Return a tensor or a grid as a grid of tiles."""
    if isinstance(source, Grid):
        tile = source.tile_shape if tile_shape is None else _sizes(machine, tile_shape, "tile_shape", 2)
        if source.row and tile != source.tile_shape:
            machine.fault("unsupported", f"This memory was laid out in tiles of {source.tile_shape}.")
        if len(tile) != len(source.tile_shape):
            machine.fault("out-of-bounds", f"{tile} and {source.tile_shape} have different ranks.")
        axes, leading = list(source.axes), len(source.axes) - len(tile)
        axes[leading:] = [Axis(a.start, a.size, n) for a, n in zip(axes[leading:], tile, strict=True)]
        return TileGrid(source.source, tuple(axes), tile, source.row)
    if not isinstance(source, NkiTensor) or source.positions is not None:
        machine.fault("unsupported", f"Tiles are made of a tensor or a grid, not of {type(source).__name__}.")
    tile = _sizes(machine, tile_shape, "tile_shape", 2)
    leading = len(source.shape) - len(tile)
    if leading < 0 or (leading and source.block.info.memory is not MemorySpace.HBM):
        machine.fault(
            "out-of-bounds",
            f"Tiles of {tile} do not fit a tensor of shape {source.shape}: only in HBM dimensions may lead them.",
        )
    return TileGrid(source, _axes(source.shape, tile), tile)


def _axes(shape: Sequence[int], tile: tuple[int, ...]) -> tuple[Axis, ...]:
    leading = len(shape) - len(tile)
    return tuple(
        Axis(0, size, tile[n - leading] if n >= leading else 1, n >= leading) for n, size in enumerate(shape)
    )


def tiles(source: Any, *, tile_shape: Any = None) -> TileGrid:
    """Return a tensor, or what a grid selects, as a grid of tiles of ``tile_shape``, which holds for the last
    dimensions."""
    return _tiled(current(), source, tile_shape)


def blocks(source: Any, *, tile_shape: Any = None, block_shape: Any) -> BlockGrid:
    """Return a tensor, or what a grid selects, as a grid of blocks of ``block_shape`` tiles."""
    machine = current()
    return _blocked(machine, _tiled(machine, source, tile_shape), block_shape)


def _blocked(machine: Machine, grid: TileGrid, block_shape: Any) -> BlockGrid:
    block = _sizes(machine, block_shape, "block_shape")
    if len(block) != len(grid.tile_shape):
        machine.fault(
            "out-of-bounds", f"block_shape {block} and tile_shape {grid.tile_shape} differ in rank."
        )
    axes, leading = list(grid.axes), len(grid.axes) - len(block)
    axes[leading:] = [replace(a, step=a.step * n) for a, n in zip(axes[leading:], block, strict=True)]
    return BlockGrid(grid.source, tuple(axes), grid.tile_shape, grid.row, block)


def alloc_tiles(
    *, tile_shape: Any, element_shape: Any, buffer: Any, dtype: Any, address: Any = None, name: str = ""
) -> TileGrid:
    """Return new, unwritten memory as a grid of tiles. On the chip a row of tiles lies behind the other in the
    partitions, each tile with room for ``tile_shape``."""
    machine = current()
    tile = _sizes(machine, tile_shape, "tile_shape", 2)
    elements = _sizes(machine, element_shape, "element_shape", len(tile))
    if not isinstance(buffer, Buffer):
        machine.fault(
            "unsupported", f"buffer={buffer!r}: write nl.sbuf, nl.psum, nl.shared_hbm or nl.private_hbm."
        )
    kind = data_type(dtype)
    if buffer.memory is MemorySpace.HBM:
        memory = machine.memory
        source = (
            memory.shared(elements, kind, name)
            if buffer.shared
            else memory.allocate(elements, kind, MemorySpace.HBM, name)
        )
        return _tiled(machine, source, tile)
    if len(tile) != 2 or len(elements) != 2:
        machine.fault("unsupported", f"Tiles of {tile} on the chip: what is emulated has two dimensions.")
    rows, columns = (-(-n // size) for n, size in zip(elements, tile, strict=True))
    row = columns * tile[1]
    source = machine.memory.allocate((tile[0], rows * row), kind, buffer.memory, name)
    assert isinstance(source, NkiTensor)
    return TileGrid(source, _axes(elements, tile), tile, row)


def alloc_blocks(
    *, tile_shape: Any, block_shape: Any, element_shape: Any, buffer: Any, dtype: Any, address: Any = None,
    name: str = "",
) -> BlockGrid:  # fmt: skip
    """Return new, unwritten memory as a grid of blocks, laid out as by ``alloc_tiles``."""
    grid = alloc_tiles(
        tile_shape=tile_shape,
        element_shape=element_shape,
        buffer=buffer,
        dtype=dtype,
        address=address,
        name=name,
    )
    return _blocked(current(), grid, block_shape)


_ATTRIBUTES = (
    "shape", "element_shape", "tile_shape", "index_step_elements", "is_remainder", "is_data_representable", "dtype",
    "buffer",
)  # fmt: skip


class KernelGrid(Handle):
    """``nl.NkiGrid``: a grid as kernel code holds it."""

    __slots__ = ()
    data = property(handing(Grid.data.fget))  # type: ignore[attr-defined]


@represents(TileGrid, *_ATTRIBUTES, methods=("__getitem__",))
class KernelTileGrid(KernelGrid):
    """``nl.NkiTileGrid``, as kernel code holds it."""

    __slots__ = ()


@represents(BlockGrid, *_ATTRIBUTES, "block_shape", methods=("__getitem__",))
class KernelBlockGrid(KernelGrid):
    """``nl.NkiBlockGrid``, as kernel code holds it."""

    __slots__ = ()
