"""Tells whether a rewrite stays inside one kernel and its launches, and whether it reaches them."""

from __future__ import annotations

import ast

from accelopt_agent.syntax.scopes import scopes_of
from accelopt_profiling.source_text import parse_python, syntax_of


def only_kernel_changed(base_text: str, text: str, kernel: str) -> bool:
    """Return whether the two texts differ in ``kernel`` and in grid and keywords of its launches alone, so that the
    time of everything else is what it was; comments and layout do not count.

    Raises:
        SyntaxError: one of the texts does not parse.
    """
    before, after = _remainder(base_text, kernel), _remainder(text, kernel)
    return before is not None and before == after


def kernel_changed(base_text: str, text: str, kernel: str) -> bool:
    """Return whether the kernel or one of its launches reads another way in ``text``.

    Raises:
        SyntaxError: one of the texts does not parse.
    """
    return _kernel_and_launches(base_text, kernel) != _kernel_and_launches(text, kernel)


def _kernel_and_launches(text: str, kernel: str) -> list[str]:
    """Return the syntax of the kernel and of the calls that launch it, in their order; nothing where it is gone."""
    tree = syntax_of(text)
    scope = next((s for s in scopes_of(tree) if s.name == kernel), None)
    if scope is None:
        return []
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _launches(n, scope.node.name)]
    return [ast.dump(node) for node in (scope.node, *calls)]


def _launches(call: ast.Call, name: str) -> bool:
    target = call.func.value if isinstance(call.func, ast.Subscript) else call.func
    return isinstance(target, ast.Name) and target.id == name


def _remainder(text: str, kernel: str) -> tuple[str, str] | None:
    """Return the file's syntax with the kernel's body and its launches blanked, and the kernel's signature; None where
    the kernel is gone."""
    tree = parse_python(text)
    scope = next((s for s in scopes_of(tree) if s.name == kernel), None)
    if scope is None:
        return None
    signature = ast.dump(scope.node.args)
    scope.node.body = [ast.Pass()]
    scope.node.decorator_list = []
    return ast.dump(_Blank(scope.node.name).visit(tree)), signature


class _Blank(ast.NodeTransformer):
    """Blanks what a launch may set: its grid and its keyword arguments. Positional arguments stay."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if _launches(node, self._name):
            node.func = ast.Name(self._name, ast.Load())
            node.keywords = []
        return node
