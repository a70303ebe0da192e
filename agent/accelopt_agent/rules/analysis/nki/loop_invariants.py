"""Finds values that a loop makes in the same way in every iteration: the statements that make one, and the loops it
depends on.

Where instructions return tiles, one assignment makes a value. Where they write into tiles, the statements that make one
are its allocation and all that write it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.loops import loop_variable, runs_each_iteration
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiKernel
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_profiling.nki.operations.table import names, operations

#: Functions of Beta 1 that compute from their arguments alone and write nothing else.
_PURE = frozenset(
    name.partition(".")[2]
    for name in names("index", "copy", "transpose", "broadcast", "elementwise", "reduction", "transfer")
    if operations()[name].returns_all("beta1")
) | {"reshape"}

#: What else than an instruction may make a tile, a position or a view in today's dialect.
_MAKERS = frozenset({f"{NL}.ndarray", f"{NL}.ds", f"{NL}.zeros"})
_METHODS = frozenset(
    {"reshape", "broadcast", "permute", "expand_dim", "squeeze_dim", "flatten_dims", "reshape_dim", "ap"}
    | {"rearrange"}
)
_BUILTINS = frozenset({"min", "max"})


@dataclass(frozen=True)
class Chain:
    """``statements``, in order, the last of which gives the value.

    They can run before ``outer``, once for each iteration of ``over``, loops inside of it.
    """

    statements: tuple[Statement, ...]
    outer: cst.For
    over: tuple[cst.For, ...]

    @property
    def last(self) -> Statement:
        return self.statements[-1]


def chains(kernel: NkiKernel, last: Statement) -> Iterator[Chain]:
    """Yield how the value that ``last`` gives a variable can be made before loops around it, the outermost first."""
    if not isinstance(last.target, cst.Name):
        return
    if not kernel.dialect.mutates and kernel.flow.uses_after(last) is None:
        return
    for position in range(len(last.loops)):
        if (chain := _before(kernel, last, position)) is not None:
            yield chain


def _before(kernel: NkiKernel, last: Statement, position: int) -> Chain | None:
    """Return the chain that ends with ``last`` before the loop at ``position``.

    None where it depends on that loop.
    """
    flow, outer, inside = kernel.flow, last.loops[position], last.loops[position + 1 :]
    steps = [*(flow.statement_of(loop) for loop in inside), last]
    if any(
        s is None or not runs_each_iteration(s, loop)
        for s, loop in zip(steps, last.loops[position:], strict=True)
    ):
        return None
    variables = {loop_variable(loop): loop for loop in inside}
    varying, group, todo, used = flow.varying(outer), [last], [last], set()
    while todo:
        step = todo.pop()
        made_of = step.node if kernel.dialect.mutates else step.value
        if made_of is None or not _is_pure(kernel, step, made_of):
            return None
        for name in flow.variables(made_of) & varying:
            if name in variables:
                used.add(name)
                continue
            makers = (_writers if kernel.dialect.mutates else _binding)(kernel, name, last)
            if makers is None:
                return None
            new = [s for s in makers if s not in group]
            group += new
            todo += new
    over = tuple(loop for loop in inside if loop_variable(loop) in used)
    if any(flow.variables(loop.iter) & varying for loop in over):
        return None
    ordered = tuple(s for s in flow.simple() if s in group)
    return Chain(ordered, outer, over) if ordered[-1] is last else None


def _binding(kernel: NkiKernel, name: str, last: Statement) -> list[Statement] | None:
    """Return the one statement before ``last`` that binds ``name`` for it."""
    bindings = [s for s in kernel.flow.before(last) if s.binds(name)]
    if (
        len(bindings) != 1
        or not isinstance(bindings[0].target, cst.Name)
        or kernel.flow.uses_after(bindings[0]) is None
    ):
        return None
    return bindings


def _writers(kernel: NkiKernel, name: str, last: Statement) -> list[Statement] | None:
    """Return the statements that give ``name`` its value for ``last``: one that binds it in the same block, and all
    that write its tensor. None where it is written elsewhere too."""
    flow = kernel.flow
    bound = flow.binding(name)
    if len(bound) != 1 or bound[0].block is not last.block:
        return None
    shared = flow.sharing([name])
    writers = [s for s in flow.simple() if shared & s.stores]
    before = [*flow.before(last), last]
    if any(s not in before for s in [bound[0], *writers]):
        return None
    return [bound[0], *(s for s in writers if s is not bound[0])]


def _is_pure(kernel: NkiKernel, statement: Statement, made_of: cst.CSTNode) -> bool:
    """Return whether a statement only makes tiles, positions or views, or is an instruction that writes a tile."""
    calls = [c.func for c in kernel.source.walk(made_of, cst.Call)]
    if not kernel.dialect.mutates:
        names = [f.attr.value if isinstance(f, cst.Attribute) else getattr(f, "value", "") for f in calls]
        return all(name in _PURE for name in names)
    product = any(i.statement is statement and i.path == f"{NISA}.nc_matmul" for i in kernel.instructions)
    if statement.assign is None and statement.call is None and not product:
        return False
    return all(_makes(kernel, function) for function in calls)


def _makes(kernel: NkiKernel, function: cst.BaseExpression) -> bool:
    path = kernel.path(function)
    if path is not None:
        return path in _MAKERS or (path.startswith(f"{NISA}.") and path in kernel.dialect.parameters)
    if isinstance(function, cst.Attribute):
        return function.attr.value in _METHODS
    return isinstance(function, cst.Name) and function.value in _BUILTINS
