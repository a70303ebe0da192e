"""Finds tiles that a loop makes in the same way in every iteration, where instructions write into tiles (today's
dialect): the statements that make one, and the loops it depends on."""

from __future__ import annotations

import libcst as cst

from accelopt_agent.rules.analysis.loops import loop_variable, runs_each_iteration
from accelopt_agent.rules.analysis.nki.kernel import NISA, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.nki.loop_invariants import Chain
from accelopt_agent.rules.analysis.statement import Statement

#: Functions beside instructions that a chain may call: they make tiles, positions and views.
_PURE = frozenset({"nl.ndarray", "nl.ds", "nl.zeros"})
_METHODS = frozenset(
    {
        "reshape",
        "broadcast",
        "permute",
        "expand_dim",
        "squeeze_dim",
        "flatten_dims",
        "reshape_dim",
        "ap",
        "rearrange",
    }
)
_BUILTINS = frozenset({"min", "max"})


def chains(kernel: NkiKernel, instruction: NkiCall) -> list[Chain]:
    """Return how the tile that ``instruction`` writes can be made before loops around it, the outermost first."""
    statement = instruction.statement
    if statement is None or not isinstance(instruction.destination, cst.Name):
        return []
    found = (_before(kernel, statement, position) for position in range(len(statement.loops)))
    return [chain for chain in found if chain is not None]


def _before(kernel: NkiKernel, last: Statement, position: int) -> Chain | None:
    """Return the chain that ends with ``last`` before the loop at ``position``."""
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
        if not _is_pure(kernel, step):
            return None
        for name in flow.variables(step.node) & varying:
            if name in variables:
                used.add(name)
                continue
            makers = _makers(kernel, name, last)
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


def _makers(kernel: NkiKernel, name: str, last: Statement) -> list[Statement] | None:
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
    others = [s for s in bound if s.block is last.block]
    return [*others, *(s for s in writers if s not in others)]


def _is_pure(kernel: NkiKernel, statement: Statement) -> bool:
    """Return whether a statement only makes tiles, positions or views, or is an instruction that writes a tile."""
    if statement.assign is None and statement.call is None and not _accumulates(kernel, statement):
        return False
    for call in kernel.source.walk(statement.node, cst.Call):
        path, function = kernel.path(call.func), call.func
        if path is not None:
            known = path in _PURE or (path.startswith(f"{NISA}.") and path in kernel.dialect.parameters)
            if not known:
                return False
        elif isinstance(function, cst.Attribute):
            if function.attr.value not in _METHODS:
                return False
        elif not isinstance(function, cst.Name) or function.value not in _BUILTINS:
            return False
    return True


def _accumulates(kernel: NkiKernel, statement: Statement) -> bool:
    """Return whether a statement is a product, which may add to what its destination holds."""
    return any(i.statement is statement and i.path == f"{NISA}.nc_matmul" for i in kernel.instructions)
