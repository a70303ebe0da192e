"""Evaluates the formulas of data files: sums, products and whole quotients, such as ``2*M*N*K + M*N``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def evaluate(formula: str, values: Mapping[str, int]) -> int:
    """Return the value of ``formula`` for ``values``.

    Raises:
        ValueError: it is no such formula, or it names a value that is not there.
    """
    try:
        return _value(ast.parse(formula, mode="eval").body, values)
    except (SyntaxError, ZeroDivisionError, RecursionError) as error:
        raise ValueError(f"{formula!r} cannot be computed: {error}") from None
    except KeyError as error:
        raise ValueError(
            f"{formula!r} needs {error.args[0]}, which is not among {', '.join(values)}"
        ) from None


def _value(node: ast.expr, values: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left, values), _value(node.right, values))
    raise ValueError(f"{ast.unparse(node)!r} is no sum, product or whole quotient of values")
