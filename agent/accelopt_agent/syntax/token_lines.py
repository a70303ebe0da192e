"""Reads source text as logical lines of tokens, each token with what kind of name it is."""

from __future__ import annotations

import ast
import builtins
import io
import keyword
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from accelopt_agent.syntax.lines import split_lines
from accelopt_agent.syntax.scopes import scopes_of
from accelopt_profiling.name_paths import all_import_paths
from accelopt_profiling.source_text import syntax_of

#: "local": a name that the file binds itself; "fixed": a keyword, an imported or built-in name, an attribute, or the
#: keyword of somebody else's function.
TokenKind = Literal["local", "fixed", "number", "string", "operator"]

_SKIPPED = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER})
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True)
class Token:
    """``value`` is what the token is compared by: for an imported name the full path, else its text. ``space`` is the
    text between the token before and this one on the same logical line."""

    kind: TokenKind
    text: str
    value: str
    space: str = ""
    keyword: bool = False  # names an argument or parameter: ``name=``
    imported: bool = False


@dataclass(frozen=True)
class LogicalLine:
    """One statement, or the header of one.

    ``depth`` counts the blocks around it. ``first`` to ``end`` are its physical lines (0-based, exclusive), ``lead`` is
    the first of the comments and blank lines before it. ``tail`` is the comment behind it.
    """

    tokens: tuple[Token, ...]
    depth: int
    lead: int
    first: int
    end: int
    indent: str = ""
    tail: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(token.value for token in self.tokens)

    @property
    def is_text(self) -> bool:
        """It is a docstring or another lone constant."""
        return all(token.kind == "string" for token in self.tokens)


@dataclass(frozen=True)
class TokenizedFunction:
    """A function with its decorators; ``name`` is qualified as in ``scopes.Scope``.

    Nested functions are part of it.
    """

    name: str
    lines: tuple[LogicalLine, ...]
    position: int  # of its first line among the lines of the file


@dataclass(frozen=True)
class TokenizedSource:
    """A file as logical lines.

    ``functions`` are its outermost functions and methods in source order, ``module`` the positions (in ``lines``) of
    all lines outside of them.
    """

    text: str
    lines: tuple[LogicalLine, ...]
    functions: tuple[TokenizedFunction, ...]
    module: tuple[int, ...]
    physical: tuple[str, ...] = field(repr=False, default=())
    newline: str = "\n"
    imports: Mapping[str, str] = field(default_factory=dict)  # path of what is imported: its name here

    def function(self, name: str) -> TokenizedFunction | None:
        return next((f for f in self.functions if f.name == name), None)


@lru_cache(maxsize=64)
def read_tokens(text: str) -> TokenizedSource:
    """Return ``text`` as logical lines.

    Raises:
        SyntaxError: it does not parse.
    """
    tree = syntax_of(text)
    physical = split_lines(text)
    plain = "\n".join(physical.texts)
    names = _Names(tree)
    try:
        lines = tuple(_logical_lines(plain, physical.texts, names))
    except (tokenize.TokenError, IndentationError) as error:
        raise SyntaxError(str(error)) from None
    scopes = scopes_of(tree)
    outermost = [
        s for s in scopes if not any(o is not s and o.start <= s.start and s.end <= o.end for o in scopes)
    ]
    functions, inside = [], set()
    for scope in outermost:
        own = [k for k, line in enumerate(lines) if scope.start <= line.first < scope.end]
        if own:
            inside |= set(own)
            functions.append(TokenizedFunction(scope.name, tuple(lines[k] for k in own), own[0]))
    module = tuple(k for k in range(len(lines)) if k not in inside)
    imports = {path: name for name, path in names.imported.items() if names.is_imported(name)}
    return TokenizedSource(
        text,
        lines,
        functions=tuple(functions),
        module=module,
        physical=physical.texts,
        newline=physical.newline,
        imports=imports,
    )


def code_lines(lines: Sequence[LogicalLine]) -> list[LogicalLine]:
    """Return ``lines`` without docstrings and other lone constants."""
    return [line for line in lines if not line.is_text]


class _Names:
    """What a name of the file means: imported (its full path), built in, or bound by the file."""

    def __init__(self, tree: ast.Module) -> None:
        self.imported = all_import_paths(tree)
        bound: set[str] = set()
        self.parameters: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                self.parameters.add(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound.add(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                bound.add(node.name)
        self._bound = bound | self.parameters

    def is_imported(self, name: str) -> bool:
        return name in self.imported and name not in self._bound

    def value(self, name: str) -> tuple[TokenKind, str]:
        if keyword.iskeyword(name) or name == "_":
            return "fixed", name
        if self.is_imported(name):
            return "fixed", self.imported[name]
        if name not in self._bound and hasattr(builtins, name):
            return "fixed", name
        return "local", name


def _logical_lines(text: str, physical: Sequence[str], names: _Names) -> Iterator[LogicalLine]:
    tokens: list[Token] = []
    callees: list[bool] = []  # of each open bracket: its keywords are parameters of a function of this file
    depth = lead = first = 0
    at = (1, 0)
    for read in _joined_strings(tokenize.generate_tokens(io.StringIO(text).readline), physical):
        kind, string, start, end = read
        if kind == tokenize.INDENT:
            depth += 1
        elif kind == tokenize.DEDENT:
            depth -= 1
        elif kind == tokenize.NEWLINE:
            tail = physical[at[0] - 1][at[1] :].rstrip()
            indent = physical[first][: len(physical[first]) - len(physical[first].lstrip())]
            yield LogicalLine(
                tuple(tokens), depth, lead=lead, first=first, end=at[0], indent=indent, tail=tail
            )
            tokens, callees, lead = [], [], at[0]
        elif kind not in _SKIPPED:
            if not tokens:
                first, at = start[0] - 1, start
            space = _between(physical, at, start)
            at = end
            tokens.append(_token(kind, string, space=space, before=tokens, callees=callees, names=names))
            if string in _OPEN:
                callees.append(_is_own(tokens))
            elif string in _CLOSE and callees:
                callees.pop()


def _token(
    kind: int, text: str, space: str, before: list[Token], callees: list[bool], names: _Names
) -> Token:
    if kind == tokenize.NAME:
        if before and before[-1].text == ".":
            return Token("fixed", text, text, space)
        sort, value = names.value(text)
        return Token(sort, text, value, space, imported=names.is_imported(text))
    if kind == tokenize.NUMBER:
        return Token("number", text, text, space)
    if kind == tokenize.STRING:
        return Token("string", text, text, space)
    if text == "=" and callees and before and before[-1].text.isidentifier():
        name = before[-1]
        own = callees[-1] or (before[0].text in ("def", "async") and len(callees) == 1)
        sort = "local" if own and name.text in names.parameters else "fixed"
        before[-1] = Token(sort, name.text, name.text, name.space, keyword=True)
    return Token("operator", text, text, space)


def _is_own(tokens: list[Token]) -> bool:
    """Return whether the bracket that ends ``tokens`` opens the arguments of a function of the file: its name, or its
    name and a launch grid, stands before it."""
    if tokens[-1].text != "(" or len(tokens) < 2:
        return False
    at, level = len(tokens) - 2, 0
    if tokens[at].text == "]":
        while at >= 0:
            level += {"]": 1, ")": 1, "}": 1, "[": -1, "(": -1, "{": -1}.get(tokens[at].text, 0)
            at -= 1
            if not level:
                break
    return at >= 0 and tokens[at].kind == "local"


def _between(physical: Sequence[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    if start[0] == end[0]:
        return physical[start[0] - 1][start[1] : end[1]]
    middle = physical[start[0] : end[0] - 1]
    return "\n".join([physical[start[0] - 1][start[1] :], *middle, physical[end[0] - 1][: end[1]]])


_Read = tuple[int, str, tuple[int, int], tuple[int, int]]


def _joined_strings(tokens: Iterator[tokenize.TokenInfo], physical: Sequence[str]) -> Iterator[_Read]:
    """Yield the tokens with each f-string as one string, as Python read them before 3.12."""
    opens = getattr(tokenize, "FSTRING_START", -1)
    closes = getattr(tokenize, "FSTRING_END", -1)
    level, start = 0, (0, 0)
    for token in tokens:
        if token.type == opens:
            start = start if level else token.start
            level += 1
        elif token.type == closes:
            level -= 1
            if not level:
                yield tokenize.STRING, _between(physical, start, token.end), start, token.end
        elif not level:
            yield token.type, token.string, token.start, token.end
