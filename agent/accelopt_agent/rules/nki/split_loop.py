"""Cut a loop where an engine would wait for another one, and do the first part of all iterations before the second, or
the first part of an iteration before the second part of the one before.

Both are right because the first part, what leads to the operands of the waiting engine, needs nothing that the second
one makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from accelopt_agent.rules.analysis.constants import factor
from accelopt_agent.rules.analysis.edits import ByteEdit, apply_edits
from accelopt_agent.rules.analysis.loops import loop_variable
from accelopt_agent.rules.analysis.nki.independence import JUMPS, binds_first
from accelopt_agent.rules.analysis.nki.kernel import NISA, NL, NkiKernel
from accelopt_agent.rules.analysis.nki.resident_tiles import counted, keep, read_kept, too_large
from accelopt_agent.rules.analysis.nki.tile_shapes import tile
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_profiling.nki.operations.table import names, operations
from accelopt_profiling.source_text import source_lines


def split_loop(kernel: NkiKernel) -> Iterator[Rewrite]:
    for parts in cuts(kernel, frozenset({TENSOR})):
        edits = (_crossing_in_lists if kernel.dialect.mutates else _crossing_in_tensors)(kernel, parts)
        if edits:
            tiles = " and ".join(parts.crossing)
            yield Rewrite(
                (*edits, _next_loop(kernel, parts)),
                f"Make all {tiles} of the loop over {parts.variable} first.",
            )


def _next_loop(kernel: NkiKernel, parts: LoopParts) -> ByteEdit:
    """Return the header of the second loop, and the indices that it needs as well."""
    source, loop = kernel.source, parts.loop
    at = source.block_end(parts.first[-1].node)
    indent = source.indent(parts.first[-1].node)
    header = f"{source.indent(loop)}for {parts.variable} in {source.code(loop.iter)}:"
    lines = [header, *(f"{indent}{source.code(s.node)}" for s in parts.positions)]
    return ByteEdit(at, at, "".join(f"{line}\n" for line in lines))


def _uses(kernel: NkiKernel, parts: LoopParts, name: str) -> list[cst.Name]:
    """Return where the second part uses ``name``."""
    nodes = {s.node for s in parts.second}
    return [n for n in kernel.flow.occurrences(name) if nodes & set(kernel.source.parents(n))]


def _crossing_in_lists(kernel: NkiKernel, parts: LoopParts) -> list[ByteEdit]:
    """Today's dialect: each tile that the second part uses goes into a list."""
    source, last = kernel.source, parts.first[-1].node
    edits: list[ByteEdit] = []
    lists = {name: f"{name}_of_{parts.variable}" for name in parts.crossing}
    if any(
        kernel.flow.occurrences(list_name) or _too_many(kernel, parts, name)
        for name, list_name in lists.items()
    ):
        return []
    edits.append(source.before(parts.loop, "\n".join(f"{list_name} = []" for list_name in lists.values())))
    at, indent = source.block_end(last), source.indent(last)
    edits.append(
        ByteEdit(
            at, at, "".join(f"{indent}{list_name}.append({name})\n" for name, list_name in lists.items())
        )
    )
    for name, list_name in lists.items():
        edits += [source.replace(use, f"{list_name}[{parts.variable}]") for use in _uses(kernel, parts, name)]
    return edits


def _too_many(kernel: NkiKernel, parts: LoopParts, name: str) -> bool:
    value = kernel.flow.binding(name)[0].value
    shape = tile(kernel, value) if value is not None else None
    return shape is not None and too_large(kernel, [parts.count, shape.rows, shape.columns])


def _crossing_in_tensors(kernel: NkiKernel, parts: LoopParts) -> list[ByteEdit]:
    """Beta 1: each value that the second part uses goes into a tensor with a dimension for the loop."""
    flow, source = kernel.flow, kernel.source
    edits: list[ByteEdit] = []
    for name in parts.crossing:
        (bound,) = flow.binding(name)
        uses = flow.uses_after(bound)
        if bound.value is None or not isinstance(bound.target, cst.Name) or not uses or not bound.simple:
            return []
        resident = keep(kernel, f"{name}_of_{parts.variable}", tile(kernel, bound.value), (parts.loop,))
        if resident is None or kernel.instruction(bound.value) is None:
            return []
        read = read_kept(kernel, resident, uses)
        if not read:
            return []
        edits += [
            source.before(parts.loop, resident.made()),
            source.replace(bound.target, resident.place(kernel)),
            *read,
        ]
    return edits


def work_ahead(kernel: NkiKernel) -> Iterator[Rewrite]:
    for parts in cuts(kernel, frozenset({TENSOR, SCALAR, VECTOR})):
        if (edit := _ahead(kernel, parts)) is not None:
            over = parts.variable
            summary = f"Make {' and '.join(parts.crossing)} one iteration of {over} ahead."
            yield Rewrite((edit,), summary, moves={f"{parts.waiting} waits": "down"})


def _ahead(kernel: NkiKernel, parts: LoopParts) -> ByteEdit | None:
    source, flow, loop, v = kernel.source, kernel.flow, parts.loop, parts.variable
    ahead = f"{v}_ahead"
    lists = {name: f"{name}_of_{v}" for name in parts.crossing}
    if any(flow.occurrences(name) for name in (ahead, *lists.values())) or _has_long_strings(kernel, parts):
        return None
    body = source.line_end(source.end(loop.iter))
    cut, end = source.block_end(parts.first[-1].node), source.block_end(loop)
    uses = [
        source.replace(n, f"{lists[name]}[{v}]")
        for name in lists
        for n in flow.occurrences(name)
        if source.start(n) >= cut
    ]
    outer, inner = source.indent(loop), source.indent(parts.first[0].node)
    deeper = inner + inner.removeprefix(outer)
    lines = [f"{outer}{list_name} = []" for list_name in lists.values()]
    header = f"for {ahead} in range({factor(parts.count)} + 1):"
    lines += [outer + source.with_comment(loop, header)]
    lines += [f"{inner}if {ahead} < {factor(parts.count)}:", f"{deeper}{v} = {ahead}"]
    lines += _indented(source.data[body:cut], inner, deeper)
    lines += [f"{deeper}{list_name}.append({name})" for name, list_name in lists.items()]
    lines += [f"{inner}if {ahead} > 0:", f"{deeper}{v} = {ahead} - 1"]
    lines += [f"{deeper}{source.code(s.node)}" for s in parts.positions]
    shifted = [ByteEdit(e.start - cut, e.end - cut, e.text) for e in uses]
    lines += _indented(apply_edits(source.data[cut:end], shifted), inner, deeper)
    start = source.line_start(source.start(loop))
    return ByteEdit(start, end, "".join(f"{line}\n" for line in lines))


def _indented(code: bytes, old: str, new: str) -> list[str]:
    """Return lines of code at another depth."""
    lines = source_lines(code.decode())
    return [new + line.removeprefix(old) if line.startswith(old) else line for line in lines]


def _has_long_strings(kernel: NkiKernel, parts: LoopParts) -> bool:
    """Return whether a string of several lines stands in the loop, which another indent would change."""
    return '"""' in kernel.source.code(parts.loop) or "'''" in kernel.source.code(parts.loop)


#: Engines by the names that instructions of today's dialect give them.
TENSOR, SCALAR, VECTOR = "tensor", "scalar", "vector"

#: What TensorE does.
_ON_TENSOR = frozenset(o.name for o in operations().values() if TENSOR in o.engines)
#: What no engine computes: transfers, and tiles and positions that are made.
_NOT_COMPUTED = names("transfer", "allocation", "index")


@dataclass(frozen=True)
class LoopParts:
    """``loop`` runs ``count`` times over ``variable``.

    ``first`` and ``second`` are the statements of its body before and after the cut. ``crossing`` are the tiles that
    the first part makes and the second one uses, ``positions`` the statements that make an index for both, and
    ``waiting`` the engine that waits at the cut.
    """

    loop: cst.For
    variable: str
    count: str
    first: tuple[Statement, ...]
    second: tuple[Statement, ...]
    crossing: tuple[str, ...]
    positions: tuple[Statement, ...]
    waiting: str


def cuts(kernel: NkiKernel, engines: frozenset[str]) -> Iterator[LoopParts]:
    """Yield the loops that can be cut, at each place where one of ``engines`` waits, innermost loops first."""
    loops = [s.node for s in kernel.flow.statements if isinstance(s.node, cst.For)]
    for loop in sorted(loops, key=lambda loop: -len(list(kernel.source.parents(loop)))):
        body = [s for s in kernel.flow.statements if s.block is loop.body]
        works = [_engines(kernel, s) for s in body]
        places = dict(reversed([_cut_before(body, works, n, engines) for n in range(len(body))]))
        for cut, engine in sorted(places.items()):
            if (
                cut
                and (parts := _parts(kernel, loop, first=body[:cut], second=body[cut:], engine=engine))
                is not None
            ):
                yield parts


def _cut_before(
    body: list[Statement], works: list[frozenset[str]], reader: int, engines: frozenset[str]
) -> tuple[int, str]:
    """Return how many statements lead to the operands of one, and the engine that waits for them, if another engine is
    the last to work on them and that one has work among them; 0 where that is not so."""
    makers = [n for n in range(reader) if works[n] and body[n].writes & body[reader].reads]
    if not makers:
        return 0, ""
    led = frozenset[str]().union(*works[: makers[-1] + 1])
    waits = sorted(e for e in works[reader] & engines & led if works[makers[-1]] - {e})
    return (makers[-1] + 1, waits[0]) if waits else (0, "")


def _engines(kernel: NkiKernel, statement: Statement) -> frozenset[str]:
    """Return the engines that a statement keeps busy, those in the blocks below it included: where none is named, those
    that do the work by default."""
    engines = set()
    for call in kernel.source.walk(statement.node, cst.Call):
        path = kernel.path(call.func) or ""
        keyword = (a.value for a in call.args if a.keyword is not None and a.keyword.value == "engine")
        engine = next((kernel.source.code(value).rpartition(".")[2] for value in keyword), None)
        if path in _ON_TENSOR:
            engines.add(engine or TENSOR)
        elif path.startswith((f"{NL}.", f"{NISA}.")) and path not in _NOT_COMPUTED:
            engines.add(engine or (SCALAR if path.startswith(f"{NISA}.activation") else VECTOR))
    return frozenset(engines)


def _parts(
    kernel: NkiKernel, loop: cst.For, first: list[Statement], second: list[Statement], engine: str
) -> LoopParts | None:
    flow, source = kernel.flow, kernel.source
    variable, count = loop_variable(loop), counted(kernel, loop)
    if variable is None or count is None or loop.orelse is not None or not second:
        return None
    if not isinstance(loop.body, cst.IndentedBlock) or any(
        isinstance(n, JUMPS) for n in source.below(loop.body)
    ):
        return None
    inside = [s for s in flow.statements if loop in s.loops]
    written = set().union(*(s.writes for s in first))
    used = set().union(*(s.reads | s.writes for s in first))
    later = set().union(*(s.writes for s in second))
    needed = set().union(*(s.reads | s.writes for s in second))
    stored = set().union(*(s.stores for s in first), *(s.stores & written for s in second))
    own = {name for name in written | later if binds_first(inside, name)}
    if not written <= own or variable in written | later or flow.variables(loop.iter) & (written | later):
        return None
    if flow.sharing(later) & used - {n for n in own if n not in later} - _made_in(first, own & later & used):
        return None
    crossing = written & needed
    if any(not flow.sharing([name]) <= own for name in stored):
        return None  # it may be a view of what other iterations reach
    if any(loop not in source.parents(n) for name in crossing for n in flow.occurrences(name)):
        return None
    positions = [s for s in first if s.target_name in crossing and _is_position(kernel, s)]
    tiles = sorted(crossing - {s.target_name for s in positions if s.target_name is not None})
    needs_more = any(s.reads & (written - {p.target_name for p in positions}) for s in positions)
    once = all(len(flow.binding(name)) == 1 for name in crossing)
    if needs_more or not once or not tiles or any(_in_psum(kernel, name) for name in tiles):
        return None
    return LoopParts(
        loop,
        variable,
        count=count,
        first=tuple(first),
        second=tuple(second),
        crossing=tuple(tiles),
        positions=tuple(positions),
        waiting=f"{engine.title()}E",
    )


def _made_in(first: list[Statement], names: set[str]) -> set[str]:
    """Return the names that one statement of the first part binds: each iteration has its own."""
    return {name for name in names if any(s.binds(name) for s in first)}


def _is_position(kernel: NkiKernel, statement: Statement) -> bool:
    """Return whether a statement does arithmetic with indices only."""
    if statement.assign is None or not isinstance(statement.bound, cst.Name):
        return False
    if statement.target_name in kernel.index_variables:
        return True
    if not isinstance(statement.value, (cst.BinaryOperation, cst.Call)):
        return False
    calls = [
        kernel.path(c.func) or kernel.source.code(c.func)
        for c in kernel.source.walk(statement.value, cst.Call)
    ]
    return all(c in ("min", "max", f"{NL}.ds") for c in calls)


def _in_psum(kernel: NkiKernel, name: str) -> bool:
    """Return whether a tile may lie in PSUM, which holds few of them."""
    bound = kernel.flow.binding(name)[0]
    instruction = kernel.instruction(bound.value) if bound.value is not None else None
    if instruction is None:
        return not isinstance(bound.value, (cst.List, cst.Subscript))
    buffer = instruction.get("buffer")
    return instruction.path in _ON_TENSOR or (buffer is not None and kernel.path(buffer) != f"{NL}.sbuf")
