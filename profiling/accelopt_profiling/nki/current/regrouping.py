"""The dimensions of a strided view merged, or seen in another shape, without a copy."""

from __future__ import annotations

from collections.abc import Sequence

from accelopt_profiling.nki.data.index import Dim


def merged(dims: Sequence[Dim]) -> Dim | None:
    """One dimension equal to several, if they lie in one row."""
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


def regrouped(dims: Sequence[Dim], sizes: Sequence[int]) -> tuple[Dim, ...] | None:
    """``dims`` seen in the shape ``sizes`` (of as many elements), or None where that needs a copy."""
    rest = [d for d in dims if d[0] != 1]
    result: list[Dim] = []
    for size in reversed(sizes):
        if size == 1 or not rest:
            result.insert(0, (size, 0))
            continue
        num, step = rest.pop()
        while num < size and rest:
            outer, stride = rest[-1]
            if stride != num * step:
                return None
            rest.pop()
            num *= outer
        if num % size:
            return None
        result.insert(0, (size, step))
        if num > size:
            rest.append((num // size, step * size))
    return tuple(result)
