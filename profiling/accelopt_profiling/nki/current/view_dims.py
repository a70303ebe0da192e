"""The dimensions of a view that sees the same elements in another shape."""

from __future__ import annotations

from collections.abc import Sequence

from accelopt_profiling.nki.data.index import Dim


def merge_dims(dims: Sequence[Dim]) -> Dim | None:
    """Return one dimension equal to several, if they lie in one row."""
    total, step, at = 1, 0, 1
    for num, stride in reversed(dims):
        if num == 1:
            continue
        if total == 1:
            step = stride
        elif stride != at:
            return None
        total *= num
        at = step * total
    return total, step


def reshape_dims(dims: Sequence[Dim], sizes: Sequence[int]) -> tuple[Dim, ...] | None:
    """``dims`` seen in the shape ``sizes`` (of as many elements), or None where that needs a copy."""
    rest: list[Dim] = []
    for num, step in dims:
        if rest and num != 1 and rest[-1][1] == num * step:
            rest[-1] = (rest[-1][0] * num, step)  # both in one row in memory
        elif num != 1:
            rest.append((num, step))
    result: list[Dim] = []
    for size in reversed(sizes):
        if size == 1 or not rest:
            result.insert(0, (size, 0))
            continue
        num, step = rest.pop()
        if num % size:
            return None
        result.insert(0, (size, step))
        if num > size:
            rest.append((num // size, step * size))
    return tuple(result)
