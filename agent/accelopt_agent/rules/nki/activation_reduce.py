"""Sum what an activation computes while it computes it, instead of reading the tile again."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.nki.elementwise import FreeAxisReduction, activation, reduction, square
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel
from accelopt_agent.rules.analysis.nki.operand_kind import kind
from accelopt_agent.rules.analysis.nki.tile_shapes import tile
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for instruction in kernel.instructions:
        row_sum = reduction(kernel, instruction)
        if row_sum is not None and row_sum.op == "add":
            rewrite = _fused(kernel, row_sum)
            if rewrite is not None:
                yield rewrite


def _fused(kernel: NkiKernel, row_sum: FreeAxisReduction) -> Rewrite | None:
    source, flow = kernel.source, kernel.flow
    total = row_sum.instruction
    producer = kernel.definition(row_sum.data)
    before = activation(kernel, producer) or square(kernel, producer)
    if producer is None or before is None or producer.statement is None or total.statement is None:
        return None
    if producer.statement.block is not total.statement.block or kind(kernel, before.data) != "tile":
        return None
    if any(kernel.code(i.get("mask")) is not None for i in (producer, total)):
        return None  # what a masked instruction adds up is not the same in both forms
    name, target = total.statement.target_name, total.statement.target
    stored = producer.statement.target_name
    if name is None or target is None or stored is None:
        return None
    if not flow.unchanged(producer.statement, total.statement, [stored]):
        return None
    allocation = _made_between(kernel, name, producer.statement, total.statement)
    between = [s for s in flow.between(producer.statement, total.statement) if s is not allocation]
    if any(name in s.reads | s.writes for s in between):
        return None
    edits: list[ByteEdit] = []
    if allocation is not None:
        if not flow.unchanged(producer.statement, allocation, flow.variables(allocation.node) - {name}):
            return None
        edits += [
            source.before(producer.statement.node, source.with_comment(allocation.node)),
            source.moved(allocation.node),
        ]
    if not total.statement.in_memory:
        allocated = _column(kernel, name, before.data)
        if allocated is None:
            return None
        edits.append(source.before(producer.statement.node, allocated))
        result = f"{name}[...]"
    else:
        result = source.code(target)
        names = flow.variables(target) - {name}
        if not flow.unchanged(producer.statement, total.statement, names):
            return None
    text = kernel.respelled(
        producer,
        "nisa.activation_reduce",
        op=kernel.spelled(f"{NL}.{before.op}"),
        data=source.code(before.data),
        reduce_op=kernel.spelled(f"{NL}.add"),
        reduce_res=result,
        bias=kernel.code(before.bias),
        scale=kernel.code(before.scale),
        dtype=kernel.code(producer.get("dtype")),
    )
    if text is None:
        return None
    edits += [source.replace_with_parentheses(producer.call, text), source.without(total.statement.node)]
    return Rewrite(tuple(edits), f"Sum the result of the {before.op} activation in the same instruction.")


def _made_between(kernel: NkiKernel, name: str, first: Statement, second: Statement) -> Statement | None:
    """Return the statement between the two that makes the tensor ``name``, which the second writes."""
    allocation = kernel.flow.allocation(name) if second.destination is not None else None
    return allocation if allocation in kernel.flow.between(first, second) else None


def _column(kernel: NkiKernel, name: str, data: cst.BaseExpression) -> str | None:
    """Return the statement that allocates a column for the sum, one value per partition of ``data``."""
    if not isinstance(data, cst.Name):
        return None
    words = {w: kernel.spelled(f"{NL}.{w}") for w in ("ndarray", "par_dim", "float32", "sbuf")}
    if None in words.values():
        return None
    data_shape = tile(kernel, data)
    rows = f"{data.value}.shape[0]" if data_shape is None else data_shape.rows
    shape = f"({words['par_dim']}({rows}), 1)"
    return f"{name} = {words['ndarray']}({shape}, dtype={words['float32']}, buffer={words['sbuf']})"
