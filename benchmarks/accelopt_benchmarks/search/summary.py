"""Summarizes the study: means with confidence intervals per contender, and hybrid's share of the others' candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from accelopt_benchmarks.result import GoalResult
from accelopt_benchmarks.search.playing import BEAM, CONTENDERS, HYBRID, TREE, RunOutcome
from accelopt_benchmarks.search.study import KernelResult

#: Samples of the percentile bootstrap (Efron 1979), by which the 95 % confidence intervals are computed.
DRAWS = 2000


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % confidence interval."""

    mean: float
    low: float
    high: float


def mean_of(values: Sequence[float], random: Random, draws: int = DRAWS) -> Interval:
    """Return the mean over ``values``, at least one."""
    mean = sum(values) / len(values)
    means = sorted(sum(random.choices(values, k=len(values))) / len(values) for _ in range(draws))
    return Interval(mean, means[int(0.025 * draws)], means[int(0.975 * draws) - 1])


def ratio_of(over: Sequence[float], under: Sequence[float], random: Random, draws: int = DRAWS) -> Interval:
    """Return the quotient of two means of paired values."""
    pairs = list(zip(over, under, strict=True))

    def quotient(chosen: Sequence[tuple[float, float]]) -> float:
        return sum(a for a, _ in chosen) / max(1e-12, sum(b for _, b in chosen))

    drawn = sorted(quotient(random.choices(pairs, k=len(pairs))) for _ in range(draws))
    return Interval(quotient(pairs), drawn[int(0.025 * draws)], drawn[int(0.975 * draws) - 1])


#: The share of the candidates of these that hybrid may need at most.
GOALS = {BEAM: 1 / 3, TREE: 1 / 2}


@dataclass(frozen=True)
class ContenderSummary:
    """One contender over all subjects: what a run needs, how many of the runs came near the best, and its share of the
    candidates of AccelOpt's beam and STARK's tree."""

    contender: str
    candidates: Interval
    tokens: Interval
    calls: Interval
    reached: float
    of_beam: Interval
    of_tree: Interval


def summaries(results: Sequence[KernelResult], limit: int) -> list[ContenderSummary]:
    """Return per seed the mean over subjects that leave something to find, and over seeds the mean with its interval.

    A run that did not come there counts as ``limit`` candidates.
    """
    random, result = Random(0), []
    outcomes = [o for f in results if f.open for o in f.outcomes]
    needed = _needed(limit)
    for contender in CONTENDERS:
        mine = _of(outcomes, contender.name)
        counts = _per_seed(mine, needed)
        result.append(
            ContenderSummary(
                contender.name,
                mean_of(counts, random),
                tokens=mean_of(_per_seed(mine, lambda o: o.tokens), random),
                calls=mean_of(_per_seed(mine, lambda o: o.calls), random),
                reached=_mean([o.reached for o in mine]),
                of_beam=ratio_of(counts, _per_seed(_of(outcomes, BEAM), needed), random),
                of_tree=ratio_of(counts, _per_seed(_of(outcomes, TREE), needed), random),
            )
        )
    return result


def per_subject(kernel_result: KernelResult, limit: int) -> dict[str, tuple[float, int]]:
    """Return per contender the mean candidates of a run, and how many runs came there."""
    result = {}
    for contender in CONTENDERS:
        mine = _of(kernel_result.outcomes, contender.name)
        result[contender.name] = (_mean([_needed(limit)(o) for o in mine]), sum(o.reached for o in mine))
    return result


def rows(results: Sequence[KernelResult], limit: int) -> list[GoalResult]:
    """Hybrid's share of the candidates that the strategies of others need, against its goals."""
    if not any(f.open for f in results):
        return []
    hybrid, result = summaries(results, limit)[0], []
    for other, goal in GOALS.items():
        share = hybrid.of_beam if other == BEAM else hybrid.of_tree
        each = [
            shares[HYBRID][0] / shares[other][0]
            for f in results
            if f.open
            for shares in [per_subject(f, limit)]
        ]
        met = sum(s <= goal for s in each)
        detail = (
            f"95 % interval {share.low:.3f} to {share.high:.3f}; all evaluated candidates count; met on {met} of "
            f"{len(each)} kernels, {min(each):.3f} to {max(each):.3f}"
        )
        what = f"candidates of {HYBRID} / {other}"
        result.append(GoalResult(what, f"<= {goal:.2f}", share.mean, "", share.mean <= goal, detail))
    return result


def _needed(limit: int) -> Callable[[RunOutcome], float]:
    return lambda o: o.candidates if o.reached else limit


def _of(outcomes: Sequence[RunOutcome], contender: str) -> list[RunOutcome]:
    return [o for o in outcomes if o.contender == contender]


def _per_seed(outcomes: Sequence[RunOutcome], value: Callable[[RunOutcome], float]) -> list[float]:
    seeds = sorted({o.seed for o in outcomes})
    return [_mean([value(o) for o in outcomes if o.seed == seed]) for seed in seeds]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))
