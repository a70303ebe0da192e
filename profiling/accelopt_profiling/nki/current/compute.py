"""``nki.isa``: the arithmetic of TensorE, VectorE and ScalarE."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki import rules
from accelopt_profiling.nki.block import Array
from accelopt_profiling.nki.current.enums import Engine, MatmulPerfMode, ReduceCmd
from accelopt_profiling.nki.current.operands import (
    activation_function,
    engines,
    into,
    matched,
    on_chip,
    operator,
    per_partition,
    real,
    reduction,
    same_size,
    scalar_like,
)  # fmt: skip
from accelopt_profiling.nki.dtypes import is_float
from accelopt_profiling.nki.instruction import GPSIMD, SCALAR, TENSOR, VECTOR, Memory
from accelopt_profiling.nki.machine import Machine, current
from accelopt_profiling.nki.movement import multiplied, turned
from accelopt_profiling.nki.operations import operation_name
from accelopt_profiling.nki.tile import Tile


def nc_matmul(
    dst: Any, stationary: Any, moving: Any, is_stationary_onezero: bool = False, is_moving_onezero: bool = False,
    is_transpose: bool = False, accumulate: bool | None = None, tile_position: Any = (), tile_size: Any = (),
    perf_mode: Any = MatmulPerfMode.none, name: str | None = None,
) -> None:  # fmt: skip
    """``dst = stationary[K, M].T @ moving[K, N]`` on TensorE, in float32.

    With ``accumulate=None`` the first product written to a place in PSUM overwrites it and later ones add.
    """
    machine = current()
    target = on_chip(machine, dst, "dst")
    left, right = (
        on_chip(machine, stationary, "stationary operand"),
        on_chip(machine, moving, "moving operand"),
    )
    if perf_mode not in (MatmulPerfMode.none, "none", None):
        machine.fault("unsupported", f"nc_matmul's perf_mode {perf_mode} is not emulated; leave it out.")
    if target.block.place.memory is not Memory.PSUM:
        machine.fault("unsupported", "nc_matmul writes to PSUM; allocate dst with buffer=nl.psum.")
    rules.check_matmul(machine, left, right)
    if (left.dtype.itemsize >= 4) != (right.dtype.itemsize >= 4):
        machine.fault(
            "unsupported",
            f"nc_matmul multiplies {left.dtype} with {right.dtype}; either both are float32 or neither.",
        )
    rows, columns = prod(left.shape[1:]), prod(right.shape[1:])
    if per_partition(machine, target) != (rows, columns):
        machine.fault("out-of-bounds", f"The product has the shape ({rows}, {columns}), dst {target.shape}.")
    rules.check_bank(machine, target)
    adds = not target.block.coverage.untouched_in(target.box()) if accumulate is None else bool(accumulate)

    result = machine.product(
        target, left, right, turned if is_transpose else multiplied, adds and not is_transpose
    )
    result.transpose = is_transpose
    result.onezero = is_moving_onezero or is_stationary_onezero
    result.stationary, result.free, result.partitions = rows, columns, right.shape[0]
    result.flops = 2 * left.shape[0] * rows * columns


def nc_transpose(dst: Any, data: Any, engine: Any = Engine.unknown, name: str | None = None) -> None:
    """Swap partitions and free elements: on TensorE from SBUF to PSUM, or on VectorE for at most 32x32."""
    machine = current()
    target, tile = on_chip(machine, dst, "dst"), on_chip(machine, data, "data")
    rows, columns = per_partition(machine, tile)
    if per_partition(machine, target) != (columns, rows):
        machine.fault(
            "out-of-bounds",
            f"The transpose of {tile.shape} has the shape ({columns}, {rows}), dst {target.shape}.",
        )
    (chosen,) = engines(machine, engine, (_transposer(target, rows, columns),), (TENSOR, VECTOR))
    limit = 32 if chosen == VECTOR else 128
    if max(rows, columns) > limit:
        machine.fault(
            "capacity", f"{chosen} transposes at most {limit}x{limit}; this tile is {rows}x{columns}."
        )
    if chosen == TENSOR and target.block.place.memory is not Memory.PSUM:
        machine.fault(
            "unsupported", "nc_transpose on TensorE writes to PSUM; allocate dst with buffer=nl.psum."
        )
    if chosen == TENSOR and tile.block.place.memory is Memory.PSUM:
        machine.fault("unsupported", "nc_transpose on TensorE reads SBUF; data lies in PSUM.")
    if target.dtype != tile.dtype:
        machine.fault(
            "unsupported", f"nc_transpose keeps the type: data is {tile.dtype}, dst {target.dtype}."
        )
    opcode = "nc_matmul" if chosen == TENSOR else "nc_transpose"
    result = into(machine, target, opcode, (chosen,), [tile], turned, cost=tile)
    if chosen == TENSOR and result.producer is not None:
        done = result.producer
        done.transpose = done.onezero = True
        done.free, done.stationary, done.flops = rows, columns, 2 * rows * rows * columns


def _transposer(target: Tile, rows: int, columns: int) -> str:
    small = max(rows, columns) <= 32 and target.block.place.memory is not Memory.PSUM
    return VECTOR if small else TENSOR


def activation(
    dst: Any, op: Any, data: Any, bias: Any = None, scale: Any = 1.0, reduce_op: Any = None, reduce_res: Any = None,
    reduce_cmd: Any = ReduceCmd.idle, name: str | None = None,
) -> None:  # fmt: skip
    """``op(data * scale + bias)`` on ScalarE; it can add its result up in the engine's registers."""
    machine = current()
    tile = on_chip(machine, data, "data")
    same_size(machine, on_chip(machine, dst, "dst"), tile, "data")
    function = activation_function(machine, op)
    factor = scalar_like(machine, scale, tile, "scale")
    shift = 0.0 if bias is None else scalar_like(machine, bias, tile, "bias")
    if bias is not None and not isinstance(shift, Tile) and shift != 0 and machine.limits.generation < 3:
        machine.fault(
            "unsupported", "A bias that is a number needs trn2; on trn1 it is a tensor of shape (N, 1)."
        )
    plain = not isinstance(factor, Tile) and factor == 1.0
    unshifted = not isinstance(shift, Tile) and shift == 0.0

    def compute(x: Array, a: Any, b: Any) -> Any:
        x = real(x)
        if not plain:
            x = x * matched(a, x)
        if not unshifted:
            x = x + matched(b, x)
        return function(x)

    result = into(machine, dst, "activation", (SCALAR,), [tile, factor, shift], compute, cost=tile)
    _reduce(machine, SCALAR, result, dst, reduce_op, reduce_res, reduce_cmd, 0.0)


def _reduce(
    machine: Machine,
    engine: str,
    result: Tile,
    dst: Any,
    op: Any,
    place: Any,
    command: ReduceCmd,
    initial: Any,
) -> None:
    """The accumulator registers of an engine: what ``command`` does with the result of an instruction."""
    if command is ReduceCmd.idle and place is None:
        return
    target = machine.operand(dst)
    producer = result.producer
    assert producer is not None
    producer.opcode = "activation_reduce" if engine == SCALAR else "tensor_scalar_reduce"
    function = reduction(machine, op or "add")
    largest = operation_name(op or "add") in ("max", "maximum")
    kept = machine.registers.get(engine) if command is ReduceCmd.reduce else None

    def compute(values: Array, before: Any) -> Any:
        total = real(function(real(values), axis=tuple(range(1, values.ndim))))
        if command is ReduceCmd.load_reduce:
            total = total + np.float32(0 if initial is None else initial)
        elif before is not None:
            total = np.maximum(total, before) if largest else total + before
        return np.zeros_like(total) if command is ReduceCmd.reset else total

    total = machine.later(compute, target, kept)
    if total is not None:
        total.keep = True
        machine.registers[engine] = total
        machine.work.steps.append(total)
    if place is not None:
        into_place = on_chip(machine, place, "reduce_res")
        if per_partition(machine, into_place) != (target.shape[0], 1):
            machine.fault(
                "out-of-bounds", f"reduce_res has the shape {into_place.shape}, not ({target.shape[0]}, 1)."
            )
        producer.writes.append((into_place.block.place, into_place.box()))
        machine.write(into_place, machine.later(lambda x: x.reshape(into_place.shape), total))


def activation_reduce(
    dst: Any, op: Any, data: Any, reduce_op: Any, reduce_res: Any, bias: Any = None, scale: Any = 1.0,
    name: str | None = None,
) -> None:  # fmt: skip
    """``activation`` whose result is also added up along the free dimensions into ``reduce_res``."""
    activation(dst, op, data, bias, scale, reduce_op, reduce_res, ReduceCmd.reset_reduce)


def exponential(
    dst: Any, src: Any, max_value: Any = 0.0, reduce_res: Any = None, reduce_cmd: Any = ReduceCmd.idle,
    reduce_init: Any = 0.0,
) -> None:  # fmt: skip
    """``exp(src - max_value)`` on VectorE (trn3 only)."""
    machine = current()
    if machine.limits.generation < 4:
        machine.fault("unsupported", "nisa.exponential needs trn3; use nisa.activation with nl.exp.")
    tile = on_chip(machine, src, "src")
    same_size(machine, on_chip(machine, dst, "dst"), tile, "src")
    peak = scalar_like(machine, max_value, tile, "max_value")
    result = into(
        machine, dst, "exponential", (VECTOR,), [tile, peak], lambda x, m: np.exp(real(x) - matched(m, real(x))),
        cost=tile,
    )  # fmt: skip
    _reduce(machine, VECTOR, result, dst, "add", reduce_res, reduce_cmd, reduce_init)


def tensor_tensor(
    dst: Any, data1: Any, data2: Any, op: Any, engine: Any = Engine.unknown, name: str | None = None
) -> None:
    """``data1 op data2`` element by element."""
    machine = current()
    a, b = on_chip(machine, data1, "data1"), on_chip(machine, data2, "data2")
    target = on_chip(machine, dst, "dst")
    same_size(machine, target, a, "data1")
    same_size(machine, target, b, "data2")
    rules.check_not_both_psum(machine, a, b, "tensor_tensor")
    usual = (GPSIMD,) if operation_name(op) == "power" else (VECTOR,)
    where = engines(machine, engine, usual, (GPSIMD,))
    function = operator(machine, op)
    into(machine, dst, "tensor_tensor", where, [a, b], lambda x, y: function(x, matched(y, x)), cost=a)


def tensor_scalar(
    dst: Any, data: Any, op0: Any, operand0: Any, reverse0: bool = False, op1: Any = None, operand1: Any = None,
    reverse1: bool = False, engine: Any = Engine.unknown, name: str | None = None,
) -> None:  # fmt: skip
    """``(data op0 operand0) op1 operand1``; operands are numbers or one value per partition."""
    machine = current()
    tile, where, operands, compute = _scalar_operations(
        machine, dst, data, op0, operand0, reverse0, op1, operand1, reverse1, engine
    )
    into(machine, dst, "tensor_scalar", where, operands, compute, cost=tile)


def _scalar_operations(
    machine: Machine, dst: Any, data: Any, op0: Any, operand0: Any, reverse0: bool, op1: Any, operand1: Any,
    reverse1: bool, engine: Any,
) -> tuple[Tile, tuple[str, ...], list[Any], Any]:  # fmt: skip
    tile = on_chip(machine, data, "data")
    same_size(machine, on_chip(machine, dst, "dst"), tile, "data")
    first = operator(machine, op0)
    operands = [tile, scalar_like(machine, operand0, tile, "operand0")]
    second = None
    if op1 is not None:
        second = operator(machine, op1)
        operands.append(scalar_like(machine, operand1, tile, "operand1"))
    where = engines(machine, engine, (VECTOR,), (SCALAR, GPSIMD))

    def compute(x: Array, a: Any, b: Any = None) -> Any:
        a = matched(a, x)
        x = first(a, x) if reverse0 else first(x, a)
        if second is not None:
            b = matched(b, x)
            x = second(b, x) if reverse1 else second(x, b)
        return x

    return tile, where, operands, compute


def tensor_scalar_reduce(
    dst: Any, data: Any, op0: Any, operand0: Any, reduce_op: Any, reduce_res: Any = None, reverse0: bool = False,
    reduce_cmd: Any = ReduceCmd.reset_reduce, reduce_init: Any = None, name: str | None = None,
) -> None:  # fmt: skip
    """``data op0 operand0``, whose result is also reduced along the free dimensions into ``reduce_res``."""
    machine = current()
    tile, where, operands, compute = _scalar_operations(
        machine, dst, data, op0, operand0, reverse0, None, None, False, Engine.vector
    )
    result = into(machine, dst, "tensor_scalar", where, operands, compute, cost=tile)
    _reduce(machine, VECTOR, result, dst, reduce_op, reduce_res, reduce_cmd, reduce_init)


def scalar_tensor_tensor(
    dst: Any, data: Any, op0: Any, operand0: Any, op1: Any, operand1: Any, reverse0: bool = False,
    reverse1: bool = False, name: str | None = None, dtype: Any = None,
) -> None:  # fmt: skip
    """``(data op0 operand0) op1 operand1`` where ``operand1`` is a tile, in one VectorE instruction."""
    machine = current()
    tile, other = on_chip(machine, data, "data"), on_chip(machine, operand1, "operand1")
    target = on_chip(machine, dst, "dst")
    same_size(machine, target, tile, "data")
    same_size(machine, target, other, "operand1")
    rules.check_not_both_psum(machine, tile, other, "scalar_tensor_tensor")
    first, second = operator(machine, op0), operator(machine, op1)
    number = scalar_like(machine, operand0, tile, "operand0")

    def compute(x: Array, a: Any, b: Any) -> Any:
        a = matched(a, x)
        x = first(a, x) if reverse0 else first(x, a)
        b = matched(b, x)
        return second(b, x) if reverse1 else second(x, b)

    into(machine, dst, "scalar_tensor_tensor", (VECTOR,), [tile, number, other], compute, cost=tile)


def tensor_reduce(
    dst: Any,
    op: Any,
    data: Any,
    axis: Any,
    negate: bool = False,
    keepdims: bool = False,
    name: str | None = None,
) -> None:
    """Reduce along the last free dimensions on VectorE."""
    machine = current()
    tile, target = on_chip(machine, data, "data"), on_chip(machine, dst, "dst")
    rank = len(tile.shape)
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(sorted(a + rank if a < 0 else a for a in given))
    if 0 in axes:
        machine.fault(
            "unsupported", "tensor_reduce reduces free dimensions; partitions are reduced by TensorE."
        )
    if axes != tuple(range(rank - len(axes), rank)):
        machine.fault(
            "out-of-bounds", f"axis {axis} is not the last dimensions of a tile of shape {tile.shape}."
        )
    kept = tile.size // prod(tile.shape[a] for a in axes)
    if target.size != kept or target.shape[0] != tile.shape[0]:
        machine.fault(
            "out-of-bounds", f"The reduction of {tile.shape} over {axes} does not fit dst {target.shape}."
        )
    function = reduction(machine, op)

    def compute(x: Array) -> Any:
        total = function(real(x), axis=axes)
        return -total if negate else total

    into(machine, dst, "tensor_reduce", (VECTOR,), [tile], compute, cost=tile)


def tensor_partition_reduce(dst: Any, op: Any, data: Any, name: str | None = None) -> None:
    """Reduce over partitions on GpSimdE: slow."""
    machine = current()
    tile, target = on_chip(machine, data, "data"), on_chip(machine, dst, "dst")
    if per_partition(machine, target) != (1, prod(tile.shape[1:])):
        machine.fault(
            "out-of-bounds", f"The reduction of {tile.shape} over partitions does not fit dst {target.shape}."
        )
    function = reduction(machine, op)
    into(
        machine,
        dst,
        "tensor_partition_reduce",
        (GPSIMD,),
        [tile],
        lambda x: function(real(x), axis=0),
        cost=tile,
    )


def reciprocal(dst: Any, data: Any, name: str | None = None) -> None:
    """``1 / data`` on VectorE."""
    machine = current()
    tile = on_chip(machine, data, "data")
    same_size(machine, on_chip(machine, dst, "dst"), tile, "data")
    into(machine, dst, "reciprocal", (VECTOR,), [tile], lambda x: np.reciprocal(real(x)), cost=tile)


def tensor_tensor_scan(
    dst: Any, data0: Any, data1: Any, initial: Any, op0: Any, op1: Any, reverse0: bool = False,
    reverse1: bool = False, name: str | None = None,
) -> None:  # fmt: skip
    """``r[i] = op1(op0(data0[i], r[i-1]), data1[i])`` along the free dimension on VectorE."""
    machine = current()
    a, b = on_chip(machine, data0, "data0"), on_chip(machine, data1, "data1")
    target = on_chip(machine, dst, "dst")
    same_size(machine, target, a, "data0")
    same_size(machine, target, b, "data1")
    rules.check_not_both_psum(machine, a, b, "tensor_tensor_scan")
    first, second = operator(machine, op0), operator(machine, op1)
    start = scalar_like(machine, initial, a, "initial")

    def compute(x: Array, y: Array, begin: Any) -> Any:
        rows = x.shape[0]
        left, right = (np.ascontiguousarray(real(v).reshape(rows, -1).T) for v in (x, y))
        out = np.empty_like(left)
        state = np.broadcast_to(np.asarray(begin, dtype=np.float32).reshape(-1), (rows,))
        for i in range(len(left)):
            state = first(state, left[i]) if reverse0 else first(left[i], state)
            state = second(right[i], state) if reverse1 else second(state, right[i])
            out[i] = state
        return out.T

    into(machine, dst, "tensor_tensor_scan", (VECTOR,), [a, b, start], compute, cost=a)


def bn_stats(dst: Any, data: Any, name: str | None = None) -> None:
    """Count, mean and centred sum of squares of the even elements, then of the odd ones: six columns."""
    machine = current()
    tile = on_chip(machine, data, "data")
    elements = prod(tile.shape[1:])
    if elements > 512:
        machine.fault("capacity", f"bn_stats takes at most 512 elements per partition, not {elements}.")
    if per_partition(machine, on_chip(machine, dst, "dst")) != (tile.shape[0], 6):
        machine.fault("out-of-bounds", f"bn_stats gives six elements per partition; dst is {dst.shape}.")

    def compute(x: Array) -> Any:
        x = real(x).reshape(x.shape[0], -1)
        columns = []
        for half in (x[:, 0::2], x[:, 1::2]):
            mean = half.mean(axis=1) if half.shape[1] else np.zeros(len(x), x.dtype)
            spread = ((half - mean[:, None]) ** 2).sum(axis=1)
            columns += [np.full(len(x), half.shape[1], x.dtype), mean, spread]
        return np.stack(columns, axis=1)

    into(machine, dst, "bn_stats", (VECTOR,), [tile], compute, cost=tile)


def bn_aggr(dst: Any, data: Any, name: str | None = None) -> None:
    """Mean and variance per partition from one or more results of ``bn_stats``."""
    machine = current()
    tile = on_chip(machine, data, "data")
    if prod(tile.shape[1:]) % 3:
        machine.fault("out-of-bounds", f"bn_aggr reads triples; data has the shape {tile.shape}.")

    def compute(x: Array) -> Any:
        parts = real(x).reshape(x.shape[0], -1, 3)
        count, mean, spread = parts[:, :, 0], parts[:, :, 1], parts[:, :, 2]
        total = count.sum(axis=1)
        centre = (count * mean).sum(axis=1) / total
        square = (spread + count * (mean - centre[:, None]) ** 2).sum(axis=1)
        return np.stack([centre, square / total], axis=1)

    into(machine, dst, "bn_aggr", (VECTOR,), [tile], compute, cost=tile)


def select_reduce(
    dst: Any, predicate: Any, on_true: Any, on_false: Any, reduce_res: Any = None, reduce_cmd: Any = ReduceCmd.idle,
    reduce_op: Any = "max", reverse_pred: bool = False, name: str | None = None,
) -> None:  # fmt: skip
    """``on_true`` where the predicate is not zero, else ``on_false``; the maximum of the result on request."""
    machine = current()
    tile, chosen = on_chip(machine, on_true, "on_true"), on_chip(machine, predicate, "predicate")
    same_size(machine, on_chip(machine, dst, "dst"), tile, "on_true")
    same_size(machine, tile, chosen, "predicate")
    rules.check_not_both_psum(machine, tile, chosen, "select_reduce")
    other = scalar_like(machine, on_false, tile, "on_false")

    def compute(x: Array, p: Array, y: Any) -> Any:
        x = real(x)
        return np.where((matched(p, x) != 0) != reverse_pred, x, matched(y, x))

    result = into(machine, dst, "select", (VECTOR,), [tile, chosen, other], compute, cost=tile)
    _reduce(machine, VECTOR, result, dst, reduce_op, reduce_res, reduce_cmd, None)


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
        _reduce(machine, VECTOR, result, dst, reduce_op, reduce_res, ReduceCmd.reset_reduce, None)


def memset(dst: Any, value: Any, engine: Any = Engine.unknown, name: str | None = None) -> None:
    """Fill ``dst`` with a number of its type."""
    machine = current()
    target = on_chip(machine, dst, "dst")
    if isinstance(value, Tile):
        machine.fault("unsupported", "memset fills with a number; copy a tensor with nisa.tensor_copy.")
    if not is_float(target.dtype) and float(value) != int(value):
        machine.fault("unsupported", f"memset cannot fill a tensor of {target.dtype} with {value}.")
    where = engines(machine, engine, (VECTOR,), (GPSIMD,))
    machine.fill(target, value, where)
