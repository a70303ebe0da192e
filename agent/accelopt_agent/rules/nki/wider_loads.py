"""Load rows in full before the loop that loads them part by part: larger pieces, fewer of them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.loops import loop_variable
from accelopt_agent.rules.analysis.nki.kernel import NkiCall, NkiKernel, open_beta1
from accelopt_agent.rules.analysis.nki.row_parts import parts
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_beta1(subject)
    if kernel is None:
        return
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
