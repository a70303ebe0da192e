"""The sizes of a problem, and how to draw it at others: a check may not fit at the size that is profiled, and a kernel
may be right at that size alone.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import CodeType, FunctionType, ModuleType
from typing import Any

from accelopt_profiling.problems.problem import Problem

#: Sizes above these are made smaller in steps of the number beside them, so that edges stay edges of a tile.
_STEPS = ((256, 128), (32, 16), (1, 1))
_SMALLEST = 16
#: Powers beyond are left as they are.
_LARGEST_POWER = 40


class ProblemSizes:
    """The integers that the shapes of a problem come from, as they are now.

    They are arguments of ``get_inputs`` with integer defaults, or names of the problem's module that its functions
    read: ``batch_size = 4096``, and those that ``name_numbers`` made. ``given`` are the arguments of the case that is
    profiled. ``fixed`` tells that the problem takes no sizes as arguments. What a problem can choose besides
    (``choices``) may be changed ``at`` other sizes.
    """

    def __init__(self, problem: Problem, sizes: Mapping[str, Any] | None = None) -> None:
        self._problem = problem
        self._given = dict(sizes or {})
        self._module = problem.module
        arguments = {**problem.axes, **{n: v for n, v in self._given.items() if n in problem.axes}}
        self._full = arguments or dict(problem.constants)
        self._as_arguments = bool(arguments)
        self.fixed = not self._as_arguments
        self._now = dict(self._full)

    def at(self, smaller: Mapping[str, int]) -> ProblemSizes:
        """Take these sizes in the place of the problem's own; returns itself."""
        names = {*self._full, *(self._problem.choices if self._as_arguments else ())}
        self._now = {**self._full, **{n: v for n, v in smaller.items() if n in names}}
        return self

    def halve(self) -> bool:
        """Halve the largest size; False where none can be made smaller."""
        name = max(self._now, key=lambda n: self._now[n], default=None)
        if name is None or self._now[name] <= _SMALLEST:
            return False
        self._now[name] = halved(self._now[name])
        return True

    @property
    def full(self) -> dict[str, int]:
        """The problem's own sizes."""
        return dict(self._full)

    @property
    def smaller(self) -> dict[str, int]:
        """The sizes that are not the problem's own."""
        return {n: v for n, v in self._now.items() if v != self._full.get(n)}

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Let the problem's module have these sizes until the block ends."""
        changed = {} if self._as_arguments or self._module is None else self.smaller
        names = vars(self._module) if self._module is not None else {}
        before = {name: names[name] for name in changed}
        try:
            names.update(changed)
            yield
        finally:
            names.update(before)

    def inputs(self, seed: int) -> list[Any]:
        """Draw the inputs at these sizes. To be called while they are ``applied``."""
        changed = self.smaller if self._as_arguments else {}
        shape = {**self._given, **changed}
        return self._problem.inputs(seed, shape) if shape else self._problem.inputs(seed)

    def __str__(self) -> str:
        """Return the smaller sizes beside the full ones: ``dim=6144 instead of 393216``."""
        return ", ".join(f"{size_text(n, v)} instead of {self._full.get(n)}" for n, v in self.smaller.items())


def halved(size: int) -> int:
    """Return about half of ``size`` that leaves the same rest when it is divided into tiles."""
    step = next(step for limit, step in _STEPS if size > limit or limit == 1)
    return max(1, size // 2 // step * step + size % step)


def size_text(name: str, size: Any) -> str:
    """Return a size with its name, of one that is a number itself without: ``rows=512``, ``512``."""
    return str(size) if name.isdecimal() else f"{name}={size}"


def name_numbers(module: ModuleType, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` of ``module`` with its numbers of 16 and more as names of the module, so that they can be
    changed as constants are: ``torch.randn(64, 512)`` reads the globals ``"64"`` and ``"512"``, which no other code can
    name. Equal numbers are one size. Seeds stay, and a function that is not plain is returned as it is.
    """
    if not isinstance(function, FunctionType) or function.__closure__ is not None:
        return function
    with suppress(OSError, TypeError, SyntaxError):  # no source: typed in, or made by another function
        lines, first = inspect.getsourcelines(function)
        node = ast.parse(textwrap.dedent("".join(lines))).body[0]
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__ and not node.decorator_list:
            naming = _NumberNaming()
            node.body = [naming.visit(statement) for statement in node.body]
            tree = ast.fix_missing_locations(ast.increment_lineno(ast.Module([node], []), first - 1))
            names: dict[str, Any] = {}
            exec(compile(tree, function.__code__.co_filename, "exec"), vars(module), names)  # noqa: S102
            vars(module).update({str(number): number for number in naming.numbers})
            result: Callable[..., Any] = names[node.name]
            return result
    return function


#: Functions whose numbers are no sizes.
_SEEDED = frozenset(["seed", "manual_seed", "default_rng", "RandomState"])


class _NumberNaming(ast.NodeTransformer):
    def __init__(self) -> None:
        self.numbers: set[int] = set()

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if type(node.value) is not int or node.value < _SMALLEST:
            return node
        self.numbers.add(node.value)
        return ast.Name(str(node.value), ast.Load())

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Take a power of two as one number: ``1 << 20``, ``2**20``."""
        left, right = node.left, node.right
        if isinstance(node.op, (ast.LShift, ast.Pow)):
            ints = [n.value for n in (left, right) if isinstance(n, ast.Constant) and type(n.value) is int]
            if len(ints) < 2 or not 0 <= ints[1] <= _LARGEST_POWER:
                return node
            power = ints[0] ** ints[1] if isinstance(node.op, ast.Pow) else ints[0] << ints[1]
            return self.visit_Constant(ast.Constant(power))
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name not in _SEEDED:
            self.generic_visit(node)
        return node


def integer_constants(module: ModuleType, functions: Iterable[Callable[..., Any]]) -> dict[str, int]:
    """Return the integers above 1 of ``module`` that ``functions`` read by name, with their values."""
    names: dict[str, int] = {}
    for function in functions:
        code = getattr(function, "__code__", None)
        for name in _names_read(code) if isinstance(code, CodeType) else ():
            value = vars(module).get(name)
            if type(value) is int and value > 1:
                names[name] = value
    return names


def _names_read(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_read(constant)
