"""``nki.isa``: choosing between elements, with a reduction on the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.nki.current.accumulators import reduce_into_registers
from accelopt_profiling.nki.current.enums import ReduceCmd
from accelopt_profiling.nki.current.operands import (
    into,
    matched,
    on_chip,
    operator,
    real,
    same_size,
    scalar_like,
)  # fmt: skip
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.instruction import VECTOR
from accelopt_profiling.nki.emulator.machine import current


def select_reduce(
    dst: Any, predicate: Any, on_true: Any, on_false: Any, reduce_res: Any = None, reduce_cmd: Any = ReduceCmd.idle,
    reduce_op: Any = "max", reverse_pred: bool = False, name: str | None = None,
) -> None:  # fmt: skip
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
    reduce_into_registers(machine, VECTOR, result, dst, reduce_op, reduce_res, reduce_cmd, None)


def range_select(
    dst: Any, on_true_tile: Any, comp_op0: Any, comp_op1: Any, bound0: Any, bound1: Any,
    reduce_cmd: Any = ReduceCmd.reset_reduce, reduce_res: Any = None, reduce_op: Any = "max", range_start: float = 0.0,
    on_false_value: float = float(np.finfo(np.float32).min), name: str | None = None,
) -> None:  # fmt: skip
    """Elements whose position (from ``range_start``) passes both comparisons; the rest becomes the least float32."""
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
    if reduce_res is not None:
        reduce_into_registers(
            machine, VECTOR, result, dst, reduce_op, reduce_res, ReduceCmd.reset_reduce, None
        )
