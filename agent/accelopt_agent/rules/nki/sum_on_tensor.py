"""Let TensorE add tiles up in PSUM, by products with the identity, where VectorE has more to do than TensorE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.constants import number_of_text
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.nki.elementwise import pair
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiCall, NkiKernel, open_beta1
from accelopt_agent.rules.analysis.nki.tile_shapes import tile
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.statement import Statement, root_name

#: A product's result fills at most one bank of PSUM; its operands have at most as many rows as there are partitions.
_MOST_ROWS, _BANK_COLUMNS = 128, 512


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_beta1(subject)
    if kernel is None:
        return
    for instruction in kernel.instructions:
        found = _running_sum(kernel, instruction)
        if found is not None and (rewrite := _on_tensor(kernel, found)) is not None:
            yield rewrite


@dataclass(frozen=True)
class _Sum:
    """``statement`` adds the tile ``term`` to the whole of the tensor ``name``, which ``zeros`` makes before a loop."""

    name: str
    zeros: NkiCall
    statement: Statement
    term: cst.Name
    rows: str


def _running_sum(kernel: NkiKernel, instruction: NkiCall) -> _Sum | None:
    flow, statement = kernel.flow, instruction.statement
    both = pair(kernel, instruction)
    if both is None or both.op != "add" or statement is None or instruction.get("mask") is not None:
        return None
    name, target = statement.target_name, statement.target
    allocation = flow.allocation(name) if name else None
    zeros = next((i for i in kernel.of("nl.zeros") if i.statement is allocation), None)
    if name is None or zeros is None or allocation is None or not isinstance(target, cst.Subscript):
        return None
    before, term = (both.left, both.right) if root_name(both.left) == name else (both.right, both.left)
    if root_name(before) != name or not isinstance(term, cst.Name) or term.value == name:
        return None
    made = tile(kernel, cst.ensure_type(zeros.call, cst.Call))
    written = tile(kernel, target)
    added = tile(kernel, term)
    if made is None or written is None or added is None or not _from_zero(kernel, target):
        return None
    same = (made.rows, made.columns) == (written.rows, written.columns) == (added.rows, added.columns)
    whole = isinstance(before, cst.Name) or kernel.source.same(before, target)
    rows, columns = (number_of_text(flow, size) for size in (made.rows, made.columns))
    if (
        not same
        or not whole
        or rows is None
        or columns is None
        or rows > _MOST_ROWS
        or columns > _BANK_COLUMNS
    ):
        return None
    in_loop = statement.block is not allocation.block and len(statement.loops) > len(allocation.loops)
    return _Sum(name, zeros, statement, term, made.rows) if in_loop else None


def _from_zero(kernel: NkiKernel, part: cst.Subscript) -> bool:
    """Return whether the indices are positions as ``nl.arange`` makes them, with nothing added."""
    indices = [e.slice.value for e in part.slice if isinstance(e.slice, cst.Index)]
    return len(indices) == len(part.slice) and all(
        (isinstance(i, cst.Name) and i.value in kernel.index_variables)
        or (
            isinstance(i, cst.Subscript)
            and isinstance(i.value, cst.Call)
            and kernel.path(i.value.func) == f"{NL}.arange"
        )
        for i in indices
    )


def _on_tensor(kernel: NkiKernel, found: _Sum) -> Rewrite | None:
    flow, source = kernel.flow, kernel.source
    words = {w: kernel.spelled(f"{NL}.{w}") for w in ("psum", "sbuf", "float32", "matmul", "copy")}
    identity = f"identity_{found.name}"
    prepared = _identity(kernel, identity, found.rows)
    stores = _stores(kernel, found)
    if None in words.values() or prepared is None or stores is None or flow.occurrences(identity):
        return None
    dtype = kernel.code(found.zeros.get("dtype"))
    if dtype != words["float32"] or kernel.code(found.zeros.get("buffer")) not in (None, words["sbuf"]):
        return None
    allocation, buffer = found.zeros.statement, found.zeros.get("buffer")
    assert allocation is not None
    end = source.end(found.zeros.call) - 1
    where = allocation.loops[0] if allocation.loops else allocation.node
    if flow.variables(found.zeros["shape"]) & (
        flow.varying(allocation.loops[0]) if allocation.loops else set()
    ):
        return None
    edits: list[ByteEdit] = [
        source.before(where, prepared),
        ByteEdit(end, end, f", buffer={words['psum']}")
        if buffer is None
        else source.replace(buffer, words["psum"] or ""),
        ByteEdit(
            source.start(found.statement.node),
            source.end(found.statement.node),
            f"{found.name} += {words['matmul']}({identity}, {found.term.value}, transpose_x=True)",
        ),
        *(source.replace(use, f"{words['copy']}({found.name})") for use in stores),
    ]
    line = source.line(found.statement.node)
    return Rewrite(
        tuple(edits), f"Add up {found.name} (line {line}) on TensorE, as products with the identity."
    )


def _stores(kernel: NkiKernel, found: _Sum) -> list[cst.Name] | None:
    """Return where the sum is stored whole, its only use besides the addition; None where it is used in another way."""
    stored = {id(i["value"]): i for i in kernel.of("nl.store") if i.get("value") is not None}
    uses: list[cst.Name] = []
    for occurrence in kernel.flow.occurrences(found.name):
        statement = kernel.flow.statement_of(occurrence)
        if statement is found.statement or statement is found.zeros.statement:
            continue
        if id(occurrence) not in stored or statement is None:
            return None
        allocation = found.zeros.statement
        if allocation is None or statement.block is not allocation.block:
            return None
        uses.append(occurrence)
    return uses if uses and kernel.flow.sharing([found.name]) == {found.name} else None


def _identity(kernel: NkiKernel, name: str, rows: str) -> str | None:
    """Return the statements that make the identity matrix: ones, kept on and below, then on and above the
    diagonal."""
    arange, ones, par_dim, float32, sbuf = (
        kernel.spelled(f"{NL}.{w}") for w in ("arange", "ones", "par_dim", "float32", "sbuf")
    )
    down, across = f"{arange}({rows})[:, None]", f"{arange}({rows})[None, :]"
    lower = kernel.spell(
        "nisa.affine_select", pred=f"{down} >= {across}", on_true_tile=f"ones_{name}", on_false_value="0.0"
    )
    both = kernel.spell(
        "nisa.affine_select", pred=f"{across} >= {down}", on_true_tile=f"lower_{name}", on_false_value="0.0"
    )
    if lower is None or both is None or None in (arange, ones, par_dim, float32, sbuf):
        return None
    made = f"{ones}(({par_dim}({rows}), {rows}), dtype={float32}, buffer={sbuf})"
    return f"ones_{name} = {made}\nlower_{name} = {lower}\n{name} = {both}"
