"""What follows from constants alone: numbers and texts, and the program with what is put together at run time in place.

Rules see this plain spelling, so that ``getattr(torch, "al" + "lclose")`` is read as ``torch.allclose``.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from accelopt_profiling.gate.reading.facts import Facts

Value = int | float | str
_Node = TypeVar("_Node", bound=ast.AST)
#: Longer texts are not put together, as no name is that long; nor are powers of more bits.
_LONGEST, _BITS = 400, 64
_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Mult: operator.mul, ast.Add: operator.add, ast.Sub: operator.sub, ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift, ast.Pow: operator.pow,
}  # fmt: skip


def constant(node: ast.AST | None, names: Mapping[str, Any]) -> Value | None:
    """Return the value of an expression of constants and ``names``.

    None where it does not follow from them.
    """
    value = _constant(node, names)
    return None if isinstance(value, str) and len(value) > _LONGEST else value


def _constant(node: ast.AST | None, names: Mapping[str, Any]) -> Value | None:
    match node:
        case ast.Constant(int() | float() | str() as literal) if not isinstance(literal, bool):
            return literal
        case ast.Name(name):
            return names.get(name)
        case ast.UnaryOp(ast.USub(), operand):
            value = constant(operand, names)
            return -value if isinstance(value, (int, float)) else None
        case ast.BinOp(left, op, right):
            return _combined(op, constant(left, names), constant(right, names))
        case ast.JoinedStr(parts):
            formatted = any(getattr(part, "format_spec", None) for part in parts)
            texts = [part.value if isinstance(part, ast.FormattedValue) else part for part in parts]
            return None if formatted else _joined("", texts, names)
        case ast.Subscript(text, ast.Slice(lower, upper, step)):
            whole = constant(text, names)
            bounds: list[Any] = [constant(b, names) for b in (lower, upper, step)]
            is_known = all(
                isinstance(b, int) or p is None for b, p in zip(bounds, (lower, upper, step), strict=True)
            )
            return whole[slice(*bounds)] if isinstance(whole, str) and is_known and bounds[2] != 0 else None
        case ast.Call(ast.Attribute(ast.expr() as text, "join"), [ast.List(parts) | ast.Tuple(parts)]):
            separator = constant(text, names)
            return _joined(separator, parts, names) if isinstance(separator, str) else None
        case ast.Call(keywords=[]):
            return _answer(node, [constant(argument, names) for argument in node.args], names)
    return None


def _combined(op: ast.operator, left: Value | None, right: Value | None) -> Value | None:
    if isinstance(left, str) and isinstance(right, str) and isinstance(op, ast.Add):
        return left + right
    if type(op) not in _OPERATORS or not isinstance(left, int) or not isinstance(right, int):
        return None
    bits = right * max(1, left.bit_length() if isinstance(op, ast.Pow) else 1)
    if (isinstance(op, (ast.LShift, ast.Pow)) and not 0 <= bits <= _BITS) or (
        isinstance(op, ast.FloorDiv) and right == 0
    ):
        return None
    return int(_OPERATORS[type(op)](left, right))


def _joined(text: str, parts: list[ast.expr], names: Mapping[str, Any]) -> str | None:
    texts = [constant(part, names) for part in parts]
    return text.join(map(str, texts)) if all(isinstance(t, str) for t in texts) else None


def _answer(node: ast.Call, arguments: list[Value | None], names: Mapping[str, Any]) -> Value | None:
    """Return what ``str``, ``chr``, ``constexpr`` or a method of a text answers."""
    text = constant(node.func.value, names) if isinstance(node.func, ast.Attribute) else None
    match name_of(node), arguments:
        case "str", [int() | str() as value]:
            return str(value)
        case "chr", [int() as number]:
            return chr(number) if 0 <= number < 0x110000 else ""
        case called, [value] if called.endswith("constexpr"):
            return value
    match text, getattr(node.func, "attr", ""), arguments:
        case str(), "lower" | "upper" | "strip" | "title" | "swapcase" as method, []:
            return str(getattr(text, method)())
        case str(), "replace", [str() as old, str() as new]:
            return text.replace(old, new)
        case str(), "format", [_, *_] if all(isinstance(a, str) for a in arguments) and ":" not in text:
            with suppress(LookupError, ValueError, AttributeError, TypeError):
                return text.format(*arguments)  # a width, after ":", may ask for any amount of memory
    return None


def name_of(node: ast.Call) -> str:
    """Return the name of what is called, with one module before it at most."""
    match node.func:
        case ast.Name(name):
            return name
        case ast.Attribute(ast.Name(module), name):
            return f"{module}.{name}"
    return ""


def plain_spelling(facts: Facts) -> Facts:
    """Return the facts about the file with constant texts put together, of names that are assigned once and hold a
    text too, and look-ups by a constant name written as attributes. The tree that it is given stays as it is."""
    texts: dict[str, str] = {}
    once = {name: facts.value_of(stores[0]) for name, stores in facts.stores.items() if len(stores) == 1}
    for _ in range(2):
        for name, value in once.items():
            if isinstance(text := constant(value, texts), str):
                texts[name] = text
    return facts.of(_Plain(texts).visit(facts.tree))


class _Plain:
    """Spells a tree plainly: nodes around a change are new, all others those of the tree."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def visit(self, node: _Node) -> _Node:
        changed: dict[str, Any] = {}
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.AST):
                if (plain := self.visit(value)) is not value:
                    changed[name] = plain
            elif isinstance(value, list):
                parts = [self.visit(part) if isinstance(part, ast.AST) else part for part in value]
                if any(part is not before for part, before in zip(parts, value, strict=True)):
                    changed[name] = parts
        if changed:
            node = ast.copy_location(type(node)(**{**dict(ast.iter_fields(node)), **changed}), node)
        return self._plain(node)  # type: ignore[return-value]  # an expression for an expression

    def _plain(self, node: ast.AST) -> ast.AST:
        match node:
            case ast.Subscript(ast.Call() as owner, key, ast.Load()) if name := self._name(key):
                called = name_of(owner)
                if called in ("globals", "locals"):
                    return ast.copy_location(ast.Name(name, ast.Load()), node)
                return (
                    _attribute(owner.args[0], name, node)
                    if called == "vars" and len(owner.args) == 1
                    else node
                )
            case ast.Subscript(ast.Attribute(owner, "__dict__"), key, ast.Load()) if name := self._name(key):
                return _attribute(owner, name, node)
            case ast.Call(ast.Name("getattr"), [owner, key] | [owner, key, _]) if name := self._name(key):
                return _attribute(owner, name, node)
            case ast.Call(ast.Call(args=[path]) as getter, [owner], []) if name_of(getter).endswith(
                "attrgetter"
            ):
                names = constant(path, self._texts)
                if isinstance(names, str) and all(map(str.isidentifier, names.split("."))):
                    return _attribute(owner, names, node)
            case ast.BinOp() | ast.JoinedStr() | ast.Call() | ast.Subscript():
                text = constant(node, self._texts)
                return ast.copy_location(ast.Constant(text), node) if isinstance(text, str) else node
        return node

    def _name(self, node: ast.expr) -> str | None:
        text = constant(node, self._texts)
        return text if isinstance(text, str) and text.isidentifier() else None


def _attribute(value: ast.expr, path: str, node: ast.AST) -> ast.expr:
    for name in path.split("."):
        value = ast.copy_location(ast.Attribute(value, name, ast.Load()), node)
    return value
