"""``nki.isa``: moving data between the on-chip memories, and numbers in a pattern."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import arithmetic, copy_values, matched
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.coverage import Box
from accelopt_profiling.nki.data.index import Mask
from accelopt_profiling.nki.data.instruction import GPSIMD, SCALAR, VECTOR
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.instructions.allocation import Allocation, allocated, cut
from accelopt_profiling.nki.instructions.operands import (
    data_type,
    engines,
    into,
    on_chip,
    operator,
    same_size,
)


def tensor_copy(dst: Any, src: Any, engine: Any, dtype: Any) -> Any:
    """Copy within SBUF and PSUM. ``dtype`` is left from Beta 1, where it made the result's: it may repeat ``dst``'s."""
    machine = current()
    tile, target = on_chip(machine, src, "src"), on_chip(machine, dst, "dst")
    if dtype is not None:
        if data_type(dtype) != target.dtype:
            machine.fault(
                "unsupported",
                f"tensor_copy takes no dtype: it copies into dst, which is {target.dtype.name}.",
            )
        machine.diagnostics.report(
            "deprecated", "tensor_copy takes no dtype any more; that of dst decides.", "information"
        )
    same_size(machine, target, tile, "src")
    no_scalar = machine.version and machine.limits.generation < 3  # its page: use activation there
    where = engines(machine, engine, (VECTOR,) if no_scalar else (VECTOR, SCALAR), (GPSIMD,))
    if where == (GPSIMD,) and "columns" in (tile.addressing, target.addressing):
        machine.fault("unsupported", "tensor_copy by index runs on VectorE or ScalarE, not on GpSimdE.")
    return into(machine, dst, "tensor_copy", where, [tile], copy_values, cost=tile)


def tensor_copy_predicated(dst: Any, src: Any, predicate: Any, reverse_pred: bool) -> Any:
    """Copy ``src`` (a tile or a number) where ``predicate`` is not zero; ``dst`` keeps the rest."""
    machine = current()
    target, chosen = on_chip(machine, dst, "dst"), on_chip(machine, predicate, "predicate")
    same_size(machine, target, chosen, "predicate")
    source = src
    if isinstance(src, Tile):
        source = on_chip(machine, src, "src")
        same_size(machine, target, source, "src")

    operands = [chosen, source, target]
    return into(
        machine, dst, "tensor_copy_predicated", (VECTOR,), operands, _predicated, reverse_pred, cost=target
    )


def _predicated(reverse: bool, predicate: Array, x: Any, old: Array) -> Array:
    return np.where((matched(predicate, old) != 0) != reverse, matched(x, old), old)


def nc_stream_shuffle(dst: Any, src: Any, shuffle_mask: Any) -> Any:
    """Move partitions within each group of 32: partition i takes ``shuffle_mask[i]``; 255 leaves it alone."""
    machine = current()
    tile, target = on_chip(machine, src, "src"), on_chip(machine, dst, "dst")
    mask = [int(m) for m in shuffle_mask]
    if len(mask) != 32 or any(m != 255 and not 0 <= m < 32 for m in mask):
        machine.fault("out-of-bounds", "shuffle_mask holds 32 numbers from 0 to 31, or 255.")
    if prod(tile.shape[1:]) != prod(target.shape[1:]):
        machine.fault(
            "out-of-bounds", f"src {tile.shape} and dst {target.shape} differ in elements per partition."
        )
    if tile.dtype != target.dtype:
        machine.fault(
            "unsupported", f"nc_stream_shuffle keeps the type: src is {tile.dtype}, dst {target.dtype}."
        )
    if machine.version:
        _check_quadrants(machine, tile, target)
    rows = target.shape[0]
    places = [at for at in range(rows) if mask[at % 32] != 255]
    sources = [at // 32 * 32 + mask[at % 32] for at in places]
    beyond = [at for at in sources if at >= tile.shape[0]]
    if beyond:
        machine.fault("out-of-bounds", f"shuffle_mask reads partition {beyond[0]}; src has {tile.shape[0]}.")
    operands = [tile, target] if len(sources) < rows else [tile]
    return into(
        machine,
        dst,
        "nc_stream_shuffle",
        (VECTOR,),
        operands,
        _shuffled,
        rows,
        tuple(places),
        tuple(sources),
        cost=tile,
    )


def _check_quadrants(machine: Machine, *tiles: Tile) -> None:
    """Check that the partitions of both tiles begin where as many quadrants of 32 may."""
    active = -(-max(t.shape[0] for t in tiles) // 32) * 32
    starts = {32: (0, 32, 64, 96), 64: (0, 64)}.get(active, (0,))
    for tile in tiles:
        start = tile.box()[0][0]
        if start not in starts:
            machine.fault(
                "unsupported",
                f"nc_stream_shuffle of {active} partitions begins at partition {' or '.join(map(str, starts))}, not "
                f"{start}.",
            )


def _shuffled(
    rows: int, places: tuple[int, ...], sources: tuple[int, ...], x: Array, old: Array | None = None
) -> Array:
    x = x.reshape(x.shape[0], -1)
    result = np.empty((rows, x.shape[1]), x.dtype) if old is None else old.reshape(rows, -1).copy()
    result[list(places)] = x[list(sources)]
    return result


#: A regular pattern: its first number, by how much one partition is more than the one before, and [step, number] of
#: each free dimension.
Pattern = tuple[int, int, tuple[tuple[int, int], ...]]


def _pattern(machine: Machine, dst: Tile, pairs: Any, offset: Any, multiplier: Any) -> Pattern:
    if len(pairs) > 4 or any(n % 1 for pair in pairs for n in pair):
        machine.fault(
            "unsupported", f"A pattern has at most four dimensions of whole steps and sizes, not {pairs}."
        )
    pattern = tuple([(int(step), int(num)) for step, num in pairs])
    if prod(num for _, num in pattern) != prod(dst.shape[1:]):
        machine.fault(
            "out-of-bounds",
            f"The pattern {list(pattern)} has not as many elements as a partition of {dst.shape}.",
        )
    number = int(getattr(offset, "value", offset) or 0)  # that of a register; None without values
    if not all(-(1 << 31) <= n < 1 << 31 for n in (number, multiplier)):
        machine.fault(
            "unsupported", f"offset and channel_multiplier are int32, not {number} and {multiplier}."
        )
    return number, int(multiplier), pattern


def _numbers(shape: tuple[int, ...], pattern: Pattern) -> Array:
    """Return ``offset + partition * multiplier + sum(step * i)`` for every element of a tile of ``shape``."""
    offset, multiplier, pairs = pattern
    values = np.zeros([num for _, num in pairs], dtype=np.int64)
    for axis, (step, num) in enumerate(pairs):
        values += (np.arange(num) * step).reshape([-1 if axis == d else 1 for d in range(len(pairs))])
    lanes = np.arange(shape[0]) * multiplier + offset
    whole: Array = (lanes[:, None] + values.reshape(1, -1)).reshape(shape)
    return whole.astype(np.int32)  # which wraps, as GpSimdE's 32 bits do


#: An array as a plain value: its type, its shape and its bytes.
_Stored = tuple[str, tuple[int, ...], bytes]


def _stored(values: Any) -> _Stored:
    array = np.asarray(values)
    return array.dtype.str, array.shape, array.tobytes()


def _restored(stored: _Stored) -> Array:
    kind, shape, data = stored
    return np.frombuffer(data, kind).reshape(shape)


def iota(
    dst: Any, pattern: Any = None, offset: Any = 0, channel_multiplier: Any = 0, expr: Any = None
) -> Any:
    """Write numbers in a regular pattern, in Beta 1 those of an index ``expr``, made on GpSimdE."""
    machine = current()
    if isinstance(dst, Allocation):
        values = np.asarray(expr)
        allocated(dst, values.shape)
        return into(machine, dst, "iota", (GPSIMD,), [], _restored, _stored(values))
    target = on_chip(machine, dst, "dst")
    numbers = _pattern(machine, target, pattern, offset, channel_multiplier)
    return into(machine, dst, "iota", (GPSIMD,), [], _numbers, target.shape, numbers)


def affine_select(
    dst: Any, on_true_tile: Any, on_false_value: Any, pattern: Any = (), channel_multiplier: Any = 0,
    cmp_op: Any = None, offset: Any = 0, pred: Any = None,
) -> Any:  # fmt: skip
    """``on_true_tile`` where the pattern's number compares with 0 as ``cmp_op`` says, else a number; on GpSimdE.

    Beta 1 has a predicate on indices in the place of the pattern.
    """
    machine = current()
    target, tile = on_chip(machine, dst, "dst"), on_chip(machine, on_true_tile, "on_true_tile")
    run = machine, dst, "affine_select", (GPSIMD,)
    if isinstance(dst, Allocation):
        chosen = _truth(pred, tile.shape)
        box, (part,) = cut(machine, dst, tile)
        allocated(dst, tile.shape, box)
        inside = _stored(chosen if box is None else chosen[_slices(box)])
        return into(*run, [part], _selected, inside, on_false_value, cost=tile)
    same_size(machine, target, tile, "on_true_tile")
    numbers = _pattern(machine, target, pattern, offset, channel_multiplier)
    compared = operator(machine, cmp_op), target.shape, numbers
    return into(*run, [tile], _compared_select, *compared, on_false_value, cost=tile)


def _truth(predicate: Any, shape: tuple[int, ...]) -> Array:
    mask = Mask.of(predicate)
    if mask is None:
        return np.ones(shape, dtype=bool)
    box, inside = mask.resolve(shape)
    chosen = np.zeros(shape, dtype=bool)
    chosen[_slices(box)] = True if inside is None else inside
    return chosen


def _slices(box: Box) -> tuple[slice, ...]:
    return tuple(slice(low, high) for low, high in box)


def _selected(chosen: _Stored, other: Any, x: Array) -> Array:
    return np.where(_restored(chosen), x, x.dtype.type(other))


def _compared_select(op: str, shape: tuple[int, ...], pattern: Pattern, other: Any, x: Array) -> Array:
    chosen = arithmetic(op, _numbers(shape, pattern), np.float32(0)) != 0
    return np.where(chosen, x.reshape(shape), np.float32(other))
