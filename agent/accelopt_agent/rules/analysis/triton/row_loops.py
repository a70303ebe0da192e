"""Finds loops of a Triton kernel that walk over the same row in blocks, one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.loops import loop_variable
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_agent.rules.analysis.triton.kernel import TL, TritonKernel
from accelopt_agent.rules.analysis.triton.values import Evaluation, Value


@dataclass(frozen=True)
class RowLoop:
    """``for variable in range(0, length, block)``, or over the number of blocks, with plain statements only."""

    statement: Statement
    variable: str
    length: Value
    block: Value

    @property
    def body(self) -> list[cst.SimpleStatementLine]:
        assert isinstance(self.statement.node, cst.For)
        return [s for s in self.statement.node.body.body if isinstance(s, cst.SimpleStatementLine)]


def row_loops(kernel: TritonKernel, values: Evaluation) -> list[list[RowLoop]]:
    """Return loops with one length and block, grouped by the block of statements that they stand in; two or more
    each."""
    groups: dict[tuple[object, ...], list[RowLoop]] = {}
    for statement in kernel.flow.statements:
        loop = _row_loop(kernel, values, statement)
        if loop is not None:
            groups.setdefault((statement.block, loop.length, loop.block), []).append(loop)
    return [group for group in groups.values() if len(group) > 1]


def _row_loop(kernel: TritonKernel, values: Evaluation, statement: Statement) -> RowLoop | None:
    loop = statement.node
    if not isinstance(loop, cst.For) or loop.orelse is not None or not isinstance(loop.iter, cst.Call):
        return None
    variable, call = loop_variable(loop), loop.iter
    if variable is None or kernel.source.code(call.func) not in ("range", *_ranges(kernel)):
        return None
    if any(not isinstance(s, cst.SimpleStatementLine) or len(s.body) != 1 for s in loop.body.body):
        return None
    arguments = [values.of(a.value) for a in call.args if a.keyword is None]
    if any(value is None for value in arguments):
        return None
    if len(arguments) == 3 and arguments[0] is not None and arguments[0].number == 0:
        length, block = arguments[1], arguments[2]
    elif len(arguments) == 1 or (
        len(arguments) == 2 and arguments[0] is not None and arguments[0].number == 0
    ):
        count = _rounded_up(values, arguments[-1])
        if count is None:
            return None
        length, block = count
    else:
        return None
    if length is None or block is None or block.op != "parameter" or block.args[0] not in kernel.constexprs:
        return None
    return RowLoop(statement, variable, length, block)


def _ranges(kernel: TritonKernel) -> list[str]:
    return [name for word in ("range", "static_range") if (name := kernel.names.spelled(f"{TL}.{word}"))]


def _rounded_up(values: Evaluation, count: Value | None) -> tuple[Value, Value] | None:
    """Return the length and block of ``cdiv(length, block)`` or ``(length + block - 1) // block``."""
    if count is not None and count.op == "cdiv":
        length, block = count.args
        return (length, block) if isinstance(length, Value) and isinstance(block, Value) else None
    if count is not None and count.op == "FloorDivide":
        above, block = count.args
        if isinstance(above, Value) and isinstance(block, Value):
            terms = values.terms(above)
            if terms.get((block,)) == 1 and terms.get(()) == -1:
                rest = {p: n for p, n in terms.items() if p not in ((block,), ())}
                return values.total(rest), block
    return None
