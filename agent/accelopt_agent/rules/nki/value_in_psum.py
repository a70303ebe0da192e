"""Keep a computed tile in PSUM where VectorE combines it with another one in SBUF: it reads one operand from each in
half the time that it needs for two in SBUF, whose port they would share.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.constants import number_of_text
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.nki.elementwise import activation, pair, scalar_steps
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.nki.tile_shapes import TileShape, tile
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement, root_name
from accelopt_profiling.nki.operations.table import names

#: The columns of a bank in float32.
_WIDEST = 512

_STORES = frozenset({f"{NL}.store", f"{NISA}.dma_copy"})

#: What writes SBUF only.
_LOADS = frozenset({f"{NL}.load", f"{NISA}.dma_transpose"})

#: What reads SBUF only.
_NOT_FROM_PSUM = names("product", "transpose")


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for statement in kernel.flow.simple():
        name = statement.bound.value if isinstance(statement.bound, cst.Name) else None
        instruction = kernel.instruction(statement.value) if statement.value is not None else None
        if name is None or instruction is None or len(kernel.flow.binding(name)) != 1:
            continue
        edits = _moved(kernel, name, statement, instruction)
        if edits:
            line = kernel.source.line(statement.node)
            yield Rewrite(tuple(edits), f"Keep {name}, made in line {line}, in PSUM.")


def _moved(kernel: NkiKernel, name: str, bound: Statement, maker: NkiCall) -> list[ByteEdit]:
    """Return the edits that make a tile in PSUM. None where something needs it in SBUF, or nothing gains."""
    flow, shape = kernel.flow, _shape(kernel, name)
    edits = (
        _made_in_psum(kernel, name, bound=bound, instruction=maker, shape=shape) if shape is not None else []
    )
    if shape is None or not edits or flow.sharing([name]) != {name}:
        return []
    gains = False
    for use in flow.occurrences(name):
        statement = flow.statement_of(use)
        if statement is bound:
            continue
        instruction = _instruction(kernel, use)
        if statement is None or instruction is None or instruction.path in _NOT_FROM_PSUM | _LOADS:
            return []
        if "gpsimd" in (kernel.code(instruction.get("engine")) or ""):
            return []
        if instruction.path in _STORES:
            stored = _stored(kernel, name, use=use, statement=statement, instruction=instruction, shape=shape)
            if not stored:
                return []
            edits += stored
        gains = gains or _halved(kernel, name, instruction)
    return edits if gains else []


def _made_in_psum(
    kernel: NkiKernel, name: str, bound: Statement, instruction: NkiCall, shape: TileShape
) -> list[ByteEdit]:
    """Return the edits to the statement that makes a tile, or that Beta 1 binds a value with."""
    source, psum, buffer = kernel.source, kernel.spelled(f"{NL}.psum"), instruction.get("buffer")
    if psum is None or "gpsimd" in (kernel.code(instruction.get("engine")) or ""):
        return []
    if instruction.path in (f"{NL}.ndarray", f"{NL}.zeros"):
        in_sbuf = buffer is not None and kernel.path(buffer) == f"{NL}.sbuf"
        return [source.replace(buffer, psum)] if buffer is not None and in_sbuf else []
    words = {w: kernel.spelled(f"{NL}.{w}") for w in ("ndarray", "par_dim", "arange")}
    computed = (
        scalar_steps(kernel, instruction) or pair(kernel, instruction) or activation(kernel, instruction)
    )
    if kernel.dialect.mutates or computed is None or None in words.values() or shape.dtype is None:
        return []
    sizes = f"({words['par_dim']}({shape.rows}), {shape.columns})"
    tensor = f"{name} = {words['ndarray']}({sizes}, dtype={shape.dtype}, buffer={psum})"
    place = f"[{words['arange']}({shape.rows})[:, None], {words['arange']}({shape.columns})[None, :]]"
    assert bound.bound is not None
    return [source.before(bound.node, tensor), source.replace(bound.bound, name + place)]


def _shape(kernel: NkiKernel, name: str) -> TileShape | None:
    """Return the shape of a tile that fits a bank."""
    uses = kernel.flow.occurrences(name)
    shape = tile(kernel, uses[0]) if uses else None
    columns = None if shape is None else number_of_text(kernel.flow, shape.columns)
    return shape if columns is not None and 1 < columns <= _WIDEST else None


def _instruction(kernel: NkiKernel, use: cst.Name) -> NkiCall | None:
    """Return the instruction that reads or writes the variable, or a part of it, as an operand."""
    node: cst.CSTNode = use
    above = kernel.source.parent(node)
    while isinstance(above, cst.Subscript) and above.value is node:
        node, above = above, kernel.source.parent(above)
    if isinstance(above, cst.AssignTarget):
        statement = kernel.flow.statement_of(use)
        value = statement.value if statement is not None else None
        return kernel.instruction(value, statement) if value is not None else None
    if isinstance(above, cst.BinaryOperation):
        return kernel.instruction(above)
    call = kernel.source.parent(above) if isinstance(above, cst.Arg) else None
    return kernel.instruction(call) if isinstance(call, cst.Call) else None


def _halved(kernel: NkiKernel, name: str, instruction: NkiCall) -> bool:
    """Return whether VectorE combines the tile with one that lies in SBUF."""
    both = pair(kernel, instruction)
    if both is None:
        return False
    names = [root_name(both.left), root_name(both.right)]
    others = [other for other in names if other is not None and other != name]
    return name in names and len(others) == 1 and not _in_psum(kernel, others[0])


def _in_psum(kernel: NkiKernel, name: str) -> bool:
    """Return whether a variable may be a tile in PSUM."""
    for statement in kernel.flow.binding(name):
        instruction = kernel.instruction(statement.value) if statement.value is not None else None
        if instruction is None or instruction.path in _NOT_FROM_PSUM:
            return True
        buffer = instruction.get("buffer")
        if buffer is not None and kernel.path(buffer) != f"{NL}.sbuf":
            return True
    return False


def _stored(
    kernel: NkiKernel, name: str, use: cst.Name, statement: Statement, instruction: NkiCall, shape: TileShape
) -> list[ByteEdit]:
    """Return the edits that copy the tile to SBUF for the transfer that reads it; none where that cannot be written."""
    source, value = kernel.source, instruction.get("value") or instruction.get("src")
    if value is None or root_name(value) != name or statement.node is not _line_of(kernel, instruction):
        return []
    if not kernel.dialect.mutates:
        copy = kernel.spell("nl.copy", source.code(value))
        return [source.replace(value, copy)] if copy is not None else []
    moved, sbuf = f"{name}_sbuf", kernel.spelled(f"{NL}.sbuf")
    if kernel.flow.occurrences(moved) or sbuf is None or shape.dtype is None:
        return []
    sizes = f"({shape.rows}, {shape.columns})"
    allocation = kernel.spell("nl.ndarray", sizes, dtype=shape.dtype, buffer=sbuf)
    copy = kernel.spell("nisa.tensor_copy", moved, name)
    if allocation is None or copy is None:
        return []
    return [source.before(statement.node, f"{moved} = {allocation}\n{copy}"), source.replace(use, moved)]


def _line_of(kernel: NkiKernel, instruction: NkiCall) -> cst.CSTNode | None:
    statement = kernel.flow.statement_of(instruction.call)
    return statement.node if statement is not None else None
