"""Load a tile before a loop that does not change it, instead of once in each iteration."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.instructions import Instruction, NkiKernel, open_nki
from accelopt_agent.rules.loops import is_invariant, runs_each_iteration
from accelopt_agent.rules.subject import Rewrite, Subject


def rewrites(subject: Subject) -> Iterator[Rewrite]:
    kernel = open_nki(subject)
    if kernel is None:
        return
    for load in kernel.of("nl.load"):
        loops = _loops_to_leave(kernel, load)
        if loops:
            yield _hoisted(kernel, load, loops)


def _loops_to_leave(kernel: NkiKernel, load: Instruction) -> list[cst.For]:
    """The loops around ``load`` that it can move out of, innermost first; they must follow on one another."""
    statement = load.statement
    if (
        statement is None
        or not isinstance(statement.target, cst.Name)
        or not kernel.flow.uses_after(statement)
    ):
        return []
    leaving: list[cst.For] = []
    for loop in reversed(statement.loops):
        inner = kernel.flow.statement_of(leaving[-1]) if leaving else statement
        if inner is None or not runs_each_iteration(inner, loop):
            break
        if not is_invariant(kernel.flow, loop, load.call):
            break
        leaving.append(loop)
    return leaving


def _hoisted(kernel: NkiKernel, load: Instruction, loops: list[cst.For]) -> Rewrite:
    statement = load.statement
    assert statement is not None
    source, outermost = kernel.source, loops[-1]
    line = source.code(statement.node)
    edits = (source.before(outermost, line), source.without(statement.node))
    over = " and ".join(source.code(loop.target) for loop in reversed(loops))
    return Rewrite(
        edits, f"Load {statement.target_name} once before the loop over {over}, which does not change it."
    )
