"""Find the statements of libraries and of the user's file that an exception passed through, with their values."""

from __future__ import annotations

import ast
import linecache
import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from types import CodeType, FrameType
from typing import Any

#: Packages whose statements tell nothing about the user's arguments.
_NOT_THEIRS = ("torch", "triton", "numpy", "accelopt_profiling")


#: Statements of a file that give names.
_BINDING = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)


class NoValueError(Exception):
    """An expression has no value at a site."""


@dataclass(frozen=True)
class FailureSite:
    """A statement that raised or called what raised.

    ``parents`` are the statements around it, innermost first.
    """

    statement: ast.stmt
    parents: tuple[ast.stmt, ...]
    frame: FrameType

    def value(self, node: ast.expr) -> Any:
        """Evaluate an expression of the statement in its frame. Raises NoValueError."""
        try:
            code = compile(ast.fix_missing_locations(ast.Expression(node)), "<condition>", "eval")
            return eval(code, self.frame.f_globals, self.frame.f_locals)  # noqa: S307  (user code, in its sandbox)
        except Exception as error:
            raise NoValueError(ast.unparse(node)) from error

    def expressions(self) -> Iterator[ast.expr]:
        """Yield every expression of the statement. Of a compound one those of its head."""
        heads: list[ast.AST] = [
            child for child in ast.iter_child_nodes(self.statement) if not isinstance(child, ast.stmt)
        ]
        for head in heads:
            for node in ast.walk(head):
                if isinstance(node, ast.expr):
                    yield node

    @property
    def file(self) -> str:
        return self.frame.f_code.co_filename

    @property
    def function(self) -> ast.AST | None:
        """The function around the statement."""
        return next((p for p in self.parents if isinstance(p, ast.FunctionDef)), None)


def error_text(error: BaseException) -> str:
    """Return the type and the message of an exception. Of an ``assert`` without a message what it asserts."""
    message = str(error)
    if not message and isinstance(error, AssertionError):
        asserted = next(iter(failure_sites(error)), None)
        if asserted is not None and isinstance(asserted.statement, ast.Assert):
            message = f"{ast.unparse(asserted.statement.test)} does not hold"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def failure_sites(error: BaseException) -> list[FailureSite]:
    """Return the statements that ``error`` passed through, innermost first.

    Those of torch and Triton are left out.
    """
    sites: list[FailureSite] = []
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if _is_theirs(file) and (nodes := _statement(file, trace.tb_lineno)):
            sites.append(FailureSite(nodes[0], tuple(nodes[1:]), trace.tb_frame))
        trace = trace.tb_next
    return sites[::-1]


def failed_check(error: AssertionError, file: str) -> str:
    """Return the statements of ``file`` through which a check of its own failed, outermost first, and how many of its
    statements ran before: the same text for two versions of a file that fail alike. Definitions and assignments do not
    count. "" where no statement is its.
    """
    passed = [site for site in failure_sites(error) if site.file == file][::-1]
    tree = _parsed(file)
    if not passed or tree is None:
        return ""
    first = [passed[0].statement, *passed[0].parents][-1]
    before = [s for s in tree.body if s.lineno < first.lineno and not isinstance(s, _BINDING)]
    return "\n".join([str(len(before)), *(ast.unparse(site.statement) for site in passed)])


def definition_of(code: CodeType) -> ast.FunctionDef | None:
    """Return the definition of a user's function. None where its source cannot be read."""
    nodes = _statement(code.co_filename, code.co_firstlineno) if _is_theirs(code.co_filename) else None
    return next((s for s in nodes or () if isinstance(s, ast.FunctionDef) and s.name == code.co_name), None)


def _is_theirs(file: str) -> bool:
    if file.startswith((*_library_folders(), "<")):
        return False
    standard = sysconfig.get_paths()["stdlib"]
    return not file.startswith(standard) or "site-packages" in file


@cache
def _library_folders() -> tuple[str, ...]:
    specs = [spec for name in _NOT_THEIRS if (spec := find_spec(name)) is not None]
    return tuple(os.path.join(place, "") for spec in specs for place in spec.submodule_search_locations or ())


def _statement(file: str, line: int) -> list[ast.stmt] | None:
    """Return the statement of a line and those around it, innermost first."""
    tree = _parsed(file)
    around: list[ast.stmt] = []
    body: list[ast.AST] = [tree] if tree else []
    while body:
        inner = next(
            (
                node
                for node in ast.iter_child_nodes(body[-1])
                if isinstance(node, (ast.stmt, ast.ExceptHandler))
                and node.lineno <= line <= (node.end_lineno or node.lineno)
            ),
            None,
        )
        if inner is None:
            break
        body.append(inner)
        if isinstance(inner, ast.stmt):
            around.append(inner)
    return around[::-1] or None


@cache
def _parsed(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None
