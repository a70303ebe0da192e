"""Load or store rows in full, before or after the loop that takes them part by part: larger and fewer transfers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.constants import factor
from accelopt_agent.rules.analysis.loops import loop_variable, runs_each_iteration
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.nki.resident_tiles import too_large
from accelopt_agent.rules.analysis.nki.tile_shapes import TileShape, aranges, tile
from accelopt_agent.rules.analysis.parsed_source import canonical
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement

_Widening = Callable[[NkiKernel, NkiCall], Rewrite | None]


def _wider(kernel: NkiKernel, by_slices: _Widening, name: str, in_full: _Widening) -> Iterator[Rewrite]:
    """Yield what becomes of each copy of today's dialect, and of each call ``name`` of Beta 1."""
    for calls, widened in ((kernel.of("nisa.dma_copy"), by_slices), (kernel.of(name), in_full)):
        for call in calls:
            if (rewrite := widened(kernel, call)) is not None:
                yield rewrite


def wider_loads(kernel: NkiKernel) -> Iterator[Rewrite]:
    yield from _wider(kernel, _loaded_by_slices, "nl.load", _loaded_in_full)


def _loaded_in_full(kernel: NkiKernel, load: NkiCall) -> Rewrite | None:
    statement, source = load.statement, kernel.source
    if statement is None or not isinstance(statement.target, cst.Name):
        return None
    row_parts, name = parts(kernel, load["src"], statement.loops), statement.target.value
    row, mask = f"{name}_rows", load.get("mask")
    uses = kernel.flow.uses_after(statement)
    if row_parts is None or not uses or kernel.flow.occurrences(row) or not _of_rows(kernel, mask, row_parts):
        return None
    rest = kernel.flow.variables(load["src"]) - {loop_variable(row_parts.loop)}
    if rest & kernel.flow.varying(row_parts.loop) or row_parts.loop is not statement.loops[-1]:
        return None
    edits = [source.moved(statement.node)]
    for use in uses:
        parent = source.parent(use)
        if isinstance(parent, (cst.Attribute, cst.Subscript)):
            return None
        edits.append(source.replace(use, row_parts.part(row, masked=mask is not None)))
    call = source.code(load.call).replace(source.code(load["src"]), row_parts.whole, 1)
    edits.append(source.before(row_parts.loop, source.with_comment(statement.node, f"{row} = {call}")))
    over = source.code(row_parts.loop.target)
    return Rewrite(tuple(edits), f"Load the rows of {row_parts.tensor} in full before the loop over {over}.")


def _loaded_by_slices(kernel: NkiKernel, copy: NkiCall) -> Rewrite | None:
    """Today's dialect: one tile for the rows in full, of which each iteration reads a view."""
    statement, source, flow = copy.statement, kernel.source, kernel.flow
    destination = copy.destination
    if statement is None or not isinstance(destination, cst.Name) or not statement.loops:
        return None
    name, loop = destination.value, statement.loops[-1]
    row_parts, allocation, row = (
        row_slice(kernel, copy.get("src"), loop),
        flow.allocation(name),
        f"{name}_rows",
    )
    uses = flow.uses_after(statement)
    if (
        row_parts is None
        or allocation is None
        or not uses
        or flow.occurrences(row)
        or set(copy.args) != {"src"}
    ):
        return None
    assert allocation.value is not None
    instruction, shape = kernel.instruction(allocation.value), tile(kernel, allocation.value)
    sizes = instruction.get("shape") if instruction else None
    if shape is None or sizes is None or allocation.block is not statement.block:
        return None
    steady = row_parts.used | {row_parts.tensor} | (flow.variables(allocation.value))
    if steady & flow.varying(loop) or too_large(kernel, [shape.rows, row_parts.length]):
        return None
    part = f"{row}[:, {row_parts.slice}]"
    edits = [source.moved(allocation.node), source.moved(statement.node)]
    for use in uses:
        if isinstance(source.parent(use), (cst.Attribute, cst.Subscript)):
            return None
        edits.append(source.replace(use, part))
    whole_sizes = source.replace_with_parentheses(sizes, f"({shape.rows}, {row_parts.length})")
    value = source.edited(allocation.value, whole_sizes)
    load = kernel.spell("nisa.dma_copy", row, row_parts.whole)
    lines = [
        source.with_comment(allocation.node, f"{row} = {value}"),
        source.with_comment(statement.node, load),
    ]
    edits.append(source.before(loop, "\n".join(lines)))
    over = source.code(loop.target)
    return Rewrite(tuple(edits), f"Load the rows of {row_parts.tensor} in full before the loop over {over}.")


def wider_stores(kernel: NkiKernel) -> Iterator[Rewrite]:
    yield from _wider(kernel, _stored_by_slices, "nl.store", _stored_in_full)


def _stored_in_full(kernel: NkiKernel, store: NkiCall) -> Rewrite | None:
    statement, source, flow, value = store.statement, kernel.source, kernel.flow, store.get("value")
    if statement is None or value is None or set(store.args) - {"mask"} != {"dst", "value"}:
        return None
    assert isinstance(store.call, cst.Call)
    row_parts, mask = parts(kernel, store["dst"], statement.loops[-1:]), store.get("mask")
    words = {w: kernel.spelled(f"{NL}.{w}") for w in ("ndarray", "par_dim", "sbuf")}
    if row_parts is None or None in words.values() or not runs_each_iteration(statement, row_parts.loop):
        return None
    if not _of_rows(kernel, mask, row_parts):
        return None
    tensor, row = row_parts.tensor, f"{row_parts.tensor}_rows"
    rest = flow.variables(store["dst"]) - {loop_variable(row_parts.loop), tensor}
    touching = [
        s for s in flow.statements if row_parts.loop in s.loops and s.simple and tensor in s.reads | s.writes
    ]
    reads = [s for s in touching if s is not statement and not _only_dtype(kernel, s, tensor)]
    if rest & flow.varying(row_parts.loop) or reads or flow.occurrences(row):
        return None
    shape = f"({words['par_dim']}({row_parts.rows}), {row_parts.length})"
    allocation_text = f"{row} = {words['ndarray']}({shape}, dtype={tensor}.dtype, buffer={words['sbuf']})"
    edits = [source.before(row_parts.loop, allocation_text)]
    maker, part = kernel.producer(value, statement), row_parts.part(row, masked=mask is not None)
    if maker is not None and maker.statement is not None and isinstance(maker.statement.target, cst.Name):
        edits.append(source.replace(maker.statement.target, part))
        edits.append(source.without(statement.node))
    else:
        edits.append(source.replace(statement.node, f"{part} = {_copied(kernel, value, mask)}"))
    under = f", mask={source.code(mask)}" if mask is not None else ""
    edits.append(
        source.after(row_parts.loop, f"{source.code(store.call.func)}({row_parts.whole}, value={row}{under})")
    )
    over = source.code(row_parts.loop.target)
    return Rewrite(tuple(edits), f"Store the rows of {tensor} in full after the loop over {over}.")


def _copied(kernel: NkiKernel, value: cst.BaseExpression, mask: cst.BaseExpression | None) -> str:
    """Return the value as an instruction's result: a variable has to be copied."""
    code = kernel.source.code(value)
    if not isinstance(value, (cst.Name, cst.Subscript)):
        return code
    return kernel.spell("nl.copy", code, mask=kernel.code(mask)) or code


def _of_rows(kernel: NkiKernel, mask: cst.BaseExpression | None, row_parts: RowParts) -> bool:
    """Return whether a mask chooses rows, the same in each iteration of the loop; true where there is none."""
    if mask is None:
        return True
    axes = {axis for axis, _ in aranges(kernel, mask)}
    return axes == {"rows"} and not kernel.flow.variables(mask) & kernel.flow.varying(row_parts.loop)


def _only_dtype(kernel: NkiKernel, statement: Statement, tensor: str) -> bool:
    """Return whether a statement asks for nothing but the tensor's type."""
    names = [n for n in kernel.source.walk(statement.node, cst.Name) if n.value == tensor]
    parents = [kernel.source.parent(n) for n in names]
    return all(isinstance(p, cst.Attribute) and p.attr.value == "dtype" for p in parents)


def _stored_by_slices(kernel: NkiKernel, copy: NkiCall) -> Rewrite | None:
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
    row_parts, allocation = row_slice(kernel, copy.destination, loop), flow.allocation(name)
    if row_parts is None or allocation is None or allocation.value is None:
        return None
    row, shape = f"{name}_rows", tile(kernel, allocation.value)
    instruction = kernel.instruction(allocation.value)
    sizes, buffer = (instruction.get("shape"), instruction.get("buffer")) if instruction else (None, None)
    if buffer is not None and kernel.path(buffer) != f"{NL}.sbuf":
        return None
    if shape is None or sizes is None or not runs_each_iteration(statement, loop) or flow.occurrences(row):
        return None
    touching = [s for s in flow.simple() if loop in s.loops and row_parts.tensor in s.reads | s.writes]
    reads = [s for s in touching if s is not statement and not _only_dtype(kernel, s, row_parts.tensor)]
    uses = [n for n in flow.occurrences(name) if n is not allocation.bound]
    outside = any(loop not in source.parents(n) for n in uses) or allocation.block is not statement.block
    parts_of_it = any(isinstance(source.parent(n), (cst.Subscript, cst.Attribute)) for n in uses)
    if reads or outside or parts_of_it or flow.sharing([name]) != {name}:
        return None
    if (row_parts.used | flow.variables(allocation.value) - {row_parts.tensor}) & flow.varying(loop):
        return None
    if too_large(kernel, [shape.rows, row_parts.length]):
        return None
    whole_sizes = source.replace_with_parentheses(sizes, f"({shape.rows}, {row_parts.length})")
    whole = source.edited(allocation.value, whole_sizes)
    edits = [source.before(loop, source.with_comment(allocation.node, f"{row} = {whole}"))]
    edits += [source.moved(allocation.node), source.moved(statement.node)]
    edits += [
        source.replace(n, f"{row}[:, {row_parts.slice}]")
        for n in uses
        if flow.statement_of(n) is not statement
    ]
    store = kernel.spell("nisa.dma_copy", row_parts.whole, row) or ""
    edits.append(source.after(loop, source.with_comment(statement.node, store)))
    over = source.code(loop.target)
    return Rewrite(tuple(edits), f"Store the rows of {row_parts.tensor} in full after the loop over {over}.")


@dataclass(frozen=True)
class RowParts:
    """``part`` is the index expression of one iteration of ``loop``, ``offset`` its first column as code, ``all`` the
    index of the whole row; ``before`` are the other indices, ``rows`` and ``width`` the sizes of one part, ``length``
    that of all. ``place`` is the index that chooses the rows, without what is added to it."""

    loop: cst.For
    tensor: str
    before: tuple[str, ...]
    rows: str
    width: str
    length: str
    offset: str
    arange: str
    place: str

    @property
    def whole(self) -> str:
        """The rows in full, in the tensor."""
        return f"{self.tensor}[{', '.join([*self.before, f'{self.arange}({self.length})[None, :]'])}]"

    def part(self, name: str, *, masked: bool = False) -> str:
        """Return the part of the current iteration of a tile ``name`` that holds the rows in full; a mask is made of
        the index that the kernel has for the rows."""
        rows = self.place if masked else f"{self.arange}({self.rows})[:, None]"
        return f"{name}[{rows}, {self.offset} + {self.arange}({self.width})[None, :]]"


def parts(kernel: NkiKernel, node: cst.BaseExpression, loops: tuple[cst.For, ...]) -> RowParts | None:
    """Return the part of its rows that ``node`` takes in one of ``loops``; its last index must depend on that loop
    alone."""
    arange = kernel.spelled(f"{NL}.arange")
    shape: TileShape | None = tile(kernel, node)
    if (
        not isinstance(node, cst.Subscript)
        or not isinstance(node.value, cst.Name)
        or shape is None
        or arange is None
    ):
        return None
    last = node.slice[-1].slice
    if not isinstance(last, cst.Index) or not isinstance(last.value, cst.BinaryOperation):
        return None
    product, columns = last.value.left, last.value.right
    if not isinstance(last.value.operator, cst.Add) or not isinstance(product, cst.BinaryOperation):
        return None
    count, width = product.left, product.right
    loop = next(
        (at for at in loops if isinstance(count, cst.Name) and loop_variable(at) == count.value), None
    )
    if loop is None or not isinstance(product.operator, cst.Multiply) or not _is_columns(kernel, columns):
        return None
    if (
        kernel.source.code(width) != shape.columns
        or not isinstance(loop.iter, cst.Call)
        or len(loop.iter.args) != 1
    ):
        return None
    others = node.slice[:-1]
    if not others or any(loop_variable(loop) in kernel.flow.variables(other) for other in others):
        return None
    times = kernel.source.code(loop.iter.args[0].value)
    length = f"{factor(shape.columns)} * {factor(times)}"
    before = tuple(kernel.source.code(other).strip(", ") for other in others)
    offset = kernel.source.code(product)
    place = _place(kernel, others[-1].slice) or f"{arange}({shape.rows})[:, None]"
    return RowParts(
        loop,
        node.value.value,
        before=before,
        rows=shape.rows,
        width=shape.columns,
        length=length,
        offset=offset,
        arange=arange,
        place=place,
    )


def _place(kernel: NkiKernel, index: cst.BaseSlice) -> str | None:
    """Return the variable in an index that is bound to ``nl.arange``, if there is just one."""
    names = {n.value for n in kernel.source.walk(index, cst.Name)} & kernel.index_variables
    if len(names) != 1:
        return None
    (name,) = names
    bound = kernel.flow.binding(name)
    return name if len(bound) == 1 and isinstance(bound[0].value, cst.Subscript) else None


def _is_columns(kernel: NkiKernel, node: cst.BaseExpression) -> bool:
    """``arange(n)[None, :]`` or a variable bound to it."""
    if isinstance(node, cst.Name) and node.value in kernel.index_variables:
        bound = [s for s in kernel.flow.simple() if s.binds(node.value)]
        return len(bound) == 1 and bound[0].value is not None and _is_columns(kernel, bound[0].value)
    if not isinstance(node, cst.Subscript) or not isinstance(node.value, cst.Call):
        return False
    indices = [kernel.source.code(e).strip(", ") for e in node.slice]
    return kernel.path(node.value.func) == f"{NL}.arange" and indices == ["None", ":"]


@dataclass(frozen=True)
class RowSlice:
    """``part`` of ``tensor`` takes the columns ``slice`` of its rows in an iteration of ``loop``; ``whole`` takes
    those of all iterations, ``length`` many. ``used`` are the other variables in its indices."""

    loop: cst.For
    tensor: str
    part: cst.Subscript
    slice: str
    whole: str
    length: str
    used: frozenset[str]


def row_slice(kernel: NkiKernel, node: cst.BaseExpression | None, loop: cst.For) -> RowSlice | None:
    """Return the part of its rows that ``node`` takes in an iteration of ``loop``, on which no other index depends."""
    variable, source = loop_variable(loop), kernel.source
    if not isinstance(node, cst.Subscript) or not isinstance(node.value, cst.Name) or len(node.slice) < 2:
        return None
    last = node.slice[-1].slice
    if variable is None or not isinstance(loop.iter, cst.Call) or len(loop.iter.args) != 1:
        return None
    call = _span(kernel, last.value, loop) if isinstance(last, cst.Index) else None
    span = (call.args[0].value, call.args[1].value) if call is not None else _slice(kernel, last)
    if span is None:
        return None
    first, width = span
    if not isinstance(first, cst.BinaryOperation) or not isinstance(first.operator, cst.Multiply):
        return None
    sides = [(first.left, first.right), (first.right, first.left)]
    if not any(source.code(one) == variable and source.same(step, width) for one, step in sides):
        return None
    others = node.slice[:-1]
    used = {name for other in others for name in kernel.flow.variables(other)}
    if variable in used or variable in kernel.flow.variables(width):
        return None
    length = f"{factor(source.code(width))} * {factor(source.code(loop.iter.args[0].value))}"
    before = ", ".join(source.code(other).strip(", ") for other in others)
    columns = f"0 : {length}" if call is None else f"{source.code(call.func)}(0, {length})"
    whole = f"{node.value.value}[{before}, {columns}]"
    used |= kernel.flow.variables(width) | kernel.flow.variables(loop.iter)
    return RowSlice(
        loop,
        node.value.value,
        part=node,
        slice=source.code(last),
        whole=whole,
        length=length,
        used=frozenset(used),
    )


def _slice(kernel: NkiKernel, index: cst.BaseSlice) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """Return where a slice ``a * W : (a + 1) * W`` or ``a * W : a * W + W`` begins, and W."""
    if not isinstance(index, cst.Slice):
        return None
    low, high = index.lower, index.upper
    if not isinstance(low, cst.BinaryOperation) or high is None or index.step is not None:
        return None
    code = kernel.source.code
    for one, step in ((low.left, low.right), (low.right, low.left)):
        if isinstance(low.operator, cst.Multiply) and isinstance(one, cst.Name):
            a, w = code(one), factor(code(step))
            ends = (f"({a} + 1) * {w}", f"{w} * ({a} + 1)", f"{a} * {w} + {w}", f"{w} * {a} + {w}")
            if canonical(code(high)) in {canonical(end) for end in ends}:
                return low, step
    return None


def _span(kernel: NkiKernel, node: cst.BaseExpression, loop: cst.For) -> cst.Call | None:
    """``nl.ds(a, b)``, or a variable bound to it in the loop."""
    if isinstance(node, cst.Name):
        bound = kernel.flow.binding(node.value)
        if len(bound) != 1 or loop not in bound[0].loops or bound[0].value is None:
            return None
        node = bound[0].value
    is_span = isinstance(node, cst.Call) and kernel.path(node.func) == f"{NL}.ds" and len(node.args) == 2
    return node if is_span and isinstance(node, cst.Call) else None
