"""Hashes normalised syntax trees: equal for two rewrites that differ only in layout and local names."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from accelopt_agent.syntax.scopes import scopes_of
from accelopt_profiling.source_text import syntax_of


def file_fingerprint(text: str) -> str:
    """Return a hash of the whole file, blind to comments, layout, docstrings and the names of local
    variables.

    Raises:
        SyntaxError: the text does not parse.
    """
    return _hash([dump for dump, _ in _statements(text)])


def rewrite_fingerprint(base_text: str, text: str, kernel: str) -> str:
    """Return a hash of what a rewrite makes of ``kernel`` and of every other top-level statement that it
    changes.

    Code that the rewrite leaves alone does not count, so that a rewrite is known again after the rest of the
    file has changed.

    Raises:
        SyntaxError: one of the texts does not parse.
    """
    left_alone = Counter(dump for dump, _ in _statements(base_text))
    changed, kernels = [], []
    for dump, functions in _statements(text):
        if left_alone[dump]:
            left_alone[dump] -= 1
        else:
            changed.append(dump)
        kernels += [function for name, function in functions if name == kernel]
    return _hash([kernel, *kernels, "", *sorted(changed)])


@lru_cache(maxsize=64)
def _statements(text: str) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Return the dumps of the top-level statements, each with the names and dumps of the functions in it."""
    tree = syntax_of(text)
    scopes = scopes_of(tree)
    dump = _Dump([scope.node for scope in scopes])
    names = {scope.node: scope.name for scope in scopes}
    return tuple(
        (dump.of(s), tuple((names[n], dump.of(n)) for n in ast.walk(s) if n in names)) for s in tree.body
    )


class _Dump:
    """Write syntax as ``ast.dump`` of CPython 3.11, without docstrings and other lone constants of ``functions``, their
    local variables numbered by first binding. Parameters keep their names: calls use them as keywords.
    """

    def __init__(self, functions: Sequence[ast.FunctionDef | ast.AsyncFunctionDef]) -> None:
        self._names: dict[ast.AST, str] = {}
        self._inside = {node for function in functions for node in ast.walk(function)}
        for function in functions:
            self._number(function)

    def _number(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        nodes = list(ast.walk(function))
        fixed = {name for n in nodes if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
        own = [n.args for n in nodes if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        fixed |= {n.arg for arguments in own for n in ast.walk(arguments) if isinstance(n, ast.arg)}
        names = [n for n in nodes if isinstance(n, ast.Name) and n not in self._names]
        numbers: dict[str, str] = {}
        for name in names:
            if isinstance(name.ctx, ast.Store) and name.id not in fixed:
                numbers.setdefault(name.id, f"${len(numbers)}")
        self._names |= {name: numbers[name.id] for name in names if name.id in numbers}

    def of(self, node: object, owner: ast.AST | None = None, field: str = "") -> str:
        if isinstance(node, list):
            return f"[{', '.join(self.of(part) for part in self._counting(node, owner, field))}]"
        if not isinstance(node, ast.AST):
            return repr(node)
        parts = []
        for name in node._fields:
            value = (
                self._names.get(node, node.id)
                if isinstance(node, ast.Name) and name == "id"
                else getattr(node, name, None)
            )
            if value is not None or getattr(type(node), name, ...) is not None:
                parts.append(f"{name}={self.of(value, node, name)}")
        return f"{type(node).__name__}({', '.join(parts)})"

    def _counting(self, nodes: list[Any], owner: ast.AST | None, field: str) -> list[Any]:
        """Return the parts of a field that count."""
        if owner not in self._inside or field not in ("body", "orelse", "finalbody"):
            return nodes
        rest = [n for n in nodes if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]
        return rest or ([ast.Pass()] if field == "body" and nodes else [])


def _hash(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
