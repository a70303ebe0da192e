"""The views a kernel holds on blocks of memory.

A ``Tile`` is a lazy strided view: it names a place and is read when it is used, so that what a kernel writes in
between is seen. Arithmetic on tiles is left to the front end through ``Machine.arithmetic``.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accelopt_profiling.nki.data.affine_offset import Trail
from accelopt_profiling.nki.data.block import Array, Block
from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.index import Affine, Dim, IntArray
from accelopt_profiling.nki.data.instruction import Instruction, Memory, Region
from accelopt_profiling.nki.data.layout import bounding_box, sizes
from accelopt_profiling.nki.data.loop_counter import Slopes, plus
from accelopt_profiling.nki.data.view import View
from accelopt_profiling.nki.emulator.loop_recorder import Reached

if TYPE_CHECKING:
    from accelopt_profiling.nki.emulator.memory import Chip


class Tile:
    """A strided view of a block: ``dims`` are (number, step in elements), outermost (partition) first.

    ``positions`` replaces them for an irregular (gathered) view. ``fresh`` marks the result of an instruction that
    has not been stored anywhere: assigning it makes the instruction write there directly. ``valid`` is the box
    that a masked instruction has written. ``out_of_range`` remembers an index that only a mask can make legal.
    ``trail`` says where the view of another iteration would be, while one is noted.
    """

    __slots__ = (
        "_shape", "block", "dims", "fresh", "machine", "offset", "out_of_range", "positions", "producer", "settled",
        "step", "trail", "valid", "where",
    )  # fmt: skip
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]  # no key, as arrays are none

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
        self.trail: Trail | None = None

    # What kernels ask of a tensor

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

    def region(self) -> Region:
        """The block's place and the box."""
        if self.trail is None:
            return self.block.place, self.box()
        return Reached.of(View.of(self))

    def grow(self, slopes: Slopes) -> None:
        """Let the offset grow with loops."""
        old = self.trail
        self.trail = Trail(slopes, None) if old is None else Trail(plus(old.slopes, slopes), old.found)

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
        view = type(self)(self.machine, self.block, offset, dims)
        view.trail = self.trail
        return view

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
