"""The registers of ScalarE and VectorE in which an instruction adds its result up."""

from __future__ import annotations

from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import operation_name
from accelopt_profiling.nki.current.operands import (
    on_chip,
    per_partition,
    real,
    reduction,
    repeats,
)  # fmt: skip
from accelopt_profiling.nki.data.block import Array
from accelopt_profiling.nki.data.instruction import SCALAR
from accelopt_profiling.nki.emulator.machine import Machine
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.frontend.isa import ReduceCmd


def reduce_into_registers(
    machine: Machine,
    engine: str,
    result: Tile,
    dst: Any,
    op: Any,
    place: Any,
    command: ReduceCmd,
    initial: Any,
    negate: bool = False,
) -> None:
    """Bring the result of an instruction into the accumulator registers of its engine, as ``command`` says, and write
    them, or with ``negate`` what is left of 0, to ``place``."""
    if command is ReduceCmd.idle and place is None:
        return
    target = machine.executor.operand(dst)
    producer = result.producer
    assert producer is not None
    producer.opcode = "activation_reduce" if engine == SCALAR else "tensor_scalar_reduce"
    function = reduction(machine, op or "add")
    largest = operation_name(op or "add") in ("max", "maximum")
    kept = machine.registers.get(engine) if command is ReduceCmd.reduce else None

    if kept is not None:
        machine.recorder.forbid_replay()  # an earlier iteration may have left it
    if kept is not None and machine.deferred.order is not None:
        machine.deferred.order.keep_order()

    def compute(values: Array, before: Any) -> Any:
        total = real(function(real(values), axis=tuple(range(1, values.ndim))))
        if command is ReduceCmd.load_reduce:
            total = total + np.float32(0 if initial is None else initial)
        elif before is not None:
            total = np.maximum(total, before) if largest else total + before
        return np.zeros_like(total) if command is ReduceCmd.reset else total

    total = machine.executor.defer(compute, result if repeats(target) else target, kept)
    if total is not None:
        total.keep = True
        machine.registers[engine] = total
        machine.deferred.steps.append(total)
    if place is not None:
        into_place = on_chip(machine, place, "reduce_res")
        if per_partition(machine, into_place) != (target.shape[0], 1):
            machine.fault(
                "out-of-bounds", f"reduce_res has the shape {into_place.shape}, not ({target.shape[0]}, 1)."
            )
        producer.writes.append(into_place.region())
        machine.executor.write(
            into_place,
            machine.executor.defer(lambda x: (-x if negate else x).reshape(into_place.shape), total),
        )
