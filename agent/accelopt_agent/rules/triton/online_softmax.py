"""Find a row's maximum and its sum of exponentials in one pass over the row instead of two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel


@dataclass(frozen=True)
class _Pass:
    """A loop over blocks that ends in ``target = combine(target, reduce(value))``."""

    loop: cst.For
    target: str
    update: Statement
    value: cst.BaseExpression  # what is reduced
    axis: str


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    loops = [s for s in kernel.flow.statements if isinstance(s.node, cst.For)]
    for first in loops:
        maximum = _pass(kernel, first, "maximum", "max")
        if maximum is None:
            continue
        for second in (s for s in loops if s.block is first.block and s is not first):
            total = _pass(kernel, second, "add", "sum")
            rewrite = (
                _merged(kernel, maximum, total=total, first=first, second=second)
                if total is not None
                else None
            )
            if rewrite is not None:
                yield rewrite
                return


def _pass(kernel: TritonKernel, statement: Statement, combine: str, reduce: str) -> _Pass | None:
    loop = statement.node
    assert isinstance(loop, cst.For)
    body = [s for s in kernel.flow.simple() if s.block is loop.body]
    if len(body) != len(loop.body.body) or not body:
        return None
    update = body[-1]
    reduction = _reduced(kernel, update, combine, reduce)
    if reduction is None:
        return None
    target, call = reduction
    if not all(isinstance(s.target, cst.Name) for s in body[:-1]):
        return None
    axis = kernel.source.code(call.args[1]) if len(call.args) > 1 else ""
    return _Pass(loop, target, update=update, value=call.args[0].value, axis=axis)


def _reduced(
    kernel: TritonKernel, update: Statement, combine: str, reduce: str
) -> tuple[str, cst.Call] | None:
    """``m = tl.maximum(m, tl.max(x))``, ``s += tl.sum(x)`` or ``s = s + tl.sum(x)``: the target and the reduction."""
    node = update.node.body[0] if isinstance(update.node, cst.SimpleStatementLine) else None
    sides: list[cst.BaseExpression]
    if isinstance(node, cst.AugAssign) and combine == "add" and isinstance(node.operator, cst.AddAssign):
        target, sides = node.target, [node.target, node.value]
    elif isinstance(node, cst.Assign) and len(node.targets) == 1:
        target, value = node.targets[0].target, node.value
        if isinstance(value, cst.Call) and kernel.is_call(value, combine) and len(value.args) == 2:
            sides = [a.value for a in value.args]
        elif (
            combine == "add"
            and isinstance(value, cst.BinaryOperation)
            and isinstance(value.operator, cst.Add)
        ):
            sides = [value.left, value.right]
        else:
            return None
    else:
        return None
    if not isinstance(target, cst.Name) or not any(kernel.source.same(s, target) for s in sides):
        return None
    reduction = next((s for s in sides if isinstance(s, cst.Call) and kernel.is_call(s, reduce)), None)
    return (target.value, reduction) if reduction is not None and len(reduction.args) in (1, 2) else None


def _merged(
    kernel: TritonKernel, maximum: _Pass, total: _Pass, first: Statement, second: Statement
) -> Rewrite | None:
    """Add the sum to the first loop, rescaled whenever the maximum grows, and take the second loop away."""
    flow, source = kernel.flow, kernel.source
    exp, where = _exponential(kernel, total)
    if exp is None:
        return None
    argument = exp.args[0].value
    if not isinstance(argument, cst.BinaryOperation) or not isinstance(argument.operator, cst.Subtract):
        return None
    if source.code(argument.right) != maximum.target or _values(kernel, maximum) != _values(
        kernel, total, exp
    ):
        return None
    if not _same_header(kernel, maximum.loop, total.loop):
        return None
    between = flow.between(first, second)
    if any(not s.simple or maximum.target in s.reads | s.writes for s in between):
        return None
    start = next((s for s in flow.simple() if s.binds(total.target) and not s.loops), None)
    if start is None or start.block is not first.block or not _is_zero(kernel, start):
        return None
    if any(s is not start and s.writes & (flow.variables(total.loop) - {total.target}) for s in between):
        return None
    block, name = source.code(maximum.value), f"new_{maximum.target}"
    base = f"base_{maximum.target}"
    if flow.occurrences(name) or flow.occurrences(base):
        return None
    axis = f", {maximum.axis}" if maximum.axis else ""
    words = {w: kernel.spell(w) for w in ("maximum", "max", "exp", "sum", "where")}
    shifted = f"{words['exp']}({block} - {base})"
    if where is not None:
        shifted = f"{source.code(where.func)}({source.code(where.args[0].value)}, {shifted}, 0.0)"
    total_axis = f", {total.axis}" if total.axis else ""
    before = f"{total.target} * {words['exp']}({maximum.target} - {base})"
    lines = [
        f"{name} = {words['maximum']}({maximum.target}, {words['max']}({block}{axis}))",
        # Until the first finite element the maximum is minus infinity: a difference with it would be NaN.
        f'{base} = {words["where"]}({name} == -float("inf"), 0.0, {name})',
        f"{total.target} = {before} + {words['sum']}({shifted}{total_axis})",
        f"{maximum.target} = {name}",
    ]
    edits: list[ByteEdit] = [
        source.replace(maximum.update.node, f"\n{source.indent(maximum.update.node)}".join(lines)),
        source.without(total.loop),
    ]
    if start in between:
        edits += [source.before(first.node, source.with_comment(start.node)), source.moved(start.node)]
    return Rewrite(tuple(edits), "Find the maximum and the sum of exponentials in one pass over the row.")


def _exponential(kernel: TritonKernel, total: _Pass) -> tuple[cst.Call | None, cst.Call | None]:
    """Return the exponential that is summed, behind a variable or a ``tl.where(inside, exp, 0.0)`` if there
    is one."""
    value, where = _meaning(kernel, total.value), None
    if isinstance(value, cst.Call) and kernel.is_call(value, "where") and len(value.args) == 3:
        if kernel.source.code(value.args[2].value) not in ("0.0", "0"):
            return None, None
        where, value = value, _meaning(kernel, value.args[1].value)
    exp = value if isinstance(value, cst.Call) and kernel.is_call(value, "exp") else None
    return exp, where


def _meaning(kernel: TritonKernel, node: cst.BaseExpression) -> cst.BaseExpression:
    statement = kernel.flow.definition(node) if isinstance(node, cst.Name) else None
    return statement.value if statement is not None and statement.value is not None else node


def _values(kernel: TritonKernel, loop_pass: _Pass, exp: cst.Call | None = None) -> list[str]:
    """Return the values that a pass computes per block, as text without the reduction: two passes with equal texts read
    the same values."""
    value = loop_pass.value
    if exp is not None:
        argument = exp.args[0].value
        assert isinstance(argument, cst.BinaryOperation)
        value = argument.left
    needed, texts = {kernel.source.code(value)}, [kernel.source.key(value)]
    for statement in reversed([s for s in kernel.flow.simple() if s.block is loop_pass.loop.body]):
        if (
            statement.target_name in needed
            and statement.value is not None
            and statement is not loop_pass.update
        ):
            needed |= kernel.flow.variables(statement.value)
            texts.append(f"{statement.target_name} = {kernel.source.key(statement.value)}")
    return texts


def _same_header(kernel: TritonKernel, one: cst.For, other: cst.For) -> bool:
    return kernel.source.same(one.target, other.target) and kernel.source.same(one.iter, other.iter)


def _is_zero(kernel: TritonKernel, start: Statement) -> bool:
    value = start.value
    return value is not None and (
        kernel.source.code(value) in ("0.0", "0.")
        or (isinstance(value, cst.Call) and kernel.is_call(value, "zeros"))
    )
