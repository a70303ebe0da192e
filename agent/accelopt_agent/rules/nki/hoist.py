"""Load or compute before a loop what it does not change: a tile, a broadcast, or arithmetic on tiles."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.hoisting import departure
from accelopt_agent.rules.analysis.nki.elementwise import activation, pair, reduction, scalar_steps
from accelopt_agent.rules.analysis.nki.kernel import INDEXING, NkiKernel
from accelopt_agent.rules.analysis.nki.loop_invariants import hoisted
from accelopt_agent.rules.analysis.nki.operand_kind import kind
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement


def hoist_load(kernel: NkiKernel) -> Iterator[Rewrite]:
    if kernel.dialect.mutates:
        yield from hoisted(kernel, "Load", loads=True)
        return
    for load in kernel.of("nl.load"):
        if load.statement is not None and (move := departure(kernel.flow, load.statement, INDEXING)):
            yield move.rewrite(kernel.flow, f"Load {load.statement.target_name}")


def hoist_compute(kernel: NkiKernel) -> Iterator[Rewrite]:
    if kernel.dialect.mutates:
        yield from hoisted(kernel, "Compute", loads=False)
        return
    for statement in kernel.flow.simple():
        if statement.loops and _computes(kernel, statement):
            move = departure(kernel.flow, statement, INDEXING)
            if move is not None:
                yield move.rewrite(kernel.flow, f"Compute {statement.target_name}")


def _computes(kernel: NkiKernel, statement: Statement) -> bool:
    value = statement.value
    function = value.func if isinstance(value, cst.Call) else None
    if isinstance(function, cst.Attribute) and function.attr.value == "broadcast_to":
        return True  # nl.broadcast_to(tile, ...) or tile.broadcast_to(...)
    instruction = kernel.instruction(value, statement) if value is not None else None
    if instruction is None or value is None:
        return False
    if activation(kernel, instruction) or reduction(kernel, instruction):
        return True
    return (
        bool(scalar_steps(kernel, instruction) or pair(kernel, instruction))
        and kind(kernel, value) != "number"
    )
