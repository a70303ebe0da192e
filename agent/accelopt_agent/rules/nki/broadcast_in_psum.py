"""Leave a row that is broadcast over the partitions in PSUM, where TensorE makes it, and read it there."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.constants import number_of_text
from accelopt_agent.rules.analysis.nki.elementwise import pair
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel, open_beta1
from accelopt_agent.rules.analysis.nki.tile_shapes import TileShape, tile
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.statement import Statement

#: Columns of float32 that a bank of PSUM holds (AWS Neuron: NKI architecture guides).
_BANK_COLUMNS = 512


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_beta1(subject)
    if kernel is None:
        return
    for statement in kernel.flow.simple():
        if (row := _broadcast_row(kernel, statement)) is not None:
            rewrite = _in_psum(kernel, statement, row)
            if rewrite is not None:
                yield rewrite


def _broadcast_row(kernel: NkiKernel, statement: Statement) -> cst.Name | None:
    """``row`` of ``tile = nl.broadcast_to(row, shape=...)``, in a loop."""
    call = statement.value
    if not isinstance(call, cst.Call) or kernel.path(call.func) != f"{NL}.broadcast_to":
        return None
    row = call.args[0].value if call.args and call.args[0].keyword is None else None
    return row if isinstance(row, cst.Name) and isinstance(statement.target, cst.Name) else None


def _in_psum(kernel: NkiKernel, statement: Statement, row: cst.Name) -> Rewrite | None:
    flow, source = kernel.flow, kernel.source
    name, narrow = statement.target_name or "", tile(kernel, row)
    assert statement.value is not None
    wide = tile(kernel, statement.value)
    if narrow is None or wide is None or narrow.dtype is None or number_of_text(flow, narrow.rows) != 1:
        return None
    columns = number_of_text(flow, wide.columns)
    if columns is None or columns > _BANK_COLUMNS or not _read_by_pairs(kernel, statement):
        return None
    ones = f"ones_{name}"
    made, product = _ones(kernel, ones, narrow, wide), kernel.spelled(f"{NL}.matmul")
    if made is None or product is None or flow.occurrences(ones):
        return None
    steady = flow.variables(statement.value) - {row.value}
    if any(steady & flow.varying(loop) for loop in statement.loops):
        return None
    where = statement.loops[0] if statement.loops else statement.node
    call = f"{product}({ones}, {row.value}, transpose_x=True)"
    return Rewrite(
        (source.before(where, made), source.replace_with_parentheses(statement.value, call)),
        f"Broadcast {row.value} by a product with ones and read it in PSUM.",
    )


def _read_by_pairs(kernel: NkiKernel, statement: Statement) -> bool:
    """Return whether every use is one of the two tiles of an instruction, the other being another tile."""
    uses = kernel.flow.uses_after(statement)
    if not uses:
        return False
    for use in uses:
        reader = next((i for i in kernel.instructions if i.statement is kernel.flow.statement_of(use)), None)
        both = pair(kernel, reader)
        if both is None or (both.left is use) == (both.right is use):
            return False
    return True


def _ones(kernel: NkiKernel, name: str, narrow: TileShape, wide: TileShape) -> str | None:
    """Return the statement that makes a row of ones of the type that is broadcast, one for each partition."""
    words = {w: kernel.spelled(f"{NL}.{w}") for w in ("ones", "par_dim", "sbuf")}
    if None in words.values():
        return None
    shape = f"({words['par_dim']}(1), {wide.rows})"
    return f"{name} = {words['ones']}({shape}, dtype={narrow.dtype}, buffer={words['sbuf']})"
