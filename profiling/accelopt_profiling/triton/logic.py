"""``and``, ``or`` and ``not`` in kernels: on tensors they work element by element, as in compiled code."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import triton.language as tl

_BOTH, _EITHER, _INVERTED = "__accelopt_and__", "__accelopt_or__", "__accelopt_not__"


class Operators(ast.NodeTransformer):
    """Turn the operators into calls; the parts of ``and`` and ``or`` stay unevaluated until it is their turn."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        name = _BOTH if isinstance(node.op, ast.And) else _EITHER
        parts: list[ast.expr] = [ast.copy_location(ast.Lambda(none, value), value) for value in node.values]
        return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), parts, []), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return ast.copy_location(ast.Call(ast.Name(_INVERTED, ast.Load()), [node.operand], []), node)


def _joined(decides: bool, combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Compile-time values whose truth ``decides`` end the expression; the tensors among the rest are combined."""

    def operator(*parts: Callable[[], Any]) -> Any:
        tensors, value = [], None
        for part in parts:
            value = part()
            if isinstance(value, tl.tensor):
                tensors.append(_truth(value))
            elif bool(value) is decides:
                return value
        while len(tensors) > 1:
            right = tensors.pop()
            tensors.append(combine(tensors.pop(), right))
        return tensors[0] if tensors else value

    return operator


def _inverted(value: Any) -> Any:
    return value == 0 if isinstance(value, tl.tensor) else not value


def _truth(value: Any) -> Any:
    return value if value.dtype == tl.int1 else value != 0


#: What a rewritten function finds the operators under.
OPERATORS: dict[str, Callable[..., Any]] = {
    _BOTH: _joined(False, lambda left, right: left & right),
    _EITHER: _joined(True, lambda left, right: left | right),
    _INVERTED: _inverted,
}
