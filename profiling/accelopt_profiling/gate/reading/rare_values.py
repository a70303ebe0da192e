"""Find the values that a kernel waits for: numbers that it compares data with, and bit patterns.

A kernel that computes another thing for one value in a million is right on all that is drawn. Which value that is, its
text says.
"""

from __future__ import annotations

import ast
import itertools
import math
import struct
from collections.abc import Iterator

from accelopt_profiling.gate.reading.constants import constant
from accelopt_profiling.gate.reading.facts import Facts

#: Numbers of a text that are looked at, and values that follow from them, at most.
_NUMBERS, _VALUES = 24, 512
#: Values of other sizes are drawn elsewhere, or overflow.
_LEAST, _MOST = 1e-6, 1e3
#: Comparisons as functions, in NKI and in Triton.
_FUNCTIONS = ("equal", "not_equal", "isclose")
#: The bits of float32 numbers from 1 on, and those of their digits.
_ONE, _DIGITS = 0x3F800000, 0x7FFFFF


def rare_values(facts: Facts) -> list[float]:
    """Return values that a kernel of the file may compare data with, where it compares anything with a number that
    seldom comes: exactly with one above 1, or by order with a fraction.
    """
    if not any(_waits(facts, node) and facts.kernels_around(node) for node in facts.nodes):
        return []
    numbers = dict.fromkeys(n for node in facts.nodes if (n := _number(node)) is not None)
    rare = dict.fromkeys(v for v in _values(list(numbers)[:_NUMBERS]) if _LEAST <= abs(v) <= _MOST)
    return list(itertools.islice(rare, _VALUES))


def _waits(facts: Facts, node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        numbers = [n for side in (node.left, *node.comparators) if (n := _number(side)) is not None]
        exactly = any(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops)
        return any((exactly and abs(n) > 1) or n != int(n) for n in numbers)
    return (
        isinstance(node, (ast.Attribute, ast.Name))
        and (facts.dotted(node) or "").rpartition(".")[2] in _FUNCTIONS
    )


def _number(node: ast.AST) -> float | None:
    """Return a number as it stands in the text, with its sign, or within ``constexpr``; None for anything else."""
    stands = isinstance(node, (ast.Constant, ast.UnaryOp, ast.Call))
    value = constant(node, {}) if stands else None
    return value if isinstance(value, (int, float)) and abs(value) < 1 << 64 else None


def _values(numbers: list[float]) -> Iterator[float]:
    """Yield the numbers themselves, as bits and as digits of a float32, then what a scaled, rounded or masked value
    has to be to give one of them.
    """
    yield from numbers
    for whole in (n for n in numbers if isinstance(n, int) and n > 1):
        yield from (_of_bits(whole), _of_bits(_ONE | (whole & _DIGITS)))
    for scale, number in itertools.permutations(numbers, 2):
        if abs(scale) > 1:
            yield from (number / scale, (number + math.copysign(0.5, number)) / scale)
        if isinstance(scale, int) and isinstance(number, int) and 0 <= number < scale <= _DIGITS:
            yield _of_bits(_ONE + (number - _ONE) % scale)


def _of_bits(number: int) -> float:
    value: float = struct.unpack("<f", struct.pack("<I", number & 0xFFFFFFFF))[0]
    return value if math.isfinite(value) else 0.0
