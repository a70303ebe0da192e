"""Let TensorE add tiles up in PSUM, by products with the identity, where VectorE has more to do than TensorE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.constants import number, number_of_text
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.nki.elementwise import pair
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.nki.tile_shapes import tile
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement, root_name

#: A product's result fills at most one bank of PSUM; its operands have at most as many rows as there are partitions.
_MOST_ROWS, _BANK_COLUMNS = 128, 512


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for instruction in kernel.instructions:
        if kernel.dialect.mutates:
            if (rewrite := _accumulated(kernel, instruction)) is not None:
                yield rewrite
            continue
        running_sum = _running_sum(kernel, instruction)
        if running_sum is not None and (rewrite := _on_tensor(kernel, running_sum)) is not None:
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
    shape = tile(kernel, cst.ensure_type(zeros.call, cst.Call))
    written = tile(kernel, target)
    added = tile(kernel, term)
    if shape is None or written is None or added is None or not _from_zero(kernel, target):
        return None
    same = (shape.rows, shape.columns) == (written.rows, written.columns) == (added.rows, added.columns)
    whole = isinstance(before, cst.Name) or kernel.source.same(before, target)
    rows, columns = (number_of_text(flow, size) for size in (shape.rows, shape.columns))
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
    return _Sum(name, zeros, statement=statement, term=term, rows=shape.rows) if in_loop else None


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


def _on_tensor(kernel: NkiKernel, running_sum: _Sum) -> Rewrite | None:
    flow, source = kernel.flow, kernel.source
    words = {w: kernel.spelled(f"{NL}.{w}") for w in ("psum", "sbuf", "float32", "matmul", "copy")}
    identity = f"identity_{running_sum.name}"
    prepared = _identity(kernel, identity, running_sum.rows)
    stores = _stores(kernel, running_sum)
    if None in words.values() or prepared is None or stores is None or flow.occurrences(identity):
        return None
    dtype = kernel.code(running_sum.zeros.get("dtype"))
    if dtype != words["float32"] or kernel.code(running_sum.zeros.get("buffer")) not in (None, words["sbuf"]):
        return None
    allocation, buffer = running_sum.zeros.statement, running_sum.zeros.get("buffer")
    assert allocation is not None
    end = source.end(running_sum.zeros.call) - 1
    where = allocation.loops[0] if allocation.loops else allocation.node
    if flow.variables(running_sum.zeros["shape"]) & (
        flow.varying(allocation.loops[0]) if allocation.loops else set()
    ):
        return None
    edits: list[ByteEdit] = [
        source.before(where, prepared),
        ByteEdit(end, end, f", buffer={words['psum']}")
        if buffer is None
        else source.replace(buffer, words["psum"] or ""),
        ByteEdit(
            source.start(running_sum.statement.node),
            source.end(running_sum.statement.node),
            f"{running_sum.name} += {words['matmul']}({identity}, {running_sum.term.value}, transpose_x=True)",
        ),
        *(source.replace(use, f"{words['copy']}({running_sum.name})") for use in stores),
    ]
    line = source.line(running_sum.statement.node)
    return Rewrite(
        tuple(edits), f"Add up {running_sum.name} (line {line}) on TensorE, as products with the identity."
    )


def _stores(kernel: NkiKernel, running_sum: _Sum) -> list[cst.Name] | None:
    """Return where the sum is stored whole, its only use besides the addition; None where it is used in another way."""
    stored = {id(i["value"]): i for i in kernel.of("nl.store") if i.get("value") is not None}
    uses: list[cst.Name] = []
    for occurrence in kernel.flow.occurrences(running_sum.name):
        statement = kernel.flow.statement_of(occurrence)
        if statement is running_sum.statement or statement is running_sum.zeros.statement:
            continue
        if id(occurrence) not in stored or statement is None:
            return None
        allocation = running_sum.zeros.statement
        if allocation is None or statement.block is not allocation.block:
            return None
        uses.append(occurrence)
    return uses if uses and kernel.flow.sharing([running_sum.name]) == {running_sum.name} else None


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
    allocation = f"{ones}(({par_dim}({rows}), {rows}), dtype={float32}, buffer={sbuf})"
    return f"ones_{name} = {allocation}\nlower_{name} = {lower}\n{name} = {both}"


def _accumulated(kernel: NkiKernel, instruction: NkiCall) -> Rewrite | None:
    """Today's dialect: a tile that is set to zero and added to in a loop lies in PSUM, where products add up."""
    flow, source, both, total = kernel.flow, kernel.source, pair(kernel, instruction), instruction.destination
    statement = instruction.statement
    if both is None or both.op != "add" or statement is None or not isinstance(total, cst.Name):
        return None
    name = total.value
    terms = [o for o in (both.left, both.right) if isinstance(o, cst.Name) and o.value != name]
    allocation = flow.allocation(name)
    if len(terms) != 1 or allocation is None or allocation.value is None:
        return None
    if len(statement.loops) <= len(allocation.loops):
        return None
    term, total_shape, added = terms[0], tile(kernel, total), tile(kernel, terms[0])
    zeros = [i for i in kernel.of(f"{NISA}.memset") if i.destination is not None and _is(i.destination, name)]
    stores = [i for i in kernel.of(f"{NISA}.dma_copy") if _is(i.get("src"), name)]
    if (
        total_shape is None
        or added is None
        or len(zeros) != 1
        or number(flow, zeros[0].get("value")) != 0
        or not stores
    ):
        return None
    statements = {allocation, statement, zeros[0].statement, *(i.statement for i in stores)}
    uses = {flow.statement_of(n) for n in flow.occurrences(name)}
    at_home = all(s is statement or (s is not None and s.block is allocation.block) for s in uses)
    if uses != statements or not at_home or flow.sharing([name]) != {name}:
        return None
    rows, columns = (number_of_text(flow, size) for size in (total_shape.rows, total_shape.columns))
    if rows is None or columns is None or rows > _MOST_ROWS or columns > _BANK_COLUMNS:
        return None
    same = (total_shape.rows, total_shape.columns) == (added.rows, added.columns)
    buffers = [_buffer(kernel, name), _buffer(kernel, term.value)]
    if not same or None in buffers or (total_shape.dtype or "").rpartition(".")[2] != "float32":
        return None
    prepared = _identity_in_place(kernel, f"identity_{name}", total_shape.rows)
    words = {w: kernel.spelled(f"{NL}.{w}") for w in ("psum", "sbuf", "ndarray", "float32")}
    product = kernel.spell(
        f"{NISA}.nc_matmul", name, f"identity_{name}", term.value, is_stationary_onezero="True"
    )
    copy = kernel.spell(f"{NISA}.tensor_copy", f"{name}_sum", name)
    where = allocation.loops[0] if allocation.loops else allocation.node
    is_used = any(flow.occurrences(n) for n in (f"{name}_sum", f"identity_{name}", f"places_{name}"))
    steady = (
        not flow.variables(allocation.value) & flow.varying(allocation.loops[0]) if allocation.loops else True
    )
    if is_used or not steady or prepared is None or product is None or copy is None or None in words.values():
        return None
    assert buffers[0] is not None
    shape = f"({total_shape.rows}, {total_shape.columns})"
    held = f"{name}_sum = {words['ndarray']}({shape}, dtype={words['float32']}, buffer={words['sbuf']})"
    first = min((i.statement.node for i in stores if i.statement is not None), key=source.start)
    edits = [
        source.before(where, prepared),
        source.replace(buffers[0], words["psum"] or ""),
        source.replace(instruction.call, product),
        source.before(first, f"{held}\n{copy}"),
        *(source.replace(i["src"], f"{name}_sum") for i in stores),
    ]
    if zeros[0].statement is not None:
        edits.append(source.without(zeros[0].statement.node))
    line = source.line(statement.node)
    return Rewrite(tuple(edits), f"Add up {name} (line {line}) on TensorE, as products with the identity.")


def _is(node: cst.BaseExpression | None, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _buffer(kernel: NkiKernel, name: str) -> cst.BaseExpression | None:
    """Return the argument that places a tile in SBUF."""
    allocation = kernel.flow.allocation(name)
    instruction = (
        kernel.instruction(allocation.value)
        if allocation is not None and allocation.value is not None
        else None
    )
    buffer = instruction.get("buffer") if instruction is not None else None
    return buffer if buffer is not None and kernel.path(buffer) == f"{NL}.sbuf" else None


def _identity_in_place(kernel: NkiKernel, name: str, rows: str) -> str | None:
    """Return the statements that make the identity matrix: 1 where the column's number less the row's is 0."""
    places = name.replace("identity_", "places_")
    ndarray, float32, sbuf, equal = (
        kernel.spelled(f"{NL}.{w}") for w in ("ndarray", "float32", "sbuf", "equal")
    )
    numbers = kernel.spell(f"{NISA}.iota", places, f"[[1, {rows}]]", offset="0", channel_multiplier="-1")
    ones = kernel.spell(f"{NISA}.tensor_scalar", name, places, equal or "", "0.0")
    if numbers is None or ones is None or None in (ndarray, float32, sbuf, equal):
        return None
    allocation = f"{ndarray}(({rows}, {rows}), dtype={float32}, buffer={sbuf})"
    return f"{places} = {allocation}\n{numbers}\n{name} = {allocation}\n{ones}"
