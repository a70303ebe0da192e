"""Parses a file: LibCST nodes with their byte spans, parents and text."""

from __future__ import annotations

import ast
import dataclasses
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, lru_cache
from itertools import accumulate
from typing import TypeVar

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from accelopt_agent.rules.analysis.edits import ByteEdit, apply_edits
from accelopt_profiling.source_text import parse_expression, source_lines, syntax_of

Node = TypeVar("Node", bound=cst.CSTNode)


@lru_cache(maxsize=4096)
def canonical(expression: str) -> str:
    """Return a key that is equal for expressions which differ only in layout or redundant parentheses."""
    try:
        return ast.dump(parse_expression(expression))
    except SyntaxError:
        return expression  # a slice or a starred element: compared as written


class ParsedSource:
    """``text`` parsed once.

    Raises:
        libcst.ParserSyntaxError: the text does not parse.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode()
        wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        self.module = wrapper.module
        self._spans = wrapper.resolve(ByteSpanPositionProvider)
        self._parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self._children: dict[cst.CSTNode, list[cst.CSTNode]] = {}
        self.newline = "\r\n" if "\r\n" in text else "\n"
        # LibCST counts bytes of the code it writes; a byte order mark is not part of it.
        self._shift = len(self.data) - len(self.module.code.encode()) if text.startswith("\ufeff") else 0
        self._link(self.module)

    def _link(self, module: cst.Module) -> None:
        """Note parents and children, in source order: LibCST's own ``children`` copies nodes, which is slow."""
        todo: list[cst.CSTNode] = [module]
        while todo:
            node = todo.pop()
            children = [c for c in _fields_of(node) if c in self._spans]
            children.sort(key=lambda c: self._spans[c].start)
            self._children[node] = children
            for child in children:
                self._parents[child] = node
            todo += children

    def below(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield ``node`` and every node below it, in source order."""
        todo = [node]
        while todo:
            at = todo.pop()
            yield at
            todo += reversed(self._children[at])

    def walk(self, node: cst.CSTNode, kind: type[Node]) -> Iterator[Node]:
        """Return all nodes of ``kind`` at and below ``node``, in source order."""
        return (at for at in self.below(node) if isinstance(at, kind))

    def children(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        return self._children[node]

    @cached_property
    def constants(self) -> dict[str, ast.expr]:
        """Module variables that one top-level assignment binds, with what it binds them to."""
        bindings: dict[str, list[ast.expr]] = {}
        for statement in syntax_of(self.text).body:
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    pairs = [(target, statement.value)]
                    if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                        pairs = list(zip(target.elts, statement.value.elts, strict=False))
                    for one, value in pairs:
                        if isinstance(one, ast.Name):
                            bindings.setdefault(one.id, []).append(value)
        return {name: values[0] for name, values in bindings.items() if len(values) == 1}

    def start(self, node: cst.CSTNode) -> int:
        return self._spans[node].start + self._shift

    def end(self, node: cst.CSTNode) -> int:
        span = self._spans[node]
        return span.start + span.length + self._shift

    def code(self, node: cst.CSTNode) -> str:
        """Return the node's text as written, without parentheses around it."""
        return self.data[self.start(node) : self.end(node)].decode()

    def edited(self, node: cst.CSTNode, *edits: ByteEdit) -> str:
        """Return the node's text after edits that all lie within it."""
        start = self.start(node)
        moved = [ByteEdit(e.start - start, e.end - start, e.text) for e in edits]
        return apply_edits(self.data[start : self.end(node)], moved).decode()

    def key(self, node: cst.CSTNode) -> str:
        """Equal for two expressions that mean the same up to layout."""
        return canonical(self.code(node))

    def same(self, one: cst.CSTNode, other: cst.CSTNode) -> bool:
        return self.key(one) == self.key(other)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self._parents.get(node)

    def parents(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the nodes around ``node``, innermost first."""
        above = self.parent(node)
        while above is not None:
            yield above
            above = self.parent(above)

    def line(self, node: cst.CSTNode) -> int:
        """Return the 1-based line on which ``node`` starts."""
        return self.data.count(b"\n", 0, self.start(node)) + 1

    def line_start(self, at: int) -> int:
        """Return the offset of the first byte of the line that holds offset ``at``."""
        return self.data.rfind(b"\n", 0, at) + 1

    def line_end(self, at: int) -> int:
        """Return the offset just after the line end that follows ``at``."""
        position = self.data.find(b"\n", at)
        return len(self.data) if position < 0 else position + 1

    def block_end(self, statement: cst.CSTNode) -> int:
        """Return the offset after the last line of a statement and after the comments that close the blocks
        in it."""
        end = at = self.line_end(self.end(statement))
        inside = f"{self.indent(statement)} ".encode()
        while at < len(self.data):
            line = self.data[at : self.line_end(at)]
            if line.strip() and not (
                line.lstrip().startswith(b"#") and line.startswith((inside, inside[:-1] + b"\t"))
            ):
                break
            at = self.line_end(at)
            end = at if line.strip() else end
        return end

    @cached_property
    def step(self) -> str:
        """What one block is deeper than another inside of functions, in most places; else what a function's is."""
        blocks = [n for n in self.below(self.module) if isinstance(n, cst.IndentedBlock)]
        inner = [
            b.indent for b in blocks if not isinstance(self._parents[b], (cst.FunctionDef, cst.ClassDef))
        ]
        steps = [self.module.default_indent if step is None else step for step in inner]
        return max(steps, key=steps.count) if steps else self.module.default_indent

    def indent(self, statement: cst.CSTNode) -> str:
        """Return the whitespace before the first statement on ``statement``'s line."""
        at = self.start(statement)
        line = self.data[self.line_start(at) : at].decode()
        return line[: len(line) - len(line.lstrip())]

    def replace(self, node: cst.CSTNode, text: str) -> ByteEdit:
        return ByteEdit(self.start(node), self.end(node), text)

    def replace_with_parentheses(self, node: cst.BaseExpression, text: str) -> ByteEdit:
        """Replace an expression together with the parentheses written around it."""
        start, end = self.start(node), self.end(node)
        for _ in node.lpar if hasattr(node, "lpar") else ():
            start = self.data.rfind(b"(", 0, start)
            end = self.data.find(b")", end) + 1
        return ByteEdit(start, end, text)

    def before(self, statement: cst.CSTNode, lines: str) -> ByteEdit:
        """Insert whole lines of code before ``statement``, indented like it on top of their own indent."""
        at = self.line_start(self.start(statement))
        return ByteEdit(at, at, self._indented(lines, self.indent(statement)))

    def after(self, statement: cst.CSTNode, lines: str) -> ByteEdit:
        """Insert whole lines of code, indented like it, after ``statement``."""
        at = self.line_end(self.end(statement))
        text = self._indented(lines, self.indent(statement))
        return ByteEdit(at, at, text if self.data[:at].endswith(b"\n") else "\n" + text)

    def added(self, start: int, end: int, items: Sequence[str]) -> list[ByteEdit]:
        """Add ``items`` behind the last of a list of arguments, which lies at ``start`` to ``end``: each
        on a line of its own where that one stands on its own, else behind it."""
        indent = self.data[self.line_start(start) : start].decode()
        if indent.strip() or start == self.line_start(start):
            return [ByteEdit(end, end, "".join(f", {item}" for item in items))]
        rest = self.data[end : self.line_end(end)].decode()
        if re.fullmatch(r"[ \t]*(,[ \t]*)?(#.*)?\r?\n", rest) is None:
            return [ByteEdit(end, end, "".join(f",\n{indent}{item}" for item in items))]
        comma = rest.lstrip().startswith(",")
        lines = "".join(f"{indent}{item}{',' if comma or item is not items[-1] else ''}\n" for item in items)
        below = self.line_end(end)
        return [*([] if comma else [ByteEdit(end, end, ",")]), ByteEdit(below, below, lines)]

    def removed(self, items: Sequence[cst.CSTNode], listed: Sequence[cst.CSTNode]) -> list[ByteEdit]:
        """Remove ``items`` from the list ``listed`` of arguments with the commas they need no longer. Comments stay."""
        edits: list[ByteEdit] = []
        gone, at = {id(item) for item in items}, 0
        while at < len(listed):
            first = at
            while at < len(listed) and id(listed[at]) in gone:
                at += 1
            if at > first:
                edits.append(self._removed(listed, first, at))
            at += 1
        return edits

    def _removed(self, listed: Sequence[cst.CSTNode], first: int, past: int) -> ByteEdit:
        start, end = self.start(listed[first]), self.end(listed[past - 1])
        if past < len(listed):
            end = self.start(listed[past])
        elif first and not self.comments_in(self.end(listed[first - 1]), start):
            start = self.end(listed[first - 1])
        elif comma := re.match(rb"\s*,", self.data[end:]):
            end += comma.end()
        column = self.data[self.line_start(start) : start].decode()
        indent = column[: len(column) - len(column.lstrip())]
        return ByteEdit(start, end, "".join(f"{c}\n{indent}" for c in self.comments_in(start, end)))

    def comment(self, statement: cst.CSTNode) -> str:
        """Return the comment behind a statement on its line (of a loop, behind its header); empty where there
        is none."""
        body = getattr(statement, "body", None)
        behind = body.header if isinstance(body, cst.IndentedBlock) else statement
        space = (
            behind
            if isinstance(behind, cst.TrailingWhitespace)
            else getattr(behind, "trailing_whitespace", None)
        )
        comment = space.comment if isinstance(space, cst.TrailingWhitespace) else None
        return comment.value if comment is not None else ""

    def with_comment(self, statement: cst.CSTNode, code: str | None = None) -> str:
        """Return the statement, or ``code`` in its place, and the comment behind it: what a rule writes
        elsewhere."""
        written, comment = self.code(statement) if code is None else code, self.comment(statement)
        return f"{written}  {comment}" if comment else written

    def without(self, statement: cst.CSTNode) -> ByteEdit:
        """Remove a statement with its lines.

        Comments above it stay, those behind it and in it take its place, and a block left empty gets ``pass``.
        """
        start, end = self.start(statement), self.block_end(statement)
        rest = [*self.comments_in(start, end), *(["pass"] if self._is_alone(statement) else [])]
        return ByteEdit(self.line_start(start), end, self._indented("\n".join(rest), self.indent(statement)))

    def moved(self, statement: cst.CSTNode) -> ByteEdit:
        """Remove a statement whose ``with_comment`` stands elsewhere from now on.

        A block left empty gets ``pass``.
        """
        start, end = self.start(statement), self.line_end(self.end(statement))
        return (
            ByteEdit(start, end, "pass\n")
            if self._is_alone(statement)
            else ByteEdit(self.line_start(start), end, "")
        )

    def comments_in(self, start: int, end: int) -> list[str]:
        """Return the comments that begin in a span, without the statements that they stand behind."""
        return [comment for at, comment in self._comments if start <= at < end]

    @cached_property
    def _comments(self) -> list[tuple[int, str]]:
        """All comments with their offsets."""
        text = self.text.removeprefix("\ufeff")
        lines = text.split("\n")
        starts = list(
            accumulate(
                (len(line.encode()) + 1 for line in lines), initial=len(self.data) - len(text.encode())
            )
        )
        tokens = tokenize.generate_tokens(io.StringIO(text, newline="").readline)
        places = [(*token.start, token.string) for token in tokens if token.type == tokenize.COMMENT]
        return [
            (starts[row - 1] + len(lines[row - 1][:column].encode()), comment)
            for row, column, comment in places
        ]

    def _is_alone(self, statement: cst.CSTNode) -> bool:
        block = self.parent(statement)
        return isinstance(block, cst.IndentedBlock) and len(block.body) == 1

    @staticmethod
    def _indented(lines: str, indent: str) -> str:
        return "".join(f"{indent}{line}\n" if line else "\n" for line in source_lines(lines))


@cache
def _field_names(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _fields_of(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the nodes directly below ``node``, whitespace and comments left out."""
    for name in _field_names(type(node)):
        value = getattr(node, name)
        for child in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(child, cst.CSTNode) and not isinstance(child, _LAYOUT):
                yield child


_LAYOUT = (cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine, cst.Newline, cst.Comment)
