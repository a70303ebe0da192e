"""Choose the programs of a launch to interpret when there are too many for all of them."""

from __future__ import annotations

from dataclasses import dataclass

ProgramId = tuple[int, int, int]


@dataclass(frozen=True)
class Sample:
    """``counted`` stand for the whole grid in sums; ``edges`` are run for their errors only.

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


def _stratum(index: int, count: int, size: int) -> int:
    return int((index + 0.5) * size / count)
