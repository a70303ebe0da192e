"""Leave a row that is broadcast over the partitions in PSUM, where TensorE makes it, and read it there."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.constants import number_of_text
from accelopt_agent.rules.analysis.nki.elementwise import pair
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.nki.tile_shapes import TileShape, tile
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement

#: Columns of float32 that a bank of PSUM holds (AWS Neuron: NKI architecture guides).
_BANK_COLUMNS = 512


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    if kernel.dialect.mutates:
        for copy in kernel.of(f"{NISA}.dma_copy"):
            if (rewrite := _made_in_psum(kernel, copy)) is not None:
                yield rewrite
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
    ones_text, product = _ones(kernel, ones, narrow, wide), kernel.spelled(f"{NL}.matmul")
    if ones_text is None or product is None or flow.occurrences(ones):
        return None
    steady = flow.variables(statement.value) - {row.value}
    if any(steady & flow.varying(loop) for loop in statement.loops):
        return None
    where = statement.loops[0] if statement.loops else statement.node
    call = f"{product}({ones}, {row.value}, transpose_x=True)"
    return Rewrite(
        (source.before(where, ones_text), source.replace_with_parentheses(statement.value, call)),
        f"Broadcast {row.value} by a product with ones and read it in PSUM.",
    )


def _made_in_psum(kernel: NkiKernel, copy: NkiCall) -> Rewrite | None:
    """Today's dialect: a row that a transfer broadcasts is loaded as one row, and broadcast by a product."""
    flow, source, statement, destination = kernel.flow, kernel.source, copy.statement, copy.destination
    row = _row_of(kernel, copy.get("src"))
    if (
        statement is None
        or row is None
        or not isinstance(destination, cst.Name)
        or copy.args.keys() != {"src"}
    ):
        return None
    name, allocation = destination.value, flow.allocation(destination.value)
    instruction = (
        kernel.instruction(allocation.value)
        if allocation is not None and allocation.value is not None
        else None
    )
    wide = tile(kernel, destination)
    if instruction is None or allocation is None or allocation.value is None or not statement.loops:
        return None
    if wide is None or wide.dtype is None:
        return None
    columns, buffer = number_of_text(flow, wide.columns), instruction.get("buffer")
    in_sbuf = buffer is not None and kernel.path(buffer) == f"{NL}.sbuf"
    if columns is None or columns > _BANK_COLUMNS or not in_sbuf or not _read_by_pairs(kernel, statement):
        return None
    outer, one_row, ones = statement.loops[0], f"{name}_row", f"ones_{name}"
    words = {w: kernel.spelled(f"{NL}.{w}") for w in ("ndarray", "sbuf", "psum", "float32")}
    filled = kernel.spell(f"{NISA}.memset", ones, "1.0")
    loaded = kernel.spell(f"{NISA}.dma_copy", one_row, source.code(row))
    product = kernel.spell(f"{NISA}.nc_matmul", name, ones, one_row, is_stationary_onezero="True")
    if None in words.values() or filled is None or loaded is None or product is None:
        return None
    if any(flow.occurrences(n) for n in (one_row, ones)) or flow.variables(allocation.value) & flow.varying(
        outer
    ):
        return None

    def allocated(target: str, rows: str, columns: str, dtype: str | None, buffer: str) -> str:
        return f"{target} = {words['ndarray']}(({rows}, {columns}), dtype={dtype}, buffer={words[buffer]})"

    edits = (
        source.before(outer, f"{allocated(ones, '1', wide.rows, wide.dtype, 'sbuf')}\n{filled}"),
        source.replace(allocation.node, allocated(one_row, "1", wide.columns, wide.dtype, "sbuf")),
        source.replace(statement.node, loaded),
        source.after(
            statement.node, f"{allocated(name, wide.rows, wide.columns, words['float32'], 'psum')}\n{product}"
        ),
    )
    return Rewrite(edits, f"Broadcast {one_row} by a product with ones and read it in PSUM.")


def _row_of(kernel: NkiKernel, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """Return the row of ``row.broadcast(0, P)``."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or len(node.args) != 2:
        return None
    axis = number_of_text(kernel.flow, kernel.source.code(node.args[0].value))
    return node.func.value if node.func.attr.value == "broadcast" and axis == 0 else None


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
