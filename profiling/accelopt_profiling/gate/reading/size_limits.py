"""Find the numbers that a file compares sizes with: above and below them it may take another way."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping

from accelopt_profiling.gate.reading.names import ResolvedNames

#: Smaller numbers are ranks and counts of arguments; larger ones no size that anybody can check.
_LEAST, _MOST = 16, 1 << 40
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Mult: operator.mul, ast.Add: operator.add, ast.Sub: operator.sub, ast.FloorDiv: operator.floordiv,
}  # fmt: skip
_ORDER = (ast.Gt, ast.GtE, ast.Lt, ast.LtE)


def size_limits(names: ResolvedNames) -> Iterator[int]:
    """Yield the whole numbers that anything is compared with by order, in host code, heuristics and kernels, but for
    what only raises.
    """
    constants = _constants(names.tree)
    for node in ast.walk(names.tree):
        if not isinstance(node, ast.Compare) or not any(isinstance(op, _ORDER) for op in node.ops):
            continue
        parent = names.parents.get(node)
        if isinstance(parent, ast.Assert) or (isinstance(parent, ast.If) and _only_raises(parent)):
            continue
        values = [_value(side, constants) for side in (node.left, *node.comparators)]
        if None in values:  # the other side is what is looked at
            yield from (v for v in values if v is not None and _LEAST <= v <= _MOST)


def _only_raises(node: ast.If) -> bool:
    return not node.orelse and all(isinstance(s, ast.Raise) for s in node.body)


def _constants(tree: ast.Module) -> dict[str, int]:
    """Return the module's names of whole numbers, so far as they follow from the text."""
    found: dict[str, int] = {}
    for node in tree.body:
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        number = _value(value, found) if value is not None else None
        if isinstance(target, ast.Name) and number is not None:
            found[target.id] = number
    return found


def _value(node: ast.expr, constants: Mapping[str, int]) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.Call) and len(node.args) == 1 and ast.unparse(node.func).endswith("constexpr"):
        return _value(node.args[0], constants)
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _value(node.left, constants), _value(node.right, constants)
    if left is None or right is None:
        return None
    if isinstance(node.op, (ast.LShift, ast.Pow)):
        bits = right if isinstance(node.op, ast.LShift) else right * max(1, left.bit_length())
        if not 0 <= bits <= 64 or right < 0:
            return None
        return left << right if isinstance(node.op, ast.LShift) else int(left**right)
    operate = _OPERATORS.get(type(node.op))
    return None if operate is None or (right == 0 and operate is operator.floordiv) else operate(left, right)
