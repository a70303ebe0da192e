"""Shapes that are singled out: host code that treats some sizes otherwise, without saying that it cannot."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from accelopt_profiling.gate.reading.finding import StaticFinding
from accelopt_profiling.gate.reading.names import Names

_SIZES = frozenset(["shape", "size", "numel", "nelement", "ndim", "stride"])


def special_shapes(names: Names) -> Iterator[StaticFinding]:
    """Branches on sizes against numbers of which one returns, and sizes capped by a number.

    None of it is certain: it matters where the candidate turns out wrong at another shape.
    """
    sizes = _names_of_sizes(names)
    for node in ast.walk(names.tree):
        if names.in_kernel(node):
            continue
        if isinstance(node, ast.If) and _compares(node.test, sizes) and not _refuses(node):
            returns = any(isinstance(s, ast.Return) for s in [*node.body, *node.orelse])
            if returns:
                yield StaticFinding(
                    "special-shape", node.lineno, "It treats some sizes in a way of their own."
                )
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "min":
            capped = any(_is_size(a, sizes) for a in node.args)
            if capped and any(isinstance(a, ast.Constant) for a in node.args):
                yield StaticFinding("special-shape", node.lineno, "It caps a size with a number.")


def _names_of_sizes(names: Names) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(names.tree):
        if isinstance(node, ast.Assign) and _is_size(node.value, found):
            for target in node.targets:
                found |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    return found


def _is_size(node: ast.AST, sizes: set[str]) -> bool:
    return any(
        (isinstance(n, ast.Attribute) and n.attr in _SIZES) or (isinstance(n, ast.Name) and n.id in sizes)
        for n in ast.walk(node)
    )


def _compares(test: ast.expr, sizes: set[str]) -> bool:
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and _is_size(node, sizes):
            numbers = [n for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, int)]
            if any(n.value > 1 for n in numbers if isinstance(n.value, int)):
                return True
    return False


def _refuses(node: ast.If) -> bool:
    return any(isinstance(s, ast.Raise) for s in node.body)
