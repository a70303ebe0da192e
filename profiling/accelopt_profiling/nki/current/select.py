"""``nki.isa``: selects elements by a predicate, a range of positions, the largest of a partition, the nonzero."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.current.operands import (
    into,
    matched,
    on_chip,
    operator,
    per_partition,
    real,
    same_size,
    scalar_like,
)
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.instruction import GPSIMD, VECTOR
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.accumulators import accumulate


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

    def compute(x: Array, p: Array, y: Any) -> Any:
        x = real(x)
        return np.where((matched(p, x) != 0) != reverse_pred, x, matched(y, x))

    result = into(machine, dst, "select", (VECTOR,), [tile, chosen, other], compute, cost=tile)
    accumulate(machine, VECTOR, result, reduce_op, reduce_cmd, reduce_res)
    return result


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
    same_size(machine, on_chip(machine, dst, "dst"), tile, "on_true_tile")
    low, high = scalar_like(machine, bound0, tile, "bound0"), scalar_like(machine, bound1, tile, "bound1")
    first, second = operator(machine, comp_op0), operator(machine, comp_op1)

    def compute(x: Array, a: Any, b: Any) -> Any:
        flat = real(x).reshape(x.shape[0], -1)
        at = np.broadcast_to(np.float32(range_start) + np.arange(flat.shape[1], dtype=np.float32), flat.shape)
        inside = (first(at, matched(a, flat)) != 0) & (second(at, matched(b, flat)) != 0)
        return np.where(inside, flat, np.finfo(np.float32).min)

    result = into(machine, dst, "range_select", (VECTOR,), [tile, low, high], compute, cost=tile)
    accumulate(machine, VECTOR, result, reduce_op, reduce_cmd, reduce_res)
    return result


def _eight(machine: Machine, tile: Tile, what: str) -> None:
    if prod(tile.shape[1:]) != 8:
        machine.fault(
            "out-of-bounds", f"{what} holds eight elements per partition; its shape is {tile.shape}."
        )


def _searched(machine: Machine, value: Any, what: str) -> Tile:
    tile: Tile = on_chip(machine, value, what)
    elements = prod(tile.shape[1:])
    if not 8 <= elements <= 16384:
        machine.fault(
            "capacity", f"{what} has {elements} elements per partition; 8 to 16,384 can be searched."
        )
    return tile


def max8(dst: Any, src: Any) -> Any:
    """Find the eight largest values of each partition, largest first."""
    machine = current()
    tile = _searched(machine, src, "src")
    _eight(machine, on_chip(machine, dst, "dst"), "dst")

    def compute(x: Array) -> Any:
        flat = real(x).reshape(x.shape[0], -1)
        return -np.sort(-flat, axis=1)[:, :8]

    return into(machine, dst, "max8", (VECTOR,), [tile], compute, cost=tile)


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
    read, written = (t[0 : t.shape[0] : _GPSIMD_PARTITIONS] for t in (tile, target))

    def compute(x: Array, start: Any) -> Any:
        flat = real(x).reshape(x.shape[0], -1)
        out = np.full((len(flat), length + 1), padding_val, np.float64)
        for row, values in enumerate(flat):
            found = np.flatnonzero(values)
            out[row, : len(found)] = found + np.asarray(start).reshape(-1)[0]
            out[row, -1] = len(found)
        return out

    return into(machine, written, "nonzero_with_count", (GPSIMD,), [read, index_offset], compute, cost=read)


def _first_matches(data: Array, wanted: Array) -> Array:
    """For each of the eight values of a partition, in turn, its first place in ``data`` not taken yet; -1: nowhere."""
    places = np.full(wanted.shape, -1, dtype=np.int64)
    taken = np.zeros(data.shape, dtype=bool)
    lanes = np.arange(len(data))
    for column in range(wanted.shape[1]):
        same = (data == wanted[:, column : column + 1]) & ~taken
        hit = same.any(axis=1)
        at = same.argmax(axis=1)
        places[hit, column] = at[hit]
        taken[lanes[hit], at[hit]] = True
    return places


def nc_find_index8(dst: Any, data: Any, vals: Any) -> Any:
    """Find the position of the first occurrence of each of eight values in its partition of ``data``."""
    machine = current()
    tile, wanted = _searched(machine, data, "data"), on_chip(machine, vals, "vals")
    _eight(machine, wanted, "vals")
    _eight(machine, on_chip(machine, dst, "dst"), "dst")

    def compute(x: Array, v: Array) -> Any:
        flat, eight = real(x).reshape(x.shape[0], -1), real(v).reshape(v.shape[0], -1)
        places = [(flat == eight[:, c : c + 1]).argmax(axis=1) for c in range(8)]
        return np.stack(places, axis=1)

    return into(machine, dst, "nc_find_index8", (VECTOR,), [tile, wanted], compute, cost=tile)


def nc_match_replace8(dst: Any, data: Any, vals: Any, imm: float, dst_idx: Any) -> Any:
    """``data`` with the first occurrence of each of eight values replaced by ``imm``; their places on request."""
    machine = current()
    tile, wanted = _searched(machine, data, "data"), on_chip(machine, vals, "vals")
    _eight(machine, wanted, "vals")
    if per_partition(machine, on_chip(machine, dst, "dst")) != per_partition(machine, tile):
        machine.fault("out-of-bounds", f"dst does not have the shape of data, {tile.shape}.")

    def matches(x: Array, v: Array) -> Any:
        return _first_matches(real(x).reshape(x.shape[0], -1), real(v).reshape(v.shape[0], -1))

    def compute(x: Array, v: Array) -> Any:
        places = matches(x, v)
        result = real(x).reshape(x.shape[0], -1).copy()
        lanes, columns = np.nonzero(places >= 0)
        result[lanes, places[lanes, columns]] = imm
        return result

    if dst_idx is not None:  # before dst, which may be data itself
        _eight(machine, on_chip(machine, dst_idx, "dst_idx"), "dst_idx")
        into(
            machine,
            dst_idx,
            "nc_find_index8",
            (VECTOR,),
            [tile, wanted],
            lambda x, v: np.maximum(matches(x, v), 0),
        )
    return into(machine, dst, "nc_match_replace8", (VECTOR,), [tile, wanted], compute, cost=tile)
