"""Recognizes parts of rows that a loop takes one after the other in today's dialect: ``nl.ds(j * W, W)``, or the slice
``j * W : (j + 1) * W``."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.constants import factor
from accelopt_agent.rules.analysis.loops import loop_variable
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel
from accelopt_agent.rules.analysis.parsed_source import canonical


@dataclass(frozen=True)
class RowSlice:
    """``part`` of ``tensor`` takes the columns ``slice`` of its rows in an iteration of ``loop``; ``whole`` takes
    those of all iterations, ``length`` many. ``used`` are the other variables in its indices."""

    loop: cst.For
    tensor: str
    part: cst.Subscript
    slice: str
    whole: str
    length: str
    used: frozenset[str]


def row_slice(kernel: NkiKernel, node: cst.BaseExpression | None, loop: cst.For) -> RowSlice | None:
    """Return the part of its rows that ``node`` takes in an iteration of ``loop``, on which no other index depends."""
    variable, source = loop_variable(loop), kernel.source
    if not isinstance(node, cst.Subscript) or not isinstance(node.value, cst.Name) or len(node.slice) < 2:
        return None
    last = node.slice[-1].slice
    if variable is None or not isinstance(loop.iter, cst.Call) or len(loop.iter.args) != 1:
        return None
    call = _span(kernel, last.value, loop) if isinstance(last, cst.Index) else None
    span = (call.args[0].value, call.args[1].value) if call is not None else _slice(kernel, last)
    if span is None:
        return None
    first, width = span
    if not isinstance(first, cst.BinaryOperation) or not isinstance(first.operator, cst.Multiply):
        return None
    sides = [(first.left, first.right), (first.right, first.left)]
    if not any(source.code(one) == variable and source.same(step, width) for one, step in sides):
        return None
    others = node.slice[:-1]
    used = {name for other in others for name in kernel.flow.variables(other)}
    if variable in used or variable in kernel.flow.variables(width):
        return None
    length = f"{factor(source.code(width))} * {factor(source.code(loop.iter.args[0].value))}"
    before = ", ".join(source.code(other).strip(", ") for other in others)
    columns = f"0 : {length}" if call is None else f"{source.code(call.func)}(0, {length})"
    whole = f"{node.value.value}[{before}, {columns}]"
    used |= kernel.flow.variables(width) | kernel.flow.variables(loop.iter)
    return RowSlice(loop, node.value.value, node, source.code(last), whole, length, frozenset(used))


def _slice(kernel: NkiKernel, index: cst.BaseSlice) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """Return where a slice ``a * W : (a + 1) * W`` or ``a * W : a * W + W`` begins, and W."""
    if not isinstance(index, cst.Slice):
        return None
    low, high = index.lower, index.upper
    if not isinstance(low, cst.BinaryOperation) or high is None or index.step is not None:
        return None
    code = kernel.source.code
    for one, step in ((low.left, low.right), (low.right, low.left)):
        if isinstance(low.operator, cst.Multiply) and isinstance(one, cst.Name):
            a, w = code(one), factor(code(step))
            ends = (f"({a} + 1) * {w}", f"{w} * ({a} + 1)", f"{a} * {w} + {w}", f"{w} * {a} + {w}")
            if canonical(code(high)) in {canonical(end) for end in ends}:
                return low, step
    return None


def _span(kernel: NkiKernel, node: cst.BaseExpression, loop: cst.For) -> cst.Call | None:
    """``nl.ds(a, b)``, or a variable bound to it in the loop."""
    if isinstance(node, cst.Name):
        bound = kernel.flow.binding(node.value)
        if len(bound) != 1 or loop not in bound[0].loops or bound[0].value is None:
            return None
        node = bound[0].value
    is_span = isinstance(node, cst.Call) and kernel.path(node.func) == f"{NL}.ds" and len(node.args) == 2
    return node if is_span and isinstance(node, cst.Call) else None
