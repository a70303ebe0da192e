"""``nki.isa``: selects elements by a predicate, a range of positions, the largest of a partition, the nonzero."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import arithmetic, flat, matched, real
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.instruction import GPSIMD, VECTOR
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.instructions.accumulators import accumulate
from accelopt_profiling.nki.instructions.allocation import Allocation, allocated, cut
from accelopt_profiling.nki.instructions.operands import (
    into,
    on_chip,
    operator,
    per_partition,
    same_size,
    scalar_like,
)


def select_reduce(
    dst: Any, predicate: Any, on_true: Any, on_false: Any, reduce_res: Any, reduce_cmd: Any, reduce_op: Any,
    reverse_pred: bool,
) -> Any:  # fmt: skip
    """``on_true`` where the predicate is not zero, else ``on_false``; the maximum of the result on request."""
    machine = current()
    tile, chosen = on_chip(machine, on_true, "on_true"), on_chip(machine, predicate, "predicate")
    same_size(machine, on_chip(machine, dst, "dst"), tile, "on_true")
    same_size(machine, tile, chosen, "predicate")
    machine.rules.check_not_both_psum(tile, chosen, "select_reduce")
    other = scalar_like(machine, on_false, tile, "on_false")
    operands = [tile, chosen, other]
    result = into(machine, dst, "select", (VECTOR,), operands, _selected, reverse_pred, cost=tile)
    accumulate(machine, VECTOR, result, reduce_op, reduce_cmd, reduce_res)
    return result


def _selected(reverse: bool, x: Array, predicate: Array, other: Any) -> Array:
    x = real(x)
    return np.where((matched(predicate, x) != 0) != reverse, x, matched(other, x))


def range_select(
    dst: Any, on_true_tile: Any, comp_op0: Any, comp_op1: Any, bound0: Any, bound1: Any, reduce_cmd: Any,
    reduce_res: Any, reduce_op: Any, range_start: float, on_false_value: float,
) -> Any:  # fmt: skip
    """Select the elements whose position (from ``range_start``) passes both comparisons; the rest becomes the least
    float32."""
    machine = current()
    if on_false_value != float(np.finfo(np.float32).min) and on_false_value != -3.4028235e38:
        machine.fault(
            "unsupported", "range_select's on_false_value is the least float32, whatever is passed."
        )
    tile = on_chip(machine, on_true_tile, "on_true_tile")
    if machine.version and range_start + prod(tile.shape[1:]) > 1 << 24:
        machine.fault(
            "unsupported", "range_select compares positions in float32, which holds them up to 2^24."
        )
    same_size(machine, on_chip(machine, dst, "dst"), tile, "on_true_tile")
    low, high = scalar_like(machine, bound0, tile, "bound0"), scalar_like(machine, bound1, tile, "bound1")
    params = operator(machine, comp_op0), operator(machine, comp_op1), range_start
    result = into(machine, dst, "range_select", (VECTOR,), [tile, low, high], _in_range, *params, cost=tile)
    accumulate(machine, VECTOR, result, reduce_op, reduce_cmd, reduce_res)
    return result


def _in_range(first: str, second: str, start: float, x: Array, low: Any, high: Any) -> Array:
    values = flat(x)
    at = np.broadcast_to(np.float32(start) + np.arange(values.shape[1], dtype=np.float32), values.shape)
    above, below = arithmetic(first, at, matched(low, values)), arithmetic(second, at, matched(high, values))
    return np.where((above != 0) & (below != 0), values, np.finfo(np.float32).min)


def _eight(machine: Machine, tile: Tile | Allocation, what: str) -> None:
    if not isinstance(tile, Allocation) and prod(tile.shape[1:]) != 8:
        machine.fault(
            "out-of-bounds", f"{what} holds eight elements per partition; its shape is {tile.shape}."
        )


def _same_partitions(machine: Machine, *tiles: Tile | Allocation) -> None:
    shapes = [t.shape for t in tiles if isinstance(t, Tile)]
    if len({shape[0] for shape in shapes}) > 1:
        machine.fault("out-of-bounds", f"{', '.join(map(str, shapes))} differ in partitions.")


def _searched(machine: Machine, value: Any, what: str) -> Tile:
    tile: Tile = on_chip(machine, value, what)
    elements = prod(tile.shape[1:])
    if not 8 <= elements <= 16384:
        machine.fault(
            "capacity", f"{what} has {elements} elements per partition; 8 to 16,384 can be searched."
        )
    return tile


def _eight_columns(machine: Machine, dst: Any, tile: Tile, *others: Tile) -> list[Tile]:
    """Return the operands of an instruction that writes eight columns, inside of an allocated destination's mask."""
    box, tiles = cut(machine, dst, tile, *others)
    allocated(dst, (tile.shape[0], 8), None if box is None else (box[0], (0, 8)))
    return tiles


def max8(dst: Any, src: Any) -> Any:
    """Find the eight largest values of each partition, largest first."""
    machine = current()
    target = on_chip(machine, dst, "dst")
    _eight(machine, target, "dst")
    _same_partitions(machine, _searched(machine, src, "src"), target)
    (tile,) = _eight_columns(machine, dst, _searched(machine, src, "src"))
    return into(machine, dst, "max8", (VECTOR,), [tile], _largest, cost=tile)


def _largest(x: Array) -> Any:
    return -np.sort(-flat(x), axis=1)[:, :8]


#: The partitions that one core of GpSimdE is connected to.
_GPSIMD_PARTITIONS = 16


def nonzero_with_count(dst: Any, src: Any, index_offset: Any, padding_val: int) -> Any:
    """Write the positions of what is not zero, then padding, and the count last; in partitions 0, 16, 32, ... only."""
    machine = current()
    tile, target = on_chip(machine, src, "src"), on_chip(machine, dst, "dst")
    (rows, length), (lanes, places) = per_partition(machine, tile), per_partition(machine, target)
    if (lanes, places) != (rows, length + 1):
        machine.fault(
            "out-of-bounds",
            f"dst has one element a partition more than src: src is {tile.shape}, dst {target.shape}.",
        )
    if not target.block.coverage.holds(target.box()):  # the page's example copies all of dst
        machine.recorder.forbid_replay()
        machine.memory.poison(target.block)
    read, written = (t[0 : t.shape[0] : _GPSIMD_PARTITIONS] for t in (tile, target))
    operands = [read, index_offset]
    return into(machine, written, "nonzero_with_count", (GPSIMD,), operands, _nonzero, padding_val, cost=read)


def _nonzero(padding: int, x: Array, start: Any) -> Array:
    values = flat(x)
    out = np.full((len(values), values.shape[1] + 1), padding, np.float64)
    for row, numbers in enumerate(values):
        places = np.flatnonzero(numbers)
        out[row, : len(places)] = places + np.asarray(start).reshape(-1)[0]
        out[row, -1] = len(places)
    return out


#: What stands in the place of an index that there is none: all ones, in 16 bits too.
_NOWHERE = 0xFFFFFFFF


def _first_matches(data: Array, wanted: Array, columns: range) -> Array:
    """For each of the eight values of a partition, in the order of ``columns``, its first place in ``data`` not taken
    yet; -1: nowhere."""
    places = np.full(wanted.shape, -1, dtype=np.int64)
    taken = np.zeros(data.shape, dtype=bool)
    lanes = np.arange(len(data))
    for column in columns:
        same = (data == wanted[:, column : column + 1]) & ~taken
        hit = same.any(axis=1)
        at = same.argmax(axis=1)
        places[hit, column] = at[hit]
        taken[lanes[hit], at[hit]] = True
    return places


def nc_find_index8(dst: Any, data: Any, vals: Any) -> Any:
    """Find the positions of eight values in their partition of ``data``; equal ones get successive occurrences."""
    machine = current()
    tile, wanted = _searched(machine, data, "data"), on_chip(machine, vals, "vals")
    target = on_chip(machine, dst, "dst")
    _eight(machine, wanted, "vals")
    _eight(machine, target, "dst")
    _same_partitions(machine, tile, wanted, target)
    tile, wanted = _eight_columns(machine, dst, tile, wanted)
    if isinstance(dst, Allocation):
        dst.dtype = dst.dtype or np.dtype(np.uint32)
    return into(machine, dst, "nc_find_index8", (VECTOR,), [tile, wanted], _first_places, cost=tile)


def _first_places(x: Array, values: Array) -> Array:
    return _indices(_first_matches(flat(x), flat(values), range(8)))


def _indices(places: Array) -> Array:
    return np.where(places < 0, _NOWHERE, places).astype(np.uint32)


#: The order in which ``nc_match_replace8`` takes its values: of equal ones the last gets the first place.
_BACKWARDS = range(7, -1, -1)


def nc_match_replace8(dst: Any, data: Any, vals: Any, imm: float, dst_idx: Any) -> Any:
    """``data`` with the first occurrence of each of eight values replaced by ``imm``; their places on request."""
    machine = current()
    tile, wanted = _searched(machine, data, "data"), on_chip(machine, vals, "vals")
    _eight(machine, wanted, "vals")
    _same_partitions(machine, tile, wanted)
    target = on_chip(machine, dst, "dst")
    shape = tile.shape
    box, (tile, wanted) = cut(machine, dst, tile, wanted)
    if not allocated(dst, shape, box) and per_partition(machine, target) != per_partition(machine, tile):
        machine.fault("out-of-bounds", f"dst does not have the shape of data, {tile.shape}.")
    if dst_idx is not None:  # before dst, which may be data itself
        places = on_chip(machine, dst_idx, "dst_idx")
        _eight(machine, places, "dst_idx")
        _same_partitions(machine, tile, places)
        if box is not None:
            places = places.within((box[0], *((0, n) for n in places.shape[1:])))
        into(machine, places, "nc_find_index8", (VECTOR,), [tile, wanted], _matched_places)
    return into(
        machine, dst, "nc_match_replace8", (VECTOR,), [tile, wanted], _replaced, float(imm), cost=tile
    )


def _matched_places(x: Array, values: Array) -> Array:
    return _indices(_first_matches(flat(x), flat(values), _BACKWARDS))


def _replaced(number: float, x: Array, values: Array) -> Array:
    result: Array = flat(x).copy()
    places = _first_matches(result, flat(values), _BACKWARDS)
    lanes, columns = np.nonzero(places >= 0)
    result[lanes, places[lanes, columns]] = number
    return result


def topk(val_dst: Any, idx_dst: Any, src: Any, n: Any) -> Any:
    """Find the K largest of ``n`` values of each 16 partitions, smallest first, and their places, on GpSimdE.

    Element ``i`` lies in partition ``i % 16`` and column ``i // 16``; so do the K results, of which the page says only
    that they fill tiles of K columns. AWS's kernels read them like that (nki-lib, gpsimd_topk).
    """
    machine = current()
    tile, values, places = (
        on_chip(machine, v, w) for v, w in ((src, "src"), (val_dst, "val_dst"), (idx_dst, "idx_dst"))
    )
    (lanes, width), count = per_partition(machine, tile), int(n)
    most = prod(values.shape[1:])
    if values.shape != places.shape or values.shape[0] != lanes or lanes % _GPSIMD_PARTITIONS:
        machine.fault(
            "out-of-bounds",
            f"topk works on a multiple of 16 partitions, values and places in one shape; src is {tile.shape}, val_dst "
            f"{values.shape}, idx_dst {places.shape}.",
        )
    if not 8 <= count < 65536 or count > _GPSIMD_PARTITIONS * width or not 1 <= most < 32768 or most > count:
        machine.fault(
            "capacity",
            f"topk finds 1 to 32,767 of 8 to 65,535 values that src holds: {most} of {count} in {tile.shape}.",
        )
    columns = -(-most // _GPSIMD_PARTITIONS)
    head = (0, lanes), (0, columns)
    where, results = (GPSIMD,), [t.within(head) for t in (values, places)]
    into(machine, results[0], "topk", where, [tile], _snake_values, count, most, cost=tile)
    into(machine, results[1], "topk", where, [tile], _snake_places, count, most, cost=tile)
    machine.diagnostics.report(
        "contradiction",
        "topk's K results are written as a snake of each 16 partitions, as AWS's kernels read them; its page gives K "
        "columns to each partition.",
        "information",
    )


def _snakes(x: Array, count: int) -> Array:
    """Return the first ``count`` elements of each 16 partitions, in the order of their snake."""
    groups = flat(x).reshape(-1, _GPSIMD_PARTITIONS, x.size // len(x))
    snakes: Array = groups.transpose(0, 2, 1).reshape(len(groups), -1)[:, :count]
    return snakes


def _largest_places(x: Array, count: int, most: int) -> Array:
    return np.argsort(_snakes(x, count), axis=1, kind="stable")[:, -most:]


def _in_snake(results: Array) -> Array:
    """Return the columns of a tile that hold each row of ``results`` in the snake of its partitions, then zeros."""
    filled = np.pad(results, ((0, 0), (0, -results.shape[1] % _GPSIMD_PARTITIONS)))
    columns = filled.reshape(len(results), -1, _GPSIMD_PARTITIONS).transpose(0, 2, 1)
    tile: Array = columns.reshape(-1, columns.shape[-1])
    return tile


def _snake_values(count: int, most: int, x: Array) -> Array:
    return _in_snake(np.take_along_axis(_snakes(x, count), _largest_places(x, count, most), axis=1))


def _snake_places(count: int, most: int, x: Array) -> Array:
    return _in_snake(_largest_places(x, count, most).astype(np.uint32))
