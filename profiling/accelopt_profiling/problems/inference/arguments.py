"""The inferred call of a kernel file as data: its arguments, the sizes that they share, and what each follows from."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["tensor", "value"]

#: How a tensor is filled: with random numbers, whole numbers, indices below the smallest size, rising offsets, the
#: longest length, or a random mask.
Fill = Literal["random", "integers", "index", "offsets", "full", "mask"]


class NoSizeError(Exception):
    """A dimension is no expression of the call's sizes."""


@dataclass
class InferredArgument:
    """One argument.

    ``dims`` are expressions of the call's sizes, ``value`` is a Python expression; ``reason`` says what it was inferred
    from, and ``firm`` that the code itself says so. In NKI whole numbers are below ``bound``; 0 stands for the smallest
    dimension.
    """

    name: str
    kind: Kind
    dims: list[str] = field(default_factory=list)
    dtype: str = "bfloat16"
    fill: Fill = "random"
    value: str = "None"
    reason: str = ""
    firm: bool = False
    bound: int = 0


@dataclass
class InferredCall:
    """A call of ``entry``.

    The arguments in ``keywords`` are passed by name, after the others; ``grid`` is that of a kernel which no function
    launches, one expression for each axis. With ``backward`` the gradients are computed too. ``on_chip`` names tensors
    that are tiles in SBUF; ``shortened`` tells which sizes are smaller than they were first, since loops were too long.
    ``imports`` are names of the kernel file that the values need.
    """

    entry: str
    arguments: list[InferredArgument] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    keywords: list[str] = field(default_factory=list)
    grid: list[str] = field(default_factory=list)
    backward: bool = False
    imports: list[str] = field(default_factory=list)
    on_chip: list[str] = field(default_factory=list)
    shortened: list[str] = field(default_factory=list)

    @property
    def note(self) -> str:
        """What a person should know of the sizes, as a sentence; "" for nothing."""
        if not self.shortened:
            return ""
        smaller = ", ".join(self.shortened)
        return f"The kernel's loops were too long for an answer within seconds, so that {smaller}."

    def argument(self, name: str) -> InferredArgument | None:
        """Return the argument ``name``, or None."""
        return next((a for a in self.arguments if a.name == name), None)

    @property
    def tensors(self) -> list[InferredArgument]:
        return [a for a in self.arguments if a.kind == "tensor"]

    def size_of(self, dimension: str) -> int:
        """Evaluate a dimension.

        Raises:
            NoSizeError: it names something else than sizes, or is no whole number.
        """
        return evaluate(dimension, self.sizes)

    def shape(self, argument: InferredArgument) -> list[int]:
        """Return the sizes of a tensor's dimensions. Raises NoSizeError."""
        return [self.size_of(d) for d in argument.dims]

    def expression(self, size: int) -> str | None:
        """Name ``size`` by the call's sizes: one of them, a product of two or three, or one times or over a small
        number. None where nothing fits.
        """
        by_size = {value: name for name, value in reversed(self.sizes.items())}
        if size in by_size:
            return by_size[size]
        items = list(self.sizes.items())
        for index, (a, x) in enumerate(items):
            for b, y in items[index:]:
                if x * y == size and x > 1 and y > 1:
                    return f"{a} * {b}"
        for factor in (2, 3, 4):
            if size % factor == 0 and size // factor in by_size:
                return f"{factor} * {by_size[size // factor]}"
        for a, x in items:
            if size > 1 and x % size == 0 and x // size in (2, 4, 8, 16, 32, 64, 128):
                return f"{a} // {x // size}"
            if size == x + 1:
                return f"{a} + 1"
        for index, (a, x) in enumerate(items):
            for at, (b, y) in enumerate(items[index:], index):
                for c, z in items[at:]:
                    if x * y * z == size and min(x, y, z) > 1:
                        return f"{a} * {b} * {c}"
        return None

    def fill_dimensions(self) -> None:
        """Make the sizes larger of which a dimension is computed as 0: ``n // 512``."""
        for tensor in self.tensors:
            for dimension in tensor.dims:
                names = sorted(names_in(dimension) & set(self.sizes))
                for _ in range(16 * len(names)):
                    if not _is_zero(dimension, self.sizes):
                        break
                    smallest = min(names, key=lambda name: self.sizes[name])
                    self.sizes[smallest] = 2 * max(1, self.sizes[smallest])

    def add_size(self, name: str, size: int) -> str:
        """Give ``name`` a size that no other one has, at or above ``size``: a power of two times as large, or three
        times that where calls of many sizes would grow beyond what fits; return the name."""
        if name not in self.sizes:
            sizes = set(self.sizes.values())
            factors = (1, 2, 4, 3, 6, 12, 5, 10, 7, 14, 9, 11, 13, 15)
            self.sizes[name] = next(
                (size * f for f in factors if size * f not in sizes), 16 * max(sizes, default=1)
            )
        return name

    def merge(self, target: str, dropped: str) -> None:
        """Make two sizes one: ``dropped`` is ``target`` from here on."""
        self.sizes.pop(dropped, None)
        for argument in self.arguments:
            argument.dims = [rename(d, dropped, target) for d in argument.dims]
            if argument.kind == "value":
                argument.value = rename(argument.value, dropped, target)

    def drop_unused_sizes(self) -> None:
        """Keep the sizes that a dimension or a value names."""
        texts = [d for a in self.tensors for d in a.dims]
        texts += [a.value for a in self.arguments if a.kind == "value"]
        used = {name for text in texts for name in names_in(text)}
        self.sizes = {name: size for name, size in self.sizes.items() if name in used}


def evaluate(expression: str, sizes: dict[str, int]) -> int:
    """Evaluate whole-number arithmetic on ``sizes``. Raises NoSizeError."""
    try:
        return _value(ast.parse(expression, mode="eval").body, sizes)
    except (SyntaxError, KeyError, ZeroDivisionError, ValueError) as error:
        raise NoSizeError(expression) from error


def _is_zero(expression: str, sizes: dict[str, int]) -> bool:
    try:
        return evaluate(expression, sizes) == 0
    except NoSizeError:
        return False


def _value(node: ast.expr, sizes: dict[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, sizes), _value(node.right, sizes)
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, (ast.FloorDiv, ast.Div)):
            return left // right
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
    raise ValueError(ast.dump(node))


def names_in(expression: str) -> set[str]:
    """Return the names in a Python expression. None where it does not parse."""
    try:
        return {n.id for n in ast.walk(ast.parse(expression, mode="eval")) if isinstance(n, ast.Name)}
    except SyntaxError:
        return set()


def rename(expression: str, name: str, other: str) -> str:
    """Put ``other`` in the place of ``name`` in an expression."""
    if name not in names_in(expression):
        return expression
    tree = ast.parse(expression, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == name:
            node.id = other
    return ast.unparse(tree)
