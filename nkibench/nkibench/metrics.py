"""Computes the papers' metrics over the results of a set of kernels, KernelBench's fast_p (the share of tasks with a
kernel that is right and more than p times as fast), and Spearman's rank correlation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from accelopt_profiling.measurement import Latency
from nkibench.result import TaskResult

#: "passed": the gate accepts the kernel. "wrong": it does not. "failed": it could not be run or judged. "absent": there
#: is no kernel to run.
Status = Literal["passed", "wrong", "failed", "absent"]


@dataclass(frozen=True)
class SetResult:
    """One kernel of a set.

    ``latency`` is its own, ``best`` that of the fastest version that a search checked (its own where none was faster),
    ``percent`` and ``best_percent`` are their percents of peak. ``search`` names the search, ``tokens`` those that a
    model read and wrote for it; ``key`` tells what it is a result of.

    ``eager`` and ``compiled`` are PyTorch's own times for the task, ``whole_us`` is that of all kernels of the best
    version together, ``attempts`` counts the files until the first right one where a model wrote it. ``code`` is the
    gate's first reason against the kernel; the errors are its largest on the problem's own distribution. ``text`` is
    the file of the best version, where a search found one.
    """

    name: str
    group: str
    status: Status
    detail: str = ""
    latency: Latency = field(default_factory=Latency)
    best: Latency = field(default_factory=Latency)
    steps: tuple[str, ...] = ()
    tried: int = 0
    money: float | None = None
    key: str = ""
    percent: float | None = None
    best_percent: float | None = None
    tokens: int = 0
    search: str = ""
    eager: Latency = field(default_factory=Latency)
    compiled: Latency = field(default_factory=Latency)
    whole_us: float | None = None
    attempts: int = 0
    code: str = ""
    relative_error: float | None = None
    absolute_error: float | None = None
    text: str = ""

    def over_torch(self, over: str) -> float | None:
        """Return the time of PyTorch ("eager" or "compiled") over that of all kernels of the best version; None where
        one is not known."""
        torch_us = getattr(self, over).us
        return torch_us / self.whole_us if torch_us and self.whole_us and self.status == "passed" else None

    @property
    def speedup(self) -> float | None:
        """The kernel's time over that of its best version. None where one is not known."""
        if self.status != "passed" or not self.latency.us or not self.best.us:
            return None
        return self.latency.us / self.best.us


def of_nkibench(result: TaskResult, search: str = "") -> SetResult:
    """Return the result of one of NKIBench's tasks, with percents of the published peak."""
    best = result.best
    return SetResult(
        result.task, "nkibench", status=result.status, detail=result.detail, latency=result.latency,
        best=result.latency if best is None else best.latency,
        steps=() if best is None else best.steps, tried=0 if best is None else best.tried,
        money=None if best is None else best.money, percent=result.percent, best_percent=result.best_percent,
        tokens=0 if best is None else best.tokens, search=search,
    )  # fmt: skip


@dataclass(frozen=True)
class Metrics:
    """``success`` is the share of tasks that the gate accepts.

    ``fast_1`` the share accepted and at least as fast as the kernel that the search began with; the speedups are means
    over the accepted kernels whose time is known, ``timed`` of them; the percents of peak are geometric means over
    those whose peak is known. Shares are percent; None over nothing. What a task cost is in candidates, a model's
    tokens, and money.
    """

    group: str
    tasks: int
    success: float | None
    fast_1: float | None
    faster: float | None
    mean_speedup: float | None
    geometric_mean_speedup: float | None
    timed: int
    known: str
    money: float | None
    percent_of_peak_before: float | None
    percent_of_peak_after: float | None
    candidates_per_task: float
    tokens_per_task: float
    money_per_task: float | None
    search: str = ""


def metrics(results: Sequence[SetResult]) -> list[Metrics]:
    """Return per search the metrics per group, then over all."""
    table = []
    for search in dict.fromkeys(result.search for result in results) or [""]:
        mine = [r for r in results if r.search == search]
        groups = dict.fromkeys(result.group for result in mine)
        rows = [_metrics(search, group, [r for r in mine if r.group == group]) for group in groups]
        table += [*rows, _metrics(search, "all", mine)] if len(rows) != 1 else rows
    return table


def _metrics(search: str, group: str, results: Sequence[SetResult]) -> Metrics:
    timed = [r for r in results if r.speedup is not None]
    speedups = [s for r in timed if (s := r.speedup) is not None]
    certainties = sorted(
        {str(r.latency.known.value) for r in timed} | {str(r.best.known.value) for r in timed}
    )
    priced = [r.money for r in results if r.money is not None]
    peaked = [(r.percent, r.best_percent) for r in timed if r.percent and r.best_percent]
    count = max(1, len(results))
    return Metrics(
        group,
        len(results),
        success=_share(sum(r.status == "passed" for r in results), len(results)),
        fast_1=_share(sum(s >= 1.0 for s in speedups), len(results)),
        faster=_share(sum(s > 1.0 for s in speedups), len(results)),
        mean_speedup=sum(speedups) / len(speedups) if speedups else None,
        geometric_mean_speedup=geometric_mean(speedups),
        timed=len(timed),
        known=" and ".join(certainties),
        money=sum(priced) if priced else None,
        percent_of_peak_before=geometric_mean([before for before, _ in peaked]),
        percent_of_peak_after=geometric_mean([after for _, after in peaked]),
        candidates_per_task=sum(r.tried for r in results) / count,
        tokens_per_task=sum(r.tokens for r in results) / count,
        money_per_task=sum(priced) / count if priced else None,
        search=search,
    )


def geometric_mean(values: Sequence[float]) -> float | None:
    """Return None of nothing; values are above 0."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def _share(count: int, of: int) -> float | None:
    return 100.0 * count / of if of else None


def milliseconds(us: float | None) -> str:
    """Return a latency in ms with four digits, empty when it is not known."""
    return "" if us is None else f"{us / 1000:.4g}"


def of_peak(share: float | None) -> str:
    """Return the percent of peak in words, empty when it is not known."""
    return "" if share is None else f"{share:.1f} %"


def spearman(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the rank correlation of two series, -1 to 1 (ties share their mean rank); NaN where one does not vary."""
    first, second = _ranks(left), _ranks(right)
    mean = sum(first) / len(first)
    above = sum((a - mean) * (b - mean) for a, b in zip(first, second, strict=True))
    spread = math.sqrt(sum((a - mean) ** 2 for a in first) * sum((b - mean) ** 2 for b in second))
    return above / spread if spread else math.nan


def _ranks(values: Sequence[float]) -> list[float]:
    return [sum(v < value for v in values) + sum(v == value for v in values) / 2 for value in values]


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
    shares = []
    for search in dict.fromkeys(result.search for result in results):
        mine = [r for r in results if r.search == search]
        groups = list(dict.fromkeys(r.group for r in mine))
        parts = [(group, [r for r in mine if r.group == group]) for group in groups]
        parts += [("all", mine)] if len(groups) > 1 else []
        for group, rows in parts:
            for over in ("eager", "compiled"):
                if any(getattr(r, over).us for r in rows):
                    shares.append(_fast_p(search, group, over, rows))
    return shares


def _fast_p(search: str, group: str, over: str, rows: Sequence[SetResult]) -> FastP:
    right = [r for r in rows if r.status == "passed"]
    ratios = [ratio for r in right if (ratio := r.over_torch(over)) is not None]
    certainties = sorted(
        {str(getattr(r, over).known) for r in right if getattr(r, over).us}
        | {str(r.best.known) for r in right}
    )
    shares = {
        f"{p:g}": 100.0 * (len(right) if p == 0 else sum(ratio > p for ratio in ratios)) / len(rows)
        for p in THRESHOLDS
    }  # fmt: skip
    return FastP(
        search,
        group,
        over=over,
        tasks=len(rows),
        timed=len(ratios),
        known=" and ".join(certainties),
        shares=shares,
    )
