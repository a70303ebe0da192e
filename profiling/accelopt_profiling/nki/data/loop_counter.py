"""Loop counters that know how they grow: a number now, and its slope from one iteration to the next.

While an iteration is recorded (``replay/loop_replay.py``), the loop's counter is a ``LoopCounter``. Sums and products
with numbers keep its slope, and so do the indices and offsets made of it. Whatever needs the number itself (a
comparison, ``//``, a list's index) tells the loop for how many iterations the answer stays the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np


class RecordedLoop:
    """One iteration that is being recorded: number ``at`` of ``count``.

    ``until`` is the first one that may differ from it; ``first`` is the number of instructions that were issued before,
    ``first_block`` that of the blocks that were made.
    """

    __slots__ = ("at", "count", "first", "first_block", "until")

    def __init__(self, at: int, count: int, first: int, first_block: int = 0) -> None:
        self.at, self.count, self.until, self.first, self.first_block = at, count, count, first, first_block

    def holds_for(self, iterations: int) -> None:
        """Note that a decision holds for so many iterations, the present one among them."""
        self.until = min(self.until, self.at + iterations)


_INTEGERS: tuple[type[Any], ...] = (int, np.integer)
_NUMBERS: tuple[type[Any], ...] = (int, float, complex, np.generic, np.ndarray)

#: By how much a number grows with each iteration of each loop.
Slopes = tuple[tuple[RecordedLoop, int], ...]


def plus(a: Slopes, b: Slopes) -> Slopes:
    """Return the slopes of a sum."""
    if not a or not b:
        return a or b
    total = dict(a)
    for loop, step in b:
        total[loop] = total.get(loop, 0) + step
    return tuple([(loop, step) for loop, step in total.items() if step])


def times(slopes: Slopes, factor: int) -> Slopes:
    """Return the slopes of a multiple."""
    return tuple([(loop, step * factor) for loop, step in slopes]) if factor else ()


def only_now(slopes: Slopes) -> None:
    """Note that the present value of a number with these slopes was used: nothing is known of other iterations."""
    for loop, _ in slopes:
        loop.holds_for(1)


def at_least_zero(value: int, slopes: Slopes) -> bool:
    """Return True if ``value >= 0``; the loops learn for how many iterations the answer holds."""
    if not slopes:
        return value >= 0
    true = value >= 0
    if not true:
        value, slopes = -value - 1, times(slopes, -1)
    falling = [(loop, step) for loop, step in slopes if step < 0]
    if value + sum(step * (loop.until - 1 - loop.at) for loop, step in falling) < 0:
        if len(falling) == 1:
            loop, step = falling[0]
            loop.holds_for(value // -step + 1)
        else:
            only_now(tuple(falling))
    return true


def is_zero(value: int, slopes: Slopes) -> bool:
    """Return True if ``value == 0``; the loops learn for how many iterations the answer holds."""
    if value == 0:
        only_now(slopes)
        return True
    if value > 0:
        return not at_least_zero(value - 1, slopes)
    return not at_least_zero(-value - 1, times(slopes, -1))


def stays_inside(low: int, high: int, size: int, slopes: Slopes) -> None:
    """Return whether positions ``low`` to ``high`` are inside a dimension of ``size``; the loops learn for how many
    iterations."""
    at_least_zero(low, slopes)
    at_least_zero(size - 1 - high, times(slopes, -1))


def counted(value: int, slopes: Slopes) -> Any:
    """Return a number with slopes: a plain one where it has none."""
    return LoopCounter(value, slopes) if slopes else value


class LoopCounter:
    """An integer that grows with loops: ``value`` now."""

    __array_ufunc__ = None  # NumPy scalars and arrays leave the arithmetic to this class
    __slots__ = ("slopes", "value")

    def __init__(self, value: int, slopes: Slopes) -> None:
        self.value, self.slopes = value, slopes

    def plain(self) -> int:
        """Return the number as it is now. No other iteration can be predicted from this one any more."""
        only_now(self.slopes)
        return self.value

    __index__ = __int__ = __hash__ = plain

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.plain(), dtype=dtype)

    def __float__(self) -> float:
        return float(self.plain())

    def __bool__(self) -> bool:
        return not is_zero(self.value, self.slopes)

    def __repr__(self) -> str:
        return repr(self.plain())

    def __format__(self, spec: str) -> str:
        return format(self.plain(), spec)

    def __neg__(self) -> LoopCounter:
        return LoopCounter(-self.value, times(self.slopes, -1))

    def __pos__(self) -> LoopCounter:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __add__(self, other: Any) -> Any:
        if isinstance(other, LoopCounter):
            return counted(self.value + other.value, plus(self.slopes, other.slopes))
        if isinstance(other, _INTEGERS):
            return LoopCounter(self.value + int(other), self.slopes)
        return self.plain() + other if isinstance(other, _NUMBERS) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, LoopCounter):
            return self + -other
        return self + -other if isinstance(other, _NUMBERS) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, LoopCounter):
            return self.plain() * other.plain()
        if isinstance(other, _INTEGERS):
            return counted(self.value * int(other), times(self.slopes, int(other)))
        return self.plain() * other if isinstance(other, _NUMBERS) else NotImplemented

    __rmul__ = __mul__

    def __ge__(self, other: Any) -> Any:
        return _at_least(self - other)

    def __gt__(self, other: Any) -> Any:
        return _at_least(self - other - 1)

    def __le__(self, other: Any) -> Any:
        return _at_least(-self + other)

    def __lt__(self, other: Any) -> Any:
        return _at_least(-self + other - 1)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, (LoopCounter, *_NUMBERS)):
            return NotImplemented
        difference = self - other
        return (
            is_zero(difference.value, difference.slopes)
            if isinstance(difference, LoopCounter)
            else difference == 0
        )

    def __ne__(self, other: object) -> Any:
        equal = self == other
        return NotImplemented if equal is NotImplemented else np.logical_not(equal)


def plain(value: Any) -> Any:
    """Return a number as it is now; anything else as it is. For numbers that are computed with, which no
    slope follows."""
    return value.plain() if type(value) is LoopCounter else value


def _at_least(difference: Any) -> Any:
    if isinstance(difference, LoopCounter):
        return at_least_zero(difference.value, difference.slopes)
    return difference >= 0


def _with_plain(function: Callable[[Any, Any], Any], reflected: bool) -> Callable[[LoopCounter, Any], Any]:
    def method(self: LoopCounter, other: Any) -> Any:
        number = other.plain() if isinstance(other, LoopCounter) else other
        return function(number, self.plain()) if reflected else function(self.plain(), number)

    return method


for _name in ("floordiv", "mod", "truediv", "pow", "lshift", "rshift", "and_", "or_", "xor"):
    for _reflected in (False, True):
        setattr(
            LoopCounter,
            f"__{'r' if _reflected else ''}{_name.rstrip('_')}__",
            _with_plain(getattr(operator, _name), _reflected),
        )
