"""Index expressions of kernels: affine where possible, so that an access is a strided view and a mask is a box."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import index as as_int
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from accelopt_profiling.nki.data.loop_counter import LoopCounter, Slopes, at_least_zero, only_now, plus, times

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: One dimension of an affine index: how many positions, and by how much the value grows from one to the next.
Dim = tuple[int, int]


class Affine:
    """``offset + sum(step_d * i_d)`` for ``0 <= i_d < num_d``: what ``nl.arange`` gives and sums and products keep.

    ``slopes`` tell how the offset grows with loops. Anything that is not affine (``//``, ``%``, a product of two)
    becomes a NumPy array of positions.
    """

    __array_ufunc__ = None  # NumPy scalars and arrays leave the arithmetic to this class
    __slots__ = ("_column", "_row", "dims", "offset", "slopes")

    def __init__(self, offset: int, dims: tuple[Dim, ...], slopes: Slopes = ()) -> None:
        self.offset = offset
        self.dims = dims
        self.slopes = slopes
        self._column: Affine | None = None
        self._row: Affine | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(num for num, _ in self.dims)

    @property
    def low(self) -> int:
        return self.offset + sum((num - 1) * step for num, step in self.dims if step < 0)

    @property
    def high(self) -> int:
        """The largest position, inclusive."""
        return self.offset + sum((num - 1) * step for num, step in self.dims if step > 0)

    def array(self) -> IntArray:
        """Return all positions, with the shape of the index."""
        only_now(self.slopes)
        positions = np.full(self.shape, self.offset, dtype=np.int64)
        for axis, (num, step) in enumerate(self.dims):
            line = np.arange(num, dtype=np.int64) * step
            positions += line.reshape([-1 if axis == d else 1 for d in range(len(self.dims))])
        return positions

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.array() if dtype is None else self.array().astype(dtype)

    def __getitem__(self, key: Any) -> Affine:
        entries = key if isinstance(key, tuple) else (key,)
        if len(self.dims) == 1:  # nl.arange(n)[:, None] and its like: the most frequent by far
            if len(entries) == 2:
                first, second = entries
                if second is None and type(first) is slice and first == _WHOLE:
                    if self._column is None:
                        self._column = Affine(self.offset, (self.dims[0], (1, 0)), self.slopes)
                    return self._column
                if first is None and type(second) is slice and second == _WHOLE:
                    if self._row is None:
                        self._row = Affine(self.offset, ((1, 0), self.dims[0]), self.slopes)
                    return self._row
            opened: list[Dim] = []
            for entry in entries:
                if entry is None:
                    opened.append((1, 0))
                elif type(entry) is slice and entry == _WHOLE:
                    opened.append(self.dims[0])
                else:
                    break
            else:
                if len(opened) - opened.count((1, 0)) == 1:
                    return Affine(self.offset, tuple(opened), self.slopes)
        entry_count = sum(1 for e in entries if e is not None and e is not Ellipsis)
        offset, dims, axis = self.offset, [], 0
        for entry in entries:
            if entry is None:
                dims.append((1, 0))
            elif entry is Ellipsis:
                missing = len(self.dims) - entry_count
                dims.extend(self.dims[axis : axis + missing])
                axis += missing
            else:
                if axis >= len(self.dims):
                    raise IndexError(
                        f"an index of {len(self.dims)} dimensions was indexed with {entry_count} entries"
                    )
                num, step = self.dims[axis]
                axis += 1
                if isinstance(entry, slice):
                    start, stop, stride = entry.indices(num)
                    offset += start * step
                    dims.append((len(range(start, stop, stride)), step * stride))
                else:
                    position = as_int(entry)
                    offset += (position if position >= 0 else num + position) * step
        dims.extend(self.dims[axis:])
        return Affine(offset, tuple(dims), self.slopes)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Affine):
            slopes = plus(self.slopes, other.slopes)
            return Affine(self.offset + other.offset, merged(self.dims, other.dims), slopes)
        if isinstance(other, LoopCounter):
            return Affine(self.offset + other.value, self.dims, plus(self.slopes, other.slopes))
        if isinstance(other, np.ndarray):
            return self.array() + other
        return Affine(self.offset + as_int(other), self.dims, self.slopes)

    __radd__ = __add__

    def __neg__(self) -> Affine:
        dims = tuple([(num, -step) for num, step in self.dims])
        return Affine(-self.offset, dims, times(self.slopes, -1))

    def __sub__(self, other: Any) -> Any:
        return self + (other * -1)

    def __rsub__(self, other: Any) -> Any:
        return (self * -1) + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Affine):
            return self.array() * other.array()
        if isinstance(other, np.ndarray):
            return self.array() * other
        factor = as_int(other)
        dims = tuple([(num, step * factor) for num, step in self.dims])
        return Affine(self.offset * factor, dims, times(self.slopes, factor))

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> IntArray:
        return cast(IntArray, self.array() // np.asarray(other))

    def __mod__(self, other: Any) -> IntArray:
        return cast(IntArray, self.array() % np.asarray(other))

    def __ge__(self, other: Any) -> Mask:
        return Mask.at_least_zero(self - other)

    def __gt__(self, other: Any) -> Mask:
        return Mask.at_least_zero(self - other - 1)

    def __le__(self, other: Any) -> Mask:
        return Mask.at_least_zero((self * -1) + other)

    def __lt__(self, other: Any) -> Mask:
        return Mask.at_least_zero((self * -1) + other - 1)

    def __eq__(self, other: object) -> Any:
        return Mask(dense=(self.array() == np.asarray(other),))

    def __ne__(self, other: object) -> Any:
        return Mask(dense=(self.array() != np.asarray(other),))

    __hash__ = None  # type: ignore[assignment]  # no key, as arrays are none

    def __repr__(self) -> str:
        return f"Affine(offset={self.offset}, dims={self.dims})"


_WHOLE = slice(None)


def merged(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Return the dimensions of the sum of two indices, which broadcast as NumPy's arrays do.

    Raises:
        IndexError: they do not.
    """
    if len(a) != len(b):
        rank = max(len(a), len(b))
        a = ((1, 0),) * (rank - len(a)) + a
        b = ((1, 0),) * (rank - len(b)) + b
    dims: list[Dim] = []
    for (num_a, step_a), (num_b, step_b) in zip(a, b, strict=True):
        if num_a == num_b:
            dims.append((num_a, step_a + step_b))
        elif num_a == 1:
            dims.append((num_b, step_b))
        elif num_b == 1:
            dims.append((num_a, step_a))
        else:
            raise IndexError(f"index shapes {[n for n, _ in a]} and {[n for n, _ in b]} do not broadcast")
    return tuple(dims)


@lru_cache(maxsize=1024)
def arange(start: int, stop: int, step: int = 1) -> Affine:
    """Return the positions ``start, start + step, ...`` below ``stop``."""
    return Affine(start, ((len(range(start, stop, step)), step),))


class Mask:
    """A conjunction of affine inequalities ``expression >= 0`` and of arrays of booleans.

    Scalar parts (which depend on loop counters only) are affine expressions without dimensions.
    """

    __array_ufunc__ = None
    __slots__ = ("constraints", "dense")

    def __init__(self, constraints: tuple[Affine, ...] = (), dense: tuple[BoolArray, ...] = ()) -> None:
        self.constraints = constraints
        self.dense = dense

    @staticmethod
    def at_least_zero(expression: Any) -> Mask:
        if isinstance(expression, Affine):
            return Mask((expression,))
        return Mask(dense=(np.asarray(expression) >= 0,))

    @staticmethod
    def of(value: Any) -> Mask | None:
        """Return a mask from what a kernel passes: None, a mask, a boolean or an array of booleans."""
        if value is None or isinstance(value, Mask):
            return value
        if isinstance(value, (bool, np.bool_)):
            return None if value else Mask((Affine(-1, ()),))
        return Mask(dense=(np.asarray(value, dtype=bool),))

    def __and__(self, other: Any) -> Mask:
        right = Mask.of(other)
        if right is None:
            return self
        return Mask(self.constraints + right.constraints, self.dense + right.dense)

    __rand__ = __and__

    def resolve(self, shape: Sequence[int]) -> tuple[tuple[tuple[int, int], ...], BoolArray | None]:
        """Return the box (half-open range per dimension) that holds every true position of an instruction of
        ``shape``, and an array of booleans over that box where the box alone says too much."""
        box = [(0, n) for n in shape]
        rest: list[BoolArray] = list(self.dense)
        for constraint in self.constraints:
            if constraint.slopes:
                if constraint.low >= 0 and at_least_zero(constraint.low, constraint.slopes):
                    continue
                only_now(constraint.slopes)
            varying = [d for d, (num, step) in enumerate(constraint.dims) if num > 1 and step != 0]
            if not varying:
                if constraint.offset < 0:
                    return tuple((0, 0) for _ in shape), None
            elif len(varying) == 1:
                step = constraint.dims[varying[0]][1]
                axis = len(shape) - len(constraint.dims) + varying[0]
                low, high = box[axis]
                if step < 0:
                    high = min(high, max(0, constraint.offset // -step + 1))
                else:
                    low = max(low, -(constraint.offset // step))
                box[axis] = (low, max(low, high))
            else:
                rest.append(constraint.array() >= 0)
        if not rest:
            return tuple(box), None
        whole = np.ones(tuple(shape), dtype=bool)
        for part in rest:
            whole &= part
        return tuple(box), whole[tuple(slice(low, high) for low, high in box)]
