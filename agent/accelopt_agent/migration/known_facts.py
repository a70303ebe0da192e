"""Looks up what the expressions of a kernel's text were when it ran."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accelopt_profiling.nki.tile_facts import ExpressionFact


class FactTable:
    """Facts by place in the text. An expression that did not run has none."""

    def __init__(self, facts: Iterable[ExpressionFact]) -> None:
        self._by_place = {(f.line, f.column, f.end_line, f.end_column): f for f in facts}

    def of(self, node: ast.AST) -> ExpressionFact | None:
        place = (
            getattr(node, "lineno", 0), getattr(node, "col_offset", 0),
            getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0),
        )  # fmt: skip
        return self._by_place.get(place)

    def any_in(self, node: ast.FunctionDef) -> bool:
        """Return True if something of a function ran on a core."""
        last = node.end_lineno or node.lineno
        return any(node.lineno <= line <= last for line, *_ in self._by_place)

    def tile(self, node: ast.AST) -> ExpressionFact | None:
        """Return the fact of an expression that was one tile."""
        fact = self.of(node)
        return fact if fact is not None and fact.kind == "tile" else None

    def shape(self, node: ast.AST) -> list[int]:
        """Return the shape of a tile, [] of anything else."""
        fact = self.tile(node)
        return fact.shapes[0] if fact is not None and fact.shapes else []

    def kind(self, node: ast.AST) -> str:
        fact = self.of(node)
        return "" if fact is None else fact.kind
