"""Compute what a loop computes in every iteration once, before it, and keep all of it in SBUF."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel, open_nki
from accelopt_agent.rules.analysis.nki.list_of_tiles import listed
from accelopt_agent.rules.analysis.nki.loop_invariants import Chain, chains
from accelopt_agent.rules.analysis.nki.resident_tiles import keep, read_kept
from accelopt_agent.rules.analysis.nki.tile_shapes import tile
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_nki(subject)
    if kernel is None:
        return
    if kernel.dialect.mutates:
        yield from listed(kernel)
        return
    longest = [
        c for s in kernel.flow.simple() if (c := next(chains(kernel, s), None)) and has_load(kernel, c)
    ]
    for found in longest:
        if not any(_is_inside(kernel, found, other) for other in longest):
            rewrite = _kept(kernel, found)
            if rewrite is not None:
                yield rewrite


def has_load(kernel: NkiKernel, found: Chain) -> bool:
    """Return whether the chain loads, and under no mask: what a mask leaves out would be kept as well."""
    calls = [c for s in found.statements for c in kernel.source.walk(s.node, cst.Call)]
    masked = any(a.keyword is not None and a.keyword.value == "mask" for c in calls for a in c.args)
    return not masked and any(kernel.path(c.func) == f"{NL}.load" for c in calls)


def _is_inside(kernel: NkiKernel, one: Chain, other: Chain) -> bool:
    """Return whether the other chain uses up what this one makes."""
    if one is other or one.last not in other.statements or one.outer is not other.outer:
        return False
    uses = kernel.flow.uses_after(one.last) or []
    return all(kernel.flow.statement_of(use) in other.statements for use in uses)


def _kept(kernel: NkiKernel, found: Chain) -> Rewrite | None:
    """Return every use of the value becomes the kept tile; its loops run once more, before, to fill the
    tensor."""
    source, last = kernel.source, found.last
    name = last.target_name or ""
    if not found.over:
        return None  # the rules that hoist do that
    assert last.value is not None
    kept = keep(kernel, f"{name}_kept", tile(kernel, last.value), found.over)
    uses = kernel.flow.uses_after(last)
    edits = [] if kept is None or uses is None else read_kept(kernel, kept, uses)
    if kept is None or not edits:
        return None
    moved = [source.with_comment(s.node) for s in found.statements[:-1]]
    value = source.with_comment(last.node, f"{kept.place(kernel)} = {source.code(last.value)}")
    lines = kept.filled(kernel, [*moved, value])
    edits += [source.before(found.outer, lines), *removed(kernel, found)]
    over = source.code(found.outer.target)
    return Rewrite(tuple(edits), f"Make {name} once before the loop over {over} and keep it in SBUF.")


def removed(kernel: NkiKernel, found: Chain) -> list[ByteEdit]:
    """Return the edits that take the chain's statements away where they stood, but for those that others
    read."""
    gone = {found.last}
    for statement in reversed(found.statements[:-1]):
        uses = kernel.flow.uses_after(statement) or []
        if all(kernel.flow.statement_of(use) in gone for use in uses):
            gone.add(statement)
    return [kernel.source.moved(s.node) for s in found.statements if s in gone]
