"""Reads Beta 1's index expressions: an offset and open axes, from ``nl.arange`` and ``nl.mgrid`` and sums of them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace

from accelopt_agent.migration.known_facts import FactTable
from accelopt_profiling.problems.inference.arguments import NoSizeError, evaluate
from accelopt_profiling.source_text import parse_expression


@dataclass(frozen=True)
class OpenAxis:
    """``count`` positions along the axis ``axis`` of the result, counted from the last, -1; ``step`` apart."""

    axis: int
    count: str
    step: str = "1"


@dataclass(frozen=True)
class OpenIndex:
    """``offset`` plus the open axes: text that today's Python evaluates."""

    offset: str
    axes: tuple[OpenAxis, ...] = ()


def plus(a: str, b: str) -> str:
    """Add two texts."""
    if b in ("0", ""):
        return a
    if a in ("0", ""):
        return b
    if b.startswith("-"):
        inner = b[1:].strip()
        plain = inner[1:-1] if inner.startswith("(") and _is_multiplication(inner[1:-1]) else inner
        return _folded(f"{a} - {plain}") if atom(inner) or _is_multiplication(plain) else f"{a} + {b}"
    return _folded(f"{a} + {b}")


def negative(text: str) -> str:
    """Negate a text."""
    if text == "0":
        return "0"
    return times(text, "-1") if text.lstrip("-").isdigit() else f"-{_product(text)}"


def _is_multiplication(text: str) -> bool:
    try:
        node = parse_expression(text)
    except SyntaxError:
        return False
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)


def times(a: str, b: str) -> str:
    """Multiply two texts."""
    if a == "1":
        return b
    if b == "1":
        return a
    if "0" in (a, b):
        return "0"
    return _folded(f"{_product(a)} * {_product(b)}")


def _product(text: str) -> str:
    return text if atom(text) else f"({text})"


def atom(text: str) -> bool:
    """Return True for a text that needs no parentheses as an operand."""
    node = parse_expression(text)
    return not isinstance(node, (ast.BinOp, ast.IfExp, ast.Compare, ast.BoolOp))


def _folded(text: str) -> str:
    """Return a number for arithmetic on numbers alone."""
    try:
        return str(evaluate(text, {}))
    except NoSizeError:
        return text


class IndexReader:
    """Reads indices of one function.

    ``assigned`` are the expressions that its names stand for, ``language`` tells the dotted name of a callee below
    ``nl``, and ``text`` translates a number.
    """

    def __init__(
        self,
        assigned: dict[str, ast.expr],
        language: Callable[[ast.expr], str],
        text: Callable[[ast.expr], str],
    ) -> None:
        self._assigned, self._language, self._text = assigned, language, text

    def read(self, node: ast.expr, depth: int = 0) -> OpenIndex | None:
        """Return the index, None for what is none that can be read. A number has no open axes."""
        if depth > 12:
            return None
        if isinstance(node, ast.Name) and node.id in self._assigned:
            return self.read(self._assigned[node.id], depth + 1)
        if isinstance(node, ast.Call) and self._language(node.func) == "arange":
            bounds = [self._text(a) for a in node.args]
            if len(bounds) == 1:
                return OpenIndex("0", (OpenAxis(-1, bounds[0]),))
            if len(bounds) == 2:
                return OpenIndex(bounds[0], (OpenAxis(-1, plus(bounds[1], f"-{_product(bounds[0])}")),))
            return None
        if isinstance(node, ast.Subscript):
            return self._subscript(node, depth)
        if isinstance(node, ast.Attribute) and node.attr in ("p", "x", "y"):
            grid = self._grid(node.value)
            at = {"p": 0, "x": -1, "y": -2}[node.attr]
            return None if grid is None else self._of_grid(grid, at % len(grid))
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node, depth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.read(node.operand, depth + 1)
            if inner is not None and inner.axes:
                return _scaled(inner, "-1")
            return None if inner is None else OpenIndex(self._text(node))
        if self.opens(node):
            return None
        return OpenIndex(self._text(node))

    def opens(self, node: ast.expr) -> bool:
        """Return True if an index is somewhere in an expression that is not read."""
        return any(
            (isinstance(n, ast.Call) and self._language(n.func) == "arange")
            or (isinstance(n, ast.Name) and n.id in self._assigned)
            for n in ast.walk(node)
        )

    def _grid(self, node: ast.expr) -> list[ast.expr] | None:
        if isinstance(node, ast.Name) and node.id in self._assigned:
            node = self._assigned[node.id]
        if isinstance(node, ast.Subscript) and self._language(node.value) == "mgrid":
            return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return None

    def _of_grid(self, grid: list[ast.expr], at: int) -> OpenIndex | None:
        part = grid[at]
        if not isinstance(part, ast.Slice) or part.upper is None or part.step is not None:
            return None
        low = "0" if part.lower is None else self._text(part.lower)
        count = self._text(part.upper) if low == "0" else plus(self._text(part.upper), f"-{_product(low)}")
        return OpenIndex(low, (OpenAxis(at - len(grid), count),))

    def _subscript(self, node: ast.Subscript, depth: int) -> OpenIndex | None:
        grid = self._grid(node.value)
        if grid is not None:
            at = node.slice.value if isinstance(node.slice, ast.Constant) else None
            return self._of_grid(grid, at % len(grid)) if isinstance(at, int) else None
        inner = self.read(node.value, depth + 1)
        if inner is None or len(inner.axes) != 1:
            return None if inner is None or inner.axes or self.opens(node) else OpenIndex(self._text(node))
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        whole = [
            n
            for n, e in enumerate(entries)
            if isinstance(e, ast.Slice) and e.lower is None and e.upper is None and e.step is None
        ]
        rest = [e for e in entries if isinstance(e, ast.Constant) and e.value is None]
        if len(whole) != 1 or len(rest) != len(entries) - 1:
            return None
        return replace(inner, axes=(replace(inner.axes[0], axis=whole[0] - len(entries)),))

    def _arithmetic(self, node: ast.BinOp, depth: int) -> OpenIndex | None:
        left, right = self.read(node.left, depth + 1), self.read(node.right, depth + 1)
        if left is None or right is None:
            return None
        if not left.axes and not right.axes:
            return OpenIndex(self._text(node))
        if isinstance(node.op, ast.Sub):
            right = _scaled(right, "-1")
        if isinstance(node.op, (ast.Add, ast.Sub)):
            return OpenIndex(plus(left.offset, right.offset), left.axes + right.axes)
        if isinstance(node.op, ast.Mult) and not (left.axes and right.axes):
            index, factor = (left, right) if left.axes else (right, left)
            return _scaled(index, factor.offset)
        return None


def _scaled(index: OpenIndex, factor: str) -> OpenIndex:
    axes = tuple(replace(a, step=times(a.step, factor)) for a in index.axes)
    return OpenIndex(times(index.offset, factor), axes)


def assigned_indices(function: ast.FunctionDef, facts: FactTable) -> dict[str, ast.expr]:
    """Return the index expressions that names of the function stand for.

    A name with two different ones is left out.
    """
    expressions: dict[str, ast.expr] = {}
    twice: set[str] = set()
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        pairs: list[tuple[str, ast.expr]] = []
        if isinstance(target, ast.Name) and (facts.kind(value) == "index" or "mgrid" in ast.unparse(value)):
            pairs = [(target.id, value)]
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = [
                (t.id, v)
                for t, v in zip(target.elts, value.elts, strict=False)
                if isinstance(t, ast.Name) and facts.kind(v) == "index"
            ]
        elif isinstance(target, ast.Tuple) and "mgrid" in ast.unparse(value):
            for at, name in enumerate(target.elts):
                if isinstance(name, ast.Name):
                    part = ast.Subscript(value, ast.Constant(at), ast.Load())
                    pairs.append((name.id, ast.copy_location(part, value)))
        for variable, expression in pairs:
            if variable in expressions and ast.unparse(expressions[variable]) != ast.unparse(expression):
                twice.add(variable)
            expressions[variable] = expression
    return {name: value for name, value in expressions.items() if name not in twice}
