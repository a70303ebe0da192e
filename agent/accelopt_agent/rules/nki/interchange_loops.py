"""Swap two nested loops so that a load depends on the outer one only, and do it there."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.hoisting import needed
from accelopt_agent.rules.analysis.nki.independence import independent
from accelopt_agent.rules.analysis.nki.kernel import INDEXING, NL, NkiKernel
from accelopt_agent.rules.analysis.nki.loop_invariants import kept_chains, loads_only
from accelopt_agent.rules.analysis.nki.resident_tiles import counted
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement, is_string


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for statement in kernel.flow.statements:
        outer = statement.node
        if isinstance(outer, cst.For) and (inner := _only_loop(outer)) is not None:
            rewrite = _interchanged(kernel, outer, inner)
            if rewrite is not None:
                yield rewrite


def _only_loop(outer: cst.For) -> cst.For | None:
    """Return the loop that is all of ``outer``'s body, but for strings and comments."""
    body = [s for s in outer.body.body if not is_string(s)]
    only = body[0] if len(body) == 1 else None
    return only if isinstance(only, cst.For) else None


def _interchanged(kernel: NkiKernel, outer: cst.For, inner: cst.For) -> Rewrite | None:
    flow, source = kernel.flow, kernel.source
    if not isinstance(outer.target, cst.Name) or outer.target.value in flow.variables(inner.iter):
        return None
    moved = (_current if kernel.dialect.mutates else _beta1)(kernel, outer, inner)
    loading = [i.statement for i in kernel.of("nl.load", "nisa.dma_copy") if i.statement in moved]
    if not loading:
        return None
    moved = [s for s in flow.simple() if s in moved]
    edits: list[ByteEdit] = []
    for one, other in ((outer, inner), (inner, outer)):
        edits.append(source.replace(one.target, source.code(other.target)))
        edits.append(source.replace(one.iter, source.code(other.iter)))
    edits.append(source.before(inner, "\n".join(source.with_comment(s.node) for s in moved)))
    edits += [source.moved(s.node) for s in moved]
    loads = ", ".join(s.target_name or "" for s in moved if s in loading)
    over = f"{source.code(outer.target)} and {source.code(inner.target)}"
    return Rewrite(tuple(edits), f"Swap the loops over {over} and load {loads} in the outer one.")


def _current(kernel: NkiKernel, outer: cst.For, inner: cst.For) -> list[Statement]:
    """Return the loads that depend on the inner variable only.

    None where the loops may not be swapped. They may where the iterations of the inner one are independent: what the
    outer one adds up keeps its order then.
    """
    if counted(kernel, outer) is None or counted(kernel, inner) is None or not independent(kernel, inner):
        return []
    chains = (
        c for c in kept_chains(kernel) if c.outer is outer and c.over == (inner,) and loads_only(kernel, c)
    )
    return [statement for chain in chains for statement in chain.statements]


def _beta1(kernel: NkiKernel, outer: cst.For, inner: cst.For) -> list[Statement]:
    """Return the loads that depend on the inner variable only, with what they need, in loops declared independent."""
    flow, source, moved = kernel.flow, kernel.source, list[Statement]()
    if not (_is_affine(kernel, outer) and _is_affine(kernel, inner)):
        return []
    for load in kernel.of("nl.load"):
        statement = load.statement
        if (
            statement is None
            or statement.block is not inner.body
            or not isinstance(statement.target, cst.Name)
        ):
            continue
        if flow.uses_after(statement) is None:
            continue
        # After the swap the outer loop runs inside: what the load needs may change with the inner variable only.
        group = needed(flow, outer, [statement], INDEXING, steady=frozenset({source.code(inner.target)}))
        if group is not None:
            moved += [s for s in group if s not in moved]
    return moved


def _is_affine(kernel: NkiKernel, loop: cst.For) -> bool:
    """Return whether the author declared the iterations independent but for sums."""
    return isinstance(loop.iter, cst.Call) and kernel.path(loop.iter.func) == f"{NL}.affine_range"
