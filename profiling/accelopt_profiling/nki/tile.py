"""Blocks of memory and the views a kernel holds on them.

A ``Tile`` is a lazy strided view: it names a place and is read when it is used, so that what a kernel writes in
between is seen. Arithmetic on tiles is left to the front end through ``Machine.arithmetic``.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from operator import index as as_int
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accelopt_profiling.nki.coverage import Box, Coverage
from accelopt_profiling.nki.index import Affine, Dim, IntArray
from accelopt_profiling.nki.instruction import Instruction, Memory, Place

if TYPE_CHECKING:
    from accelopt_profiling.nki.chip import Chip

Array = npt.NDArray[Any]


class Block:
    """Contiguous memory of one shape. ``storage`` is allocated by the first write; ``borrowed`` means that it is
    the caller's own array, copied before a write. ``fill`` is what memory holds that nothing was written to, and
    ``blank`` tells that nothing was."""

    __slots__ = ("_bytes", "blank", "borrowed", "coverage", "dtype", "fill", "place", "shape", "storage")

    def __init__(
        self, place: Place, dtype: np.dtype[Any], storage: Array | None = None, full: bool = False
    ) -> None:
        self.place, self.shape, self.dtype, self.storage = place, place.shape, dtype, storage
        self.borrowed = storage is not None
        self.blank = storage is None
        self.fill: Any = None
        self.coverage = Coverage(self.shape, full)
        self._bytes: Any = None

    def writable(self) -> Array:
        """The memory, to be written to; allocated if it is not there yet."""
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

    def release(self) -> None:
        """Give the memory back."""
        self.storage = self._bytes = None

    def bytes(self) -> Any:
        """The memory as a buffer that views are cut from."""
        if self._bytes is None:
            assert self.storage is not None
            self._bytes = self.storage.reshape(-1).view(np.uint8)
        return self._bytes


@lru_cache(maxsize=8192)
def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


@lru_cache(maxsize=4096)
def contiguous(shape: tuple[int, ...]) -> tuple[Dim, ...]:
    """The dimensions of a view of a whole block of ``shape``."""
    return tuple(zip(shape, _strides(shape), strict=True))


@lru_cache(maxsize=16384)
def bounding_box(offset: int, dims: tuple[Dim, ...], shape: tuple[int, ...]) -> tuple[Box, bool]:
    """The box of a block of ``shape`` that a strided view touches, and whether the view touches all of it."""
    strides = _strides(shape)
    low, rest = [], offset
    for stride in strides:
        position, rest = divmod(rest, stride)
        low.append(position)
    extent = [0] * len(shape)
    for num, step in dims:
        if num > 1 and step:
            axis = next(
                (a for a, stride in enumerate(strides) if abs(step) >= stride and shape[a] > 1),
                len(shape) - 1,
            )
            if step % strides[axis]:
                return tuple((0, n) for n in shape), False
            extent[axis] += (num - 1) * (abs(step) // strides[axis])
    box = []
    for axis, start in enumerate(low):
        if (
            start + extent[axis] >= shape[axis]
        ):  # the view runs over the end of this axis into the next outer one
            return tuple((0, n) for n in shape), False
        box.append((start, start + extent[axis] + 1))
    count = prod(num for num, step in dims if step)
    return tuple(box), count == prod(high - low for low, high in box)


class Tile:
    """A strided view of a block: ``dims`` are (number, step in elements), outermost (partition) first.

    ``positions`` replaces them for an irregular (gathered) view. ``fresh`` marks the result of an instruction that
    has not been stored anywhere: assigning it makes the instruction write there directly. ``valid`` is the box
    that a masked instruction has written. ``out_of_range`` remembers an index that only a mask can make legal.
    """

    __slots__ = (
        "_shape", "block", "dims", "fresh", "machine", "offset", "out_of_range", "positions", "producer", "settled",
        "step", "valid", "where",
    )  # fmt: skip
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, machine: Chip, block: Block, offset: int, dims: tuple[Dim, ...]) -> None:
        self.machine, self.block, self.offset, self.dims = machine, block, offset, dims
        self._shape: tuple[int, ...] | None = None
        self.positions: IntArray | None = None
        self.producer: Instruction | None = None
        self.step: Any = None  # the work that makes its values, while it is fresh
        self.fresh = self.settled = False
        self.valid: Box | None = None
        self.where: npt.NDArray[np.bool_] | None = None
        self.out_of_range: list[tuple[int, Affine]] = []

    # What kernels ask of a tensor

    @property
    def shape(self) -> tuple[int, ...]:
        if self.positions is not None:
            return self.positions.shape
        if self._shape is None:
            self._shape = tuple([num for num, _ in self.dims])
        return self._shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.block.dtype

    @property
    def buffer(self) -> Memory:
        return self.block.place.memory

    @property
    def size(self) -> int:
        return prod(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Any:
        raise TypeError("a tile cannot be iterated over; index it")

    def __bool__(self) -> bool:
        raise TypeError("a tile has no truth value: control flow cannot depend on data")

    def __repr__(self) -> str:
        return f"<tile {self.shape} {self.dtype} in {self.buffer.value}>"

    def reshape(self, *shape: Any) -> Tile:
        return self.machine.reshape(
            self, shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        )

    def broadcast_to(self, *shape: Any) -> Tile:
        return self.machine.broadcast(
            self, shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        )

    def astype(self, dtype: Any) -> Tile:
        return self.machine.arithmetic("astype", self, dtype)

    def __getitem__(self, key: Any) -> Tile:
        return self.machine.select(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.machine.assign(self.machine.select(self, key), value)

    def __iadd__(self, other: Any) -> Tile:
        return self.machine.accumulate(self, other)

    def __add__(self, other: Any) -> Tile:
        return self.machine.arithmetic("add", self, other)

    def __radd__(self, other: Any) -> Tile:
        return self.machine.arithmetic("add", other, self)

    def __sub__(self, other: Any) -> Tile:
        return self.machine.arithmetic("subtract", self, other)

    def __rsub__(self, other: Any) -> Tile:
        return self.machine.arithmetic("subtract", other, self)

    def __mul__(self, other: Any) -> Tile:
        return self.machine.arithmetic("multiply", self, other)

    def __rmul__(self, other: Any) -> Tile:
        return self.machine.arithmetic("multiply", other, self)

    def __truediv__(self, other: Any) -> Tile:
        return self.machine.arithmetic("divide", self, other)

    def __rtruediv__(self, other: Any) -> Tile:
        return self.machine.arithmetic("divide", other, self)

    def __pow__(self, other: Any) -> Tile:
        return self.machine.arithmetic("power", self, other)

    def __neg__(self) -> Tile:
        return self.machine.arithmetic("negative", self)

    def __gt__(self, other: Any) -> Tile:
        return self.machine.arithmetic("greater", self, other)

    def __ge__(self, other: Any) -> Tile:
        return self.machine.arithmetic("greater_equal", self, other)

    def __lt__(self, other: Any) -> Tile:
        return self.machine.arithmetic("less", self, other)

    def __le__(self, other: Any) -> Tile:
        return self.machine.arithmetic("less_equal", self, other)

    # What the machine asks of a view

    def box(self) -> Box:
        """The box of the block that the view touches."""
        if self.positions is not None:
            return tuple((0, n) for n in self.block.shape)
        return bounding_box(self.offset, self.dims, self.block.shape)[0]

    def addresses(self) -> IntArray:
        """Where each element lies, as offsets into the flattened block."""
        if self.positions is not None:
            return self.positions
        flat = np.full(self.shape, self.offset, dtype=np.int64)
        for axis, (num, step) in enumerate(self.dims):
            flat += (np.arange(num) * step).reshape([-1 if axis == d else 1 for d in range(len(self.dims))])
        return flat

    def array(self, writable: bool = False) -> Array:
        """The view as a NumPy array that shares the block's memory."""
        block = self.block
        storage = block.writable() if writable or block.storage is None else block.storage
        if not self.dims and self.positions is None:
            return storage.reshape(-1)[self.offset : self.offset + 1].reshape(())
        item = storage.dtype.itemsize
        view: Array = np.ndarray(
            self.shape, storage.dtype, storage.reshape(-1).view(np.uint8),
            self.offset * item, tuple(step * item for _, step in self.dims),
        )  # fmt: skip
        return view

    def within(self, box: Box) -> Tile:
        """The part of the view inside ``box`` (ranges of its own dimensions)."""
        offset = self.offset + sum(low * step for (low, _), (_, step) in zip(box, self.dims, strict=True))
        dims = tuple(
            (max(0, high - low), step) for (low, high), (_, step) in zip(box, self.dims, strict=True)
        )
        return self.strided(offset, dims)

    def strided(self, offset: int, dims: tuple[Dim, ...]) -> Tile:
        """Another view of the same block, of the same dialect."""
        return type(self)(self.machine, self.block, offset, dims)

    def covers_block(self) -> bool:
        """Whether the view is the whole block in its own order."""
        if self.positions is not None or self.offset or self.size != prod(self.block.shape):
            return False
        step = 1
        for num, stride in reversed(self.dims):
            if num > 1 and stride != step:
                return False
            step *= num
        return True


class BlockArray:
    """Many tiles under one name: ``(B.., par_dim(P), F..)``. Each tile is a block of its own, made when first used."""

    __slots__ = (
        "_fill",
        "blocks",
        "dtype",
        "line",
        "machine",
        "memory",
        "name",
        "prefix",
        "shape",
        "tile_shape",
    )

    def __init__(
        self, machine: Chip, shape: tuple[int, ...], rank: int, dtype: np.dtype[Any], memory: Memory,
        name: str, line: int, fill: Any, prefix: tuple[int, ...] = (),
        blocks: dict[tuple[int, ...], Tile] | None = None,
    ) -> None:  # fmt: skip
        self.machine, self.shape, self.dtype, self.memory, self.name, self.line = (
            machine,
            shape,
            dtype,
            memory,
            name,
            line,
        )
        self.tile_shape = shape[rank:]
        self._fill, self.prefix = fill, prefix
        self.blocks = {} if blocks is None else blocks

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def buffer(self) -> Memory:
        return self.memory

    def _split(self, key: Any) -> tuple[Any, tuple[Any, ...]]:
        entries = key if isinstance(key, tuple) else (key,)
        missing = len(self.shape) - len(self.tile_shape)
        if entries and entries[0] is Ellipsis and missing == 1 and self.shape[0] == 1:
            entries = (0, *entries)
        leading: list[int] = []
        for axis, entry in enumerate(entries[:missing]):
            position = entry if type(entry) is int else _block_position(entry)
            if position is None:
                self.machine.fault(
                    "unsupported",
                    f"Block dimension {axis} of {self.name or 'this tensor'} must be indexed with an integer.",
                )
            elif not 0 <= position < self.shape[axis]:
                self.machine.fault(
                    "out-of-bounds",
                    f"Index {position} is outside block dimension {axis} of size {self.shape[axis]}.",
                )
            else:
                leading.append(position)
        where = (*self.prefix, *leading)
        if len(leading) < missing:
            rank = missing - len(leading)
            rest = BlockArray(
                self.machine, self.shape[len(leading) :], rank, self.dtype, self.memory, self.name, self.line,
                self._fill, where, self.blocks,
            )  # fmt: skip
            return rest, ()
        tile = self.blocks.get(where)
        if tile is None:
            tile = self.machine.allocate(
                self.tile_shape, self.dtype, self.memory, self.name, self._fill, self.line
            )
            self.blocks[where] = tile
        return tile, entries[missing:]

    def __getitem__(self, key: Any) -> Any:
        target, rest = self._split(key)
        return target[rest] if isinstance(target, Tile) and rest else target

    def __setitem__(self, key: Any, value: Any) -> None:
        target, rest = self._split(key)
        if not isinstance(target, Tile):
            self.machine.fault("unsupported", "Assign to one tile at a time: index every block dimension.")
        target[rest if rest else Ellipsis] = value


def _block_position(entry: Any) -> int | None:
    if isinstance(entry, Affine):
        return entry.offset if all(num == 1 for num, _ in entry.dims) else None
    if isinstance(entry, slice):
        return (
            as_int(entry.start or 0)
            if entry.stop is not None and entry.stop - (entry.start or 0) == 1
            else None
        )
    try:
        return as_int(entry)
    except TypeError:
        return None
