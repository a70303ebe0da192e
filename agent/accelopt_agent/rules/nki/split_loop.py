"""Split a loop where TensorE waits for another engine, and do the first part of all iterations before the second."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.nki.kernel import NkiKernel, open_nki
from accelopt_agent.rules.analysis.nki.loop_parts import TENSOR, LoopParts, cuts
from accelopt_agent.rules.analysis.nki.resident_tiles import keep, read_kept, too_large
from accelopt_agent.rules.analysis.nki.tile_shapes import tile
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_nki(subject)
    if kernel is None:
        return
    for parts in cuts(kernel, frozenset({TENSOR})):
        edits = (_listed if kernel.dialect.mutates else _kept)(kernel, parts)
        if edits:
            tiles = " and ".join(parts.crossing)
            yield Rewrite(
                (*edits, _next_loop(kernel, parts)),
                f"Make all {tiles} of the loop over {parts.variable} first.",
            )


def _next_loop(kernel: NkiKernel, parts: LoopParts) -> ByteEdit:
    """Return the header of the second loop, and the indices that it needs as well."""
    source, loop = kernel.source, parts.loop
    at = source.block_end(parts.first[-1].node)
    indent = source.indent(parts.first[-1].node)
    header = f"{source.indent(loop)}for {parts.variable} in {source.code(loop.iter)}:"
    lines = [header, *(f"{indent}{source.code(s.node)}" for s in parts.positions)]
    return ByteEdit(at, at, "".join(f"{line}\n" for line in lines))


def _uses(kernel: NkiKernel, parts: LoopParts, name: str) -> list[cst.Name]:
    """Return where the second part uses ``name``."""
    nodes = {s.node for s in parts.second}
    return [n for n in kernel.flow.occurrences(name) if nodes & set(kernel.source.parents(n))]


def _listed(kernel: NkiKernel, parts: LoopParts) -> list[ByteEdit]:
    """Today's dialect: each tile that the second part uses goes into a list."""
    source, last = kernel.source, parts.first[-1].node
    edits: list[ByteEdit] = []
    lists = {name: f"{name}_of_{parts.variable}" for name in parts.crossing}
    if any(kernel.flow.occurrences(kept) or _too_many(kernel, parts, name) for name, kept in lists.items()):
        return []
    edits.append(source.before(parts.loop, "\n".join(f"{kept} = []" for kept in lists.values())))
    at, indent = source.block_end(last), source.indent(last)
    edits.append(
        ByteEdit(at, at, "".join(f"{indent}{kept}.append({name})\n" for name, kept in lists.items()))
    )
    for name, kept in lists.items():
        edits += [source.replace(use, f"{kept}[{parts.variable}]") for use in _uses(kernel, parts, name)]
    return edits


def _too_many(kernel: NkiKernel, parts: LoopParts, name: str) -> bool:
    value = kernel.flow.binding(name)[0].value
    made = tile(kernel, value) if value is not None else None
    return made is not None and too_large(kernel, [parts.count, made.rows, made.columns])


def _kept(kernel: NkiKernel, parts: LoopParts) -> list[ByteEdit]:
    """Beta 1: each value that the second part uses goes into a tensor with a dimension for the loop."""
    flow, source = kernel.flow, kernel.source
    edits: list[ByteEdit] = []
    for name in parts.crossing:
        (bound,) = flow.binding(name)
        uses = flow.uses_after(bound)
        if bound.value is None or not isinstance(bound.target, cst.Name) or not uses or not bound.simple:
            return []
        kept = keep(kernel, f"{name}_of_{parts.variable}", tile(kernel, bound.value), (parts.loop,))
        if kept is None or kernel.instruction(bound.value) is None:
            return []
        read = read_kept(kernel, kept, uses)
        if not read:
            return []
        edits += [
            source.before(parts.loop, kept.made()),
            source.replace(bound.target, kept.place(kernel)),
            *read,
        ]
    return edits
