"""``neuronxcc.nki.isa``: arithmetic element by element on ScalarE and VectorE."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.nki.beta1.engines import dtype_or_none, engines_for, two_operands
from accelopt_profiling.nki.compute.operations import ACTIVATIONS, operation_name
from accelopt_profiling.nki.data.instruction import SCALAR, VECTOR
from accelopt_profiling.nki.emulator.machine import current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.accumulators import accumulate
from accelopt_profiling.nki.frontend.enums import ReduceCmd
from accelopt_profiling.nki.frontend.operators import MOVABLE


def activation(
    op: Any, data: Any, *, bias: Any = None, scale: Any = 1.0, reduce_op: Any = None, reduce_res: Any = None,
    reduce_cmd: Any = ReduceCmd.idle, mask: Any = None, dtype: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """``op(data * scale + bias)`` on ScalarE; ``scale`` and ``bias`` are numbers or one value per partition."""
    machine = current()
    name = operation_name(op)
    if name not in ACTIVATIONS:
        machine.fault(
            "unsupported", f"ScalarE has no function {name or op!r}; it has {', '.join(sorted(ACTIVATIONS))}."
        )
    function = ACTIVATIONS[name]
    operands: list[Any] = [data]
    scaled = isinstance(scale, Tile) or scale != 1.0
    if scaled:
        operands.append(scale)
    biased = isinstance(bias, Tile) or (bias is not None and bias != 0)
    if biased:
        operands.append(bias)

    def compute(x: Any, *rest: Any) -> Any:
        if scaled:
            x = x * _number(rest[0])
        if biased:
            x = x + _number(rest[-1])
        return function(x if x.dtype.kind == "f" else x.astype(np.float32))

    cost = machine.executor.operand(data)
    result = machine.executor.run(
        "activation", (SCALAR,), operands, compute, dtype_or_none(dtype), mask, cost=cost
    )
    accumulate(machine, SCALAR, result, reduce_op, reduce_cmd, reduce_res)
    return result


def _number(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) else np.float32(value)


def activation_reduce(
    op: Any, data: Any, *, reduce_op: Any = None, reduce_res: Any = None, bias: Any = None, scale: Any = 1.0,
    mask: Any = None, dtype: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """``activation`` that also reduces its result along the free dimensions into ``reduce_res``."""
    return activation(
        op,
        data,
        bias=bias,
        scale=scale,
        reduce_op=reduce_op,
        reduce_res=reduce_res,
        reduce_cmd=ReduceCmd.reset_reduce,
        mask=mask,
        dtype=dtype,
    )


def tensor_tensor(
    data1: Any, data2: Any, op: Any, *, dtype: Any = None, mask: Any = None, engine: Any = None, **unused: Any
) -> Tile:
    """``data1 op data2`` element by element on VectorE or GpSimdE."""
    machine = current()
    engines = engines_for(machine, engine, (VECTOR,))
    return machine.executor.run(
        "tensor_tensor", engines, [data1, data2], two_operands(machine, op), dtype_or_none(dtype), mask
    )


def tensor_scalar(
    data: Any, op0: Any, operand0: Any, reverse0: bool = False, op1: Any = None, operand1: Any = None,
    reverse1: bool = False, *, dtype: Any = None, mask: Any = None, engine: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """``(data op0 operand0) op1 operand1``; operands are numbers or one value per partition. The second is free."""
    machine = current()
    first = two_operands(machine, op0)
    second = None if op1 is None else two_operands(machine, op1)
    operands = [data, operand0] if second is None else [data, operand0, operand1]

    def compute(x: Any, a: Any, b: Any = None) -> Any:
        a = _like(a, x)
        x = first(a, x) if reverse0 else first(x, a)
        if second is not None:
            b = _like(b, x)
            x = second(b, x) if reverse1 else second(x, b)
        return x

    cost = machine.executor.operand(data)
    divides = "divide" in (operation_name(op0), operation_name(op1))
    opcode, usual = ("divide_scalar", (VECTOR,)) if divides else ("tensor_scalar", MOVABLE)
    return machine.executor.run(
        opcode, engines_for(machine, engine, usual), operands, compute, dtype_or_none(dtype), mask, cost=cost
    )


def tensor_scalar_reduce(
    *, data: Any, op0: Any, operand0: Any, reduce_op: Any, reduce_res: Any, reverse0: bool = False,
    dtype: Any = None, mask: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """``data op0 operand0`` on VectorE, which also reduces its result along the free dimensions into ``reduce_res``."""
    machine = current()
    first = two_operands(machine, op0)

    def compute(x: Any, a: Any) -> Any:
        a = _like(a, x)
        return first(a, x) if reverse0 else first(x, a)

    cost = machine.executor.operand(data)
    result = machine.executor.run(
        "tensor_scalar", (VECTOR,), [data, operand0], compute, dtype_or_none(dtype), mask, cost=cost
    )
    accumulate(machine, VECTOR, result, reduce_op, ReduceCmd.reset_reduce, reduce_res)
    return result


def _like(value: Any, data: Any) -> Any:
    """Return a scalar operand in the computation's own type: float32 for floats."""
    if isinstance(value, np.ndarray):
        return value
    return np.float32(value) if data.dtype.kind == "f" else value


def scalar_tensor_tensor(
    *, data: Any, op0: Any, operand0: Any, op1: Any, operand1: Any, reverse0: bool = False, reverse1: bool = False,
    dtype: Any = None, mask: Any = None, **unused: Any,
) -> Tile:  # fmt: skip
    """``(data op0 operand0) op1 operand1`` where ``operand1`` is a tile: two operations in one VectorE instruction."""
    machine = current()
    first, second = two_operands(machine, op0), two_operands(machine, op1)

    def compute(x: Any, a: Any, b: Any) -> Any:
        a = _like(a, x)
        x = first(a, x) if reverse0 else first(x, a)
        return second(b, x) if reverse1 else second(x, b)

    cost = machine.executor.operand(data)
    return machine.executor.run(
        "scalar_tensor_tensor",
        (VECTOR,),
        [data, operand0, operand1],
        compute,
        dtype_or_none(dtype),
        mask,
        cost=cost,
    )


def reciprocal(data: Any, *, dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    return current().executor.run("reciprocal", (VECTOR,), [data], np.reciprocal, dtype_or_none(dtype), mask)
