"""Find the loops of a program in the flat list of its steps, so that a schedule need not follow every iteration.

A list of keys is read from left to right; what repeats right behind itself becomes a loop, also with loops inside
(the idea of nested loop recognition: Ketterlin and Clauss, "Prediction and trace compression of data access addresses
through nested loop recognition", CGO 2008, without the linear functions). The result spells out the same list.
"""

from __future__ import annotations

from collections.abc import Sequence

#: The most parts that the body of a loop is looked for with, and how many earlier occurrences are tried.
_LONGEST, _TRIES = 192, 6


class Part:
    """A single step (``body`` is empty) or ``count`` times the parts of ``body``; ``size`` is its number of steps."""

    __slots__ = ("body", "count", "ident", "size")

    def __init__(self, ident: int, body: tuple[Part, ...], count: int) -> None:
        self.ident, self.body, self.count = ident, body, count
        self.size: int = count * sum(part.size for part in body) if body else 1


class _Folding:
    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.known: dict[tuple[int, ...], int] = {}
        self.leaves: dict[int, Part] = {}
        self.where: dict[int, list[int]] = {}  # ident -> its positions in ``parts``, ascending
        self.growing: dict[int, list[int]] = {}  # last ident of a loop's body -> positions of such loops

    def ident(self, key: tuple[int, ...]) -> int:
        return self.known.setdefault(key, len(self.known))

    def leaf(self, key: int) -> Part:
        part = self.leaves.get(key)
        if part is None:
            part = self.leaves[key] = Part(self.ident((-1, key)), (), 1)
        return part

    def loop(self, body: tuple[Part, ...], count: int) -> Part:
        return Part(self.ident((count, *(part.ident for part in body))), body, count)

    def push(self, part: Part) -> None:
        while True:
            self._append(part)
            folded = self._grow() or self._join()
            if folded is None:
                return
            part = folded

    def _append(self, part: Part) -> None:
        at = len(self.parts)
        self.parts.append(part)
        self.where.setdefault(part.ident, []).append(at)
        if part.body:
            self.growing.setdefault(part.body[-1].ident, []).append(at)

    def _drop(self, n: int) -> None:
        for _ in range(n):
            part = self.parts.pop()
            self.where[part.ident].pop()
            if part.body:
                self.growing[part.body[-1].ident].pop()

    def _grow(self) -> Part | None:
        """Return one more iteration of the loop in front of the last parts."""
        parts = self.parts
        end = len(parts) - 1
        for at in reversed(self.growing.get(parts[end].ident, ())[-2:]):
            loop = parts[at]
            length = len(loop.body)
            if at + length == end and all(
                mine.ident == other.ident for mine, other in zip(loop.body, parts[at + 1 :], strict=True)
            ):
                self._drop(length + 1)
                return self.loop(loop.body, loop.count + 1)
        return None

    def _join(self) -> Part | None:
        """Return the last parts twice in a row: a loop of two iterations."""
        parts = self.parts
        end = len(parts) - 1
        for at in reversed(self.where[parts[end].ident][-1 - _TRIES : -1]):
            length = end - at
            if length > _LONGEST or 2 * length > end + 1:
                return None
            first = end + 1 - 2 * length
            if all(parts[first + n].ident == parts[at + 1 + n].ident for n in range(length)):
                body = tuple(parts[at + 1 :])
                self._drop(2 * length)
                return self.loop(body, 2)
        return None


def find_loops(keys: Sequence[int]) -> list[Part]:
    """Return the keys as single steps and loops; spelled out, the parts give ``keys`` again."""
    folding = _Folding()
    for key in keys:
        folding.push(folding.leaf(key))
    return folding.parts


def spell_out(parts: Sequence[Part]) -> list[int]:
    """Return the idents of the single steps of ``parts``, all iterations of all loops."""
    idents: list[int] = []
    for part in parts:
        if part.body:
            idents.extend(spell_out(part.body) * part.count)
        else:
            idents.append(part.ident)
    return idents
