"""Recognise a model's own state: what its constructor makes and no call replaces, such as its weights."""

from __future__ import annotations

import ast

from accelopt_profiling.gate.reading.names import ResolvedNames


def of_the_model(names: ResolvedNames, node: ast.expr) -> bool:
    """Check whether ``node`` is ``self.a.b`` with an ``a`` that only ``__init__`` assigns to, or a name for such."""
    if isinstance(node, ast.Name):
        function = names.function_of(node)
        if function is None:
            return False
        values = [
            inner.value
            for inner in ast.walk(function)
            if isinstance(inner, ast.Assign) and any(_is_name(target, node.id) for target in inner.targets)
        ]
        bound = [
            n for n in ast.walk(function)
            if (isinstance(n, ast.Name) and n.id == node.id and isinstance(n.ctx, ast.Store))
            or (isinstance(n, ast.arg) and n.arg == node.id)
        ]  # fmt: skip
        return bool(values) and len(bound) == len(values) and all(_is_field(names, v) for v in values)
    return _is_field(names, node)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_field(names: ResolvedNames, node: ast.expr) -> bool:
    first = _field(node)
    if first is None:
        return False
    for other in ast.walk(names.tree):
        if isinstance(other, (ast.Attribute, ast.Subscript)) and isinstance(other.ctx, (ast.Store, ast.Del)):
            function = names.function_of(other)
            if _field(other) == first and (function is None or function.name != "__init__"):
                return False
    return True


def _field(node: ast.AST) -> str | None:
    """``a`` of ``self.a.b`` or ``self.a[0]``; None for anything else."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            return node.attr
        node = node.value
    return None
