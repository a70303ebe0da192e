"""Finds values that a loop recomputes in every iteration: the statements that make one, and the loops it depends on."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.loops import loop_variable, runs_each_iteration
from accelopt_agent.rules.analysis.nki.kernel import INDEXING, NkiKernel
from accelopt_agent.rules.analysis.statement import Statement

#: Functions that compute from their arguments alone and write nothing else.
_PURE = INDEXING | {
    "load", "copy", "transpose", "broadcast_to", "add", "subtract", "multiply", "divide", "maximum", "minimum", "exp",
    "sqrt", "rsqrt", "square", "reciprocal", "negative", "log", "tanh", "sigmoid", "silu", "gelu", "sum", "max", "min",
    "activation", "tensor_scalar", "tensor_tensor", "tensor_copy", "nc_transpose", "reshape",
}  # fmt: skip


@dataclass(frozen=True)
class Chain:
    """``statements``, in order, the last of which binds the value. They can run before ``outer``, once for each
    iteration of ``over``, loops inside of it."""

    statements: tuple[Statement, ...]
    outer: cst.For
    over: tuple[cst.For, ...]

    @property
    def last(self) -> Statement:
        return self.statements[-1]


def chain(kernel: NkiKernel, statement: Statement) -> Chain | None:
    """Return the chain that ends with ``statement`` and leaves as many loops as it can; None where it must
    stay."""
    if not isinstance(statement.target, cst.Name) or kernel.flow.uses_after(statement) is None:
        return None
    for position in range(len(statement.loops)):
        found = _before(kernel, statement, position)
        if found is not None:
            return found
    return None


def _before(kernel: NkiKernel, statement: Statement, position: int) -> Chain | None:
    """Return the chain before the loop at ``position``, if the value does not depend on that loop."""
    flow, outer, inside = kernel.flow, statement.loops[position], statement.loops[position + 1 :]
    steps = [*(flow.statement_of(loop) for loop in inside), statement]
    if any(
        s is None or not runs_each_iteration(s, loop)
        for s, loop in zip(steps, statement.loops[position:], strict=True)
    ):
        return None
    variables = {loop_variable(loop): loop for loop in inside}
    varying, bound, todo = flow.varying(outer), [statement], [statement]
    used: set[str] = set()
    while todo:
        step = todo.pop()
        if step.value is None or not _pure(kernel, step.value):
            return None
        for name in flow.variables(step.value) & varying:
            if name in variables:
                used.add(name)
                continue
            made = [s for s in flow.before(statement) if s.binds(name)]
            if len(made) != 1 or not isinstance(made[0].target, cst.Name) or flow.uses_after(made[0]) is None:
                return None
            if made[0] not in bound:
                bound.append(made[0])
                todo.append(made[0])
    over = tuple(loop for loop in inside if loop_variable(loop) in used)
    if any(flow.variables(loop.iter) & varying for loop in over):
        return None
    return Chain(tuple(s for s in flow.simple() if s in bound), outer, over)


def _pure(kernel: NkiKernel, value: cst.BaseExpression) -> bool:
    calls = [c.func for c in kernel.source.walk(value, cst.Call)]
    names = [f.attr.value if isinstance(f, cst.Attribute) else getattr(f, "value", "") for f in calls]
    return all(name in _PURE for name in names)
