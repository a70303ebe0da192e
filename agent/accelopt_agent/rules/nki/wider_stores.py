"""Collect the parts of rows that a loop stores one by one, and store the rows in full after it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.loops import loop_variable, runs_each_iteration
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiCall, NkiKernel, open_nki
from accelopt_agent.rules.analysis.nki.resident_tiles import too_large
from accelopt_agent.rules.analysis.nki.row_parts import parts
from accelopt_agent.rules.analysis.nki.row_slices import row_slice
from accelopt_agent.rules.analysis.nki.tile_shapes import tile
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.statement import Statement


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_nki(subject)
    if kernel is None:
        return
    for copy in kernel.of("nisa.dma_copy"):
        if (rewrite := _sliced(kernel, copy)) is not None:
            yield rewrite
    for store in kernel.of("nl.store"):
        rewrite = _in_full(kernel, store)
        if rewrite is not None:
            yield rewrite


def _in_full(kernel: NkiKernel, store: NkiCall) -> Rewrite | None:
    statement, source, flow, value = store.statement, kernel.source, kernel.flow, store.get("value")
    if statement is None or value is None or set(store.args) != {"dst", "value"} or not statement.loops:
        return None
    assert isinstance(store.call, cst.Call)
    found = parts(kernel, store["dst"], statement.loops[-1:])
    words = {w: kernel.spelled(f"{NL}.{w}") for w in ("ndarray", "par_dim", "sbuf")}
    if found is None or None in words.values() or not runs_each_iteration(statement, found.loop):
        return None
    tensor, row = found.tensor, f"{found.tensor}_rows"
    rest = flow.variables(store["dst"]) - {loop_variable(found.loop), tensor}
    touching = [
        s for s in flow.statements if found.loop in s.loops and s.simple and tensor in s.reads | s.writes
    ]
    reads = [s for s in touching if s is not statement and not _only_dtype(kernel, s, tensor)]
    if rest & flow.varying(found.loop) or reads or flow.occurrences(row):
        return None
    shape = f"({words['par_dim']}({found.rows}), {found.length})"
    made = f"{row} = {words['ndarray']}({shape}, dtype={tensor}.dtype, buffer={words['sbuf']})"
    edits = [source.before(found.loop, made)]
    maker = kernel.producer(value, statement)
    if maker is not None and maker.statement is not None and isinstance(maker.statement.target, cst.Name):
        edits.append(source.replace(maker.statement.target, found.part(row)))
        edits.append(source.without(statement.node))
    else:
        edits.append(source.replace(statement.node, f"{found.part(row)} = {_copied(kernel, value)}"))
    edits.append(source.after(found.loop, f"{source.code(store.call.func)}({found.whole}, value={row})"))
    over = source.code(found.loop.target)
    return Rewrite(tuple(edits), f"Store the rows of {tensor} in full after the loop over {over}.")


def _copied(kernel: NkiKernel, value: cst.BaseExpression) -> str:
    """Return the value as an instruction's result: a variable has to be copied."""
    code, copy = kernel.source.code(value), kernel.spelled(f"{NL}.copy")
    return f"{copy}({code})" if isinstance(value, (cst.Name, cst.Subscript)) else code


def _only_dtype(kernel: NkiKernel, statement: Statement, tensor: str) -> bool:
    """Return whether a statement asks for nothing but the tensor's type."""
    names = [n for n in kernel.source.walk(statement.node, cst.Name) if n.value == tensor]
    parents = [kernel.source.parent(n) for n in names]
    return all(isinstance(p, cst.Attribute) and p.attr.value == "dtype" for p in parents)


def _sliced(kernel: NkiKernel, copy: NkiCall) -> Rewrite | None:
    """Today's dialect: one tile for the rows in full, of which each iteration writes a view."""
    statement, source, flow, value = copy.statement, kernel.source, kernel.flow, copy.get("src")
    if (
        statement is None
        or not statement.loops
        or not isinstance(value, cst.Name)
        or set(copy.args) != {"src"}
    ):
        return None
    name, loop = value.value, statement.loops[-1]
    found, allocation = row_slice(kernel, copy.destination, loop), flow.allocation(name)
    if found is None or allocation is None or allocation.value is None:
        return None
    row, shape = f"{name}_rows", tile(kernel, allocation.value)
    made = kernel.instruction(allocation.value)
    sizes, buffer = (made.get("shape"), made.get("buffer")) if made else (None, None)
    if buffer is not None and kernel.path(buffer) != f"{NL}.sbuf":
        return None
    if shape is None or sizes is None or not runs_each_iteration(statement, loop) or flow.occurrences(row):
        return None
    touching = [s for s in flow.simple() if loop in s.loops and found.tensor in s.reads | s.writes]
    reads = [s for s in touching if s is not statement and not _only_dtype(kernel, s, found.tensor)]
    uses = [n for n in flow.occurrences(name) if n is not allocation.bound]
    outside = any(loop not in source.parents(n) for n in uses) or allocation.block is not statement.block
    parts_of_it = any(isinstance(source.parent(n), (cst.Subscript, cst.Attribute)) for n in uses)
    if reads or outside or parts_of_it or flow.sharing([name]) != {name}:
        return None
    if (found.used | flow.variables(allocation.value) - {found.tensor}) & flow.varying(loop):
        return None
    if too_large(kernel, [shape.rows, found.length]):
        return None
    whole_sizes = source.replace_with_parentheses(sizes, f"({shape.rows}, {found.length})")
    whole = source.edited(allocation.value, whole_sizes)
    edits = [source.before(loop, source.with_comment(allocation.node, f"{row} = {whole}"))]
    edits += [source.moved(allocation.node), source.moved(statement.node)]
    edits += [
        source.replace(n, f"{row}[:, {found.slice}]") for n in uses if flow.statement_of(n) is not statement
    ]
    store = kernel.spell("nisa.dma_copy", found.whole, row) or ""
    edits.append(source.after(loop, source.with_comment(statement.node, store)))
    over = source.code(loop.target)
    return Rewrite(tuple(edits), f"Store the rows of {found.tensor} in full after the loop over {over}.")
