"""Defines the result of one task as plain data that outlives the run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from accelopt_profiling.measurement import Latency
from nkibench.peaks import geometric_mean

#: "passed": the gate accepts it. "wrong": it does not. "failed": it could not be run or judged.
Status = Literal["passed", "wrong", "failed"]


@dataclass(frozen=True)
class Best:
    """The fastest version that a search checked: without a faster one the baseline's latency and no steps."""

    latency: Latency
    steps: tuple[str, ...] = ()  # the rewrites that led to it
    tried: int = 0  # candidates
    judged: int = 0  # those of them that went through the gate
    accepted: int = 0
    seconds: float = 0.0
    reason: str = ""
    text: str = ""  # the whole kernel file
    tokens: int = 0  # that a model read and wrote, what they cost at the configured price, and its calls
    money: float | None = None
    calls: int = 0
    progress: tuple[
        tuple[int, float], ...
    ] = ()  # number and us of each try, checked or not, that beat all before
    peak_us: float | None = None  # the least time as it takes products (``peaks.peak_of``)


@dataclass(frozen=True)
class TaskResult:
    """One task on one target.

    ``error`` is the largest relative L2 error on the problem's own distribution, ``cases`` how many cases the gate ran.
    ``peak_us`` is the least time by the published formulas, None for operators without one. ``published_ms`` is what
    AccelOpt measured for its own baseline, another kernel. ``key`` tells what it is a result of and which code its cost
    comes from, ``gate`` which code gave the verdict (``code.verdict_hash``).
    """

    task: str
    case: str
    target: str
    dialect: str
    kernel: str
    status: Status
    detail: str = ""
    error: float | None = None
    cases: int = 0
    latency: Latency = field(default_factory=Latency)
    bound: str | None = None
    peak_us: float | None = None
    peak_bound: str = ""
    published_ms: float | None = None
    published_best: float | None = None
    seconds: float = 0.0
    receipt: str | None = None
    findings: list[str] = field(default_factory=list)
    best: Best | None = None
    key: str = ""
    gate: str = ""

    @property
    def percent(self) -> float | None:
        """Percent of peak (published formulas) of the baseline, as well known as its latency."""
        return percent(self.peak_us, self.latency.us)

    @property
    def best_percent(self) -> float | None:
        """Percent of peak of the best version; the baseline's without a search."""
        if self.best is None:
            return self.percent
        return percent(self.best.peak_us or self.peak_us, self.best.latency.us)

    @property
    def best_percent_in_float32(self) -> float | None:
        """The same against the published formula, whose products are in float32: above 100 where the version takes
        fewer passes for them."""
        return self.percent if self.best is None else percent(self.peak_us, self.best.latency.us)

    @property
    def counts(self) -> bool:
        """Whether it enters the geometric mean: the gate accepts it and its time is known."""
        return self.status == "passed" and self.percent is not None


def percent(peak_us: float | None, latency_us: float | None) -> float | None:
    if peak_us is None or not latency_us:
        return None
    return 100 * peak_us / latency_us


@dataclass(frozen=True)
class BenchmarkSummary:
    """Geometric means of percent of peak over the tasks that count, ``of`` how many there are."""

    counted: int
    of: int
    baseline: float | None
    best: float | None
    known: str


def summarise(results: Iterable[TaskResult]) -> BenchmarkSummary:
    """Return the geometric means. ``known`` is how the worst-known latency among them is known."""
    everything = list(results)
    counted = [r for r in everything if r.counts]
    before = geometric_mean(p for r in counted if (p := r.percent) is not None)
    after = geometric_mean(p for r in counted if (p := r.best_percent) is not None)
    certainties = sorted({str(r.latency.known) for r in counted})
    return BenchmarkSummary(
        len(counted), len(everything), baseline=before, best=after, known=" and ".join(certainties)
    )
