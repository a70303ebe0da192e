"""Describes the value of an expression in a kernel: the dimensions of its tile and what its numbers come from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import libcst as cst

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
