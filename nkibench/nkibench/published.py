"""Compares results with what AccelOpt published for the same kernels: how far our estimates are off the times that it
measured, and how far a search came beside its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accelopt_profiling.quantity import Known
from nkibench.peaks import geometric_mean
from nkibench.result import TaskResult


@dataclass(frozen=True)
class PublishedTask:
    """One kernel of AccelOpt.

    ``published_ms`` is what it measured, ``our_ms`` what is known here and how; the shares are percents of the
    published peak: of AccelOpt's kernel and of its best, of ours as estimated, and ``carried``, the published share
    times the gain that was found, which does not contain the estimate's error.
    """

    task: str
    published_ms: float
    our_ms: float
    known: str
    published_percent: float
    published_best: float | None
    our_percent: float | None
    our_best: float | None
    gain: float

    @property
    def off(self) -> float:
        """Our time over the published one."""
        return self.our_ms / self.published_ms

    @property
    def carried(self) -> float:
        return self.published_percent * self.gain


@dataclass(frozen=True)
class PublishedSummary:
    """Geometric means over the tasks.

    ``off_low`` and ``off_high`` are the extremes of our time over the published one, ``within`` counts those that are
    off by a third at most.
    """

    tasks: int
    off: float
    off_low: float
    off_high: float
    within: int
    published: float
    published_best: float | None
    ours: float | None
    our_best: float | None
    carried: float


def against_published(results: Sequence[TaskResult]) -> list[PublishedTask]:
    """Return the results of AccelOpt's own kernels whose measured time is published.

    Results of our tasks do not belong here: their kernels are others.
    """
    rows = []
    for r in results:
        us, peak = r.latency.us, r.peak_us
        if not r.counts or us is None or peak is None or not r.published_ms:
            continue
        best_us = r.best.latency.us if r.best is not None and r.best.latency.us else us
        rows.append(
            PublishedTask(
                r.task,
                r.published_ms,
                our_ms=us / 1000,
                known=str(r.latency.known),
                published_percent=100 * peak / (1000 * r.published_ms),
                published_best=None if r.published_best is None else 100 * r.published_best,
                our_percent=r.percent,
                our_best=r.best_percent,
                gain=us / best_us,
            )
        )
    return rows


def published_summary(tasks: Sequence[PublishedTask]) -> PublishedSummary | None:
    """Return the means; None of nothing."""
    if not tasks:
        return None
    off = [t.off for t in tasks]
    best = [t.published_best for t in tasks if t.published_best is not None]
    return PublishedSummary(
        len(tasks),
        geometric_mean(off) or 0.0,
        off_low=min(off),
        off_high=max(off),
        within=sum(0.75 <= o <= 4 / 3 for o in off),
        published=geometric_mean(t.published_percent for t in tasks) or 0.0,
        published_best=geometric_mean(best),
        ours=geometric_mean(t.our_percent for t in tasks if t.our_percent),
        our_best=geometric_mean(t.our_best for t in tasks if t.our_best),
        carried=geometric_mean(t.carried for t in tasks) or 0.0,
    )


def published_table(tasks: Sequence[PublishedTask]) -> str:
    """Return the comparison as Markdown, with what kind of figures it holds."""
    summary = published_summary(tasks)
    if summary is None:
        return ""
    estimated = any(t.known == str(Known.ESTIMATED) for t in tasks)
    how = "estimated" if estimated else "measured"
    lines = [
        "# AccelOpt's kernels beside its published results", "",
        f"Published times are measured on hardware; ours are {how}. Ours over the published: {summary.off:.2f} "
        f"(geometric mean of {summary.tasks}), {summary.off_low:.2f} to {summary.off_high:.2f}; "
        f"off by a third at most: {summary.within} of {summary.tasks}.",
        "", "*Carried* is the published share of peak times the gain found here: an estimate of the gain alone.", "",
        "| task | published ms | ours ms | ours / published | published % | its best % | ours % | our best % | gain "
        "| carried % |", "|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for t in tasks:
        lines.append(
            f"| {t.task} | {t.published_ms:.3f} | {t.our_ms:.3f} | {t.off:.2f} | {t.published_percent:.1f} | "
            f"{_percent(t.published_best)} | {_percent(t.our_percent)} | {_percent(t.our_best)} | {t.gain:.2f}x | "
            f"{t.carried:.1f} |"
        )
    lines.append(
        f"| geometric mean | | | {summary.off:.2f} | {summary.published:.1f} | {_percent(summary.published_best)} | "
        f"{_percent(summary.ours)} | {_percent(summary.our_best)} | | {summary.carried:.1f} |"
    )
    return "\n".join(lines) + "\n"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
