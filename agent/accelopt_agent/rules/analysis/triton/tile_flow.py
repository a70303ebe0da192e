"""Follows values through a kernel: dimensions of tiles, and their block sizes.

A value is described by the dimensions of its tile and by what its numbers come from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

import libcst as cst

from accelopt_agent.rules.analysis.rule_context import RuleContext
from accelopt_agent.rules.analysis.statement import Statement
from accelopt_agent.rules.analysis.triton.kernel import TL, TritonKernel, integer
from accelopt_profiling.triton.functions.table import functions_of

SizeNode = cst.Name | cst.Integer


class TileFlow:
    """What follows from a kernel's statements about numbered dimensions and sizes.

    Those in one of ``groups`` are the same.

    ``number_of`` numbers the places of block sizes, ``made`` the dimensions of tiles by the call that makes them, and
    ``tiles`` are the places that size them. By dimension: ``axes``, ``loops``, ``bounds`` and ``wrapped`` (offsets
    taken modulo a size). ``accesses`` are the dimensions of addresses and of what masks them, ``dots`` rows, columns
    and inner dimension, ``steps`` the block sizes that a loop goes on by.
    """

    def __init__(self, subject: RuleContext) -> None:
        self.kernel = subject.analysis(TritonKernel)
        self._source, self.groups = self.kernel.source, Groups()
        self.number_of: dict[SizeNode, int] = {}
        self.made: dict[cst.CSTNode, tuple[int, ...]] = {}
        self._variables: dict[str, TileValue] = {}
        self.axes: dict[int, set[int]] = defaultdict(set)
        self.loops: dict[int, set[cst.For]] = defaultdict(set)
        self.bounds: dict[int, set[str]] = defaultdict(set)
        self.tiles: set[SizeNode] = set()
        self.wrapped: set[int] = set()
        self.accesses: dict[cst.Call, tuple[tuple[int, ...], frozenset[int]]] = {}
        self.dots: dict[cst.Call, tuple[int, int, int]] = {}
        self.steps: dict[cst.For, frozenset[int]] = {}
        for _ in range(2):  # what a loop changes is known to its start the second time
            for statement in self.kernel.flow.statements:
                self._follow(statement)

    # Following values

    def _follow(self, statement: Statement) -> None:
        node = statement.node
        if isinstance(node, cst.For):
            self._enter(node)
        if not isinstance(node, cst.SimpleStatementLine):
            return
        for small in node.body:
            if isinstance(small, cst.Assign):
                for target in small.targets:
                    self._bind(target.target, small.value)
            elif isinstance(small, cst.AnnAssign) and small.value is not None:
                self._bind(small.target, small.value)
            elif isinstance(small, cst.AugAssign):
                self._step(small, statement.loops)
            elif isinstance(small, (cst.Expr, cst.Return)) and small.value is not None:
                self._value(small.value)

    def _enter(self, loop: cst.For) -> None:
        sizes = frozenset[int]()
        if isinstance(loop.iter, cst.Call):
            values = [self._value(a.value) for a in loop.iter.args if a.keyword is None]
            sizes = values[2].sizes if len(values) == 3 else sizes
            counts = [self._blocks(c) for a in loop.iter.args for c in self._source.below(a)]
            sizes |= frozenset[int]().union(*counts) if len(values) < 3 else frozenset()
        self.steps[loop] = sizes
        if isinstance(loop.target, cst.Name):
            self._variables[loop.target.value] = TileValue((), sizes, loops=frozenset([loop]))

    def _blocks(self, node: cst.CSTNode) -> frozenset[int]:
        """Return the block sizes that ``node`` divides by: in ``cdiv(K, BLOCK)`` or ``K // BLOCK``."""
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.FloorDivide):
            return self._value(node.right).sizes
        if isinstance(node, cst.Name):
            definition = self.kernel.flow.definition(node)
            if definition is not None and definition.value is not None and self._is_count(definition.value):
                return self._blocks(definition.value)
        if isinstance(node, cst.Call) and self._is_cdiv(node):
            return self._value(node.args[1].value).sizes
        return frozenset()

    def _is_count(self, node: cst.CSTNode) -> bool:
        return self._is_cdiv(node) or (
            isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.FloorDivide)
        )

    def _is_cdiv(self, node: cst.CSTNode) -> bool:
        if not isinstance(node, cst.Call) or len(node.args) != 2:
            return False
        return self.kernel.names.path(node.func) in (f"{TL}.cdiv", "triton.cdiv")

    def _bind(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        if isinstance(target, cst.Tuple):
            if isinstance(value, cst.Tuple) and len(value.elements) == len(target.elements):
                for one, other in zip(target.elements, value.elements, strict=True):
                    self._bind(one.value, other.value)
                return
            whole = self._value(value)
            for element in target.elements:
                if isinstance(element.value, cst.Name):
                    scalar = whole.dims is None and whole.axes
                    self._set(element.value.value, replace(whole, dims=() if scalar else whole.dims))
        elif isinstance(target, cst.Name):
            self._set(target.value, self._value(value))

    def _set(self, name: str, value: TileValue) -> None:
        before = self._variables.get(name)
        if before is not None and before.dims and value.dims and len(before.dims) == len(value.dims):
            self.groups.join_shapes([before.dims, value.dims])
        self._variables[name] = value

    def _step(self, node: cst.AugAssign, loops: tuple[cst.For, ...]) -> None:
        value = self._value(node.value)
        if not isinstance(node.target, cst.Name):
            return
        before = self._variables.get(node.target.value, UNKNOWN)
        if not value.dims and value.sizes and loops:
            # A pointer or an offset goes on by a block: by the block of the loop that it is in.
            for step in self.steps.get(loops[-1], ()):
                for size in value.sizes:
                    self.groups.join(size, step)
            if before.dims and len(before.dims) == 1:
                self._belongs(replace(value, loops=frozenset([loops[-1]])), before.dims[0])
        dims = self.groups.join_shapes([before.dims, value.dims])
        self._variables[node.target.value] = self._combined([before, value], dims)

    def _value(self, node: cst.CSTNode) -> TileValue:
        if isinstance(node, cst.Name):
            if node.value in self.kernel.constexprs and self.kernel.flow.statement_of(node) is not None:
                return TileValue((), frozenset([self._number(node)]))
            return self._variables.get(node.value, SCALAR)
        if isinstance(node, cst.Integer):
            return TileValue((), frozenset([self._number(node)])) if _is_block(node) else SCALAR
        if isinstance(node, cst.BinaryOperation):
            return self._operation(node)
        if isinstance(node, cst.Comparison):
            return self._comparison(node)
        if isinstance(node, cst.BooleanOperation):
            return self._elementwise([node.left, node.right])
        if isinstance(node, cst.UnaryOperation):
            return self._value(node.expression)
        if isinstance(node, cst.Subscript):
            return self._indexed(node)
        if isinstance(node, cst.Attribute):
            value = self._value(node.value)
            return value.shaped(value.dims[::-1]) if node.attr.value == "T" and value.dims else SCALAR
        if isinstance(node, cst.IfExp):
            return self._elementwise([node.body, node.orelse])
        return self._call(node) if isinstance(node, cst.Call) else SCALAR

    def _number(self, node: SizeNode) -> int:
        if node not in self.number_of:
            self.number_of[node] = self.groups.add()
        return self.number_of[node]

    def _operation(self, node: cst.BinaryOperation) -> TileValue:
        left, right = self._value(node.left), self._value(node.right)
        dims = self.groups.join_shapes([left.dims, right.dims])
        if isinstance(node.operator, (cst.Add, cst.Subtract)):
            for tile, scalar in ((left, right), (right, left)):
                lanes = [d for d in tile.dims or () if d != ONE]
                if len(lanes) == 1 and scalar.dims == ():
                    self._belongs(scalar, lanes[0])
        elif isinstance(node.operator, cst.Modulo) and left.dims and len(left.dims) == 1 and right.dims == ():
            self.wrapped.add(left.dims[0])
            self.bounds[left.dims[0]] |= self.arguments(node.right)
            return self._combined([left], dims)
        elif isinstance(node.operator, (cst.FloorDivide, cst.Modulo)):
            return replace(self._combined([left, right], dims), sizes=frozenset())
        return self._combined([left, right], dims)

    def _belongs(self, scalar: TileValue, dimension: int) -> None:
        """An offset that is added to the lanes of a dimension, or compared with them, counts in its blocks."""
        for size in scalar.sizes:
            self.groups.join(size, dimension)
        if scalar.sizes:
            self.axes[dimension] |= scalar.axes
            self.loops[dimension] |= scalar.loops

    def _comparison(self, node: cst.Comparison) -> TileValue:
        nodes = [node.left, *(c.comparator for c in node.comparisons)]
        values = [self._value(n) for n in nodes]
        dims = self.groups.join_shapes([v.dims for v in values])
        lanes = [d for d in dims or () if d != ONE]
        scalars = [v for v in values if v.dims == ()]
        for one, value in zip(nodes, values, strict=True):
            is_difference = isinstance(one, cst.BinaryOperation) and isinstance(one.operator, cst.Subtract)
            if is_difference and value.dims == () and value.loops and not value.axes and len(lanes) == 1:
                self._belongs(value, lanes[0])  # what is left of a size after the loop's blocks so far
        if len(lanes) == 1:
            self.bounds[lanes[0]] |= {a for n in nodes for a in self.arguments(n)}
        masked = frozenset(lanes) if scalars else frozenset[int]()
        return TileValue(dims, masked=masked)

    def arguments(self, node: cst.CSTNode) -> set[str]:
        return self.kernel.flow.variables(node) & set(self.kernel.parameters) - self.kernel.constexprs

    def _elementwise(self, nodes: list[cst.BaseExpression]) -> TileValue:
        values = [self._value(n) for n in nodes]
        return self._combined(values, self.groups.join_shapes([v.dims for v in values]))

    def _combined(self, values: list[TileValue], dims: tuple[int, ...] | None) -> TileValue:
        scalar = dims == ()
        return TileValue(
            dims,
            frozenset().union(*(v.sizes for v in values)) if scalar else frozenset(),
            axes=frozenset().union(*(v.axes for v in values)),
            loops=frozenset().union(*(v.loops for v in values)) if scalar else frozenset(),
            masked=frozenset().union(*(v.masked for v in values)),
        )

    def _indexed(self, node: cst.Subscript) -> TileValue:
        value = self._value(node.value)
        if value.dims is None:
            return UNKNOWN
        rest, dims = list(value.dims), []
        for element in node.slice:
            index = element.slice
            if (
                isinstance(index, cst.Index)
                and isinstance(index.value, cst.Name)
                and index.value.value == "None"
            ):
                dims.append(ONE)
            elif isinstance(index, cst.Slice) and index.lower is None and index.upper is None and rest:
                dims.append(rest.pop(0))
            else:
                return UNKNOWN
        return value.shaped((*dims, *rest))

    def _call(self, node: cst.Call) -> TileValue:
        path = self.kernel.names.path(node.func) or ""
        name = path.removeprefix(f"{TL}.") if path.startswith(TL) else ""
        arguments = {a.keyword.value: a.value for a in node.args if a.keyword is not None}
        placed = [a.value for a in node.args if a.keyword is None]
        if name == "program_id":
            axis = integer(arguments.get("axis") or (placed[0] if placed else None))
            return TileValue((), axes=frozenset() if axis is None else frozenset([axis]))
        if name == "arange" and len(placed) == 2:
            return self._tile(node, [placed[1]])
        if name in ("zeros", "full", "empty") and (
            shape := arguments.get("shape") or next(iter(placed), None)
        ):
            return self._tile(node, _elements(shape))
        if name == "make_block_ptr":
            return self._block_pointer(node, placed, arguments)
        if name == "advance" and len(placed) == 2:
            value = self._value(placed[0])
            self._offsets(value, _elements(placed[1]), step=True)
            return value
        if name == "dot":
            return self._dot(node, placed, arguments)
        if name in ("load", "store", "atomic_add") and (placed or arguments):
            return self._access(node, name, placed, arguments)
        if name in _REDUCTIONS:
            return self._reduced(placed, arguments)
        if name == "trans" and len(placed) == 1:
            value = self._value(placed[0])
            return value.shaped(value.dims[::-1] if value.dims else value.dims)
        if name in ("cdiv",):
            for argument in placed:
                self._value(argument)
            return replace(self._elementwise(placed), sizes=frozenset())
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "to" and not path:
            return self._value(node.func.value)
        if name in _SAME_SHAPE or path.startswith(f"{TL}.math."):
            return self._elementwise(placed) if placed else UNKNOWN
        values = [self._value(a.value) for a in node.args]
        if values and all(v.dims == () for v in values):
            return replace(self._combined(values, ()), sizes=frozenset())
        return UNKNOWN

    def _tile(self, node: cst.Call, sizes: list[cst.BaseExpression]) -> TileValue:
        if node not in self.made:
            self.made[node] = tuple(self.groups.add() for _ in sizes)
        for dimension, size in zip(self.made[node], sizes, strict=True):
            for number in self._value(size).sizes:
                self.groups.join(number, dimension)
            if isinstance(size, (cst.Name, cst.Integer)):
                self.tiles.add(size)
        return TileValue(self.made[node])

    def _block_pointer(
        self, node: cst.Call, placed: list[cst.BaseExpression], arguments: dict[str, cst.BaseExpression]
    ) -> TileValue:
        by_name = dict(
            zip(("base", "shape", "strides", "offsets", "block_shape", "order"), placed, strict=False)
        )
        by_name |= arguments
        if "block_shape" not in by_name or "offsets" not in by_name:
            return UNKNOWN
        value = self._tile(node, _elements(by_name["block_shape"]))
        self._offsets(value, _elements(by_name["offsets"]), step=False)
        return value

    def _offsets(self, pointer: TileValue, offsets: list[cst.BaseExpression], *, step: bool) -> None:
        for dimension, offset in zip(pointer.dims or (), offsets, strict=False):
            scalar = self._value(offset)
            self._belongs(scalar, dimension)
            if step and scalar.sizes:
                loop = next((p for p in self._source.parents(offset) if isinstance(p, cst.For)), None)
                for size in self.steps.get(loop, ()) if loop is not None else ():
                    self.groups.join(size, dimension)
                self.loops[dimension] |= {loop} if loop is not None else set()

    def _dot(
        self, node: cst.Call, placed: list[cst.BaseExpression], arguments: dict[str, cst.BaseExpression]
    ) -> TileValue:
        by_name = dict(zip(("input", "other", "acc"), placed, strict=False)) | arguments
        left, right = (self._value(by_name[n]).dims if n in by_name else None for n in ("input", "other"))
        if left is None or right is None or len(left) != 2 or len(right) != 2:
            return self._value(by_name["acc"]) if "acc" in by_name else UNKNOWN
        self.groups.join(left[1], right[0])
        self.dots[node] = (left[0], right[1], left[1])
        shapes = [(left[0], right[1])]
        if "acc" in by_name and (start := self._value(by_name["acc"]).dims) and len(start) == 2:
            shapes.append(start)
        return TileValue(self.groups.join_shapes(shapes))

    def _access(
        self,
        node: cst.Call,
        name: str,
        placed: list[cst.BaseExpression],
        arguments: dict[str, cst.BaseExpression],
    ) -> TileValue:
        order = ("pointer", "mask", "other") if name == "load" else ("pointer", "value", "mask")
        by_name = dict(zip(order, placed, strict=False)) | arguments
        pointer = self._value(by_name["pointer"]) if "pointer" in by_name else UNKNOWN
        values = [self._value(by_name[n]) for n in ("mask", "value", "other") if n in by_name]
        dims = self.groups.join_shapes([pointer.dims, *(v.dims for v in values)])
        if pointer.dims is not None:
            masked = values[0].masked if "mask" in by_name else frozenset[int]()
            if "boundary_check" in by_name:
                checked = [integer(e) for e in _elements(by_name["boundary_check"])]
                masked = frozenset(d for i, d in enumerate(pointer.dims) if i in checked)
            if not self._under_flag(node):
                self.accesses[node] = (pointer.dims, masked)
        return TileValue(dims)

    def _under_flag(self, node: cst.CSTNode) -> bool:
        """Return whether a condition on a constexpr chooses this access: one that says that sizes divide."""
        tests = [p.test for p in self._source.parents(node) if isinstance(p, cst.If)]
        return any(self.kernel.flow.variables(test) & self.kernel.constexprs for test in tests)

    def _reduced(
        self, placed: list[cst.BaseExpression], arguments: dict[str, cst.BaseExpression]
    ) -> TileValue:
        value = self._value(placed[0]) if placed else UNKNOWN
        axis = arguments.get("axis") or (placed[1] if len(placed) > 1 else None)
        number = integer(axis)
        if value.dims is None or number is None or number >= len(value.dims):
            return SCALAR if axis is None and value.dims else UNKNOWN
        if "keep_dims" in arguments:
            return TileValue((*value.dims[:number], ONE, *value.dims[number + 1 :]))
        return TileValue((*value.dims[:number], *value.dims[number + 1 :]))


_REDUCTIONS = functions_of("reduction")
_SAME_SHAPE = functions_of("elementwise", "hint") | {"zeros_like"}


def _elements(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    return [e.value for e in node.elements] if isinstance(node, (cst.Tuple, cst.List)) else [node]


def _is_block(node: cst.Integer) -> bool:
    """Return whether a number may be a block size: a power of two from 16 up."""
    value = int(node.value, 0)
    return value >= 16 and value & (value - 1) == 0


#: The dimension of length one that ``x[:, None]`` adds.
ONE = -1


@dataclass(frozen=True)
class TileValue:
    """``dims`` are group numbers, outermost first.

    Empty for a scalar, None where they are not known.

    ``sizes`` are the block sizes that a scalar is a multiple or sum of, ``axes`` the program ids and ``loops`` the
    loop variables in it. ``masked`` are the dimensions that a mask compares with something.
    """

    dims: tuple[int, ...] | None = ()
    sizes: frozenset[int] = frozenset()
    axes: frozenset[int] = frozenset()
    loops: frozenset[cst.For] = frozenset()
    masked: frozenset[int] = frozenset()

    def shaped(self, dims: tuple[int, ...] | None) -> TileValue:
        return replace(self, dims=dims)


SCALAR = TileValue()
UNKNOWN = TileValue(dims=None)


class Groups:
    """Numbers that turn out to mean the same (union-find)."""

    def __init__(self) -> None:
        self._above: list[int] = []

    def add(self) -> int:
        self._above.append(len(self._above))
        return len(self._above) - 1

    def find(self, one: int) -> int:
        if one == ONE:
            return ONE
        while self._above[one] != one:
            one = self._above[one]
        return one

    def join(self, one: int, other: int) -> None:
        if ONE not in (one, other):
            self._above[self.find(one)] = self.find(other)

    def join_shapes(self, shapes: Iterable[tuple[int, ...] | None]) -> tuple[int, ...] | None:
        """Return the shape that operands broadcast to.

        Their dimensions are the same from then on. None when one is not known.
        """
        result: list[int] = []
        for dims in shapes:
            if dims is None:
                return None
            result = [ONE] * (len(dims) - len(result)) + result
            for position in range(1, len(dims) + 1):
                mine, theirs = result[-position], dims[-position]
                if mine == ONE:
                    result[-position] = theirs
                else:
                    self.join(theirs, mine)
        return tuple(result)
