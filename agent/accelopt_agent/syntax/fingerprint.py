"""Hashes normalised syntax trees: equal for two rewrites that differ only in layout and local names."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from functools import lru_cache

from accelopt_agent.syntax.scopes import scopes_of
from accelopt_profiling.source_text import parse_python


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
    tree = normalised(text)
    names = {scope.node: scope.name for scope in scopes_of(tree)}
    return tuple(
        (ast.dump(s), tuple((names[n], ast.dump(n)) for n in ast.walk(s) if n in names)) for s in tree.body
    )


def normalised(text: str) -> ast.Module:
    """Return the syntax tree without docstrings and other lone constants, local variables numbered by first
    binding."""
    tree = parse_python(text)
    for scope in scopes_of(tree):
        _strip(scope.node)
        _Renamer(scope.node).visit(scope.node)
    return tree


def _strip(function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    for node in ast.walk(function):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                kept = [
                    s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
                ]
                setattr(node, field, kept or ([ast.Pass()] if field == "body" and body else []))


class _Renamer(ast.NodeTransformer):
    """Number the variables a function assigns. Parameters keep their names: calls use them as keywords."""

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        declared = {
            name for n in ast.walk(function) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names
        }
        inner = {s.node for s in scopes_of(function)}
        taken = {a.arg for f in (function, *inner) for a in ast.walk(f.args) if isinstance(a, ast.arg)}
        self.names: dict[str, str] = {}
        for node in ast.walk(function):
            name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None
            if name is not None and name not in taken | declared and not name.startswith("$"):
                self.names.setdefault(name, f"${len(self.names)}")

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)


def _hash(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
