"""Scale the rows of a product after it instead of the rows of its first operand before it, where that is wider."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.nki.elementwise import ScalarSteps, keeps_precision, scalar_steps
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiCall, NkiKernel, open_beta1
from accelopt_agent.rules.analysis.nki.operand_kind import kind
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.statement import Statement, root_name


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_beta1(subject)
    if kernel is None:
        return
    for instruction in kernel.instructions:
        scaled = scalar_steps(kernel, instruction)
        if scaled is not None and _scales_rows(kernel, scaled):
            rewrite = _afterwards(kernel, scaled)
            if rewrite is not None:
                yield rewrite


def _scales_rows(kernel: NkiKernel, scaled: ScalarSteps) -> bool:
    """Return whether the instruction multiplies or divides a tile by a column, and binds a variable."""
    statement, (step, *more) = scaled.instruction.statement, scaled.steps
    return (
        statement is not None
        and isinstance(statement.target, cst.Name)
        and isinstance(scaled.data, cst.Name)
        and not more
        and step.op in ("multiply", "divide")
        and not (step.reverse and step.op == "divide")
        and kind(kernel, scaled.data) == "tile"
        and kind(kernel, step.operand) == "column"
        and scaled.instruction.get("mask") is None
    )


def _afterwards(kernel: NkiKernel, scaled: ScalarSteps) -> Rewrite | None:
    flow, source, instruction = kernel.flow, kernel.source, scaled.instruction
    assert instruction.statement is not None
    uses = flow.uses_after(instruction.statement)
    sums = {_sum_of(kernel, use) for use in uses or ()}
    if not uses or len(sums) != 1 or (found := sums.pop()) is None:
        return None
    copy = _copied(kernel, found, instruction.statement)
    if copy is None or copy.statement is None or not keeps_precision(kernel, instruction, copy):
        return None
    (step,), data = scaled.steps, source.code(scaled.data)
    if not flow.unchanged(instruction.statement, copy.statement, flow.variables(instruction.call)):
        return None
    text = _scaling(
        kernel, instruction, found, step.op, source.code(step.operand), kernel.code(copy.get("dtype"))
    )
    if text is None:
        return None
    edits = [source.replace_with_parentheses(copy.call, text), *kernel.without(instruction)]
    edits += [source.replace(use, data) for use in uses]
    line = source.line(instruction.call)
    return Rewrite(tuple(edits), f"Do the {step.op} of line {line} on {found}, after the product.")


def _sum_of(kernel: NkiKernel, use: cst.Name) -> str | None:
    """Return the variable that a product with ``use`` on its left is assigned or added to; None for any other
    use."""
    source, operand = kernel.source, _operand(kernel, use)
    call = next((p for p in source.parents(use) if isinstance(p, cst.Call)), None)
    product = None if call is None else kernel.instruction(call)
    if product is None or product.path != f"{NL}.matmul" or product["x"] is not operand:
        return None
    statement = kernel.flow.statement_of(use)
    if set(product.args) != {"x", "y"} or statement is None:
        return None
    target = _target(statement, product.call)
    return None if target is None else root_name(target)


def _operand(kernel: NkiKernel, use: cst.Name) -> cst.BaseExpression:
    """``use`` or the part of it that is read."""
    parent = kernel.source.parent(use)
    return parent if isinstance(parent, cst.Subscript) and parent.value is use else use


def _target(statement: Statement, product: cst.CSTNode) -> cst.BaseExpression | None:
    """Return the target that ``product`` alone is assigned or added to."""
    if statement.value is product and statement.target is not None:
        return statement.target
    body = statement.node.body if isinstance(statement.node, cst.SimpleStatementLine) else ()
    only = body[0] if len(body) == 1 else None
    adds = (
        isinstance(only, cst.AugAssign) and isinstance(only.operator, cst.AddAssign) and only.value is product
    )
    return only.target if adds and isinstance(only, cst.AugAssign) else None


def _copied(kernel: NkiKernel, name: str, scaled: Statement) -> NkiCall | None:
    """Return the copy that alone reads the sum ``name``, in the block of ``scaled``, if all that is added to
    it is scaled."""
    flow = kernel.flow
    allocation, found = flow.allocation(name), None
    for occurrence in flow.occurrences(name):
        statement = flow.statement_of(occurrence)
        copy = next((i for i in kernel.of("nl.copy", "nisa.tensor_copy") if i.statement is statement), None)
        if copy is not None and copy["src"] is occurrence and found is None:
            found = copy
        elif statement is None or (
            statement is not allocation and not _adds_scaled(kernel, statement, scaled)
        ):
            return None
    if found is None or found.statement is None or found.statement.block is not scaled.block:
        return None
    inside = allocation is None or allocation.block is scaled.block
    plain = not set(found.args) - {"src", "dtype"}
    return found if inside and plain and flow.sharing([name]) == {name} else None


def _adds_scaled(kernel: NkiKernel, statement: Statement, scaled: Statement) -> bool:
    uses = kernel.flow.uses_after(scaled) or []
    return any(kernel.flow.statement_of(use) is statement for use in uses)


def _scaling(
    kernel: NkiKernel, before: NkiCall, data: str, op: str, column: str, dtype: str | None
) -> str | None:
    if op == "divide":
        return kernel.spell("nl.divide", data, column, dtype=dtype)
    multiply = kernel.spelled(f"{NL}.multiply")
    if multiply is None:
        return None
    engine = kernel.code(before.get("engine"))
    return kernel.spell("nisa.tensor_scalar", data, multiply, column, dtype=dtype, engine=engine)
