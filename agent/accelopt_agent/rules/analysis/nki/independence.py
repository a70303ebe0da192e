"""Decides whether the iterations of a loop may run in another order, where the loop itself does not promise it."""

from __future__ import annotations

import libcst as cst

from accelopt_agent.rules.analysis.constants import number
from accelopt_agent.rules.analysis.loops import loop_variable
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel
from accelopt_agent.rules.analysis.statement import Statement

#: Statements that end an iteration early.
JUMPS = (cst.Break, cst.Continue, cst.Return, cst.Raise)


def independent(kernel: NkiKernel, loop: cst.For) -> bool:
    """Return whether no iteration of ``loop`` reads what another one writes, and no two write the same place.

    A variable must be bound in an iteration before it is read, and what an iteration writes must be made in it or be a
    part that the loop variable picks, read by no other index.
    """
    flow, variable = kernel.flow, loop_variable(loop)
    if variable is None or any(isinstance(n, JUMPS) for n in kernel.source.below(loop.body)):
        return False
    inside = [s for s in flow.statements if loop in s.loops]
    own = {name for s in inside for name in s.writes if binds_first(inside, name)}
    for statement in inside:
        if not statement.simple:
            continue
        for name in statement.writes - own:
            if name not in statement.stores or not _apart(
                kernel, loop, statement=statement, name=name, own=own
            ):
                return False
        for name in statement.stores & own:
            if not flow.sharing([name]) <= own:
                return False
    return True


def binds_first(inside: list[Statement], name: str) -> bool:
    """Return whether the first statement of an iteration that has to do with ``name`` binds it anew."""
    first = next((s for s in inside if name in s.writes | s.reads and (s.simple or s.binds(name))), None)
    return first is not None and first.binds(name) and name not in first.reads - _own_loop(first)


def _own_loop(statement: Statement) -> set[str]:
    """A loop's header stands for its body too, which may read the variable."""
    return set() if statement.simple else set(statement.reads)


def _apart(kernel: NkiKernel, loop: cst.For, statement: Statement, name: str, own: set[str]) -> bool:
    """Return whether ``statement`` writes a part of ``name`` that the loop variable picks, and the loop touches no
    part of it that another value of the variable picks: one of the indices that do is the same everywhere."""
    flow, source, written = kernel.flow, kernel.source, statement.target
    if (
        not isinstance(written, cst.Subscript)
        or not isinstance(written.value, cst.Name)
        or written.value.value != name
    ):
        return False
    apart = [p for p, element in enumerate(written.slice) if _apart_in(kernel, element.slice, loop)]
    for shared in flow.sharing([name]) - own:
        for use in flow.occurrences(shared):
            if loop not in source.parents(use):
                continue
            parent = source.parent(use)
            if isinstance(parent, cst.Attribute) and parent.attr.value in ("dtype", "shape"):
                continue
            if not isinstance(parent, cst.Subscript) or len(parent.slice) != len(written.slice):
                return False
            if not any(
                source.code(parent.slice[p].slice) == source.code(written.slice[p].slice) for p in apart
            ):
                return False
    return bool(apart)


def _apart_in(kernel: NkiKernel, index: cst.BaseSlice, loop: cst.For) -> bool:
    variable = loop_variable(loop) or ""
    if isinstance(index, cst.Slice):
        if index.lower is None or index.upper is None or index.step is not None:
            return False
        ends = [_at(kernel, end, variable, i) for i in (0, 1) for end in (index.lower, index.upper)]
        if any(end is None for end in ends):
            return False
        low, high, next_low, _ = (end or 0 for end in ends)
        return next_low >= high > low or next_low <= low - (high - low)
    value = index.value if isinstance(index, cst.Index) else None
    if isinstance(value, cst.Name):
        if value.value == variable:
            return True
        bound = kernel.flow.binding(value.value)
        definition = bound[0].value if len(bound) == 1 and loop in bound[0].loops else None
        return (
            definition is not None
            and isinstance(definition, cst.Call)
            and _steps(kernel, definition, variable)
        )
    return isinstance(value, cst.Call) and _steps(kernel, value, variable)


def _at(kernel: NkiKernel, node: cst.BaseExpression, variable: str, value: int) -> float | int | None:
    """Return an end of a slice in one iteration.

    Other loop variables count as 0, which moves both ends alike.
    """
    return number(kernel.flow, node, {**dict.fromkeys(kernel.loop_variables, 0), variable: value})


def _steps(kernel: NkiKernel, call: cst.Call, variable: str) -> bool:
    """``nl.ds(i * W, W)``, or ``nl.ds(first, width)`` where ``first`` is ``i * W`` and ``width`` at most W."""
    if kernel.path(call.func) != f"{NL}.ds" or len(call.args) != 2:
        return False
    first, width = (_bound_to(kernel, arg.value) for arg in call.args)
    if not isinstance(first, cst.BinaryOperation) or not isinstance(first.operator, cst.Multiply):
        return False
    for one, step in ((first.left, first.right), (first.right, first.left)):
        if isinstance(one, cst.Name) and one.value == variable:
            return _at_most(kernel, width, step)
    return False


def _bound_to(kernel: NkiKernel, node: cst.BaseExpression) -> cst.BaseExpression:
    """Return the value of a variable that is bound once, inside a loop; else the node itself."""
    if isinstance(node, cst.Name) and node.value not in kernel.loop_variables:
        bound = kernel.flow.binding(node.value)
        if len(bound) == 1 and bound[0].loops and bound[0].value is not None:
            return bound[0].value
    return node


def _at_most(kernel: NkiKernel, width: cst.BaseExpression, step: cst.BaseExpression) -> bool:
    if kernel.source.same(width, step):
        return True
    if isinstance(width, cst.Call) and isinstance(width.func, cst.Name) and width.func.value == "min":
        return any(_at_most(kernel, arg.value, step) for arg in width.args)
    one, other = number(kernel.flow, width), number(kernel.flow, step)
    return one is not None and other is not None and 0 < one <= other
