"""``Tile``: the view of a block of memory that a kernel holds.

A tile is lazy: it is read when an instruction uses it, so that what a kernel writes in between is seen. What a tile
cannot do by itself it asks of the emulator, through ``TileOperations``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from accelopt_profiling.nki.data.affine_offset import AffineOffset
from accelopt_profiling.nki.data.block import Array, Block
from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.index import Affine, Dim, IntArray
from accelopt_profiling.nki.data.instruction import Region, TracedInstruction
from accelopt_profiling.nki.data.layout import bounding_box, sizes
from accelopt_profiling.nki.data.loop_counter import Slopes, plus
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.data.view import LoopRegion, View


class TileOperations(Protocol):
    """The emulator as tiles see it: what the operators and methods of a tile do."""

    version: str

    def fault(self, code: str, message: str) -> NoReturn: ...

    def select(self, tile: Tile, key: Any) -> Tile: ...

    def reshape(self, tile: Tile, shape: Sequence[int]) -> Tile: ...

    def reinterpret(self, tile: Tile, dtype: Any) -> Tile: ...

    def broadcast(self, tile: Tile, shape: Sequence[int]) -> Tile: ...

    def assign(self, target: Tile, value: Any) -> None: ...

    def accumulate(self, target: Tile, value: Any) -> Tile: ...

    def arithmetic(self, name: str, *operands: Any) -> Tile: ...

    def index_values(self, tile: Tile) -> Array | None: ...


def sizes_of(given: Sequence[Any], shape: Any) -> Sequence[Any]:
    """Return a shape from a method's arguments: one sequence, sizes one by one, or ``shape=``."""
    if shape is not None:
        return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given


def _operator(name: str, reflected: bool = False) -> Callable[[Tile, Any], Tile]:
    def method(self: Tile, other: Any) -> Tile:
        return self.machine.arithmetic(name, *((other, self) if reflected else (self, other)))

    return method


class Tile:
    """A strided view of a block: ``dims`` are (number, step in elements), outermost (partition) first.

    ``positions`` replaces them for an irregular (gathered) view. ``fresh`` marks the result of an instruction that
    has not been stored anywhere: assigning it makes the instruction write there directly. ``valid`` and ``where`` are
    the box and the mask that a masked instruction has written. ``out_of_range`` holds indices that only a mask can make
    legal. ``affine_offset`` says where the view of another iteration lies, while a loop is recorded.
    """

    __slots__ = (
        "_shape", "affine_offset", "block", "dims", "fresh", "machine", "offset", "out_of_range", "positions",
        "producer", "step", "valid", "where",
    )  # fmt: skip
    #: Of a view that an index on the device chooses, in today's dialect: how, and the tensor that holds the index.
    addressing: str = ""
    index: Tile | None = None
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]  # no key, as arrays are none

    def __init__(self, machine: TileOperations, block: Block, offset: int, dims: tuple[Dim, ...]) -> None:
        self.machine, self.block, self.offset, self.dims = machine, block, offset, dims
        self._shape: tuple[int, ...] | None = None
        self.positions: IntArray | None = None
        self.producer: TracedInstruction | None = None
        self.step: Any = None  # the step that computes its values, while it is fresh
        self.fresh = False
        self.valid: Box | None = None
        self.where: npt.NDArray[np.bool_] | None = None
        self.out_of_range: list[tuple[int, Affine]] = []
        self.affine_offset: AffineOffset | None = None

    # For kernels

    @property
    def shape(self) -> tuple[int, ...]:
        if self.positions is not None:
            return self.positions.shape
        shape = self._shape
        if shape is None:
            shape = self._shape = sizes(self.dims)
        return shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.block.dtype

    @property
    def buffer(self) -> MemorySpace:
        return self.block.info.memory

    @property
    def size(self) -> int:
        return prod(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Any:
        raise TypeError("a tile cannot be iterated over; index it")

    def __bool__(self) -> bool:
        given = self.dtype != np.bool_ if self.machine.version else self.block.info.constant
        if given:
            return True  # an object like any other: kernels ask whether it was given
        raise TypeError("a tile has no truth value: control flow cannot depend on data")

    def __repr__(self) -> str:
        return f"<tile {self.shape} {self.dtype} in {self.block.info.memory.value}>"

    def reshape(self, *sizes: Any, shape: Any = None) -> Tile:
        return self.machine.reshape(self, sizes_of(sizes, shape))

    def broadcast_to(self, *sizes: Any, shape: Any = None, **unused: Any) -> Tile:
        return self.machine.broadcast(self, sizes_of(sizes, shape))

    def view(self, dtype: Any) -> Tile:
        return self.machine.reinterpret(self, dtype)

    def astype(self, dtype: Any) -> Tile:
        return self.machine.arithmetic("astype", self, dtype)

    def __getitem__(self, key: Any) -> Tile:
        return self.machine.select(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.machine.assign(self.machine.select(self, key), value)

    def __iadd__(self, other: Any) -> Tile:
        return self.machine.accumulate(self, other)

    __add__, __radd__ = _operator("add"), _operator("add", reflected=True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", reflected=True)
    __mul__, __rmul__ = _operator("multiply"), _operator("multiply", reflected=True)
    __truediv__, __rtruediv__ = _operator("divide"), _operator("divide", reflected=True)
    __pow__ = _operator("power")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    __lt__, __le__ = _operator("less"), _operator("less_equal")

    def __neg__(self) -> Tile:
        return self.machine.arithmetic("negative", self)

    # For the emulator

    def box(self) -> Box:
        """Return the box of the block that the view touches."""
        if self.positions is not None:
            return tuple((0, n) for n in self.block.shape)
        try:
            return bounding_box(self.offset, self.dims, self.block.shape)[0]
        except ZeroDivisionError:
            return self.machine.fault("out-of-bounds", f"The shape {self.block.shape} has no elements.")

    def as_view(self) -> View:
        """Return the view as it is now."""
        return View(self.block, self.offset, self.dims, self.positions, self.affine_offset)

    def region(self) -> Region:
        """Return the block and the box: those of the tensor whose bits are seen as another type."""
        if self.block.original is not None:
            return self._original_region(self.block.original)
        if self.affine_offset is None:
            return self.block.info, self.box()
        return LoopRegion.of(self.as_view())

    def _original_region(self, original: Tile) -> Region:
        *rows, (low, high) = self.box()
        here, there = self.block.shape[-1], original.shape[-1]
        return original.within((*rows, (low * there // here, -(-high * there // here)))).region()

    def grow(self, slopes: Slopes) -> None:
        """Let the offset grow with loops."""
        old = self.affine_offset
        self.affine_offset = (
            AffineOffset(slopes, None) if old is None else AffineOffset(plus(old.slopes, slopes), old.lookup)
        )

    def addresses(self) -> IntArray:
        """Return the offset of each element in the flattened block."""
        if self.positions is not None:
            return self.positions
        flat = np.full(self.shape, self.offset, dtype=np.int64)
        for axis, (num, step) in enumerate(self.dims):
            flat += (np.arange(num) * step).reshape([-1 if axis == d else 1 for d in range(len(self.dims))])
        return flat

    def array(self, writable: bool = False) -> Array:
        """Return the view as a NumPy array that shares the block's memory."""
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
        """Return the part of the view inside ``box`` (ranges of its own dimensions)."""
        offset = self.offset + sum(low * step for (low, _), (_, step) in zip(box, self.dims, strict=True))
        dims = tuple(
            (max(0, high - low), step) for (low, high), (_, step) in zip(box, self.dims, strict=True)
        )
        return self.strided(offset, dims)

    def strided(self, offset: int, dims: tuple[Dim, ...]) -> Tile:
        """Return another view of the same block, of the same dialect."""
        view = type(self)(self.machine, self.block, offset, dims)
        view.affine_offset = self.affine_offset
        return view

    def same_place(self, other: Tile) -> bool:
        """Return True if both are the same elements of the same block."""
        if self.block is not other.block or (self.offset, self.dims) != (other.offset, other.dims):
            return False
        if self.positions is None or other.positions is None:
            return self.positions is other.positions
        return np.array_equal(self.positions, other.positions)

    def covers_block(self) -> bool:
        """Return True if the view is the whole block in its own order."""
        if self.positions is not None or self.offset or self.size != prod(self.block.shape):
            return False
        step = 1
        for num, stride in reversed(self.dims):
            if num > 1 and stride != step:
                return False
            step *= num
        return True
