"""``nki.isa``: arithmetic element by element on ScalarE, VectorE and GpSimdE."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import (
    BITWISE,
    UNARY,
    arithmetic,
    matched,
    operation_name,
    paired,
    real,
)
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.dtypes import is_float
from accelopt_profiling.nki.data.instruction import GPSIMD, SCALAR, VECTOR
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine, current
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.instructions.accumulators import accumulate
from accelopt_profiling.nki.instructions.activation_ranges import on_scalar_engine
from accelopt_profiling.nki.instructions.allocation import Allocation
from accelopt_profiling.nki.instructions.enums import NkiEngine, ReduceCmd
from accelopt_profiling.nki.instructions.operands import (
    MOVABLE,
    activation_name,
    engines,
    into,
    on_chip,
    operator,
    same_size,
    scalar_like,
)
from accelopt_profiling.nki.operations.table import table


def activation(
    dst: Any, op: Any, data: Any, bias: Any, scale: Any, reduce_op: Any, reduce_res: Any, reduce_cmd: Any,
) -> Any:  # fmt: skip
    """``op(data * scale + bias)`` on ScalarE; it can add its result up in the engine's registers."""
    machine = current()
    tile = on_chip(machine, data, "data")
    same_size(machine, on_chip(machine, dst, "dst"), tile, "data")
    name = activation_name(machine, op)
    if name == "reciprocal" and bias is not None and machine.version and machine.limits.generation < 3:
        machine.fault("unsupported", "The activation nl.reciprocal has no bias on trn1 (nki.api.shared).")
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
    scaled = isinstance(factor, Tile) or factor != 1.0
    shifted = isinstance(shift, Tile) or shift != 0.0
    if reduce_op is not None and operation_name(reduce_op) != "add":
        machine.fault(
            "unsupported", "activation's registers add up only; reduce its result with tensor_reduce."
        )
    operands = [tile, factor, shift]
    result = into(
        machine,
        dst,
        "activation",
        (SCALAR,),
        operands,
        _activated,
        name,
        scaled,
        shifted,
        _line(machine, name),
        cost=tile,
    )
    accumulate(machine, SCALAR, result, reduce_op, reduce_cmd, reduce_res)
    return result


def _activated(name: str, scaled: bool, shifted: bool, line: int, x: Array, scale: Any, bias: Any) -> Array:
    x = real(x)
    if scaled:
        x = x * matched(scale, x)
    if shifted:
        x = x + matched(bias, x)
    return on_scalar_engine(name, x, line)


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
    name = activation_name(machine, op)
    for reverse, what in ((reverse0, names[0]), (reverse1, names[1])):
        if reverse and what == "bypass":
            machine.fault("unsupported", "activate2 reverses the operands of an operation, not of nl.bypass.")
    if isinstance(imm0, Tile) and isinstance(imm1, Tile) and imm0.dtype != imm1.dtype:
        machine.fault(
            "unsupported", f"imm0 is {imm0.dtype.name} and imm1 {imm1.dtype.name}; they have one type."
        )
    operands = [
        tile,
        *(
            scalar_like(machine, v, tile, w)
            for v, w in ((imm0, "imm0"), (imm1, "imm1"), (relu_param, "relu_param"))
        ),
    ]

    result = into(
        machine,
        dst,
        "activation",
        (SCALAR,),
        operands,
        _activated_twice,
        name,
        *names,
        reverse0,
        reverse1,
        _line(machine, name),
        cost=tile,
    )
    accumulate(machine, SCALAR, result, reduce_op, reduce_cmd, reduce_res)
    return result


def _activated_twice(
    name: str, op0: str, op1: str, reverse0: bool, reverse1: bool, line: int, x: Array, a: Any, b: Any, slope: Any,
) -> Array:  # fmt: skip
    x = real(x)
    a, b = matched(a, x), matched(b, x)
    if op0 != "bypass":
        x = arithmetic(op0, x, a, reverse0)
    if op1 != "bypass":
        x = arithmetic(op1, x, b, reverse1)
    return on_scalar_engine(name, x, line, matched(slope, x))


def _line(machine: Machine, name: str) -> int:
    """Return the line of a call whose values may be outside of what ScalarE computes; 0 where that is not looked at."""
    return machine.diagnostics.line() if machine.version and table()["activations"][name] else 0


def exponential(
    dst: Any, src: Any, max_value: Any, reduce_res: Any, reduce_cmd: Any, reduce_init: Any,
) -> Any:  # fmt: skip
    """``exp(src - max_value)`` on VectorE (trn3 only)."""
    machine = current()
    tile = on_chip(machine, src, "src")
    same_size(machine, on_chip(machine, dst, "dst"), tile, "src")
    peak = scalar_like(machine, max_value, tile, "max_value")
    loads = reduce_cmd is ReduceCmd.load_reduce
    if not loads and (isinstance(reduce_init, Tile) or reduce_init != 0.0):
        machine.fault("unsupported", "exponential's reduce_init is for reduce_cmd.load_reduce alone.")
    result = into(machine, dst, "exponential", (VECTOR,), [tile, peak], _exponential, cost=tile)
    accumulate(machine, VECTOR, result, "add", reduce_cmd, reduce_res, reduce_init, takes_initial=True)
    return result


def _exponential(x: Array, peak: Any) -> Array:
    x = real(x)
    return np.asarray(np.exp(x - matched(peak, x)))


#: What GpSimdE computes of integers of 32 bits without going through float32 in Beta 1; today all but powers (page of
#: ``nki.isa.tensor_tensor``).
_EXACT = frozenset(("add", "subtract", "multiply"))
_INTEGERS = frozenset((np.dtype(np.int32), np.dtype(np.uint32)))


def _defaults_to_gpsimd(target: Tile | Allocation, *data: Tile) -> bool:
    """Return whether today's compiler computes integers on GpSimdE, which does not reach PSUM."""
    if isinstance(target, Allocation) or target.dtype not in _INTEGERS:
        return False
    return not any(t.block.info.memory is MemorySpace.PSUM for t in (target, *data))


def tensor_tensor(dst: Any, data1: Any, data2: Any, op: Any, engine: Any) -> Any:
    """``data1 op data2`` element by element."""
    machine = current()
    a, b = on_chip(machine, data1, "data1"), on_chip(machine, data2, "data2")
    target = on_chip(machine, dst, "dst")
    same_size(machine, target, a, "data1")
    same_size(machine, target, b, "data2")
    machine.rules.check_not_both_psum(a, b, "tensor_tensor")
    name = operator(machine, op, target, a, b)
    integers = {a.dtype, b.dtype} <= _INTEGERS
    usual = (GPSIMD,) if name == "power" or (integers and _defaults_to_gpsimd(target, a, b)) else (VECTOR,)
    where = engines(machine, engine, usual, (GPSIMD,) if name == "power" else (VECTOR, GPSIMD))
    exact = (
        where == (GPSIMD,) and integers and (name in _EXACT or (bool(machine.version) and name != "power"))
    )
    return into(machine, dst, "tensor_tensor", where, [a, b], paired, name, exact, cost=a)


def tensor_scalar(
    dst: Any, data: Any, op0: Any, operand0: Any, reverse0: bool, op1: Any, operand1: Any, reverse1: bool, engine: Any,
) -> Any:  # fmt: skip
    """``(data op0 operand0) op1 operand1``; operands are numbers or one value per partition."""
    machine = current()
    return _scalar_operations(machine, dst, data, op0, operand0, reverse0, op1, operand1, reverse1, engine)


#: Engines on which ``tensor_scalar`` runs whatever its operations, and those that the others have.
_RUNS = frozenset(((VECTOR,), MOVABLE))
_ALSO_ON: dict[tuple[str, ...], set[tuple[str, ...]]] = {
    (SCALAR,): {("multiply", "add"), ("multiply",), ("add",)},
    (GPSIMD,): {("rsqrt",)},
}


def _scalar_operations(
    machine: Machine, dst: Any, data: Any, op0: Any, operand0: Any, reverse0: bool, op1: Any, operand1: Any,
    reverse1: bool, engine: Any, bits: bool = True,
) -> Tile:  # fmt: skip
    tile, target = on_chip(machine, data, "data"), on_chip(machine, dst, "dst")
    same_size(machine, target, tile, "data")
    names, operands = [], [tile]
    for op, operand, what in ((op0, operand0, "operand0"), (op1, operand1, "operand1")):
        if op is None and what == "operand1":
            if operand1 is not None and machine.version:
                machine.fault("unsupported", "operand1 is None where there is no op1.")
            continue
        names.append(operator(machine, op, target, tile, unary=True, bits=bits))
        if names[-1] not in UNARY:
            operands.append(scalar_like(machine, operand, tile, what))
            _check_scalar(machine, names[-1], operand, tile, what)
            continue
        if machine.version and not (operand is None or (isinstance(operand, (int, float)) and operand == 0)):
            machine.fault("unsupported", f"{names[-1]} has no {what}: leave it None or 0.")
        operands.append(0.0)
    if machine.version and len(names) == 2 and (names[0] in BITWISE) != (names[1] in BITWISE):
        machine.fault("unsupported", f"{names[0]} and {names[1]}: either both work on bits or neither.")
    first, second = names[0], names[1] if len(names) == 2 else None
    divides = "divide" in (first, second)
    # today's dialect names one engine, or means VectorE
    usual = MOVABLE if isinstance(dst, Allocation) and not divides else (VECTOR,)
    where = engines(machine, engine, usual, (SCALAR, GPSIMD))
    as_vector = where == (SCALAR,) and machine.limits.generation > 3 and not BITWISE.intersection(names)
    if machine.version and where not in _RUNS and not as_vector and tuple(names) not in _ALSO_ON[where]:
        machine.fault(
            "unsupported", f"{' and '.join(names)} run on VectorE only (AWS's page of nisa.tensor_scalar)."
        )
    opcode = "divide_scalar" if divides else "tensor_scalar"
    return into(machine, dst, opcode, where, operands, _in_turn, first, reverse0, second, reverse1, cost=tile)


def _check_scalar(machine: Machine, name: str, operand: Any, data: Tile, what: str) -> None:
    """Check that arithmetic has an operand of float32; addresses, integers of 32 bits, have their own type too."""
    if not machine.version or name in BITWISE or not isinstance(operand, Tile) or operand.dtype == np.float32:
        return
    if not {operand.dtype, data.dtype} <= _INTEGERS:
        machine.fault(
            "unsupported", f"{what} is {operand.dtype.name}, not float32 (AWS's page of nisa.tensor_scalar)."
        )


def _in_turn(
    first: str, reverse0: bool, second: str | None, reverse1: bool, x: Array, a: Any, b: Any = None
) -> Any:
    """Return ``(x first a) second b``."""
    x = arithmetic(first, x, matched(a, x), reverse0)
    return x if second is None else arithmetic(second, x, matched(b, x), reverse1)


def tensor_scalar_reduce(
    dst: Any, data: Any, op0: Any, operand0: Any, reduce_op: Any, reduce_res: Any, reverse0: bool,
    reduce_cmd: Any, reduce_init: Any, reduce_res_negate: bool,
) -> Any:  # fmt: skip
    """``data op0 operand0``, whose result is also reduced along the free dimensions into ``reduce_res``."""
    machine = current()
    if machine.version and reverse0:
        machine.fault("unsupported", "tensor_scalar_reduce does not reverse its operands yet (its page).")
    if reduce_init is not None and reduce_cmd is not ReduceCmd.load_reduce:
        machine.fault("unsupported", "reduce_init is for reduce_cmd.load_reduce alone.")
    if reduce_cmd is ReduceCmd.idle:
        machine.fault(
            "unsupported", "tensor_scalar_reduce takes reset_reduce, reduce or load_reduce, not idle."
        )
    result = _scalar_operations(
        machine, dst, data, op0, operand0, reverse0, None, None, False, NkiEngine.vector, bits=False
    )
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
    first, second = operator(machine, op0, bits=False), operator(machine, op1, bits=False)
    number = scalar_like(machine, operand0, tile, "operand0")

    return into(
        machine, dst, "scalar_tensor_tensor", (VECTOR,), [tile, number, other], _in_turn, first, reverse0, second,
        reverse1, cost=tile,
    )  # fmt: skip


def reciprocal(dst: Any, data: Any) -> Any:
    """``1 / data`` on VectorE."""
    machine = current()
    tile = on_chip(machine, data, "data")
    same_size(machine, on_chip(machine, dst, "dst"), tile, "data")
    return into(machine, dst, "reciprocal", (VECTOR,), [tile], _reciprocal, cost=tile)


def _reciprocal(x: Array) -> Any:
    return np.reciprocal(real(x))


def memset(dst: Any, value: Any, engine: Any) -> Any:
    """Fill ``dst`` with a number of its type."""
    machine = current()
    target = on_chip(machine, dst, "dst")
    if isinstance(value, Tile):
        machine.fault("unsupported", "memset fills with a number; copy a tensor with nisa.tensor_copy.")
    number = machine.number(value)
    if target.dtype.names and number != 0:
        machine.fault("unsupported", f"memset fills packed types with 0 alone, not with {value}.")
    whole = target.dtype.names or is_float(target.dtype) or float(number) == int(number)
    if not whole or (
        machine.version and target.dtype.kind in "iu" and isinstance(number, (float, np.floating))
    ):
        machine.fault("unsupported", f"memset cannot fill a tensor of {target.dtype} with {value!r}.")
    return into(machine, dst, "memset", engines(machine, engine, (VECTOR,), (GPSIMD,)), [number], np.asarray)
