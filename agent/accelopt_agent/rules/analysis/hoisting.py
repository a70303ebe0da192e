"""Determines how far a statement can move out of its loops, with the index arithmetic it needs."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.data_flow import DataFlow
from accelopt_agent.rules.analysis.loops import runs_each_iteration
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement


@dataclass(frozen=True)
class Departure:
    """``statements``, in order, can run once before ``loops[-1]`` instead of in every iteration of ``loops``."""

    loops: tuple[cst.For, ...]
    statements: tuple[Statement, ...]

    def rewrite(self, flow: DataFlow, what: str) -> Rewrite:
        source = flow.source
        lines = "\n".join(source.with_comment(s.node) for s in self.statements)
        edits = (source.before(self.loops[-1], lines), *(source.moved(s.node) for s in self.statements))
        over = " and ".join(source.code(loop.target) for loop in reversed(self.loops))
        return Rewrite(edits, f"{what} once before the loop over {over}, which does not change it.")


def departure(flow: DataFlow, statement: Statement, pure: frozenset[str] = frozenset()) -> Departure | None:
    """Return how far ``statement`` can move up out of the loops around it, None when it must stay.

    ``pure`` are functions (last part of their name) that index arithmetic may call.
    """
    group: list[Statement] = [statement]
    leaving: list[cst.For] = []
    if not _movable(flow, statement):
        return None
    for loop in reversed(statement.loops):
        inner = flow.statement_of(leaving[-1]) if leaving else statement
        if inner is None or not runs_each_iteration(inner, loop):
            break
        needs = needed(flow, loop, group, pure)
        if needs is None:
            break
        group = needs
        leaving.append(loop)
    return Departure(tuple(leaving), tuple(group)) if leaving else None


def _movable(flow: DataFlow, statement: Statement) -> bool:
    """Return whether the statement binds a variable that it alone writes and that is only read after it."""
    return isinstance(statement.target, cst.Name) and flow.uses_after(statement) is not None


def needed(
    flow: DataFlow,
    loop: cst.For,
    group: list[Statement],
    pure: frozenset[str],
    steady: frozenset[str] = frozenset(),
) -> list[Statement] | None:
    """Return ``group`` and the index arithmetic in the loop that it needs.

    None when it depends on the iteration.

    ``steady`` are names that may be taken as not changing although the loop writes them.
    """
    varying = flow.varying(loop) - steady
    moved = list(group)
    bound = {s.target_name for s in moved}
    todo = list(group)
    while todo:
        statement = todo.pop()
        assert statement.value is not None
        for name in flow.variables(statement.value) & varying - bound:
            arithmetic = next(
                (
                    s
                    for s in flow.simple()
                    if s.binds(name) and s.block is statement.block and s in flow.before(statement)
                ),
                None,
            )
            if (
                arithmetic is None
                or not _movable(flow, arithmetic)
                or not _is_arithmetic(flow, arithmetic, pure)
            ):
                return None
            moved.insert(0, arithmetic)
            bound.add(name)
            todo.append(arithmetic)
    return [s for s in flow.simple() if s in moved]


def _is_arithmetic(flow: DataFlow, statement: Statement, pure: frozenset[str]) -> bool:
    value = statement.value
    if value is None:
        return False
    calls = [c.func for c in flow.source.walk(value, cst.Call)]
    names = [f.attr.value if isinstance(f, cst.Attribute) else getattr(f, "value", "") for f in calls]
    return all(name in pure for name in names)
