"""Add up in registers what a program adds to one address, and make one atomic of it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel
from accelopt_agent.rules.analysis.triton.values import Evaluation, Value

#: Values that lanes differ in.
_LANES = ("arange", "load")


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    if kernel.spell("sum") is None:
        return
    values = Evaluation(kernel)
    values.walk(kernel.subject.function.body.body)
    for call in kernel.calls("atomic_add"):
        statement = kernel.flow.statement_of(call)
        placed = [a.value for a in call.args if a.keyword is None]
        if statement is None or len(placed) < 2 or not isinstance(kernel.source.parent(call), cst.Expr):
            continue
        address = _shared_address(kernel, values, placed[0])
        if address is None:
            continue
        total = _total(kernel, values, call)
        loop = statement.loops[-1] if statement.loops else None
        if loop is not None and statement.block is loop.body and _is_steady(kernel, values, loop, placed[0]):
            yield _after_the_loop(kernel, statement, loop=loop, call=call, address=address, total=total)
        elif total != kernel.source.code(placed[1]):
            edits = [*_arguments(kernel, call, address, total), *_unread(kernel, placed[0])]
            yield Rewrite(tuple(edits), f"Add the lanes up first, then once to {address}.")


def _shared_address(kernel: TritonKernel, values: Evaluation, node: cst.BaseExpression) -> str | None:
    """Return the address as written without the terms that only spread it over the lanes; None where lanes
    differ."""
    value = values.of(node)
    if value is None or any(_spreads(product) for product in values.terms(_without_zeros(values, value))):
        return None
    return _scalar(kernel, values, node)


def _without_zeros(values: Evaluation, value: Value) -> Value:
    terms = values.terms(value)
    return values.total({p: n for p, n in terms.items() if not any(_is_zeros(v) for v in p)})


def _is_zeros(value: Value) -> bool:
    return value.op == "call" and value.args[0] in ("zeros", "zeros_like")


def _spreads(product: tuple[Value, ...]) -> bool:
    for value in product:
        for part in value.parts():
            if part.op in ("unknown", "expression", "subscript") or part.op == "load":
                return True
            if part.op == "call" and part.args[0] not in ("program_id", "num_programs", "cdiv"):
                return True
    return False


def _scalar(kernel: TritonKernel, values: Evaluation, node: cst.BaseExpression) -> str | None:
    value = values.of(node)
    if value is None:
        return None
    if _without_zeros(values, value).number == 0:
        return ""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        sides = [_scalar(kernel, values, side) for side in (node.left, node.right)]
        if None in sides:
            return None
        return " + ".join(side for side in sides if side)
    if isinstance(node, cst.Name):
        statement = kernel.flow.definition(node)
        if statement is not None and statement.value is not None and _has_lanes(values, statement.value):
            return _scalar(kernel, values, statement.value)
        return node.value
    if _has_lanes(values, node):
        return None
    text = kernel.source.code(node)
    is_sum = isinstance(node, cst.BinaryOperation) and not isinstance(node.operator, cst.Multiply)
    return f"({text})" if is_sum else text


def _has_lanes(values: Evaluation, node: cst.BaseExpression) -> bool:
    """Return whether the expression is written with ranges or zeros, though its value may be one for all lanes."""
    kernel = values.kernel
    return any(
        kernel.is_call(c, "arange", "zeros", "full") for c in kernel.source.walk(node, cst.Call)
    ) or any(
        (value := values.of(n)) is not None and any(p.op == "call" for p in value.parts())
        for n in kernel.source.walk(node, cst.Name)
    )


def _total(kernel: TritonKernel, values: Evaluation, call: cst.Call) -> str:
    """Return the sum over the lanes that the atomic's mask lets through."""
    source = kernel.source
    placed = [a.value for a in call.args if a.keyword is None]
    operand, mask = placed[1], _mask(call)
    text = source.code(operand)
    value = values.of(operand)
    if value is not None and value.op == "call" and value.args[0] in ("sum", "max", "min"):
        return text
    if mask is not None and not _is_zero_outside(values, operand, mask):
        text = f"{kernel.spell('where')}({source.code(mask)}, {text}, 0.0)"
    return f"{kernel.spell('sum')}({text}, axis=0)"


def _mask(call: cst.Call) -> cst.BaseExpression | None:
    placed = [a.value for a in call.args if a.keyword is None]
    keyword = next((a.value for a in call.args if a.keyword is not None and a.keyword.value == "mask"), None)
    return keyword if keyword is not None else (placed[2] if len(placed) > 2 else None)


def _is_zero_outside(values: Evaluation, operand: cst.BaseExpression, mask: cst.BaseExpression) -> bool:
    """Return whether the value is zero in the lanes that the mask leaves out: loaded so, or a product with such."""
    value, where = values.of(operand), values.of(mask)
    if value is None or where is None:
        return False
    loads = [value] if value.op == "load" else []
    if value.op == "sum" and len(value.args) == 1:
        loads = [v for v in value.args[0][0] if v.op == "load"]
    return any(
        load.args[1] is where and isinstance(load.args[2], Value) and load.args[2].number == 0
        for load in loads
    )


def _is_steady(kernel: TritonKernel, values: Evaluation, loop: cst.For, node: cst.BaseExpression) -> bool:
    """Return whether every iteration of the loop adds to the same address."""
    value = values.of(node)
    return value is not None and not any(
        p.op in ("iteration", "unknown") for p in _without_zeros(values, value).parts()
    )


def _arguments(kernel: TritonKernel, call: cst.Call, address: str, total: str) -> list[ByteEdit]:
    source, gone = kernel.source, []
    placed = [a for a in call.args if a.keyword is None]
    edits = [source.replace(placed[0].value, address), source.replace(placed[1].value, total)]
    mask = _mask(call)
    gone = [a for a in call.args if a.value is mask]
    return [*edits, *source.removed(gone, call.args)]


def _after_the_loop(
    kernel: TritonKernel, statement: Statement, loop: cst.For, call: cst.Call, address: str, total: str
) -> Rewrite:
    source = kernel.source
    placed = next(a.value for a in call.args if a.keyword is None)
    name = next(n for n in ("total", "partial", "partial_sum") if not kernel.flow.occurrences(n))
    function = source.code(call.func)
    edits = (
        source.before(loop, f"{name} = 0.0"),
        source.replace(statement.node, source.with_comment(statement.node, f"{name} += {total}")),
        source.after(loop, f"{function}({address}, {name})"),
        *_unread(kernel, placed),
    )
    return Rewrite(edits, f"Add up in a register, then once to {address}.")


def _unread(kernel: TritonKernel, address: cst.BaseExpression) -> list[ByteEdit]:
    """Remove the variable that held the spread address, where only the atomic read it."""
    definition = kernel.flow.definition(address) if isinstance(address, cst.Name) else None
    only = kernel.flow.only_reader(definition) if definition is not None else None
    return [kernel.source.without(definition.node)] if definition is not None and only is not None else []
