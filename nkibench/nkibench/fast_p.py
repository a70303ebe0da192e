"""Computes KernelBench's fast_p: the share of tasks with a kernel that is right and more than p times as fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nkibench.metrics import SetResult

#: The thresholds that are reported; 0 is the share of right kernels.
THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class FastP:
    """``shares`` are percents of ``tasks``, by threshold p, ``over`` PyTorch "eager" or "compiled". ``timed`` of the
    right kernels have both times; one without counts for p = 0 only. ``known`` says how the times are known."""

    search: str
    group: str
    over: str
    tasks: int
    timed: int
    known: str
    shares: dict[str, float] = field(default_factory=dict)


def fast_p(results: Sequence[SetResult]) -> list[FastP]:
    """Return the shares per search, level and baseline (PyTorch eager and compiled), then over all levels; none for
    results without PyTorch's times."""
    found = []
    for search in dict.fromkeys(result.search for result in results):
        mine = [r for r in results if r.search == search]
        groups = list(dict.fromkeys(r.group for r in mine))
        parts = [(group, [r for r in mine if r.group == group]) for group in groups]
        parts += [("all", mine)] if len(groups) > 1 else []
        for group, rows in parts:
            for over in ("eager", "compiled"):
                if any(getattr(r, over).us for r in rows):
                    found.append(_fast_p(search, group, over, rows))
    return found


def _fast_p(search: str, group: str, over: str, rows: Sequence[SetResult]) -> FastP:
    right = [r for r in rows if r.status == "passed"]
    ratios = [ratio for r in right if (ratio := r.over_torch(over)) is not None]
    known = sorted(
        {str(getattr(r, over).known) for r in right if getattr(r, over).us}
        | {str(r.best.known) for r in right}
    )
    shares = {
        f"{p:g}": 100.0 * (len(right) if p == 0 else sum(ratio > p for ratio in ratios)) / len(rows)
        for p in THRESHOLDS
    }  # fmt: skip
    return FastP(search, group, over, len(rows), len(ratios), " and ".join(known), shares)
