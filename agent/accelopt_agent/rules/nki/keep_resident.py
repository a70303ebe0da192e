"""Load all tiles that a loop reads in every iteration once, before it, and keep them in SBUF."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.constants import number
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.loops import loop_variable, runs_each_iteration
from accelopt_agent.rules.analysis.nki.kernel import NkiCall, NkiKernel
from accelopt_agent.rules.analysis.nki.resident_tiles import in_loops, keep, too_large
from accelopt_agent.rules.analysis.nki.tile_shapes import TileShape
from accelopt_agent.rules.analysis.rule_context import Rewrite


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for load in kernel.of("nl.load"):
        statement = load.statement
        if statement is None or kernel.code(load.get("mask")) is not None:
            continue
        for position, outer in enumerate(statement.loops):
            inner = _loops_to_repeat(kernel, load, statement.loops[position:])
            if not inner:
                continue
            keep_tile = _keep_variable if isinstance(statement.target, cst.Name) else _keep_tensor
            rewrite = keep_tile(kernel, load, outer, inner)
            if rewrite is not None:
                yield rewrite
                break


def _loops_to_repeat(kernel: NkiKernel, load: NkiCall, loops: tuple[cst.For, ...]) -> list[cst.For]:
    """Return the loops inside ``loops[0]`` that the load depends on, if it does not depend on ``loops[0]``
    itself."""
    flow, statement = kernel.flow, load.statement
    assert statement is not None
    outer, inside = loops[0], loops[1:]
    chain = [*(flow.statement_of(loop) for loop in inside), statement]
    if any(s is None or not runs_each_iteration(s, loop) for s, loop in zip(chain, loops, strict=True)):
        return []
    used = flow.variables(load.call)
    repeat = [loop for loop in inside if loop_variable(loop) in used]
    own = {v for loop in repeat if (v := loop_variable(loop)) is not None}
    if any(flow.variables(loop.iter) & flow.varying(outer) for loop in repeat):
        return []
    return repeat if not used & flow.varying(outer) - own else []


def _keep_variable(kernel: NkiKernel, load: NkiCall, outer: cst.For, inner: list[cst.For]) -> Rewrite | None:
    """``t = load(...)``: a new tensor with a dimension for each loop takes the place of ``t``."""
    flow, source, statement = kernel.flow, kernel.source, load.statement
    assert statement is not None
    uses, name = flow.uses_after(statement), statement.target_name
    if not uses or any(isinstance(source.parent(n), (cst.Subscript, cst.Attribute)) for n in uses):
        return None
    sizes = _tile_sizes(kernel, load["src"], inner)
    tensor = load["src"].value if isinstance(load["src"], cst.Subscript) else None
    if sizes is None or not isinstance(tensor, cst.Name):
        return None
    dtype = kernel.code(load.get("dtype")) or f"{tensor.value}.dtype"
    resident = keep(kernel, f"{name}_kept", TileShape(*sizes, dtype), inner)
    if resident is None:
        return None
    filled = source.with_comment(statement.node, f"{resident.place(kernel)} = {source.code(load.call)}")
    edits = [source.before(outer, resident.filled(kernel, [filled])), source.moved(statement.node)]
    edits += [source.replace(n, resident.place(kernel)) for n in uses]
    return Rewrite(tuple(edits), _summary(kernel, name, outer))


def _keep_tensor(kernel: NkiKernel, load: NkiCall, outer: cst.For, inner: list[cst.For]) -> Rewrite | None:
    """``t[i, j, ...] = load(...)``: the load moves before the loop over ``i``, and ``t`` loses that dimension."""
    flow, source, statement, variable = kernel.flow, kernel.source, load.statement, loop_variable(outer)
    assert statement is not None
    name, target = statement.target_name, statement.target
    allocation = flow.allocation(name) if name else None
    instruction = kernel.instruction(allocation.value) if allocation and allocation.value else None
    shape = instruction.get("shape") if instruction else None
    if (
        name is None
        or allocation is None
        or not isinstance(shape, cst.Tuple)
        or not isinstance(target, cst.Subscript)
    ):
        return None
    if [s for s in flow.simple() if name in s.writes and s is not allocation] != [statement]:
        return None
    position = _position(kernel, target, variable)
    if position is None or too_large(kernel, [source.code(e.value) for e in shape.elements[position + 1 :]]):
        return None
    uses = [n for n in flow.occurrences(name) if n is not allocation.target]
    edits: list[ByteEdit] = []
    for use in uses:
        subscript = source.parent(use)
        if outer not in source.parents(use) or not isinstance(subscript, cst.Subscript):
            return None
        if _position(kernel, subscript, variable) != position:
            return None
        if subscript is not target:
            edits.append(_without_index(kernel, subscript, position))
    cut = _without_index(kernel, target, position)
    moved = source.edited(statement.node, cut)
    edits.append(
        ByteEdit(source.start(shape.elements[position]), source.start(shape.elements[position + 1]), "")
    )
    lines = in_loops(kernel, inner, [source.with_comment(statement.node, moved)])
    edits += [source.before(outer, "\n".join(lines)), source.moved(statement.node)]
    return Rewrite(tuple(edits), _summary(kernel, name, outer))


def _position(kernel: NkiKernel, subscript: cst.Subscript, variable: str | None) -> int | None:
    """Return which index of ``subscript`` is the loop variable alone, if just one is and no other index has it."""
    having = [
        p
        for p, e in enumerate(subscript.slice)
        if variable in {n.value for n in kernel.source.walk(e, cst.Name)}
    ]
    if len(having) != 1 or having[0] == len(subscript.slice) - 1:
        return None
    element = subscript.slice[having[0]].slice
    alone = isinstance(element, cst.Index) and isinstance(element.value, cst.Name)
    return having[0] if alone else None


def _without_index(kernel: NkiKernel, subscript: cst.Subscript, position: int) -> ByteEdit:
    return ByteEdit(
        kernel.source.start(subscript.slice[position]), kernel.source.start(subscript.slice[position + 1]), ""
    )


def _tile_sizes(kernel: NkiKernel, node: cst.BaseExpression, loops: list[cst.For]) -> tuple[str, str] | None:
    """Rows and columns of what ``tensor[a:b, c:d]`` loads, as source text."""
    if not isinstance(node, cst.Subscript) or len(node.slice) != 2:
        return None
    extents = [_extent(kernel, e.slice, loops) for e in node.slice]
    return (extents[0], extents[1]) if extents[0] and extents[1] else None


def _extent(kernel: NkiKernel, index: cst.BaseSlice, loops: list[cst.For]) -> str | None:
    if not isinstance(index, cst.Slice) or index.upper is None or index.step is not None:
        return None
    if index.lower is None or number(kernel.flow, index.lower) == 0:
        varying = {loop_variable(loop) for loop in loops}
        return None if kernel.flow.variables(index.upper) & varying else kernel.source.code(index.upper)
    extents = set()
    for value in (0, 1):
        values = {v: value for loop in loops if (v := loop_variable(loop)) is not None}
        ends = [number(kernel.flow, e, values) for e in (index.lower, index.upper)]
        extents.add(None if ends[0] is None or ends[1] is None else ends[1] - ends[0])
    extent = extents.pop()
    return str(extent) if not extents and isinstance(extent, int) and extent > 0 else None


def _summary(kernel: NkiKernel, name: str | None, outer: cst.For) -> str:
    return f"Load {name} once before the loop over {kernel.source.code(outer.target)} and keep it in SBUF."
