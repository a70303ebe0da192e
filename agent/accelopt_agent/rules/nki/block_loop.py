"""Work on several iterations of an outer loop at a time, so that what does not depend on it is loaded once for all.

Where tiles are objects, what lives on between them is kept in a Python list.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.loops import loop_variable, trip_count
from accelopt_agent.rules.analysis.nki.independence import independent
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel
from accelopt_agent.rules.analysis.nki.loop_blocking import Blocking, Group, Items, groups
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement

#: How many iterations are worked on at a time. PSUM has eight banks for sums of 512 columns in float32.
_SIZES = (4, 8, 2)

_WORDS = ("affine_range", "ndarray", "par_dim", "arange", "sbuf")


def rewrites(kernel: NkiKernel) -> Iterator[Rewrite]:
    for size in _SIZES:
        for statement in kernel.flow.statements:
            if isinstance(statement.node, cst.For) and (rewrite := _blocked(kernel, statement.node, size)):
                yield rewrite


def _blocked(kernel: NkiKernel, loop: cst.For, size: int) -> Rewrite | None:
    variable, count = loop_variable(loop), trip_count(kernel.flow, loop)
    if variable is None or loop.orelse is not None or not isinstance(loop.iter, cst.Call):
        return None
    if count is not None and (count % size or count == size == 1):
        return None
    names = [f"{variable}_{part}" for part in ("block", "outer", "inner")]
    if any(kernel.flow.occurrences(name) for name in names):
        return None
    ranges = kernel.path(loop.iter.func) or kernel.source.code(loop.iter.func)
    if kernel.dialect.mutates:
        counted = ranges in ("range", f"{NL}.affine_range") and len(loop.iter.args) == 1
        fits = counted and independent(kernel, loop)
        return (
            ListBlocking(kernel, loop, variable, size, {"affine_range": "range"}).rewrite() if fits else None
        )
    words = {w: spelled for w in _WORDS if (spelled := kernel.spelled(f"{NL}.{w}"))}
    if ranges != f"{NL}.affine_range" or len(words) != len(_WORDS):
        return None
    return Blocking(kernel, loop, variable, size, words).rewrite()


class ListBlocking(Blocking):
    """One loop in today's dialect.

    A variable that one part of an iteration binds and another one reads has a list with an entry for each iteration of
    the block.
    """

    def _is_once(self, statement: Statement) -> bool:
        return not self._varies(statement)

    def _expand(self, items: Items) -> bool:
        """Find the variables that need an entry for each iteration of the block; False where one cannot have that."""
        self.binding: dict[str, Group] = {}
        parts = groups(items)
        for name in sorted(self.varying - {self.variable}):
            bound = [s for s in self.inside if s.binds(name)]
            if not bound:
                continue
            uses = self.flow.occurrences(name)
            if any(self.loop not in self.source.parents(n) for n in uses):
                return False
            where = {self._group(parts, node) for node in uses}
            if len(where) == 1:
                continue
            group = self._group(parts, bound[0].node)
            if len(bound) != 1 or group < 0 or bound[0] not in parts[group].statements:
                return False
            if self.flow.occurrences(self._list(name)):
                return False
            if self._is_position(bound[0]):
                self.again.add(name)
            else:
                self.binding[name] = parts[group]
        return True

    def _is_position(self, bound: Statement) -> bool:
        """Return whether a variable is made of the loop variable and of what does not change, by arithmetic."""
        value = bound.value
        if not isinstance(value, (cst.BinaryOperation, cst.Call)) or bound.reads & self.varying - {
            self.variable
        }:
            return False
        calls = [self.source.code(c.func) for c in self.source.walk(value, cst.Call)]
        return all(c in ("min", "max", self.kernel.spelled("nl.ds")) for c in calls)

    def _list(self, name: str) -> str:
        return f"{name}_of_{self.variable}"

    def _grouped(self, group: Group, indent: str) -> list[str]:
        v, inner = self.variable, indent + "    "
        lines = [f"{indent}{self._list(n)} = []" for n in sorted(self.binding) if self.binding[n] is group]
        lines.append(f"{indent}for {v}_inner in range({self.block}):")
        self.writing = group
        body: list[str] = []
        for name in sorted(self.again):
            read = any(name in s.reads for s in group.statements)
            if read and not any(s.binds(name) for s in group.statements):
                body += self._code(next(s for s in self.inside if s.binds(name)), inner)
        for statement in group.statements:
            body += self._code(statement, inner)
            for name in sorted(self.binding):
                if statement.binds(name):
                    body.append(f"{inner}{self._list(name)}.append({name})")
        remade = [s for n in self.again for s in self.inside if s.binds(n)]
        if any(v in s.reads for s in [*group.statements, *remade]):
            lines.append(f"{inner}{v} = {v}_outer * {self.block} + {v}_inner")
        return lines + body

    def _once(self, statement: Statement, indent: str) -> list[str]:
        return self._code(statement, indent)

    def _names(self, statement: Statement) -> list[cst.Name]:
        names = (n for n in self.source.walk(statement.node, cst.Name) if n in self.flow.names)
        return [n for n in names if n.value in self.binding and self.binding[n.value] is not self.writing]

    def _current(self, name: cst.Name, statement: Statement) -> list[ByteEdit]:
        return [self.source.replace(name, f"{self._list(name.value)}[{self.variable}_inner]")]
