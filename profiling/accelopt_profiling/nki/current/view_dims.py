"""The dimensions of a view that sees the same elements in another shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from accelopt_profiling.nki.data.index import Dim

#: A dimension by its name, or several that are one.
Names = str | Sequence[str]


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


def rearranged(
    dims: Sequence[Dim], source: Sequence[Names], target: Sequence[Names], given: Mapping[str, int]
) -> tuple[Dim, ...]:
    """Return dimensions split, reordered and merged by name, in einops' way; ``given`` are sizes that are known.

    Raises:
        ValueError: the names or sizes do not fit, or what is merged does not lie in one row.
    """
    sizes = dict(given)
    named: dict[str, Dim] = {}
    if len(source) != len(dims):
        raise ValueError(f"{source} names {len(source)} dimensions; the tensor has {len(dims)}.")
    for entry, (num, step) in zip(source, dims, strict=True):
        group = _names(entry)
        known = prod(sizes[n] for n in group if n in sizes)
        for name in group:
            sizes.setdefault(name, num // max(1, known))
        if prod(sizes[n] for n in group) != num:
            raise ValueError(f"A dimension of size {num} cannot be split into {group}.")
        for name in reversed(group):
            named[name] = (sizes[name], step)
            step *= sizes[name]
    if sorted(n for entry in target for n in _names(entry)) != sorted(named):
        raise ValueError(f"{target} has other names than {source}.")
    result: list[Dim] = []
    for entry in target:
        joined = merge_dims([named[n] for n in _names(entry)])
        if joined is None:
            raise ValueError(f"{entry} does not lie in one row in memory.")
        result.append(joined)
    return tuple(result)


def _names(entry: Names) -> tuple[str, ...]:
    return (entry,) if isinstance(entry, str) else tuple(entry)
