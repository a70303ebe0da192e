"""Limits what a model may change: the kernel itself and the statements that launch it."""

from __future__ import annotations

import ast

from accelopt_agent.syntax.scopes import scopes_of
from accelopt_profiling.source_text import parse_python


def outside_changes(base_text: str, text: str, kernel: str) -> str | None:
    """Describe in one line where ``text`` differs from ``base_text`` outside the kernel and its launches; None if
    nowhere.

    Comments and layout outside may differ: they have no effect.

    Raises:
        SyntaxError: ``text`` does not parse.
    """
    before, after = _remainder(base_text, kernel), _remainder(text, kernel)
    if before is None or after is None:
        return f"the kernel {kernel} is gone"
    if before[1] != after[1]:
        return f"the name, the parameters or the place of {kernel} changed"
    return None if before[0] == after[0] else "code outside the kernel and its launch changed"


def _remainder(text: str, kernel: str) -> tuple[str, str] | None:
    """Return the file's syntax with the kernel's body and its launches blanked, and the kernel's
    signature."""
    tree = parse_python(text)
    scope = next((s for s in scopes_of(tree) if s.name == kernel), None)
    if scope is None:
        return None
    signature = f"{kernel}({ast.dump(scope.node.args)})"
    scope.node.body = [ast.Pass()]
    scope.node.decorator_list = []
    blanked = _Blank(scope.node.name).visit(tree)
    return ast.dump(blanked), signature


class _Blank(ast.NodeTransformer):
    """Blanks what a launch may set: its grid and its keyword arguments. Positional arguments stay."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        target = node.func.value if isinstance(node.func, ast.Subscript) else node.func
        if isinstance(target, ast.Name) and target.id == self._name:
            node.func = ast.Name(self._name, ast.Load())
            node.keywords = []
        return node
