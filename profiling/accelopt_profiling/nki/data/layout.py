"""Computes strides of blocks, and the box of a block that a strided view touches."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.index import Dim


@lru_cache(maxsize=8192)
def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


@lru_cache(maxsize=8192)
def sizes(dims: tuple[Dim, ...]) -> tuple[int, ...]:
    """Return the shape of a view."""
    return tuple([num for num, _ in dims])


@lru_cache(maxsize=4096)
def contiguous(shape: tuple[int, ...]) -> tuple[Dim, ...]:
    """Return the dimensions of a view of a whole block of ``shape``."""
    return tuple(zip(shape, _strides(shape), strict=True))


@lru_cache(maxsize=16384)
def bounding_box(offset: int, dims: tuple[Dim, ...], shape: tuple[int, ...]) -> tuple[Box, bool]:
    """Return the box of a block of ``shape`` that a strided view touches, and whether the view touches all of
    it."""
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
