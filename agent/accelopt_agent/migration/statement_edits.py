"""Replaces whole statements and expressions of a text, and leaves everything else, comments included, as it is."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from itertools import accumulate

from accelopt_profiling.source_text import syntax_of

_GAP = r"(?:[ \t\f]|\\(?:\r\n|\r|\n))*"
#: What may stand between two statements of one line, and after the last of them.
_JOINED = re.compile(rf"{_GAP};{_GAP}")
_CLOSED = re.compile(rf"{_GAP};(?={_GAP}(?:#|[\r\n]|\Z))")
_ENDS = re.compile(r"\r\n|\r|\n")


class StatementEdits:
    """A text, its tree, and what is to stand in the place of some of its parts."""

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
        """Let ``lines`` stand for a statement without a body. None take it away."""
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
        """Return where a 1-based line's column, in bytes of UTF-8, stands in the text."""
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
        """Put the comments of a part that is replaced on lines of their own, before the line at ``line_start``."""
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
        """Return the last line that a body may begin on which follows the colon of ``owner``'s head directly."""
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
