"""Translates expressions of Beta 1 into today's dialect.

A mask becomes the number of positions that it leaves of each axis; the indices of a tensor become slices, or ``.ap``
where they are no slices; operands, operators and calls are spelled anew.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

from accelopt_agent.migration.known_facts import FactTable
from accelopt_agent.migration.open_index import (
    IndexReader,
    OpenIndex,
    assigned_indices,
    atom,
    negative,
    plus,
    times,
)
from accelopt_agent.migration.spelling import (
    ENGINES,
    INSTRUCTIONS,
    LOOPS,
    OPERATORS,
    ModuleNames,
    UntranslatableError,
    named_arguments,
)
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
        self.masks = MaskTranslation(
            function, facts, reader=self.reader, fresh=self._fresh, before=self._before
        )
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
        """Translate an expression; what comes first stands before the statement."""
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
        """Return a call with its operands translated and cut."""
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
        """Return the number of positions of each axis that a mask leaves."""
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
        """Return the statements that replace a mask with numbers of positions."""
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


@dataclass
class TensorView:
    """A translated operand: its text, and those of its known dimensions."""

    text: str
    counts: list[str] = field(default_factory=list)


class ViewTranslation:
    """Translates the indices of one function's tensors.

    ``number`` translates an expression that is a number.
    """

    def __init__(
        self, facts: FactTable, names: ModuleNames, reader: IndexReader, number: Callable[[ast.expr], str]
    ) -> None:
        self._facts, self._names, self._reader, self._number = facts, names, reader, number

    def indexed(
        self,
        base: str,
        entries: list[ast.expr],
        sizes: list[int],
        shape: list[int],
        clips: dict[int, str] | None,
    ) -> TensorView:
        """Translate ``base[entries]``.

        ``sizes`` are those of the tensor, ``shape`` that of the result.

        Raises:
            UntranslatableError: the indices are neither slices nor affine.
        """
        try:
            return self._sliced(
                base, entries, shape=shape, clips=clips or {}, whole=max(0, len(sizes) - len(entries))
            )
        except UntranslatableError:
            text = None if clips else self._pattern_view(base, entries, sizes, len(shape))
            if text is None:
                raise
            return TensorView(text)

    def _pattern_view(self, base: str, entries: list[ast.expr], sizes: list[int], rank: int) -> str | None:
        """Return ``base.ap(...)`` for indices that are no slices.

        The strides are those of the size that ran. None where an index is not affine.
        """
        if len(entries) != len(sizes):
            return None
        read = [
            None if isinstance(entry, ast.Slice) or self._facts.tile(entry) else self._reader.read(entry)
            for entry in entries
        ]
        rank = max([rank, *(-axis.axis for index in read if index is not None for axis in index.axes)])
        steps = dict.fromkeys(range(-rank, 0), "0")
        counts = dict.fromkeys(range(-rank, 0), "1")
        offset = "0"
        for at, index in enumerate(read):
            stride = str(prod(sizes[at + 1 :]))
            if index is None:
                return None
            offset = plus(offset, times(index.offset, stride))
            for axis in index.axes:
                steps[axis.axis] = plus(steps[axis.axis], times(axis.step, stride))
                counts[axis.axis] = axis.count
        pattern = ", ".join(f"[{steps[a]}, {counts[a]}]" for a in range(-rank, 0))
        return f"{base}.ap(pattern=[{pattern}], offset={offset})"

    def _sliced(
        self, base: str, entries: list[ast.expr], shape: list[int], clips: dict[int, str], whole: int
    ) -> TensorView:
        """``whole`` dimensions of the tensor come after the indexed ones."""
        texts: list[str] = []
        order: list[int] = []
        counts: list[str] = []
        numbers: list[int] = []
        for node in entries:
            entry = self._plain_slice(node)
            if isinstance(entry, ast.Slice):
                axis = len(counts) - len(shape)
                low = "0" if entry.lower is None else self._number(entry.lower)
                if axis in clips and entry.step is None:
                    texts.append(f"{low}:{plus(low, clips[axis])}")
                else:
                    texts.append(self._slice(entry))
                counts.append("")
                order.append(axis)
                continue
            if isinstance(entry, ast.Constant) and entry.value in (None, Ellipsis):
                raise UntranslatableError("None or ... among the indices of a tensor")
            if self._facts.tile(entry) is not None:
                raise UntranslatableError("a tile as an index; today: .ap(vector_offset=...) in a dma_copy")
            index = self._reader.read(entry)
            if index is None:
                raise UntranslatableError(f"the index {ast.unparse(entry)} is not affine")
            text, axes, count = self._one(index, clips)
            if not axes:
                numbers.append(len(texts))
            else:
                counts.append(count)
            texts.append(text)
            order += axes
        if order != sorted(order) or len({*order}) != len(order):
            raise UntranslatableError(
                "the axes of the indices are in another order than the dimensions; today: .permute or .ap"
            )
        self._keep_rank(texts, numbers, len(shape), len(order) + whole)
        return TensorView(f"{base}[{', '.join(texts)}]", counts if len(counts) == len(shape) else [])

    def _plain_slice(self, entry: ast.expr) -> ast.expr:
        """Return ``start:start + size`` for ``nl.ds(start, size)``, other entries as they are."""
        if not isinstance(entry, ast.Call) or self._names.below(entry.func, "language") not in (
            "ds",
            "dslice",
        ):
            return entry
        start, size = (named_arguments(entry, ["start", "size"])[name] for name in ("start", "size"))
        low = self._number(start)
        return ast.Slice(parse_expression(low), parse_expression(plus(low, self._number(size))))

    def _one(self, index: OpenIndex, clips: dict[int, str]) -> tuple[str, list[int], str]:
        """Return one dimension's text, the result's axes in it, and the count."""
        if not index.axes:
            return index.offset, [], ""
        axes = sorted(index.axes, key=lambda a: a.axis)
        inner = axes[-1]
        count, step = inner.count, inner.step
        for outer in reversed(axes[:-1]):
            if step != "1" or outer.step != count:
                raise UntranslatableError("two open axes in one dimension that are not one run; today: .ap")
            count = times(outer.count, count)
            if outer.axis in clips:
                raise UntranslatableError("a mask on one of two axes in one dimension")
        if len(axes) == 1:
            count = clips.get(inner.axis, count)
        if step.startswith("-"):
            raise UntranslatableError("an index that counts down; today: .ap with a negative step")
        if step == "1":
            return f"{index.offset}:{plus(index.offset, count)}", [a.axis for a in axes], inner.count
        end = plus(
            plus(index.offset, times(plus(count, "-1") if count.isdigit() else f"({count} - 1)", step)), "1"
        )
        return f"{index.offset}:{end}:{step}", [a.axis for a in axes], inner.count

    def _keep_rank(self, texts: list[str], numbers: list[int], rank: int, slices: int) -> None:
        """Turn numbers into slices of one: a tile keeps two dimensions."""
        missing = min(rank, 2) - slices
        opened = [n for n in range(len(texts)) if n not in numbers]
        after = [n for n in numbers if not opened or n > opened[0]]
        chosen = after or list(reversed(numbers))
        for place in chosen[: max(0, missing)]:
            texts[place] = f"{texts[place]}:{plus(texts[place], '1')}"

    def _slice(self, node: ast.Slice) -> str:
        parts = ["" if p is None else self._number(p) for p in (node.lower, node.upper)]
        step = "" if node.step is None else f":{self._number(node.step)}"
        return f"{parts[0]}:{parts[1]}{step}"
