"""Work on two iterations at once, one on each half of the partitions, where a tile fills at most half of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from accelopt_agent.rules.analysis.constants import factor, number, number_of_text
from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.loops import loop_variable
from accelopt_agent.rules.analysis.nki.elementwise import activation, pair, scalar_steps
from accelopt_agent.rules.analysis.nki.independence import independent
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiCall, NkiKernel
from accelopt_agent.rules.analysis.nki.tile_shapes import TileShape, tile
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement, is_string, root_name

#: Rows of a tile of which two fit above one another, each starting where an instruction may start (NKI programming
#: model: an operand starts at partition 0, 32, 64 or 96).
_HALVES = (32, 64)

_WORDS = ("affine_range", "ndarray", "par_dim", "arange", "sbuf")


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for statement in kernel.flow.statements:
        if not isinstance(statement.node, cst.For):
            continue
        if kernel.dialect.mutates:
            in_place = _stackable_in_place(kernel, statement.node)
            if in_place is not None:
                yield _stacked_in_place(kernel, in_place)
        elif (body := _stackable(kernel, statement.node)) is not None:
            yield _stacked(kernel, body)


@dataclass
class _StackableLoop:
    """A loop that loads tiles of ``rows`` partitions, works on them element by element, and stores the results."""

    loop: cst.For
    variable: str
    count: str
    rows: str
    words: dict[str, str]
    loads: list[tuple[NkiCall, TileShape]] = field(default_factory=list)
    stores: list[NkiCall] = field(default_factory=list)
    allocations: dict[str, Statement] = field(default_factory=dict)
    positions: list[Statement] = field(default_factory=list)


def _stackable(kernel: NkiKernel, loop: cst.For) -> _StackableLoop | None:
    flow, source, variable = kernel.flow, kernel.source, loop_variable(loop)
    words = {w: spelled for w in _WORDS if (spelled := kernel.spelled(f"{NL}.{w}"))}
    if variable is None or len(words) != len(_WORDS) or loop.orelse is not None:
        return None
    if not isinstance(loop.iter, cst.Call) or kernel.path(loop.iter.func) != f"{NL}.affine_range":
        return None
    if len(loop.iter.args) != 1 or any(flow.occurrences(n) for n in _new_names(variable)):
        return None
    body = _StackableLoop(loop, variable, count=source.code(loop.iter.args[0].value), rows="", words=words)
    instructions = {i.statement: i for i in kernel.instructions}
    tiles: set[str] = set()
    for statement in (s for s in flow.statements if loop in s.loops):
        instruction = instructions.get(statement)
        if instruction is None or statement.block is not loop.body or instruction.get("mask") is not None:
            return None
        name = statement.target_name
        if instruction.path == f"{NL}.store":
            value = instruction.get("value")
            if not isinstance(value, cst.Name) or value.value not in tiles:
                return None
            body.stores.append(instruction)
        elif not isinstance(statement.target, cst.Name) or name is None or flow.uses_after(statement) is None:
            return None
        elif instruction.path == f"{NL}.load":
            loaded = tile(kernel, instruction.call)
            if loaded is None or loaded.dtype is None or body.rows not in ("", loaded.rows):
                return None
            body.rows = loaded.rows
            body.loads.append((instruction, loaded))
        elif not _works_on(kernel, instruction, tiles):
            return None
        if name is not None:
            tiles.add(name)
    return body if _fits(kernel, body) else None


def _new_names(variable: str) -> tuple[str, ...]:
    return f"{variable}_stack", f"{variable}_outer", f"{variable}_inner"


def _works_on(kernel: NkiKernel, instruction: NkiCall, tiles: set[str]) -> bool:
    """Return whether the instruction does the same to each partition of tiles made in the loop, with numbers
    besides."""
    operands: list[cst.BaseExpression | None] = []
    if (both := pair(kernel, instruction)) is not None:
        operands = [both.left, both.right]
    elif (steps := scalar_steps(kernel, instruction)) is not None:
        operands = [steps.data, *(s.operand for s in steps.steps)]
    elif (function := activation(kernel, instruction)) is not None:
        operands = [function.data, function.scale, function.bias]
    return bool(operands) and all(
        o is None or number(kernel.flow, o) is not None or (isinstance(o, cst.Name) and o.value in tiles)
        for o in operands
    )


def _fits(kernel: NkiKernel, body: _StackableLoop) -> bool:
    """Return whether two tiles fit, as far as sizes are known, and nothing that is stored is loaded in the same
    loop."""
    flow = kernel.flow
    rows, count = number_of_text(flow, body.rows), number_of_text(flow, body.count)
    if not body.loads or not body.stores or (rows is not None and rows not in _HALVES):
        return False
    if isinstance(count, int) and count % 2:
        return False
    if kernel.dialect.mutates:
        return True
    loaded = {n for load, _ in body.loads for n in flow.variables(load["src"])}
    stored = {name for store in body.stores if (name := root_name(store["dst"]))}
    return len(stored) > 0 and not flow.sharing(loaded) & flow.sharing(stored)


def _stacked(kernel: NkiKernel, body: _StackableLoop) -> Rewrite:
    source, words, v = kernel.source, body.words, body.variable
    stack, outer, inner = _new_names(v)
    half = f"{words['arange']}({body.rows})[:, None]"
    allocated, loading, storing = [], [], []
    edits: list[ByteEdit] = []
    for load, loaded in body.loads:
        assert load.statement is not None
        name = load.statement.target_name
        shape = f"({words['par_dim']}({stack} * {factor(body.rows)}), {loaded.columns})"
        allocated.append(
            f"{name} = {words['ndarray']}({shape}, dtype={loaded.dtype}, buffer={words['sbuf']})"
        )
        filled = f"{name}[{_place(body, inner, half, loaded)}] = {source.code(load.call)}"
        loading.append(source.with_comment(load.statement.node, filled))
        edits.append(source.moved(load.statement.node))
    for store in body.stores:
        assert store.statement is not None
        value = store["value"]
        stored = tile(kernel, value) or body.loads[0][1]
        at, end = source.start(store.call), source.end(store.call)
        part = f"{source.code(value)}[{_place(body, inner, half, stored)}]"
        before = source.data[at : source.start(value)].decode()
        after = source.data[source.end(value) : end].decode()
        storing.append(source.with_comment(store.statement.node, f"{before}{part}{after}"))
        edits.append(source.moved(store.statement.node))
    first, last = body.loop.body.body[0], body.loop.body.body[-1]
    edits.append(source.before(first, "\n".join([*allocated, *_each(body, loading, source.step)])))
    edits.append(source.after(last, "\n".join(_each(body, storing, source.step))))
    blocks = f"{words['affine_range']}({factor(body.count)} // {stack})"
    edits += [source.replace(body.loop.target, outer), source.replace(body.loop.iter, blocks)]
    edits.append(source.before(body.loop, f"{stack} = {_stack_of(kernel, body)}"))
    return Rewrite(
        tuple(edits), f"Work on two iterations over {v} at once, one on each half of the partitions."
    )


def _place(body: _StackableLoop, inner: str, half: str, of: TileShape) -> str:
    columns = f"{body.words['arange']}({of.columns})[None, :]"
    return f"{inner} * {factor(body.rows)} + {half}, {columns}"


def _each(body: _StackableLoop, lines: Sequence[str], step: str) -> list[str]:
    """``lines`` for each of the iterations that are stacked, in blocks that are ``step`` deeper."""
    stack, outer, inner = _new_names(body.variable)
    return [
        f"for {inner} in {body.words['affine_range']}({stack}):",
        f"{step}{body.variable} = {outer} * {stack} + {inner}",
        *(f"{step}{line}" for line in lines),
    ]


def _stack_of(kernel: NkiKernel, body: _StackableLoop) -> str:
    """2, or where the syntax does not tell whether that is possible, a choice when the kernel is traced."""
    conditions = []
    if number_of_text(kernel.flow, body.rows) is None:
        conditions.append(f"{factor(body.rows)} in {_HALVES}")
    if number_of_text(kernel.flow, body.count) is None:
        conditions.append(f"{factor(body.count)} % 2 == 0")
    return f"2 if {' and '.join(conditions)} else 1" if conditions else "2"


def _stackable_in_place(kernel: NkiKernel, loop: cst.For) -> _StackableLoop | None:
    """Return such a loop of today's dialect, each of whose tiles is made in it and written once."""
    flow, source, variable = kernel.flow, kernel.source, loop_variable(loop)
    ranges = (
        kernel.path(loop.iter.func) or source.code(loop.iter.func) if isinstance(loop.iter, cst.Call) else ""
    )
    if variable is None or ranges not in ("range", f"{NL}.affine_range") or loop.orelse is not None:
        return None
    if not isinstance(loop.iter, cst.Call) or len(loop.iter.args) != 1 or not independent(kernel, loop):
        return None
    if any(flow.occurrences(n) for n in _new_names(variable)):
        return None
    words = {"affine_range": "range", "ds": kernel.spelled(f"{NL}.ds") or ""}
    body = _StackableLoop(loop, variable, count=source.code(loop.iter.args[0].value), rows="", words=words)
    instructions = {i.statement: i for i in kernel.instructions}
    for statement in (s for s in flow.statements if loop in s.loops):
        if is_string(statement.node):
            continue
        if statement.block is not loop.body or not _takes(
            kernel, body, statement, instructions.get(statement)
        ):
            return None
    names = {s.target_name for s in body.positions}
    moved = {i.statement for i in [*body.stores, *(load for load, _ in body.loads)]} | set(body.positions)
    readers = [s for s in flow.statements if loop in s.loops and s.reads & (names | {variable})]
    return body if words["ds"] and all(s in moved for s in readers) and _fits(kernel, body) else None


def _takes(
    kernel: NkiKernel, body: _StackableLoop, statement: Statement, instruction: NkiCall | None
) -> bool:
    """Return whether a statement can be stacked, and note what it is."""
    flow, allocations = kernel.flow, body.allocations
    name, value = statement.target_name, statement.value
    if name is None or value is None:
        return False
    if isinstance(statement.bound, cst.Name) and flow.allocation(name) is statement:
        shape = tile(kernel, value)
        buffer = instruction.get("buffer") if instruction else None
        in_sbuf = buffer is None or kernel.path(buffer) == f"{NL}.sbuf"
        if (
            shape is None
            or not in_sbuf
            or body.rows not in ("", shape.rows)
            or flow.sharing([name]) != {name}
        ):
            return False
        body.rows, allocations[name] = shape.rows, statement
        return len([s for s in flow.simple() if name in s.stores and s is not statement]) == 1
    if statement.bound is not None:
        call = value.func if isinstance(value, cst.Call) else None
        body.positions.append(statement)
        return call is not None and kernel.path(call) == f"{NL}.ds"
    if instruction is None or statement.destination is None:
        return False
    whole = isinstance(statement.destination, cst.Name) and name in allocations
    if instruction.path == f"{NISA}.dma_copy" and set(instruction.args) == {"src"}:
        source_name = root_name(instruction["src"])
        if whole and source_name not in allocations:
            shape = tile(kernel, statement.destination)
            body.loads += [(instruction, shape)] if shape is not None else []
            return shape is not None
        body.stores.append(instruction)
        return (
            name not in allocations
            and isinstance(instruction["src"], cst.Name)
            and source_name in allocations
        )
    return whole and _works_on(kernel, instruction, set(allocations))


def _stacked_in_place(kernel: NkiKernel, body: _StackableLoop) -> Rewrite:
    source, v = kernel.source, body.variable
    stack, outer, inner = _new_names(v)
    part = f"[{body.words['ds']}({inner} * {factor(body.rows)}, {body.rows}), :]"
    edits: list[ByteEdit] = []
    allocated: list[str] = []
    loading: list[str] = []
    storing: list[str] = []
    loaded = {load.statement.target_name for load, _ in body.loads if load.statement is not None}
    for name, statement in body.allocations.items():
        assert statement.value is not None
        instruction = kernel.instruction(statement.value)
        shape = instruction.get("shape") if instruction else None
        assert isinstance(shape, cst.Tuple)
        rows = source.replace(shape.elements[0].value, f"{stack} * {factor(body.rows)}")
        if name not in loaded:
            edits.append(rows)
            continue
        allocated.append(source.with_comment(statement.node, source.edited(statement.node, rows)))
        edits.append(source.moved(statement.node))
    for call, lines in [*((load, loading) for load, _ in body.loads), *((s, storing) for s in body.stores)]:
        assert call.statement is not None
        on_chip = call.destination if lines is loading else call["src"]
        assert on_chip is not None
        at = source.end(on_chip)
        stacked = source.edited(call.statement.node, ByteEdit(at, at, part))
        lines.append(source.with_comment(call.statement.node, stacked))
        edits.append(source.moved(call.statement.node))
    positions = [source.with_comment(s.node) for s in body.positions]
    edits += [source.moved(s.node) for s in body.positions]
    first = next(s for s in body.loop.body.body if not is_string(s))
    last = body.loop.body.body[-1]
    edits.append(
        source.before(first, "\n".join([*allocated, *_each(body, [*positions, *loading], source.step)]))
    )
    edits.append(source.after(last, "\n".join(_each(body, [*positions, *storing], source.step))))
    blocks = f"range({factor(body.count)} // {stack})"
    edits += [source.replace(body.loop.target, outer), source.replace(body.loop.iter, blocks)]
    edits.append(source.before(body.loop, f"{stack} = {_stack_of(kernel, body)}"))
    return Rewrite(
        tuple(edits), f"Work on two iterations over {v} at once, one on each half of the partitions."
    )
