"""Moves a file of Beta 1 to today's NKI, statement by statement.

Imports, decorators, loops and the statements of its kernels change; all other text stays as it is, comments too.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from accelopt_agent.migration.kernel_translation import KernelTranslation
from accelopt_agent.migration.known_facts import FactTable
from accelopt_agent.migration.spelling import ModuleNames, UntranslatableError, removed
from accelopt_profiling.source_text import syntax_of

if TYPE_CHECKING:
    from accelopt_profiling.nki.tile_facts import ExpressionFact


_MARK = "# not moved:"
_BETA1 = "neuronxcc.nki"


@dataclass(frozen=True)
class UnmovedLine:
    """A 1-based line that has to be moved by hand, and why."""

    line: int
    reason: str


@dataclass(frozen=True)
class FileMigration:
    """The text in today's NKI.

    ``unmoved`` lines are marked in it by a comment with the reason. ``not_run`` are lines of the original that did not
    run in any case, so that nothing is known about what stands for them.
    """

    text: str
    unmoved: list[UnmovedLine]
    not_run: list[int] = field(default_factory=list)


def is_beta1(text: str) -> bool:
    """Return True for a text that imports Beta 1."""
    return _BETA1 in text


def migrate_text(text: str, facts: Iterable[ExpressionFact]) -> FileMigration:
    """Translate ``text``; ``facts`` are what its expressions were in a run.

    Raises:
        SyntaxError: it does not parse.
    """
    edits, table = StatementEdits(text), FactTable(facts)
    names = ModuleNames.of(edits.tree)
    unmoved: list[UnmovedLine] = []
    new_lines: list[str] = []
    not_run: set[int] = set()
    for function in (n for n in ast.walk(edits.tree) if isinstance(n, ast.FunctionDef)):
        for decorator in function.decorator_list:
            if (today := _decorator(decorator, names)) is not None:
                edits.replace_decorator(decorator, today)
        not_run |= _not_run(function, table, names)
        if not table.any_in(function):
            continue  # host code, or a function that did not run
        translation = KernelTranslation(function, table, names)
        for statement in statements_of(function):
            try:
                if isinstance(statement, ast.For):
                    _loop(statement, translation, edits)
                    continue
                lines = translation.translate(statement)
            except UntranslatableError as why:
                unmoved.append(UnmovedLine(statement.lineno, str(why)))
                lines = None if _has_body(statement) else [f"{_MARK} {why}", edits.source(statement)]
            if lines is not None:
                edits.replace(statement, lines)
                new_lines += lines
    isa = names.module(f"{_BETA1}.isa", "")
    needs_isa = not isa and any("nisa." in line for line in new_lines)
    for node in ast.walk(edits.tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and (lines := _import(node)) is not None:
            if needs_isa and node in edits.tree.body:
                lines, needs_isa = [*lines, "import nki.isa as nisa"], False
            edits.replace(node, lines)
    return FileMigration(edits.result(), sorted(unmoved, key=lambda u: u.line), sorted(not_run))


#: Decorators that ``nki.jit`` stands for today.
_DECORATORS = frozenset(("trace", "baremetal", "benchmark", "profile"))
#: What cannot be imported any more, by Beta 1's module.
_GONE = {
    "neuronxcc.nki": _DECORATORS | removed("nki"),
    "neuronxcc.nki.language": removed("nki.language"),
}


def _import(node: ast.Import | ast.ImportFrom) -> list[str] | None:
    """Return today's import, [] for one that is gone."""
    if isinstance(node, ast.Import):
        if not any(a.name.startswith("neuronxcc") for a in node.names):
            return None
        lines = []
        for alias in node.names:
            module = alias.name.replace("neuronxcc.nki", "nki")
            if module != "nki.compiler":
                lines.append(
                    f"import {module}" + (f" as {alias.asname}" if alias.asname not in (None, module) else "")
                )
        return lines
    module = node.module or ""
    if not module.startswith("neuronxcc"):
        return None
    gone = _GONE.get(module, frozenset())
    aliases = [a for a in node.names if a.name not in gone and a.name != "compiler"]
    if module == "neuronxcc":
        return [
            f"import nki as {a.asname}" if a.asname not in (None, "nki") else "import nki" for a in aliases
        ]
    if not aliases:
        return []
    listed = ", ".join(f"{a.name} as {a.asname}" if a.asname else a.name for a in aliases)
    return [f"from {module.replace('neuronxcc.nki', 'nki')} import {listed}"]


def _decorator(decorator: ast.expr, names: ModuleNames) -> str | None:
    """Return today's decorator.

    It is "" for one that is gone, None for one that is not NKI's.
    """
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    dotted = names.dotted(called)
    if not dotted.startswith(_BETA1):
        return None
    last = dotted.rpartition(".")[2]
    if last == "jit":
        return ast.unparse(called)
    return f"{names.module(_BETA1, 'nki')}.jit" if last in _DECORATORS else ""


def statements_of(function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """Yield the statements of a function, its loops included.

    Imports are left out, and statements of inner functions.
    """
    waiting: list[ast.AST] = list(reversed(function.body))
    while waiting:
        node = waiting.pop()
        if isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
        ):
            continue
        if isinstance(node, ast.stmt) and (isinstance(node, ast.For) or not _has_body(node)):
            yield node
        inner = [
            n
            for n in ast.iter_child_nodes(node)
            if isinstance(n, (ast.stmt, ast.ExceptHandler, ast.match_case))
        ]
        waiting += reversed(inner)


#: Their expressions are not recorded.
_UNRECORDED = (
    ast.Lambda,
    ast.JoinedStr,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.FunctionDef,
)


def _not_run(function: ast.FunctionDef, table: FactTable, names: ModuleNames) -> set[int]:
    """Return the lines of a function that did not run.

    They hold a call of NKI's or, in a kernel, any expression.
    """
    lines: set[int] = set()
    kernel = table.any_in(function)
    for statement in statements_of(function):
        if isinstance(statement, (ast.Raise, ast.Assert)):
            continue
        waiting: list[ast.AST] = [statement.iter] if isinstance(statement, ast.For) else [statement]
        places: list[ast.AST] = []
        while waiting:
            node = waiting.pop()
            if not isinstance(node, _UNRECORDED):
                places.append(node)
                waiting += ast.iter_child_nodes(node)
        calls = [n for n in places if isinstance(n, ast.Call) and _is_device_function(n.func, names)]
        loads = [n for n in places if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        if any(table.of(c) is None for c in calls) or (
            kernel and loads and not any(table.of(n) is not None for n in places)
        ):
            lines.add(statement.lineno)
    return lines


def _is_device_function(node: ast.expr, names: ModuleNames) -> bool:
    return bool(names.below(node, "language") or names.below(node, "isa"))


def _has_body(node: ast.stmt) -> bool:
    return bool(getattr(node, "body", None) or getattr(node, "cases", None))


def _loop(loop: ast.For, translation: KernelTranslation, edits: StatementEdits) -> None:
    """Replace what a loop runs over."""
    over = translation.loop_range(loop.iter)
    if over != ast.unparse(loop.iter):
        edits.replace_expression(loop.iter, over, loop)


_GAP = r"(?:[ \t\f]|\\(?:\r\n|\r|\n))*"
#: What may stand between two statements of one line, and after the last of them.
_JOINED = re.compile(rf"{_GAP};{_GAP}")
_CLOSED = re.compile(rf"{_GAP};(?={_GAP}(?:#|[\r\n]|\Z))")
_ENDS = re.compile(r"\r\n|\r|\n")


class StatementEdits:
    """A text, its tree, and replacements of some of its parts."""

    def __init__(self, text: str) -> None:
        """Parse ``text``.

        Raises:
            SyntaxError: it does not parse.
        """
        self.text, self.tree = text, syntax_of(text)
        self._lines = io.StringIO(text, newline="").readlines()
        self._starts = [0, *accumulate(map(len, self._lines))]
        self._newline = match.group() if (match := _ENDS.search(text)) else "\n"
        self._comments = list(self._read_comments())
        self._unit = self._indentation_unit()
        self._statements: dict[ast.stmt, Sequence[str]] = {}
        self._edits: list[tuple[int, int, str]] = []

    # What to change

    def replace(self, statement: ast.stmt, lines: Sequence[str]) -> None:
        """Replace a statement without a body by ``lines``; None remove it."""
        self._statements[statement] = lines

    def replace_expression(self, node: ast.expr, text: str, owner: ast.stmt) -> None:
        """Let ``text`` stand for an expression in the head of ``owner``."""
        first, last = self._span(node)
        self._move_comments(first, last, self._line_start(owner.lineno))
        self._edits.append((first, last, text))

    def replace_decorator(self, node: ast.expr, text: str) -> None:
        """Let ``text`` stand for a decorator; "" takes it away."""
        first, last = self._span(node)
        at = self.text.rindex("@", 0, first)
        start = self._line_start(node.lineno)
        self._move_comments(first, last, start)
        if text:
            self._edits.append((first, last, text))
        else:
            self._edits.append((at, self._starts[(node.end_lineno or node.lineno)], ""))

    def source(self, statement: ast.stmt) -> str:
        """Return the text of a statement as it is."""
        first, last = self._span(statement)
        return self.text[first:last]

    def result(self) -> str:
        """Return the new text."""
        edits = list(self._edits)
        for owner, body in _bodies(self.tree):
            edits += self._body(owner, body)
        text = self.text
        for first, last, new in sorted(edits, key=lambda e: (e[0], e[1]), reverse=True):
            text = text[:first] + new + text[last:]
        return text

    # Places

    def _offset(self, line: int, column: int) -> int:
        """Return the offset of a 1-based line's column, in bytes of UTF-8."""
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return self._starts[line - 1] + len(text.encode()[:column].decode())

    def _span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        return (
            self._offset(node.lineno, node.col_offset),
            self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0),
        )

    def _line_start(self, line: int) -> int:
        return self._starts[line - 1]

    def _indentation(self, line: int) -> str:
        """Return the blanks that a line begins with, without form feeds."""
        text = self._lines[line - 1]
        return text[: len(text) - len(text.lstrip(" \t\f"))].rpartition("\f")[2]

    def _indentation_unit(self) -> str:
        for owner, body in _bodies(self.tree):
            if isinstance(owner, ast.Module) or body[0].lineno == _line_of(owner):
                continue
            outer, inner = self._indentation(_line_of(owner)), self._indentation(body[0].lineno)
            if inner.startswith(outer) and len(inner) > len(outer):
                return inner[len(outer) :]
        return "    "

    def _read_comments(self) -> Iterator[tuple[int, str]]:
        for token in tokenize.generate_tokens(io.StringIO(self.text, newline="").readline):
            if token.type == tokenize.COMMENT:
                yield self._starts[token.start[0] - 1] + token.start[1], token.string

    def _comments_in(self, first: int, last: int) -> list[str]:
        return [text for at, text in self._comments if first <= at < last]

    def _move_comments(self, first: int, last: int, line_start: int) -> None:
        """Put the comments of a replaced part on lines of their own.

        They stand before the line at ``line_start``.
        """
        line = self._starts.index(line_start) + 1
        for comment in self._comments_in(first, last):
            self._edits.append((line_start, line_start, f"{self._indentation(line)}{comment}{self._newline}"))

    # Statements

    def _body(self, owner: ast.AST, body: list[ast.stmt]) -> Iterator[tuple[int, int, str]]:
        """Yield the edits of a body, which keeps at least ``pass``."""
        lines = {s: list(self._statements[s]) for s in body if s in self._statements}
        if len(lines) == len(body) and not any(lines.values()) and not isinstance(owner, ast.Module):
            lines[body[-1]] = ["pass"]
        for group in self._groups(body):
            if any(s in lines for s in group):
                yield self._edit(owner, group, lines)

    def _groups(self, body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
        """Yield the statements that share a line, joined by semicolons, together."""
        group: list[ast.stmt] = []
        for statement in body:
            if group:
                between = self.text[self._span(group[-1])[1] : self._span(statement)[0]]
                if not _JOINED.fullmatch(between):
                    yield group
                    group = []
            group.append(statement)
        yield group

    def _edit(
        self, owner: ast.AST, group: list[ast.stmt], lines: dict[ast.stmt, list[str]]
    ) -> tuple[int, int, str]:
        first, last = self._span(group[0])[0], self._span(group[-1])[1]
        if semicolon := _CLOSED.match(self.text, last):
            last = semicolon.end()
        new_lines: list[str] = []
        for statement in group:
            if statement in lines:
                new_lines += [*self._comments_in(*self._span(statement)), *lines[statement]]
            else:
                new_lines.append(self.source(statement))
        head = re.search(rf":{_GAP}\Z", self.text[:first])
        inline = head is not None and self._span_line(first) <= self._last_head_line(owner, head.start())
        if inline and head is not None:
            new_lines = new_lines or ["pass"]
            if len(new_lines) == 1 and not new_lines[0].startswith("#"):
                return first, last, new_lines[0]
            indentation = self._indentation(_line_of(owner)) + self._unit
            new_line = self._newline + indentation
            return head.start() + 1, last, new_line + new_line.join(new_lines)
        if new_lines:
            return first, last, (self._newline + self._indentation(group[0].lineno)).join(new_lines)
        start, end = self._line_start(group[0].lineno), self._starts[group[-1].end_lineno or 0]
        if not self.text[last:end].strip():
            return start, end, ""
        return first, last + len(self.text[last:end]) - len(self.text[last:end].lstrip(" \t\f")), ""

    def _span_line(self, offset: int) -> int:
        return next((n for n, start in enumerate(self._starts) if start > offset), len(self._starts))

    def _last_head_line(self, owner: ast.AST, colon: int) -> int:
        """Return the last line on which a body may begin.

        It follows the colon of ``owner``'s head directly.
        """
        if isinstance(owner, ast.Module):
            return 0
        line = self._span_line(colon)
        while line < len(self._lines) and self._lines[line - 1].rstrip("\r\n").endswith("\\"):
            line += 1
        return line


def _line_of(owner: ast.AST) -> int:
    """Return the line that a statement, a handler or a case begins on."""
    if isinstance(owner, ast.match_case):
        return owner.pattern.lineno
    return int(getattr(owner, "lineno", 1))


def _bodies(tree: ast.AST) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """Yield each list of statements, with what it belongs to."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield node, body
