"""Read the text around a cursor by its characters: text that is being typed rarely parses.

What stands in a string or a comment is no code. A call that is not closed ends where a statement begins that cannot
stand inside of one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from accelopt_profiling.name_paths import import_paths

#: So many lines before the cursor are read.
WINDOW = 300
_DOTTED = r"[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*"
_TYPED = re.compile(rf"(?<![\w.])({_DOTTED}\s*\.?\s*)?\Z")
_TOKEN = re.compile(
    r"(?P<comment>#[^\n]*)"
    r"|(?P<text>(?:\"{3}.*?(?:\"{3}|\Z)|'{3}.*?(?:'{3}|\Z)"
    r"|\"(?:\\.|[^\"\\\n])*(?:\"|(?=\n)|\Z)|'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z)))"
    rf"|(?P<name>{_DOTTED})"
    r"|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<comma>,)|(?P<equals>(?<![=<>!:])=(?!=))"
    r"|(?P<line>\n[ \t]*(?:(?:async\s+)?(?:def|with)|class|return|while|import|from|raise|assert|@|del)\b)"
    r"|(?P<decorator>\n[ \t]*@)|(?P<other>[^\s\w]|\d\w*)",
    re.DOTALL,
)
_BEGIN = re.compile(r"(?m)^[ \t]*(?:(?:async[ \t]+)?def|class|@)")
_IMPORT = re.compile(
    r"(?m)^[ \t]*(from[ \t]+[\w.]+[ \t]+import[ \t]*(?:\([^()]*\)|[^\n#;(]+)|import[ \t]+[^\n#;]+)"
)


@dataclass(frozen=True)
class EnclosingCall:
    """A call that the cursor stands in: its function's dotted name, the place of the argument at the cursor, the
    keyword that this is given by, and the keywords of all arguments. ``begun``: the argument has some text before what
    is being typed."""

    function: str
    position: int = 0
    keyword: str = ""
    keywords: frozenset[str] = frozenset()
    begun: bool = False


@dataclass(frozen=True)
class Cursor:
    """What stands before a cursor: the dotted name that is being ``typed`` ("nl.lo"), and the call around it."""

    typed: str = ""
    call: EnclosingCall | None = None


@dataclass
class _Bracket:
    function: str
    commas: int = 0
    keyword: str = ""
    keywords: set[str] = field(default_factory=set)
    begun: bool = False


def cursor_at(lines: Sequence[str], line: int, column: int) -> Cursor | None:
    """Return what stands before a place (0-based, in characters) of lines without their ends; None inside of a string
    or a comment."""
    if not 0 <= line < len(lines):
        return Cursor()
    first = max(0, line - WINDOW)
    head = lines[line][:column]
    text = "\n".join([*lines[first:line], head])
    begins = [m.start() for m in _BEGIN.finditer(text)]
    text = text[begins[0] :] if begins and first else text
    typed = _TYPED.search(head)
    name = (typed[1] or "") if typed else ""
    before = len(text) - len(name)
    stack: list[_Bracket] = []
    last = ""
    for token in _TOKEN.finditer(text):
        kind, word = token.lastgroup, token[0]
        if kind in ("comment", "text"):
            if token.end() == len(text) and _is_open(word, kind):
                return None
            if stack and kind == "text":
                stack[-1].begun = True
        elif token.start() >= before:
            break
        elif kind == "open":
            stack.append(_Bracket(last if word == "(" else ""))
        elif kind == "close":
            if stack:
                stack.pop()
            if stack:
                stack[-1].begun = True
        elif kind in ("line", "decorator"):
            stack.clear()
        elif stack and kind == "comma":
            stack[-1].commas += 1
            stack[-1].keyword, stack[-1].begun = "", False
        elif stack and kind == "equals":
            if last and "." not in last:
                stack[-1].keyword, stack[-1].begun = last, False
                stack[-1].keywords.add(last)
        elif stack and kind in ("name", "other"):
            stack[-1].begun = True
        last = re.sub(r"\s", "", word) if kind == "name" else ""
    return Cursor(re.sub(r"\s", "", name), _innermost(stack))


def _is_open(word: str, kind: str) -> bool:
    """Whether a token that reaches the cursor goes on behind it."""
    if kind == "comment":
        return True
    quote = word[:3] if word[:3] in ('"""', "'''") else word[:1]
    return len(word) < 2 * len(quote) or not word.endswith(quote)


def _innermost(stack: list[_Bracket]) -> EnclosingCall | None:
    for bracket in reversed(stack):
        if bracket.function:
            is_innermost = bracket is stack[-1]
            return EnclosingCall(
                bracket.function,
                bracket.commas,
                bracket.keyword,
                frozenset(bracket.keywords),
                bracket.begun or not is_innermost,
            )
    return None


def name_at(lines: Sequence[str], line: int, column: int) -> str:
    """Return the dotted name under a place, up to the part that it is on: "nl.exp"; "" where there is none."""
    if not 0 <= line < len(lines):
        return ""
    for match in re.finditer(_DOTTED, lines[line]):
        if match.start() <= column <= match.end():
            rest = re.match(r"\w*", lines[line][column:])
            end = column + (rest.end() if rest else 0)
            name = re.sub(r"\s", "", lines[line][match.start() : end]).rstrip(".")
            inside = cursor_at(lines, line, match.start())
            return name if inside is not None else ""
    return ""


@lru_cache(maxsize=8)
def imported_names(text: str) -> Mapping[str, str]:
    """Return the names that the imports of a text bind, with their dotted paths, whether or not it parses."""
    names: dict[str, str] = {}
    if "nki" not in text and "triton" not in text:
        return names
    for match in _IMPORT.finditer(text):
        try:
            statement = ast.parse(match[1].strip()).body[0]
        except (SyntaxError, ValueError):
            continue
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            names |= import_paths(statement)
    return names


def path_of(name: str, names: Mapping[str, str]) -> str:
    """Return the dotted path of a dotted name; "" where its first part is not imported."""
    first, dot, rest = name.partition(".")
    return f"{names[first]}{dot}{rest}" if first in names else ""
