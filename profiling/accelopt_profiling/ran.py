"""What of a kernel's text ran: launches, loops with their trips, the share of its statements.

Both dialects run a kernel's own Python, compiled once more with a call in front of each statement that notes its line.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class LoopCount:
    """A loop by its 1-based ``line``: the fewest and the most iterations that it ran for each time it was reached."""

    line: int
    least: int
    most: int


@dataclass(frozen=True)
class Ran:
    """``executed`` of a kernel's ``statements`` ran in ``launches`` launches, those of the functions of its file that
    it calls among them. ``loops`` are all of its loops; one that was never reached has no iterations."""

    launches: int = 0
    loops: tuple[LoopCount, ...] = ()
    executed: int = 0
    statements: int = 0

    @property
    def share(self) -> float | None:
        """The share of the statements that ran, 0..1. None where that is not known."""
        return self.executed / self.statements if self.statements else None


@dataclass
class LineRecord:
    """The lines of one file that ran, and the least and most trips of its loops, by the line of the loop."""

    lines: set[int] = field(default_factory=set)
    trips: dict[int, tuple[int, int]] = field(default_factory=dict)

    def loop(self, line: int, count: int) -> None:
        """Note that the loop on ``line`` was reached and went round ``count`` times."""
        least, most = self.trips.get(line, (count, count))
        self.trips[line] = min(least, count), max(most, count)

    def add(self, other: LineRecord) -> None:
        """Take over what another run noted."""
        self.lines |= other.lines
        for line, (least, most) in other.trips.items():
            self.loop(line, least)
            self.loop(line, most)


class RunRecorder:
    """Notes what runs, by file.

    A ``while`` loop is noted when it is reached and at each turn, a ``for`` loop with what it goes over.
    """

    def __init__(self) -> None:
        self._files: dict[str, LineRecord] = {}
        self._turns: dict[tuple[str, int], int] = {}

    def of(self, file: str) -> LineRecord:
        """Return the record of a file, which stays the same object."""
        return self._files.setdefault(file, LineRecord())

    def clear(self) -> None:
        """Forget what ran."""
        self._turns.clear()
        for record in self._files.values():
            record.lines.clear()
            record.trips.clear()

    def taken(self, file: str) -> LineRecord:
        """Return a copy of what ran of a file since the last ``clear``."""
        for (of, line), count in self._turns.items():
            self.of(of).loop(line, count)
        self._turns.clear()
        record = self.of(file)
        return LineRecord(set(record.lines), dict(record.trips))

    def hooks(self, file: str) -> dict[str, Callable[..., Any]]:
        """Return the functions that the code of a file calls, by the names that ``note_lines`` calls them."""
        record = self.of(file)

        def values(line: int, over: Any) -> Any:
            if hasattr(over, "__len__"):
                record.loop(line, len(over))
            return over

        def reached(line: int) -> None:
            if (count := self._turns.pop((file, line), None)) is not None:
                record.loop(line, count)
            self._turns[file, line] = 0

        def turn(line: int) -> None:
            self._turns[file, line] = self._turns.get((file, line), 0) + 1

        return {LINE: record.lines.add, VALUES: values, REACHED: reached, TURN: turn}


#: The names of the hooks.
LINE, VALUES, REACHED, TURN = (f"__accelopt_{what}__" for what in ("line", "values", "reached", "turn"))


class _Notes(ast.NodeTransformer):
    """Puts calls of the hooks into functions."""

    def __init__(self, hook: Callable[[str], ast.expr]) -> None:
        self._hook, self._inside = hook, False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        inside, self._inside = self._inside, True
        node.body = self._block(node.body)
        self._inside = inside
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not self._inside:
            return super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                setattr(node, name, self._block(block))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            part.body = self._block(part.body)
        return node

    def _block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        block: list[ast.stmt] = []
        for at, statement in enumerate(statements):
            if not (at == 0 and _is_text(statement)):
                block.append(self._call(LINE, statement))
            if isinstance(statement, ast.While):
                block.append(self._call(REACHED, statement))
            block.append(self.visit(statement))
            if isinstance(statement, ast.While):
                statement.body.insert(0, self._call(TURN, statement))
            elif isinstance(statement, ast.For):
                line = ast.Constant(statement.lineno)
                call = ast.Call(self._hook(VALUES), [line, statement.iter], [])
                statement.iter = ast.fix_missing_locations(ast.copy_location(call, statement.iter))
        return block

    def _call(self, hook: str, at: ast.stmt) -> ast.stmt:
        call = ast.Expr(ast.Call(self._hook(hook), [ast.Constant(at.lineno)], []))
        call.lineno = call.end_lineno = at.lineno
        call.col_offset = call.end_col_offset = at.col_offset
        return ast.fix_missing_locations(call)


def note_lines(tree: ast.Module, hook: Callable[[str], ast.expr]) -> None:
    """Put into the functions of ``tree`` the calls that note what runs.

    ``hook`` gives the expression of a hook by its name.
    """
    _Notes(hook).visit(tree)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


# Reading a record


def reachable(tree: ast.Module, line: int) -> list[ast.FunctionDef]:
    """Return the function whose ``def`` is on ``line``, and those of its file that it calls by name; none where no
    function is there."""
    every = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    by_name = {f.name: f for f in every}
    functions = [f for f in every if f.lineno == line]
    for function in functions:
        for node in ast.walk(function):
            callee = by_name.get(node.id) if isinstance(node, ast.Name) else None
            if callee is not None and callee not in functions:
                functions.append(callee)
    return functions


def statements_of(function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """Yield the statements of a function in order, without texts."""
    for node in ast.walk(function):
        if isinstance(node, ast.stmt) and node is not function and not _is_text(node):
            yield node


def dependents(
    function: ast.FunctionDef, names: Collection[str], depends: Callable[[ast.expr, set[str]], bool]
) -> set[str]:
    """Return ``names`` and those that a function gives, step by step, to what ``depends`` on any of them."""
    result, count = set(names), -1
    while len(result) > count:
        count = len(result)
        for statement in statements_of(function):
            value = statement.iter if isinstance(statement, ast.For) else getattr(statement, "value", None)
            targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
            if isinstance(value, ast.expr) and depends(value, result):
                result |= {n.id for t in targets if t for n in ast.walk(t) if isinstance(n, ast.Name)}
    return result


def ran(functions: list[ast.FunctionDef], launches: int, record: LineRecord) -> Ran:
    """Return what ran of a kernel's ``functions``, as ``reachable`` gives them."""
    lines = {s.lineno for function in functions for s in statements_of(function)}
    loops = {s.lineno for f in functions for s in statements_of(f) if isinstance(s, (ast.For, ast.While))}
    if not record.lines:
        return Ran(launches)
    trips = tuple(LoopCount(line, *record.trips.get(line, (0, 0))) for line in sorted(loops))
    return Ran(launches, trips, len(lines & record.lines), len(lines))
