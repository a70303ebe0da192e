"""Computes what the expressions of a Triton kernel stand for, through assignments and however they are spelled.

Two expressions with one `Value` are equal wherever both are known. Integer sums and products are kept multiplied
out, so that addresses compare as the numbers they are; floating-point sums that differ in order only count as equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import libcst as cst

from accelopt_agent.rules.analysis.triton.kernel import TL, TritonKernel
from accelopt_agent.rules.analysis.triton.storage import pointers
from accelopt_profiling.triton.functions.table import functions_of


@dataclass(frozen=True, eq=False)
class Value:
    """``op`` with its ``args``: values, names and numbers.

    One object stands for one value; ``serial`` orders them.
    """

    op: str
    args: tuple[Any, ...]
    serial: int

    def below(self) -> Iterable[Value]:
        """Return the values that this one is made of directly."""
        return _values_in(self.args)

    def parts(self) -> Iterable[Value]:
        """Yield the values that this one is made of, through all levels, itself first."""
        todo, visited = [self], {self}
        while todo:
            at = todo.pop()
            yield at
            for below in at.below():
                if below not in visited:
                    visited.add(below)
                    todo.append(below)

    @property
    def number(self) -> int | float | None:
        return self.args[0] if self.op == "number" and isinstance(self.args[0], (int, float)) else None


#: A sum: how often each product of values is in it. The empty product is one.
Terms = dict[tuple[Value, ...], int]


class Evaluation:
    """Walks statements and notes the value of each expression in them.

    ``apart`` tells whether two pointer arguments are known not to overlap: then a store through one leaves what a load
    through the other gives.
    """

    def __init__(
        self, kernel: TritonKernel, apart: Callable[[str, str], bool] = lambda one, other: False
    ) -> None:
        self.kernel, self._apart = kernel, apart
        self._made: dict[tuple[object, ...], Value] = {}
        self._of: dict[cst.CSTNode, Value] = {}
        self._stores: list[str | None] = []
        self.pointers = pointers(kernel)
        #: What the variables stood for before each simple statement.
        self.before: dict[cst.CSTNode, dict[str, Value]] = {}
        self.variables: dict[str, Value] = {p: self.make("parameter", p) for p in kernel.parameters}

    def make(self, op: str, *args: object) -> Value:
        key = (op, *args)
        if key not in self._made:
            self._made[key] = Value(op, args, len(self._made))
        return self._made[key]

    def constant(self, number: int | float) -> Value:
        return self.make("number", number, type(number).__name__)

    def fresh(self, what: str) -> Value:
        """Return a value that equals no other."""
        return self.make("unknown", what, len(self._made))

    def of(self, node: cst.CSTNode) -> Value | None:
        """Return the value of an expression that stands in what was walked."""
        return self._of.get(node)

    # Statements

    def walk(self, statements: Iterable[cst.CSTNode]) -> None:
        for statement in statements:
            if isinstance(statement, cst.SimpleStatementLine):
                self.before[statement] = dict(self.variables)
                for small in statement.body:
                    self._small(small)
            elif isinstance(statement, cst.If):
                self._branch(statement)
            elif isinstance(statement, (cst.For, cst.While)):
                self._loop(statement)
            elif isinstance(statement, cst.BaseCompoundStatement):
                self._forget(statement)
                for block in self.kernel.source.children(statement):
                    self.walk(getattr(block, "body", ()))
                self._forget(statement)

    def _small(self, node: cst.CSTNode) -> None:
        if isinstance(node, cst.Assign):
            value = self.evaluate(node.value)
            for target in node.targets:
                self._bind(target.target, value, node.value)
        elif isinstance(node, cst.AnnAssign) and node.value is not None:
            self._bind(node.target, self.evaluate(node.value), node.value)
        elif isinstance(node, cst.AugAssign):
            operator = _AUGMENTED.get(type(node.operator))
            before, added = self.evaluate(node.target), self.evaluate(node.value)
            combined = self._combined(operator, before, added) if operator else self.fresh("update")
            self._bind(node.target, combined, None)
        else:
            for below in self.kernel.source.children(node):
                if isinstance(below, cst.BaseExpression):
                    self.evaluate(below)

    def _bind(self, target: cst.CSTNode, value: Value, written: cst.BaseExpression | None) -> None:
        if isinstance(target, cst.Name):
            self.variables[target.value] = value
            self._of[target] = value
        elif isinstance(target, (cst.Tuple, cst.List)):
            elements = written.elements if isinstance(written, (cst.Tuple, cst.List)) else ()
            for place, element in enumerate(target.elements):
                part = self._of.get(elements[place].value) if len(elements) == len(target.elements) else None
                self._bind(element.value, part or self.make("part", value, place), None)

    def _branch(self, node: cst.If) -> None:
        self.evaluate(node.test)
        before = dict(self.variables)
        self.walk(node.body.body)
        after, self.variables = self.variables, before
        if isinstance(node.orelse, cst.If):
            self._branch(node.orelse)
        elif node.orelse is not None:
            self.walk(node.orelse.body.body)
        for name in {*after, *self.variables}:
            if after.get(name) is not self.variables.get(name):
                self.variables[name] = self.fresh(name)

    def _loop(self, node: cst.For | cst.While) -> None:
        self.enter(node)
        self.walk(node.body.body)
        self._forget(node)

    def enter(self, node: cst.CSTNode) -> None:
        """Go on at the head of the first block of a compound statement."""
        if isinstance(node, cst.For):
            self.evaluate(node.iter)
            self._forget(node)
            self._bind(node.target, self.make("iteration", node), None)
        elif isinstance(node, cst.While):
            self._forget(node)
            self.evaluate(node.test)
        elif isinstance(node, cst.If):
            self.evaluate(node.test)
        else:
            self._forget(node)

    def _forget(self, node: cst.CSTNode) -> None:
        """What a loop or an unknown statement may change is not known before, in and after it."""
        statement = self.kernel.flow.statement_of(node)
        for name in statement.writes if statement is not None else self.variables:
            self.variables[name] = self.fresh(name)
        for call in self.kernel.source.walk(node, cst.Call):
            if self._writes(call):
                self._stores.append(None)

    # Expressions

    def evaluate(self, node: cst.BaseExpression) -> Value:
        value = self._evaluate(node)
        self._of[node] = value
        return value

    def _evaluate(self, node: cst.BaseExpression) -> Value:
        path = self.kernel.names.path(node) if isinstance(node, (cst.Name, cst.Attribute)) else None
        if path is not None and path.removeprefix(f"{TL}.") in _TYPES:
            return self.make("type", path.removeprefix(f"{TL}."))
        if isinstance(node, cst.Name):
            if node.value not in self.variables:
                self.variables[node.value] = self.make("name", node.value)
            return self.variables[node.value]
        if isinstance(node, cst.Integer):
            return self.constant(int(node.value.replace("_", ""), 0))
        if isinstance(node, cst.Float):
            return self.constant(float(node.value))
        if isinstance(node, cst.BinaryOperation):
            return self._combined(type(node.operator), self.evaluate(node.left), self.evaluate(node.right))
        if isinstance(node, cst.UnaryOperation):
            inside = self.evaluate(node.expression)
            if isinstance(node.operator, cst.Minus) and inside.number is not None:
                return self.constant(-inside.number)
            if isinstance(node.operator, cst.Minus):
                return self.product(self.constant(-1), inside)
            return self.make(type(node.operator).__name__, inside)
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            return self._compared(node)
        if isinstance(node, cst.Call):
            return self._called(node)
        if isinstance(node, cst.Subscript):
            slices = ", ".join(self.kernel.source.key(s) for s in node.slice)
            for below in self.kernel.source.walk(node, cst.Index):
                self.evaluate(below.value)
            return self.make("subscript", self.evaluate(node.value), slices)
        return self._other(node)

    def _other(self, node: cst.BaseExpression) -> Value:
        """Return an expression of another kind: the same where it is written alike of the same values."""
        kernel, inside = self.kernel, []
        for below in kernel.source.below(node):
            if below is not node and isinstance(below, cst.BaseExpression) and below not in self._of:
                if isinstance(below, cst.Name) and isinstance(kernel.source.parent(below), cst.Attribute):
                    parent = kernel.source.parent(below)
                    if isinstance(parent, cst.Attribute) and parent.attr is below:
                        continue
                self.evaluate(below)
        for name in sorted(kernel.flow.variables(node)):
            inside.append(self.variables.get(name) or self.make("name", name))
        return self.make("expression", kernel.source.key(node), *inside)

    def _compared(self, node: cst.Comparison) -> Value:
        left, right = self.evaluate(node.left), self.evaluate(node.comparisons[0].comparator)
        operator = type(node.comparisons[0].operator)
        if operator in (cst.GreaterThan, cst.GreaterThanEqual):
            left, right = right, left
            operator = cst.LessThan if operator is cst.GreaterThan else cst.LessThanEqual
        return self.make(operator.__name__, left, right)

    def _combined(self, operator: type[cst.CSTNode], left: Value, right: Value) -> Value:
        if operator is cst.Add:
            return self.total(_merged(self.terms(left), self.terms(right), 1))
        if operator is cst.Subtract:
            return self.total(_merged(self.terms(left), self.terms(right), -1))
        if operator is cst.Multiply:
            return self.product(left, right)
        if operator in (cst.BitAnd, cst.BitOr):
            sides = sorted({left, right}, key=lambda v: v.serial)
            return sides[0] if len(sides) == 1 else self.make(operator.__name__, *sides)
        above, below = left.number, right.number
        if operator is cst.FloorDivide and isinstance(above, int) and isinstance(below, int) and below:
            return self.constant(above // below)
        return self.make(operator.__name__, left, right)

    def terms(self, value: Value) -> Terms:
        """Return ``value`` as a sum of products."""
        if value.op == "sum":
            return dict(value.args)
        if isinstance(value.number, int):
            return {(): value.number} if value.number else {}
        return {(value,): 1}

    def total(self, terms: Mapping[tuple[Value, ...], int]) -> Value:
        """Return the value that is the sum of ``terms``."""
        nonzero = {product: count for product, count in terms.items() if count}
        if not nonzero or set(nonzero) == {()}:
            return self.constant(nonzero.get((), 0))
        if len(nonzero) == 1:
            ((product, count),) = nonzero.items()
            if len(product) == 1 and count == 1:
                return product[0]
        order = sorted(nonzero.items(), key=lambda item: tuple(v.serial for v in item[0]))
        return self.make("sum", *order)

    def product(self, left: Value, right: Value) -> Value:
        result: Terms = {}
        first, second = self.terms(left), self.terms(right)
        if len(first) * len(second) > _MOST_TERMS:
            return self.make("product", *sorted((left, right), key=lambda v: v.serial))
        for one, times in first.items():
            for other, more in second.items():
                both = tuple(sorted((*one, *other), key=lambda v: v.serial))
                result[both] = result.get(both, 0) + times * more
        return self.total(result)

    def _called(self, node: cst.Call) -> Value:
        kernel = self.kernel
        path = kernel.names.path(node.func) or ""
        if kernel.source.code(node).replace("'", '"') in _INFINITIES:
            return self.constant(_INFINITIES[kernel.source.code(node).replace("'", '"')])
        for arg in node.args:
            self.evaluate(arg.value)
        if self._writes(node):
            self._stores.append(root(self, self.of(node.args[0].value)) if node.args else None)
            return self.fresh("write")
        arguments = tuple((a.keyword.value if a.keyword else "", self._of[a.value]) for a in node.args)
        name = path.removeprefix(f"{TL}.")
        if name == "load" and node.args:
            pointer = self._of[node.args[0].value]
            where = root(self, pointer)
            stores = sum(1 for s in self._stores if s is None or where is None or not self._apart(s, where))
            return self.make("load", *load_arguments(node, self._of.__getitem__), stores)
        if name == "program_id" or name == "num_programs":
            return self.make(name, arguments[0][1] if arguments else self.constant(0))
        if path in (f"{TL}.cdiv", "triton.cdiv") and len(arguments) == 2:
            return self.make("cdiv", arguments[0][1], arguments[1][1])
        if name == "multiple_of" or name == "max_contiguous":
            return arguments[0][1] if arguments else self.fresh("hint")
        if (
            name == "where"
            and len(arguments) == 3
            and _is_masked_so(arguments[1][1], arguments[0][1], arguments[2][1])
        ):
            return arguments[1][1]
        if path:
            return self.make("call", name, *arguments)
        if isinstance(node.func, cst.Attribute):
            return self.make("method", node.func.attr.value, self.evaluate(node.func.value), *arguments)
        return self.make("call", kernel.source.key(node.func), *arguments)

    def _writes(self, call: cst.Call) -> bool:
        path = self.kernel.names.path(call.func) or ""
        name = path.rpartition(".")[2]
        return name in functions_of("store", "atomic") | {"debug_barrier"} or (
            self.kernel.names.foreign(call.func, ("triton", "math"))
        )


def root(evaluation: Evaluation, pointer: Value | None) -> str | None:
    """Return the argument that an address is an offset from, None where it is not one alone."""
    if pointer is None:
        return None
    bases = [
        product[0].args[0]
        for product, count in evaluation.terms(pointer).items()
        if count == 1
        and [v.op for v in product] == ["parameter"]
        and product[0].args[0] in evaluation.pointers
    ]
    return str(bases[0]) if len(bases) == 1 else None


def load_arguments(call: cst.Call, value: Callable[[cst.CSTNode], Value]) -> tuple[Value | None, ...]:
    """Return the pointer, the mask and the value of masked-off lanes of a ``tl.load``."""
    keywords = {a.keyword.value: a.value for a in call.args if a.keyword is not None}
    placed = [a.value for a in call.args if a.keyword is None]
    values: list[Value | None] = []
    for place, name in enumerate(("pointer", "mask", "other")):
        node = placed[place] if place < len(placed) else keywords.get(name)
        values.append(value(node) if node is not None else None)
    return tuple(values)


def _is_masked_so(value: Value, mask: Value, other: Value) -> bool:
    """Return whether ``value`` was loaded under ``mask`` with ``other`` in the lanes left out, converted at most."""
    while value.op == "method" and value.args[0] == "to" and isinstance(value.args[1], Value):
        value = value.args[1]
    if value.op != "load" or value.args[1] is not mask or not isinstance(value.args[2], Value):
        return False
    return value.args[2].number is not None and value.args[2].number == other.number


def _merged(left: Terms, right: Terms, sign: int) -> Terms:
    result = dict(left)
    for product, count in right.items():
        result[product] = result.get(product, 0) + sign * count
    return result


def _values_in(args: Iterable[object]) -> Iterable[Value]:
    for arg in args:
        if isinstance(arg, Value):
            yield arg
        elif isinstance(arg, tuple):
            yield from _values_in(arg)


#: Names of element types in ``triton.language``.
_TYPES = frozenset(
    {"int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16"}
    | {"float32", "float64", "float8e4nv", "float8e5"}
)
#: Longer products are not addresses.
_MOST_TERMS = 32
_INFINITIES = {'float("inf")': math.inf, 'float("-inf")': -math.inf}
_AUGMENTED: dict[type[cst.CSTNode], type[cst.CSTNode]] = {
    cst.AddAssign: cst.Add,
    cst.SubtractAssign: cst.Subtract,
    cst.MultiplyAssign: cst.Multiply,
    cst.DivideAssign: cst.Divide,
    cst.BitAndAssign: cst.BitAnd,
    cst.BitOrAssign: cst.BitOr,
}
