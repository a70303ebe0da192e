"""Visit the tiles of a matrix product in groups of rows, so that programs near in time share what is in L2."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel
from accelopt_agent.rules.analysis.triton.tile_dimensions import TileDimensions

#: Rows of tiles per group, as in Triton's own matrix product tutorial.
_GROUP = 8


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    if not kernel.calls("dot") or kernel.calls("swizzle2d"):
        return
    products = kernel.subject.analysis(TileDimensions).products
    if not all(p.rows.axes and p.columns.axes for p in products):
        return  # attention goes over the columns in a loop: its programs share no columns
    swizzle, programs = kernel.spell("swizzle2d"), kernel.spell("num_programs")
    if swizzle is None or programs is None:
        return
    by_axis = {axis: s for s in kernel.flow.simple() if (axis := _axis(kernel, s)) is not None}
    if len(kernel.calls("program_id")) != len(by_axis):
        return  # one is read twice, or inside of something: both would have to be swizzled
    apart = all(not p.rows.axes & p.columns.axes for p in products)
    if (
        set(by_axis) == {"0", "1"} and apart
    ):  # else one of them counts batches, or parts of the inner dimension
        rewrite = _two_axes(kernel, by_axis["0"], by_axis["1"], swizzle, programs)
        if rewrite is not None:
            yield rewrite
    elif set(by_axis) == {"0"}:
        rewrite = _one_axis(kernel, by_axis["0"], swizzle)
        if rewrite is not None:
            yield rewrite


def _axis(kernel: TritonKernel, statement: Statement) -> str | None:
    call = statement.value
    if not isinstance(call, cst.Call) or not kernel.is_call(call, "program_id") or len(call.args) != 1:
        return None
    return kernel.source.code(call.args[0].value) if isinstance(statement.target, cst.Name) else None


def _two_axes(
    kernel: TritonKernel, first: Statement, second: Statement, swizzle: str, programs: str
) -> Rewrite | None:
    earlier, later = sorted((first, second), key=lambda s: kernel.source.start(s.node))
    if earlier.block is not later.block or _read_between(kernel, earlier, later):
        return None
    names = f"{first.target_name}, {second.target_name}"
    line = f"{names} = {swizzle}({names}, {programs}(0), {programs}(1), {_GROUP})"
    return Rewrite((kernel.source.after(later.node, line),), f"Visit tiles in groups of {_GROUP} rows.")


def _one_axis(kernel: TritonKernel, program: Statement, swizzle: str) -> Rewrite | None:
    """``m = pid // count`` and ``n = pid % count``: tiles in row order."""
    name, rows, columns, count = program.target_name, None, None, None
    for statement in kernel.flow.simple():
        value = statement.value
        if not isinstance(value, cst.BinaryOperation) or not isinstance(statement.target, cst.Name):
            continue
        if kernel.source.code(value.left) != name or not isinstance(value.right, cst.Name):
            continue
        if isinstance(value.operator, cst.FloorDivide):
            rows, count = statement, value.right.value
        elif isinstance(value.operator, cst.Modulo) and value.right.value == count:
            columns = statement
    if rows is None or columns is None or name is None or rows.block is not columns.block:
        return None
    if len(kernel.flow.occurrences(name)) != 3 or _read_between(kernel, rows, columns):
        return None
    programs = kernel.spell("num_programs")
    names = f"{rows.target_name}, {columns.target_name}"
    line = f"{names} = {swizzle}({names}, {programs}(0) // {count}, {count}, {_GROUP})"
    return Rewrite((kernel.source.after(columns.node, line),), f"Visit tiles in groups of {_GROUP} rows.")


def _read_between(kernel: TritonKernel, first: Statement, second: Statement) -> bool:
    """Return whether the name that ``first`` binds is used before ``second``: there it would be the one before
    swizzling."""
    between = kernel.flow.between(first, second)
    return any(first.target_name in s.reads | s.writes for s in between)
