"""Lists the functions of a file and the lines of its statements, by syntax."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Scope:
    """A function.

    ``name`` is qualified, later ones of one name get ``#2``; lines ``start`` to ``end`` are 0-based, exclusive,
    decorators included; ``line`` is the 1-based line of ``def``.
    """

    name: str
    start: int
    end: int
    line: int
    node: ast.FunctionDef | ast.AsyncFunctionDef = field(compare=False, repr=False)


def scopes_of(tree: ast.AST) -> list[Scope]:
    """Return all functions of ``tree``, nested ones and methods included, in source order."""
    scopes: list[Scope] = []
    counts: dict[str, int] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                name = f"{prefix}{child.name}"
                counts[name] = counts.get(name, 0) + 1
                unique = name if counts[name] == 1 else f"{name}#{counts[name]}"
                first = min([d.lineno for d in child.decorator_list], default=child.lineno)
                scopes.append(
                    Scope(
                        unique, first - 1, end=child.end_lineno or child.lineno, line=child.lineno, node=child
                    )
                )
                inner = f"{name}."
            elif isinstance(child, ast.ClassDef):
                inner = f"{prefix}{child.name}."
            visit(child, inner)

    visit(tree, "")
    return scopes


def scope_named(scopes: Sequence[Scope], name: str) -> Scope | None:
    return next((s for s in scopes if s.name == name), None)


def statement_spans(tree: ast.AST) -> list[tuple[int, int]]:
    """Return the lines (0-based, exclusive end) of each simple statement, and of the header of each compound one."""
    spans: list[tuple[int, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            first = min([d.lineno for d in getattr(node, "decorator_list", [])], default=node.lineno)
            end = node.end_lineno or node.lineno
            if isinstance(body, list) and body:
                end = max(min(end, _first_line(body[0]) - 1), node.lineno)
            spans.append((first - 1, end))
    return spans


def _first_line(node: ast.stmt) -> int:
    return min([d.lineno for d in getattr(node, "decorator_list", [])], default=node.lineno)
