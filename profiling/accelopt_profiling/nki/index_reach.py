"""Tells how far the indices of a failed statement reach in the last iterations of the loops around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from accelopt_profiling.failure_site import FailureSite, NoValueError

#: Steps from an index to what it is computed from; names that are computed from themselves have no end.
_DEPTH = 16


def subscript_reach(site: FailureSite, node: ast.Subscript) -> list[int | None]:
    """Return the largest index of each dimension that ``node`` names; None where that cannot be told.

    Indices are taken to grow with the loops, as those of tiles do. ``arange``, ``ds`` and slices count as their last
    element.
    """
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if any(isinstance(part, ast.Constant) and part.value in (None, ...) for part in parts):
        return []
    reach = _Reach(site)
    return [reach.last(part) for part in parts]


class _Reach:
    def __init__(self, site: FailureSite) -> None:
        self._site = site
        self._loops = {
            loop.target.id: loop.iter
            for loop in site.parents
            if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name)
        }

    def last(self, node: ast.expr, depth: int = _DEPTH) -> int | None:
        """Return the value of an index in the last iterations, or of its last element."""
        if depth == 0:
            return None
        if isinstance(node, ast.Slice):
            stop = None if node.upper is None or node.step is not None else self.last(node.upper, depth - 1)
            return None if stop is None else stop - 1
        if isinstance(node, ast.Constant):
            return node.value if type(node.value) is int else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
            left, right = self.last(node.left, depth - 1), self.last(node.right, depth - 1)
            if left is None or right is None:
                return None
            return left + right if isinstance(node.op, ast.Add) else left * right
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        if isinstance(node, ast.Subscript) and _spreads(node.slice):
            return self.last(node.value, depth - 1)
        if isinstance(node, ast.Name) and node.id in self._loops:
            return self._call(self._loops[node.id], depth)
        if isinstance(node, ast.Name) and (assigned := list(self._assigned(node.id))):
            ends = [self.last(value, depth - 1) for value in assigned]
            return max((end for end in ends if end is not None), default=None) if None not in ends else None
        return self._number(node)

    def _call(self, node: ast.expr, depth: int) -> int | None:
        """Return the last value of a range, of ``arange`` or of ``ds``."""
        if not isinstance(node, ast.Call) or node.keywords or not node.args:
            return None
        name = ast.unparse(node.func).rsplit(".", 1)[-1]
        values = [self.last(argument, depth - 1) for argument in node.args]
        if any(value is None for value in values):
            return None
        numbers = [value for value in values if value is not None]
        if name in ("ds", "dslice") and len(numbers) == 2:
            return sum(numbers) - 1
        if name.endswith("range") and len(numbers) <= 3:
            elements = range(*numbers)
            return elements[-1] if elements else None
        return None

    def _assigned(self, name: str) -> Iterator[ast.expr]:
        """Yield what the loops around the statement, and the function of an ``arange``, assign to a name."""
        for around in self._site.parents:
            for statement in ast.walk(around):
                if isinstance(statement, ast.Assign):
                    yield from (
                        statement.value for t in statement.targets if isinstance(t, ast.Name) and t.id == name
                    )
            if isinstance(around, ast.FunctionDef):
                return

    def _number(self, node: ast.expr) -> int | None:
        try:
            value = self._site.value(node)
        except NoValueError:
            return None
        return value if type(value) is int else None


def _spreads(index: ast.expr) -> bool:
    """Tell whether an index only gives an ``arange`` more dimensions: ``[:, None]``."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        (isinstance(p, ast.Constant) and p.value is None)
        or (isinstance(p, ast.Slice) and p.lower is p.upper is p.step is None)
        for p in parts
    )
