"""The accumulator registers of ScalarE and VectorE, one for each partition, in both dialects.

What each command does to them stands on the pages of ``nki.isa.activation``, ``activate2``, ``exponential``,
``tensor_scalar_reduce``, ``tensor_scalar_cumulative``, ``range_select`` and ``select_reduce``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import BINARY, REDUCTIONS, operation_name
from accelopt_profiling.nki.compute.step import ComputeStep
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.instruction import SCALAR, VECTOR
from accelopt_profiling.nki.emulator.machine import Machine
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.instructions.enums import ReduceCmd

#: The value with which a reduction begins: what its operation leaves another as it is.
IDENTITY = {
    "add": 0.0, "subtract": 0.0, "multiply": 1.0, "max": -np.inf, "maximum": -np.inf, "min": np.inf, "minimum": np.inf,
    "abs_max": 0.0, "abs_min": np.inf,
}  # fmt: skip
#: The commands that the instructions of an engine take.
_COMMANDS = {
    SCALAR: (ReduceCmd.idle, ReduceCmd.reset, ReduceCmd.reduce, ReduceCmd.reset_reduce),
    VECTOR: (ReduceCmd.idle, ReduceCmd.reset_reduce, ReduceCmd.reduce, ReduceCmd.load_reduce),
}


def initial_registers(
    machine: Machine, engine: str, op: Any, command: Any, initial: Any, *, takes_initial: bool
) -> Any:
    """Return what the registers hold before an instruction reduces into them: a number, a tile or a step.

    Raises:
        KernelFaultError: the engine has no such command or operation, or the value to load is missing.
    """
    name = operation_name(op)
    if name not in IDENTITY:
        machine.fault(
            "unsupported",
            f"The registers do not reduce with {name or op!r}; they do with {', '.join(IDENTITY)}.",
        )
    if command not in _COMMANDS[engine] or (command is ReduceCmd.load_reduce and not takes_initial):
        commands = [c.name for c in _COMMANDS[engine] if takes_initial or c is not ReduceCmd.load_reduce]
        machine.fault(
            "unsupported",
            f"This instruction takes reduce_cmd.{', '.join(commands)}, not {getattr(command, 'name', repr(command))}.",
        )
    if command in (ReduceCmd.reset, ReduceCmd.reset_reduce):
        return IDENTITY[name]
    if command is ReduceCmd.load_reduce:
        if initial is None:
            machine.fault("unsupported", "reduce_cmd.load_reduce needs the value that it loads.")
        return initial
    return _held(machine, engine)


def _held(machine: Machine, engine: str) -> Any:
    """Return what an earlier instruction left in the registers; NaN, reported, if none did."""
    if engine not in machine.registers:
        machine.diagnostics.report(
            "uninitialised-read",
            f"The accumulator registers of {engine} are read here before an instruction has set them: begin the "
            "reduction with reduce_cmd.reset_reduce.",
            "error" if machine.mode == "full" else "warning",
        )
        return np.nan
    value, writer = machine.registers[engine]
    machine.recorder.forbid_replay_of_change(writer)
    if machine.deferred.order is not None:
        machine.deferred.order.keep_order()
    return value


def accumulate_rows(machine: Machine, engine: str, result: Tile) -> None:
    """Leave the last element of each partition of ``result``, which was just written, in the registers."""
    writer = machine.deferred.newest
    if writer is not None:
        writer.keep = True
    total = machine.defer(_last_column, writer)
    assert result.producer is not None
    machine.registers[engine] = _issued(machine, total), result.producer


def _last_column(x: Array) -> Any:
    return x.reshape(len(x), -1)[:, -1].copy()


def _issued(machine: Machine, step: ComputeStep | None, first: bool = False) -> ComputeStep | None:
    """Return a step whose result is kept, after it was put behind all others, or with ``first`` before the newest."""
    if step is not None:
        step.keep = True
        machine.deferred.steps.insert(len(machine.deferred.steps) - first, step)
    return step


def accumulate(
    machine: Machine, engine: str, result: Tile, op: Any, command: Any, place: Any, initial: Any = None, *,
    takes_initial: bool = False, negate: bool = False,
) -> None:  # fmt: skip
    """Reduce ``result``, which an instruction has just written, into the registers of its engine.

    ``place`` takes what the registers hold then, or with ``negate`` its negative; None leaves it in the registers. What
    is reduced is in float32, whatever the type that was written, and inside of the instruction's mask.

    Raises:
        KernelFaultError: an argument is not one that the instruction takes.
    """
    producer = result.producer
    assert producer is not None
    if command is ReduceCmd.idle:
        if engine == VECTOR:
            machine.registers.pop(engine, None)  # "the accumulator state may still be modified"
        if place is None:
            return
        total = _held(machine, engine)
    else:
        if result.where is not None:
            machine.fault("unsupported", "A reduction takes masks that cut off whole rows or columns only.")
        op = "add" if op is None else op
        total = initial_registers(machine, engine, op, command, initial, takes_initial=takes_initial)
        if command is not ReduceCmd.reset:
            values = result if result.valid is None else result.within(result.valid)
            total = _reduced(machine, values, operation_name(op), total)
        machine.registers[engine] = total, producer
    producer.opcode = "activation_reduce" if engine == SCALAR else "tensor_scalar_reduce"
    if place is None:
        return
    target = machine.operand(place, "reduce_res")
    if (target.shape[0], prod(target.shape[1:])) != (result.shape[0], 1):
        machine.fault(
            "out-of-bounds", f"reduce_res has the shape {target.shape}, not ({result.shape[0]}, 1)."
        )
    if result.valid is not None:
        target = target.within((result.valid[0], *((0, n) for n in target.shape[1:])))
    producer.writes.insert(
        0, target.region()
    )  # the last one is that of the result, which may be assigned elsewhere
    machine.write(target, machine.defer(_column, total, params=(target.shape, negate)))


def _column(shape: tuple[int, ...], negate: bool, held: Any) -> Array:
    """Return what registers hold as a tile of one column."""
    column = np.broadcast_to(np.asarray(held, np.float32).reshape(-1), (shape[0],)).reshape(shape)
    return np.negative(column) if negate else np.array(column)


def _reduced(machine: Machine, values: Tile, name: str, before: Any) -> ComputeStep | None:
    """Return the step that reduces ``values`` along its free dimensions together with what the registers hold."""
    step = machine.defer(_totals, values, before, params=(name,))
    if step is None or values.dtype == np.float32:
        return _issued(machine, step)
    # What is reduced is not rounded to the type of ``values``: compute it here too, before its input is written over.
    instruction = machine.deferred.steps[-1]
    params = name, values.shape, instruction.op, instruction.params
    return _issued(
        machine, ComputeStep(_totals_of, [*instruction.inputs, step.inputs[-1]], params), first=True
    )


def _totals(name: str, x: Array, held: Any) -> Array:
    total = REDUCTIONS[name](x.astype(np.float32, copy=False), axis=tuple(range(1, x.ndim)))
    return np.asarray(BINARY[name](total, np.asarray(held, np.float32).reshape(-1)))


def _totals_of(
    name: str, shape: tuple[int, ...], op: Callable[..., Any], params: tuple[Any, ...], *inputs: Any
) -> Array:
    """Return the totals of what another step computes, the last of ``inputs`` the registers before."""
    *values, held = inputs
    return _totals(name, np.asarray(op(*params, *values)).reshape(shape), held)
