"""Translates Beta 1's masks into the number of positions that they leave of each axis."""

from __future__ import annotations

import ast
from collections.abc import Callable

from accelopt_agent.migration.known_facts import FactTable
from accelopt_agent.migration.open_index import IndexReader, negative, plus
from accelopt_agent.migration.spelling import UntranslatableError

_STRICT = {"Lt": True, "Gt": True, "LtE": False, "GtE": False}


class MaskTranslation:
    """Translates the masks of one function.

    ``named`` are those that it assigns to names; ``fresh`` makes a new name; statements that have to come first are put
    into ``before``.
    """

    def __init__(
        self,
        function: ast.FunctionDef,
        facts: FactTable,
        reader: IndexReader,
        fresh: Callable[[str], str],
        before: list[str],
    ) -> None:
        self._reader, self._fresh, self._before = reader, fresh, before
        self.named = {
            n.targets[0].id: n.value
            for n in ast.walk(function)
            if isinstance(n, ast.Assign)
            and isinstance(n.targets[0], ast.Name)
            and isinstance(n.value, (ast.Compare, ast.BoolOp, ast.BinOp))
            and (not isinstance(n.value, ast.BinOp) or isinstance(n.value.op, ast.BitAnd))
            and facts.tile(n.value) is None
            and facts.kind(n.value) not in ("index", "number")
            and reader.opens(n.value)
        }
        self._limits: dict[str, dict[int, str]] = {}
        self._cut_here: dict[str, dict[int, str]] = {}

    def begin_statement(self) -> None:
        """Forget what was computed before the last statement."""
        self._cut_here = {}

    def of(self, value: ast.expr) -> ast.expr | None:
        for keyword in getattr(value, "keywords", []):
            if keyword.arg == "mask" and not (
                isinstance(keyword.value, ast.Constant) and keyword.value.value is None
            ):
                mask: ast.expr = keyword.value
                return self.named.get(mask.id, mask) if isinstance(mask, ast.Name) else mask
        return None

    def clips(self, value: ast.expr) -> dict[int, str]:
        """Return what a call's mask leaves of each axis: the number of positions."""
        argument = next((k.value for k in getattr(value, "keywords", []) if k.arg == "mask"), None)
        if isinstance(argument, ast.Name) and argument.id in self._limits:
            return self._limits[argument.id]
        mask = self.of(value)
        if mask is None:
            return {}
        limits = self._cut_here.get(ast.unparse(mask))
        if limits is None:
            limits = {}
            for axis, limit in self._bounds(mask).items():
                limits[axis] = limit if limit.isidentifier() else self._fresh("left")
                if limits[axis] != limit:
                    self._before.append(f"{limits[axis]} = {limit}")
            self._cut_here[ast.unparse(mask)] = limits
        return limits

    def assignment(self, name: str, mask: ast.expr) -> list[str]:
        """Return the statements that replace a mask with the number of positions that it leaves of each axis."""
        bounds = self._bounds(mask)
        places = {axis: name if len(bounds) == 1 else self._fresh(name) for axis in bounds}
        self._limits[name] = places
        return [f"{places[axis]} = {limit}" for axis, limit in bounds.items()]

    def _bounds(self, mask: ast.expr) -> dict[int, str]:
        bounds: dict[int, str] = {}
        for part in (p for condition in _conjunction(mask) for p in self._parts(condition)):
            axis, limit = self._bound(part)
            bounds[axis] = f"min({bounds[axis]}, {limit})" if axis in bounds else limit
        return bounds

    def _parts(self, part: ast.expr) -> list[ast.expr]:
        """Return the comparisons behind a name."""
        if isinstance(part, ast.Name) and part.id in self.named:
            return [p for inner in _conjunction(self.named[part.id]) for p in self._parts(inner)]
        return [part]

    def _bound(self, part: ast.expr) -> tuple[int, str]:
        if not isinstance(part, ast.Compare) or len(part.ops) != 1:
            raise UntranslatableError("a mask that is not made of comparisons of indices")
        left, right = self._reader.read(part.left), self._reader.read(part.comparators[0])
        operator = type(part.ops[0]).__name__
        if left is None or right is None or len(left.axes) + len(right.axes) != 1 or operator not in _STRICT:
            raise UntranslatableError("a mask over more than one axis, or none")
        axis = (left.axes or right.axes)[0]
        below = operator in ("Lt", "LtE")
        rising = not axis.step.startswith("-")
        if (left.axes != () and below == rising) or (right.axes != () and below != rising):
            index, bound = (left, right) if left.axes else (right, left)
            if axis.step not in ("1", "-1"):
                raise UntranslatableError("a mask on an index with steps")
            difference = (
                plus(bound.offset, negative(index.offset))
                if rising
                else plus(index.offset, negative(bound.offset))
            )
            limit = difference if _STRICT[operator] else plus(difference, "1")
            return axis.axis, f"min({axis.count}, {limit})"
        raise UntranslatableError("a mask that cuts off the beginning of an axis")


def _conjunction(mask: ast.expr) -> list[ast.expr]:
    if isinstance(mask, ast.BinOp) and isinstance(mask.op, ast.BitAnd):
        return [*_conjunction(mask.left), *_conjunction(mask.right)]
    if isinstance(mask, ast.BoolOp) and isinstance(mask.op, ast.And):
        return [part for value in mask.values for part in _conjunction(value)]
    return [mask]
