"""Choose the programs of a launch to interpret when there are too many for all of them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

ProgramId = tuple[int, int, int]


@dataclass(frozen=True)
class Sample:
    """``counted`` stand for the whole grid in sums.

    ``edges`` are run for their errors only.

    The last program is where shapes that do not divide show. Counted with a weight of 1 in 4 it would distort the
    sums, so it is counted only when the strata contain it.
    """

    counted: tuple[ProgramId, ...]
    edges: tuple[ProgramId, ...]
    programs: int

    @property
    def complete(self) -> bool:
        return len(self.counted) == self.programs


def sample_programs(grid: ProgramId, count: int | None) -> Sample:
    """Choose at most ``count`` programs, one from the middle of each of ``count`` equal strata of every axis.

    Axes are paired by different orders, so that the sample does not lie on the grid's diagonal. ``None`` takes all.
    """
    x, y, z = (max(0, n) for n in grid)
    total = x * y * z
    if count is None or total <= max(count, 1):
        every = tuple((i, j, k) for k in range(z) for j in range(y) for i in range(x))
        return Sample(every, (), total)
    middle_first = sorted(range(count), key=lambda i: abs(2 * i - count + 1))
    picked = dict.fromkeys(
        (
            _stratum(i, count, x),
            _stratum((i * 2 + i // ((count + 1) // 2)) % count, count, y),
            _stratum((count - 1 - i + count // 2) % count, count, z),
        )
        for i in middle_first
    )
    last = (x - 1, y - 1, z - 1)
    return Sample(tuple(picked), () if last in picked else (last,), total)


#: Fewer programs of a launch than this are never chosen: without that, small launches would not be checked.
_FEWEST = 16
#: The golden ratio's fraction: its multiples fall into all parts of a stratum, one after another.
_SPREAD = 0.6180339887


@dataclass(frozen=True)
class ProgramDraw:
    """Draws ``share`` (0 to 1) of a launch's programs: at a random place in each of equal strata of the grid.

    Each ``turn`` of the same ``seed`` draws others, so that a few turns together miss few programs. Launches with the
    same grid get the same programs, and others the same part of the grid, because one often reads what the other
    wrote. The corners of the grid are always among them: sizes that a block does not divide show there.
    """

    share: float = 1.0
    seed: int = 0
    turn: int = 0

    def programs(self, grid: ProgramId) -> Sequence[ProgramId]:
        """Return the programs in the order of the launch."""
        every = sample_programs(grid, None).counted
        size = max(_FEWEST, -int(-self.share * len(every) // 1))
        if self.share >= 1.0 or len(every) <= size:
            return every
        picked = {int((n + self._place(n)) * len(every) / size) for n in range(size)}
        x, y, z = grid
        corners = product({0, z - 1}, {0, y - 1}, {0, x - 1})
        picked |= {i + x * (j + y * k) for k, j, i in corners}
        return [every[n] for n in sorted(picked)]

    def _place(self, stratum: int) -> float:
        """Return the place in a stratum, from 0 to 1."""
        digest = hashlib.blake2b(f"{self.seed} {stratum}".encode(), digest_size=8).digest()
        return (int.from_bytes(digest, "big") / 2**64 + self.turn * _SPREAD) % 1


@dataclass(frozen=True)
class InterpretationPlan:
    """The programs of a session's launches that are interpreted, and the work that they may take (see ``work``), in
    elements: ``most`` for all launches together. A launch of which the rest takes at most ``small`` is interpreted
    whole, and further programs run as long as no more than ``budget`` was spent. Without ``draw`` one program of each
    launch is run, to see what all would take. ``shares`` are those that were decided, by the number of the launch: a
    session that repeats another with the same plan interprets the same programs in the same order. ``order`` draws
    another order than the launch's.
    """

    draw: ProgramDraw | None = None
    most: int | None = None
    small: int = 0
    budget: int = 0
    shares: dict[int, float] = field(default_factory=dict)
    order: int | None = None

    def more(self, launch: int, rest: float, spent: int) -> float:
        """Return which share of a launch's programs to run when ``rest`` is the work of those that have not run."""
        if launch not in self.shares:
            self.shares[launch] = self._affordable(rest, spent)
        return self.shares[launch]

    def ordered(self, programs: Sequence[ProgramId]) -> list[ProgramId]:
        """Return the programs in the order in which they are interpreted."""
        drawn = list(programs)
        if self.order is not None:
            random.Random(self.order).shuffle(drawn)
        return drawn[::-1] if self.order is not None and drawn == list(programs) else drawn

    def _affordable(self, rest: float, spent: int) -> float:
        if rest <= max(self.small, self.budget - spent):
            return 1.0
        return max(0.0, (self.budget - spent) / rest)


def _stratum(index: int, count: int, size: int) -> int:
    return int((index + 0.5) * size / count)
