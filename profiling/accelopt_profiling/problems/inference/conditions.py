"""Change an inferred call so that a condition of the code that a run met becomes true, or false."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from accelopt_profiling.failure_site import (
    FailureSite,
    NoValueError,
    definition_of,
)
from accelopt_profiling.problems.inference.arguments import InferredArgument
from accelopt_profiling.problems.inference.subjects import CallSubjects

_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
}  # fmt: skip


class ConditionSolver:
    """Makes conditions at ``site`` hold by changes of ``subjects``."""

    def __init__(self, site: FailureSite, subjects: CallSubjects) -> None:
        self._site, self._subjects = site, subjects
        self._why = f"line {site.statement.lineno}"
        self._depth = 0

    def make(self, node: ast.expr, truth: bool) -> str | None:
        """Change the call so that ``node`` is ``truth``.

        Return what was changed, None where that is not known.
        """
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.make(node.operand, not truth)
        if isinstance(node, ast.BoolOp):
            every = isinstance(node.op, ast.And) is truth
            done = [
                change
                for part in node.values
                if self._truth(part) is not truth and (change := self.make(part, truth))
            ]
            return "; ".join(done if every else done[:1]) or None
        if isinstance(node, ast.Compare):
            return self._comparison(node, truth)
        if isinstance(node, ast.Call):
            return self._call(node, truth)
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
            return None
        if isinstance(node, ast.Name):
            return self._name(node, truth)
        return None

    def _truth(self, node: ast.expr) -> bool | None:
        try:
            return bool(self._site.value(node))
        except (NoValueError, RuntimeError):
            return None

    def _name(self, node: ast.Name, truth: bool) -> str | None:
        argument = self._subjects.named(node.id)
        if argument is not None and argument.kind == "value":
            return self._subjects.set_value(argument, str(truth), self._why)
        if self._depth > 3:
            return None
        for value in self.assigned(node.id):
            self._depth += 1
            return self.make(value, truth)
        return None

    def _call(self, node: ast.Call, truth: bool) -> str | None:
        name = ast.unparse(node.func)
        if name == "isinstance" and len(node.args) == 2 and isinstance(node.args[0], ast.Name) and truth:
            kinds = ast.unparse(node.args[1])
            if "Tensor" in kinds:
                return self._subjects.make_tensor(node.args[0].id, self._why)
            for kind, value in (("bool", "False"), ("int", None), ("float", None), ("str", None)):
                if kind in kinds:
                    return self._subjects.make_value(node.args[0].id, self._why, value)
        if name in ("all", "any") and node.args and isinstance(node.args[0], (ast.Tuple, ast.List)):
            operator = ast.And() if name == "all" else ast.Or()
            return self.make(ast.BoolOp(operator, node.args[0].elts), truth)
        condition = self._returned(node) if self._depth < 4 else None
        if condition is not None:
            self._depth += 1
            return self.make(condition, truth)
        if name.endswith("is_floating_point") and isinstance(node.func, ast.Attribute):
            return self._set_dtype(ast.Attribute(node.func.value, "dtype", ast.Load()), "bfloat16")
        return None

    def _returned(self, call: ast.Call) -> ast.expr | None:
        """Return what a function that does nothing but return an expression returns, in the caller's words."""
        function = self._value(call.func)
        code = getattr(function, "__code__", None)
        definition = None if code is None else definition_of(code)
        if definition is None:
            return None
        body = [
            s for s in definition.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        ]
        returned = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
        arguments = list(call.args)
        if hasattr(function, "__self__") and isinstance(call.func, ast.Attribute):
            arguments.insert(0, call.func.value)
        names = {a.arg: v for a, v in zip(definition.args.args, arguments, strict=False)}
        names |= {k.arg: k.value for k in call.keywords if k.arg}
        return None if returned is None else _Replacement(names).visit(deepcopy(returned))

    def _comparison(self, node: ast.Compare, truth: bool) -> str | None:
        if len(node.ops) > 1:
            parts = [
                ast.Compare(left, [operator], [right])
                for left, operator, right in zip(
                    [node.left, *node.comparators], node.ops, node.comparators, strict=False
                )
            ]
            return self.make(ast.BoolOp(ast.And(), list(parts)), truth)
        kind = type(node.ops[0]) if truth else _OPPOSITE[type(node.ops[0])]
        left, right = node.left, node.comparators[0]
        missing = isinstance(right, ast.Constant) and right.value is None
        if isinstance(left, ast.Name) and (missing or kind in (ast.Is, ast.IsNot)):
            if missing and kind in (ast.IsNot, ast.NotEq):
                return self._subjects.make_tensor(left.id, f"needed in {self._why}")
            if not missing:
                return None
            return self._subjects.leave_out(left.id) or self._subjects.make_value(left.id, self._why, "None")
        try:
            a, b = self._site.value(left), self._site.value(right)
        except NoValueError:
            return None
        if kind is ast.Eq:
            return self._equal(left, right, a, b)
        if kind is ast.In and hasattr(b, "__iter__"):
            members = list(b)
            if isinstance(left, ast.Name) and self._subjects.is_tensor(a) and members:
                plain = isinstance(members[0], (int, float, str))
                return self._subjects.make_value(left.id, self._why, repr(members[0])) if plain else None
            for member in sorted(members, key=_closeness(a)) if members else []:
                if change := self._equal(left, right, a, member, one_way=True):
                    return change
            return None
        if type(a) is int and type(b) is int:
            if kind is ast.NotEq and isinstance(left, ast.BinOp):
                return None
            goals = {ast.Lt: b - 1, ast.LtE: b, ast.Gt: b + 1, ast.GtE: b, ast.NotEq: 2 * b}
            if kind in goals:
                goal = goals[kind]
                goal = 1 << (goal.bit_length() - 1) if kind in (ast.Lt, ast.LtE) and goal > 0 else goal
                flipped = {ast.Lt: a + 1, ast.LtE: a, ast.Gt: a - 1, ast.GtE: a, ast.NotEq: 2 * a}
                return self.set_number(left, a, goal) or self.set_number(right, b, flipped[kind])
        if kind is ast.NotEq and self._subjects.is_dtype(a):
            return self._set_dtype(left, "bfloat16" if _dtype_name(a) == "float32" else "float32")
        return None

    def _equal(self, left: ast.expr, right: ast.expr, a: Any, b: Any, one_way: bool = False) -> str | None:
        ways = [(left, a, b)] if one_way else [(left, a, b), (right, b, a)]
        if isinstance(left, ast.BinOp) and not isinstance(left.op, ast.Mod) and self._dimension(right):
            ways.reverse()  # a size is changed rather than what others compute
        owner = self._shaped(left) if isinstance(a, (tuple, list)) else None
        if owner is not None and "from line" in owner.reason:
            ways.reverse()  # what an earlier run said of the left one's shape stays
        if self._subjects.reverse:
            ways.reverse()
        for node, value, goal in ways:
            if self._subjects.is_dtype(goal) and (change := self._set_dtype(node, goal)):
                return change
            shapes = isinstance(goal, (tuple, list)) and isinstance(value, (tuple, list))
            if shapes and (change := self._set_shape(node, list(value), list(goal))):
                return change
            if isinstance(goal, str) and isinstance(node, ast.Name):
                argument = self._subjects.named(node.id)
                if argument and (change := self._subjects.set_value(argument, repr(goal), self._why)):
                    return change
            if type(goal) is int and type(value) is int:
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and goal == 0:
                    return self._divisible(node)
                if change := self.set_number(node, value, goal):
                    return change
        return None

    def _divisible(self, node: ast.BinOp) -> str | None:
        try:
            number, by = self._site.value(node.left), self._site.value(node.right)
        except NoValueError:
            return None
        if by <= 0:
            return None
        goal = by
        while goal < number:
            goal *= 2
        return self.set_number(node.left, number, goal) or self.set_number(node.right, by, 1)

    def set_number(self, node: ast.expr, value: int, goal: int) -> str | None:
        """Change the call so that ``node``, which is ``value``, is ``goal``. Return what was changed."""
        subjects = self._subjects
        if (owner := _owner(node, "ndim", "dim")) is not None:
            argument = subjects.argument_of(self._value(owner))
            return subjects.set_rank(argument, goal, f"rank from {self._why}") if argument else None
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "len" and node.args:
            owner = _owner(node.args[0], "shape")
            argument = subjects.argument_of(self._value(owner)) if owner else None
            return subjects.set_rank(argument, goal, f"rank from {self._why}") if argument else None
        if (place := shape_place(node)) is not None:
            argument = subjects.argument_of(self._value(place[0]))
            index = self._value(place[1])
            # a vector's length follows another size more often than two sizes that have names are one
            vector = argument is not None and len(argument.dims) == 1
            if argument and type(index) is int and (vector or not argument.firm):
                return subjects.set_dimension(argument, index, goal, f"size from {self._why}")
            if change := subjects.resize(value, goal, f"size from {self._why}"):
                return change
            if argument and type(index) is int:
                return subjects.set_dimension(argument, index, goal, f"size from {self._why}")
        if isinstance(node, ast.Name) and (argument := subjects.named(node.id)) and argument.kind == "value":
            return subjects.set_value(argument, subjects.call.expression(goal) or str(goal), self._why)
        if isinstance(node, ast.Constant):
            return None
        if (dimension := self._dimension(node)) is not None:
            return subjects.resize_dimension(*dimension, goal, f"size from {self._why}")
        value_of = next(self.assigned(node.id), None) if isinstance(node, ast.Name) else node
        if isinstance(value_of, ast.BinOp) and (change := self._invert(node, goal)):
            return change  # sizes that only have the same value are not touched
        return subjects.resize(value, goal, f"size from {self._why}") or self._invert(node, goal)

    def _dimension(self, node: ast.expr) -> tuple[InferredArgument, int] | None:
        """Return the argument and the axis of a name that the function unpacks from its shape, once."""
        if not isinstance(node, ast.Name):
            return None
        places = [
            (statement.value, at)
            for statement in ast.walk(self._site.function or ast.Module([], []))
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Attribute)
            for target in statement.targets
            if isinstance(target, (ast.Tuple, ast.List)) and statement.value.attr == "shape"
            for at, element in enumerate(target.elts)
            if isinstance(element, ast.Name) and element.id == node.id
        ]
        argument = self._shaped(places[0][0]) if len(places) == 1 else None
        return None if argument is None else (argument, places[0][1])

    def _invert(self, node: ast.expr, goal: int) -> str | None:
        """Make arithmetic on numbers, or what a name is assigned, be ``goal`` by one of its operands."""
        if isinstance(node, ast.Name) and self._depth < 4:
            self._depth += 1
            assigned = next(iter(self.assigned(node.id)), None)
            value = self._value(assigned)
            return self.set_number(assigned, value, goal) if assigned and type(value) is int else None
        if isinstance(node, ast.Call) and len(node.args) == 2 and "div" in ast.unparse(node.func):
            node = ast.BinOp(node.args[0], ast.FloorDiv(), node.args[1])  # rounded up, as cdiv does
        if not isinstance(node, ast.BinOp):
            return None
        sides = [(node.left, self._value(node.left)), (node.right, self._value(node.right))]
        if not all(type(value) is int for _, value in sides):
            return None
        (left, a), (right, b) = sides
        ways: list[tuple[ast.expr, int, int]] = []
        if isinstance(node.op, ast.FloorDiv):
            ways = [(left, a, goal * b)]
        elif isinstance(node.op, ast.Mult):
            ways = [
                (s, old, goal // other)
                for s, old, other in ((left, a, b), (right, b, a))
                if other and goal % other == 0
            ]
        elif isinstance(node.op, ast.Add):
            ways = [(left, a, goal - b), (right, b, goal - a)]
        elif isinstance(node.op, ast.Sub):
            ways = [(left, a, goal + b)]
        return next((change for way in ways if way[2] >= 0 and (change := self.set_number(*way))), None)

    def assigned(self, name: str) -> Iterator[ast.expr]:
        """Yield what the function assigns to ``name``."""
        for statement in ast.walk(self._site.function) if self._site.function is not None else ():
            if not isinstance(statement, ast.Assign):
                continue
            value = statement.value
            for target in statement.targets:
                pairs = [(target, value)]
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                    pairs = list(zip(target.elts, value.elts, strict=False))
                yield from (v for t, v in pairs if isinstance(t, ast.Name) and t.id == name)

    def _set_dtype(self, node: ast.expr, goal: Any) -> str | None:
        owner = _owner(node, "dtype")
        argument = self._subjects.argument_of(self._value(owner)) if owner is not None else None
        if argument is None and isinstance(node, ast.Name):
            argument = self._subjects.named(node.id)
            if argument is not None and argument.kind == "tensor":
                argument = None
        return self._subjects.set_dtype(argument, goal, f"dtype from {self._why}") if argument else None

    def _set_shape(self, node: ast.expr, value: list[Any], goal: list[Any]) -> str | None:
        """Make ``x.shape``, or a slice of it, be ``goal``."""
        if not all(type(n) is int for n in goal):
            return None
        sliced = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
        argument = self._shaped(node)
        if argument is None:
            return None
        shape = goal
        if sliced:
            own = self._subjects.call.shape(argument)
            at = next((n for n in range(len(own) + 1) if own[n : n + len(value)] == value), 0)
            shape = [*own[:at], *goal, *own[at + len(value) :]]
        return self._subjects.set_dims(argument, shape, f"shape from {self._why}")

    def _shaped(self, node: ast.expr) -> InferredArgument | None:
        """Return the argument of ``x.shape``, of a slice of it or of ``tuple(x.shape)``."""
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("tuple", "list") and len(node.args) == 1:
            node = node.args[0]
        owner = _owner(node.value if isinstance(node, ast.Subscript) else node, "shape", "size")
        return self._subjects.argument_of(self._value(owner)) if owner is not None else None

    def _value(self, node: ast.expr | None) -> Any:
        try:
            return self._site.value(node) if node is not None else None
        except NoValueError:
            return None


class _Replacement(ast.NodeTransformer):
    """Puts expressions in place of names."""

    def __init__(self, names: dict[str, ast.expr]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._names.get(node.id, node)


def _owner(node: ast.expr, *attributes: str) -> ast.expr | None:
    """``x`` of ``x.attribute`` or ``x.attribute()``."""
    if isinstance(node, ast.Call) and not node.args:
        node = node.func
    return node.value if isinstance(node, ast.Attribute) and node.attr in attributes else None


def shape_place(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Return ``x`` and ``i`` of ``x.shape[i]``, ``x.size(i)`` or ``x.stride(i)``."""
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "shape"
    ):
        return node.value.value, node.slice
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or len(node.args) != 1:
        return None
    return (node.func.value, node.args[0]) if node.func.attr in ("size", "stride") else None


def _dtype_name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def _closeness(value: Any) -> Any:
    def distance(member: Any) -> float:
        if type(member) is int and type(value) is int:
            return abs(member - value)
        return 0.0 if _dtype_name(member) in ("bfloat16", "float32") else 1.0

    return distance
