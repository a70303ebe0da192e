"""The same program in its plain spelling: what is put together at run time from constants is put together here.

Every reader sees the plain spelling, so that ``getattr(torch, "al" + "lclose")`` is read as ``torch.allclose``.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import TypeVar

#: Longer texts are not put together: no name is that long.
_LONGEST = 400
_CASES: dict[str, Callable[[str], str]] = {
    "lower": str.lower, "upper": str.upper, "strip": str.strip, "title": str.title, "swapcase": str.swapcase,
}  # fmt: skip
_Tree = TypeVar("_Tree", bound=ast.AST)


def plain_spelling(tree: _Tree) -> _Tree:
    """Return a copy of ``tree`` with constant texts put together and look-ups by a constant name written as
    attributes."""
    return _Plain(_constants(tree)).visit(copy.deepcopy(tree))  # type: ignore[no-any-return]


def _constants(tree: ast.AST) -> dict[str, str]:
    """Names that are assigned once in the file, and then a text."""
    stores: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stores.setdefault(node.id, []).append(None)
        elif isinstance(node, ast.arg):
            stores.setdefault(node.arg, []).append(None)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if stores.get(name) == [None]:
                stores[name] = [node.value]
    found: dict[str, str] = {}
    for _ in range(2):
        plain = _Plain(found)
        for name, values in stores.items():
            if len(values) == 1 and values[0] is not None:
                value = plain.visit(copy.deepcopy(values[0]))
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    found[name] = value.value
    return found


class _Plain(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        left, right = self._text(node.left), self._text(node.right)
        if isinstance(node.op, ast.Add) and left is not None and right is not None:
            return _constant(node, left + right)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        self.generic_visit(node)
        parts = [
            self._text(part.value if isinstance(part, ast.FormattedValue) else part) for part in node.values
        ]
        formatted = any(isinstance(part, ast.FormattedValue) and part.format_spec for part in node.values)
        if formatted or any(part is None for part in parts):
            return node
        return _constant(node, "".join(part for part in parts if part is not None))

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        text = self._text(node.value)
        if text is not None and isinstance(node.slice, ast.Slice):
            parts = (node.slice.lower, node.slice.upper, node.slice.step)
            start, stop, step = (_integer(part) for part in parts)
            if (
                not isinstance(start, str)
                and not isinstance(stop, str)
                and not isinstance(step, str)
                and step != 0
            ):
                return _constant(node, text[start:stop:step])
        key = self._text(node.slice)
        if key is None or not key.isidentifier() or not isinstance(node.ctx, ast.Load):
            return node
        held = _namespace(node.value)
        if held is not None:
            return ast.copy_location(ast.Attribute(held, key, ast.Load()), node)
        if isinstance(node.value, ast.Call) and _called(node.value) in ("globals", "locals"):
            return ast.copy_location(ast.Name(key, ast.Load()), node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        called = _called(node)
        if called == "getattr" and len(node.args) in (2, 3):
            name = self._text(node.args[1])
            if name is not None and name.isidentifier():
                return ast.copy_location(ast.Attribute(node.args[0], name, ast.Load()), node)
        if called == "chr" and len(node.args) == 1 and type(number := _integer(node.args[0])) is int:
            return _constant(node, chr(number) if 0 <= number < 0x110000 else "")
        if isinstance(node.func, ast.Call) and len(node.args) == 1 and not node.keywords:
            path = self._attrgetter(node.func)
            if path:
                value = node.args[0]
                for part in path.split("."):
                    value = ast.copy_location(ast.Attribute(value, part, ast.Load()), node)
                return value
        return self._method_of_text(node)

    def _attrgetter(self, node: ast.Call) -> str | None:
        if _called(node).split(".")[-1] != "attrgetter" or len(node.args) != 1:
            return None
        path = self._text(node.args[0])
        return path if path and all(part.isidentifier() for part in path.split(".")) else None

    def _method_of_text(self, node: ast.Call) -> ast.expr:
        if not isinstance(node.func, ast.Attribute):
            return node
        text, texts = self._text(node.func.value), [self._text(argument) for argument in node.args]
        method = node.func.attr
        if text is None:
            return node
        if method == "join" and len(node.args) == 1 and isinstance(node.args[0], (ast.List, ast.Tuple)):
            parts = [self._text(part) for part in node.args[0].elts]
            if all(part is not None for part in parts):
                return _constant(node, text.join(part for part in parts if part is not None))
        elif method in _CASES and not texts:
            return _constant(node, _CASES[method](text))
        elif method == "replace" and len(texts) == 2 and texts[0] is not None and texts[1] is not None:
            return _constant(node, text.replace(texts[0], texts[1]))
        elif method == "format" and not node.keywords and texts and None not in texts:
            try:
                return _constant(node, text.format(*texts))
            except (IndexError, KeyError, ValueError):
                return node
        return node

    def _text(self, node: ast.AST) -> str | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, int)):
            text = node.value if isinstance(node.value, str) else None
            return text if text is None or len(text) <= _LONGEST else None
        if isinstance(node, ast.Name):
            return self._names.get(node.id)
        if isinstance(node, ast.Call) and _called(node) == "str" and len(node.args) == 1:
            number = _integer(node.args[0])
            return str(number) if isinstance(number, int) else self._text(node.args[0])
        return None


def _constant(node: ast.expr, text: str) -> ast.expr:
    return ast.copy_location(ast.Constant(text), node)


def _called(node: ast.Call) -> str:
    """Return the name of what is called, with one module before it at most."""
    if isinstance(node.func, ast.Name):
        return node.func.id
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        return f"{node.func.value.id}.{node.func.attr}"
    return ""


def _namespace(node: ast.expr) -> ast.expr | None:
    """Return the object whose attributes ``node`` holds: ``vars(x)`` or ``x.__dict__``."""
    if isinstance(node, ast.Call) and _called(node) == "vars" and len(node.args) == 1:
        return node.args[0]
    return node.value if isinstance(node, ast.Attribute) and node.attr == "__dict__" else None


def _integer(node: ast.expr | None) -> int | str | None:
    """Return an integer constant; None for a missing bound; "" for anything else."""
    if node is None:
        return None
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(inner, ast.Constant) and type(inner.value) is int:
        return -inner.value if negative else inner.value
    return ""
