"""``nki.isa``: arithmetic element by element on ScalarE, VectorE and GpSimdE."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import BINARY, operation_name
from accelopt_profiling.nki.current.operands import (
    activation_function,
    engines,
    into,
    matched,
    on_chip,
    operator,
    real,
    same_size,
    scalar_like,
)  # fmt: skip
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.dtypes import is_float
from accelopt_profiling.nki.data.instruction import GPSIMD, SCALAR, VECTOR
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.accumulators import accumulate
from accelopt_profiling.nki.frontend.allocation import Allocation
from accelopt_profiling.nki.frontend.enums import NkiEngine, ReduceCmd
from accelopt_profiling.nki.frontend.operators import MOVABLE


def activation(
    dst: Any, op: Any, data: Any, bias: Any, scale: Any, reduce_op: Any, reduce_res: Any, reduce_cmd: Any,
) -> Any:  # fmt: skip
    """``op(data * scale + bias)`` on ScalarE; it can add its result up in the engine's registers."""
    machine = current()
    tile = on_chip(machine, data, "data")
    same_size(machine, on_chip(machine, dst, "dst"), tile, "data")
    function = activation_function(machine, op)
    factor = scalar_like(machine, scale, tile, "scale")
    shift = 0.0 if bias is None else scalar_like(machine, bias, tile, "bias")
    if (
        not isinstance(shift, Tile)
        and shift != 0
        and machine.limits.generation < 3
        and not isinstance(dst, Allocation)
    ):
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

    if reduce_op is not None and operation_name(reduce_op) != "add":
        machine.fault(
            "unsupported", "activation's registers add up only; reduce its result with tensor_reduce."
        )
    result = into(machine, dst, "activation", (SCALAR,), [tile, factor, shift], compute, cost=tile)
    accumulate(machine, SCALAR, result, reduce_op, reduce_cmd, reduce_res)
    return result


def activation_reduce(
    dst: Any, op: Any, data: Any, reduce_op: Any, reduce_res: Any, bias: Any, scale: Any,
) -> Any:  # fmt: skip
    """``activation`` whose result is also added up along the free dimensions into ``reduce_res``."""
    return activation(dst, op, data, bias, scale, reduce_op, reduce_res, ReduceCmd.reset_reduce)


#: What ``activate2`` computes before its function.
_PIPELINES = frozenset((
    ("multiply", "add"), ("multiply", "subtract"), ("multiply", "bypass"), ("add", "bypass"), ("subtract", "bypass"),
    ("bypass", "bypass"),
))  # fmt: skip


def activate2(
    dst: Any, op: Any, data: Any, imm0: Any, imm1: Any, op0: Any, op1: Any, relu_param: Any, reverse0: bool,
    reverse1: bool, reduce_op: Any, reduce_res: Any, reduce_cmd: Any,
) -> Any:  # fmt: skip
    """``op((data op0 imm0) op1 imm1)`` on ScalarE (trn3 only); it can add its result up in the engine's registers."""
    machine = current()
    names = (operation_name(op0), operation_name(op1))
    if names not in _PIPELINES:
        machine.fault("unsupported", f"activate2 has no ({names[0]}, {names[1]}) before its function.")
    tile = on_chip(machine, data, "data")
    same_size(machine, on_chip(machine, dst, "dst"), tile, "data")
    first, second = operator(machine, op0), operator(machine, op1)
    parametric = operation_name(op) == "prelu"
    function = None if parametric else activation_function(machine, op)
    operands = [
        tile,
        *(
            scalar_like(machine, v, tile, w)
            for v, w in ((imm0, "imm0"), (imm1, "imm1"), (relu_param, "relu_param"))
        ),
    ]

    def compute(x: Array, a: Any, b: Any, slope: Any) -> Any:
        x = real(x)
        a, b = matched(a, x), matched(b, x)
        if names[0] != "bypass":
            x = first(a, x) if reverse0 else first(x, a)
        if names[1] != "bypass":
            x = second(b, x) if reverse1 else second(x, b)
        return np.where(x > 0, x, x * matched(slope, x)) if function is None else function(x)

    result = into(machine, dst, "activation", (SCALAR,), operands, compute, cost=tile)
    accumulate(machine, SCALAR, result, reduce_op, reduce_cmd, reduce_res)
    return result


def exponential(
    dst: Any, src: Any, max_value: Any, reduce_res: Any, reduce_cmd: Any, reduce_init: Any,
) -> Any:  # fmt: skip
    """``exp(src - max_value)`` on VectorE (trn3 only)."""
    machine = current()
    tile = on_chip(machine, src, "src")
    same_size(machine, on_chip(machine, dst, "dst"), tile, "src")
    peak = scalar_like(machine, max_value, tile, "max_value")
    result = into(
        machine, dst, "exponential", (VECTOR,), [tile, peak], lambda x, m: np.exp(real(x) - matched(m, real(x))),
        cost=tile,
    )  # fmt: skip
    accumulate(machine, VECTOR, result, "add", reduce_cmd, reduce_res, reduce_init, takes_initial=True)
    return result


#: What GpSimdE computes of integers of 32 bits without going through float32 (page of ``nki.isa.tensor_tensor``).
_EXACT = frozenset(("add", "subtract", "multiply"))
_INTEGERS = frozenset((np.dtype(np.int32), np.dtype(np.uint32)))


def tensor_tensor(dst: Any, data1: Any, data2: Any, op: Any, engine: Any) -> Any:
    """``data1 op data2`` element by element."""
    machine = current()
    a, b = on_chip(machine, data1, "data1"), on_chip(machine, data2, "data2")
    target = on_chip(machine, dst, "dst")
    same_size(machine, target, a, "data1")
    same_size(machine, target, b, "data2")
    machine.rules.check_not_both_psum(a, b, "tensor_tensor")
    usual = (GPSIMD,) if operation_name(op) == "power" else (VECTOR,)
    where = engines(machine, engine, usual, (GPSIMD,))
    exact = where == (GPSIMD,) and operation_name(op) in _EXACT and {a.dtype, b.dtype} <= _INTEGERS
    function = BINARY[operation_name(op)] if exact else operator(machine, op)
    result = into(
        machine, dst, "tensor_tensor", where, [a, b], lambda x, y: function(x, matched(y, x)), cost=a
    )
    computed = result.step is not None or not isinstance(dst, Allocation)  # a mask may leave nothing
    if machine.deferred.order is not None and computed:
        machine.deferred.steps[-1].operation = BINARY.get(operation_name(op))
    return result


def tensor_scalar(
    dst: Any, data: Any, op0: Any, operand0: Any, reverse0: bool, op1: Any, operand1: Any, reverse1: bool, engine: Any,
) -> Any:  # fmt: skip
    """``(data op0 operand0) op1 operand1``; operands are numbers or one value per partition."""
    machine = current()
    tile, where, operands, compute = _scalar_operations(
        machine, dst, data, op0, operand0, reverse0, op1, operand1, reverse1, engine
    )
    divides = "divide" in (operation_name(op0), operation_name(op1))
    opcode = "divide_scalar" if divides else "tensor_scalar"
    return into(machine, dst, opcode, where, operands, compute, cost=tile)


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
    divides = "divide" in (operation_name(op0), operation_name(op1))
    usual = (
        MOVABLE if isinstance(dst, Allocation) and not divides else (VECTOR,)
    )  # today's names one, or means VectorE
    where = engines(machine, engine, usual, (SCALAR, GPSIMD))

    def compute(x: Array, a: Any, b: Any = None) -> Any:
        a = matched(a, x)
        x = first(a, x) if reverse0 else first(x, a)
        if second is not None:
            b = matched(b, x)
            x = second(b, x) if reverse1 else second(x, b)
        return x

    return tile, where, operands, compute


def tensor_scalar_reduce(
    dst: Any, data: Any, op0: Any, operand0: Any, reduce_op: Any, reduce_res: Any, reverse0: bool,
    reduce_cmd: Any, reduce_init: Any, reduce_res_negate: bool,
) -> Any:  # fmt: skip
    """``data op0 operand0``, whose result is also reduced along the free dimensions into ``reduce_res``."""
    machine = current()
    tile, where, operands, compute = _scalar_operations(
        machine, dst, data, op0, operand0, reverse0, None, None, False, NkiEngine.vector
    )
    result = into(machine, dst, "tensor_scalar", where, operands, compute, cost=tile)
    accumulate(
        machine, VECTOR, result, reduce_op, reduce_cmd, reduce_res, reduce_init, takes_initial=True,
        negate=reduce_res_negate,
    )  # fmt: skip
    return result


def scalar_tensor_tensor(
    dst: Any, data: Any, op0: Any, operand0: Any, op1: Any, operand1: Any, reverse0: bool, reverse1: bool,
) -> Any:  # fmt: skip
    """``(data op0 operand0) op1 operand1`` where ``operand1`` is a tile, in one VectorE instruction."""
    machine = current()
    tile, other = on_chip(machine, data, "data"), on_chip(machine, operand1, "operand1")
    target = on_chip(machine, dst, "dst")
    same_size(machine, target, tile, "data")
    same_size(machine, target, other, "operand1")
    machine.rules.check_not_both_psum(tile, other, "scalar_tensor_tensor")
    first, second = operator(machine, op0), operator(machine, op1)
    number = scalar_like(machine, operand0, tile, "operand0")

    def compute(x: Array, a: Any, b: Any) -> Any:
        a = matched(a, x)
        x = first(a, x) if reverse0 else first(x, a)
        b = matched(b, x)
        return second(b, x) if reverse1 else second(x, b)

    return into(machine, dst, "scalar_tensor_tensor", (VECTOR,), [tile, number, other], compute, cost=tile)


def reciprocal(dst: Any, data: Any) -> Any:
    """``1 / data`` on VectorE."""
    machine = current()
    tile = on_chip(machine, data, "data")
    same_size(machine, on_chip(machine, dst, "dst"), tile, "data")
    return into(machine, dst, "reciprocal", (VECTOR,), [tile], lambda x: np.reciprocal(real(x)), cost=tile)


def memset(dst: Any, value: Any, engine: Any) -> Any:
    """Fill ``dst`` with a number of its type."""
    machine = current()
    target = on_chip(machine, dst, "dst")
    if isinstance(value, Tile):
        machine.fault("unsupported", "memset fills with a number; copy a tensor with nisa.tensor_copy.")
    if not is_float(target.dtype) and float(value) != int(value):
        machine.fault("unsupported", f"memset cannot fill a tensor of {target.dtype} with {value}.")
    where = engines(machine, engine, (VECTOR,), (GPSIMD,))
    machine.executor.fill(target, value, where)
