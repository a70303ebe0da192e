"""Keep the variables that a rewrite introduces apart from the names of the module."""

from __future__ import annotations

import ast
import itertools

from accelopt_agent.syntax.lines import split_lines
from accelopt_agent.syntax.module_parts import read_parts
from accelopt_agent.syntax.scopes import scopes_of
from accelopt_profiling.source_text import by_text, syntax_of


def without_shadowing(before: str, after: str) -> str:
    """Return ``after`` with another name for each variable that a function has there only, and the module of ``before``
    as well. A parameter keeps its name, since calls use it.

    Raises:
        SyntaxError: a text does not parse.
    """
    module, known = read_parts(before).bound, _names_by_function(before)
    places: set[tuple[int, int, str, str]] = set()
    for scope in scopes_of(syntax_of(after)):
        nodes = [n for n in ast.walk(scope.node) if isinstance(n, ast.Name)]
        stored = {n.id for n in nodes if isinstance(n.ctx, ast.Store)}
        for name in (stored & module) - known.get(scope.name, set()):
            names = module.union(*_names_by_function(after).values())
            new = next(n for k in itertools.count(2) if (n := f"{name}_{k}") not in names)
            places |= {(n.lineno, n.col_offset, name, new) for n in nodes if n.id == name}
    if not places:
        return after
    lines = split_lines(after)
    bodies = [body.encode() for body in lines.texts]
    for line, column, name, new in sorted(places, reverse=True):
        body, end = bodies[line - 1], column + len(name.encode())
        if body[column:end] == name.encode():
            bodies[line - 1] = body[:column] + new.encode() + body[end:]
    return "".join(body.decode() + end for body, end in zip(bodies, lines.ends, strict=True))


@by_text
def _names_by_function(text: str) -> dict[str, set[str]]:
    """Return the names and parameters that each function uses."""
    return {
        scope.name: {n.id if isinstance(n, ast.Name) else n.arg for n in ast.walk(scope.node)
                     if isinstance(n, (ast.Name, ast.arg))}
        for scope in scopes_of(syntax_of(text))
    }  # fmt: skip
