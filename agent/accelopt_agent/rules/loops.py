"""The ``for`` loops of a kernel: what they count, and what in them changes from one iteration to the next."""

from __future__ import annotations

import libcst as cst

from accelopt_agent.rules.flow import Flow, Statement


def loop_variable(loop: cst.For) -> str | None:
    return loop.target.value if isinstance(loop.target, cst.Name) else None


def variant_names(flow: Flow, loop: cst.For) -> set[str]:
    """Names whose value or contents may differ between iterations: written in the loop, or sharing storage."""
    return flow.sharing(flow.written_in(loop))


def is_invariant(flow: Flow, loop: cst.For, node: cst.CSTNode) -> bool:
    """Whether evaluating ``node`` gives the same in each iteration of ``loop``."""
    return not flow.variables(node) & variant_names(flow, loop)


def runs_each_iteration(statement: Statement, loop: cst.For) -> bool:
    """Whether the statement is directly in the loop's body, under no condition."""
    return statement.block is loop.body
