"""Turns ``tile[key]`` into a strided view: integers, slices and affine indices together give one access pattern."""

from __future__ import annotations

from operator import index as as_int
from typing import Any

import numpy as np

from accelopt_profiling.nki.data.index import Affine, Dim, IntArray, merged
from accelopt_profiling.nki.data.loop_counter import LoopCounter, Slopes, only_now, plus, stays_inside, times
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.tile import Tile


def select(tile: Tile, key: Any) -> Tile:
    """Return the view ``tile[key]``. Lazy: nothing is read. Indices out of range are kept for a mask to make
    legal; a ``range`` stands for its positions, as AWS's nkipy uses ``nl.affine_range``.

    Raises:
        KernelFaultError: the index has too many entries, or is of a kind the dialect does not have.
    """
    if key is Ellipsis:
        return tile
    entries = tuple(key) if isinstance(key, tuple) else (key,)
    entries = tuple(slice(e.start, e.stop, e.step) if type(e) is range else e for e in entries)
    if len(tile.dims) == 1 and not tile.machine.version and _is_column(tile, entries):
        tile = tile.strided(tile.offset, (*tile.dims, (1, 0)))
    signature = None if tile.positions is not None else _signature(tile.dims, entries)
    if signature is None:
        return _select(tile, list(entries))
    known = _known.get(signature)
    if known is not None:
        view = tile.strided(tile.offset + known[0], known[1])
        if known[2]:
            view.out_of_range = known[2]
        return view
    view = _select(tile, list(entries))
    if len(_known) > _MANY:
        _known.clear()
    _known[signature] = (view.offset - tile.offset, view.dims, view.out_of_range)
    return view


def _is_column(tile: Tile, entries: tuple[Any, ...]) -> bool:
    """Return whether a vector over partitions, such as ``t[:, i]``, is indexed as a tile of one column."""
    used = sum(1 for entry in entries if entry is not None and entry is not Ellipsis)
    on_chip = tile.block.info.memory is not MemorySpace.HBM
    return used == 2 and on_chip and tile.positions is None


#: Results of selections: dimensions and indices -> offset, dimensions, and indices that may be out of range. Kernels
#: use the same few indices thousands of times.
_known: dict[Any, tuple[int, tuple[Dim, ...], list[tuple[int, Affine]]]] = {}
_MANY = 50_000


def _signature(dims: tuple[Dim, ...], entries: tuple[Any, ...]) -> Any:
    """Return a key of everything that a selection depends on; None for indices that are not plain."""
    parts: list[Any] = [dims]
    for entry in entries:
        kind = type(entry)
        if kind is Affine and not entry.slopes:
            parts.append(entry.offset)
            parts.append(entry.dims)
        elif kind is int or entry is None or entry is Ellipsis:
            parts.append(entry)
        elif kind is slice:
            start, stop, step = entry.start, entry.stop, entry.step
            if (
                (type(start) is int or start is None)
                and (type(stop) is int or stop is None)
                and (type(step) is int or step is None)
            ):
                parts.append((start, stop, step))
            else:
                return None
        else:
            return None
    return tuple(parts)


def _select(tile: Tile, entries: list[Any]) -> Tile:
    machine = tile.machine
    if tile.positions is not None:
        machine.fault(
            "unsupported", "A gathered view cannot be indexed again; use its indices on the tensor itself."
        )
    entries = _complete(tile, entries)
    read = [isinstance(entry, Tile) for entry in entries]
    if any(read):
        entries = [_read_index(entry) if isinstance(entry, Tile) else entry for entry in entries]
    dims = tile.dims
    offset = tile.offset
    basic: list[tuple[int, Dim]] = []  # where in the result, and the dimension
    advanced: list[tuple[Affine | IntArray, int, int]] = []  # index, step in elements, axis
    first_advanced = -1
    shape_of: tuple[Dim, ...] = ()
    out_of_range: list[tuple[int, Affine]] = []
    slopes: Slopes = ()
    axis = 0
    for entry in entries:
        if entry is None:
            basic.append((len(basic), (1, 0)))
            continue
        num, step = dims[axis]
        if isinstance(entry, slice):
            start, count, stride, growing = _slice(tile, entry, num, axis)
            offset += start * step
            if growing:
                slopes = plus(slopes, times(growing, step))
            basic.append((len(basic), (count, step * stride)))
        elif isinstance(entry, Affine):
            if entry.low < 0 or entry.high >= num:
                out_of_range.append((num, entry))
                only_now(entry.slopes)
            elif entry.slopes:
                stays_inside(entry.low, entry.high, num, entry.slopes)
                slopes = plus(slopes, times(entry.slopes, step))
            offset += entry.offset * step
            shape_of = merged(shape_of, entry.dims) if shape_of else entry.dims
            if first_advanced < 0:
                first_advanced = len(basic)
            advanced.append((entry, step, axis))
        elif isinstance(entry, np.ndarray) and entry.ndim > 0:
            if first_advanced < 0:
                first_advanced = len(basic)
            advanced.append((entry, step, axis))
        else:
            position, growing = _counted(tile, entry, axis)
            if position < 0:
                only_now(growing)
                position, growing = position + num, ()
            if not 0 <= position < num:
                machine.fault("out-of-bounds", f"Index {entry} is outside dimension {axis} of size {num}.")
            if growing:
                stays_inside(position, position, num, growing)
                slopes = plus(slopes, times(growing, step))
            offset += position * step
        axis += 1
    if any(isinstance(index, np.ndarray) for index, _, _ in advanced):
        only_now(slopes)
        return _gather(tile, offset, advanced, basic, unchecked=read.index(True) if any(read) else -1)
    if advanced:
        steps = [0] * len(shape_of)
        for index, step, _ in advanced:
            assert isinstance(index, Affine)
            for d, (n, s) in enumerate(index.dims, len(shape_of) - len(index.dims)):
                if n > 1:
                    steps[d] += s * step
        result = tuple((n, s) for (n, _), s in zip(shape_of, steps, strict=True))
        plain = [dim for _, dim in basic]
        view = tile.strided(offset, (*plain[:first_advanced], *result, *plain[first_advanced:]))
    else:
        view = tile.strided(offset, tuple(dim for _, dim in basic))
    view.out_of_range = out_of_range
    if slopes:
        view.grow(slopes)
    return view


def _column(entries: list[Any]) -> list[Any]:
    """Return the indices of a tile of one dimension on the chip, where it may also be indexed as the column it lies in:
    ``column[:, 0:1]`` of ``column = tile[:, 3]``.
    """
    if len(entries) != 2 or any(e is None or e is Ellipsis for e in entries):
        return entries
    first, last = entries
    if isinstance(last, slice) and last in (slice(None), slice(0, 1), slice(None, 1)):
        return [first, None]
    return [first] if type(last) is int and last == 0 else entries


def _complete(tile: Tile, entries: list[Any]) -> list[Any]:
    rank = len(tile.dims)
    if rank == 1 and tile.block.info.memory is not MemorySpace.HBM:
        entries = _column(entries)
    used = sum(1 for e in entries if e is not None and e is not Ellipsis)
    if used > rank:
        tile.machine.fault(
            "out-of-bounds", f"{used} indices for a tensor of {rank} dimensions, shape {tile.shape}."
        )
    missing = [slice(None)] * (rank - used)
    for at, entry in enumerate(entries):
        if entry is Ellipsis:
            return [*entries[:at], *missing, *entries[at + 1 :]]
    return [*entries, *missing]


def _slice(tile: Tile, entry: slice, num: int, axis: int) -> tuple[int, int, int, Slopes]:
    start, growing = (0, ()) if entry.start is None else _counted(tile, entry.start, axis)
    stop, end_growing = (num, ()) if entry.stop is None else _counted(tile, entry.stop, axis)
    stride = 1 if entry.step is None else _integer(tile, entry.step, axis)
    if growing != end_growing or start < 0 or stop < 0:
        only_now(growing)
        only_now(end_growing)
        growing = ()
    if start < 0:
        start += num
    if stop < 0:
        stop += num
    if stride < 1:
        tile.machine.fault(
            "unsupported", f"A slice step of {stride} on dimension {axis}; steps are positive."
        )
    if start < 0 or stop > num:
        message = f"The slice {start}:{stop} leaves dimension {axis} of size {num}."
        tile.machine.fault("out-of-bounds", message)
    if growing:
        stays_inside(start, stop - 1, num, growing)
    return start, max(0, -(-(stop - start) // stride)), stride, growing


def _counted(tile: Tile, value: Any, axis: int) -> tuple[int, Slopes]:
    """Return an integer, and how it grows with loops."""
    if isinstance(value, LoopCounter) or (isinstance(value, Affine) and all(n == 1 for n, _ in value.dims)):
        return (value.value if isinstance(value, LoopCounter) else value.offset), value.slopes
    return _integer(tile, value, axis), ()


def _integer(tile: Tile, value: Any, axis: int) -> int:
    if isinstance(value, Affine) and all(n == 1 for n, _ in value.dims):
        only_now(value.slopes)
        return value.offset
    try:
        return as_int(value)
    except TypeError:
        kind = type(value).__name__
        message = f"Dimension {axis} is indexed with a {kind}; use integers, slices, nl.arange or nl.mgrid."
        return tile.machine.fault("unsupported", message)


def _read_index(index: Tile) -> IntArray:
    """Return the positions that a tile of the kernel holds now; zeros while there are no values."""
    values = index.machine.index_values(index)
    return np.zeros(index.shape, np.int64) if values is None else values.astype(np.int64)


def _gather(
    tile: Tile,
    offset: int,
    advanced: list[tuple[Affine | IntArray, int, int]],
    basic: list[tuple[int, Dim]],
    unchecked: int = -1,
) -> Tile:
    """``unchecked`` is the dimension whose positions the transfer checks: it may leave out those beyond the end."""
    machine = tile.machine
    if any(num != 1 for _, (num, _) in basic):
        machine.fault(
            "unsupported",
            "Irregular indices and slices cannot be mixed; index every dimension with nl.arange.",
        )
    rank = max(np.ndim(index) for index, _, _ in advanced)
    total: Any = np.int64(offset - sum(i.offset * step for i, step, _ in advanced if isinstance(i, Affine)))
    for index, step, axis in advanced:
        positions = np.asarray(index)
        if isinstance(index, np.ndarray):  # a tile of the kernel: its partitions come first
            positions = positions.reshape(*positions.shape, *[1] * (rank - positions.ndim))
        num = tile.dims[axis][0]
        beyond = positions.size and (positions.min() < 0 or positions.max() >= num)
        if beyond and axis != unchecked:
            machine.fault(
                "out-of-bounds", f"An index reaches {positions.max()}; dimension {axis} has size {num}."
            )
        total = total + positions * step
    view = tile.strided(0, ())
    view.positions = np.asarray(total, dtype=np.int64)
    return view
