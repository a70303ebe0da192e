"""``nki.isa``: the eight largest values of a partition, where they are, and putting something else there."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.current.operands import into, on_chip, per_partition, real
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.instruction import VECTOR
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile


def _eight(machine: Machine, tile: Tile, what: str) -> None:
    if prod(tile.shape[1:]) != 8:
        machine.fault(
            "out-of-bounds", f"{what} holds eight elements per partition; its shape is {tile.shape}."
        )


def _searched(machine: Machine, value: Any, what: str) -> Tile:
    tile = on_chip(machine, value, what)
    elements = prod(tile.shape[1:])
    if not 8 <= elements <= 16384:
        machine.fault(
            "capacity", f"{what} has {elements} elements per partition; 8 to 16,384 can be searched."
        )
    return tile


def max8(dst: Any, src: Any, name: str | None = None) -> None:
    """The eight largest values of each partition, largest first."""
    machine = current()
    tile = _searched(machine, src, "src")
    _eight(machine, on_chip(machine, dst, "dst"), "dst")

    def compute(x: Array) -> Any:
        flat = real(x).reshape(x.shape[0], -1)
        return -np.sort(-flat, axis=1)[:, :8]

    into(machine, dst, "max8", (VECTOR,), [tile], compute, cost=tile)


def _first_matches(data: Array, wanted: Array) -> Array:
    """For each of the eight values of a partition, in turn, its first place in ``data`` not taken yet; -1: nowhere."""
    found = np.full(wanted.shape, -1, dtype=np.int64)
    taken = np.zeros(data.shape, dtype=bool)
    lanes = np.arange(len(data))
    for column in range(wanted.shape[1]):
        same = (data == wanted[:, column : column + 1]) & ~taken
        hit = same.any(axis=1)
        at = same.argmax(axis=1)
        found[hit, column] = at[hit]
        taken[lanes[hit], at[hit]] = True
    return found


def nc_find_index8(dst: Any, data: Any, vals: Any, name: str | None = None) -> None:
    """Where each of eight values first occurs in its partition of ``data``."""
    machine = current()
    tile, wanted = _searched(machine, data, "data"), on_chip(machine, vals, "vals")
    _eight(machine, wanted, "vals")
    _eight(machine, on_chip(machine, dst, "dst"), "dst")

    def compute(x: Array, v: Array) -> Any:
        flat, eight = real(x).reshape(x.shape[0], -1), real(v).reshape(v.shape[0], -1)
        places = [(flat == eight[:, c : c + 1]).argmax(axis=1) for c in range(8)]
        return np.stack(places, axis=1)

    into(machine, dst, "nc_find_index8", (VECTOR,), [tile, wanted], compute, cost=tile)


def nc_match_replace8(
    dst: Any, data: Any, vals: Any, imm: float, dst_idx: Any = None, name: str | None = None
) -> None:
    """``data`` with the first occurrence of each of eight values replaced by ``imm``; their places on request."""
    machine = current()
    tile, wanted = _searched(machine, data, "data"), on_chip(machine, vals, "vals")
    _eight(machine, wanted, "vals")
    if per_partition(machine, on_chip(machine, dst, "dst")) != per_partition(machine, tile):
        machine.fault("out-of-bounds", f"dst does not have the shape of data, {tile.shape}.")

    def matches(x: Array, v: Array) -> Any:
        return _first_matches(real(x).reshape(x.shape[0], -1), real(v).reshape(v.shape[0], -1))

    def compute(x: Array, v: Array) -> Any:
        found = matches(x, v)
        result = real(x).reshape(x.shape[0], -1).copy()
        lanes, columns = np.nonzero(found >= 0)
        result[lanes, found[lanes, columns]] = imm
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
    into(machine, dst, "nc_match_replace8", (VECTOR,), [tile, wanted], compute, cost=tile)
