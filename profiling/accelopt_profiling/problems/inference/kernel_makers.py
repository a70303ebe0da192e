"""Recognizes functions that make a kernel for given sizes and return it, alone or first in a tuple.

The inputs of a problem are then those of such a function that have no default, followed by those of what it returns.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any


def made_function(maker: ast.FunctionDef) -> ast.FunctionDef | None:
    """Return the function inside of ``maker`` that it returns. None where it returns something else."""
    inner = {n.name: n for n in ast.walk(maker) if isinstance(n, ast.FunctionDef) and n is not maker}
    returned = [n.value for n in _own_nodes(maker) if isinstance(n, ast.Return)]
    firsts = [v.elts[0] if isinstance(v, ast.Tuple) and v.elts else v for v in returned]
    names = {v.id if isinstance(v, ast.Name) else "" for v in firsts}
    return inner.get(names.pop()) if len(names) == 1 else None


def makes_with(maker: ast.FunctionDef, count: int) -> bool:
    """Tell whether ``count`` inputs are those that ``maker`` requires and those of what it makes."""
    inner = made_function(maker)
    if inner is None or maker.args.vararg is not None:
        return False
    positional, rest = len(maker.args.posonlyargs) + len(maker.args.args), count - required_count(maker)
    most = len(inner.args.posonlyargs) + len(inner.args.args)
    return count > positional and most - len(inner.args.defaults) <= rest <= most


def required_count(function: ast.FunctionDef) -> int:
    """Return how many positional parameters have no default."""
    return len(function.args.posonlyargs) + len(function.args.args) - len(function.args.defaults)


def call_made(function: Callable[..., Any], positional: list[Any], keywords: dict[str, Any]) -> Any:
    """Call ``function``.

    With more inputs than it takes, call what it makes of those that it requires with the rest.
    """
    try:
        parameters = [
            p
            for p in inspect.signature(function).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)
        ]
    except (TypeError, ValueError):
        return function(*positional, **keywords)
    if len(positional) <= len(parameters) or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return function(*positional, **keywords)
    required = sum(p.default is p.empty for p in parameters)
    result = function(*positional[:required])
    kernel = result[0] if isinstance(result, tuple) and result else result
    if not callable(kernel):
        return function(*positional, **keywords)  # raises what Python says of too many arguments
    return kernel(*positional[required:], **keywords)


def _own_nodes(function: ast.FunctionDef) -> list[ast.AST]:
    """Return the statements of a function without those of functions inside of it."""
    nodes: list[ast.AST] = []
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
    return nodes
