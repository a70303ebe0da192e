"""Load rows in full before the loop that loads them part by part: larger pieces, fewer of them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.loops import loop_variable
from accelopt_agent.rules.analysis.nki.kernel import NkiCall, NkiKernel, open_nki
from accelopt_agent.rules.analysis.nki.resident_tiles import too_large
from accelopt_agent.rules.analysis.nki.row_parts import parts
from accelopt_agent.rules.analysis.nki.row_slices import row_slice
from accelopt_agent.rules.analysis.nki.tile_shapes import tile
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_nki(subject)
    if kernel is None:
        return
    for copy in kernel.of("nisa.dma_copy"):
        if (rewrite := _sliced(kernel, copy)) is not None:
            yield rewrite
    for load in kernel.of("nl.load"):
        rewrite = _in_full(kernel, load)
        if rewrite is not None:
            yield rewrite


def _in_full(kernel: NkiKernel, load: NkiCall) -> Rewrite | None:
    statement, source = load.statement, kernel.source
    if statement is None or not isinstance(statement.target, cst.Name) or load.get("mask") is not None:
        return None
    found, name = parts(kernel, load["src"], statement.loops), statement.target.value
    row = f"{name}_rows"
    uses = kernel.flow.uses_after(statement)
    if found is None or not uses or kernel.flow.occurrences(row):
        return None
    rest = kernel.flow.variables(load["src"]) - {loop_variable(found.loop)}
    if rest & kernel.flow.varying(found.loop) or found.loop is not statement.loops[-1]:
        return None
    edits = [source.moved(statement.node)]
    for use in uses:
        parent = source.parent(use)
        if isinstance(parent, (cst.Attribute, cst.Subscript)):
            return None
        edits.append(source.replace(use, found.part(row)))
    call = source.code(load.call).replace(source.code(load["src"]), found.whole, 1)
    edits.append(source.before(found.loop, source.with_comment(statement.node, f"{row} = {call}")))
    over = source.code(found.loop.target)
    return Rewrite(tuple(edits), f"Load the rows of {found.tensor} in full before the loop over {over}.")


def _sliced(kernel: NkiKernel, copy: NkiCall) -> Rewrite | None:
    """Today's dialect: one tile for the rows in full, of which each iteration reads a view."""
    statement, source, flow = copy.statement, kernel.source, kernel.flow
    destination = copy.destination
    if statement is None or not isinstance(destination, cst.Name) or not statement.loops:
        return None
    name, loop = destination.value, statement.loops[-1]
    found, allocation, row = row_slice(kernel, copy.get("src"), loop), flow.allocation(name), f"{name}_rows"
    uses = flow.uses_after(statement)
    if found is None or allocation is None or not uses or flow.occurrences(row) or set(copy.args) != {"src"}:
        return None
    assert allocation.value is not None
    made, shape = kernel.instruction(allocation.value), tile(kernel, allocation.value)
    sizes = made.get("shape") if made else None
    if shape is None or sizes is None or allocation.block is not statement.block:
        return None
    steady = found.used | {found.tensor} | (flow.variables(allocation.value))
    if steady & flow.varying(loop) or too_large(kernel, [shape.rows, found.length]):
        return None
    part = f"{row}[:, {found.slice}]"
    edits = [source.moved(allocation.node), source.moved(statement.node)]
    for use in uses:
        if isinstance(source.parent(use), (cst.Attribute, cst.Subscript)):
            return None
        edits.append(source.replace(use, part))
    whole_sizes = source.replace_with_parentheses(sizes, f"({shape.rows}, {found.length})")
    value = source.edited(allocation.value, whole_sizes)
    load = kernel.spell("nisa.dma_copy", row, found.whole)
    lines = [
        source.with_comment(allocation.node, f"{row} = {value}"),
        source.with_comment(statement.node, load),
    ]
    edits.append(source.before(loop, "\n".join(lines)))
    over = source.code(loop.target)
    return Rewrite(tuple(edits), f"Load the rows of {found.tensor} in full before the loop over {over}.")
