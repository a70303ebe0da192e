"""Work on several iterations of an outer loop at a time.

What does not depend on the loop is loaded once for all of them. Where instructions return tiles, a variable that lives
on from one part to the next becomes a tensor with a dimension for the iterations of a block; where tiles are objects,
it is kept in a Python list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from accelopt_agent.rules.analysis.constants import factor
from accelopt_agent.rules.analysis.edits import ByteEdit, apply_edits
from accelopt_agent.rules.analysis.loops import loop_variable, trip_count
from accelopt_agent.rules.analysis.nki.independence import independent
from accelopt_agent.rules.analysis.nki.kernel import NL, NkiKernel
from accelopt_agent.rules.analysis.nki.tile_shapes import TileShape, tile
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_profiling.nki.operations.table import names
from accelopt_profiling.source_text import source_lines

#: What is worth being done once for several iterations.
_COSTLY = names("transfer", "transpose", "broadcast")


@dataclass
class Group:
    """Statements that are done for each iteration of the block, one after the other."""

    statements: list[Statement] = field(default_factory=list)


@dataclass
class Once:
    """A statement that is done once for the block."""

    statement: Statement


@dataclass
class PartLoop:
    """A loop of which parts are done once for the block, parts for each iteration."""

    statement: Statement
    items: list[Group | Once | PartLoop]


Items = list["Group | Once | PartLoop"]


class Blocking:
    """One loop, ``size`` of whose iterations are to be worked on at a time."""

    def __init__(
        self, kernel: NkiKernel, loop: cst.For, variable: str, size: int, words: dict[str, str]
    ) -> None:
        self.kernel, self.flow, self.source = kernel, kernel.flow, kernel.source
        self.loop, self.variable, self.size, self.words = loop, variable, size, words
        self.block = f"{variable}_block" if trip_count(kernel.flow, loop) is None else str(size)
        self.inside = [s for s in self.flow.statements if loop in s.loops]
        self.varying = self._varying()
        self.tiles: dict[str, TileShape] = {}
        self.again: set[str] = set()  # positions, made anew wherever they are used

    def rewrite(self) -> Rewrite | None:
        items = self._items(self.loop.body)
        if not self._saves(items, nested=False) or not self._expand(items):
            return None
        assert isinstance(self.loop.iter, cst.Call)
        v, indent = self.variable, self.source.indent(self.loop)
        count = self.source.code(self.loop.iter.args[0].value)
        bare = factor(count)
        trips = trip_count(self.flow, self.loop)
        sizes = [size for size in (8, 4, 2) if size <= self.size]
        chosen = " else ".join(f"{size} if {bare} % {size} == 0" for size in sizes)
        lines = [] if trips else [f"{indent}{self.block} = {chosen} else 1"]
        blocks = str(trips // self.size) if trips else f"{bare} // {self.block}"
        header = f"for {v}_outer in {self.words['affine_range']}({blocks}):"
        lines.append(indent + self.source.with_comment(self.loop, header))
        lines += [
            *self._written(items, indent + self.source.step),
            *self._closing(self.loop, indent + self.source.step),
        ]
        start, end = self.source.line_start(self.source.start(self.loop)), self.source.block_end(self.loop)
        edit = ByteEdit(start, end, "\n".join(lines) + "\n")
        return Rewrite(
            (edit,), f"Work on {self.size} iterations over {v} at a time, and load once for all of them."
        )

    def _varying(self) -> set[str]:
        """Return the names whose value depends on the iteration."""
        own_names = {self.variable}
        while True:
            varying = [s for s in self.inside if s.simple and (s.reads | s.writes) & own_names]
            more = {n for s in varying for n in self._written_by(s)}
            if more <= own_names:
                return own_names
            own_names |= more

    def _written_by(self, statement: Statement) -> set[str]:
        """Return the names that a statement writes, and those that may share storage with one whose contents
        it changes."""
        return statement.writes | self.flow.sharing(statement.stores)

    def _conflict(self, one: Statement, other: Statement) -> bool:
        """Return whether the order of the two statements matters."""
        first, second = self._written_by(one), self._written_by(other)
        return bool(first & (other.reads | second) or one.reads & second)

    def _varies(self, statement: Statement) -> bool:
        return bool((statement.reads | statement.writes) & self.varying)

    def _is_once(self, statement: Statement) -> bool:
        """Return whether a statement is done once for the block."""
        return not self._varies(statement) or self._allocates(statement)

    def _items(self, block: cst.CSTNode) -> Items:
        """Return the statements of a block, those done once as early as the data allows."""
        items: Items = []
        for statement in [s for s in self.inside if s.block is block]:
            node, group = statement.node, items[-1] if items and isinstance(items[-1], Group) else None
            if self._is_once(statement):
                free = group is not None and not any(self._conflict(s, statement) for s in group.statements)
                items.insert(len(items) - 1 if free else len(items), Once(statement))
            elif (
                isinstance(node, cst.For)
                and node.orelse is None
                and not self.flow.variables(node.iter) & self.varying
            ):
                inner = self._items(node.body)
                if any(not isinstance(item, Group) for item in inner):
                    items.append(PartLoop(statement, inner))
                else:
                    self._join(items, statement)
            else:
                self._join(items, statement)
        return items

    @staticmethod
    def _join(items: Items, statement: Statement) -> None:
        if not items or not isinstance(items[-1], Group):
            items.append(Group())
        group = items[-1]
        assert isinstance(group, Group)
        group.statements.append(statement)

    def _allocates(self, statement: Statement) -> bool:
        name = statement.target_name
        return name is not None and self.flow.allocation(name) is statement

    def _saves(self, items: Items, *, nested: bool) -> bool:
        """Return whether something costly is done once that was done in every iteration."""
        for item in items:
            if isinstance(item, PartLoop) and self._saves(item.items, nested=True):
                return True
            if isinstance(item, Once) and not self._allocates(item.statement):
                calls = self.source.walk(item.statement.node, cst.Call)
                if any(self.kernel.path(c.func) in _COSTLY for c in calls):
                    return True
        return False

    def _expand(self, items: Items) -> bool:
        """Find the variables that need a value for each iteration of the block; False where one cannot have that."""
        parts = groups(items)
        for name in sorted(self.varying - {self.variable}):
            bound = [s for s in self.inside if s.simple and s.binds(name)]
            if not bound:
                continue
            where = {
                self._group(parts, node)
                for node in self.flow.occurrences(name)
                if self.loop in self.source.parents(node)
            }
            allocated = self._allocates(bound[0])
            if any(self.loop not in self.source.parents(n) for n in self.flow.occurrences(name)):
                return False
            if len(where) == 1 and not allocated:
                continue
            if name in self.kernel.index_variables:
                self.again.add(name)
                continue
            value = bound[0].value
            if (
                len(bound) != 1
                or value is None
                or self.flow.sharing([name]) != {name}
                or bound[0].assign is None
            ):
                return False
            shape = tile(self.kernel, value)
            if shape is None or shape.dtype is None or {shape.rows, shape.columns} & self.varying:
                return False
            if any(isinstance(self.source.parent(n), cst.Attribute) for n in self.flow.occurrences(name)):
                return False
            self.tiles[name] = shape
        return not any(self._reads_position(n) for n in self.again)

    def _reads_position(self, name: str) -> bool:
        """Return whether a position is made of varying names other than the loop's variable: making it anew is not
        simple."""
        bound = [s for s in self.inside if s.binds(name)]
        return len(bound) != 1 or bool(bound[0].reads & self.varying - {self.variable, name})

    def _group(self, groups: Sequence[Group], node: cst.CSTNode) -> int:
        """Return which group a node stands in. -1 for what is done once."""
        for number, group in enumerate(groups):
            if any(s.node is node or s.node in self.source.parents(node) for s in group.statements):
                return number
        return -1

    def _written(self, items: Items, indent: str) -> list[str]:
        lines: list[str] = []
        for item in items:
            if isinstance(item, PartLoop):
                node = item.statement.node
                assert isinstance(node, cst.For)
                header = f"for {self.source.code(node.target)} in {self.source.code(node.iter)}:"
                lines += [
                    *self._comments(item.statement, indent),
                    indent + self.source.with_comment(node, header),
                    *self._written(item.items, indent + self.source.step),
                    *self._closing(node, indent + self.source.step),
                ]
            elif isinstance(item, Once):
                lines += self._once(item.statement, indent)
            else:
                lines += self._grouped(item, indent)
        return lines

    def _once(self, statement: Statement, indent: str) -> list[str]:
        name = statement.target_name
        if name not in self.tiles or not self._allocates(statement):
            return self._code(statement, indent)
        tile_shape, call = self.tiles[name], statement.value
        instruction = self.kernel.instruction(call) if call is not None else None
        shape = instruction.get("shape") if instruction else None
        assert shape is not None
        sizes = f"({self.block}, {self.words['par_dim']}({tile_shape.rows}), {tile_shape.columns})"
        return self._code(statement, indent, [self.source.replace_with_parentheses(shape, sizes)])

    def _grouped(self, group: Group, indent: str) -> list[str]:
        v, lines = self.variable, []
        for statement in group.statements:
            name = statement.target_name
            if name in self.tiles and isinstance(statement.target, cst.Name):
                tile_shape = self.tiles[name]
                shape = f"({self.block}, {self.words['par_dim']}({tile_shape.rows}), {tile_shape.columns})"
                allocation = (
                    f"{self.words['ndarray']}({shape}, dtype={tile_shape.dtype}, buffer={self.words['sbuf']})"
                )
                lines.append(f"{indent}{name} = {allocation}")
        lines.append(f"{indent}for {v}_inner in {self.words['affine_range']}({self.block}):")
        inner, body = indent + self.source.step, []
        for name in sorted(self.again):
            if any(name in s.reads for s in group.statements) and not any(
                s.binds(name) for s in group.statements
            ):
                bound = next(s for s in self.inside if s.binds(name))
                body += self._code(bound, inner)
        for statement in group.statements:
            body += self._code(statement, inner)
        remade = [s for n in self.again for s in self.inside if s.binds(n)]
        if any(v in s.reads for s in [*group.statements, *remade]):
            lines.append(f"{inner}{v} = {v}_outer * {self.block} + {v}_inner")
        return lines + body

    def _comments(self, statement: Statement, indent: str) -> list[str]:
        leading = getattr(statement.node, "leading_lines", ())
        return [f"{indent}{line.comment.value}" if line.comment else "" for line in leading]

    def _closing(self, loop: cst.For, indent: str) -> list[str]:
        """Return the comments at the end of a loop's body."""
        footer = loop.body.footer if isinstance(loop.body, cst.IndentedBlock) else ()
        return [f"{indent}{line.comment.value}" for line in footer if line.comment]

    def _code(self, statement: Statement, indent: str, more: Sequence[ByteEdit] = ()) -> list[str]:
        """Return the statement's lines with the tiles of the current iteration, at another depth."""
        edits = [*more, *(e for n in self._names(statement) for e in self._current(n, statement))]
        start, old = self.source.start(statement.node), self.source.indent(statement.node)
        data = self.source.data[start : self.source.block_end(statement.node)]
        moved = [ByteEdit(e.start - start, e.end - start, e.text) for e in edits]
        code = apply_edits(data, moved).decode().rstrip()
        first, *rest = source_lines(code)
        again = [indent + line.removeprefix(old) if line.strip() else "" for line in rest]
        return [*self._comments(statement, indent), indent + first, *again]

    def _names(self, statement: Statement) -> list[cst.Name]:
        return [
            n
            for n in self.source.walk(statement.node, cst.Name)
            if n.value in self.tiles and n in self.flow.names
        ]

    def _current(self, name: cst.Name, statement: Statement) -> list[ByteEdit]:
        parent, v = self.source.parent(name), self.variable
        if self._allocates(statement) and statement.target is name:
            return []
        if isinstance(parent, cst.Subscript) and parent.value is name:
            at = self.source.start(parent.slice[0])
            return [ByteEdit(at, at, f"{v}_inner, ")]
        shape, arange = self.tiles[name.value], self.words["arange"]
        rows, columns = f"{arange}({shape.rows})[:, None]", f"{arange}({shape.columns})[None, :]"
        return [self.source.replace(name, f"{name.value}[{v}_inner, {rows}, {columns}]")]


def groups(items: Items) -> list[Group]:
    result: list[Group] = []
    for item in items:
        if isinstance(item, Group):
            result.append(item)
        elif isinstance(item, PartLoop):
            result += groups(item.items)
    return result


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
    return Blocking(kernel, loop, variable=variable, size=size, words=words).rewrite()


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
        v, inner = self.variable, indent + self.source.step
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
