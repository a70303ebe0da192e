"""Fuse two loops over the same range, so that what the first makes for the second lives for one iteration and not
until the first has ended: fewer tiles are written out and read back.

Loops inside of either may be brought outside first, as affine loops may take any order; what stands before the inner
loop in the outermost one is then done first, for all of its iterations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.loops import loop_variable, trip_count
from accelopt_agent.rules.analysis.nki.independence import JUMPS, binds_first
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement, is_string


@dataclass(frozen=True)
class _Nest:
    """Loops that stand in one another, ``loops[0]`` outermost, of which the last is brought outside. ``first`` are the
    statements of the outermost one before the loop in it, ``inner`` what stands in the last."""

    loops: tuple[cst.For, ...]
    first: tuple[cst.CSTNode, ...]
    inner: tuple[cst.CSTNode, ...]

    @property
    def chosen(self) -> cst.For:
        return self.loops[-1]


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for block in dict.fromkeys(s.block for s in kernel.flow.statements):
        nodes = [s.node for s in kernel.flow.statements if s.block is block]
        loops = [n for n, node in enumerate(nodes) if isinstance(node, cst.For)]
        for before, after in ((b, a) for b in loops for a in loops if a > b):
            yield from _fused(kernel, nodes[before], tuple(nodes[before + 1 : after]), nodes[after])


def _fused(
    kernel: NkiKernel, before: cst.CSTNode, between: tuple[cst.CSTNode, ...], after: cst.CSTNode
) -> Iterator[Rewrite]:
    source = kernel.source
    if (moved := _moved(kernel, before, between)) is None:
        return
    for one in _nests(kernel, before, may_begin=True):
        for other in _nests(kernel, after, may_begin=False):
            if (crossing := _crossing(kernel, one, other)) and _may_come_first(kernel, one):
                edits = (*moved, *_turned(kernel, one), *_joined(kernel, one, other))
                over = f"{loop_variable(one.chosen)} and {loop_variable(other.chosen)}"
                lines = f"lines {source.line(one.chosen)} and {source.line(other.chosen)}"
                yield Rewrite(
                    edits, f"Fuse the loops over {over} ({lines}): {' and '.join(crossing)} live shorter."
                )


def _moved(kernel: NkiKernel, before: cst.CSTNode, between: tuple[cst.CSTNode, ...]) -> list[ByteEdit] | None:
    """Return the edits that do what stands between two loops before the first one; None where it needs that one. A
    string that closes the first loop goes into it."""
    source, moved = kernel.source, tuple(node for node in between if not is_string(node))
    first, others = _statements(kernel, (before,)), _statements(kernel, moved)
    if _written(first) & _used(others) or _used(first) & _written(others):
        return None
    edits, start = [], source.line_start(source.start(before))
    step = (
        source.indent(before.body.body[0]).removeprefix(source.indent(before))
        if isinstance(before, cst.For)
        else ""
    )
    for node in between:
        begin, end = source.line_start(source.start(node)), source.block_end(node)
        if node in moved:
            text = source.data[begin:end].decode().replace("\r\n", "\n")
            edits += [ByteEdit(start, start, text), ByteEdit(begin, end, "")]
        elif "\n" in source.code(node):
            return None
        else:
            edits.append(ByteEdit(begin, begin, step))
    return edits


def _nests(kernel: NkiKernel, node: cst.CSTNode, *, may_begin: bool) -> Iterator[_Nest]:
    """Yield a loop, and each loop that is all that it holds, or the last of it where something ``may_begin``."""
    loops: tuple[cst.For, ...] = ()
    first: tuple[cst.CSTNode, ...] = ()
    while isinstance(node, cst.For) and _is_affine(kernel, node):
        used = kernel.flow.variables(node.iter)
        if used & {loop_variable(loop) for loop in loops}:
            return
        loops = (*loops, node)
        inside = tuple(below for below in node.body.body if not is_string(below))
        yield _Nest(loops, first, inside)
        if not inside or (len(inside) > 1 and (not may_begin or len(loops) > 1)):
            return
        first = inside[:-1] if len(loops) == 1 else first
        node = inside[-1]


def _is_affine(kernel: NkiKernel, loop: cst.For) -> bool:
    call = loop.iter
    affine = (
        isinstance(call, cst.Call) and kernel.path(call.func) == f"{NL}.affine_range" and len(call.args) == 1
    )
    jumps = any(isinstance(n, JUMPS) for n in kernel.source.below(loop.body))
    return affine and loop_variable(loop) is not None and loop.orelse is None and not jumps


def _crossing(kernel: NkiKernel, one: _Nest, other: _Nest) -> list[str]:
    """Return the tensors that the first loop makes for the second.

    None where an iteration of the second needs more than what that iteration of the first made, or changes what another
    one needs.
    """
    counts = [trip_count(kernel.flow, nest.chosen) for nest in (one, other)]
    same = kernel.source.same(one.chosen.iter, other.chosen.iter)
    if not (counts[0] == counts[1] is not None or same):
        return []
    left, right = _statements(kernel, one.inner), _statements(kernel, other.inner)
    names = {loop_variable(loop) for loop in other.loops} | _used(right)
    if loop_variable(one.chosen) in names - {loop_variable(other.chosen)}:
        return []
    crossing = []
    for name in sorted(_written(left) & _used(right) | _used(left) & _written(right)):
        if binds_first(left, name) and binds_first(right, name):
            continue
        picked = _picked(kernel, one.inner, name, one.chosen) & _picked(
            kernel, other.inner, name, other.chosen
        )
        if not picked:
            return []
        if name in _written(left):
            crossing.append(name)
    return crossing


def _may_come_first(kernel: NkiKernel, nest: _Nest) -> bool:
    """Return whether what stands before the inner loop may be done for all iterations before that loop begins."""
    first, inner = _statements(kernel, nest.first), _statements(kernel, nest.inner)
    if _written(inner) & _used(first):
        return False
    return all(
        _picked(kernel, nest.first, name, nest.loops[0]) & _picked(kernel, nest.inner, name, nest.loops[0])
        for name in _written(first) & _used(inner)
    )


def _statements(kernel: NkiKernel, nodes: tuple[cst.CSTNode, ...]) -> list[Statement]:
    """Return the statements, those in the blocks below them included."""
    top = set(nodes)
    return [s for s in kernel.flow.statements if s.node in top or top & set(kernel.source.parents(s.node))]


def _written(statements: list[Statement]) -> set[str]:
    return set().union(*(s.writes for s in statements))


def _used(statements: list[Statement]) -> set[str]:
    return set().union(*(s.reads | s.writes for s in statements))


def _picked(kernel: NkiKernel, nodes: tuple[cst.CSTNode, ...], name: str, loop: cst.For) -> set[int]:
    """Return the positions at which each index of a tensor in the statements is the variable of ``loop``."""
    source, top, variable = kernel.source, set(nodes), loop_variable(loop)
    positions: set[int] | None = None
    for use in kernel.flow.occurrences(name):
        if not top & set(source.parents(use)):
            continue
        index = source.parent(use)
        if not isinstance(index, cst.Subscript) or index.value is not use:
            return set()
        here = {n for n, e in enumerate(index.slice) if source.code(e.slice) == variable}
        positions = here if positions is None else positions & here
    shared = kernel.flow.sharing([name]) - {name}
    return set() if shared else positions or set()


def _turned(kernel: NkiKernel, nest: _Nest) -> list[ByteEdit]:
    """Return the edits that bring the last loop of a nest outside."""
    loops = nest.loops
    if len(loops) == 1:
        return []
    lines = [_at(kernel, loop, place) for loop, place in zip((loops[-1], *loops[:-1]), loops, strict=True)]
    if nest.first:  # the outermost loop stays where it is too, for what comes first
        return [_instead(kernel, loops[1], "".join(lines[:2])), *_all_instead(kernel, loops[2:], lines[2:])]
    return _all_instead(kernel, loops, lines)


def _joined(kernel: NkiKernel, one: _Nest, other: _Nest) -> list[ByteEdit]:
    """Return the edits that put the second loop's body behind that of the first."""
    source, loops, chosen = kernel.source, other.loops, other.chosen
    comment = source.comment(chosen)
    first = f"{source.indent(loops[0])}{comment}\n" if comment else ""
    lines = [first, *(_at(kernel, loop, place) for loop, place in pairwise(loops))]
    old, new = loop_variable(chosen) or "", loop_variable(one.chosen) or ""
    uses = [n for n in kernel.flow.occurrences(old) if chosen.body in source.parents(n)]
    return [*_all_instead(kernel, loops, lines), *(source.replace(n, new) for n in uses)]


def _at(kernel: NkiKernel, loop: cst.For, place: cst.For) -> str:
    """Return a loop's first line as it is written where ``place`` stands."""
    source = kernel.source
    header = f"for {source.code(loop.target)} in {source.code(loop.iter)}:"
    return f"{source.indent(place)}{source.with_comment(loop, header)}\n"


def _instead(kernel: NkiKernel, loop: cst.For, text: str) -> ByteEdit:
    """Return the edit that writes something instead of a loop's first line."""
    source = kernel.source
    return ByteEdit(source.line_start(source.start(loop)), source.line_end(source.end(loop.iter)), text)


def _all_instead(kernel: NkiKernel, loops: Sequence[cst.For], texts: Sequence[str]) -> list[ByteEdit]:
    return [_instead(kernel, loop, text) for loop, text in zip(loops, texts, strict=True)]
