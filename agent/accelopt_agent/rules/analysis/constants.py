"""Evaluates expressions in kernel source that do not depend on any argument."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

import libcst as cst

from accelopt_agent.rules.analysis.data_flow import DataFlow
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_profiling.source_text import parse_expression

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}

#: Hardware limits that kernels name instead of writing the number (NKI ``nl.tile_size``, all core generations).
_LIMITS = {"pmax": 128, "gemm_stationary_fmax": 128, "gemm_moving_fmax": 512, "psum_fmax": 512}


def number(
    flow: DataFlow, node: cst.BaseExpression | None, values: Mapping[str, int] | None = None
) -> float | int | None:
    """Return the value of ``node`` if it is a constant: a literal, arithmetic on constants,
    ``np.float32(...)`` or ``np.dtype(...).type(...)`` of one, an ``nl.tile_size`` limit, or a variable bound
    once to such.

    ``values`` are taken as known, for example a loop variable's.
    """
    tree = None if node is None else _parse(flow, node)
    return None if tree is None else _evaluate(flow, tree, values or {}, depth=0)


def number_of_text(flow: DataFlow, text: str) -> float | int | None:
    """Return ``number`` of an expression given as text."""
    try:
        tree = parse_expression(text)
    except SyntaxError:
        return None
    return _evaluate(flow, tree, {}, depth=0)


def factor(code: str) -> str:
    """Return ``code`` as a factor of a product or an operand of a remainder, in parentheses where it needs them."""
    return code if code.isidentifier() or code.isdigit() else f"({code})"


def _parse(flow: DataFlow, node: cst.BaseExpression) -> ast.expr | None:
    try:
        return parse_expression(flow.source.code(node))
    except SyntaxError:
        return None


def _evaluate(flow: DataFlow, node: ast.expr, values: Mapping[str, int], depth: int) -> float | int | None:
    if isinstance(node, ast.Constant):
        return (
            node.value if isinstance(node.value, (int, float)) and not isinstance(node.value, bool) else None
        )
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inside = _evaluate(flow, node.operand, values, depth)
        return None if inside is None else -inside
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _evaluate(flow, node.left, values, depth), _evaluate(flow, node.right, values, depth)
        if left is None or right is None or (isinstance(node.op, ast.Pow) and abs(right) > 64):
            return None
        try:
            return _OPERATORS[type(node.op)](left, right)
        except (ArithmeticError, ValueError):
            return None
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        return _evaluate(flow, node.args[0], values, depth) if _is_cast(node.func) else None
    if isinstance(node, ast.Attribute) and node.attr in _LIMITS and "tile_size" in ast.dump(node.value):
        return _LIMITS[node.attr]
    if isinstance(node, ast.Name) and depth < 8:
        return values[node.id] if node.id in values else _constant_variable(flow, node.id, depth)
    return None


def _is_cast(function: ast.expr) -> bool:
    if (
        isinstance(function, ast.Attribute)
        and function.attr == "type"
        and isinstance(function.value, ast.Call)
    ):
        return True  # np.dtype(np.float32).type(...)
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("float", "int", "float32", "par_dim")


def _constant_variable(flow: DataFlow, name: str, depth: int) -> float | int | None:
    if not flow.writing(name):
        value = flow.source.constants.get(name)
        return None if value is None or name in flow.parameters else _evaluate(flow, value, {}, depth + 1)
    bindings = flow.binding(name)
    writers = [s for s in flow.writing(name) if s.simple]
    if len(bindings) != 1 or writers != bindings or bindings[0].loops:
        return None
    bound = _bound_value(bindings[0], name)
    tree = None if bound is None else _parse(flow, bound)
    return None if tree is None else _evaluate(flow, tree, {}, depth + 1)


def _bound_value(statement: Statement, name: str) -> cst.BaseExpression | None:
    """Return the value that the assignment binds to ``name``: its right side, or the matching element of a tuple."""
    target, value = statement.bound, statement.value
    if not isinstance(target, cst.Tuple):
        return value
    if not isinstance(value, cst.Tuple) or len(target.elements) != len(value.elements):
        return None
    pairs = zip(target.elements, value.elements, strict=True)
    return next((v.value for t, v in pairs if isinstance(t.value, cst.Name) and t.value.value == name), None)
