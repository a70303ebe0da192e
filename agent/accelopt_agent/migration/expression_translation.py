"""Translates expressions of Beta 1 into today's dialect: operands, operators and calls."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod

from accelopt_agent.migration.known_facts import FactTable
from accelopt_agent.migration.mask_translation import MaskTranslation
from accelopt_agent.migration.open_index import IndexReader, assigned_indices, atom
from accelopt_agent.migration.spelling import (
    ENGINES,
    INSTRUCTIONS,
    LOOPS,
    OPERATORS,
    ModuleNames,
    UntranslatableError,
)
from accelopt_agent.migration.view_translation import TensorView, ViewTranslation
from accelopt_profiling.source_text import parse_expression


class ExpressionTranslation(ABC):
    """Translates the expressions of one function.

    What has to come before the statement is put into ``before``.
    """

    def __init__(self, function: ast.FunctionDef, facts: FactTable, names: ModuleNames) -> None:
        self.facts, self.names = facts, names
        self._taken = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
        self._before: list[str] = []
        self.reader = IndexReader(
            assigned_indices(function, facts), lambda n: names.below(n, "language"), self.value
        )
        self.masks = MaskTranslation(function, facts, self.reader, self._fresh, self._before)
        self.views = ViewTranslation(facts, names, self.reader, self.value)
        self.blocks: dict[str, int] = {}

    def _to_sbuf(self, node: ast.expr, clips: dict[int, str]) -> str:
        """Return a source of DMA: what lies in PSUM goes through SBUF."""
        fact = self.facts.tile(node)
        text = self._operand(node, clips)
        return f"{self._nl()}.copy({text})" if fact is not None and fact.memory == "psum" else text

    def _operand(self, node: ast.expr, clips: dict[int, str]) -> str:
        shape = self.facts.shape(node)
        if isinstance(node, ast.Subscript) and self._is_tensor(node.value):
            return self.view(node, clips).text
        text = self.value(node)
        return self._cut(text, shape, clips) if clips and shape else text

    def _cut(self, text: str, shape: list[int], clips: dict[int, str]) -> str:
        """Return a whole tile cut to what a mask leaves."""
        entries = [":"] * len(shape)
        for axis, limit in clips.items():
            if -axis <= len(shape) and shape[axis] > 1:
                entries[axis] = f"0:{limit}"
        return text if all(e == ":" for e in entries) else f"{text}[{', '.join(entries)}]"

    def view(self, node: ast.Subscript, clips: dict[int, str] | None = None) -> TensorView:
        """Translate ``tensor[indices]``: block dimensions to a list's, open axes to slices.

        Raises:
            UntranslatableError: the indices are no slices.
        """
        base = self.value(node.value)
        entries = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(node.value, ast.Name) and self._is_grid_name(entries):
            entries = self._grid_entries(entries[0])
        blocks = self.blocks.get(node.value.id, 0) if isinstance(node.value, ast.Name) else 0
        for entry in entries[:blocks]:
            if isinstance(entry, ast.Slice) or (index := self.reader.read(entry)) is None or index.axes:
                raise UntranslatableError("a block dimension is indexed by more than a number")
            base = f"{base}[{index.offset}]"
        entries = entries[blocks:]
        if not entries or all(isinstance(e, ast.Constant) and e.value is Ellipsis for e in entries):
            shape = self.facts.shape(node)
            return TensorView(self._cut(base, shape, clips) if clips and shape else base)
        owner = self.facts.of(node.value)
        sizes = owner.shapes[0][blocks:] if owner is not None and owner.shapes else []
        return self.views.indexed(base, entries, sizes, self.facts.shape(node), clips)

    def _is_grid_name(self, entries: list[ast.expr]) -> bool:
        return len(entries) == 1 and self._is_grid(entries[0])

    def _is_grid(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Subscript) and self.names.below(node.value, "language") == "mgrid"

    def _grid_entries(self, grid: ast.expr) -> list[ast.expr]:
        assert isinstance(grid, ast.Subscript)
        return list(grid.slice.elts) if isinstance(grid.slice, ast.Tuple) else [grid.slice]

    def _is_tensor(self, node: ast.expr) -> bool:
        return self.facts.kind(node) in ("tile", "blocks") or (
            isinstance(node, ast.Name) and node.id in self.blocks
        )

    def value(self, node: ast.expr) -> str:
        """Translate an expression, and put what has to come first before the statement."""
        if isinstance(node, ast.Subscript) and self._is_tensor(node.value):
            return self.view(node).text
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BinOp) and self.facts.tile(node):
            return self._operator(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and self.facts.tile(node):
            return f"{self._nl()}.multiply({self.value(node.operand)}, -1.0)"
        if isinstance(node, ast.Compare) and self.facts.tile(node.left) and len(node.ops) == 1:
            name = OPERATORS.get(type(node.ops[0]))
            if name:
                return f"{self._nl()}.{name}({self.value(node.left)}, {self.value(node.comparators[0])})"
        if isinstance(node, (ast.Tuple, ast.List)):
            inner = ", ".join(self.value(e) for e in node.elts)
            comma = "," if len(node.elts) == 1 and isinstance(node, ast.Tuple) else ""
            return f"({inner}{comma})" if isinstance(node, ast.Tuple) else f"[{inner}]"
        return self._plain(node)

    def _plain(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            engine = self.names.below(node, "isa")
            if engine in ENGINES:
                return f"{self._nisa()}.engine.{ENGINES[engine]}"
            return f"{self.value(node.value)}.{node.attr}"
        if isinstance(node, ast.BinOp):
            left, right = self.value(node.left), self.value(node.right)
            if (left, right) == (ast.unparse(node.left), ast.unparse(node.right)):
                return ast.unparse(node)
            copy = ast.BinOp(parse_expression(left), node.op, parse_expression(right))
            return ast.unparse(ast.fix_missing_locations(copy))
        return ast.unparse(node)

    def _operator(self, node: ast.BinOp) -> str:
        left, right = self.value(node.left), self.value(node.right)
        name = OPERATORS.get(type(node.op))
        if name is not None:
            return f"{self._nl()}.{name}({left}, {right})"
        if isinstance(node.op, ast.Div):
            return self._quotient(left, right, self.facts.tile(node.right) is not None)
        raise UntranslatableError(f"the operator {type(node.op).__name__} on tiles")

    def _quotient(self, left: str, right: str, by_tile: bool) -> str:
        nl = self._nl()
        if by_tile:
            return f"{nl}.multiply({left}, {nl}.reciprocal({right}))"
        return f"{nl}.multiply({left}, 1.0 / {right if atom(right) else f'({right})'})"

    def _call(self, call: ast.Call) -> str:
        language, instruction = self.names.below(call.func, "language"), self.names.below(call.func, "isa")
        if (size := self._par_dim(call)) is not None:
            return self.value(size)
        if instruction in INSTRUCTIONS or (language == "matmul" and self.facts.tile(call)):
            name = self._fresh("result")
            self._before += self.written_to(name, call)
            return name
        if language and self.masks.of(call) is not None:
            if self.facts.tile(call) is None:
                raise UntranslatableError("a masked call that did not run")
            name = self._fresh("result")
            self._before += self.written_to(name, call)
            return name
        if language in LOOPS:
            return f"range({', '.join(self.value(a) for a in call.args)})"
        if language == "loop_reduce":
            raise UntranslatableError("nl.loop_reduce that is not assigned to a tile")
        if language == "divide":
            first, second = call.args[:2]
            return self._quotient(self.value(first), self.value(second), self.facts.tile(second) is not None)
        if (
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "broadcast_to"
            and self.facts.tile(call.func.value)
        ):
            shape = [*call.args, *(k.value for k in call.keywords if k.arg == "shape")]
            sizes = (
                self.value(shape[0]) if len(shape) == 1 else f"({', '.join(self.value(s) for s in shape)})"
            )
            return f"{self._nl()}.broadcast_to({self.value(call.func.value)}, {sizes})"
        return self._sent(call, {})

    def _sent(self, call: ast.Call, clips: dict[int, str]) -> str:
        """Return a call of a function of ``nl``, or of anything else, with its operands translated and cut."""
        keywords = [
            k
            for k in call.keywords
            if not (k.arg == "mask" and self.names.dotted(call.func))
            and not (k.arg == "dtype" and ast.unparse(k.value) == "None")
        ]
        sent = [self._operand(a, clips) for a in call.args]
        sent += [
            f"{k.arg}={self._operand(k.value, clips)}" if k.arg else f"**{self.value(k.value)}"
            for k in keywords
        ]
        return f"{self.value(call.func)}({', '.join(sent)})"

    def _nl(self) -> str:
        return self.names.module("neuronxcc.nki.language", "nl")

    def _nisa(self) -> str:
        return self.names.module("neuronxcc.nki.isa", "nisa")

    def _fresh(self, name: str) -> str:
        number = 1
        while f"{name}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{name}_{number}")
        return f"{name}_{number}"

    def _par_dim(self, node: ast.expr) -> ast.expr | None:
        if isinstance(node, ast.Call) and self.names.below(node.func, "language") == "par_dim":
            return node.args[0]
        return None

    @abstractmethod
    def written_to(self, name: str, call: ast.Call) -> list[str]:
        """Return the statements that make a tile ``name`` and let ``call`` write to it."""
